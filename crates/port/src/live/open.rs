//! Opens a device the best way there is.

use std::io;
use std::sync::Arc;

use super::af_packet::{PacketPort, PacketSettings};
use super::af_xdp::{XdpDevice, XdpError, XdpSettings};
use super::device::Device;
use super::xdp::{Attach, Filter};
use crate::Port;

/// Which kind of port a device becomes.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Driver {
    /// AF_XDP in the driver, else in the stack (otherwise as the settings say), else AF_PACKET, and why.
    Auto(XdpSettings),
    /// AF_XDP, as the settings say, or not at all.
    AfXdp(XdpSettings),
    /// AF_PACKET. The kernel must not forward what comes in there.
    AfPacket(PacketSettings),
}

impl Default for Driver {
    fn default() -> Driver {
        Driver::Auto(XdpSettings::default())
    }
}

/// A device with all its queues open.
pub struct LiveDevice {
    device: Device,
    xdp: Option<XdpDevice>,
    ports: Vec<Box<dyn Port + Send>>,
    notes: Vec<String>,
}

impl LiveDevice {
    /// Opens each queue of a device of the thread's network namespace.
    ///
    /// # Errors
    /// When there is no such device, no way that was allowed works, or we may not.
    pub fn open(name: &str, driver: Driver) -> Result<LiveDevice, XdpError> {
        match driver {
            Driver::AfXdp(settings) => LiveDevice::af_xdp(name, settings),
            Driver::AfPacket(settings) => Ok(LiveDevice::af_packet(name, settings)?),
            Driver::Auto(settings) => {
                let settings = XdpSettings { attach: Attach::NativeOrGeneric, ..settings };
                LiveDevice::af_xdp(name, settings).or_else(|error| {
                    // Somebody else's program or socket is no reason to go another way behind his back, and the next way needs rights too.
                    if matches!(error.io().raw_os_error(), Some(libc::EBUSY | libc::EEXIST | libc::EPERM | libc::EACCES | libc::ENODEV)) {
                        return Err(error);
                    }
                    let mut live = LiveDevice::af_packet(name, PacketSettings::default())?;
                    live.notes
                        .push(format!("{error}; so {name} is opened with AF_PACKET: the kernel must not forward what comes in there"));
                    Ok(live)
                })
            }
        }
    }

    fn af_xdp(name: &str, settings: XdpSettings) -> Result<LiveDevice, XdpError> {
        let xdp = XdpDevice::open(name, settings)?;
        let mut notes = xdp.notes().to_vec();
        let mut ports: Vec<Box<dyn Port + Send>> = Vec::new();
        for queue in 0..xdp.device().rx_queues() {
            let port = xdp.port(queue)?;
            notes.extend_from_slice(port.notes());
            ports.push(Box::new(port));
        }
        Ok(LiveDevice { device: Device::named(name)?, xdp: Some(xdp), ports, notes })
    }

    fn af_packet(name: &str, settings: PacketSettings) -> io::Result<LiveDevice> {
        let port = PacketPort::open(name, settings)?;
        let notes = port.notes().to_vec();
        Ok(LiveDevice { device: Device::named(name)?, xdp: None, ports: vec![Box::new(port)], notes })
    }

    /// The device.
    pub fn device(&self) -> &Device {
        &self.device
    }

    /// The filter in front of the ports, to be told of own addresses. None for AF_PACKET, which has none.
    pub fn filter(&self) -> Option<&Arc<Filter>> {
        self.xdp.as_ref().map(XdpDevice::filter)
    }

    /// The ports, one a queue, each for the worker that is to own it; none the second time. This value must be kept as long as they are used: without
    /// it the filter is taken off and they receive no more.
    pub fn take_ports(&mut self) -> Vec<Box<dyn Port + Send>> {
        std::mem::take(&mut self.ports)
    }

    /// What the operator should know, a sentence each.
    pub fn notes(&self) -> &[String] {
        &self.notes
    }
}

impl std::fmt::Debug for LiveDevice {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let LiveDevice { device, xdp, ports, notes } = self;
        let kind = if xdp.is_some() { "AF_XDP" } else { "AF_PACKET" };
        f.debug_struct(kind).field("device", device).field("ports", &ports.len()).field("notes", notes).finish()
    }
}

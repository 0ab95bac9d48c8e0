//! AF_XDP: frames taken from a device's queue before the kernel makes packets of them, and put into one.
//!
//! A device is opened once ([`XdpDevice`]): that puts the filter at it. Each of its queues is then a port ([`XdpPort`]), for the worker that owns it.
//! When the device's value is dropped, or the process dies, the filter is taken off and the kernel has all frames again.
//!
//! The bytes of a frame are copied once on either way, between the memory shared with the kernel and a [`crate::Buf`], which owns its memory. (In
//! zero-copy mode that is the only copy; to spare it a `Buf` would have to be able to borrow a chunk.)

mod port;
#[allow(unsafe_code, reason = "memory shared with the kernel; its head says what keeps it sound")]
mod ring;
#[allow(unsafe_code, reason = "says which structures of the kernel are plain")]
mod socket;
#[allow(unsafe_code, reason = "memory shared with the kernel; its head says what keeps it sound")]
mod umem;

use std::io;
use std::sync::Arc;

pub use port::XdpPort;

use super::af_packet::Promiscuous;
use super::device::Device;
use super::xdp::{Attach, Attachment, BpfError, Filter, Takes};

/// Whether the device reads and writes the frames' memory itself.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum Copies {
    /// Without copies where the driver can and passes a test, else with.
    #[default]
    Auto,
    /// Without copies, or not at all.
    Zero,
    /// With copies: every driver can.
    Copy,
}

/// How a device and its queues are opened.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct XdpSettings {
    /// Which frames come up.
    pub takes: Takes,
    /// Where the filter runs.
    pub attach: Attach,
    /// Whether frames are copied by the kernel.
    pub copies: Copies,
    /// Slots of each ring: frames that can wait in either direction. A power of two.
    pub slots: u32,
    /// Has the device leave VLAN tags in the frames when it takes them off: else they would be gone. What it was is not restored.
    pub keep_vlan: bool,
    /// The worker drives the device: each look for frames processes up to 64 of its queue, instead of interrupts that do (Linux 5.11). For workers that never
    /// sleep, with `napi_defer_hard_irqs` and `gro_flush_timeout` of the device set.
    pub busy_poll: bool,
}

impl Default for XdpSettings {
    /// What is to be forwarded, a native filter, copies as needed, 2048 slots, VLAN tags left in, interrupts.
    fn default() -> XdpSettings {
        XdpSettings {
            takes: Takes::Forwarded,
            attach: Attach::Native,
            copies: Copies::Auto,
            slots: 2048,
            keep_vlan: true,
            busy_poll: false,
        }
    }
}

/// Why a device or one of its queues cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum XdpError {
    /// The device is not there.
    #[error(transparent)]
    Device(#[from] io::Error),
    /// The filter cannot be put at it.
    #[error("device {device}: {source}")]
    Filter {
        /// Name of the device.
        device: String,
        /// Why.
        source: BpfError,
    },
    /// The socket cannot be opened.
    #[error("device {device}, queue {queue}: {what}: {source}")]
    Socket {
        /// Name of the device.
        device: String,
        /// Number of the queue.
        queue: u32,
        /// What was tried.
        what: &'static str,
        /// The kernel's answer.
        source: io::Error,
    },
}

impl XdpError {
    /// The kernel's answer.
    pub fn io(&self) -> &io::Error {
        match self {
            XdpError::Device(source) | XdpError::Socket { source, .. } => source,
            XdpError::Filter { source, .. } => source.io(),
        }
    }
}

/// A device with the filter at it.
#[derive(Debug)]
pub struct XdpDevice {
    device: Device,
    settings: XdpSettings,
    attachment: Attachment,
    filter: Arc<Filter>,
    _promiscuous: Option<Promiscuous>,
    notes: Vec<String>,
}

impl XdpDevice {
    /// Puts the filter at a device of the thread's network namespace. Frames go on to the kernel until a queue is opened.
    ///
    /// # Errors
    /// When there is no such device, its driver refuses, or we may not.
    pub fn open(name: &str, settings: XdpSettings) -> Result<XdpDevice, XdpError> {
        let device = Device::named(name)?;
        let mut notes = Vec::new();
        if settings.keep_vlan && device.strips_vlan().unwrap_or(false) {
            notes.push(match device.set_strips_vlan(false) {
                Ok(()) => format!("{name}: VLAN tags were taken off on receive (rxvlan), which XDP cannot see; switched off"),
                Err(error) => {
                    format!("{name}: VLAN tags are taken off on receive (rxvlan), which XDP cannot see, and it stays so: {error}")
                }
            });
        }
        if device.driver() == "veth" {
            notes.push(format!(
                "{name}: tags of VLAN devices at the other end of a veth pair travel beside the frame, where XDP does not see them; there: ethtool -K DEVICE txvlan off"
            ));
        }
        let refused = |source| XdpError::Filter { device: format!("{name} (MTU {})", device.mtu()), source };
        let filter = Filter::new(settings.takes, device.mac(), device.rx_queues()).map_err(refused)?;
        let promiscuous = match settings.takes {
            Takes::Everything => Some(Promiscuous::new(device.index())?),
            Takes::Forwarded => None,
        };
        let attachment = Attachment::new(filter.program(), device.index(), settings.attach).map_err(refused)?;
        if attachment.is_generic() {
            notes.push(format!("{name}: the filter runs in the stack, not in the driver: slower"));
        }
        Ok(XdpDevice { device, settings, attachment, filter: Arc::new(filter), _promiscuous: promiscuous, notes })
    }

    /// The device.
    pub fn device(&self) -> &Device {
        &self.device
    }

    /// The filter, to be told of own addresses.
    pub fn filter(&self) -> &Arc<Filter> {
        &self.filter
    }

    /// What the operator should know, a sentence each.
    pub fn notes(&self) -> &[String] {
        &self.notes
    }

    /// Opens a queue, from 0 to [`Device::rx_queues`] − 1. From here on the frames of it that the filter lets up come to the port.
    ///
    /// # Errors
    /// When another socket has it, or the driver refuses.
    pub fn port(&self, queue: u32) -> Result<XdpPort, XdpError> {
        let copies = if self.attachment.is_generic() { Copies::Copy } else { self.settings.copies };
        XdpPort::open(&self.device, queue, XdpSettings { copies, ..self.settings }, Arc::clone(&self.filter))
    }
}

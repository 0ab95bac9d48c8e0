//! The interfaces that become ports.

use std::io::ErrorKind;
use std::sync::Arc;

use control::{Configuration, PortDevice};
use port::live::xdp::{Filter, Takes};
use port::live::{Copies, Device, Driver, LiveDevice, PacketPort, PacketSettings, XdpSettings};
use wire::Mac;

use super::queue::Queue;
use super::router::PortState;
use super::settings::{Mode, PortCopies, PortSettings, Settings};
use crate::args::PortDriver;
use crate::failure::Failure;
use crate::stderr::say;

/// Looks at the interfaces, before anything is done to them.
///
/// # Errors
/// When one is not there, or no Ethernet device.
pub fn look(ports: &[PortSettings]) -> Result<Vec<Device>, Failure> {
    ports.iter().map(|port| Device::named(port.name.as_str()).map_err(Failure::unusable)).collect()
}

/// The interfaces as the network file finds them.
pub fn as_ports(devices: &[Device]) -> Vec<PortDevice> {
    devices.iter().map(|device| PortDevice { name: device.name().to_owned(), hardware: Some((Mac(device.mac()), device.mtu())) }).collect()
}

/// Says where interfaces are not what the network file has of them: packets would be lost there.
pub fn compare(devices: &[Device], configuration: &Configuration) {
    let links = configuration.editor.links();
    for (place, device) in devices.iter().enumerate() {
        let (name, Some(link)) = (device.name(), links.of_port(place)) else { continue };
        if !link.up {
            say(format_args!("warning: the network file does not set {name} up, so nothing is forwarded there (ip link set {name} up)"));
        }
        if matches!(device.is_running(), Ok(false)) {
            say(format_args!(
                "warning: {name} is down or its cable has no other end; nothing comes in until it is up (ip link set {name} up)"
            ));
        }
        if link.mac != Mac(device.mac()) {
            say(format_args!(
                "warning: the network file gives {name} the address {}, the interface has {}: one that looks at addresses will not receive (ip link set {name} address {})",
                link.mac,
                Mac(device.mac()),
                link.mac
            ));
        }
        if link.mtu > device.mtu() {
            say(format_args!(
                "warning: the network file gives {name} an MTU of {}, the interface has {}: longer packets will not leave (ip link set {name} mtu {})",
                link.mtu,
                device.mtu(),
                link.mtu
            ));
        }
    }
}

/// An interface that is open as a port.
pub struct Opened {
    /// Its place among the ports.
    pub place: usize,
    /// Its name.
    pub name: String,
    device: LiveDevice,
    queues: Vec<Queue>,
    notes: Vec<String>,
    count: u32,
}

impl Opened {
    /// Its queues, for the workers that are to own them; none the second time.
    pub fn take_queues(&mut self) -> Vec<Queue> {
        std::mem::take(&mut self.queues)
    }

    /// What the operator should know, a sentence each.
    pub fn notes(&self) -> &[String] {
        &self.notes
    }

    /// The device's number.
    pub fn index(&self) -> u32 {
        self.device.device().index()
    }

    /// The filter in front of it, if there is one.
    pub fn filter(&self) -> Option<&Arc<Filter>> {
        self.device.filter()
    }

    /// As it is told of.
    pub fn state(&self) -> PortState {
        PortState {
            place: self.place,
            name: self.name.clone(),
            driver: driver_name(&self.device),
            queues: self.count,
            index: self.index(),
            notes: self.notes.clone(),
        }
    }
}

/// Opens the interfaces: a port each, in the order of the settings.
///
/// # Errors
/// When the driver does not go with one, or we may not.
pub fn open(devices: &[Device], settings: &Settings, workers: usize) -> Result<Vec<Opened>, Failure> {
    let one = |(place, (device, port)): (usize, (&Device, &PortSettings))| open_one(place, device, port, settings, workers);
    devices.iter().zip(&settings.ports).enumerate().map(one).collect()
}

/// Opens an interface as the port in place `place`.
///
/// # Errors
/// As [`open`].
pub fn open_one(place: usize, device: &Device, port: &PortSettings, settings: &Settings, workers: usize) -> Result<Opened, Failure> {
    let name = device.name();
    if let (Some(wanted), Mode::Standalone(_), true) = (port.queues, &settings.mode, port.driver != PortDriver::AfPacket)
        && wanted < device.rx_queues()
    {
        return Err(Failure::unusable(format!(
            "{name} receives on {} queues, and {wanted} are to be used: the others' frames would go to the kernel; give it as many (ethtool -L {name} combined {wanted})",
            device.rx_queues()
        )));
    }
    let takes = if settings.mode == Mode::Mirror { Takes::Forwarded } else { Takes::Everything };
    let copies = match port.copies {
        PortCopies::Auto => Copies::Auto,
        PortCopies::Zero => Copies::Zero,
        PortCopies::Copy => Copies::Copy,
    };
    let xdp = XdpSettings { takes, copies, busy_poll: settings.busy_poll, ..XdpSettings::default() };
    let packet = PacketSettings { group: (workers > 1).then(|| group(device)), ..PacketSettings::default() };
    let failed = |error: port::live::XdpError| match error.io().kind() {
        ErrorKind::PermissionDenied => Failure::unusable(format!(
            "{name} cannot be opened: {error}: noref run takes CAP_NET_ADMIN, CAP_NET_RAW and CAP_BPF, so run it as root"
        )),
        _ => Failure::unusable(format!("{name} cannot be opened: {error}")),
    };
    let driver = match port.driver {
        PortDriver::Auto => Driver::Auto(xdp),
        PortDriver::AfXdp => Driver::AfXdp(xdp),
        PortDriver::AfPacket => Driver::AfPacket(packet),
    };
    let mut live = LiveDevice::open(name, driver).map_err(failed)?;
    let mut notes = live.notes().to_vec();
    if live.filter().is_none() {
        if settings.mode == Mode::Mirror {
            return Err(Failure::unusable(format!(
                "{name} can be opened with AF_PACKET only, beside which the kernel forwards every packet too, so that each would leave twice: not beside the kernel (--mirror){}",
                notes.first().map_or_else(String::new, |why| format!(": {why}"))
            )));
        }
        if workers > 1 && port.driver == PortDriver::Auto {
            drop(live);
            live = LiveDevice::open(name, Driver::AfPacket(packet)).map_err(failed)?;
        }
    }
    let driver = driver_name(&live);
    let mut ports = live.take_ports();
    if live.filter().is_none() {
        for _ in 1..port.queues.map_or(workers, |queues| queues as usize) {
            ports.push(Box::new(PacketPort::open(name, packet).map_err(Failure::unusable)?));
        }
    } else if let Some(queues) = port.queues {
        if queues as usize > ports.len() {
            notes.push(format!("{name} has {} queues, fewer than the {queues} that the settings ask for", ports.len()));
        }
        ports.truncate(queues as usize);
    }
    let count = ports.len() as u32;
    let queues = (0..).zip(ports).map(|(number, port)| Queue::new(place, name, Some(number), driver, port)).collect();
    Ok(Opened { place, name: name.to_owned(), device: live, queues, notes, count })
}

/// The number under which the packet sockets of a device share its frames: nobody else's in this network namespace, as far as can be told.
fn group(device: &Device) -> u16 {
    (std::process::id().wrapping_mul(31).wrapping_add(device.index())) as u16
}

fn driver_name(device: &LiveDevice) -> &'static str {
    if device.filter().is_some() { "AF_XDP" } else { "AF_PACKET" }
}

/// The open ports, in words.
pub fn describe(ports: &[PortState]) -> String {
    let one = |port: &PortState| {
        let PortState { name, driver, queues, .. } = port;
        format!("{name} ({driver}, {queues} queue{})", if *queues == 1 { "" } else { "s" })
    };
    ports.iter().map(one).collect::<Vec<_>>().join(", ")
}

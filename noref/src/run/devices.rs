//! The interfaces that become ports.

use std::io::ErrorKind;
use std::sync::Arc;

use control::{Configuration, PortDevice};
use port::Port;
use port::live::memif::{MemifDevice, MemifSettings};
use port::live::xdp::{Filter, Takes};
use port::live::{Copies, Device, Driver, LiveDevice, PacketPort, PacketSender, PacketSettings, TapKind, TapPort, XdpSettings};

use super::found::Found;
use super::queue::Queue;
use super::router::PortState;
use super::settings::{Mode, PortCopies, PortSettings, Settings};
use crate::args::PortDriver;
use crate::failure::Failure;
use crate::stderr::say;

/// What stands behind a port of this kind.
const TAP: &str = "TAP";

/// Looks at the interfaces, before anything is done to them.
///
/// # Errors
/// When one is not there, or no Ethernet device.
pub fn look(ports: &[PortSettings]) -> Result<Vec<Found>, Failure> {
    ports.iter().map(|port| Found::of(port).map_err(Failure::unusable)).collect()
}

/// The interfaces as the network file finds them.
pub fn as_ports(devices: &[Found]) -> Vec<PortDevice> {
    devices.iter().map(Found::as_port).collect()
}

/// Says where interfaces are not what the network file has of them: packets would be lost there.
pub fn compare(devices: &[Found], configuration: &Configuration) {
    let links = configuration.editor.links();
    for (place, device) in devices.iter().enumerate() {
        let (name, Some(link)) = (device.name(), links.of_port(place)) else { continue };
        if !link.up {
            say(format_args!("warning: the network file does not set {name} up, so nothing is forwarded there (ip link set {name} up)"));
        }
        if device.interface().is_some_and(|device| matches!(device.is_running(), Ok(false))) {
            say(format_args!(
                "warning: {name} is down or its cable has no other end; nothing comes in until it is up (ip link set {name} up)"
            ));
        }
        if link.mac != device.mac() {
            say(format_args!(
                "warning: the network file gives {name} the address {}, the interface has {}: one that looks at addresses will not receive (ip link set {name} address {})",
                link.mac,
                device.mac(),
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
    backing: Backing,
    queues: Vec<Queue>,
    notes: Vec<String>,
    driver: &'static str,
    count: u32,
}

/// What must be kept while a port is used.
enum Backing {
    Interface(LiveDevice),
    #[expect(dead_code, reason = "its ports have a peer as long as it is there")]
    Memif(MemifDevice),
    Tap(TapPort),
}

impl Opened {
    /// Its queues, for the workers that are to own them; none the second time.
    pub fn take_queues(&mut self) -> Vec<Queue> {
        std::mem::take(&mut self.queues)
    }

    /// A queue that only sends, for a worker that has none of it: by a packet socket.
    ///
    /// # Errors
    /// When it cannot be opened.
    pub fn sender(&self) -> Result<Queue, Failure> {
        let (driver, port): (_, Box<dyn Port + Send>) = match &self.backing {
            Backing::Tap(device) => (TAP, Box::new(device.another().map_err(Failure::unusable)?)),
            _ => ("AF_PACKET", Box::new(PacketSender::open(&self.name).map_err(Failure::unusable)?)),
        };
        Ok(Queue::new(self.place, &self.name, None, driver, port))
    }

    /// The interface's number in the kernel; none of one that the kernel does not know as a port.
    pub fn interface(&self) -> Option<u32> {
        match &self.backing {
            Backing::Interface(device) => Some(device.device().index()),
            Backing::Memif(_) | Backing::Tap(_) => None,
        }
    }

    /// The filter in front of it, if there is one.
    pub fn filter(&self) -> Option<&Arc<Filter>> {
        match &self.backing {
            Backing::Interface(device) => device.filter(),
            Backing::Memif(_) | Backing::Tap(_) => None,
        }
    }

    /// As it is told of.
    pub fn state(&self) -> PortState {
        PortState {
            place: self.place,
            name: self.name.clone(),
            driver: self.driver,
            queues: self.count,
            index: self.interface().unwrap_or(0),
            notes: self.notes.clone(),
        }
    }
}

/// Opens the interfaces: a port each, in the order of the settings.
///
/// # Errors
/// When the driver does not go with one, or we may not.
pub fn open(devices: &[Found], settings: &Settings, workers: usize) -> Result<Vec<Opened>, Failure> {
    let one = |(place, (device, port)): (usize, (&Found, &PortSettings))| open_one(place, device, port, settings, workers);
    devices.iter().zip(&settings.ports).enumerate().map(one).collect()
}

/// Opens what was found as the port in place `place`.
///
/// # Errors
/// As [`open`].
pub fn open_one(place: usize, found: &Found, port: &PortSettings, settings: &Settings, workers: usize) -> Result<Opened, Failure> {
    match found {
        Found::Interface(device) => open_interface(place, device, port, settings, workers),
        Found::Memif { name, settings: memif } => open_memif(place, name, memif, settings, workers),
        Found::Tap(name) => open_tap(place, name, settings),
    }
}

fn open_tap(place: usize, name: &str, settings: &Settings) -> Result<Opened, Failure> {
    if settings.mode == Mode::Mirror {
        return Err(Failure::unusable(format!(
            "{name} is a TAP port: its addresses in the kernel are those of the other end, so that there is nothing to follow: only with a network file (--net)"
        )));
    }
    let device = TapPort::open(name, TapKind::Tap).map_err(Failure::unusable)?;
    let port = device.another().map_err(Failure::unusable)?;
    let notes = vec![format!("{name} is a TAP device: the kernel is at its other end (ip link set {name} up)")];
    Ok(opened(place, name, TAP, Backing::Tap(device), vec![Box::new(port)], notes))
}

fn open_memif(place: usize, name: &str, memif: &MemifSettings, settings: &Settings, workers: usize) -> Result<Opened, Failure> {
    if settings.mode == Mode::Mirror {
        return Err(Failure::unusable(format!(
            "{name} is a memif port, of which the kernel knows no addresses and routes, so that there is nothing to follow: only with a network file (--net)"
        )));
    }
    if usize::from(memif.queues) < workers {
        return Err(Failure::unusable(format!(
            "{name} has fewer queues than there are workers, and each worker sends by a queue of its own: queues={workers}, or fewer workers"
        )));
    }
    let mut device = MemifDevice::open(name, memif.clone(), |what| say(what)).map_err(Failure::unusable)?;
    let ports = device.take_ports();
    Ok(opened(place, name, "memif", Backing::Memif(device), ports, Vec::new()))
}

fn opened(
    place: usize,
    name: &str,
    driver: &'static str,
    backing: Backing,
    ports: Vec<Box<dyn Port + Send>>,
    notes: Vec<String>,
) -> Opened {
    let count = ports.len() as u32;
    let queues = (0..).zip(ports).map(|(number, port)| Queue::new(place, name, Some(number), driver, port)).collect();
    Opened { place, name: name.to_owned(), backing, queues, notes, driver, count }
}

fn open_interface(place: usize, device: &Device, port: &PortSettings, settings: &Settings, workers: usize) -> Result<Opened, Failure> {
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
    Ok(opened(place, name, driver, Backing::Interface(live), ports, notes))
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

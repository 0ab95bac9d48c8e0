//! The interfaces that become ports.

use std::io::ErrorKind;

use control::{Configuration, PortDevice};
use port::live::xdp::Takes;
use port::live::{Device, Driver, LiveDevice, PacketSettings, XdpSettings};
use wire::Mac;

use crate::args::{PortDriver, PortName};
use crate::failure::Failure;
use crate::stderr::say;

/// Looks at the interfaces, before anything is done to them.
///
/// # Errors
/// When one is not there, or no Ethernet device.
pub fn look(ports: &[PortName]) -> Result<Vec<Device>, Failure> {
    ports.iter().map(|port| Device::named(port.as_str()).map_err(Failure::unusable)).collect()
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

/// Opens the interfaces, all their frames for noref.
///
/// # Errors
/// When the driver does not go with one, or we may not.
pub fn open(devices: &[Device], driver: PortDriver, busy_poll: bool) -> Result<Vec<LiveDevice>, Failure> {
    let xdp = XdpSettings { takes: Takes::Everything, busy_poll, ..XdpSettings::default() };
    let driver = match driver {
        PortDriver::Auto => Driver::Auto(xdp),
        PortDriver::AfXdp => Driver::AfXdp(xdp),
        PortDriver::AfPacket => Driver::AfPacket(PacketSettings::default()),
    };
    let open = |device: &Device| {
        LiveDevice::open(device.name(), driver).map_err(|error| match error.io().kind() {
            ErrorKind::PermissionDenied => Failure::unusable(format!(
                "{} cannot be opened: {error}: noref run takes CAP_NET_ADMIN, CAP_NET_RAW and CAP_BPF, so run it as root",
                device.name()
            )),
            _ => Failure::unusable(format!("{} cannot be opened: {error}", device.name())),
        })
    };
    devices.iter().map(open).collect()
}

/// One line on an open interface.
pub fn describe(device: &LiveDevice, queues: usize) -> String {
    let how = if device.filter().is_some() { "AF_XDP" } else { "AF_PACKET" };
    format!("{} ({how}, {queues} queue{})", device.device().name(), if queues == 1 { "" } else { "s" })
}

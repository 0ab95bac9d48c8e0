//! `RTM_NEWLINK`, `RTM_DELLINK`: devices, and their settings, which come along.

use route::{Conf4, Conf6, IfIndex, TableId};
use wire::Mac;

use super::message::{ACKNOWLEDGE, NEW_LINK, REQUEST, build, push_attribute};
use super::{AF_INET, AF_INET6, attribute, attributes, text, u16_at, u32_at, u32_of};

/// `struct ifinfomsg`.
const HEADER_LEN: usize = 16;
const IFLA_ADDRESS: u16 = 1;
const IFLA_IFNAME: u16 = 3;
const IFLA_MTU: u16 = 4;
const IFLA_MASTER: u16 = 10;
const IFLA_LINKINFO: u16 = 18;
const IFLA_AF_SPEC: u16 = 26;
const IFLA_GROUP: u16 = 27;
const IFLA_INFO_KIND: u16 = 1;
const IFLA_INFO_DATA: u16 = 2;
const IFLA_VRF_TABLE: u16 = 1;
const IFLA_INET_CONF: u16 = 1;
const IFLA_INET6_CONF: u16 = 2;
const ARPHRD_ETHER: u16 = 1;
const ARPHRD_LOOPBACK: u16 = 772;
const IFF_UP: u32 = 1;
const IFF_LOWER_UP: u32 = 0x1_0000;

/// What kind of device.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum DeviceKind {
    /// One whose frames are Ethernet's and that has no devices below it: a card, a veth end, a tap.
    Ethernet,
    /// `lo`.
    Loopback,
    /// A VRF device.
    Vrf(TableId),
    /// Another, by the name that `ip link` has for it, or `arphrd N`.
    Other(Box<str>),
}

/// A device of the kernel.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Device {
    /// Its number.
    pub index: IfIndex,
    /// Its name.
    pub name: Box<str>,
    /// What it is.
    pub kind: DeviceKind,
    /// Its Ethernet address.
    pub mac: Mac,
    /// Largest packet, bytes.
    pub mtu: u32,
    /// Administratively up.
    pub up: bool,
    /// It has a carrier.
    pub carrier: bool,
    /// `group`.
    pub group: u32,
    /// The device it belongs to: a VRF device, a bridge, a bond.
    pub master: Option<IfIndex>,
    /// IPv4 settings.
    pub conf4: Conf4,
    /// IPv6 settings.
    pub conf6: Conf6,
}

impl Device {
    /// True when the kernel uses no route of the family by it: it is down, or has no carrier and is not to be used without.
    pub fn is_dead(&self, v4: bool) -> bool {
        !self.up || !self.carrier && if v4 { self.conf4.ignore_linkdown } else { self.conf6.ignore_linkdown }
    }
}

/// Kinds of `ip link add … type`, whose devices are ends of a wire.
const ETHERNET_KINDS: [&str; 6] = ["", "veth", "dummy", "tun", "netdevsim", "netkit"];

/// Reads a device; none of another message or one that has no number and name.
pub fn link(body: &[u8]) -> Option<Device> {
    // Bridges tell of their ports in messages of the family of bridges, which are no news of the device.
    if body.first() != Some(&0) {
        return None;
    }
    let (arphrd, index, flags) = (u16_at(body, 2)?, u32_at(body, 4)?, u32_at(body, 8)?);
    let mut device = Device {
        index: IfIndex(index),
        name: Box::default(),
        kind: DeviceKind::Ethernet,
        mac: Mac::default(),
        mtu: 0,
        up: flags & IFF_UP != 0,
        carrier: flags & IFF_LOWER_UP != 0,
        group: 0,
        master: None,
        conf4: Conf4::default(),
        // What the kernel says nothing about is a device without IPv6.
        conf6: Conf6 { disable_ipv6: true, ..Conf6::default() },
    };
    let mut info: &[u8] = &[];
    for (kind, value) in attributes(body.get(HEADER_LEN..)?) {
        match kind {
            IFLA_ADDRESS => device.mac = value.try_into().map(Mac).unwrap_or_default(),
            IFLA_IFNAME => device.name = text(value)?.into(),
            IFLA_MTU => device.mtu = u32_of(value)?,
            IFLA_MASTER => device.master = u32_of(value).filter(|master| *master != 0).map(IfIndex),
            IFLA_GROUP => device.group = u32_of(value)?,
            IFLA_LINKINFO => info = value,
            IFLA_AF_SPEC => settings(value, &mut device),
            _ => {}
        }
    }
    device.kind = device_kind(arphrd, info);
    (index != 0 && !device.name.is_empty()).then_some(device)
}

/// The number of the device that a message is about.
pub fn index(body: &[u8]) -> Option<IfIndex> {
    (body.first() == Some(&0)).then(|| u32_at(body, 4).map(IfIndex))?
}

/// A request, to be acknowledged, that a device is set up and put into the VRF of `master`.
pub fn set_up(sequence: u32, index: IfIndex, master: Option<IfIndex>) -> Vec<u8> {
    let mut body = vec![0; 4];
    body.extend(index.0.to_ne_bytes());
    // The flags, and which of them are meant.
    body.extend(IFF_UP.to_ne_bytes());
    body.extend(IFF_UP.to_ne_bytes());
    if let Some(master) = master {
        push_attribute(&mut body, IFLA_MASTER, &master.0.to_ne_bytes());
    }
    build(NEW_LINK, REQUEST | ACKNOWLEDGE, sequence, &body)
}

fn device_kind(arphrd: u16, info: &[u8]) -> DeviceKind {
    let kind = attribute(info, IFLA_INFO_KIND).and_then(text).unwrap_or_default();
    match (arphrd, kind) {
        (ARPHRD_LOOPBACK, _) => DeviceKind::Loopback,
        (_, "vrf") => {
            let data = attribute(info, IFLA_INFO_DATA).unwrap_or_default();
            match attribute(data, IFLA_VRF_TABLE).and_then(u32_of) {
                Some(table) => DeviceKind::Vrf(TableId(table)),
                None => DeviceKind::Other("vrf without a table".into()),
            }
        }
        (ARPHRD_ETHER, kind) if ETHERNET_KINDS.contains(&kind) => DeviceKind::Ethernet,
        (arphrd, "") => DeviceKind::Other(format!("arphrd {arphrd}").into()),
        (_, kind) => DeviceKind::Other(kind.into()),
    }
}

/// The settings `net.ipv4.conf.DEV.*` and `net.ipv6.conf.DEV.*`: arrays of numbers, in the order of `IPV4_DEVCONF_…` (which begin at 1) and
/// `DEVCONF_…` (at 0).
fn settings(families: &[u8], device: &mut Device) {
    for (family, value) in attributes(families) {
        if family == u16::from(AF_INET)
            && let Some(numbers) = attribute(value, IFLA_INET_CONF)
        {
            let number = |place: usize| u32_at(numbers, (place - 1) * 4).unwrap_or(0);
            device.conf4 = Conf4 {
                forwarding: number(1) != 0,
                send_redirects: number(6) != 0,
                rp_filter: number(8).min(2) as u8,
                accept_source_route: number(9) != 0,
                accept_local: number(23) != 0,
                ignore_linkdown: number(29) != 0,
            };
        } else if family == u16::from(AF_INET6)
            && let Some(numbers) = attribute(value, IFLA_INET6_CONF)
        {
            let number = |place: usize| u32_at(numbers, place * 4).unwrap_or(0) as i32;
            device.conf6 = Conf6 {
                forwarding: number(0) != 0,
                hop_limit: number(1).clamp(1, 255) as u8,
                accept_source_route: number(24).clamp(-1, 1) as i8,
                disable_ipv6: number(26) != 0,
                ignore_linkdown: number(39) != 0,
                seg6_enabled: number(44) != 0,
                seg6_require_hmac: number(45).clamp(-1, 1) as i8,
            };
        }
    }
}

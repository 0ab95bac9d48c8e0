//! `RTM_NEWLINK`, `RTM_DELLINK`: devices, and their settings, which come along.

use route::{Conf4, Conf6, IfIndex, TableId, VLAN_8021AD, VLAN_8021Q, VLAN_MAX_ID, VlanChange, VlanSettings, VlanTag};
use wire::Mac;

use super::message::{ACKNOWLEDGE, NEW_LINK, REQUEST, build, push_attribute};
use super::{AF_INET, AF_INET6, attribute, attributes, text, u16_at, u32_at, u32_of};

/// `struct ifinfomsg`.
const HEADER_LEN: usize = 16;
const IFLA_ADDRESS: u16 = 1;
const IFLA_IFNAME: u16 = 3;
const IFLA_MTU: u16 = 4;
const IFLA_LINK: u16 = 5;
const IFLA_MASTER: u16 = 10;
const IFLA_LINKINFO: u16 = 18;
const IFLA_AF_SPEC: u16 = 26;
const IFLA_GROUP: u16 = 27;
const IFLA_LINK_NETNSID: u16 = 37;
const IFLA_INFO_KIND: u16 = 1;
const IFLA_INFO_DATA: u16 = 2;
const IFLA_VRF_TABLE: u16 = 1;
const IFLA_VLAN_ID: u16 = 1;
const IFLA_VLAN_FLAGS: u16 = 2;
const IFLA_VLAN_EGRESS_QOS: u16 = 3;
const IFLA_VLAN_INGRESS_QOS: u16 = 4;
const IFLA_VLAN_PROTOCOL: u16 = 5;
const VLAN_FLAG_REORDER_HDR: u32 = 1;
const VLAN_FLAG_LOOSE_BINDING: u32 = 4;
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
    /// A VLAN sub-interface.
    Vlan(VlanTag, VlanSettings),
    /// A dummy device: an Ethernet device whose packets end there.
    Dummy,
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
const ETHERNET_KINDS: [&str; 5] = ["", "veth", "tun", "netdevsim", "netkit"];

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
    let (mut info, mut below, mut elsewhere): (&[u8], _, _) = (&[], None, false);
    for (kind, value) in attributes(body.get(HEADER_LEN..)?) {
        match kind {
            IFLA_ADDRESS => device.mac = value.try_into().map(Mac).unwrap_or_default(),
            IFLA_IFNAME => device.name = text(value)?.into(),
            IFLA_MTU => device.mtu = u32_of(value)?,
            IFLA_LINK => below = u32_of(value).map(IfIndex),
            IFLA_LINK_NETNSID => elsewhere = true,
            IFLA_MASTER => device.master = u32_of(value).filter(|master| *master != 0).map(IfIndex),
            IFLA_GROUP => device.group = u32_of(value)?,
            IFLA_LINKINFO => info = value,
            IFLA_AF_SPEC => settings(value, &mut device),
            _ => {}
        }
    }
    device.kind = device_kind(arphrd, info, below.filter(|_| !elsewhere));
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

/// What a device is. `below`: the device that it stands on, if that is of the same namespace.
fn device_kind(arphrd: u16, info: &[u8], below: Option<IfIndex>) -> DeviceKind {
    let kind = attribute(info, IFLA_INFO_KIND).and_then(text).unwrap_or_default();
    let data = attribute(info, IFLA_INFO_DATA).unwrap_or_default();
    match (arphrd, kind) {
        (ARPHRD_LOOPBACK, _) => DeviceKind::Loopback,
        (_, "vrf") => match attribute(data, IFLA_VRF_TABLE).and_then(u32_of) {
            Some(table) => DeviceKind::Vrf(TableId(table)),
            None => DeviceKind::Other("vrf without a table".into()),
        },
        (ARPHRD_ETHER, "vlan") => match below.and_then(|below| vlan(data, below)) {
            Some((tag, settings)) => DeviceKind::Vlan(tag, settings),
            None => DeviceKind::Other("vlan without a device below it here".into()),
        },
        (ARPHRD_ETHER, "dummy") => DeviceKind::Dummy,
        (ARPHRD_ETHER, kind) if ETHERNET_KINDS.contains(&kind) => DeviceKind::Ethernet,
        (arphrd, "") => DeviceKind::Other(format!("arphrd {arphrd}").into()),
        (_, kind) => DeviceKind::Other(kind.into()),
    }
}

/// Tag and settings of a VLAN sub-interface; none of one that cannot be.
fn vlan(data: &[u8], parent: IfIndex) -> Option<(VlanTag, VlanSettings)> {
    let id = u16_at(attribute(data, IFLA_VLAN_ID)?, 0).filter(|id| *id <= VLAN_MAX_ID)?;
    let protocol = attribute(data, IFLA_VLAN_PROTOCOL).map_or(Some(VLAN_8021Q), |value| u16_at(value, 0).map(u16::from_be))?;
    let flags = attribute(data, IFLA_VLAN_FLAGS).and_then(|flags| u32_at(flags, 0)).unwrap_or(VLAN_FLAG_REORDER_HDR);
    let pairs =
        |kind| attribute(data, kind).into_iter().flat_map(attributes).filter_map(|(_, pair)| Some((u32_at(pair, 0)?, u32_at(pair, 4)?)));
    let mut settings = VlanSettings::default();
    settings.change(&VlanChange {
        reorder_hdr: Some(flags & VLAN_FLAG_REORDER_HDR != 0),
        loose_binding: Some(flags & VLAN_FLAG_LOOSE_BINDING != 0),
        ingress: pairs(IFLA_VLAN_INGRESS_QOS).map(|(code_point, priority)| (code_point as u8, priority)).collect(),
        egress: pairs(IFLA_VLAN_EGRESS_QOS).map(|(priority, code_point)| (priority, code_point as u8)).collect(),
    });
    matches!(protocol, VLAN_8021Q | VLAN_8021AD).then_some((VlanTag { parent, protocol, id }, settings))
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

#[cfg(test)]
mod tests {
    use super::*;

    /// A device of number 7 with these attributes; `kind` and `data` are its link information.
    fn told(kind: &str, data: &[u8], others: &[(u16, &[u8])]) -> DeviceKind {
        let mut body = vec![0; HEADER_LEN];
        body[2..4].copy_from_slice(&ARPHRD_ETHER.to_ne_bytes());
        body[4..8].copy_from_slice(&7u32.to_ne_bytes());
        let mut info = Vec::new();
        push_attribute(&mut info, IFLA_INFO_KIND, kind.as_bytes());
        push_attribute(&mut info, IFLA_INFO_DATA, data);
        push_attribute(&mut body, IFLA_IFNAME, b"name\0");
        push_attribute(&mut body, IFLA_LINKINFO, &info);
        others.iter().for_each(|(kind, value)| push_attribute(&mut body, *kind, value));
        link(&body).expect("a device").kind
    }

    #[test]
    fn a_vlan_is_read_with_its_tag_and_its_maps() {
        let below = (IFLA_LINK, &3u32.to_ne_bytes()[..]);
        let pair = |from: u32, to: u32| [from.to_ne_bytes(), to.to_ne_bytes()].concat();
        let mut map = Vec::new();
        push_attribute(&mut map, 1, &pair(6, 7));
        push_attribute(&mut map, 1, &pair(0, 1));
        let mut data = Vec::new();
        push_attribute(&mut data, IFLA_VLAN_PROTOCOL, &[0x88, 0xa8]);
        push_attribute(&mut data, IFLA_VLAN_ID, &100u16.to_ne_bytes());
        push_attribute(&mut data, IFLA_VLAN_FLAGS, &pair(VLAN_FLAG_LOOSE_BINDING, u32::MAX));
        push_attribute(&mut data, IFLA_VLAN_EGRESS_QOS, &map);
        let tag = VlanTag { parent: IfIndex(3), protocol: VLAN_8021AD, id: 100 };
        let settings = VlanSettings { reorder_hdr: false, loose_binding: true, egress: vec![(0, 1), (6, 7)], ..VlanSettings::default() };
        assert_eq!(told("vlan", &data, &[below]), DeviceKind::Vlan(tag, settings));

        let other = |kind| matches!(kind, DeviceKind::Other(_));
        assert!(other(told("vlan", &data, &[])) && other(told("vlan", &data, &[below, (IFLA_LINK_NETNSID, &[0; 4])])));
        assert!(other(told("vlan", &[], &[below])), "no number");
        assert_eq!(told("dummy", &[], &[]), DeviceKind::Dummy);
    }
}

//! Interfaces: ports, the loopback and VRF devices, with their addresses and per-interface settings.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

use wire::{Mac, ipv6};

use crate::{IfIndex, TableId, VlanSettings, VlanTag};

/// What an interface is.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum LinkKind {
    /// A port of the router, by its place among the ports.
    Port(usize),
    /// `lo`.
    Loopback,
    /// A VRF device, whose members look routes up in its table.
    Vrf(TableId),
    /// A VLAN sub-interface of another.
    Vlan(VlanTag),
    /// A device that takes packets and sends none.
    Dummy,
    /// A device of the kernel that is no port of this router: packets to it are the kernel's.
    Elsewhere,
}

/// The biggest IPv6 packet: what a VRF device takes (Linux `IP6_MAX_MTU`).
const VRF_MTU: u32 = 65575;

/// An IPv4 address of an interface.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Address4 {
    /// The address.
    pub addr: Ipv4Addr,
    /// Length of the subnet, bits.
    pub len: u8,
    /// Scope number as in `ip address` (0 global, 253 link, 254 host).
    pub scope: u8,
    /// Broadcast address, when one was given.
    pub broadcast: Option<Ipv4Addr>,
    /// Another address of the same subnet stands before it on the interface.
    pub secondary: bool,
    /// The connected route is left out (`noprefixroute`).
    pub no_prefix_route: bool,
}

impl Address4 {
    /// True when `other` lies in the address's subnet.
    pub fn subnet_contains(&self, other: Ipv4Addr) -> bool {
        let mask = u32::MAX.checked_shl(32 - u32::from(self.len)).unwrap_or(0);
        (u32::from(self.addr) ^ u32::from(other)) & mask == 0
    }
}

/// An IPv6 address of an interface.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Address6 {
    /// The address.
    pub addr: Ipv6Addr,
    /// Length of the subnet, bits.
    pub len: u8,
    /// The connected route is left out (`noprefixroute`).
    pub no_prefix_route: bool,
}

impl Address6 {
    /// The first address of its subnet, which its routers answer to.
    pub fn subnet(&self) -> Ipv6Addr {
        let mask = u128::MAX.checked_shl(128 - u32::from(self.len)).unwrap_or(0);
        Ipv6Addr::from(u128::from(self.addr) & mask)
    }
}

/// `net.ipv4.conf.DEV.*`.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Conf4 {
    /// Packets that come in here may be forwarded.
    pub forwarding: bool,
    /// 0 off, 1 strict, 2 loose (RFC 3704).
    pub rp_filter: u8,
    /// Packets with a source route are taken.
    pub accept_source_route: bool,
    /// Redirects are sent.
    pub send_redirects: bool,
    /// Packets from the router's own addresses are taken.
    pub accept_local: bool,
    /// Routes by the interface are not used while it has no carrier.
    pub ignore_linkdown: bool,
}

impl Default for Conf4 {
    fn default() -> Conf4 {
        Conf4 {
            forwarding: false,
            rp_filter: 0,
            accept_source_route: false,
            send_redirects: true,
            accept_local: false,
            ignore_linkdown: false,
        }
    }
}

/// `net.ipv6.conf.DEV.*`.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Conf6 {
    /// Packets that come in here may be forwarded.
    pub forwarding: bool,
    /// Routing headers of local addresses are processed.
    pub seg6_enabled: bool,
    /// -1 ignore the HMAC, 0 check it if there is one, 1 demand one.
    pub seg6_require_hmac: i8,
    /// IPv6 is off on the interface.
    pub disable_ipv6: bool,
    /// Hop limit of packets that the router makes.
    pub hop_limit: u8,
    /// Packets with a routing header of type 2 are taken.
    pub accept_source_route: i8,
    /// Routes by the interface are not used while it has no carrier.
    pub ignore_linkdown: bool,
}

impl Default for Conf6 {
    fn default() -> Conf6 {
        Conf6 {
            forwarding: false,
            seg6_enabled: false,
            seg6_require_hmac: 0,
            disable_ipv6: false,
            hop_limit: 64,
            accept_source_route: 0,
            ignore_linkdown: false,
        }
    }
}

/// One interface.
#[derive(Clone, Debug)]
pub struct Link {
    /// Its number.
    pub index: IfIndex,
    /// Its name.
    pub name: Box<str>,
    /// What it is.
    pub kind: LinkKind,
    /// Its Ethernet address.
    pub mac: Mac,
    /// The operator gave it that address.
    pub own_mac: bool,
    /// What is said of a VLAN sub-interface beside its tag.
    pub vlan: VlanSettings,
    /// Largest packet, bytes, without the Ethernet header.
    pub mtu: u32,
    /// Administratively up.
    pub up: bool,
    /// The VRF device it belongs to.
    pub master: Option<IfIndex>,
    /// The table that lookups of its VRF use, its own or its master's.
    pub vrf_table: Option<TableId>,
    /// `group`: a number that rules may tell interfaces by.
    pub group: u32,
    /// IPv4 addresses, in the order they were given.
    pub addrs4: Vec<Address4>,
    /// IPv6 addresses, in the order they were given.
    pub addrs6: Vec<Address6>,
    /// IPv4 settings.
    pub conf4: Conf4,
    /// IPv6 settings.
    pub conf6: Conf6,
}

impl Link {
    /// A new interface: down, without addresses.
    pub fn new(index: IfIndex, name: &str, kind: LinkKind) -> Link {
        let mtu = match kind {
            LinkKind::Port(_) | LinkKind::Vlan(_) | LinkKind::Dummy => 1500,
            LinkKind::Vrf(_) => VRF_MTU,
            LinkKind::Loopback | LinkKind::Elsewhere => 65536,
        };
        Link {
            index,
            name: name.into(),
            kind,
            mac: Mac::default(),
            own_mac: false,
            vlan: VlanSettings::default(),
            mtu,
            up: false,
            master: None,
            vrf_table: if let LinkKind::Vrf(table) = kind { Some(table) } else { None },
            group: 0,
            addrs4: Vec::new(),
            addrs6: Vec::new(),
            conf4: Conf4::default(),
            conf6: Conf6::default(),
        }
    }

    /// True of `lo`.
    pub fn is_loopback(&self) -> bool {
        self.kind == LinkKind::Loopback
    }

    /// True of a VRF device.
    pub fn is_vrf(&self) -> bool {
        matches!(self.kind, LinkKind::Vrf(_))
    }

    /// True when packets sent by it leave by a port, or end there: they are no kernel's.
    pub fn sends(&self) -> bool {
        matches!(self.kind, LinkKind::Port(_) | LinkKind::Vlan(_) | LinkKind::Dummy)
    }

    /// IPv6 runs on the interface: not switched off, and the MTU allows it (RFC 8200 §5).
    pub fn has_ipv6(&self) -> bool {
        !self.conf6.disable_ipv6 && self.mtu as usize >= ipv6::MIN_MTU
    }

    /// True when `addr` is one of the interface's addresses.
    pub fn has_addr(&self, addr: IpAddr) -> bool {
        match addr {
            IpAddr::V4(addr) => self.addrs4.iter().any(|a| a.addr == addr),
            IpAddr::V6(addr) => self.addrs6.iter().any(|a| a.addr == addr),
        }
    }

    /// The first link-local address.
    pub fn link_local(&self) -> Option<Ipv6Addr> {
        self.addrs6.iter().map(|a| a.addr).find(|a| a.is_unicast_link_local())
    }
}

/// All interfaces, by number.
#[derive(Clone, Debug, Default)]
pub struct Links {
    /// Place N holds the interface of number N.
    slots: Vec<Option<Link>>,
    /// Number of the interface of each port.
    ports: Vec<IfIndex>,
    /// IPv4 addresses of all interfaces, sorted.
    own4: Vec<Ipv4Addr>,
    /// IPv6 addresses of all interfaces, each with its interface, sorted.
    own6: Vec<(Ipv6Addr, IfIndex)>,
    /// Subnet-router anycast addresses of all interfaces, sorted.
    anycast6: Vec<Ipv6Addr>,
    /// VLAN sub-interfaces by their tags, sorted.
    pub(crate) vlans: Vec<(VlanTag, IfIndex)>,
    /// Interfaces that are not there and that rules name, with the numbers that stand for them.
    absent: Vec<(Box<str>, IfIndex)>,
}

impl Links {
    /// The interface of this number.
    #[inline]
    pub fn get(&self, index: IfIndex) -> Option<&Link> {
        self.slots.get(index.0 as usize)?.as_ref()
    }

    /// The interface of this number, to be changed.
    pub fn get_mut(&mut self, index: IfIndex) -> Option<&mut Link> {
        self.slots.get_mut(index.0 as usize)?.as_mut()
    }

    /// The interface of this name.
    pub fn named(&self, name: &str) -> Option<&Link> {
        self.iter().find(|link| &*link.name == name)
    }

    /// The name of an interface that is there, or that is not and rules name.
    pub fn name(&self, index: IfIndex) -> Option<&str> {
        let absent = || self.absent.iter().find(|(_, kept)| *kept == index).map(|(name, _)| &**name);
        self.get(index).map(|link| &*link.name).or_else(absent)
    }

    /// The number of the interface of this name, or the one that stands for it while it is not there.
    pub fn number(&self, name: &str) -> Option<IfIndex> {
        let absent = || self.absent.iter().find(|(kept, _)| &**kept == name).map(|(_, index)| *index);
        self.named(name).map(|link| link.index).or_else(absent)
    }

    /// A number that stands for an interface that is not there, which gets it when it is added.
    pub(crate) fn keep_new(&mut self, name: &str) -> IfIndex {
        let index = self.next();
        self.slots.resize(index.0 as usize + 1, None);
        self.keep(name, index);
        index
    }

    /// The names of interfaces that are not there and that rules name.
    pub fn absent(&self) -> impl Iterator<Item = &Box<str>> {
        self.absent.iter().map(|(name, _)| name)
    }

    /// Has a number stand for an interface that is not there.
    pub(crate) fn keep(&mut self, name: &str, index: IfIndex) {
        self.absent.push((name.into(), index));
    }

    /// Has numbers that no interface gets stand for those of these names that are not there, and for no others.
    pub(crate) fn keep_only(&mut self, names: impl IntoIterator<Item = Box<str>>) {
        self.absent = names.into_iter().zip((0..=u32::MAX).rev().map(IfIndex)).collect();
    }

    fn next(&self) -> IfIndex {
        IfIndex(self.slots.len().max(1) as u32)
    }

    /// The interface of the port in this place.
    #[inline]
    pub fn of_port(&self, port: usize) -> Option<&Link> {
        self.get(*self.ports.get(port)?)
    }

    /// True when some interface has the address.
    #[inline]
    pub fn is_own4(&self, addr: Ipv4Addr) -> bool {
        self.own4.binary_search(&addr).is_ok()
    }

    /// The interfaces that have the address.
    pub fn with_addr6(&self, addr: Ipv6Addr) -> impl Iterator<Item = IfIndex> {
        let first = self.own6.partition_point(|(own, _)| *own < addr);
        self.own6.iter().skip(first).take_while(move |(own, _)| *own == addr).map(|(_, index)| *index)
    }

    /// True of the subnet-router anycast address of a subnet of an interface that forwards, in whatever VRF (RFC 4291 §2.6.1).
    pub fn is_anycast6(&self, addr: Ipv6Addr) -> bool {
        self.anycast6.binary_search(&addr).is_ok()
    }

    /// Puts down whose addresses and tags there are, for [`Links::is_own4`], [`Links::with_addr6`] and [`Links::vlan`].
    pub(crate) fn index(&mut self) {
        self.vlans =
            self.iter().filter_map(|link| if let LinkKind::Vlan(tag) = link.kind { Some((tag, link.index)) } else { None }).collect();
        self.vlans.sort_unstable();
        self.own6 = self.iter().flat_map(|link| link.addrs6.iter().map(|address| (address.addr, link.index))).collect();
        self.own6.sort_unstable();
        self.own4 = self.iter().flat_map(|link| link.addrs4.iter().map(|address| address.addr)).collect();
        self.own4.sort_unstable();
        let routers = self.iter().filter(|link| link.up && link.conf6.forwarding);
        let subnets = routers.flat_map(|link| link.addrs6.iter().filter(|a| a.len < 127).map(|a| a.subnet()));
        self.anycast6 = subnets.collect();
        self.anycast6.sort_unstable();
    }

    /// All interfaces, by number.
    pub fn iter(&self) -> impl Iterator<Item = &Link> {
        self.slots.iter().flatten()
    }

    /// As [`Links::iter`], to be changed.
    pub fn iter_mut(&mut self) -> impl Iterator<Item = &mut Link> {
        self.slots.iter_mut().flatten()
    }

    /// Adds an interface of the next number.
    pub fn add(&mut self, name: &str, kind: LinkKind) -> IfIndex {
        let kept = self.absent.iter().position(|(kept, _)| &**kept == name).map(|kept| self.absent.swap_remove(kept).1);
        let index = kept.unwrap_or_else(|| self.next());
        self.put(Link::new(index, name, kind));
        index
    }

    /// Adds an interface under the number that it has, in place of the one that has it.
    pub fn put(&mut self, link: Link) {
        let Link { index, kind, .. } = link;
        self.remove(index);
        let at = index.0 as usize;
        self.slots.resize(self.slots.len().max(at + 1), None);
        self.slots[at] = Some(link);
        if let LinkKind::Port(place) = kind {
            self.ports.resize(self.ports.len().max(place + 1), IfIndex(0));
            self.ports[place] = index;
        }
    }

    /// Removes an interface; [`Links::add`] does not give its number out again, unless it is kept for rules that name it.
    pub fn remove(&mut self, index: IfIndex) -> Option<Link> {
        let link = self.slots.get_mut(index.0 as usize)?.take()?;
        self.ports.iter_mut().filter(|port| **port == index).for_each(|port| *port = IfIndex(0));
        Some(link)
    }

    /// The VRF device that a packet on `index` belongs to: itself or its master.
    pub fn vrf_of(&self, index: IfIndex) -> Option<&Link> {
        let link = self.get(index)?;
        if link.is_vrf() { Some(link) } else { self.get(link.master?) }
    }

    /// The VRF device of a table.
    pub fn vrf_with_table(&self, table: TableId) -> Option<&Link> {
        self.iter().find(|link| link.kind == LinkKind::Vrf(table))
    }
}

#[cfg(test)]
mod tests {
    use std::net::IpAddr;

    use crate::{AddrSpec, Editor, IfIndex, LinkChange};

    #[test]
    fn an_ipv6_address_is_found_on_each_interface_that_has_it() {
        let mut editor = Editor::new();
        let ports = ["e0", "e1", "e2"].map(|name| editor.port_add(name, 0).unwrap());
        let (shared, single): (IpAddr, IpAddr) = ("fe80::a1b2:c3d4".parse().unwrap(), "fd00:1:2:3:4:5:6:7".parse().unwrap());
        for port in ports {
            editor.link_set(port, LinkChange { up: Some(true), ..LinkChange::default() }).unwrap();
        }
        for (port, addr) in [(ports[0], shared), (ports[2], shared), (ports[1], single)] {
            editor.addr_add(port, addr, AddrSpec { len: 64, ..AddrSpec::default() }).unwrap();
        }
        editor.commit();
        let with = |addr: &str| editor.links().with_addr6(addr.parse().unwrap()).collect::<Vec<IfIndex>>();
        assert_eq!(with("fe80::a1b2:c3d4"), [ports[0], ports[2]]);
        assert_eq!(with("fd00:1:2:3:4:5:6:7"), [ports[1]]);
        assert_eq!(with("fd00:1:2:3:4:5:6:8"), []);
    }
}

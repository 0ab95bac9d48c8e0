//! Addresses of interfaces and the routes that come and go with them.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

use crate::{
    Address4, Address6, ConfigError, Editor, Effect, Encap, Hop, IfIndex, Kind, Prefix, Put, RouteEntry, SCOPE_HOST, SCOPE_LINK,
    SCOPE_UNIVERSE, TableId,
};

/// Protocol number of routes that the kernel makes for addresses.
pub(crate) const PROTO_KERNEL: u8 = 2;

/// What is said of an address beside itself.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct AddrSpec {
    /// Length of the subnet, bits.
    pub len: u8,
    /// `scope`, a number.
    pub scope: Option<u8>,
    /// `broadcast`.
    pub broadcast: Option<Ipv4Addr>,
    /// `noprefixroute`.
    pub no_prefix_route: bool,
    /// An address that is there already is no error (`replace`, `change`).
    pub replace: bool,
}

impl Editor {
    /// Adds an address to an interface, with its local, connected, broadcast and anycast routes.
    ///
    /// # Errors
    /// [`ConfigError::Exists`] when the interface has it; [`ConfigError::Invalid`] for an address that can be nobody's, or a length beyond it.
    pub fn addr_add(&mut self, dev: IfIndex, addr: IpAddr, spec: AddrSpec) -> Result<(), ConfigError> {
        let link = self.links.get_mut(dev).ok_or(ConfigError::Missing("device"))?;
        if link.has_addr(addr) {
            return if spec.replace { Ok(()) } else { Err(ConfigError::Exists("address")) };
        }
        if addr.is_multicast() || addr.is_unspecified() {
            return Err(ConfigError::Invalid("an interface's address is neither a group's nor unspecified"));
        }
        if spec.len > if addr.is_ipv4() { Ipv4Addr::BITS } else { Ipv6Addr::BITS } as u8 {
            return Err(ConfigError::Invalid("a subnet's length is at most that of the address"));
        }
        match addr {
            IpAddr::V4(addr) => {
                let secondary = link.addrs4.iter().any(|other| other.len == spec.len && other.subnet_contains(addr));
                let scope = spec.scope.unwrap_or(if addr.is_loopback() { SCOPE_HOST } else { SCOPE_UNIVERSE });
                let AddrSpec { len, broadcast, no_prefix_route, .. } = spec;
                link.addrs4.push(Address4 { addr, len, scope, broadcast, secondary, no_prefix_route });
                if link.up {
                    self.rib4.link_up(dev);
                }
            }
            IpAddr::V6(addr) => {
                if !link.has_ipv6() {
                    return Err(ConfigError::Invalid("IPv6 is off on this device (disable_ipv6, or an MTU below 1280)"));
                }
                link.addrs6.push(Address6 { addr, len: spec.len, no_prefix_route: spec.no_prefix_route });
            }
        }
        self.address_routes(dev, addr, true);
        Ok(())
    }

    /// Removes an address and its routes; with an IPv4 address that is not a secondary one go the secondary ones of its subnet (Linux without
    /// `promote_secondaries`), and with the last IPv4 address of an interface every IPv4 route through it. What is sent from an address that is
    /// nobody's any more: its IPv4 routes go, its IPv6 routes lose the source (Linux `fib_sync_down_addr`, `rt6_remove_prefsrc`).
    ///
    /// # Errors
    /// [`ConfigError::Missing`] when the interface does not have it.
    pub fn addr_del(&mut self, dev: IfIndex, addr: IpAddr, len: Option<u8>) -> Result<(), ConfigError> {
        let link = self.links.get(dev).ok_or(ConfigError::Missing("device"))?;
        let gone: Vec<IpAddr> = match addr {
            IpAddr::V4(addr) => {
                let named = link.addrs4.iter().find(|a| a.addr == addr && len.is_none_or(|len| len == a.len));
                let named = *named.ok_or(ConfigError::Missing("address"))?;
                let goes = |a: &&Address4| {
                    a.addr == addr || !named.secondary && a.secondary && a.len == named.len && named.subnet_contains(a.addr)
                };
                link.addrs4.iter().filter(goes).map(|a| a.addr.into()).collect()
            }
            IpAddr::V6(addr) => {
                let named = link.addrs6.iter().find(|a| a.addr == addr && len.is_none_or(|len| len == a.len));
                named.map(|a| vec![a.addr.into()]).ok_or(ConfigError::Missing("address"))?
            }
        };
        gone.iter().for_each(|addr| self.address_routes(dev, *addr, false));
        let Some(link) = self.links.get_mut(dev) else { return Ok(()) };
        link.addrs4.retain(|a| !gone.contains(&IpAddr::V4(a.addr)));
        link.addrs6.retain(|a| !gone.contains(&IpAddr::V6(a.addr)));
        let (last4, main) = (link.addrs4.is_empty() && addr.is_ipv4(), link.vrf_table.unwrap_or(TableId::MAIN));
        if last4 {
            self.rib4.link_down(dev, |_| false);
        }
        for addr in gone {
            if !self.links.iter().any(|link| link.has_addr(addr)) {
                self.source_gone(addr, main);
            }
        }
        Ok(())
    }

    /// Routes of which the preferred source is no address of the router any more; IPv4 routes of the table `main` alone, as Linux.
    fn source_gone(&mut self, addr: IpAddr, main: TableId) {
        match addr {
            IpAddr::V4(_) => self.rib4.flush_in(main, |entry| entry.effect.src == Some(addr)),
            IpAddr::V6(_) => self.rib6.forget_source(addr),
        }
    }

    /// Routes of all addresses of an interface: of one that is down the routes to its IPv4 addresses alone, which are the router's all the same.
    pub(crate) fn link_addresses(&mut self, dev: IfIndex, add: bool) {
        let Some(link) = self.links.get(dev) else { return };
        let addrs4 = link.addrs4.iter().map(|a| IpAddr::V4(a.addr));
        let all: Vec<IpAddr> = addrs4.chain(link.addrs6.iter().map(|a| IpAddr::V6(a.addr))).collect();
        for addr in all {
            self.address_routes(dev, addr, add);
        }
    }

    fn address_routes(&mut self, dev: IfIndex, addr: IpAddr, add: bool) {
        match addr {
            IpAddr::V4(addr) => self.address_routes4(dev, addr, add),
            IpAddr::V6(addr) => self.address_routes6(dev, addr, add),
        }
    }

    fn address_routes4(&mut self, dev: IfIndex, addr: Ipv4Addr, add: bool) {
        let Some(link) = self.links.get(dev) else { return };
        let Some(&address) = link.addrs4.iter().find(|a| a.addr == addr) else { return };
        let (up, loopback, vrf) = (link.up, link.is_loopback(), link.vrf_table);
        let local = vrf.unwrap_or(TableId::LOCAL);
        let main = vrf.unwrap_or(TableId::MAIN);
        // A secondary address sends as the first of its subnet.
        let first = link.addrs4.iter().find(|a| address.secondary && !a.secondary && a.len == address.len && a.subnet_contains(addr));
        let src = Some(IpAddr::V4(first.map_or(addr, |first| first.addr)));
        self.kernel_route(add, local, Prefix::host(addr), Kind::Local, dev, src, 0);
        if !up {
            return;
        }
        if let Some(broadcast) = address.broadcast {
            self.kernel_route(add, local, Prefix::host(broadcast), Kind::Broadcast, dev, src, 0);
        }
        if address.secondary || address.len == 32 {
            return;
        }
        let Some(prefix) = Prefix::new(addr, address.len) else { return };
        if !address.no_prefix_route {
            let (table, kind) = if loopback { (local, Kind::Local) } else { (main, Kind::Unicast) };
            self.kernel_route(add, table, prefix, kind, dev, src, 0);
        }
        if address.len < 31 {
            let last = u32::from(prefix.addr()) | u32::MAX >> address.len;
            self.kernel_route(add, local, Prefix::host(Ipv4Addr::from(last)), Kind::Broadcast, dev, src, 0);
        }
    }

    fn address_routes6(&mut self, dev: IfIndex, addr: Ipv6Addr, add: bool) {
        let Some(link) = self.links.get(dev).filter(|link| link.up) else { return };
        let Some(&address) = link.addrs6.iter().find(|a| a.addr == addr) else { return };
        let (loopback, vrf, forwarding) = (link.is_loopback(), link.vrf_table, link.conf6.forwarding);
        // What goes with an address leaves the routes of its subnet to the others there.
        let subnet = |a: &Address6| Prefix::new(a.addr, a.len);
        let mut others = link.addrs6.iter().filter(|a| !add && a.addr != addr && subnet(a) == subnet(&address)).peekable();
        let (subnet_stays, connected_stays) = (others.peek().is_some(), others.any(|a| !a.no_prefix_route));
        let local = vrf.unwrap_or(TableId::LOCAL);
        self.kernel_route(add, local, Prefix::host(addr), Kind::Local, dev, None, 0);
        let Some(prefix) = Prefix::new(addr, address.len) else { return };
        if !address.no_prefix_route && !loopback && !connected_stays {
            self.kernel_route(add, vrf.unwrap_or(TableId::MAIN), prefix, Kind::Unicast, dev, None, 256);
        }
        if forwarding && address.len < 127 && !subnet_stays {
            self.kernel_route(add, local, Prefix::host(prefix.addr()), Kind::Anycast, dev, None, 0);
        }
        if let (true, Some(groups)) =
            (add && !loopback, Prefix::new(Ipv6Addr::from([0xff, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0]), 8))
        {
            self.kernel_route(true, local, groups, Kind::Multicast, dev, None, 256);
        }
    }

    /// Joins or leaves the subnet-router anycast addresses (RFC 4291 §2.6.1): those of a router only.
    pub(crate) fn link_anycast(&mut self, dev: IfIndex, join: bool) {
        let Some(link) = self.links.get(dev).filter(|link| link.up) else { return };
        let local = link.vrf_table.unwrap_or(TableId::LOCAL);
        let subnets: Vec<_> = link.addrs6.iter().filter(|a| a.len < 127).filter_map(|a| Prefix::new(a.addr, a.len)).collect();
        for subnet in subnets {
            self.kernel_route(join, local, Prefix::host(subnet.addr()), Kind::Anycast, dev, None, 0);
        }
    }

    /// Adds or removes a route that goes with an address.
    #[expect(clippy::too_many_arguments, reason = "a row of a table, one value a column")]
    fn kernel_route<A: crate::Family>(
        &mut self,
        add: bool,
        table: TableId,
        prefix: Prefix<A>,
        kind: Kind,
        dev: IfIndex,
        src: Option<IpAddr>,
        metric: u32,
    ) {
        let rib = A::rib(self).0;
        let effect = Effect { src, ..Effect::new(kind, vec![Hop { dev, via: None, onlink: false, encap: Encap::None, weight: 1 }]) };
        if add {
            let effect = rib.intern(effect);
            let scope = if kind == Kind::Local { SCOPE_HOST } else { SCOPE_LINK };
            let entry = RouteEntry { select: crate::Select::default(), metric, protocol: PROTO_KERNEL, scope, effect };
            // Two interfaces may have the same subnet or group: the first one's route stays the best.
            let _ = rib.put(table, prefix, entry, Put::Append);
        } else {
            let _ = rib.remove(table, prefix, |entry| *entry.effect == effect);
        }
    }

    /// Gives every port, VLAN and dummy device that runs IPv6 without a link-local address the one made from its Ethernet address (RFC 4291 appendix A), which neighbour
    /// discovery can not do without.
    pub(crate) fn add_missing_link_locals(&mut self) {
        let missing = |link: &&crate::Link| link.sends() && link.up && link.has_ipv6() && link.link_local().is_none();
        let missing: Vec<_> = self.links.iter().filter(missing).map(|link| (link.index, link.mac.0)).collect();
        for (index, [a, b, c, d, e, f]) in missing {
            let addr = Ipv6Addr::from([0xfe, 0x80, 0, 0, 0, 0, 0, 0, a ^ 2, b, c, 0xff, 0xfe, d, e, f]);
            let _ = self.addr_add(index, IpAddr::V6(addr), AddrSpec { len: 64, ..AddrSpec::default() });
        }
    }
}

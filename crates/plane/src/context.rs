//! The tables as one burst sees them.

use std::cmp::Reverse;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

use rcu::Guard;
use route::{Address, Dst, Flow, IfIndex, Kind, Link, LinkKind, Links, Nexthop, RouteRefs, Settings, Sharing, TableId, Tick};
use srv6::{Env, FlowLabel};

use crate::packet::{Packet, Version};
use crate::{Tables, flow_hash, multipath};

/// Everything that deciding about a packet reads, borrowed for a burst.
#[derive(Clone, Copy)]
pub(crate) struct Context<'a, 'g> {
    pub(crate) guard: &'a Guard<'g>,
    pub(crate) tables: &'a Tables,
    pub(crate) links: &'g Links,
    pub(crate) settings: &'g Settings,
    /// What behaviours and headends may know, but for the packet's part in it.
    pub(crate) env: Env<'g>,
    pub(crate) refs: RouteRefs,
    /// What lookups of this burst find holds for, if for anything.
    pub(crate) generation: Option<u64>,
    /// IPv4 lookups outside of VRFs depend on the destination alone.
    pub(crate) plain4: bool,
    /// As `plain4` for IPv6.
    pub(crate) plain6: bool,
    /// The addresses of interfaces are not all that are the router's own in IPv4.
    pub(crate) local_given4: bool,
    /// IPv4 rules look at protocol or ports.
    pub(crate) upper4: bool,
    /// As `upper4` for IPv6.
    pub(crate) upper6: bool,
}

impl<'a, 'g> Context<'a, 'g> {
    pub(crate) fn new(tables: &'a Tables, guard: &'a Guard<'g>, refs: RouteRefs) -> Context<'a, 'g> {
        let settings = tables.network.settings.load(guard);
        Context {
            guard,
            tables,
            links: tables.network.links.load(guard),
            settings,
            env: Env {
                hmac_keys: tables.hmac_keys.load(guard),
                require_hmac: 0,
                flow_label: FlowLabel::from_sysctl(settings.seg6_flowlabel.into()),
                flow_hash: flow_hash::label,
                tunsrc: settings.seg6_tunsrc,
                l2_len: 0,
            },
            refs,
            generation: tables.network.generation(),
            plain4: tables.network.v4.is_plain(guard),
            plain6: tables.network.v6.is_plain(guard),
            local_given4: tables.network.v4.is_local_given(),
            upper4: tables.network.v4.asks_upper(guard),
            upper6: tables.network.v6.asks_upper(guard),
        }
    }

    /// Name of an interface, for traces.
    pub(crate) fn name(&self, index: IfIndex) -> &'g str {
        self.links.get(index).map_or("?", |link| &link.name)
    }

    /// VRF device and table of an interface; none for those of the default VRF.
    #[inline]
    pub(crate) fn vrf(&self, index: IfIndex) -> (IfIndex, Option<TableId>) {
        match self.links.get(index) {
            Some(Link { vrf_table: Some(table), master, .. }) => (master.unwrap_or(index), Some(*table)),
            _ => (IfIndex(0), None),
        }
    }

    /// True of an interface that is no port, when a kernel has it: what leads there is the kernel's.
    pub(crate) fn is_kernels(&self, index: IfIndex) -> bool {
        let of_kernel = |link: &Link| matches!(link.kind, LinkKind::Elsewhere | LinkKind::Loopback);
        self.tables.beside_kernel && (index == IfIndex::KERNEL || self.links.get(index).is_some_and(of_kernel))
    }

    /// A lookup for a packet that came in by `iif` (which may be a VRF device).
    #[inline]
    pub(crate) fn flow<A: Address>(&self, dst: A, src: A, iif: IfIndex, link: IfIndex) -> Flow<A> {
        let (vrf, vrf_table) = self.vrf(iif);
        Flow { src, vrf, vrf_table, link, ..Flow::new(dst, iif) }
    }

    /// The hash by which a packet, or a message about it, chooses among several ways.
    pub(crate) fn hash(&self, packet: &Packet) -> u32 {
        match packet.hash {
            Some(hash) => hash,
            None if packet.own => multipath::hash_own(self.settings, packet.version, &packet.buf),
            None => multipath::hash(self.settings, packet.version, &packet.buf),
        }
    }

    /// True when the way of a route that a packet takes depends on a neighbour being asked for, which packets before it in its burst may do.
    pub(crate) fn waits_for_turn(&self, dst: &Dst, packet: &Packet) -> bool {
        let by_neighbour = match dst.sharing {
            Sharing::Plain => self.settings.multipath_use_neigh && packet.version == Version::V4,
            Sharing::Answering => true,
            Sharing::Resilient(_) => false,
        };
        let unsure = |hop: &Nexthop| hop.gateway.as_ref().is_some_and(|gateway| !gateway.load().0.is_valid());
        !packet.in_turn && dst.is_shared() && by_neighbour && dst.hops().any(unsure)
    }

    /// The way of a route that a packet takes.
    #[inline]
    pub(crate) fn select<'d>(&self, dst: &'d Dst, packet: &Packet) -> Option<(u16, &'d Nexthop)> {
        let (hash, now) = if dst.is_shared() { (self.hash(packet), Tick::from_nanos(packet.time.0)) } else { (0, Tick::default()) };
        dst.select(hash, self.settings.multipath_use_neigh && packet.version == Version::V4, now)
    }

    /// The place of the way that an IPv4 packet of the router's own takes, of which the source may be chosen already: of several ways, that of its hash among
    /// those by an interface that would send from the source, if any would (Linux `fib_select_multipath`).
    pub(crate) fn select_from(&self, dst: &Dst, packet: &Packet, src: Ipv4Addr) -> Option<u16> {
        if src.is_unspecified() || !dst.is_shared() || !matches!(dst.sharing, Sharing::Plain) {
            return self.select(dst, packet).map(|(place, _)| place);
        }
        let hash = self.hash(packet);
        let fit = |hop: &Nexthop| {
            let gateway = hop.gateway.as_ref().map(|gateway| gateway.addr());
            let near = if let Some(IpAddr::V4(gateway)) = gateway { gateway } else { Ipv4Addr::UNSPECIFIED };
            (self.links.source4(hop.dev, near) == Some(src), hash < hop.until)
        };
        let usable = (0..).zip(dst.hops()).filter(|(_, hop)| !self.settings.multipath_use_neigh || hop.is_good());
        // The first of those that fit best.
        usable.max_by_key(|(place, hop)| (fit(hop), Reverse(*place))).map(|(place, _)| place)
    }

    /// A lookup for a packet that the router makes, in the VRF of `near`.
    pub(crate) fn own_flow<A: Address>(&self, dst: A, src: A, near: IfIndex) -> Flow<A> {
        let oif = if dst.is_link_scoped() { near } else { IfIndex(0) };
        Flow { iif: IfIndex::LO, oif, ..self.flow(dst, src, near, near) }
    }

    /// True when `addr` is an address of the router in the VRF of `near`; one that means something on a link only, on `near` itself.
    pub(crate) fn is_own6(&self, addr: Ipv6Addr, near: IfIndex) -> bool {
        let vrf = self.vrf(near).0;
        let one_link = addr.is_link_scoped();
        self.links.with_addr6(addr).any(|dev| if one_link { dev == near } else { self.vrf(dev).0 == vrf })
    }

    /// The IPv4 address from which `to` is answered in the VRF of `near` (Linux `fib_compute_spec_dst`): that of the route back, else one of `near`.
    pub(crate) fn answers_from(&self, to: Ipv4Addr, near: IfIndex) -> Option<Ipv4Addr> {
        if !to.is_unspecified() {
            let back = self.tables.network.v4.lookup(self.guard, &self.own_flow(to, Ipv4Addr::UNSPECIFIED, near), RouteRefs::Noref).dst;
            if let Some(source) = self.source_by(&back, 0, to, near) {
                return Some(source);
            }
        }
        self.links.source4(near, to)
    }

    /// The IPv4 address of what leaves for `to` in the VRF of `near`, by the route `dst` and its way number `place` (Linux `fib_result_prefsrc`). Where rules lead out
    /// of the VRF it is one of the VRF device (Linux `fib_select_path`).
    pub(crate) fn source_by(&self, dst: &Dst, place: u16, to: Ipv4Addr, near: IfIndex) -> Option<Ipv4Addr> {
        let (vrf, in_vrf) = self.vrf(near);
        if in_vrf.is_some() && dst.hop(place).is_some_and(|hop| self.vrf(hop.dev).0 != vrf) {
            return self.links.source4(vrf, Ipv4Addr::UNSPECIFIED);
        }
        if let Some(IpAddr::V4(preferred)) = dst.src {
            return Some(preferred);
        }
        let hop = dst.hop(place)?;
        match hop.gateway.as_deref().map(|gateway| gateway.addr()) {
            Some(IpAddr::V4(gateway)) => self.links.source4(hop.dev, gateway),
            _ => self.links.source4(hop.dev, to),
        }
    }

    /// True when `addr` is an address of the router, outside of VRFs, or that of a group (Linux `inet_addr_type`).
    pub(crate) fn is_here(&self, addr: Ipv4Addr) -> bool {
        let known = matches!(self.kind_here(addr), Some(Kind::Local | Kind::Broadcast | Kind::Multicast));
        known || addr.is_unspecified() || addr.is_multicast() || addr.is_broadcast()
    }

    /// What the table `local` says of `addr`, outside of VRFs.
    pub(crate) fn kind_here(&self, addr: Ipv4Addr) -> Option<Kind> {
        let flow = self.flow(addr, Ipv4Addr::UNSPECIFIED, IfIndex::LO, IfIndex::LO);
        let found = self.tables.network.v4.lookup_table(self.guard, TableId::LOCAL, &flow, RouteRefs::Noref);
        found.map(|answer| answer.dst.kind)
    }

    /// True when `addr` is the subnet-router anycast address of one of the router's subnets.
    pub(crate) fn is_anycast(&self, addr: Ipv6Addr, near: IfIndex) -> bool {
        let answer = self.tables.network.v6.lookup(self.guard, &self.flow(addr, addr, near, near), RouteRefs::Noref);
        answer.dst.kind == Kind::Anycast
    }

    /// True when `dev` listens to the group: all nodes, all routers of a router, the solicited-node groups of its addresses (RFC 4291 §2.7.1).
    pub(crate) fn is_member(&self, group: Ipv6Addr, dev: IfIndex) -> bool {
        let Some(link) = self.links.get(dev) else { return false };
        let s = group.segments();
        match s {
            [0xff01 | 0xff02, 0, 0, 0, 0, 0, 0, 1] => true,
            [0xff01 | 0xff02 | 0xff05, 0, 0, 0, 0, 0, 0, 2] => link.conf6.forwarding,
            [0xff02, 0, 0, 0, 0, 1, high, _] if high & 0xff00 == 0xff00 => {
                let own = |a: Ipv6Addr| wire::icmp6::solicited_node(a) == group;
                link.addrs6.iter().any(|a| own(a.addr) || link.conf6.forwarding && own(a.subnet()))
            }
            _ => false,
        }
    }

    /// As [`Context::is_member`] for IPv4: all systems (RFC 1112).
    pub(crate) fn is_member4(&self, group: Ipv4Addr) -> bool {
        group == Ipv4Addr::new(224, 0, 0, 1)
    }
}

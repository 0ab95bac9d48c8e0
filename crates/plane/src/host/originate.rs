//! Packets that the router makes: their route, their way out.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

use route::{Address, DropReason, DstRef, Encap, Flow, IfIndex, Kind, Neighbour, RouteRefs, TableId, Upper};
use srv6::Inner;
use wire::{ipv4, ipv6};

use super::Host;
use crate::context::Context;
use crate::packet::{MAX_LOOKUPS, Packet};
use crate::trace::Ledger;
use crate::verdict::Forward;
use crate::{fragment6, seg6, upper};

/// In the header of a packet to be sent: the hop limit is that of the interface it leaves by (net.ipv6.conf.*.hop_limit).
pub(super) const HOP_LIMIT_OF_WAY: u8 = 0;

/// A route for a packet of the router's own.
pub(super) struct Way<'g> {
    pub(super) dst: DstRef<'g>,
    pub(super) place: u16,
    pub(super) dev: IfIndex,
    pub(super) mtu: u32,
    encap: Encap,
}

impl Way<'_> {
    /// The gateway it leads through.
    pub(super) fn gateway(&self) -> Option<&Neighbour> {
        self.dst.hop(self.place)?.gateway.as_deref()
    }

    /// True when it leads to a VRF device, which looks the packet up once more in its table (Linux `vrf_xmit`).
    fn enters_vrf(&self, cx: &Context<'_, '_>) -> bool {
        let vrf = || cx.links.get(self.dev).is_some_and(|link| link.is_vrf());
        self.dst.kind == Kind::Unicast && self.encap == Encap::None && vrf()
    }

    /// True when the destination is the router itself.
    pub(super) fn is_local(&self) -> bool {
        matches!(self.dst.kind, Kind::Local | Kind::Anycast)
    }
}

impl Host {
    /// The route to `dst` in the VRF of `near`, on `near` itself when the destination is of the link's scope. None when there is none. Of several ways it is
    /// that of the flow of `packet`: what is sent, or what it is about.
    pub(super) fn way6<'g>(
        &self,
        cx: &Context<'_, 'g>,
        (src, dst): (Ipv6Addr, Ipv6Addr),
        near: IfIndex,
        packet: &Packet,
    ) -> Option<Way<'g>> {
        if !dst.is_link_scoped() && is_down(cx, near) {
            return None;
        }
        let answer = cx.tables.network.v6.lookup(cx.guard, &own_flow6(cx, (src, dst), near, packet), cx.refs);
        way(cx, answer.dst, packet, near, Ipv4Addr::UNSPECIFIED)
    }

    /// True when packets to `addr` that come in by `dev` are for the router.
    pub(super) fn is_local4(&self, cx: &Context<'_, '_>, addr: Ipv4Addr, dev: IfIndex) -> bool {
        let answer = cx.tables.network.v4.lookup(cx.guard, &cx.flow(addr, Ipv4Addr::UNSPECIFIED, dev, dev), RouteRefs::Noref);
        answer.dst.kind == Kind::Local
    }

    fn way6_in<'g>(
        &self,
        cx: &Context<'_, 'g>,
        table: TableId,
        (src, dst): (Ipv6Addr, Ipv6Addr),
        near: IfIndex,
        packet: &Packet,
    ) -> Option<Way<'g>> {
        let answer = cx.tables.network.v6.lookup_table(cx.guard, table, &cx.own_flow(dst, src, near), cx.refs)?;
        way(cx, answer.dst, packet, near, Ipv4Addr::UNSPECIFIED)
    }

    /// As [`Host::way6`] for IPv4.
    pub(super) fn way4<'g>(
        &self,
        cx: &Context<'_, 'g>,
        (src, dst): (Ipv4Addr, Ipv4Addr),
        near: IfIndex,
        packet: &Packet,
    ) -> Option<Way<'g>> {
        if is_down(cx, near) {
            return None;
        }
        let answer = cx.tables.network.v4.lookup(cx.guard, &own_flow4(cx, (src, dst), near, packet), cx.refs);
        way(cx, answer.dst, packet, near, src)
    }

    /// Sends an IPv6 packet that the router made, in the VRF of `near`.
    pub(super) fn originate6(&mut self, cx: &Context<'_, '_>, packet: Packet, near: IfIndex, ledger: &mut Ledger) {
        ledger.counters.originated += 1;
        self.send_own6(cx, packet, near, None, ledger);
    }

    /// Looks a packet of the router's own up, in `table` alone if there is one, as often as headends and VRF devices on its way ask for it.
    fn send_own6(&mut self, cx: &Context<'_, '_>, mut packet: Packet, mut near: IfIndex, mut table: Option<TableId>, ledger: &mut Ledger) {
        while packet.lookups < MAX_LOOKUPS {
            packet.lookups += 1;
            let Some((src, dst)) = ipv6::Header::read(&packet.buf).map(|header| (header.src(), header.dst())) else { break };
            let way = match table.take() {
                Some(table) => self.way6_in(cx, table, (src, dst), near, &packet),
                None => self.way6(cx, (src, dst), near, &packet),
            };
            let Some(way) = way else { return self.drop(packet, DropReason::NoRoute, ledger) };
            packet.bound = false;
            if let Some(header) = ipv6::Header::read_mut(&mut packet.buf).filter(|header| header.hop_limit == HOP_LIMIT_OF_WAY) {
                let of_link = || cx.links.get(way.dev).map_or(64, |link| link.conf6.hop_limit);
                header.hop_limit = Some(way.dst.metrics.hop_limit).filter(|limit| *limit != 0).unwrap_or_else(of_link);
            }
            if way.is_local() {
                return self.meant_for_self(packet, ledger);
            }
            if let Encap::Seg6(policy) = way.encap {
                match seg6::headend(cx, &mut packet, policy, Inner::V6, way.dev, ledger) {
                    Ok(named) => {
                        packet.hash = None;
                        table = named;
                        continue;
                    }
                    Err(reason) => return self.drop(packet, reason, ledger),
                }
            }
            if way.enters_vrf(cx) {
                near = way.dev;
                continue;
            }
            if cx.is_kernels(way.dev) {
                return self.leave_to_kernel(packet, ledger);
            }
            let Way { dst: route, place, dev, mtu, .. } = way;
            let mtu = mtu.max(ipv6::MIN_MTU as u32);
            let forward = Forward { dst: route, dev, to: IpAddr::V6(dst), hop: place, mtu, redirect: false };
            if packet.buf.len() <= mtu as usize {
                return self.send_to_neighbour(cx, packet, forward, ledger);
            }
            return self.in_fragments6(cx, packet, forward, ledger);
        }
        self.drop(packet, DropReason::LookupLoop, ledger);
    }

    fn in_fragments6<'g>(&mut self, cx: &Context<'_, 'g>, packet: Packet, forward: Forward<'g>, ledger: &mut Ledger) {
        self.fragment_id = self.fragment_id.wrapping_add(1);
        let mut fragments = Vec::new();
        let split = fragment6::fragment(&packet.buf, forward.mtu as usize, self.fragment_id, &mut self.pool, |buf| fragments.push(buf));
        if let Err(reason) = split {
            return self.drop(packet, reason, ledger);
        }
        self.send_fragments(cx, packet, fragments, &forward, ledger);
    }

    /// Sends an IPv4 packet that the router made, complete but for identification and checksum, in the VRF of `near`.
    pub(super) fn originate4(&mut self, cx: &Context<'_, '_>, mut packet: Packet, near: IfIndex, ledger: &mut Ledger) {
        ledger.counters.originated += 1;
        let mut near = near;
        let Some(header) = ipv4::Header::read_mut(&mut packet.buf) else { return self.drop(packet, DropReason::HeaderTruncated, ledger) };
        let (src, dst) = (header.src(), header.dst());
        if header.flags_offset() & ipv4::DF == 0 {
            header.set_id(self.ip_id);
            self.ip_id = self.ip_id.wrapping_add(1);
        }
        ipv4::fill_checksum(&mut packet.buf);
        let way = loop {
            packet.lookups += 1;
            match self.way4(cx, (src, dst), near, &packet) {
                None => return self.drop(packet, DropReason::NoRoute, ledger),
                Some(_) if packet.lookups > MAX_LOOKUPS => return self.drop(packet, DropReason::LookupLoop, ledger),
                Some(way) if way.enters_vrf(cx) => near = way.dev,
                Some(way) => break way,
            }
        };
        if let (true, Some(header)) = (way.dst.metrics.hop_limit != 0, ipv4::Header::read_mut(&mut packet.buf)) {
            header.ttl = way.dst.metrics.hop_limit;
            ipv4::fill_checksum(&mut packet.buf);
        }
        if way.is_local() {
            return self.meant_for_self(packet, ledger);
        }
        if let Encap::Seg6(policy) = way.encap {
            return match seg6::headend(cx, &mut packet, policy, Inner::V4, way.dev, ledger) {
                Ok(table) => self.send_own6(cx, Packet { hash: None, ..packet }, near, table, ledger),
                Err(reason) => self.drop(packet, reason, ledger),
            };
        }
        if cx.is_kernels(way.dev) {
            return self.leave_to_kernel(packet, ledger);
        }
        let Way { dst: route, place, dev, mtu, .. } = way;
        let forward = Forward { dst: route, dev, to: IpAddr::V4(dst), hop: place, mtu, redirect: false };
        if packet.buf.len() <= mtu as usize {
            return self.send_to_neighbour(cx, packet, forward, ledger);
        }
        self.in_fragments4(cx, packet, forward, ledger);
    }

    /// A packet from the router to itself: an ICMP error about a tunnel of its own. There is nobody to act on it.
    fn meant_for_self(&mut self, packet: Packet, ledger: &mut Ledger) {
        self.delivered(packet, || "to the router itself, which has no use for it".into(), ledger);
    }
}

/// What is asked for a packet of the router's own, or for one about `packet`, of which only addresses are known yet.
fn own_flow6(cx: &Context<'_, '_>, (src, dst): (Ipv6Addr, Ipv6Addr), near: IfIndex, packet: &Packet) -> Flow<Ipv6Addr> {
    let mut flow = cx.own_flow(dst, src, near);
    if packet.bound {
        (flow.oif, flow.bound) = (near, true);
    }
    let Some(header) = ipv6::Header::read(&packet.buf).filter(|_| packet.own) else { return flow };
    let upper = if cx.upper6 { upper::of6(&packet.buf) } else { Upper::default() };
    Flow { dsfield: header.traffic_class(), upper, ..flow }
}

/// As [`own_flow6`] for IPv4.
fn own_flow4(cx: &Context<'_, '_>, (src, dst): (Ipv4Addr, Ipv4Addr), near: IfIndex, packet: &Packet) -> Flow<Ipv4Addr> {
    let flow = cx.own_flow(dst, src, near);
    let Some(header) = ipv4::Header::read(&packet.buf).filter(|_| packet.own) else { return flow };
    let upper = if cx.upper4 { upper::of4(&packet.buf) } else { Upper::default() };
    Flow { dsfield: header.tos, upper, ..flow }
}

/// True in a VRF whose device is down: its members forward, but the router itself sends nothing there.
fn is_down(cx: &Context<'_, '_>, near: IfIndex) -> bool {
    cx.links.vrf_of(near).is_some_and(|vrf| !vrf.up)
}

/// The way by a route; `from` is the source of an IPv4 packet, unspecified when it is still to be chosen.
fn way<'g>(cx: &Context<'_, 'g>, dst: DstRef<'g>, packet: &Packet, near: IfIndex, from: Ipv4Addr) -> Option<Way<'g>> {
    if !matches!(dst.kind, Kind::Unicast | Kind::Local | Kind::Anycast | Kind::Multicast | Kind::Broadcast) {
        return None;
    }
    let bound = || (0..).zip(dst.hops()).find(|(_, hop)| hop.dev == near).map(|(place, _)| place);
    let place = if packet.bound { bound() } else { cx.select_from(&dst, packet, from) }?;
    let (dev, encap) = dst.hop(place).map(|hop| (hop.dev, hop.encap))?;
    // An interface that only the kernel has takes what the kernel lets it.
    let mtu =
        if dst.mtu != 0 { dst.mtu } else { cx.links.get(dev).map_or(cx.is_kernels(dev).then_some(u32::MAX), |link| Some(link.mtu))? };
    Some(Way { dst, place, dev, mtu, encap })
}

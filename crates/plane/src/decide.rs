//! From a route to a verdict: the one place where what a lookup found is turned into what happens next.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

use route::{Address, Answer, DropReason, Dst, DstRef, Encap, Flow, IfIndex, Kind, Nexthop, Prefix, TableId, Upper};
use srv6::{Inner, Lookup4, Lookup6, Next};
use wire::{icmp4, icmp6, ipv4, ipv6};

use crate::context::Context;
use crate::ip4_input::{Addresses, check_addresses};
use crate::packet::{MAX_LOOKUPS, Packet};
use crate::source4::To;
use crate::trace::Ledger;
use crate::verdict::{IcmpError, Verdict};
use crate::{forward4, forward6, seg6, source4, upper};

/// Follows one packet until no lookup is left to do.
pub(crate) fn settle<'g>(cx: &Context<'_, 'g>, packet: &mut Packet, mut verdict: Verdict<'g>, ledger: &mut Ledger) -> Verdict<'g> {
    loop {
        verdict = match verdict {
            Verdict::Route6(lookup) => match enter6(cx, packet, &lookup) {
                Ok(()) => {
                    let flow = flow6(cx, packet, &lookup);
                    let fib = &cx.tables.network.v6;
                    // A trace tells rule and table of each lookup.
                    let remembers = (lookup.configured || lookup.nexthop.is_some()) && !ledger.is_tracing();
                    let answer = if remembers {
                        ledger.found6.lookup(cx.guard, fib, cx.generation, lookup.table, &flow, cx.refs)
                    } else {
                        fib.lookup_named(cx.guard, lookup.table, &flow, cx.refs)
                    };
                    route6(cx, packet, &lookup, answer, ledger)
                }
                Err(reason) => Verdict::Drop(reason),
            },
            Verdict::Route4(lookup) => match enter4(cx, packet, &lookup) {
                Ok(()) => {
                    let answer = cx.tables.network.v4.lookup(cx.guard, &flow4(cx, packet, &lookup), cx.refs);
                    route4(cx, packet, &lookup, answer, ledger)
                }
                Err(early) => early,
            },
            settled => return settled,
        };
    }
}

/// Counts the lookup, and moves the packet into the VRF that it names.
fn enter6(cx: &Context<'_, '_>, packet: &mut Packet, lookup: &Lookup6) -> Result<(), DropReason> {
    packet.lookups += 1;
    if packet.lookups > MAX_LOOKUPS {
        return Err(DropReason::LookupLoop);
    }
    let header = ipv6::Header::read(&packet.buf).ok_or(DropReason::HeaderTruncated)?;
    if let Some(table) = lookup.vrf {
        let vrf = cx.links.vrf_with_table(table).ok_or(DropReason::SidDevice)?;
        // What concerns a link stays on the ingress interface (Linux `vrf_ip6_rcv`).
        if !lookup.nexthop.unwrap_or(header.dst()).is_link_scoped() {
            packet.move_to(vrf);
        }
    }
    Ok(())
}

/// What to ask for an IPv6 packet.
pub(crate) fn flow6(cx: &Context<'_, '_>, packet: &Packet, lookup: &Lookup6) -> Flow<Ipv6Addr> {
    let header = ipv6::Header::read(&packet.buf);
    let (src, dst) = header.map_or((Ipv6Addr::UNSPECIFIED, Ipv6Addr::UNSPECIFIED), |header| (header.src(), header.dst()));
    let dst = lookup.nexthop.unwrap_or(dst);
    let dsfield = header.map_or(0, ipv6::Header::traffic_class);
    // What a SID asks for, Linux looks up without ports and without looking at `from`.
    let upper = match header {
        Some(header) if packet.by_sid => Upper { protocol: header.next_header, ..Upper::default() },
        _ if cx.upper6 => upper::of6(&packet.buf),
        _ => Upper::default(),
    };
    let flow = match packet.passed_on {
        true => cx.own_flow(dst, src, packet.dev),
        false => cx.flow(dst, src, packet.dev, lookup.oif.unwrap_or(packet.iif)),
    };
    Flow { mark: packet.mark, dsfield, from_known: !packet.by_sid, upper, ..flow }
}

/// Turns the route found for an IPv6 packet into a verdict.
pub(crate) fn route6<'g>(
    cx: &Context<'_, 'g>,
    packet: &mut Packet,
    lookup: &Lookup6,
    answer: Option<Answer<'g>>,
    ledger: &mut Ledger,
) -> Verdict<'g> {
    let Some(answer) = answer else { return Verdict::Drop(DropReason::SidTable) };
    if ledger.is_tracing() {
        let asked = flow6(cx, packet, lookup).dst;
        trace_answer(cx, packet, asked, &answer, cx.tables.network.v6.matched(cx.guard, answer.table, asked), ledger);
    }
    // Of what a VRF device cannot send on nobody is told.
    let told = !packet.passed_on;
    let unreachable = |code, reason| {
        let error = IcmpError::new(icmp6::UNREACHABLE, code, 0);
        if told { Verdict::Error(error, reason) } else { Verdict::Drop(reason) }
    };
    let dst = answer.dst;
    match dst.kind {
        Kind::Unicast => {}
        Kind::Local | Kind::Anycast => return local6(cx, packet, lookup, dst),
        Kind::Multicast => return Verdict::Deliver6(dst),
        Kind::Blackhole if answer.by_rule => return Verdict::Drop(DropReason::RuleBlackhole),
        Kind::Prohibit if answer.by_rule => return unreachable(icmp6::unreachable::PROHIBITED, DropReason::RuleProhibit),
        Kind::Unreachable if answer.by_rule => return unreachable(icmp6::unreachable::NO_ROUTE, DropReason::RuleUnreachable),
        Kind::Blackhole | Kind::Broadcast => return Verdict::Drop(DropReason::RouteBlackhole),
        Kind::Prohibit => return unreachable(icmp6::unreachable::PROHIBITED, DropReason::RouteProhibit),
        Kind::Unreachable => return unreachable(icmp6::unreachable::NO_ROUTE, DropReason::RouteUnreachable),
        Kind::Throw | Kind::NoRoute => return unreachable(icmp6::unreachable::NO_ROUTE, DropReason::NoRoute),
    }
    if cx.waits_for_turn(&dst, packet) {
        return Verdict::Turn6(*lookup);
    }
    let Some((place, hop)) = cx.select(&dst, packet) else { return Verdict::Drop(DropReason::RouteBlackhole) };
    match hop.encap {
        Encap::None if cx.is_kernels(hop.dev) => {
            kernels(lookup.nexthop.is_some() || lookup.oif.is_some() || lookup.table.is_some_and(|table| table != TableId::MAIN))
        }
        Encap::None => forward6::decide(cx, packet, dst, place, lookup.nexthop),
        // To Linux what leads to `lo` is local.
        Encap::Seg6Local(_) if hop.dev == IfIndex::LO && !lookup.local => Verdict::Drop(DropReason::SidLocal),
        Encap::Seg6Local(id) => match seg6::behavior(cx, packet, id, ledger) {
            Ok(next) => {
                packet.by_sid = true;
                then(next)
            }
            Err(reason) => Verdict::Drop(reason),
        },
        Encap::Seg6(id) => headend(cx, packet, id, Inner::V6, hop.dev, ledger),
    }
}

/// A packet whose way leads to a device of the kernel. One that a SID sends to a neighbour, or looks up in a table of its own (`by_sid`), the kernel would
/// send elsewhere, not knowing that, and so perhaps into another VPN: the mirror leaves such SIDs to the kernel, so this is for the moment in which that changes.
fn kernels<'g>(by_sid: bool) -> Verdict<'g> {
    if by_sid { Verdict::Drop(DropReason::SidDevice) } else { Verdict::Kernel }
}

/// A local route: some behaviours must not reach it.
fn local6<'g>(cx: &Context<'_, 'g>, packet: &mut Packet, lookup: &Lookup6, dst: route::DstRef<'g>) -> Verdict<'g> {
    come_back(cx, packet, &dst);
    // Linux tells local routes by their device, which is `lo` in the default VRF only.
    let in_vrf = cx.vrf(dst.dev()).1.is_some();
    if lookup.local || in_vrf { Verdict::Deliver6(dst) } else { Verdict::Drop(DropReason::SidLocal) }
}

/// A packet that a VRF device passed on and that is for the router comes back by the loopback device of the VRF whose address it is for.
fn come_back(cx: &Context<'_, '_>, packet: &mut Packet, dst: &Dst) {
    if packet.passed_on && cx.vrf(dst.dev()).0 != packet.dev {
        (packet.dev, packet.in_vrf) = (IfIndex::LO, false);
    }
}

fn headend<'g>(
    cx: &Context<'_, 'g>,
    packet: &mut Packet,
    id: route::PolicyId,
    inner: Inner,
    dev: IfIndex,
    ledger: &mut Ledger,
) -> Verdict<'g> {
    match seg6::headend(cx, packet, id, inner, dev, ledger) {
        Ok(table) => {
            packet.by_sid = false;
            Verdict::Route6(Lookup6 { table, local: true, configured: true, ..Lookup6::default() })
        }
        Err(reason) => Verdict::Drop(reason),
    }
}

/// A behaviour's wish as a verdict.
pub(crate) fn then<'g>(next: Next) -> Verdict<'g> {
    match next {
        Next::Onward => Verdict::Route6(Lookup6::default()),
        Next::Route6(lookup) => Verdict::Route6(lookup),
        Next::Route4(lookup) => Verdict::Route4(lookup),
        Next::Frame { port } => Verdict::Frame(port),
    }
}

/// Counts the lookup, moves the packet into the VRF that it names, and sorts out the addresses that need no table.
fn enter4<'g>(cx: &Context<'_, 'g>, packet: &mut Packet, lookup: &Lookup4) -> Result<(), Verdict<'g>> {
    packet.lookups += 1;
    if packet.lookups > MAX_LOOKUPS {
        return Err(Verdict::Drop(DropReason::LookupLoop));
    }
    let Some(header) = ipv4::Header::read(&packet.buf) else { return Err(Verdict::Drop(DropReason::HeaderTruncated)) };
    let (src, dst) = (header.src(), lookup.nexthop.unwrap_or(header.dst()));
    if let Some(table) = lookup.vrf {
        let Some(vrf) = cx.links.vrf_with_table(table) else { return Err(Verdict::Drop(DropReason::SidDevice)) };
        packet.move_to(vrf);
    }
    match check_addresses(src, dst) {
        Ok(Addresses::Route) => Ok(()),
        Ok(Addresses::Broadcast) => Err(Verdict::Deliver4(true)),
        Ok(Addresses::Multicast) if cx.is_member4(dst) => Err(Verdict::Deliver4(true)),
        Ok(Addresses::Multicast) => Err(Verdict::Drop(DropReason::NotForUs)),
        Err(reason) => Err(Verdict::Drop(reason)),
    }
}

/// What to ask for an IPv4 packet.
pub(crate) fn flow4(cx: &Context<'_, '_>, packet: &Packet, lookup: &Lookup4) -> Flow<Ipv4Addr> {
    let header = ipv4::Header::read(&packet.buf);
    let (src, dst) = header.map_or((Ipv4Addr::UNSPECIFIED, Ipv4Addr::UNSPECIFIED), |header| (header.src(), header.dst()));
    let dst = lookup.nexthop.unwrap_or(dst);
    // Out of a SID a packet comes in by the VRF device, and Linux does not look at its TOS; from the wire, by the port.
    let (dsfield, iif) = if packet.by_sid { (0, packet.dev) } else { (header.map_or(0, |header| header.tos), packet.iif) };
    let upper = if cx.upper4 { upper::of4(&packet.buf) } else { Upper::default() };
    let flow = if packet.passed_on { cx.own_flow(dst, src, packet.dev) } else { cx.flow(dst, src, iif, packet.iif) };
    Flow { mark: packet.mark, dsfield, upper, ..flow }
}

/// Turns the route found for an IPv4 packet into a verdict.
pub(crate) fn route4<'g>(
    cx: &Context<'_, 'g>,
    packet: &mut Packet,
    lookup: &Lookup4,
    answer: Answer<'g>,
    ledger: &mut Ledger,
) -> Verdict<'g> {
    if ledger.is_tracing() {
        let asked = flow4(cx, packet, lookup).dst;
        trace_answer(cx, packet, asked, &answer, cx.tables.network.v4.matched(cx.guard, answer.table, asked), ledger);
    }
    let Some(ingress) = cx.links.get(packet.dev) else { return Verdict::Drop(DropReason::PortDown) };
    let dst = answer.dst;
    let (passed_on, forwarding) = (packet.passed_on, packet.passed_on || ingress.conf4.forwarding);
    let unreachable = |code, reason| {
        let error = IcmpError { route: true, ..IcmpError::new(icmp4::UNREACHABLE, code, 0) };
        if forwarding && !passed_on { Verdict::Error(error, reason) } else { Verdict::Drop(reason) }
    };
    let (passes, stays) = (dst.kind == Kind::Unicast && forwarding, matches!(dst.kind, Kind::Local | Kind::Broadcast));
    // Linux looks at the options before it performs a route that refuses.
    if !passes
        && !stays
        && let Err(refused) = forward4::options(cx, packet, false)
    {
        return refused;
    }
    match dst.kind {
        Kind::Unicast if !forwarding => return Verdict::Drop(DropReason::ForwardingOff),
        Kind::Unicast => {}
        Kind::Local | Kind::Broadcast => {
            come_back(cx, packet, &dst);
            let to = if dst.kind == Kind::Broadcast { To::All } else { To::Router };
            return match source4::check(cx, packet, source4::of(&packet.buf), to) {
                Ok(_) => Verdict::Deliver4(dst.kind == Kind::Broadcast),
                Err(reason) => Verdict::Drop(reason),
            };
        }
        Kind::Multicast | Kind::Anycast => return Verdict::Drop(DropReason::MulticastNotForwarded),
        Kind::Blackhole if answer.by_rule => return Verdict::Drop(DropReason::RuleBlackhole),
        Kind::Unreachable if answer.by_rule => return unreachable(icmp4::unreachable::NET, DropReason::RuleUnreachable),
        Kind::Prohibit if answer.by_rule => return unreachable(icmp4::unreachable::PROHIBITED, DropReason::RuleProhibit),
        Kind::Blackhole => return Verdict::Drop(DropReason::RouteBlackhole),
        Kind::Unreachable => return unreachable(icmp4::unreachable::HOST, DropReason::RouteUnreachable),
        Kind::Prohibit => return unreachable(icmp4::unreachable::PROHIBITED, DropReason::RouteProhibit),
        Kind::Throw | Kind::NoRoute => return unreachable(icmp4::unreachable::NET, DropReason::NoRoute),
    }
    onward4(cx, packet, lookup, dst, ledger)
}

/// An IPv4 packet goes on by one of the ways of its route.
fn onward4<'g>(cx: &Context<'_, 'g>, packet: &mut Packet, lookup: &Lookup4, dst: DstRef<'g>, ledger: &mut Ledger) -> Verdict<'g> {
    if cx.waits_for_turn(&dst, packet) {
        return Verdict::Turn4(*lookup);
    }
    let Some((place, hop)) = cx.select(&dst, packet) else { return Verdict::Drop(DropReason::RouteBlackhole) };
    let on_link = match source4::check(cx, packet, source4::of(&packet.buf), To::Dev(hop.dev)) {
        Ok(on_link) => on_link,
        Err(reason) => return Verdict::Drop(reason),
    };
    if hop.encap == Encap::None && cx.is_kernels(hop.dev) {
        return kernels(lookup.nexthop.is_some());
    }
    if let Err(refused) = forward4::options(cx, packet, false) {
        return refused;
    }
    match hop.encap {
        Encap::None => forward4::decide(cx, packet, dst, place, lookup.nexthop, on_link),
        Encap::Seg6Local(_) => Verdict::Drop(DropReason::WrongPayload),
        Encap::Seg6(id) => headend(cx, packet, id, Inner::V4, hop.dev, ledger),
    }
}

fn trace_answer<A: Address>(
    cx: &Context<'_, '_>,
    packet: &Packet,
    asked: A,
    answer: &Answer<'_>,
    prefix: Option<Prefix<A>>,
    ledger: &mut Ledger,
) {
    ledger.step(packet, "lookup", || {
        if answer.by_rule {
            return format!("{asked}: rule {} says {}", answer.rule, answer.dst.kind.word());
        }
        if answer.dst.kind == Kind::NoRoute && answer.table == TableId(0) {
            return format!("{asked}: no rule leads to a table with a route");
        }
        let rule =
            if answer.rule == 0 && answer.table != TableId::LOCAL { "by order of the SID".into() } else { format!("rule {}", answer.rule) };
        let prefix = prefix.map_or_else(|| "no prefix".into(), |prefix| prefix.to_string());
        format!("{asked}: {rule}, table {}: {prefix} {}", answer.table, describe(cx, answer))
    });
}

fn describe(cx: &Context<'_, '_>, answer: &Answer<'_>) -> String {
    let dst = &answer.dst;
    let mut text = dst.kind.word().to_string();
    for hop in dst.hops() {
        text.push_str(&describe_hop(cx, hop));
    }
    if dst.mtu != 0 {
        text.push_str(&format!(" mtu {}", dst.mtu));
    }
    text
}

fn describe_hop(cx: &Context<'_, '_>, hop: &Nexthop) -> String {
    let via = hop.gateway.as_ref().map_or_else(String::new, |gateway| match gateway.addr() {
        IpAddr::V4(addr) => format!(" via {addr}"),
        IpAddr::V6(addr) => format!(" via {addr}"),
    });
    let encap = match hop.encap {
        Encap::None => String::new(),
        Encap::Seg6Local(id) => cx
            .tables
            .sids
            .get(cx.guard, id.0)
            .map_or_else(String::new, |sid| format!(" seg6local {}", sid.display_with(&|dev| Some(cx.name(dev).to_string())))),
        Encap::Seg6(id) => cx.tables.policies.get(cx.guard, id.0).map_or_else(String::new, |policy| format!(" {}", *policy)),
    };
    format!("{encap}{via} dev {}", cx.name(hop.dev))
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use port::{Buf, Time};
    use route::{Action, Editor, Effect, Hop, Link, LinkKind, MirroredRoute, RouteRefs, Rule, SidId};
    use srv6::{Attributes, Sid, action};
    use testkit::frame::{Ether, Ipv6, Udp};
    use wire::Mac;

    use super::*;
    use crate::{Tables, Worker};

    #[test]
    fn what_a_sid_looked_up_in_a_table_of_its_own_is_not_looked_up_in_main_by_the_kernel() {
        for (table, expected) in [(TableId(100), (0, 1)), (TableId::MAIN, (1, 0))] {
            let mac = Mac([2, 0, 0, 0, 0x0e, 0]);
            let (sid, all) = (Ipv6Addr::new(0xfc01, 0, 0, 0, 0, 0, 0, 0xd6), Prefix::new(Ipv6Addr::UNSPECIFIED, 0).unwrap());
            let mut editor = Editor::mirror();
            let mut link = Link::new(IfIndex(7), "e0", LinkKind::Port(0));
            (link.mac, link.up, link.conf6.forwarding) = (mac, true, true);
            editor.mirror_link(link);
            editor.mirror_rules([Rule::<Ipv6Addr>::all(0, Action::Lookup(TableId::MAIN))]);
            let tables = Tables::beside_kernel(editor.network().clone());
            let dt6 = Sid::build(action("End.DT6").unwrap(), &Attributes { table: Some(table), ..Attributes::default() }).unwrap();
            let id = SidId(tables.sids.insert(Arc::new(dt6)));
            let by = |dev, encap| Effect::new(Kind::Unicast, vec![Hop { dev, via: None, onlink: false, encap, weight: 1 }]);
            let head = MirroredRoute::default();
            editor.mirror_routes(TableId::MAIN, Prefix::new(sid, 128).unwrap(), [(head, by(IfIndex(7), Encap::Seg6Local(id)))]);
            editor.mirror_routes(table, all, [(head, by(IfIndex::KERNEL, Encap::None))]);
            editor.commit();
            let mut worker = Worker::new(Arc::new(tables), RouteRefs::Noref);
            let host = |n| Ipv6Addr::new(0xfd00, n, 0, 0, 0, 0, 0, 1);
            let frame =
                Ether::new(mac, Mac([2, 0, 0, 0, 0x0f, 0])) / Ipv6::new(host(1), sid) / Ipv6::new(host(2), host(3)) / Udp::new(1, 2);
            worker.receive(0, Buf::from_bytes(&frame.bytes()), Time::ZERO);
            worker.run();
            assert_eq!((worker.counters().kernel, worker.counters().drops(DropReason::SidDevice)), expected, "table {table}");
        }
    }
}

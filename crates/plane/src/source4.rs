//! Is the source address of an IPv4 packet believable (Linux `fib_validate_source`, RFC 3704)?

use std::net::Ipv4Addr;

use route::{DropReason, Flow, IfIndex, Kind, Link, RouteRefs, Upper};
use wire::ipv4;

use crate::context::Context;
use crate::packet::Packet;
use crate::upper;

/// True when no filter asks for more of the source of a packet that came in by `iif` and leaves by another interface than not to be one of the
/// router's own addresses.
pub(crate) fn is_unfiltered(cx: &Context<'_, '_>, iif: IfIndex) -> bool {
    let filter = |ingress: &Link| ingress.conf4.rp_filter.max(cx.settings.all4.rp_filter);
    !cx.local_given4 && cx.links.get(iif).is_some_and(|ingress| filter(ingress) == 0)
}

/// The source of an IPv4 packet.
#[inline]
pub(crate) fn of(packet: &[u8]) -> Ipv4Addr {
    ipv4::Header::read(packet).map_or(Ipv4Addr::UNSPECIFIED, ipv4::Header::src)
}

/// Whom the router is to send a packet on to.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum To {
    /// Those by this interface.
    Dev(IfIndex),
    /// Itself.
    Router,
    /// Itself among all on the link: Linux asks for the way back as from nowhere then.
    All,
}

/// Checks `src` of a packet that goes on `to`. True when the source is a neighbour on the ingress link.
///
/// # Errors
/// The reason to drop the packet.
pub(crate) fn check(cx: &Context<'_, '_>, packet: &Packet, src: Ipv4Addr, to: To) -> Result<bool, DropReason> {
    if packet.passed_on {
        return Ok(false);
    }
    let Some(ingress) = cx.links.get(packet.iif) else { return Err(DropReason::PortDown) };
    let filter = ingress.conf4.rp_filter.max(cx.settings.all4.rp_filter);
    let turns_back = to == To::Dev(packet.iif) && (ingress.conf4.send_redirects || cx.settings.all4.send_redirects);
    // Rules that select, and routes of type `local`, may know better what an address of the router is than the list of them: Linux asks them too.
    if filter == 0 && !turns_back && cx.plain4 && !cx.local_given4 {
        let own = !ingress.conf4.accept_local && cx.links.is_own4(src);
        return if own { Err(DropReason::OwnSource) } else { Ok(false) };
    }
    if src.is_unspecified() {
        return Ok(false);
    }
    let back = cx.tables.network.v4.lookup(cx.guard, &way_back(cx, packet, to), RouteRefs::Noref);
    match back.dst.kind {
        Kind::Unicast => {}
        Kind::Local if ingress.conf4.accept_local => {}
        Kind::Local => return Err(DropReason::OwnSource),
        // A route that refuses is as good as none (Linux `fib_lookup` fails alike).
        Kind::NoRoute | Kind::Throw | Kind::Unreachable | Kind::Prohibit | Kind::Blackhole if filter == 0 => return Ok(false),
        Kind::NoRoute | Kind::Throw | Kind::Unreachable | Kind::Prohibit | Kind::Blackhole => return Err(DropReason::ReversePath),
        _ => return Err(DropReason::MartianSource),
    }
    // Of several ways the first says whether the source is a neighbour (Linux `FIB_RES_NHC`), by whichever the packet came in.
    let found = back.dst.hops().find(|hop| hop.dev == packet.iif).and(back.dst.nexthop.as_ref());
    match found {
        Some(first) => Ok(first.gateway.is_none()),
        // Which way back the kernel has, by a route or rule that noref has not, is not known here.
        None if filter == 1 && !back.dst.hops().any(|hop| hop.dev == IfIndex::KERNEL) => Err(DropReason::ReversePath),
        // Linux asks again, for a route out of the ingress link alone: that to its subnet, where the source is in it.
        None => Ok(ingress.addrs4.iter().any(|address| !address.no_prefix_route && address.subnet_contains(src))),
    }
}

/// What to ask for the way back to the source: as for a packet from where this one goes, which comes in where this one leaves.
fn way_back(cx: &Context<'_, '_>, packet: &Packet, to: To) -> Flow<Ipv4Addr> {
    let Some(header) = ipv4::Header::read(&packet.buf) else { return Flow::new(Ipv4Addr::UNSPECIFIED, packet.iif) };
    let (from, iif) = match to {
        To::Dev(out) => (header.dst(), out),
        To::Router => (header.dst(), IfIndex::LO),
        To::All => (Ipv4Addr::UNSPECIFIED, IfIndex::LO),
    };
    let flow = cx.flow(header.src(), from, packet.dev, packet.iif);
    let Upper { protocol, sport, dport } = if cx.upper4 { upper::of4(&packet.buf) } else { Upper::default() };
    let upper = Upper { protocol, sport: dport, dport: sport };
    Flow { iif, dsfield: header.tos, upper, ..flow }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use port::{Buf, Time};
    use route::{Action, Address4, Editor, Effect, Encap, Hop, Link, LinkKind, MirroredRoute, Prefix, Rule, TableId};
    use testkit::frame::{Ether, Ipv4, Udp};
    use wire::Mac;

    use super::*;
    use crate::{Tables, Worker};

    #[test]
    fn a_source_whose_way_back_only_the_kernel_knows_passes_the_strict_filter() {
        let (mac, all, unknown) = (Mac([2, 0, 0, 0, 0x0e, 0]), Prefix::new(Ipv4Addr::UNSPECIFIED, 0).unwrap(), TableId(0));
        let mut editor = Editor::mirror();
        let mut link = Link::new(IfIndex(7), "e0", LinkKind::Port(0));
        (link.mac, link.up, link.conf4.forwarding, link.conf4.rp_filter) = (mac, true, true, 1);
        link.addrs4.push(Address4 {
            addr: Ipv4Addr::new(10, 0, 0, 1),
            len: 24,
            scope: 0,
            broadcast: None,
            secondary: false,
            no_prefix_route: false,
        });
        editor.mirror_link(link);
        // As the mirror has a rule that noref has not.
        editor.mirror_rules([Rule::<Ipv4Addr>::all(0, Action::Lookup(unknown))]);
        let hop = Hop { dev: IfIndex::KERNEL, via: None, onlink: false, encap: Encap::None, weight: 1 };
        let effect = Effect::new(Kind::Unicast, vec![hop]);
        editor.mirror_routes(unknown, all, [(MirroredRoute::default(), effect)]);
        editor.commit();
        let mut worker = Worker::new(Arc::new(Tables::beside_kernel(editor.network().clone())), RouteRefs::Noref);
        let ip = Ipv4::new(Ipv4Addr::new(10, 9, 0, 2), Ipv4Addr::new(10, 8, 0, 2));
        let frame = (Ether::new(mac, Mac([2, 0, 0, 0, 0x0f, 0])) / ip / Udp::new(1, 2)).bytes();
        worker.receive(0, Buf::from_bytes(&frame), Time::ZERO);
        worker.run();
        let mut up = 0;
        worker.drain_up(|_| up += 1);
        assert_eq!((up, worker.counters().kernel), (1, 1));
    }
}

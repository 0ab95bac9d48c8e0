//! Input of an IPv4 packet: what is checked before a route is asked for (RFC 1812 §5.2, Linux `ip_rcv` and `ip_route_input`).

use std::net::Ipv4Addr;

use route::{DropReason, Flow, Upper};
use srv6::Lookup4;
use wire::checksum::Sum;
use wire::ipv4;

use crate::context::Context;
use crate::packet::{Addressed, Packet, Version};
use crate::upper;
use crate::verdict::Verdict;

/// Checks the packet, cuts off what is beyond its length, and asks for a route. Like Linux it does not ask whether the interface has an address: there are
/// routers whose links have none of IPv4 (RFC 8950).
pub(crate) fn input<'g>(cx: &Context<'_, 'g>, packet: &mut Packet) -> Verdict<'g> {
    packet.version = Version::V4;
    if packet.addressed == Addressed::Other {
        return Verdict::Drop(DropReason::OtherHost);
    }
    if let Err(reason) = check_header(packet) {
        return Verdict::Drop(reason);
    }
    let marks = cx.tables.network.v4.marks.load(cx.guard);
    if let (false, Some(header)) = (marks.is_empty(), ipv4::Header::read(&packet.buf)) {
        let upper = if marks.asks_upper() { upper::of4(&packet.buf) } else { Upper::default() };
        let flow = cx.flow(header.dst(), header.src(), packet.iif, packet.iif);
        packet.mark = marks.mark(&Flow { dsfield: header.tos, upper, ..flow });
    }
    if let Some(vrf) = cx.links.vrf_of(packet.iif) {
        packet.move_to(vrf);
    }
    Verdict::Route4(Lookup4::default())
}

fn check_header(packet: &mut Packet) -> Result<(), DropReason> {
    let header = ipv4::Header::read(&packet.buf).ok_or(DropReason::HeaderTruncated)?;
    if header.version() != 4 {
        return Err(DropReason::BadVersion);
    }
    let (header_len, total_len) = (header.header_len(), header.total_len());
    if header_len < ipv4::LEN {
        return Err(DropReason::BadHeaderLength);
    }
    let bytes = packet.buf.get(..header_len).ok_or(DropReason::BadHeaderLength)?;
    if !Sum::default().bytes(bytes).is_valid() {
        return Err(DropReason::BadChecksum);
    }
    if total_len < header_len || total_len > packet.buf.len() {
        return Err(DropReason::LengthMismatch);
    }
    packet.buf.truncate(total_len);
    Ok(())
}

/// What an address pair says before any table is asked.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Addresses {
    /// Ask the tables.
    Route,
    /// Limited broadcast.
    Broadcast,
    /// A group.
    Multicast,
}

/// Sorts out addresses that no packet on the wire may have.
pub(crate) fn check_addresses(src: Ipv4Addr, dst: Ipv4Addr) -> Result<Addresses, DropReason> {
    if dst.is_multicast() {
        return Ok(Addresses::Multicast);
    }
    if src.is_multicast() || src.is_broadcast() {
        return Err(DropReason::MartianSource);
    }
    if dst.is_broadcast() || src.is_unspecified() && dst.is_unspecified() {
        return Ok(Addresses::Broadcast);
    }
    if src.is_unspecified() || src.is_loopback() && !dst.is_loopback() {
        return Err(DropReason::MartianSource);
    }
    if dst.is_unspecified() || dst.is_loopback() {
        return Err(DropReason::MartianDestination);
    }
    Ok(Addresses::Route)
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use port::{Buf, Time};
    use route::{Editor, Effect, Encap, Hop, IfIndex, Kind, LinkKind, MirroredRoute, NeighbourState, Prefix, RouteRefs, Rule, TableId};
    use testkit::frame::{Ether, Ipv4, Udp};
    use wire::Mac;

    use super::*;
    use crate::{Tables, Worker};

    #[test]
    fn packets_pass_between_interfaces_without_an_address() {
        let (mac, to) = (Mac([2, 0, 0, 0, 0x0e, 0]), Ipv4Addr::new(10, 8, 0, 2));
        let mut editor = Editor::mirror();
        for (place, name) in [(0, "e0"), (1, "e1")] {
            let mut link = route::Link::new(IfIndex(7 + place as u32), name, LinkKind::Port(place));
            (link.mac, link.up, link.conf4.forwarding) = (mac, true, true);
            editor.mirror_link(link);
        }
        editor.mirror_rules([Rule::<Ipv4Addr>::all(0, route::Action::Lookup(TableId::MAIN))]);
        let hop = Hop { dev: IfIndex(8), via: Some("fe80::2".parse().unwrap()), onlink: true, encap: Encap::None, weight: 1 };
        let effect = Effect::new(Kind::Unicast, vec![hop]);
        let route = MirroredRoute::default();
        editor.mirror_routes(TableId::MAIN, Prefix::new(to, 32).unwrap(), [(route, effect)]);
        editor.neighbour_put(IfIndex(8), "fe80::2".parse().unwrap(), NeighbourState::Permanent, mac, false).unwrap();
        editor.commit();
        let mut worker = Worker::new(Arc::new(Tables::new(editor.network().clone())), RouteRefs::Noref);
        let frame = (Ether::new(mac, mac) / Ipv4::new(Ipv4Addr::new(10, 9, 0, 2), to) / Udp::new(1, 2)).bytes();
        worker.receive(0, Buf::from_bytes(&frame), Time::ZERO);
        worker.run();
        let mut ports = Vec::new();
        worker.drain(|sent| ports.push(sent.port));
        assert_eq!(ports, [1]);
    }

    #[test]
    fn martians_are_told_from_what_the_tables_decide() {
        let check = |src: [u8; 4], dst: [u8; 4]| check_addresses(src.into(), dst.into());
        assert_eq!(check([10, 0, 0, 2], [10, 9, 0, 9]), Ok(Addresses::Route));
        assert_eq!(check([240, 0, 0, 1], [10, 9, 0, 9]), Ok(Addresses::Route));
        assert_eq!(check([0, 0, 0, 0], [255, 255, 255, 255]), Ok(Addresses::Broadcast));
        assert_eq!(check([10, 0, 0, 2], [224, 0, 0, 5]), Ok(Addresses::Multicast));
        assert_eq!(check([127, 0, 0, 1], [10, 9, 0, 9]), Err(DropReason::MartianSource));
        assert_eq!(check([0, 0, 0, 0], [10, 9, 0, 9]), Err(DropReason::MartianSource));
        assert_eq!(check([10, 0, 0, 2], [127, 0, 0, 1]), Err(DropReason::MartianDestination));
        assert_eq!(check([10, 0, 0, 2], [0, 0, 0, 0]), Err(DropReason::MartianDestination));
        // Linux routes the rest of 0.0.0.0/8 like any other addresses since 5.3.
        assert_eq!(check([0, 0, 0, 7], [0, 1, 2, 3]), Ok(Addresses::Route));
    }
}

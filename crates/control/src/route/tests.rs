use super::*;
use crate::Command;
use crate::command::{fault, parsed};

fn route(line: &str) -> RouteCommand<'_> {
    match parsed(line) {
        Ok(Command::Route(route)) => route,
        other => panic!("{line}: {other:?}"),
    }
}

#[test]
fn a_route_has_a_prefix_and_a_way_out() {
    let read =
        route("ip route add 10.9/16 via 10.0.0.2 dev e0 metric 0x10 mtu lock 1400 src 10.0.0.1 proto bgp scope link table 0xffffffff");
    assert_eq!(read.operation, RouteOperation::Add);
    assert_eq!(read.destination.value.to_string(), "10.9.0.0/16");
    assert_eq!((read.said.kind, read.said.table.map(|_| ())), (None, Some(())));
    assert!(matches!(read.said.table, Some(RouteTable::Table(Spanned { value: TableId(u32::MAX), .. }))));
    let values =
        (read.said.metric.unwrap().value, read.said.mtu.unwrap().value, read.said.protocol.unwrap().value, read.said.scope.unwrap().value);
    assert_eq!(values, (16, 1400, 186, 253));
    assert_eq!(read.said.source.unwrap().value.to_string(), "10.0.0.1");
    let [hop] = read.hops.as_slice() else { panic!("one way out") };
    assert_eq!(
        (hop.via.unwrap().value.to_string().as_str(), hop.device.unwrap().text, hop.onlink, hop.weight),
        ("10.0.0.2", "e0", false, 1)
    );
}

#[test]
fn the_order_of_the_words_is_free() {
    let usual = route("ip -6 route add fd09::/64 via fd00:1::2 dev e1 table 100 metric 5");
    let other = route("-6 r a table 100 dev e1 p 5 via fd00:1::2 to fd09::1/64");
    assert_eq!(usual.destination.value, other.destination.value);
    assert_eq!(usual.said.metric.map(|m| m.value), other.said.metric.map(|m| m.value));
    assert_eq!(usual.hops[0].via.map(|v| v.value), other.hops[0].via.map(|v| v.value));
    assert_eq!(usual.hops[0].device.map(|d| d.text), other.hops[0].device.map(|d| d.text));
}

#[test]
fn types_stand_before_the_prefix() {
    for (word, kind) in [("unicast", Kind::Unicast), ("local", Kind::Local), ("brd", Kind::Broadcast), ("anycast", Kind::Anycast)] {
        let line = format!("ip route add {word} 10.0.0.1 dev e0");
        assert_eq!(route(&line).said.kind.unwrap().value, kind);
    }
    for (word, kind) in
        [("blackhole", Kind::Blackhole), ("unreachable", Kind::Unreachable), ("prohibit", Kind::Prohibit), ("throw", Kind::Throw)]
    {
        let line = format!("ip route add table 100 {word} default metric 4278198272");
        let read = route(&line);
        assert_eq!((read.said.kind.unwrap().value, read.hops.len()), (kind, 0));
    }
    assert!(route("ip -6 route add unreachable default dev lo metric 4294967295").hops.is_empty());
    assert_eq!(fault("ip route add blackhole 10.0.0.0/8 dev e0"), "a route of type blackhole has neither gateway nor device nor encap");
    assert_eq!(fault("ip route add multicast 224.0.0.0/4 dev e0"), "a route of type \"multicast\" is not implemented yet");
}

#[test]
fn a_gateway_settles_the_family_of_default() {
    assert_eq!(route("ip route add via fe80::1 dev e0 default").family, Family::V6);
    assert_eq!(route("ip route add default via fe80::1 dev e0").destination.value, Prefix::all(Family::V6));
    assert_eq!(route("ip route add default via 10.0.0.1").destination.value, Prefix::all(Family::V4));
    let read = route("ip route add 10.18.0.0/24 via inet6 fd00:3::2 dev e3");
    assert_eq!((read.family, read.hops[0].via.unwrap().value.is_ipv6()), (Family::V4, true));
    assert_eq!(fault("ip route add 10.0.0.0/8 via fe80::1 dev e0"), "\"fe80::1\" is not an IPv4 address: it is an IPv6 address");
}

#[test]
fn nexthops_have_weights_and_encapsulations_of_their_own() {
    let read = route(
        "ip route add 10.9.0.0/24 metric 7 nexthop via 10.0.1.2 dev e1 weight 256 nexthop dev e2 onlink encap seg6 mode encap segs fd00::1 via 10.0.2.2",
    );
    assert_eq!(read.hops.len(), 2);
    assert_eq!((read.hops[0].weight, read.hops[1].weight, read.hops[1].onlink), (256, 1, true));
    assert!(read.hops[1].encap.is_some() && read.hops[1].via.is_some());
    assert_eq!(fault("ip route add default nexthop via 10.0.1.2 weight 257"), "\"257\" is not a weight: it must be 1 to 256");
    assert_eq!(fault("ip route add default dev e0 nexthop via 10.0.1.2"), "a route has either one way out or nexthops, not both");
    assert_eq!(fault("ip route add default nexthop via 10.0.1.2 metric 5"), "unknown keyword \"metric\"");
    assert_eq!(fault("ip route add default nexthop weight 1"), "\"1\" needs a gateway or a device");
}

#[test]
fn bits_behind_the_length_are_refused_in_ipv4_and_cut_off_in_ipv6() {
    assert_eq!(fault("ip route add 10.0.0.1/24 dev e0"), "10.0.0.1/24 has bits set behind its length");
    assert_eq!(route("ip route add fd00::1/64 dev e0").destination.value.to_string(), "fd00::/64");
}

#[test]
fn what_is_missing_or_said_twice_is_named() {
    assert_eq!(fault("ip route add"), "\"ip route\" needs a destination (a prefix or \"default\")");
    assert_eq!(fault("ip route add default via"), "\"via\" needs an address");
    assert_eq!(fault("ip route add default dev e0 dev e1"), "\"dev\" is given twice");
    assert_eq!(fault("ip route add 10.0.0.0/8 11.0.0.0/8"), "unknown keyword \"11.0.0.0/8\"");
    assert_eq!(fault("ip route add default dev e0 table blue"), "unknown table \"blue\"");
    assert_eq!(fault("ip route add default dev e0 realms 7"), "\"realms\" of a route is not implemented yet");
    assert_eq!(fault("ip route add default dev e0 s 5"), "\"s\" of a route is not implemented yet");
    assert_eq!(fault("ip route add 10.0.0.0/8 dev e0 src fd00::1"), "\"fd00::1\" is not an IPv4 address: it is an IPv6 address");
}

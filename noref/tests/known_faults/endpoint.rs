//! Part B: SRv6 endpoint behaviours that send a packet on.

use route::DropReason;
use testkit::frame::{Frame, Ipv6, Srh, Udp};
use testkit::golden::PORTS;
use testkit::network;

use crate::router::*;

/// A packet for the SID, with `left` segments left of two.
fn packet(hop_limit: u8, dst: std::net::Ipv6Addr, left: u8) -> Frame {
    let srh = Srh::through(&[SID, segment(1)]).segments_left(left);
    Ipv6::new(HOST6, dst).hop_limit(hop_limit) / srh / Udp::new(1111, 2222) / b"data"
}

/// What a network file with these lines is refused for; empty when it is not.
fn refusal(lines: &str) -> String {
    let net = network::plain() + lines;
    control::network_file(&net, "network.ip", PORTS).err().map(|errors| errors.to_string()).unwrap_or_default()
}

#[test]
fn a_link_local_nexthop_goes_out_by_the_device_that_is_named() {
    let mut named = Router::with_sid("End.X nh6 fe80::23 oif e3 dev e0");
    named.expect(framed(to_router(0), packet(64, SID, 1)), 3, framed(from_router(3), packet(63, segment(1), 0)));
    // Not named: looked for on the link it came from, as Linux does. It must not come out anywhere.
    let mut unnamed = Router::with_sid("End.X nh6 fe80::23 dev e3");
    let sent = unnamed.send(0, framed(to_router(0), packet(64, SID, 1)));
    assert!(sent.iter().all(|(port, frame)| *port == 0
        && icmp6(frame).is_some_and(|(kind, ..)| kind == wire::icmp6::NEIGHBOUR_SOLICITATION || kind == wire::icmp6::REDIRECT)));
}

#[test]
fn a_sid_whose_device_is_lo_is_answered_unreachable_and_not_processed() {
    let mut router = Router::with_sid("End dev lo");
    router.expect_error(framed(to_router(0), packet(64, SID, 1)), DropReason::RouteUnreachable, (wire::icmp6::UNREACHABLE, 0));
}

#[test]
fn end_drops_silently_what_has_no_segments_left() {
    let mut router = Router::with_sid("End dev e0");
    router.expect_silent_drop(framed(to_router(0), packet(64, SID, 0)), DropReason::NoSrh);
    router.expect_silent_drop(framed(to_router(0), Ipv6::new(HOST6, SID) / Udp::new(1111, 2222)), DropReason::NoSrh);
}

#[test]
fn an_srh_longer_than_its_packet_is_dropped_without_underflow() {
    let mut router = Router::with_sid("End dev e0");
    for units in [5, 6, 7, 100, 255] {
        let srh = Srh::through(&[SID, segment(1)]).hdr_ext_len(units);
        router.expect_silent_drop(framed(to_router(0), Ipv6::new(HOST6, SID) / srh / b""), DropReason::BadSrh);
    }
    // And one that the payload length cuts, although the frame goes on.
    let cut = Ipv6::new(HOST6, SID).payload_len(24) / Srh::through(&[SID, segment(1)]) / Udp::new(1111, 2222);
    router.expect_silent_drop(framed(to_router(0), cut), DropReason::BadSrh);
}

#[test]
fn segments_left_is_bounded_by_the_list() {
    let mut router = Router::with_sid("End dev e0");
    for left in [3, 4, 127, 255] {
        router.expect_silent_drop(framed(to_router(0), packet(64, SID, left)), DropReason::BadSrh);
    }
    // One more than the last entry is what a reduced SRH has. The next segment is this SID again, and then the other router.
    router.expect(framed(to_router(0), packet(64, SID, 2)), 1, framed(from_router(1), packet(63, segment(1), 0)));
}

#[test]
fn an_unknown_sid_of_the_own_locator_never_leaves_the_router() {
    let unknown = "fc00:1::77".parse().expect("an address");
    let to_unknown = || framed(to_router(0), packet(64, unknown, 1));
    let sid = format!("ip -6 route add {SID} encap seg6local action End dev e0\n");
    Router::with(&format!("{sid}ip -6 route add blackhole fc00:1::/48\n")).expect_silent_drop(to_unknown(), DropReason::RouteBlackhole);
    let mut unreachable = Router::with(&format!("{sid}ip -6 route add unreachable fc00:1::/48\n"));
    unreachable.expect_error(to_unknown(), DropReason::RouteUnreachable, (wire::icmp6::UNREACHABLE, 0));
}

#[test]
fn an_srh_on_a_port_without_ipv6_is_dropped() {
    for lines in ["ip link set e0 mtu 1279\n", "sysctl -w net.ipv6.conf.e0.disable_ipv6=1\n"] {
        let mut router = Router::with(&format!("ip -6 route add {SID} encap seg6local action End dev e1\n{lines}"));
        router.expect_silent_drop(framed(to_router(0), packet(64, SID, 1)), DropReason::Ip6Disabled);
    }
}

#[test]
fn the_table_is_part_of_a_sids_identity() {
    let route = |verb: &str, table: &str, via: &str| {
        format!("ip -6 route {verb} table {table} {SID} encap seg6local action End.X nh6 {via} dev e0\n")
    };
    let three = route("add", "10", "fd00:2::2") + &route("add", "main", "fd00:1::2") + &route("add", "local", "fd00:3::2");
    let rule = "ip -6 rule add iif e1 lookup 10 pref 100\n";
    let leaves_by = |lines: String, port: u8| {
        let sent = Router::with(&lines).send(port.into(), framed(to_router(port), packet(64, SID, 1)));
        sent.first().map(|(port, _)| *port)
    };
    assert_eq!(leaves_by(three.clone() + rule, 0), Some(3));
    assert_eq!(leaves_by(format!("{three}{rule}ip -6 route del table local {SID}\n"), 0), Some(1));
    assert_eq!(leaves_by(format!("{three}{rule}ip -6 route del table local {SID}\nip -6 route del {SID}\n"), 1), Some(2));
}

#[test]
fn an_interface_address_equal_to_a_sid_wins_because_rule_0_comes_first() {
    // The address acts as an End (seg6_enabled), the SID would send to e3.
    let mut router = Router::with(&format!(
        "ip -6 addr add {SID}/128 dev lo\nip -6 route add {SID} encap seg6local action End.X nh6 fd00:3::2 dev e0\n"
    ));
    router.expect(framed(to_router(0), packet(64, SID, 1)), 1, framed(from_router(1), packet(63, segment(1), 0)));
}

#[test]
fn lengths_of_compressed_sids_are_whole_bytes_within_128_bits() {
    let sid = |lengths: &str| format!("ip -6 route add fcbb:0:100::/48 encap seg6local action End flavors next-csid {lengths} dev e0\n");
    for good in ["lblen 32 nflen 16", "lblen 16 nflen 32", "lblen 48 nflen 8", "lblen 8 nflen 48"] {
        assert_eq!(refusal(&sid(good)), "", "{good}");
    }
    for bad in
        ["lblen 17 nflen 16", "lblen 32 nflen 17", "lblen 0 nflen 16", "lblen 32 nflen 0", "lblen 120 nflen 16", "lblen 64 nflen 128"]
    {
        assert_ne!(refusal(&sid(bad)), "", "{bad}");
    }
}

#[test]
fn a_sid_without_a_device_is_refused() {
    assert_ne!(refusal(&format!("ip -6 route add {SID} encap seg6local action End\n")), "");
}

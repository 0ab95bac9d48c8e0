//! Part A: SRv6 headends.

use route::DropReason;
use testkit::frame::{Frame, Icmp6, Ipv4, Ipv6, Srh, Tcp, Udp};

use crate::router::*;

/// IPv6 from the host to the far end; `payload` in UDP. A headend leaves it as it is: the outer hop limit counts the hop.
fn inner6(payload: &[u8]) -> Frame {
    Ipv6::new(HOST6, FAR6) / Udp::new(1111, 2222) / payload
}

fn inner4(payload: &[u8]) -> Frame {
    Ipv4::new(HOST4, FAR4) / Udp::new(1111, 2222) / payload
}

fn routes(encap: &str) -> String {
    format!("ip -6 route add {FAR6} encap seg6 {encap}\nip route add {FAR4} encap seg6 {encap}\n")
}

#[test]
fn a_policy_of_three_segments_has_the_right_last_entry_and_no_stale_slot() {
    for count in 1..=3 {
        let path: Vec<_> = (1..=count).map(segment).collect();
        let mut full = Router::with(&routes(&format!("mode encap segs {} dev e1", list(&path))));
        let outer = |hops| from_router(1) / Ipv6::new(TUNNEL_SOURCE, path[0]).hop_limit(hops);
        full.expect(framed(to_router(0), inner6(b"data")), 1, around(outer(63) / Srh::through(&path), inner6(b"data")));
        full.expect(framed(to_router(0), inner4(b"data")), 1, around(outer(63) / Srh::through(&path), inner4(b"data")));

        // Reduced: the first segment stands in the destination only, and one segment needs no SRH at all.
        let mut reduced = Router::with(&routes(&format!("mode encap.red segs {} dev e1", list(&path))));
        let srh = Srh::through(&path[1..]).segments_left(count as u8 - 1);
        let outer = if count == 1 { outer(63) } else { outer(63) / srh };
        reduced.expect(framed(to_router(0), inner6(b"data")), 1, around(outer.clone(), inner6(b"data")));
        reduced.expect(framed(to_router(0), inner4(b"data")), 1, around(outer, inner4(b"data")));
    }
}

#[test]
fn the_outer_payload_length_covers_the_inner_header() {
    let mut router = Router::with(&routes(&format!("mode encap segs {} dev e1", segment(1))));
    let syn = || Ipv6::new(HOST6, FAR6) / Tcp::syn(40_000, 443);
    let outer = from_router(1) / Ipv6::new(TUNNEL_SOURCE, segment(1)).hop_limit(63) / Srh::through(&[segment(1)]);
    router.expect(framed(to_router(0), syn()), 1, around(outer, syn()));
}

#[test]
fn policies_of_17_64_and_126_segments_are_carried_whole_or_refused() {
    for count in [17, 64, 126] {
        let path: Vec<_> = (1..=count).map(segment).collect();
        let lines =
            format!("ip link set e0 mtu 9000\nip link set e1 mtu 9000\n{}", routes(&format!("mode encap segs {} dev e1", list(&path))));
        let net = testkit::network::plain() + &lines;
        match control::network_file(&net, "network.ip", testkit::golden::PORTS) {
            Err(errors) => assert!(errors.to_string().contains("segs"), "{errors}"),
            Ok(_) => {
                let outer = from_router(1) / Ipv6::new(TUNNEL_SOURCE, path[0]).hop_limit(63) / Srh::through(&path);
                Router::with(&lines).expect(framed(to_router(0), inner6(b"x")), 1, around(outer, inner6(b"x")));
            }
        }
    }
}

#[test]
fn the_first_segment_is_looked_up_anew_for_every_input_context() {
    let mut router = Router::with(&format!(
        "ip rule add iif e0 lookup 100 pref 100\nip -6 rule add iif e0 lookup 100 pref 100\n\
         ip -6 route add table 100 {0} via fd00:3::2 dev e3\n\
         ip -6 route add table 100 {FAR6} encap seg6 mode encap segs {0} dev e3\n\
         ip -6 route add {FAR6} encap seg6 mode encap segs {0} dev e1\n",
        segment(1)
    ));
    for _ in 0..3 {
        // From e0 by the rule's table, from e2 by main, whichever came before.
        let by_rule = router.send(0, framed(to_router(0), inner6(b"a")));
        let by_main = router.send(2, framed(to_router(2), inner6(b"b")));
        assert_eq!((by_rule.len(), by_main.len()), (1, 1));
        assert_eq!((by_rule[0].0, by_main[0].0), (3, 1));
    }
}

#[test]
fn forwarded_and_own_packets_two_vrfs_and_two_marks_never_share_a_way_to_the_first_segment() {
    // Its own packets by e0, marked ones by e1 and e2, those of the tenant on e3 by its own table's e3, all others by e2.
    let mut lines = format!(
        "ip link add red type vrf table 10\nip link set red up\nip link set e3 master red\nip -6 addr replace fd00:3::1/64 dev e3 nodad\n\
         ip -6 neigh replace fd00:3::2 lladdr 02:00:00:00:0f:03 dev e3 nud permanent\nip -6 route add vrf red {0} via fd00:3::2 dev e3\n\
         ip -6 route add vrf red {FAR6} encap seg6 mode encap segs {0} dev e3\n\
         mark add ipproto udp dport 1 set 1\nmark add ipproto udp dport 2 set 2\nip -6 route add {0} via fd00:2::2 dev e2\n\
         ip -6 route add {FAR6} encap seg6 mode encap segs {0} dev e1\n",
        segment(1)
    );
    for (number, port, select) in [(101, 1, "fwmark 1"), (102, 2, "fwmark 2"), (103, 0, "iif lo")] {
        lines += &format!("ip -6 route add table {number} {} via fd00:{port}::2 dev e{port}\n", segment(1));
        lines += &format!("ip -6 rule add to fc00:2::/32 {select} lookup {number} pref {number}\n");
    }
    let mut router = Router::with(&lines);
    let packet = |port: u8, dport| framed(to_router(port), Ipv6::new(HOST6, FAR6) / Udp::new(9, dport) / b"data");
    // Far asks the router itself, whose answer goes back through the policy.
    let asks = || framed(to_router(1), Ipv6::new(FAR6, "fd00:1::1".parse().unwrap()) / Icmp6::echo(1, 2) / b"ping");
    for round in 0..6 {
        let ways = [(0, 1, 1), (0, 2, 2), (0, 3, 2), (3, 3, 3), (3, 1, 1)];
        for n in 0..ways.len() {
            let (from, dport, to) = ways[(n * (round % 4 + 1) + round) % ways.len()];
            let left = router.send(from.into(), packet(from, dport));
            assert_eq!(left.iter().map(|(port, _)| *port).collect::<Vec<_>>(), [to], "from e{from} to port {dport}, round {round}");
            assert_eq!(router.send(1, asks()).iter().map(|(port, _)| *port).collect::<Vec<_>>(), [0], "its own answer");
        }
    }
}

#[test]
fn an_unreachable_default_in_the_vrf_drops_encapsulated_packets_by_name() {
    let mut router = Router::with(&format!(
        "ip link add vrf10 type vrf table 10\nip link set vrf10 up\nip link set e3 master vrf10\nip -6 addr replace fd00:3::1/64 dev e3 nodad\n\
         ip -6 route add table 10 unreachable default metric 4278198272\n\
         ip -6 route add table 10 {FAR6} encap seg6 mode encap segs {} dev e1\n",
        segment(1)
    ));
    let before = router.drops(DropReason::RouteUnreachable);
    router.send(3, framed(to_router(3), inner6(b"data")));
    assert_eq!(router.drops(DropReason::RouteUnreachable), before + 1);
}

#[test]
fn the_first_segment_decides_the_way_out_not_the_inner_destination() {
    let path = [segment_by_e2(1)];
    let mut router = Router::with(&format!("ip -6 route add {FAR6} encap seg6 mode encap segs {} dev e1\n", path[0]));
    let outer = from_router(2) / Ipv6::new(TUNNEL_SOURCE, path[0]).hop_limit(63) / Srh::through(&path);
    router.expect(framed(to_router(0), inner6(b"data")), 2, around(outer, inner6(b"data")));
}

#[test]
fn a_member_of_a_multipath_route_encapsulates_as_a_route_of_its_own() {
    let encap = format!("encap seg6 mode encap segs {} ", segment(1));
    let mut single = Router::with(&format!("ip -6 route add {FAR6} {encap} via fd00:1::2 dev e1\n"));
    let hop = format!("nexthop {encap} via fd00:1::2 dev e1 ");
    let mut several = Router::with(&format!("ip -6 route add {FAR6} {hop} nexthop {encap} via fd00:1::2 dev e1 weight 2\n"));
    let frame = || framed(to_router(0), inner6(b"data"));
    let sent = single.send(0, frame());
    assert_eq!((sent.len(), several.send(0, frame())), (1, sent));
}

#[test]
fn the_source_of_the_route_wins_over_the_global_one_and_both_over_the_device() {
    let outer = |source| from_router(1) / Ipv6::new(source, segment(1)).hop_limit(63) / Srh::through(&[segment(1)]);
    let own = "fd00:1::1".parse().expect("an address");
    let of_route = "fd00:abcd:1:2:3:4:5:6".parse().expect("an address");
    for (source, tunsrc, global) in
        [(of_route, format!("tunsrc {of_route}"), ""), (TUNNEL_SOURCE, String::new(), ""), (own, String::new(), "ip sr tunsrc set ::\n")]
    {
        let mut router =
            Router::with(&format!("{global}ip -6 route add {FAR6} encap seg6 mode encap segs {} {tunsrc} dev e1\n", segment(1)));
        router.expect(framed(to_router(0), inner6(b"data")), 1, around(outer(source), inner6(b"data")));
    }
}

#[test]
fn a_jumbo_packet_passes_while_the_outer_one_fits_the_way_out() {
    let mut router = Router::with(&format!(
        "ip link set e0 mtu 9000\nip link set e1 mtu 9000\nip -6 route add {FAR6} encap seg6 mode encap segs {} dev e1\n",
        segment(1)
    ));
    let outer = || from_router(1) / Ipv6::new(TUNNEL_SOURCE, segment(1)).hop_limit(63) / Srh::through(&[segment(1)]);
    // 9000 bytes less outer header 40, SRH 24, inner header 40, UDP 8.
    let fits = vec![0xa5; 9000 - 112];
    router.expect(framed(to_router(0), inner6(&fits)), 1, around(outer(), inner6(&fits)));
    let before = router.drops(DropReason::TooBig);
    router.send(0, framed(to_router(0), inner6(&[0xa5; 9000 - 111])));
    assert_eq!(router.drops(DropReason::TooBig), before + 1);
}

#[test]
fn a_packet_too_big_once_encapsulated_is_counted_and_the_sender_hears_nothing() {
    let mut router = Router::with(&routes(&format!("mode encap segs {} dev e1", segment(1))));
    router.expect_silent_drop(framed(to_router(0), inner6(&[0xa5; 1430])), DropReason::TooBig);
    let dont_fragment = Ipv4::new(HOST4, FAR4).dont_fragment() / Udp::new(1, 2) / vec![0xa5; 1450];
    router.expect_silent_drop(framed(to_router(0), dont_fragment), DropReason::TooBig);
}

#[test]
fn an_inserted_srh_ends_with_the_original_destination() {
    // Four addresses in the list, none of them taken for a TLV.
    let path = [segment(1), segment(2), segment(3)];
    let mut router = Router::with(&format!("ip -6 route add {FAR6} encap seg6 mode inline segs {} dev e1\n", list(&path)));
    let whole = [&path[..], &[FAR6]].concat();
    let echo = |dst, hops| Ipv6::new(HOST6, dst).hop_limit(hops);
    router.expect(
        to_router(0) / echo(FAR6, 64) / Icmp6::echo(1, 2),
        1,
        from_router(1) / echo(path[0], 63) / Srh::through(&whole) / Icmp6::echo(1, 2),
    );
}

//! Part E: VRFs, and where packets of theirs are looked up.

use route::DropReason;
use testkit::frame::{Frame, Icmp6, Ipv4, Ipv6, Srh, Udp};
use wire::icmp6;

use crate::router::*;

/// e0 and e3 belong to tenants with nothing in their tables but what is connected; the neighbours are put back, as joining a VRF removes them.
fn tenants() -> String {
    let mut lines = String::from("sysctl -w net.vrf.strict_mode=1\n");
    for (port, vrf, table) in [(0, "red", 10), (3, "blue", 20)] {
        lines.push_str(&format!(
            "ip link add {vrf} type vrf table {table}\nip link set {vrf} up\nip link set e{port} master {vrf}\n\
             ip -6 addr replace fd00:{port}::1/64 dev e{port} nodad\n\
             ip neigh replace 10.0.{port}.2 lladdr 02:00:00:00:0f:0{port} dev e{port} nud permanent\n\
             ip -6 neigh replace fd00:{port}::2 lladdr 02:00:00:00:0f:0{port} dev e{port} nud permanent\n"
        ));
    }
    lines
}

fn with_tenants(lines: &str) -> Router {
    Router::with(&(tenants() + lines))
}

fn packet6() -> Frame {
    Ipv6::new(HOST6, FAR6) / Udp::new(1111, 2222) / &b"six"[..]
}

fn packet4() -> Frame {
    Ipv4::new(HOST4, FAR4) / Udp::new(1111, 2222) / &b"four"[..]
}

fn hop_taken6() -> Frame {
    Ipv6::new(HOST6, FAR6).hop_limit(63) / Udp::new(1111, 2222) / &b"six"[..]
}

fn hop_taken4() -> Frame {
    Ipv4::new(HOST4, FAR4).ttl(63) / Udp::new(1111, 2222) / &b"four"[..]
}

#[test]
fn the_l3mdev_rule_takes_the_table_of_the_ingress_ports_vrf() {
    let mut router = with_tenants(&format!(
        "ip -6 route add vrf red {FAR6} via fd00:1::2 dev e1\nip -6 route add vrf blue {FAR6} via fd00:2::2 dev e2\n\
         ip route add vrf red {FAR4} via 10.0.1.2 dev e1\nip route add vrf blue {FAR4} via 10.0.2.2 dev e2\n"
    ));
    for (port, packet) in [(0, packet6 as fn() -> Frame), (0, packet4), (3, packet6), (3, packet4)] {
        let out = if port == 0 { 1 } else { 2 };
        let sent = router.send(port, framed(to_router(port as u8), packet()));
        assert_eq!(sent.iter().map(|(port, _)| *port).collect::<Vec<_>>(), [out], "from e{port}");
    }
}

#[test]
fn a_vrf_whose_last_address_went_follows_the_rules_and_no_more() {
    let bare = "ip addr del 10.0.0.1/24 dev e0\nip -6 addr del fd00:0::1/64 dev e0\n";
    let mut router = with_tenants("");
    let falls_through = |router: &mut Router| {
        router.expect(framed(to_router(0), packet6()), 2, framed(from_router(2), hop_taken6()));
        router.expect(framed(to_router(0), packet4()), 2, framed(from_router(2), hop_taken4()));
    };
    falls_through(&mut router);
    router.change(bare);
    falls_through(&mut router);
    router.change(
        "ip route add vrf red unreachable default metric 4278198272\nip -6 route add vrf red unreachable default metric 4278198272\n",
    );
    for packet in [packet6(), packet4()] {
        let before = router.drops(DropReason::RouteUnreachable);
        router.send(0, framed(to_router(0), packet));
        assert_eq!(router.drops(DropReason::RouteUnreachable), before + 1);
    }
}

#[test]
fn a_route_to_a_vrf_device_goes_on_in_that_vrf_with_one_hop_taken_off() {
    let mut router = with_tenants(&format!(
        "ip -6 route add vrf red {FAR6} dev blue\nip route add vrf red {FAR4} dev blue\n\
         ip -6 route add vrf blue {FAR6} via fd00:3::2 dev e3\nip route add vrf blue {FAR4} via 10.0.3.2 dev e3\n"
    ));
    router.expect(framed(to_router(0), packet6()), 3, framed(from_router(3), hop_taken6()));
    router.expect(framed(to_router(0), packet4()), 3, framed(from_router(3), hop_taken4()));
}

#[test]
fn what_a_vrf_device_cannot_send_on_ends_there_and_two_that_point_at_each_other_are_no_loop() {
    let end = "ip route add vrf blue unreachable default\nip -6 route add vrf blue unreachable default\n";
    let mut nowhere = with_tenants(&format!("ip -6 route add vrf red {FAR6} dev blue\nip route add vrf red {FAR4} dev blue\n{end}"));
    nowhere.expect_silent_drop(framed(to_router(0), packet6()), DropReason::RouteUnreachable);
    nowhere.expect_silent_drop(framed(to_router(0), packet4()), DropReason::RouteUnreachable);
    let mut circle = with_tenants(&format!(
        "ip -6 route add vrf red {FAR6} dev blue\nip -6 route add vrf blue {FAR6} dev red\n\
         ip route add vrf red {FAR4} dev blue\nip route add vrf blue {FAR4} dev red\n"
    ));
    circle.expect_silent_drop(framed(to_router(0), packet6()), DropReason::LookupLoop);
    circle.expect_silent_drop(framed(to_router(0), packet4()), DropReason::LookupLoop);
}

#[test]
fn an_answer_leaves_by_the_vrf_device_that_the_way_back_leads_to() {
    // The host's network is known to the other tenant only.
    let mut router =
        with_tenants(&format!("ip -6 route add vrf blue {FAR6} dev red\nip -6 route add vrf red {FAR6} via fd00:0::2 dev e0\n"));
    let own = "fd00:3::1".parse().unwrap();
    let sent = router.send(3, to_router(3) / Ipv6::new(FAR6, own) / Icmp6::echo(7, 8) / &b"back"[..]);
    assert_eq!(sent.iter().map(|(port, _)| *port).collect::<Vec<_>>(), [0]);
}

fn headend(words: &str) -> String {
    format!("ip -6 route add vrf red {FAR6} encap seg6 mode encap segs {} {words} dev e1\n", segment(1))
}

#[test]
fn an_unreachable_default_in_the_vrf_ends_what_was_encapsulated_there_under_its_name() {
    let mut router = with_tenants(&(headend("") + "ip -6 route add vrf red unreachable default metric 4278198272\n"));
    router.expect_silent_drop(framed(to_router(0), packet6()), DropReason::RouteUnreachable);
    // Without it the rules go on to main, where the way to the segment is.
    let mut falls_through = with_tenants(&headend(""));
    assert_eq!(falls_through.send(0, framed(to_router(0), packet6()))[0].0, 1);
}

#[test]
fn a_headend_with_a_table_of_its_own_looks_its_segment_up_there() {
    let mut router = with_tenants(&(headend("lookup main") + "ip -6 route add vrf red unreachable default metric 4278198272\n"));
    let outer = from_router(1) / Ipv6::new(TUNNEL_SOURCE, segment(1)).hop_limit(63) / Srh::through(&[segment(1)]);
    router.expect(framed(to_router(0), packet6()), 1, around(outer.clone(), packet6()));
    let elsewhere = format!("{}ip -6 route add table 77 {} via fd00:2::2 dev e2\n", headend("lookup 77"), segment(1));
    let outer = from_router(2) / Ipv6::new(TUNNEL_SOURCE, segment(1)).hop_limit(63) / Srh::through(&[segment(1)]);
    with_tenants(&elsewhere).expect(framed(to_router(0), packet6()), 2, around(outer, packet6()));
    with_tenants(&headend("lookup 78")).expect_silent_drop(framed(to_router(0), packet6()), DropReason::SidTable);
}

#[test]
fn nobody_sends_in_a_vrf_that_is_down_and_its_ports_forward_all_the_same() {
    let mut router = with_tenants(&format!(
        "ip -6 route add vrf red {FAR6} via fd00:1::2 dev e1\nip route add vrf red {FAR4} via 10.0.1.2 dev e1\nip link set red down\n"
    ));
    router.expect(framed(to_router(0), packet6()), 1, framed(from_router(1), hop_taken6()));
    router.expect(framed(to_router(0), packet4()), 1, framed(from_router(1), hop_taken4()));
    assert!(router.send(0, to_router(0) / Ipv6::new(HOST6, FAR6).hop_limit(1) / Udp::new(1, 2)).is_empty());
    assert!(router.send(0, to_router(0) / Ipv4::new(HOST4, FAR4).ttl(1) / Udp::new(1, 2)).is_empty());
}

#[test]
fn an_ipv6_unreachable_route_is_told_by_its_type_and_not_by_its_device() {
    let mut router = with_tenants(&format!("ip -6 route add vrf red unreachable {FAR6} dev lo\n"));
    router.expect_error(framed(to_router(0), packet6()), DropReason::RouteUnreachable, (icmp6::UNREACHABLE, icmp6::unreachable::NO_ROUTE));
}

//! Part E: policy rules.

use route::DropReason;
use testkit::frame::{Frame, Icmp4, Icmp6, Ipv4, Ipv6, Udp};
use wire::icmp6;

use crate::router::*;

fn packet6(hops: u8) -> Frame {
    Ipv6::new(HOST6, FAR6).hop_limit(hops) / Udp::new(1111, 2222) / &b"six"[..]
}

fn packet4(ttl: u8) -> Frame {
    Ipv4::new(HOST4, FAR4).ttl(ttl) / Udp::new(1111, 2222) / &b"four"[..]
}

/// Routes for everything by one port, in tables of both families.
fn table(number: u32, port: u8) -> String {
    format!(
        "ip route add table {number} default via 10.0.{port}.2 dev e{port}\nip -6 route add table {number} default via fd00:{port}::2 dev e{port}\n"
    )
}

fn expect_by(router: &mut Router, port: u8) {
    router.expect(framed(to_router(0), packet6(64)), port.into(), framed(from_router(port), packet6(63)));
    router.expect(framed(to_router(0), packet4(64)), port.into(), framed(from_router(port), packet4(63)));
}

#[test]
fn rules_of_equal_preference_are_asked_in_the_order_of_their_coming() {
    let rules = |first: u32, second: u32| {
        let of = |family: &str| format!("ip {family} rule add lookup {first} pref 100\nip {family} rule add lookup {second} pref 100\n");
        format!("{}{}{}{}", table(101, 1), table(103, 3), of("-4"), of("-6"))
    };
    expect_by(&mut Router::with(&rules(101, 103)), 1);
    expect_by(&mut Router::with(&rules(103, 101)), 3);
}

#[test]
fn tables_have_numbers_of_32_bits() {
    for number in [252_u32, 500, 1001, 4_294_967_294] {
        let rules = format!("ip rule add lookup {number} pref 100\nip -6 rule add lookup {number} pref 100\n");
        expect_by(&mut Router::with(&(table(number, 3) + &rules)), 3);
    }
}

#[test]
fn main_is_asked_first_but_for_its_default_route() {
    let rules = "ip rule add lookup main suppress_prefixlength 0 pref 50\nip rule add lookup 103 pref 60\n\
                 ip -6 rule add lookup main suppress_prefixlength 0 pref 50\nip -6 rule add lookup 103 pref 60\n";
    let mut router = Router::with(&(table(103, 3) + rules));
    expect_by(&mut router, 3);
    let near = |ttl| Ipv4::new(HOST4, "10.0.1.2".parse().unwrap()).ttl(ttl) / Udp::new(1111, 2222) / &b"near"[..];
    router.expect(framed(to_router(0), near(64)), 1, framed(from_router(1), near(63)));
}

#[test]
fn the_routers_own_addresses_come_before_a_rule_unless_their_rule_is_moved() {
    let echo4 = || framed(to_router(0), Ipv4::new(HOST4, "10.0.0.1".parse().unwrap()) / Icmp4::echo(7, 9) / &b"ping"[..]);
    let echo6 = || framed(to_router(0), Ipv6::new(HOST6, "fd00:0::1".parse().unwrap()) / Icmp6::echo(7, 9) / &b"ping"[..]);
    let rules = "ip rule add iif e0 lookup 103 pref 309\nip -6 rule add iif e0 lookup 103 pref 309\n";
    let mut router = Router::with(&(table(103, 3) + rules));
    assert_eq!(router.send(0, echo4()).iter().map(|(port, _)| *port).collect::<Vec<_>>(), [0]);
    assert_eq!(router.send(0, echo6()).iter().map(|(port, _)| *port).collect::<Vec<_>>(), [0]);
    let moved = "ip rule add lookup local pref 400\nip rule del lookup local pref 0\n";
    let mut router = Router::with(&(table(103, 3) + rules + moved));
    assert_eq!(router.send(0, echo4()).iter().map(|(port, _)| *port).collect::<Vec<_>>(), [3]);
}

#[test]
fn throw_goes_on_with_the_next_rule_and_unreachable_does_not() {
    let rules = "ip rule add iif e0 lookup 103 pref 100\nip -6 rule add iif e0 lookup 103 pref 100\n";
    let of = |kind: &str| format!("ip route add table 103 {kind} {FAR4}\nip -6 route add table 103 {kind} {FAR6}\n");
    expect_by(&mut Router::with(&(table(103, 3) + rules + &of("throw"))), 2);
    let mut router = Router::with(&(table(103, 3) + rules + &of("unreachable")));
    router.expect_error(
        framed(to_router(0), packet6(64)),
        DropReason::RouteUnreachable,
        (icmp6::UNREACHABLE, icmp6::unreachable::NO_ROUTE),
    );
}

#[test]
fn a_blackhole_of_a_neighbours_address_leaves_the_neighbour_known() {
    let mut router = Router::with("ip route add blackhole 10.0.2.2/32\nip -6 route add blackhole fd00:2::2/128\n");
    // The default route's gateway is that neighbour.
    expect_by(&mut router, 2);
    let to_it = Ipv4::new(HOST4, "10.0.2.2".parse().unwrap()) / Udp::new(1111, 2222) / &b"to it"[..];
    router.expect_silent_drop(framed(to_router(0), to_it), DropReason::RouteBlackhole);
    // Unknown, it is asked for, and what it answers is believed.
    router.change("ip neigh del 10.0.2.2 dev e2\n");
    let waiting = || framed(to_router(0), packet4(64));
    let asked = router.send(0, waiting());
    let [(2, question)] = &asked[..] else { panic!("{} frames", asked.len()) };
    assert_eq!((&question[12..14], &question[38..42]), (&[0x08, 0x06][..], &[10, 0, 2, 2][..]));
    let (own, its) = (&question[6..12], [2, 0, 0, 0, 0x0f, 2]);
    let answer = [own, &its, &question[12..20], &[0, 2], &its, &question[38..42], own, &question[28..32]].concat();
    assert_eq!(router.send_bytes(2, &answer), [(2, framed(from_router(2), packet4(63)).bytes())]);
    router.expect(waiting(), 2, framed(from_router(2), packet4(63)));
}

#[test]
fn a_mark_leads_to_a_table_and_stays_with_a_packet_through_a_headend() {
    let lines = "mark add iif e0 ipproto udp dport 2222 set 0x10\nip rule add fwmark 0x10/0xf0 lookup 103 pref 100\n\
                 ip -6 rule add fwmark 0x10 lookup 103 pref 100\n";
    expect_by(&mut Router::with(&(table(103, 3) + lines)), 3);
    let encap = "ip -6 route add table 103 fc00:2::/32 via fd00:3::2 dev e3\n\
                 ip -6 route add fd09::/16 encap seg6 mode encap segs fc00:2::1 dev e1\n";
    let only = "ip -6 rule add to fc00:2::/32 fwmark 0x10 lookup 103 pref 100\nmark add ipproto udp set 0x10\n";
    let mut router = Router::with(&(encap.to_owned() + only));
    assert_eq!(router.send(0, framed(to_router(0), packet6(64))).iter().map(|(port, _)| *port).collect::<Vec<_>>(), [3]);
}

//! Part G: several ways for one destination.

use std::net::{Ipv4Addr, Ipv6Addr};

use testkit::frame::{Icmp4, Ipv4, Ipv6, Udp};
use wire::{icmp4, proto};

use crate::router::{HOST4, HOST6, Router, to_router};

/// Two ways to 198.51.100.0/24 and to fd0e::/64.
const WAYS: &str = "\
ip route add 198.51.100.0/24 nexthop via 10.0.1.2 dev e1 nexthop via 10.0.2.2 dev e2
ip -6 route add fd0e::/64 nexthop via fd00:1::2 dev e1 nexthop via fd00:2::2 dev e2
sysctl net.ipv4.fib_multipath_hash_seed=7
";
const BY_PORTS: &str = "sysctl net.ipv4.fib_multipath_hash_policy=1 net.ipv6.fib_multipath_hash_policy=1\n";

fn to4(n: u8) -> Ipv4Addr {
    Ipv4Addr::new(198, 51, 100, n)
}

fn to6(n: u16) -> Ipv6Addr {
    Ipv6Addr::new(0xfd0e, 0, 0, 0, 0x1a1b, 0x2c2d, 0x3e3f, n)
}

/// The port that the one packet leaves by.
fn leaves(router: &mut Router, frame: testkit::frame::Frame) -> usize {
    match router.send(0, frame).as_slice() {
        [(port, _)] => *port,
        sent => panic!("{} frames", sent.len()),
    }
}

/// The ports that packets to hosts 1 to 32 leave by; both are among them.
fn all(mut leaves: impl FnMut(u8) -> usize) -> Vec<usize> {
    let ports: Vec<_> = (1..=32).map(&mut leaves).collect();
    assert!(ports.contains(&1) && ports.contains(&2), "{ports:?}");
    ports
}

#[test]
fn fragments_of_one_datagram_take_one_way_when_ports_are_hashed() {
    let mut router = Router::with(&format!("{WAYS}{BY_PORTS}"));
    let first =
        all(|n| leaves(&mut router, to_router(0) / Ipv4::new(HOST4, to4(n)).id(9).fragment(0, true) / Udp::new(1000 + u16::from(n), 53)));
    let later = |n| to_router(0) / Ipv4::new(HOST4, to4(n)).protocol(proto::UDP).id(9).fragment(8, false) / b"the rest";
    assert_eq!(first, all(|n| leaves(&mut router, later(n))));
}

#[test]
fn ports_choose_the_way_where_they_are_to() {
    let by = |policy: &str| {
        let mut router = Router::with(&format!("{WAYS}{policy}"));
        (1..=32).map(|n| leaves(&mut router, to_router(0) / Ipv4::new(HOST4, to4(1)) / Udp::new(1000 + n, 53))).collect::<Vec<_>>()
    };
    assert!(by("").windows(2).all(|pair| pair[0] == pair[1]), "addresses alone");
    let ports = by(BY_PORTS);
    assert!(ports.contains(&1) && ports.contains(&2), "{ports:?}");
}

#[test]
fn an_icmp_error_takes_the_way_of_the_packet_that_it_quotes() {
    let mut router = Router::with(WAYS);
    let packets = all(|n| leaves(&mut router, to_router(0) / Ipv4::new(HOST4, to4(n)) / Udp::new(1000, 53)));
    // A router behind the host has no way on for what comes back, and tells the sender.
    let error = |n| {
        let quoted = (Ipv4::new(to4(n), HOST4) / Udp::new(53, 1000)).bytes();
        to_router(0) / Ipv4::new(Ipv4Addr::new(10, 0, 0, 99), to4(n)) / Icmp4::error(icmp4::UNREACHABLE, 1, 0) / quoted
    };
    assert_eq!(packets, all(|n| leaves(&mut router, error(n))));
}

#[test]
fn a_flow_keeps_its_way_when_other_routes_change() {
    let packet = |n: u8| to_router(0) / Ipv6::new(HOST6, to6(n.into())) / Udp::new(1000 + u16::from(n), 53);
    let mut router = Router::with(&format!("{WAYS}{BY_PORTS}"));
    let before = all(|n| leaves(&mut router, packet(n)));
    for change in [
        "ip -6 route add fd0f::/64 via fd00:1::2 dev e1",
        "ip -6 route add fd0e:0:0:1::/64 via fd00:3::2 dev e3",
        "ip -6 route add default via fd00:3::2 dev e3 metric 5",
        "ip -6 route del fd0f::/64",
        "ip -6 rule add from fd0f::/64 lookup 77 pref 50",
    ] {
        router.change(change);
        assert_eq!(before, all(|n| leaves(&mut router, packet(n))), "{change}");
    }
}

#[test]
fn the_seed_decides_the_ways_and_one_seed_decides_them_alike() {
    let by = |seed: u32| {
        let mut router = Router::with(&format!("{WAYS}{BY_PORTS}sysctl net.ipv4.fib_multipath_hash_seed={seed}\n"));
        let v4 = all(|n| leaves(&mut router, to_router(0) / Ipv4::new(HOST4, to4(n)) / Udp::new(1000, 53)));
        (v4, all(|n| leaves(&mut router, to_router(0) / Ipv6::new(HOST6, to6(n.into())) / Udp::new(1000, 53))))
    };
    assert_eq!(by(7), by(7));
    assert_ne!(by(7).0, by(8).0);
    assert_ne!(by(7).1, by(8).1);
}

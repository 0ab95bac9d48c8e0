//! Part B: SRv6 endpoint behaviours that take the outer header off.

use route::DropReason;
use testkit::frame::{Frame, Ipv4, Ipv6, Srh, Udp};

use crate::router::*;

/// Two VRFs' worth of lines: tenant 10 with the port e3, and a way to everywhere through it.
const VRF: &str = "sysctl -w net.vrf.strict_mode=1\n\
                   ip link add vrf10 type vrf table 10\n\
                   ip link set vrf10 up\n\
                   ip link set e3 master vrf10\n\
                   ip -6 addr replace fd00:3::1/64 dev e3 nodad\n\
                   ip neigh replace 10.0.3.2 lladdr 02:00:00:00:0f:03 dev e3 nud permanent\n\
                   ip -6 neigh replace fd00:3::2 lladdr 02:00:00:00:0f:03 dev e3 nud permanent\n\
                   ip route add table 10 default via 10.0.3.2 dev e3\n\
                   ip -6 route add table 10 default via fd00:3::2 dev e3\n";

fn encapsulated(inner: Frame) -> Frame {
    framed(to_router(0), around(Ipv6::new(HOST6, SID) / Srh::through(&[segment(1), SID]).segments_left(0), inner))
}

fn inner4(ttl: u8) -> Frame {
    Ipv4::new(HOST4, FAR4).ttl(ttl) / Udp::new(1111, 2222) / b"data"
}

fn inner6(hop_limit: u8) -> Frame {
    Ipv6::new(HOST6, FAR6).hop_limit(hop_limit) / Udp::new(1111, 2222) / b"data"
}

#[test]
fn every_decapsulation_consumes_a_hop_of_the_inner_packet() {
    for action in ["End.DX4 nh4 10.0.2.2 dev e2", "End.DX4 nh4 0.0.0.0 dev e2"] {
        let mut router = Router::with_sid(action);
        router.expect(encapsulated(inner4(64)), 2, framed(from_router(2), inner4(63)));
        for ttl in [1, 0] {
            router.expect_error(encapsulated(inner4(ttl)), DropReason::HopLimit, (wire::icmp4::TIME_EXCEEDED, 0));
        }
    }
    for action in ["End.DX6 nh6 fd00:2::2 dev e2", "End.DX6 nh6 :: dev e2", "End.DT6 table main dev e0"] {
        let mut router = Router::with_sid(action);
        router.expect(encapsulated(inner6(64)), 2, framed(from_router(2), inner6(63)));
        for hops in [1, 0] {
            router.expect_error(encapsulated(inner6(hops)), DropReason::HopLimit, (wire::icmp6::TIME_EXCEEDED, 0));
        }
    }
    // In a VRF the answer goes out there, where the source lives as far as the inner packet says.
    for (action, inner) in [
        ("End.DT4 vrftable 10", inner4 as fn(u8) -> Frame),
        ("End.DT46 vrftable 10", inner4),
        ("End.DT6 vrftable 10", inner6),
        ("End.DT46 vrftable 10", inner6),
    ] {
        let mut router = Router::with(&format!("{VRF}ip -6 route add {SID} encap seg6local action {action} dev vrf10\n"));
        router.expect(encapsulated(inner(64)), 3, framed(from_router(3), inner(63)));
        for hops in [1, 0] {
            let before = router.drops(DropReason::HopLimit);
            let sent = router.send(0, encapsulated(inner(hops)));
            assert_eq!(router.drops(DropReason::HopLimit), before + 1);
            assert!(sent.iter().all(|(port, frame)| *port == 3 && (icmp4(frame).is_some() || icmp6(frame).is_some())));
        }
    }
}

#[test]
fn a_sid_inside_a_routed_locator_is_still_decapsulated() {
    let mut router = Router::with(&format!(
        "ip -6 route add fc00:1::/32 via fd00:1::2 dev e1\nip -6 route add {SID} encap seg6local action End.DX4 nh4 10.0.2.2 dev e2\n"
    ));
    router.expect(encapsulated(inner4(64)), 2, framed(from_router(2), inner4(63)));
}

#[test]
fn a_packet_with_segments_left_is_not_decapsulated() {
    let mut router = Router::with_sid("End.DX4 nh4 10.0.2.2 dev e2");
    let outer = Ipv6::new(HOST6, SID) / Srh::through(&[SID, segment(1)]);
    router.expect_silent_drop(framed(to_router(0), around(outer, inner4(64))), DropReason::SegmentsLeft);
}

#[test]
fn the_inner_header_is_not_validated_as_linux_does_not() {
    // Known of Linux and kept: a wrong inner checksum goes on, adjusted for the hop and still wrong.
    let mut router = Router::with_sid("End.DX4 nh4 10.0.2.2 dev e2");
    let wrong = |ttl, checksum| Ipv4::new(HOST4, FAR4).ttl(ttl).checksum(checksum) / Udp::new(1111, 2222) / b"data";
    router.expect(encapsulated(wrong(64, 0x1234)), 2, framed(from_router(2), wrong(63, 0x1334)));
}

#[test]
fn a_wrong_version_of_the_inner_header_is_forwarded_as_linux_does() {
    // What the outer header names decides which header the inner one is taken for; its version goes on as it came.
    const INNER: usize = 14 + 40 + 8 + 2 * 16;
    for (action, inner) in [
        ("End.DX4 nh4 10.0.2.2 dev e2", inner4 as fn(u8) -> Frame),
        ("End.DX6 nh6 fd00:2::2 dev e2", inner6),
        ("End.DT6 table main dev e0", inner6),
    ] {
        let mut router = Router::with_sid(action);
        let mut frame = encapsulated(inner(64)).bytes();
        let mut expected = framed(from_router(2), inner(63)).bytes();
        frame[INNER] ^= 0x10;
        expected[14] ^= 0x10;
        let sent = router.send_bytes(0, &frame);
        assert_eq!(sent, [(2, expected)], "{action}");
    }
}

#[test]
fn end_dt6_enters_the_vrf_with_vrftable_and_not_with_table() {
    let own = "fd77::1".parse().expect("an address");
    let echo = || Ipv6::new(FAR6, own) / testkit::frame::Icmp6::echo(1, 2) / b"are you there";
    let lines = |action: &str| {
        format!("{VRF}ip -6 addr add {own}/128 dev vrf10 nodad\nip -6 route add {SID} encap seg6local action {action} dev vrf10\n")
    };
    let mut vrf = Router::with(&lines("End.DT6 vrftable 10"));
    let sent = vrf.send(0, encapsulated(echo()));
    assert!(sent.iter().any(|(port, frame)| *port == 3 && icmp6(frame).is_some_and(|(kind, ..)| kind == wire::icmp6::ECHO_REPLY)));
    let mut table = Router::with(&lines("End.DT6 table 10"));
    let sent = table.send(0, encapsulated(echo()));
    assert!(sent.iter().all(|(port, _)| *port != 3), "a plain lookup in the table does not enter the VRF");
}

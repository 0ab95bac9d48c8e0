//! Part D: plain forwarding, extension headers, ICMP.

use std::net::Ipv6Addr;

use route::DropReason;
use testkit::frame::{Ether, Icmp4, Icmp6, Ipv4, Ipv6, Options, Udp};
use wire::checksum::Sum;
use wire::{Mac, icmp4, icmp6, proto};

use crate::router::{FAR4, FAR6, HOST4, HOST6, Router, from_router, icmp4 as icmp4_of, icmp6 as icmp6_of, to_router};

/// The router's own addresses on e0.
const OWN6: Ipv6Addr = Ipv6Addr::new(0xfd00, 0, 0, 0, 0, 0, 0, 1);
const OWN4: std::net::Ipv4Addr = std::net::Ipv4Addr::new(10, 0, 0, 1);

#[test]
fn an_authentication_header_is_walked_by_its_own_unit() {
    // AH of 24 bytes (length 4, in words of four), then an echo request. Misread in units of eight the message would begin at its byte 16.
    let mut router = Router::with("");
    let echo = (Ipv6::new(HOST6, OWN6) / Icmp6::echo(7, 9) / b"0123456789abcdef").bytes()[40..].to_vec();
    let ah = [proto::ICMP6, 4, 0, 0, 0, 0, 0, 1, 0, 0, 0, 2, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12];
    let sent = router.send(0, to_router(0) / Ipv6::new(HOST6, OWN6).next_header(proto::AH) / [&ah[..], &echo].concat());
    // Linux has no policy that would take the header, so the packet is not delivered; whatever is said, it is not of a byte beyond the header.
    assert!(
        sent.iter().all(|(_, frame)| icmp6_of(frame).is_none_or(|(kind, _, pointer)| kind != icmp6::PARAMETER_PROBLEM || pointer <= 40))
    );
    // In transit nobody looks.
    let through = |hops| Ipv6::new(HOST6, FAR6).hop_limit(hops).next_header(proto::AH);
    let body = [&ah[..], &echo].concat();
    router.expect(to_router(0) / through(64) / body.clone(), 2, from_router(2) / through(63) / body);
}

#[test]
fn an_unknown_next_header_is_forwarded_unchanged() {
    let mut router = Router::with("");
    for number in [253, 139, 140] {
        let packet = |hops| Ipv6::new(HOST6, FAR6).hop_limit(hops).next_header(number);
        router.expect(to_router(0) / packet(64) / b"whatever", 2, from_router(2) / packet(63) / b"whatever");
    }
}

#[test]
fn hop_by_hop_options_are_obeyed_before_forwarding() {
    let mut router = Router::with("");
    let packet =
        |dst, hops, option: u8| Ipv6::new(HOST6, dst).hop_limit(hops) / Options::hop_by_hop(&[option, 2, 0, 0]) / Udp::new(1111, 2222);
    // The two high bits of an unknown option: skip, drop, drop and tell, drop and tell unless multicast.
    let skipped = to_router(0) / Ipv6::new(HOST6, FAR6) / Options::hop_by_hop(&[0x1e, 2, 0, 0]) / Udp::new(1111, 2222);
    let forwarded = from_router(2) / Ipv6::new(HOST6, FAR6).hop_limit(63) / Options::hop_by_hop(&[0x1e, 2, 0, 0]) / Udp::new(1111, 2222);
    router.expect(skipped, 2, forwarded);
    let framed = |dst, option| crate::router::framed(to_router(0), packet(dst, 64, option));
    router.expect_silent_drop(framed(FAR6, 0x5e), DropReason::BadHopByHop);
    router.expect_error(framed(FAR6, 0x9e), DropReason::BadHopByHop, (icmp6::PARAMETER_PROBLEM, icmp6::parameter::OPTION));
    router.expect_error(framed(FAR6, 0xde), DropReason::BadHopByHop, (icmp6::PARAMETER_PROBLEM, icmp6::parameter::OPTION));
}

#[test]
fn an_unknown_option_sent_to_a_group_is_told_of_only_where_its_bits_say_so() {
    let mut router = Router::with("");
    let group = "ff02::1".parse().expect("an address");
    let header = Ether::new(Mac::for_ipv6_group(group), Mac([2, 0, 0, 0, 0x0f, 0]));
    let packet = |option| header.clone() / Ipv6::new(HOST6, group) / Options::hop_by_hop(&[option, 2, 0, 0]) / Udp::new(1111, 2222);
    router.expect_error(packet(0x9e), DropReason::BadHopByHop, (icmp6::PARAMETER_PROBLEM, icmp6::parameter::OPTION));
    router.expect_silent_drop(packet(0xde), DropReason::BadHopByHop);
}

#[test]
fn a_parameter_problem_points_at_the_bad_octet() {
    let mut router = Router::with("");
    // Behind header and two bytes of the options header, then behind a PadN of four.
    for (options, pointer) in [(&[0x9e, 2, 0, 0][..], 42), (&[1, 2, 0, 0, 0x9e, 2, 0, 0], 46)] {
        let sent = router.send(0, to_router(0) / Ipv6::new(HOST6, FAR6) / Options::hop_by_hop(options) / Udp::new(1, 2));
        assert_eq!(
            sent.iter().map(|(_, frame)| icmp6_of(frame)).collect::<Vec<_>>(),
            [Some((icmp6::PARAMETER_PROBLEM, icmp6::parameter::OPTION, pointer))]
        );
    }
}

#[test]
fn no_error_goes_to_an_unspecified_or_multicast_source() {
    let mut router = Router::with("");
    for source in [Ipv6Addr::UNSPECIFIED, "ff02::5".parse().expect("an address")] {
        for hops in [1, 64] {
            let sent = router.send(0, to_router(0) / Ipv6::new(source, FAR6).hop_limit(hops) / Udp::new(1111, 2222));
            assert!(sent.is_empty(), "{source} with hop limit {hops}");
        }
    }
}

#[test]
fn no_error_answers_an_error() {
    let mut router = Router::with("");
    let error = Ipv6::new(HOST6, FAR6).hop_limit(1);
    router.expect_silent_drop(to_router(0) / error / Icmp6::error(icmp6::TIME_EXCEEDED, 0, 0) / b"quote", DropReason::HopLimit);
    let error = Ipv4::new(HOST4, FAR4).ttl(1);
    router.expect_silent_drop(to_router(0) / error / Icmp4::error(icmp4::TIME_EXCEEDED, 0, 0) / b"quote", DropReason::HopLimit);
}

#[test]
fn a_link_local_source_is_never_forwarded() {
    let mut router = Router::with("");
    let packet = Ipv6::new("fe80::20".parse().expect("an address"), FAR6);
    router.expect_error(
        to_router(0) / packet / Udp::new(1111, 2222),
        DropReason::BeyondScope,
        (icmp6::UNREACHABLE, icmp6::unreachable::BEYOND_SCOPE),
    );
}

#[test]
fn a_source_that_a_local_route_makes_the_router_s_own_is_not_believed() {
    let mut router = Router::with("");
    let from = || to_router(0) / Ipv4::new([10, 7, 1, 9].into(), FAR4) / Udp::new(1111, 2222);
    assert_eq!(router.send(0, from()).len(), 1);
    router.change("ip route add local 10.7.1.0/24 dev lo\n");
    router.expect_silent_drop(from(), DropReason::OwnSource);
}

#[test]
fn the_ttl_decrement_never_confuses_the_two_zeros_of_a_checksum() {
    let mut router = Router::with("");
    // Choose the identification so that the checksum before the hop is what we want; 0xffff is the other zero and never right.
    for wanted in [0x0000, 0xfeff, 0xff00, 0x0100, 0xfffe] {
        let with_id = |id| Ipv4::new(HOST4, FAR4).id(id);
        let zero = (with_id(0) / b"").bytes();
        let id = Sum::default().word(u16::from_be_bytes([zero[10], zero[11]])).word(!wanted).fold();
        let packet = (to_router(0) / with_id(id) / b"").bytes();
        assert_eq!(packet[24..26], u16::to_be_bytes(wanted), "{wanted:04x}");
        let sent = router.send(0, to_router(0) / with_id(id) / b"");
        let [(2, frame)] = &sent[..] else { panic!("{wanted:04x} is not forwarded") };
        let expected = (from_router(2) / with_id(id).ttl(63) / b"").bytes();
        assert_eq!(frame, &expected, "{wanted:04x}");
    }
}

#[test]
fn the_upper_layer_of_ipv4_begins_behind_the_options() {
    let mut router = Router::with("");
    for words in 1..=10 {
        let options = vec![1; words * 4];
        let sent = router.send(0, to_router(0) / Ipv4::new(HOST4, OWN4).options(&options) / Icmp4::echo(7, 9) / b"0123456789");
        let [(0, frame)] = &sent[..] else { panic!("{words} words of options: no answer") };
        let at = 14 + usize::from(frame[14] & 15) * 4;
        assert_eq!((frame[at], &frame[at + 8..at + 18]), (icmp4::ECHO_REPLY, &b"0123456789"[..]), "{words} words of options");
        let sent = router.send(0, to_router(0) / Ipv4::new(HOST4, OWN4).options(&options) / Udp::new(1111, 2222) / b"data");
        let error = sent.first().and_then(|(_, frame)| if frame[14] == 0x45 { icmp4_of(frame) } else { None });
        assert!(
            error.is_none_or(|(kind, code, _)| (kind, code) == (icmp4::UNREACHABLE, icmp4::unreachable::PORT)),
            "{words} words of options"
        );
        assert_eq!(sent.len(), 1);
    }
}

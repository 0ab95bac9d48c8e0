//! The mask for cases from guests: more differs from boot to boot there.

use super::{byte, word, zero};
use wire::{EtherType, eth, ipv4, ipv6, proto};

/// The first three octets of the addresses that routers of the cases send from.
const ROUTER_IP4: &[[u8; 3]] = &[[10, 0, 0], [10, 0, 1], [10, 0, 2], [10, 0, 3], [192, 0, 2]];
/// ICMP messages that a router writes: echo reply, unreachable, redirect, time exceeded, parameter problem, time stamp reply.
const ROUTER_ICMP4: &[u8] = &[0, 3, 5, 11, 12, 14];
/// The same for ICMPv6, with neighbour discovery.
const ROUTER_ICMP6: &[u8] = &[1, 2, 3, 4, 129, 135, 136];
/// The first octets of the addresses that routers of the cases send from.
const ROUTER_IP6: &[&[u8]] =
    &[&[0x20, 0x01, 0x0d, 0xb8, 0x00, 0x01], &[0xfd, 0x00], &[0xfd, 0x20], &[0xfd, 0x77], &[0xfd, 0x30], &[0xfd, 0x40], &[0xfe, 0x80]];
/// As [`ROUTER_IP6`], of packets that the router fragments.
const FRAGMENTING_IP6: &[&[u8]] = &[&[0x20, 0x01, 0x0d, 0xb8, 0x00], &[0xfd, 0x00], &[0xfd, 0x77]];

/// Masks an Ethernet frame.
pub fn apply(frame: &mut [u8]) {
    let Some(header) = eth::Header::read(frame) else { return };
    match header.ethertype() {
        EtherType::IPV4 => ip4(&mut frame[eth::LEN..]),
        EtherType::IPV6 => ip6(&mut frame[eth::LEN..]),
        _ => {}
    }
}

/// Identification and checksum of a packet the router made are free.
fn ip4(packet: &mut [u8]) {
    if packet.len() < ipv4::LEN || packet[0] >> 4 != 4 {
        return;
    }
    let upper = usize::from(packet[0] & 15) * 4;
    let protocol = packet[9];
    let later_fragment = word(packet, 6).is_some_and(|field| field & 0x1fff != 0);
    let from_router = ROUTER_IP4.iter().any(|prefix| packet[12..15] == *prefix);
    let own = match protocol {
        proto::IPIP | proto::IPV6 => true,
        proto::ICMP4 if !later_fragment => byte(packet, upper).is_some_and(|kind| ROUTER_ICMP4.contains(&kind)),
        proto::ICMP4 | proto::UDP => later_fragment && from_router,
        _ => false,
    };
    if own {
        zero(packet, 4, 2);
        zero(packet, 10, 2);
        if !later_fragment {
            encapsulated(packet.get_mut(upper..).unwrap_or_default(), protocol);
        }
    }
}

/// Flow label and fragment identification of a packet the router made are free.
fn ip6(packet: &mut [u8]) {
    if packet.len() < ipv6::LEN || packet[0] >> 4 != 6 {
        return;
    }
    let starts = |prefixes: &[&[u8]]| prefixes.iter().any(|prefix| packet[8..24].starts_with(prefix));
    let (from_router, fragmented_by_router) = (starts(ROUTER_IP6), starts(FRAGMENTING_IP6));
    let mut own = from_router;
    let mut later_fragment = false;
    let (mut protocol, mut at) = (packet[6], ipv6::LEN);
    while let (proto::HOP_BY_HOP | proto::ROUTING | proto::FRAGMENT | proto::DEST_OPTS, Some(&[next, units, ..])) =
        (protocol, packet.get(at..at + 8))
    {
        let mut len = 8 * (usize::from(units) + 1);
        if protocol == proto::FRAGMENT {
            len = 8;
            later_fragment = word(packet, at + 2).is_some_and(|field| field & 0xfff8 != 0);
            if fragmented_by_router {
                zero(packet, at + 4, 4);
                own = true;
            }
        }
        protocol = next;
        at += len;
    }
    own |= protocol == proto::ICMP6 && !later_fragment && byte(packet, at).is_some_and(|kind| ROUTER_ICMP6.contains(&kind));
    if own {
        packet[1] &= 0xf0;
        zero(packet, 2, 2);
        if !later_fragment {
            encapsulated(packet.get_mut(at..).unwrap_or_default(), protocol);
        }
    }
}

/// A packet inside one that the router made is masked as if it stood alone.
fn encapsulated(packet: &mut [u8], protocol: u8) {
    match protocol {
        proto::IPIP => ip4(packet),
        proto::IPV6 => ip6(packet),
        _ => {}
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::addr;
    use crate::frame::{Ether, Icmp6, Ipv6, Udp};

    fn masked(mut frame: Vec<u8>) -> Vec<u8> {
        apply(&mut frame);
        frame
    }

    #[test]
    fn the_flow_label_counts_in_a_forwarded_packet_and_not_in_an_error() {
        let ip = |label| Ipv6::new(addr::v6(1), addr::v6(2)).flow_label(label);
        let forwarded = |label| (Ether::test() / ip(label) / Udp::new(1, 2)).bytes();
        let error = |label| (Ether::test() / ip(label) / Icmp6::error(3, 0, 0)).bytes();
        assert_ne!(masked(forwarded(1)), masked(forwarded(2)));
        assert_eq!(masked(error(1)), masked(error(2)));
    }

    #[test]
    fn the_label_of_an_outer_header_is_free_and_its_payload_is_not() {
        let outer = |label| Ipv6::new("fd00:ffff::1".parse().unwrap(), addr::sid(1)).flow_label(label);
        let frame = |label, port| (Ether::test() / outer(label) / Ipv6::new(addr::v6(1), addr::v6(2)) / Udp::new(1, port)).bytes();
        assert_eq!(masked(frame(1, 2)), masked(frame(2, 2)));
        assert_ne!(masked(frame(1, 2)), masked(frame(1, 3)));
    }
}

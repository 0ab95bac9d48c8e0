//! The mask for cases that were recorded on a running kernel with the ports of the golden cases.

use super::{byte, one_boot, word, zero};
use wire::icmp4::TIMESTAMP_REPLY;
use wire::{EtherType, eth, ipv6, proto};

/// ICMPv6 messages that a router writes: errors, echo reply, neighbour discovery, redirect.
const ROUTER_ICMP6: &[u8] = &[1, 2, 3, 4, 129, 135, 136, 137];

/// Masks an Ethernet frame.
pub fn apply(frame: &mut [u8]) {
    one_boot::apply(frame);
    let Some(header) = eth::Header::read(frame) else { return };
    match header.ethertype() {
        EtherType::IPV4 => ip4(&mut frame[eth::LEN..]),
        EtherType::IPV6 => ip6(&mut frame[eth::LEN..]),
        _ => {}
    }
}

/// Identification and checksum of a packet from one of the router's addresses, 10.0.x.1, are free, and the times of its time stamp replies.
fn ip4(packet: &mut [u8]) {
    let upper = usize::from(byte(packet, 0).unwrap_or_default() & 15) * 4;
    if byte(packet, 9) == Some(proto::ICMP4) && byte(packet, upper) == Some(TIMESTAMP_REPLY) {
        zero(packet, upper + 2, 2);
        zero(packet, upper + 12, 8);
    }
    if matches!(packet.get(12..16), Some([10, 0, _, 1])) {
        zero(packet, 4, 2);
        zero(packet, 10, 2);
    }
}

/// Flow label and fragment identification of a packet from one of the router's addresses are free, but for the label of a tunnel's header:
/// it is copied or computed by rule.
fn ip6(packet: &mut [u8]) {
    let from_router = match packet.get(8..24) {
        Some([0xfd, 0, _, _, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0 | 1]) => true,
        Some([0xfe, 0x80, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, last]) => *last == 0 || last & 0xf0 == 0x10,
        _ => false,
    };
    let (mut protocol, mut at) = (byte(packet, 6).unwrap_or_default(), ipv6::LEN);
    let fragmented = protocol == proto::FRAGMENT;
    while let (proto::HOP_BY_HOP | proto::ROUTING | proto::DEST_OPTS | proto::FRAGMENT, Some(next)) = (protocol, word(packet, at)) {
        at += if protocol == proto::FRAGMENT { 8 } else { 8 * (usize::from(next & 0xff) + 1) };
        protocol = (next >> 8) as u8;
    }
    let message = protocol == proto::ICMP6 && byte(packet, at).is_some_and(|kind| ROUTER_ICMP6.contains(&kind));
    if message || from_router && !matches!(protocol, proto::IPIP | proto::IPV6 | proto::ETHERNET) {
        packet[1] &= 0xf0;
        zero(packet, 2, 2);
        if fragmented {
            zero(packet, ipv6::LEN + 4, 4);
        }
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
    fn the_flow_label_counts_unless_the_router_chose_it() {
        let own = |label| {
            (Ether::test() / Ipv6::new("fd00:1::1".parse().unwrap(), addr::v6(2)).flow_label(label) / Icmp6::error(3, 0, 0)).bytes()
        };
        let other = |label| (Ether::test() / Ipv6::new(addr::v6(9), addr::v6(2)).flow_label(label) / Udp::new(1, 2)).bytes();
        assert_eq!(masked(own(1)), masked(own(2)));
        assert_ne!(masked(other(1)), masked(other(2)));
    }

    #[test]
    fn the_label_of_a_tunnel_counts() {
        let outer = |label| Ipv6::new("fd00:ffff::1".parse().unwrap(), addr::sid(1)).flow_label(label);
        let frame = |label| (Ether::test() / outer(label) / Ipv6::new(addr::v6(1), addr::v6(2)) / Udp::new(1, 2)).bytes();
        assert_ne!(masked(frame(1)), masked(frame(2)));
    }
}

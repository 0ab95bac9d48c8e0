//! The strict mask: cases recorded on one boot.

use super::{ICMP4_OF_ROUTERS, byte, checksum_presence, word, zero};
use wire::{EtherType, eth, ipv4, ipv6, proto, udp};

const VXLAN: u16 = 4789;
const VXLAN_HEADER: usize = 8;
const OPTION_TIMESTAMP: u8 = 68;

/// Masks an Ethernet frame, and the frame inside a VXLAN packet.
pub fn apply(frame: &mut [u8]) {
    let Some(header) = eth::Header::read(frame) else { return };
    let inner = match header.ethertype() {
        EtherType::IPV4 => ip4(&mut frame[eth::LEN..]),
        EtherType::IPV6 => ip6(&mut frame[eth::LEN..]),
        _ => None,
    };
    if let Some(at) = inner {
        apply(&mut frame[eth::LEN + at..]);
    }
}

/// Masks an IPv4 packet; where a frame inside it begins.
fn ip4(packet: &mut [u8]) -> Option<usize> {
    if packet.len() < ipv4::LEN {
        return None;
    }
    let len = usize::from(packet[0] & 15) * 4;
    let vxlan = packet[9] == proto::UDP && word(packet, len + 2) == Some(VXLAN);
    let icmp = packet[9] == proto::ICMP4 && byte(packet, len).is_some_and(|kind| ICMP4_OF_ROUTERS.contains(&kind));
    if vxlan || icmp {
        zero(packet, 4, 2);
        zero(packet, 10, 2);
    }
    let options = packet.get(ipv4::LEN..len.min(packet.len())).unwrap_or_default();
    if options.contains(&OPTION_TIMESTAMP) {
        zero(packet, 10, 2);
        zero(packet, ipv4::LEN, len - ipv4::LEN);
    }
    vxlan.then(|| vxlan_in_udp(packet, len)).flatten()
}

/// Masks the UDP header of a VXLAN packet in an IPv6 packet; where the frame inside it begins.
fn ip6(packet: &mut [u8]) -> Option<usize> {
    let vxlan = byte(packet, 6) == Some(proto::UDP) && word(packet, ipv6::LEN + 2) == Some(VXLAN);
    vxlan.then(|| vxlan_in_udp(packet, ipv6::LEN)).flatten()
}

/// The source port is hashed from the frame inside, so it is free; of the checksum only the presence counts.
fn vxlan_in_udp(packet: &mut [u8], udp: usize) -> Option<usize> {
    zero(packet, udp, 2);
    checksum_presence(packet, udp + 6);
    let inner = udp + udp::LEN + VXLAN_HEADER;
    (inner <= packet.len()).then_some(inner)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::frame::{Ether, Icmp4, Ipv4, Udp};

    fn masked(mut frame: Vec<u8>) -> Vec<u8> {
        apply(&mut frame);
        frame
    }

    #[test]
    fn the_identification_of_a_forwarded_packet_counts() {
        let udp = |id| (Ether::test() / Ipv4::test().id(id) / Udp::new(1111, 2222)).bytes();
        assert_ne!(masked(udp(1)), masked(udp(2)));
    }

    #[test]
    fn the_identification_of_an_icmp_error_does_not_count_but_its_quote_does() {
        let error = |id, quote: &[u8]| (Ether::test() / Ipv4::test().id(id) / Icmp4::error(11, 0, 0) / quote).bytes();
        assert_eq!(masked(error(1, b"quote")), masked(error(2, b"quote")));
        assert_ne!(masked(error(1, b"quote")), masked(error(1, b"quota")));
    }

    #[test]
    fn time_stamps_in_options_do_not_count() {
        let stamped = |time| (Ether::test() / Ipv4::test().options(&[68, 8, 9, 0, 0, 0, 0, time]) / Udp::new(1, 2)).bytes();
        assert_eq!(masked(stamped(1)), masked(stamped(2)));
    }
}

//! Hashes over a packet's flow, for flow labels.

use wire::ext::{self, Target};
use wire::{ipv4, ipv6, proto};

/// Mixes words; the constant is 2^64 divided by the golden ratio.
fn mix(hash: u64, word: u64) -> u64 {
    (hash ^ word).wrapping_mul(0x9e37_79b9_7f4a_7c15).rotate_left(31)
}

fn finish(hash: u64) -> u32 {
    let hash = (hash ^ hash >> 29).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    (hash >> 32) as u32
}

/// Hash over the addresses of an IPv4 packet.
fn l3_4(packet: &[u8]) -> u32 {
    finish(ipv4::Header::read(packet).map_or(0, |h| mix(mix(4, u32::from(h.src()).into()), u32::from(h.dst()).into())))
}

fn addresses6(packet: &[u8]) -> Option<u64> {
    let header = ipv6::Header::read(packet)?;
    let (src, dst) = (u128::from(header.src()), u128::from(header.dst()));
    let words = [src >> 64, src, dst >> 64, dst, header.flow_label().into()];
    Some(words.into_iter().fold(6, |hash, word| mix(hash, word as u64)))
}

/// A flow label, never zero, for packets of the flow of `packet` (RFC 6437 §3: spread evenly, the same for the same flow): a hash over addresses, protocol
/// and ports, or the type of an ICMPv6 message.
pub(crate) fn label(packet: &[u8]) -> u32 {
    let (hash, number, at) = match packet.first().map(|byte| byte >> 4) {
        Some(6) => match ext::find(packet, Target::Upper) {
            Ok(upper) => (addresses6(packet).unwrap_or(0), upper.proto, upper.offset),
            Err(_) => (addresses6(packet).unwrap_or(0), proto::NONE, packet.len()),
        },
        _ => match ipv4::Header::read(packet) {
            Some(header) => (u64::from(l3_4(packet)), header.proto, header.header_len()),
            None => (0, proto::NONE, packet.len()),
        },
    };
    let discriminator = if number == proto::ICMP6 { 2 } else { 4 };
    let upper = packet.get(at..at + discriminator).unwrap_or_default();
    let hash = upper.iter().fold(mix(hash, number.into()), |hash, byte| mix(hash, (*byte).into()));
    (finish(hash) & 0xf_ffff).max(1)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_label_follows_the_ports_and_nothing_behind_them() {
        let mut packet = vec![0; 60];
        packet[0] = 0x60;
        packet[6] = proto::UDP;
        let first = label(&packet);
        packet[45] = 9;
        assert_eq!(label(&packet), first, "the UDP length belongs to no flow");
        packet[41] = 9;
        assert_ne!(label(&packet), first);
        assert!(first < 1 << 20);
    }
}

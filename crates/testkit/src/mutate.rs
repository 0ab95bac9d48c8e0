//! Damage to frames: what a hostile sender, a broken link or a confused router would put on the wire, reproducible by its seed.

use crate::rng::Rng;
use wire::{EtherType, eth, ipv4, ipv6};

/// Bytes before the network header of an untagged frame.
const NETWORK: usize = eth::LEN;

/// Values that sit at the edges of length and counter fields.
const EDGES: &[u8] = &[0x00, 0x01, 0x02, 0x04, 0x07, 0x08, 0x0f, 0x10, 0x28, 0x2b, 0x3a, 0x3b, 0x7f, 0x80, 0x8f, 0xfe, 0xff];

/// Header numbers worth putting into a next-header or protocol field.
const PROTOCOLS: &[u8] = &[0, 1, 4, 6, 17, 41, 43, 44, 50, 51, 58, 59, 60, 135, 143, 253];

/// Damages `frame` in one to four ways. `other` is a second good frame to splice from. The result is at least one byte long, so that it can be
/// sent, and at most the two frames together and a little more.
///
/// Nine times out of ten the Ethernet header stays as it is, and half of the time lengths and checksum of the IP header are made right again: a
/// frame that is refused at the first look tests only that look.
pub fn mutate(rng: &mut Rng, frame: &[u8], other: &[u8]) -> Vec<u8> {
    let mut damaged = frame.to_vec();
    for _ in 0..=rng.below(4) {
        match rng.below(8) {
            0 => flip_bits(rng, &mut damaged),
            1 => truncate(rng, &mut damaged),
            2 => lie_about_lengths(rng, &mut damaged),
            3 => lie_about_routing_header(rng, &mut damaged),
            4 => splice(rng, &mut damaged, other),
            5 => change_next_header(rng, &mut damaged),
            6 => repeat_or_cut_middle(rng, &mut damaged),
            _ => edge_value(rng, &mut damaged),
        }
    }
    if rng.below(10) > 0 {
        damaged.resize(damaged.len().max(NETWORK), 0);
        let kept = frame.len().min(NETWORK);
        damaged[..kept].copy_from_slice(&frame[..kept]);
    }
    if rng.below(2) == 0 {
        repair(&mut damaged);
    }
    if damaged.is_empty() {
        damaged.push(rng.byte());
    }
    damaged.truncate(frame.len() + other.len() + 64);
    damaged
}

/// Makes the version, the lengths and the checksum of the IP header right.
fn repair(frame: &mut [u8]) {
    let ethertype = eth::Header::read(frame).map(eth::Header::ethertype);
    let packet = frame.get_mut(NETWORK..).unwrap_or_default();
    let len = packet.len();
    match ethertype {
        Some(EtherType::IPV6) => {
            if let Some(header) = ipv6::Header::read_mut(packet) {
                let (class, label) = (header.traffic_class(), header.flow_label());
                header.set_flow(class, label);
                header.set_payload_len((len - ipv6::LEN) as u16);
            }
        }
        Some(EtherType::IPV4) => {
            if let Some(header) = ipv4::Header::read_mut(packet) {
                let header_len = header.header_len().clamp(ipv4::LEN, len) / 4 * 4;
                header.set_header_len(header_len);
                header.set_total_len(len as u16);
                ipv4::fill_checksum(packet);
            }
        }
        _ => {}
    }
}

/// Flips one to eight bits anywhere.
fn flip_bits(rng: &mut Rng, frame: &mut [u8]) {
    for _ in 0..=rng.below(8) {
        let at = rng.below(frame.len());
        if let Some(byte) = frame.get_mut(at) {
            *byte ^= 1 << rng.below(8);
        }
    }
}

/// Cuts the end off.
fn truncate(rng: &mut Rng, frame: &mut Vec<u8>) {
    frame.truncate(rng.below(frame.len() + 1));
}

/// Changes the length fields of the IP header: total length, header length, payload length.
fn lie_about_lengths(rng: &mut Rng, frame: &mut [u8]) {
    let length = rng.bits() as u16;
    let length = *rng.choose(&[length, length % 256, frame.len() as u16, 0, 0xffff]);
    let at = NETWORK + *rng.choose(&[2, 4]);
    if let Some(field) = frame.get_mut(at..at + 2) {
        field.copy_from_slice(&length.to_be_bytes());
    }
    if rng.below(3) == 0
        && let Some(first) = frame.get_mut(NETWORK)
    {
        *first = *first & 0xf0 | rng.byte() & 0x0f;
    }
}

/// Changes the first bytes of what follows an IPv6 header: of an SRH these are length, type, segments left, last entry, flags; then a TLV.
fn lie_about_routing_header(rng: &mut Rng, frame: &mut [u8]) {
    let start = NETWORK + ipv6::LEN;
    let at = start + if rng.below(4) == 0 { 8 + rng.below(72) } else { rng.below(8) };
    if let Some(byte) = frame.get_mut(at) {
        *byte = if rng.below(2) == 0 { *rng.choose(EDGES) } else { rng.byte() };
    }
}

/// Puts a piece of the other frame over or into this one.
fn splice(rng: &mut Rng, frame: &mut Vec<u8>, other: &[u8]) {
    let from = rng.below(other.len());
    let piece = other.get(from..from + rng.below(other.len() - from + 1)).unwrap_or_default();
    let at = rng.below(frame.len() + 1);
    let replaced = if rng.below(2) == 0 { 0 } else { piece.len().min(frame.len() - at) };
    frame.splice(at..at + replaced, piece.iter().copied());
}

/// Says that another header follows than the one that does.
fn change_next_header(rng: &mut Rng, frame: &mut [u8]) {
    let at = NETWORK + *rng.choose(&[6, 9, 40, 48, 80]);
    if let Some(byte) = frame.get_mut(at) {
        *byte = *rng.choose(PROTOCOLS);
    }
}

/// Removes a piece from the middle, or says it twice.
fn repeat_or_cut_middle(rng: &mut Rng, frame: &mut Vec<u8>) {
    let at = rng.below(frame.len());
    let piece = frame.get(at..(at + 1 + rng.below(48)).min(frame.len())).unwrap_or_default().to_vec();
    if rng.below(2) == 0 {
        frame.drain(at..at + piece.len());
    } else {
        frame.splice(at..at, piece);
    }
}

/// Puts an edge value into one of the first hundred bytes of the packet.
fn edge_value(rng: &mut Rng, frame: &mut [u8]) {
    let at = NETWORK + rng.below(100);
    if let Some(byte) = frame.get_mut(at) {
        *byte = *rng.choose(EDGES);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_same_seed_gives_the_same_damage() {
        let frame: Vec<u8> = (0..118).collect();
        let other: Vec<u8> = (100..200).collect();
        let run = |seed| {
            let mut rng = Rng::new(seed);
            (0..1000).map(|_| mutate(&mut rng, &frame, &other)).collect::<Vec<_>>()
        };
        assert_eq!(run(7), run(7));
        assert_ne!(run(7), run(8));
    }

    #[test]
    fn damage_of_the_shortest_frames_never_fails() {
        let mut rng = Rng::new(1);
        for len in 0..64 {
            let frame = vec![0x86; len];
            for _ in 0..200 {
                let damaged = mutate(&mut rng, &frame, &[]);
                assert!(!damaged.is_empty() && damaged.len() <= len.max(NETWORK) + 64);
            }
        }
    }
}

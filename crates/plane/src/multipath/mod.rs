//! Which way of several a packet takes: what of it is hashed (Linux `fib_multipath_hash_policy`), and the hash.
//!
//! | policy | hashed |
//! |---|---|
//! | 0 | addresses; in IPv6 flow label and first next header too; of an ICMP error those of the packet it quotes |
//! | 1 | addresses, protocol, ports (of fragments no ports) |
//! | 2 | as 0, of the innermost packet |
//! | 3 | the fields that `fib_multipath_hash_fields` names, outer and inner ones each by themselves |
//!
//! Linux takes the hash that a network card has put on a packet instead, under policy 1, where it has one: there the choice depends on the card.

mod dissect;
mod hash;

use std::net::Ipv6Addr;

use route::{HashField, Multipath, Settings, Upper};
use wire::{icmp4, icmp6, ipv4, ipv6, proto};

use self::dissect::{Depth, Found, dissect};
use self::hash::{Addresses, Keys, jhash2};
use crate::packet::Version;

/// The hash of a packet that comes in or passes, 31 bits. It starts with its IP header.
pub(crate) fn hash(settings: &Settings, version: Version, packet: &[u8]) -> u32 {
    let (Multipath { policy, fields }, seed) = (settings.multipath(version == Version::V4), settings.multipath_seed);
    let hash = match policy {
        1 => {
            let mut keys = dissect(packet, version, Depth::Outer).keys;
            keys.label = [0; 4];
            keys.hash(seed)
        }
        2 => inner_addresses(dissect(packet, version, Depth::Inner).keys).hash(seed),
        3 => custom(fields, seed, version, packet),
        _ => addresses(version, packet).map_or(0, |keys| keys.hash(seed)),
    };
    hash >> 1
}

/// The hash of a packet that the router makes, 31 bits: the kernel knows of its flow what was asked for, not what is written into it.
pub(crate) fn hash_own(settings: &Settings, version: Version, packet: &[u8]) -> u32 {
    let mut keys = dissect(packet, version, Depth::Outer).keys;
    keys.label = [0; 4];
    if keys.proto == proto::ICMP6 {
        // The type stands where the destination port does.
        keys.ports[1][0] = packet.get(ipv6::LEN).copied().unwrap_or_default();
    }
    of_flow(settings, version, keys)
}

/// The hash of an IPv6 flow of which this is known, 31 bits.
pub(crate) fn hash_flow6(settings: &Settings, (src, dst): (Ipv6Addr, Ipv6Addr), upper: Upper) -> u32 {
    let keys = Keys::of(Addresses::V6([src.octets(), dst.octets()]));
    let ports = [upper.sport.to_be_bytes(), upper.dport.to_be_bytes()];
    of_flow(settings, Version::V6, Keys { ports, proto: upper.protocol, ..keys })
}

fn of_flow(settings: &Settings, version: Version, mut keys: Keys) -> u32 {
    let (Multipath { policy, fields }, seed) = (settings.multipath(version == Version::V4), settings.multipath_seed);
    match policy {
        1 => {}
        3 => keys = chosen(fields, &OUTER, keys),
        _ => {
            keys.ports = [[0; 2]; 2];
            if version == Version::V4 {
                keys.proto = 0;
            }
        }
    }
    keys.hash(seed) >> 1
}

/// Policy 0.
fn addresses(version: Version, packet: &[u8]) -> Option<Keys> {
    match version {
        Version::V4 => {
            let outer = ipv4::Header::read(packet)?;
            let header = quoted4(outer, packet).unwrap_or(outer);
            Some(Keys::of(Addresses::V4([header.src().octets(), header.dst().octets()])))
        }
        Version::V6 => {
            let outer = ipv6::Header::read(packet)?;
            let header = quoted6(outer, packet).unwrap_or(outer);
            let keys = Keys::of(Addresses::V6([header.src().octets(), header.dst().octets()]));
            Some(Keys { proto: header.next_header, label: header.flow_label().to_be_bytes(), ..keys })
        }
    }
}

/// The header that an ICMP error quotes.
fn quoted4<'p>(outer: &ipv4::Header, packet: &'p [u8]) -> Option<&'p ipv4::Header> {
    if outer.proto != proto::ICMP4 || outer.flags_offset() & ipv4::OFFSET != 0 {
        return None;
    }
    let message = packet.get(outer.header_len()..)?;
    if !icmp4::is_error(*message.first()?) {
        return None;
    }
    ipv4::Header::read(message.get(icmp4::LEN..)?)
}

fn quoted6<'p>(outer: &ipv6::Header, packet: &'p [u8]) -> Option<&'p ipv6::Header> {
    if outer.next_header != proto::ICMP6 {
        return None;
    }
    let message = packet.get(ipv6::LEN..)?;
    if !(icmp6::UNREACHABLE..=icmp6::PARAMETER_PROBLEM).contains(message.first()?) {
        return None;
    }
    ipv6::Header::read(message.get(icmp6::LEN..)?)
}

/// Policy 2: of an IPv4 packet the addresses, of an IPv6 one flow label and protocol too.
fn inner_addresses(mut keys: Keys) -> Keys {
    keys.ports = [[0; 2]; 2];
    if let Addresses::V4(_) = keys.addresses {
        (keys.proto, keys.label) = (0, [0; 4]);
    }
    keys
}

/// The fields of one packet, in the order: source, destination, protocol, flow label, source port, destination port.
type Fields = [HashField; 6];

const OUTER: Fields = {
    use HashField::*;
    [Source, Destination, Protocol, FlowLabel, SourcePort, DestinationPort]
};
const INNER: Fields = {
    use HashField::*;
    [InnerSource, InnerDestination, InnerProtocol, InnerFlowLabel, InnerSourcePort, InnerDestinationPort]
};

/// Policy 3.
fn custom(fields: u16, seed: u32, version: Version, packet: &[u8]) -> u32 {
    let any = |of: &Fields| of.iter().any(|field| field.is_in(fields));
    let (mut outer, mut encapsulated) = (0, true);
    if any(&OUTER) {
        let Found { keys, encapsulated: inner } = dissect(packet, version, Depth::Outer);
        outer = chosen(fields, &OUTER, keys).hash(seed);
        encapsulated = inner;
    }
    let mut inner = 0;
    if encapsulated && any(&INNER) {
        let found = dissect(packet, version, Depth::Inner);
        if found.encapsulated {
            inner = chosen(fields, &INNER, found.keys).hash(seed);
        }
    }
    jhash2(outer, inner)
}

/// The keys that are among `fields`.
fn chosen(fields: u16, of: &Fields, mut keys: Keys) -> Keys {
    let [source, destination, protocol, label, source_port, destination_port] = of.map(|field| field.is_in(fields));
    match &mut keys.addresses {
        Addresses::V4([src, dst]) => {
            *src = if source { *src } else { [0; 4] };
            *dst = if destination { *dst } else { [0; 4] };
            keys.label = [0; 4];
        }
        Addresses::V6([src, dst]) => {
            *src = if source { *src } else { [0; 16] };
            *dst = if destination { *dst } else { [0; 16] };
            keys.label = if label { keys.label } else { [0; 4] };
        }
    }
    keys.proto = if protocol { keys.proto } else { 0 };
    let [src, dst] = &mut keys.ports;
    *src = if source_port { *src } else { [0; 2] };
    *dst = if destination_port { *dst } else { [0; 2] };
    keys
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn any_bytes_have_a_hash_of_31_bits(mut packet in prop::collection::vec(any::<u8>(), 0..160), policy in 0u8..4, fields in any::<u16>(), v4 in any::<bool>()) {
            if let Some(first) = packet.first_mut() {
                *first = if v4 { 0x45 } else { 0x60 };
            }
            let multipath = Multipath { policy, fields };
            let settings = Settings { multipath4: multipath, multipath6: multipath, multipath_seed: 7, ..Settings::default() };
            let version = if v4 { Version::V4 } else { Version::V6 };
            prop_assert!(hash(&settings, version, &packet) < 1 << 31);
            prop_assert!(hash_own(&settings, version, &packet) < 1 << 31);
        }

        #[test]
        fn a_chain_of_any_headers_ends(first in any::<u8>(), kinds in prop::collection::vec(prop::sample::select(&[0u8, 4, 41, 43, 44, 47, 60][..]), 1..200)) {
            let mut packet = vec![0x60, 0, 0, 0, 0, 0, first, 64];
            packet.resize(ipv6::LEN, 1);
            kinds.iter().for_each(|kind| packet.extend([*kind, 0, 8, 0, 0x45, 0, 0, 0]));
            let settings = Settings { multipath6: Multipath { policy: 3, fields: u16::MAX }, ..Settings::default() };
            prop_assert!(hash(&settings, Version::V6, &packet) < 1 << 31);
        }
    }
}

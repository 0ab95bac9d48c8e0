//! Packets in a few words, for traces.

use std::fmt::Write;

use route::VLAN_NUMBER;
use wire::ext::{self, Target};
use wire::{EtherType, arp, icmp4, icmp6, ipv4, ipv6, proto, srh};

/// What an Ethernet frame carries, behind its tags.
pub(crate) fn payload(mut ethertype: EtherType, mut bytes: &[u8]) -> String {
    let mut tags = String::new();
    while let EtherType::VLAN | EtherType::QINQ = ethertype {
        let Some((&[a, b, c, d], behind)) = bytes.split_first_chunk() else { return tags + "cut VLAN tag" };
        let (control, service) = (u16::from_be_bytes([a, b]), if ethertype == EtherType::QINQ { "service " } else { "" });
        let _ = write!(tags, "{service}VLAN {} priority {}, ", control & VLAN_NUMBER, control >> 13);
        (ethertype, bytes) = (EtherType(u16::from_be_bytes([c, d])), behind);
    }
    tags + &untagged(ethertype, bytes)
}

fn untagged(ethertype: EtherType, bytes: &[u8]) -> String {
    match ethertype {
        EtherType::IPV4 => ip4(bytes),
        EtherType::IPV6 => ip6(bytes),
        EtherType::ARP => match arp::Packet::read(bytes) {
            Some(p) if p.operation() == arp::REQUEST => format!("ARP: who has {}, asks {}", p.target(), p.sender()),
            Some(p) => format!("ARP: {} is at {}", p.sender(), p.sender_mac),
            None => "malformed ARP".into(),
        },
        EtherType(other) => format!("EtherType {other:#06x}"),
    }
}

/// An IPv4 packet.
pub(crate) fn ip4(bytes: &[u8]) -> String {
    let Some(header) = ipv4::Header::read(bytes) else { return "cut IPv4 header".into() };
    let mut text = format!("IPv4 {} to {}, TTL {}, {}", header.src(), header.dst(), header.ttl, protocol(header.proto));
    if header.is_fragment() {
        let _ = write!(text, ", fragment at {}", usize::from(header.flags_offset() & ipv4::OFFSET) * 8);
    }
    text
}

/// An IPv6 packet.
pub(crate) fn ip6(bytes: &[u8]) -> String {
    let Some(header) = ipv6::Header::read(bytes) else { return "cut IPv6 header".into() };
    let mut text = format!("IPv6 {} to {}, hop limit {}", header.src(), header.dst(), header.hop_limit);
    if let Ok(found) = ext::find(bytes, Target::Proto(proto::ROUTING))
        && let Some(routing) = bytes.get(found.offset..).and_then(srh::Header::read)
    {
        let _ = write!(text, ", routing header type {}, segments left {}", routing.routing_type, routing.segments_left);
    }
    match ext::find(bytes, Target::Upper) {
        Ok(found) if found.fragment_offset != 0 => drop(write!(text, ", fragment at {}", found.fragment_offset)),
        Ok(found) => drop(write!(text, ", {}", protocol(found.proto))),
        Err(_) => text.push_str(", cut header chain"),
    }
    text
}

/// A protocol by name.
pub(crate) fn protocol(number: u8) -> String {
    match number {
        proto::ICMP4 => "ICMP".into(),
        proto::IPIP => "IPv4 inside".into(),
        proto::TCP => "TCP".into(),
        proto::UDP => "UDP".into(),
        proto::IPV6 => "IPv6 inside".into(),
        proto::ICMP6 => "ICMPv6".into(),
        proto::NONE => "no next header".into(),
        proto::ETHERNET => "Ethernet inside".into(),
        other => format!("protocol {other}"),
    }
}

/// An ICMP error by name.
pub(crate) fn error4(kind: u8, code: u8) -> String {
    use icmp4::unreachable as u;
    let name = match (kind, code) {
        (icmp4::UNREACHABLE, u::NET) => "network unreachable",
        (icmp4::UNREACHABLE, u::HOST) => "host unreachable",
        (icmp4::UNREACHABLE, u::PROTOCOL) => "protocol unreachable",
        (icmp4::UNREACHABLE, u::PORT) => "port unreachable",
        (icmp4::UNREACHABLE, u::FRAGMENTATION_NEEDED) => "fragmentation needed",
        (icmp4::UNREACHABLE, u::PROHIBITED) => "administratively prohibited",
        (icmp4::TIME_EXCEEDED, 0) => "time to live exceeded",
        (icmp4::TIME_EXCEEDED, _) => "reassembly time exceeded",
        (icmp4::PARAMETER_PROBLEM, _) => "parameter problem",
        (icmp4::REDIRECT, _) => "redirect",
        _ => "error",
    };
    format!("ICMP {name} (type {kind} code {code})")
}

/// An ICMPv6 error by name.
pub(crate) fn error6(kind: u8, code: u8) -> String {
    use icmp6::unreachable as u;
    let name = match (kind, code) {
        (icmp6::UNREACHABLE, u::NO_ROUTE) => "no route to destination",
        (icmp6::UNREACHABLE, u::PROHIBITED) => "administratively prohibited",
        (icmp6::UNREACHABLE, u::BEYOND_SCOPE) => "beyond scope of source address",
        (icmp6::UNREACHABLE, u::ADDRESS) => "address unreachable",
        (icmp6::UNREACHABLE, u::PORT) => "port unreachable",
        (icmp6::TOO_BIG, _) => "packet too big",
        (icmp6::TIME_EXCEEDED, icmp6::time_exceeded::HOP_LIMIT) => "hop limit exceeded",
        (icmp6::TIME_EXCEEDED, _) => "reassembly time exceeded",
        (icmp6::PARAMETER_PROBLEM, _) => "parameter problem",
        _ => "error",
    };
    format!("ICMPv6 {name} (type {kind} code {code})")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tags_stand_in_front_of_what_they_are_put_around() {
        let behind_type = [0, 100, 0x81, 0, 0xa0, 10, 0x08, 0x06];
        assert_eq!(payload(EtherType::QINQ, &behind_type), "service VLAN 100 priority 0, VLAN 10 priority 5, malformed ARP");
        assert_eq!(payload(EtherType::VLAN, &behind_type[..3]), "cut VLAN tag");
    }
}

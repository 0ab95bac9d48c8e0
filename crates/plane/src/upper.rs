//! Protocol and ports of a packet, as policy rules see them: what Linux's flow dissector finds.

use route::Upper;
use wire::{ipv4, ipv6, proto};

/// Extension headers that are passed on the way to the upper layer.
const MAX_HEADERS: usize = 14;

/// Those of an IPv4 packet. A fragment has a protocol and no ports, the first one too.
pub(crate) fn of4(packet: &[u8]) -> Upper {
    let Some(header) = ipv4::Header::read(packet) else { return Upper::default() };
    let protocol = header.proto;
    if header.is_fragment() { Upper { protocol, ..Upper::default() } } else { with_ports(packet, protocol, header.header_len()) }
}

/// Those of an IPv6 packet, behind hop-by-hop options, routing headers and destination options. A fragment has a protocol and no ports.
pub(crate) fn of6(packet: &[u8]) -> Upper {
    let Some(header) = ipv6::Header::read(packet) else { return Upper::default() };
    let (mut protocol, mut offset) = (header.next_header, ipv6::LEN);
    for _ in 0..MAX_HEADERS {
        match protocol {
            proto::HOP_BY_HOP | proto::ROUTING | proto::DEST_OPTS => {
                let Some(&[next, len]) = packet.get(offset..offset + 2) else { break };
                offset += (usize::from(len) + 1) * 8;
                protocol = next;
            }
            proto::FRAGMENT => {
                let protocol = packet.get(offset).copied().filter(|_| packet.len() >= offset + 8).unwrap_or(protocol);
                return Upper { protocol, ..Upper::default() };
            }
            _ => return with_ports(packet, protocol, offset),
        }
    }
    Upper { protocol, ..Upper::default() }
}

/// The ports at the front of the upper header, or what stands in their place: the SPI of IPsec.
fn with_ports(packet: &[u8], protocol: u8, offset: usize) -> Upper {
    const DCCP: u8 = 33;
    const SCTP: u8 = 132;
    let at = match protocol {
        proto::TCP | proto::UDP | DCCP | proto::ESP | SCTP | proto::UDP_LITE => offset,
        proto::AH => offset + 4,
        _ => return Upper { protocol, ..Upper::default() },
    };
    match packet.get(at..at + 4) {
        Some(&[a, b, c, d]) => Upper { protocol, sport: u16::from_be_bytes([a, b]), dport: u16::from_be_bytes([c, d]) },
        _ => Upper { protocol, ..Upper::default() },
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn six(first: u8, behind: &[u8]) -> Upper {
        let mut packet = vec![0; ipv6::LEN];
        packet[6] = first;
        packet.extend_from_slice(behind);
        of6(&packet)
    }

    #[test]
    fn ports_are_found_behind_extension_headers_and_not_in_fragments() {
        let udp = [0x11, 0x22, 0x33, 0x44, 0, 8, 0, 0];
        let found = Upper { protocol: proto::UDP, sport: 0x1122, dport: 0x3344 };
        assert_eq!(six(proto::UDP, &udp), found);
        let options = [[proto::UDP, 0, 1, 4, 0, 0, 0, 0], udp].concat();
        assert_eq!(six(proto::DEST_OPTS, &options), found);
        let fragment = [[proto::UDP, 0, 0, 1, 0, 0, 0, 7], udp].concat();
        assert_eq!(six(proto::FRAGMENT, &fragment), Upper { protocol: proto::UDP, ..Upper::default() });
        assert_eq!(six(proto::ICMP6, &udp), Upper { protocol: proto::ICMP6, ..Upper::default() });
        assert_eq!(six(proto::UDP, &udp[..3]), Upper { protocol: proto::UDP, ..Upper::default() });
    }

    #[test]
    fn a_chain_of_headers_without_end_or_beyond_the_packet_ends() {
        let endless = [[proto::DEST_OPTS, 0, 1, 4, 0, 0, 0, 0]; 40].concat();
        assert_eq!(six(proto::DEST_OPTS, &endless).protocol, proto::DEST_OPTS);
        assert_eq!(six(proto::ROUTING, &[proto::UDP, 255]).protocol, proto::UDP);
        assert_eq!(six(proto::ROUTING, &[proto::UDP]).protocol, proto::ROUTING);
    }
}

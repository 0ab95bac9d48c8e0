//! Frames of the sizes that the patch series measured, without payload.

use std::net::{Ipv4Addr, Ipv6Addr};

use wire::{EtherType, Mac, eth, ipv4, ipv6, proto, udp};
use zerocopy::IntoBytes;

const SOURCE4: Ipv4Addr = Ipv4Addr::new(10, 0, 0, 2);
const SOURCE6: Ipv6Addr = Ipv6Addr::new(0xfd00, 0, 0, 0, 0, 0, 0, 2);

fn frame(ethertype: EtherType, parts: &[&[u8]]) -> Vec<u8> {
    let header = eth::Header::new(Mac([2, 0, 0, 0, 0xe, 0]), Mac([2, 0, 0, 0, 0xf, 0]), ethertype);
    let mut bytes = header.as_bytes().to_vec();
    parts.iter().for_each(|part| bytes.extend_from_slice(part));
    bytes
}

fn header4(dst: Ipv4Addr) -> Vec<u8> {
    let mut header = ipv4::Header::new(SOURCE4, dst, proto::UDP, 64, (ipv4::LEN + udp::LEN) as u16).as_bytes().to_vec();
    ipv4::fill_checksum(&mut header);
    header
}

/// IPv4 and UDP: 42 bytes.
pub fn ip4(dst: Ipv4Addr) -> Vec<u8> {
    frame(EtherType::IPV4, &[&header4(dst), &[4, 87, 8, 174, 0, 8, 0, 0]])
}

/// IPv6 and UDP: 62 bytes.
pub fn ip6(dst: Ipv6Addr) -> Vec<u8> {
    let header = ipv6::Header::new(SOURCE6, dst, proto::UDP, 64, udp::LEN as u16);
    frame(EtherType::IPV6, &[header.as_bytes(), &[4, 87, 8, 174, 0, 8, 0, 0]])
}

/// The frame with a tag of VLAN 10: 4 bytes more.
pub fn tagged(mut frame: Vec<u8>) -> Vec<u8> {
    frame.splice(eth::LEN - 2..eth::LEN - 2, [0x81, 0, 0, 10]);
    frame
}

/// IPv6 with an SRH of two segments, one left: 94 bytes.
pub fn end(sid: Ipv6Addr, next: Ipv6Addr) -> Vec<u8> {
    let header = ipv6::Header::new(SOURCE6, sid, proto::ROUTING, 64, 40);
    let srh = [proto::NONE, 4, 4, 1, 1, 0, 0, 0];
    frame(EtherType::IPV6, &[header.as_bytes(), &srh, &next.octets(), &sid.octets()])
}

/// IPv6, IPv4 and UDP: 82 bytes.
pub fn decap4(sid: Ipv6Addr, dst: Ipv4Addr) -> Vec<u8> {
    let header = ipv6::Header::new(SOURCE6, sid, proto::IPIP, 64, 28);
    frame(EtherType::IPV6, &[header.as_bytes(), &header4(dst), &[4, 87, 8, 174, 0, 8, 0, 0]])
}

/// IPv6 in IPv6 and UDP: 102 bytes.
pub fn decap6(sid: Ipv6Addr, dst: Ipv6Addr) -> Vec<u8> {
    let header = ipv6::Header::new(SOURCE6, sid, proto::IPV6, 64, 48);
    frame(EtherType::IPV6, &[header.as_bytes(), &ip6(dst)[eth::LEN..]])
}

/// IPv6 and a TCP segment that opens a connection, without options: 74 bytes.
pub fn syn(dst: Ipv6Addr) -> Vec<u8> {
    let header = ipv6::Header::new(SOURCE6, dst, proto::TCP, 64, 20);
    let ports = [4, 87, 0, 80];
    let sequence = [0; 8];
    let syn = [5 << 4, 1 << 1, 0xff, 0xff, 0, 0, 0, 0];
    frame(EtherType::IPV6, &[header.as_bytes(), &ports, &sequence, &syn])
}

/// Frames of one length behind each other in memory, each at the beginning of a cache line or in its middle.
#[derive(Default)]
pub struct Frames {
    bytes: Vec<u8>,
    /// Length of a frame, bytes.
    len: usize,
    /// From a frame's beginning to the next one's.
    step: usize,
}

impl Frames {
    /// How many there are.
    pub fn len(&self) -> usize {
        self.bytes.len().checked_div(self.step).unwrap_or(0)
    }

    /// Length of each, bytes.
    pub fn frame_len(&self) -> usize {
        self.len
    }

    /// One of them.
    ///
    /// # Panics
    /// When there are not so many.
    #[inline]
    pub fn get(&self, n: usize) -> &[u8] {
        &self.bytes[n * self.step..][..self.len]
    }
}

impl FromIterator<Vec<u8>> for Frames {
    fn from_iter<I: IntoIterator<Item = Vec<u8>>>(frames: I) -> Frames {
        let mut all = Frames::default();
        for frame in frames {
            debug_assert!(all.len == 0 || all.len == frame.len(), "frames of one length");
            all.len = frame.len();
            all.step = frame.len().next_multiple_of(32);
            all.bytes.extend_from_slice(&frame);
            all.bytes.resize(all.bytes.len().next_multiple_of(all.step), 0);
        }
        all
    }
}

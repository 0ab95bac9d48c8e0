//! IPv4, IPv6 and the extension headers that are not routing headers.

use super::Context;
use crate::addr;
use std::net::{Ipv4Addr, Ipv6Addr};
use wire::checksum::Sum;
use wire::{ipv4, ipv6, proto};

/// An IPv4 header: TTL 64, identification 1, no flags.
#[derive(Clone, Debug)]
pub struct Ipv4 {
    src: Ipv4Addr,
    dst: Ipv4Addr,
    tos: u8,
    id: u16,
    flags_offset: u16,
    ttl: u8,
    options: Vec<u8>,
    protocol: Option<u8>,
    total_len: Option<u16>,
    checksum: Option<u16>,
}

impl Ipv4 {
    /// A header from `src` to `dst`.
    pub fn new(src: Ipv4Addr, dst: Ipv4Addr) -> Ipv4 {
        Ipv4 { src, dst, tos: 0, id: 1, flags_offset: 0, ttl: 64, options: Vec::new(), protocol: None, total_len: None, checksum: None }
    }

    /// A header between two hosts, where it does not matter which.
    pub fn test() -> Ipv4 {
        Ipv4::new(addr::v4(1), addr::v4(2))
    }

    /// DSCP and ECN.
    pub fn tos(mut self, tos: u8) -> Ipv4 {
        self.tos = tos;
        self
    }

    /// Identification of the datagram.
    pub fn id(mut self, id: u16) -> Ipv4 {
        self.id = id;
        self
    }

    /// Time to live, hops.
    pub fn ttl(mut self, ttl: u8) -> Ipv4 {
        self.ttl = ttl;
        self
    }

    /// Forbids fragmentation.
    pub fn dont_fragment(mut self) -> Ipv4 {
        self.flags_offset |= ipv4::DF;
        self
    }

    /// A fragment that begins `offset` bytes (a multiple of 8) into the datagram; `more` follow.
    pub fn fragment(mut self, offset: usize, more: bool) -> Ipv4 {
        self.flags_offset = (offset / 8) as u16 & ipv4::OFFSET | if more { ipv4::MF } else { 0 };
        self
    }

    /// Options, padded with end-of-list to a multiple of 4 bytes; at most 40.
    pub fn options(mut self, options: &[u8]) -> Ipv4 {
        self.options = options.to_vec();
        self.options.resize(options.len().next_multiple_of(4), 0);
        self
    }

    /// Another protocol than that of what is inside.
    pub fn protocol(mut self, protocol: u8) -> Ipv4 {
        self.protocol = Some(protocol);
        self
    }

    /// Another total length, bytes, than the true one.
    pub fn total_len(mut self, len: u16) -> Ipv4 {
        self.total_len = Some(len);
        self
    }

    /// Another checksum than the right one.
    pub fn checksum(mut self, checksum: u16) -> Ipv4 {
        self.checksum = Some(checksum);
        self
    }

    pub(super) fn src(&self) -> Ipv4Addr {
        self.src
    }

    pub(super) fn dst(&self) -> Ipv4Addr {
        self.dst
    }

    pub(super) fn wrap(&self, context: &Context<'_>, payload: &[u8]) -> Vec<u8> {
        let header_len = ipv4::LEN + self.options.len();
        let total_len = self.total_len.unwrap_or((header_len + payload.len()) as u16);
        let mut bytes = vec![0x40 | (header_len / 4) as u8, self.tos];
        bytes.extend_from_slice(&total_len.to_be_bytes());
        bytes.extend_from_slice(&self.id.to_be_bytes());
        bytes.extend_from_slice(&self.flags_offset.to_be_bytes());
        bytes.extend_from_slice(&[self.ttl, self.protocol.unwrap_or(context.next_header()), 0, 0]);
        bytes.extend_from_slice(&self.src.octets());
        bytes.extend_from_slice(&self.dst.octets());
        bytes.extend_from_slice(&self.options);
        let checksum = self.checksum.unwrap_or(Sum::default().bytes(&bytes).finish());
        bytes[10..12].copy_from_slice(&checksum.to_be_bytes());
        bytes.extend_from_slice(payload);
        bytes
    }
}

/// An IPv6 header: hop limit 64, traffic class and flow label 0.
#[derive(Clone, Debug)]
pub struct Ipv6 {
    src: Ipv6Addr,
    dst: Ipv6Addr,
    traffic_class: u8,
    flow_label: u32,
    hop_limit: u8,
    next_header: Option<u8>,
    payload_len: Option<u16>,
}

impl Ipv6 {
    /// A header from `src` to `dst`.
    pub fn new(src: Ipv6Addr, dst: Ipv6Addr) -> Ipv6 {
        Ipv6 { src, dst, traffic_class: 0, flow_label: 0, hop_limit: 64, next_header: None, payload_len: None }
    }

    /// A header between two hosts, where it does not matter which.
    pub fn test() -> Ipv6 {
        Ipv6::new(addr::v6(1), addr::v6(2))
    }

    /// DSCP and ECN.
    pub fn traffic_class(mut self, traffic_class: u8) -> Ipv6 {
        self.traffic_class = traffic_class;
        self
    }

    /// Flow label, 20 bits.
    pub fn flow_label(mut self, label: u32) -> Ipv6 {
        self.flow_label = label & 0xf_ffff;
        self
    }

    /// Hops left.
    pub fn hop_limit(mut self, hops: u8) -> Ipv6 {
        self.hop_limit = hops;
        self
    }

    /// Another next header than that of what is inside.
    pub fn next_header(mut self, number: u8) -> Ipv6 {
        self.next_header = Some(number);
        self
    }

    /// Another payload length, bytes, than the true one.
    pub fn payload_len(mut self, len: u16) -> Ipv6 {
        self.payload_len = Some(len);
        self
    }

    pub(super) fn src(&self) -> Ipv6Addr {
        self.src
    }

    pub(super) fn dst(&self) -> Ipv6Addr {
        self.dst
    }

    pub(super) fn wrap(&self, context: &Context<'_>, payload: &[u8]) -> Vec<u8> {
        let flow = 6 << 28 | u32::from(self.traffic_class) << 20 | self.flow_label;
        let mut bytes = Vec::with_capacity(ipv6::LEN + payload.len());
        bytes.extend_from_slice(&flow.to_be_bytes());
        bytes.extend_from_slice(&self.payload_len.unwrap_or(payload.len() as u16).to_be_bytes());
        bytes.extend_from_slice(&[self.next_header.unwrap_or(context.next_header()), self.hop_limit]);
        bytes.extend_from_slice(&self.src.octets());
        bytes.extend_from_slice(&self.dst.octets());
        bytes.extend_from_slice(payload);
        bytes
    }
}

/// Hop-by-hop or destination options (RFC 8200 §4.2), padded to a multiple of 8 bytes.
#[derive(Clone, Debug)]
pub struct Options {
    protocol: u8,
    options: Vec<u8>,
}

impl Options {
    /// A hop-by-hop options header around `options` (type, length, data each).
    pub fn hop_by_hop(options: &[u8]) -> Options {
        Options { protocol: proto::HOP_BY_HOP, options: options.to_vec() }
    }

    /// A destination options header around `options`.
    pub fn destination(options: &[u8]) -> Options {
        Options { protocol: proto::DEST_OPTS, options: options.to_vec() }
    }

    pub(super) fn protocol(&self) -> u8 {
        self.protocol
    }

    pub(super) fn wrap(&self, context: &Context<'_>, payload: &[u8]) -> Vec<u8> {
        let mut bytes = vec![context.next_header(), 0];
        bytes.extend_from_slice(&self.options);
        super::srh::pad(&mut bytes, 1);
        bytes[1] = (bytes.len() / 8 - 1) as u8;
        bytes.extend_from_slice(payload);
        bytes
    }
}

/// An IPv6 fragment header (RFC 8200 §4.5).
#[derive(Clone, Debug)]
pub struct Fragment {
    offset: usize,
    more: bool,
    id: u32,
    next_header: Option<u8>,
}

impl Fragment {
    /// A fragment of datagram `id` that begins `offset` bytes (a multiple of 8) into it; `more` follow.
    pub fn new(id: u32, offset: usize, more: bool) -> Fragment {
        Fragment { offset, more, id, next_header: None }
    }

    /// Another next header than that of what is inside: later fragments carry bytes of no protocol.
    pub fn next_header(mut self, number: u8) -> Fragment {
        self.next_header = Some(number);
        self
    }

    pub(super) fn wrap(&self, context: &Context<'_>, payload: &[u8]) -> Vec<u8> {
        let offset_more = (self.offset as u16 & 0xfff8) | u16::from(self.more);
        let mut bytes = vec![self.next_header.unwrap_or(context.next_header()), 0];
        bytes.extend_from_slice(&offset_more.to_be_bytes());
        bytes.extend_from_slice(&self.id.to_be_bytes());
        bytes.extend_from_slice(payload);
        bytes
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::frame::Udp;

    #[test]
    fn options_fill_whole_words_and_the_header_says_so() {
        let packet = (Ipv4::test().options(&[7, 7, 4, 0, 0, 0, 0]) / Udp::new(1, 2)).bytes();
        assert_eq!((packet[0], packet.len()), (0x47, 28 + 8));
        let packet = (Ipv6::test() / Options::hop_by_hop(&[5, 2, 0, 0]) / Udp::new(1, 2)).bytes();
        assert_eq!(&packet[40..48], [17, 0, 5, 2, 0, 0, 1, 0]);
    }

    #[test]
    fn a_fragment_counts_its_offset_in_bytes() {
        let packet = (Ipv6::test() / Fragment::new(0x0102_0304, 1232, true).next_header(17) / b"12345678").bytes();
        assert_eq!(&packet[40..48], [17, 0, 0x04, 0xd1, 1, 2, 3, 4]);
        let packet = (Ipv4::test().fragment(1480, false) / b"x").bytes();
        assert_eq!(&packet[6..8], [0, 185]);
    }
}

//! Internet Protocol version 6 (RFC 8200).

use core::net::Ipv6Addr;
use zerocopy::{FromBytes, Immutable, IntoBytes, KnownLayout, Unaligned, big_endian::U16, big_endian::U32};

/// Bytes of the fixed header.
pub const LEN: usize = 40;
/// Smallest MTU a link may have, bytes (RFC 8200 §5).
pub const MIN_MTU: usize = 1280;

/// ```text
/// | version, traffic class, flow label | payload length | next header | hop limit |
/// | source (16) | destination (16) |
/// ```
#[derive(Clone, Copy, Debug, FromBytes, IntoBytes, Immutable, KnownLayout, Unaligned)]
#[repr(C)]
pub struct Header {
    flow: U32,
    payload_len: U16,
    /// Protocol of what follows.
    pub next_header: u8,
    /// Hops left.
    pub hop_limit: u8,
    src: [u8; 16],
    dst: [u8; 16],
}

impl Header {
    /// A header with traffic class and flow label zero; `payload_len` in bytes without this header.
    pub fn new(src: Ipv6Addr, dst: Ipv6Addr, next_header: u8, hop_limit: u8, payload_len: u16) -> Header {
        Header { flow: U32::new(6 << 28), payload_len: U16::new(payload_len), next_header, hop_limit, src: src.octets(), dst: dst.octets() }
    }

    /// The header at the front of `bytes`; none when there are fewer than 40. The version is not checked here.
    #[inline]
    pub fn read(bytes: &[u8]) -> Option<&Header> {
        Header::ref_from_prefix(bytes).ok().map(|(header, _)| header)
    }

    /// As [`Header::read`], to be changed in place.
    #[inline]
    pub fn read_mut(bytes: &mut [u8]) -> Option<&mut Header> {
        Header::mut_from_prefix(bytes).ok().map(|(header, _)| header)
    }

    /// The version nibble, 6 in a good packet.
    #[inline]
    pub fn version(&self) -> u8 {
        (self.flow.get() >> 28) as u8
    }

    /// Traffic class: DSCP in the six high bits, ECN in the two low ones.
    #[inline]
    pub fn traffic_class(&self) -> u8 {
        (self.flow.get() >> 20) as u8
    }

    /// Flow label, 20 bits.
    #[inline]
    pub fn flow_label(&self) -> u32 {
        self.flow.get() & 0xf_ffff
    }

    /// Sets traffic class and flow label (its 20 low bits).
    #[inline]
    pub fn set_flow(&mut self, traffic_class: u8, flow_label: u32) {
        self.flow = U32::new(6 << 28 | u32::from(traffic_class) << 20 | flow_label & 0xf_ffff);
    }

    /// Bytes after this header.
    #[inline]
    pub fn payload_len(&self) -> usize {
        usize::from(self.payload_len.get())
    }

    /// Sets the bytes after this header.
    #[inline]
    pub fn set_payload_len(&mut self, len: u16) {
        self.payload_len = U16::new(len);
    }

    /// Source address.
    #[inline]
    pub fn src(&self) -> Ipv6Addr {
        Ipv6Addr::from(self.src)
    }

    /// Destination address.
    #[inline]
    pub fn dst(&self) -> Ipv6Addr {
        Ipv6Addr::from(self.dst)
    }

    /// Sets the source address.
    #[inline]
    pub fn set_src(&mut self, src: Ipv6Addr) {
        self.src = src.octets();
    }

    /// Sets the destination address.
    #[inline]
    pub fn set_dst(&mut self, dst: Ipv6Addr) {
        self.dst = dst.octets();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn traffic_class_and_flow_label_do_not_disturb_each_other() {
        let mut header = Header::new(Ipv6Addr::LOCALHOST, Ipv6Addr::LOCALHOST, 59, 64, 0);
        header.set_flow(0xb9, 0x1_2345);
        assert_eq!((header.version(), header.traffic_class(), header.flow_label()), (6, 0xb9, 0x1_2345));
    }
}

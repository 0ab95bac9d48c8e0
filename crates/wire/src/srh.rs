//! The segment routing header (RFC 8754 §2).

use core::net::Ipv6Addr;
use zerocopy::{FromBytes, Immutable, IntoBytes, KnownLayout, Unaligned, big_endian::U16};

/// Bytes before the segment list.
pub const LEN: usize = 8;
/// Routing type of a segment routing header.
pub const TYPE: u8 = 4;
/// TLV type of padding of N bytes.
pub const TLV_PADN: u8 = 4;
/// TLV type of an HMAC.
pub const TLV_HMAC: u8 = 5;

/// ```text
/// | next header | length (8 bytes, less one) | type 4 | segments left |
/// | last entry  | flags | tag                                         |
/// | segment list[0] (16) … segment list[last entry]                   |
/// | TLVs                                                              |
/// ```
#[derive(Clone, Copy, Debug, FromBytes, IntoBytes, Immutable, KnownLayout, Unaligned)]
#[repr(C)]
pub struct Header {
    /// Protocol of what follows the routing header.
    pub next_header: u8,
    /// Length in units of 8 bytes, the first 8 not counted.
    pub hdr_ext_len: u8,
    /// Routing type: [`TYPE`] for an SRH.
    pub routing_type: u8,
    /// Index of the active segment.
    pub segments_left: u8,
    /// Index of the last entry of the segment list.
    pub last_entry: u8,
    /// Flags, bit 3 (0x08) was HMAC in drafts; unused today.
    pub flags: u8,
    /// Tag of a group of packets.
    pub tag: U16,
}

impl Header {
    /// The header at the front of `bytes`; none when there are fewer than 8.
    #[inline]
    pub fn read(bytes: &[u8]) -> Option<&Header> {
        Header::ref_from_prefix(bytes).ok().map(|(header, _)| header)
    }

    /// As [`Header::read`], to be changed in place.
    #[inline]
    pub fn read_mut(bytes: &mut [u8]) -> Option<&mut Header> {
        Header::mut_from_prefix(bytes).ok().map(|(header, _)| header)
    }

    /// Length of the whole routing header, bytes.
    #[inline]
    pub fn len(&self) -> usize {
        (usize::from(self.hdr_ext_len) + 1) * 8
    }

    /// Never: the header counts itself.
    pub fn is_empty(&self) -> bool {
        false
    }
}

/// Segment `index` of the SRH at the front of `srh`; none when it lies outside the bytes.
#[inline]
pub fn segment(srh: &[u8], index: u8) -> Option<Ipv6Addr> {
    let at = LEN + usize::from(index) * 16;
    let octets: [u8; 16] = srh.get(at..at + 16)?.try_into().ok()?;
    Some(Ipv6Addr::from(octets))
}

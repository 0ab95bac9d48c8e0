//! The IPv6 fragment header (RFC 8200 §4.5).

use zerocopy::{FromBytes, Immutable, IntoBytes, KnownLayout, Unaligned, big_endian::U16, big_endian::U32};

/// Bytes of the header.
pub const LEN: usize = 8;

/// ```text
/// | next header | reserved | offset (13), reserved (2), M | identification |
/// ```
#[derive(Clone, Copy, Debug, FromBytes, IntoBytes, Immutable, KnownLayout, Unaligned)]
#[repr(C)]
pub struct Header {
    /// Protocol of the fragmented part's first header.
    pub next_header: u8,
    /// Not used, ignored on receipt.
    pub reserved: u8,
    /// Offset in bytes in the 13 high bits, M in the lowest.
    pub offset_more: U16,
    /// Identification.
    pub id: U32,
}

impl Header {
    /// The header at the front of `bytes`; none when there are fewer than 8.
    pub fn read(bytes: &[u8]) -> Option<&Header> {
        Header::ref_from_prefix(bytes).ok().map(|(header, _)| header)
    }

    /// Offset of this piece, bytes.
    pub fn offset(&self) -> usize {
        usize::from(self.offset_more.get() & 0xfff8)
    }

    /// More pieces follow.
    pub fn more(&self) -> bool {
        self.offset_more.get() & 1 != 0
    }
}

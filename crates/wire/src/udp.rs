//! User Datagram Protocol (RFC 768).

use zerocopy::{FromBytes, Immutable, IntoBytes, KnownLayout, Unaligned, big_endian::U16};

/// Bytes of a header.
pub const LEN: usize = 8;

/// Source port, destination port, length with this header, checksum (0: none, over IPv4 only).
#[derive(Clone, Copy, Debug, FromBytes, IntoBytes, Immutable, KnownLayout, Unaligned)]
#[repr(C)]
pub struct Header {
    /// Source port.
    pub src: U16,
    /// Destination port.
    pub dst: U16,
    /// Length with this header, bytes.
    pub len: U16,
    /// Checksum over pseudo header, header and data.
    pub checksum: U16,
}

impl Header {
    /// The header at the front of `bytes`; none when there are fewer than 8.
    pub fn read(bytes: &[u8]) -> Option<&Header> {
        Header::ref_from_prefix(bytes).ok().map(|(header, _)| header)
    }
}

//! ICMP for IPv4 (RFC 792): the eight bytes common to what a router sends and answers.

use zerocopy::{FromBytes, Immutable, IntoBytes, KnownLayout, Unaligned, big_endian::U16};

/// Bytes of the common header.
pub const LEN: usize = 8;
/// Echo reply.
pub const ECHO_REPLY: u8 = 0;
/// Destination unreachable.
pub const UNREACHABLE: u8 = 3;
/// Source quench (deprecated by RFC 6633).
pub const SOURCE_QUENCH: u8 = 4;
/// Redirect.
pub const REDIRECT: u8 = 5;
/// Echo request.
pub const ECHO: u8 = 8;
/// Time exceeded.
pub const TIME_EXCEEDED: u8 = 11;
/// Parameter problem.
pub const PARAMETER_PROBLEM: u8 = 12;
/// Timestamp request.
pub const TIMESTAMP: u8 = 13;
/// Time stamp reply.
pub const TIMESTAMP_REPLY: u8 = 14;
/// Highest type number of RFC 792 and RFC 950.
pub const MAX_TYPE: u8 = 18;

/// Codes of destination unreachable.
pub mod unreachable {
    /// No route to the network.
    pub const NET: u8 = 0;
    /// The host does not answer.
    pub const HOST: u8 = 1;
    /// Nobody takes this protocol.
    pub const PROTOCOL: u8 = 2;
    /// Nobody listens at this port.
    pub const PORT: u8 = 3;
    /// Too big, and DF is set.
    pub const FRAGMENTATION_NEEDED: u8 = 4;
    /// A source route failed.
    pub const SOURCE_ROUTE: u8 = 5;
    /// Administratively prohibited.
    pub const PROHIBITED: u8 = 13;
}

/// True of the types that report an error (RFC 1812 §4.3.2.7: never answered by another error).
pub fn is_error(kind: u8) -> bool {
    matches!(kind, UNREACHABLE | SOURCE_QUENCH | REDIRECT | TIME_EXCEEDED | PARAMETER_PROBLEM)
}

/// Type, code, checksum and four bytes whose meaning depends on the type.
#[derive(Clone, Copy, Debug, FromBytes, IntoBytes, Immutable, KnownLayout, Unaligned)]
#[repr(C)]
pub struct Header {
    /// Type.
    pub kind: u8,
    /// Code.
    pub code: u8,
    /// Checksum over the message.
    pub checksum: U16,
    /// Identifier and sequence, gateway, MTU or pointer.
    pub rest: [u8; 4],
}

impl Header {
    /// The header at the front of `bytes`; none when there are fewer than 8.
    pub fn read(bytes: &[u8]) -> Option<&Header> {
        Header::ref_from_prefix(bytes).ok().map(|(header, _)| header)
    }
}

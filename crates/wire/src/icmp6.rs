//! ICMP for IPv6 (RFC 4443) and neighbour discovery (RFC 4861): types, codes, the common header, the messages a router makes.

use core::net::Ipv6Addr;
use zerocopy::{FromBytes, Immutable, IntoBytes, KnownLayout, Unaligned, big_endian::U16};

/// Bytes of the common header.
pub const LEN: usize = 8;
/// Destination unreachable.
pub const UNREACHABLE: u8 = 1;
/// Packet too big.
pub const TOO_BIG: u8 = 2;
/// Time exceeded.
pub const TIME_EXCEEDED: u8 = 3;
/// Parameter problem.
pub const PARAMETER_PROBLEM: u8 = 4;
/// Echo request.
pub const ECHO: u8 = 128;
/// Echo reply.
pub const ECHO_REPLY: u8 = 129;
/// Router solicitation.
pub const ROUTER_SOLICITATION: u8 = 133;
/// Neighbour solicitation.
pub const NEIGHBOUR_SOLICITATION: u8 = 135;
/// Neighbour advertisement.
pub const NEIGHBOUR_ADVERTISEMENT: u8 = 136;
/// Redirect.
pub const REDIRECT: u8 = 137;

/// Codes of destination unreachable.
pub mod unreachable {
    /// No route to the destination.
    pub const NO_ROUTE: u8 = 0;
    /// Administratively prohibited.
    pub const PROHIBITED: u8 = 1;
    /// Beyond the scope of the source address.
    pub const BEYOND_SCOPE: u8 = 2;
    /// The address does not answer.
    pub const ADDRESS: u8 = 3;
    /// Nobody listens at this port.
    pub const PORT: u8 = 4;
    /// The source address failed the ingress policy.
    pub const POLICY: u8 = 5;
    /// A reject route.
    pub const REJECT: u8 = 6;
}

/// Codes of time exceeded.
pub mod time_exceeded {
    /// Hop limit exceeded in transit.
    pub const HOP_LIMIT: u8 = 0;
    /// Fragment reassembly time exceeded.
    pub const REASSEMBLY: u8 = 1;
}

/// Codes of parameter problem.
pub mod parameter {
    /// Erroneous header field.
    pub const FIELD: u8 = 0;
    /// Unrecognised next header.
    pub const NEXT_HEADER: u8 = 1;
    /// Unrecognised option.
    pub const OPTION: u8 = 2;
    /// The first fragment has an incomplete header chain (RFC 7112).
    pub const INCOMPLETE_CHAIN: u8 = 3;
}

/// True of the types that report an error: below 128 (RFC 4443 §2.1).
pub fn is_error(kind: u8) -> bool {
    kind < 128
}

/// Type, code, checksum and four bytes whose meaning depends on the type.
#[derive(Clone, Copy, Debug, FromBytes, IntoBytes, Immutable, KnownLayout, Unaligned)]
#[repr(C)]
pub struct Header {
    /// Type.
    pub kind: u8,
    /// Code.
    pub code: u8,
    /// Checksum over pseudo header and message.
    pub checksum: U16,
    /// Identifier and sequence, MTU, pointer or flags.
    pub rest: [u8; 4],
}

impl Header {
    /// The header at the front of `bytes`; none when there are fewer than 8.
    pub fn read(bytes: &[u8]) -> Option<&Header> {
        Header::ref_from_prefix(bytes).ok().map(|(header, _)| header)
    }
}

/// The solicited-node group of an address (RFC 4291 §2.7.1).
pub fn solicited_node(address: Ipv6Addr) -> Ipv6Addr {
    let o = address.octets();
    Ipv6Addr::from([0xff, 2, 0, 0, 0, 0, 0, 0, 0, 0, 0, 1, 0xff, o[13], o[14], o[15]])
}

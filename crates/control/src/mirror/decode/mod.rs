//! The kernel's messages, one file a kind, read into plain values.
//!
//! Decoders never panic and lose as little as they can: an attribute that is unknown is passed over where it cannot change what a packet's way is,
//! and one that is broken makes the thing it belongs to [`Unsupported`](super::Reason::Malformed), not the message.

pub mod address;
pub mod encap;
pub mod link;
pub mod message;
pub mod neighbour;
pub mod nexthop;
pub mod route;
pub mod rule;
pub mod seg6;
pub mod seg6local;
pub mod shared;

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

/// `AF_INET`.
pub const AF_INET: u8 = 2;
/// `AF_INET6`.
pub const AF_INET6: u8 = 10;

/// The attributes in `bytes`, type (without its flags) and value, up to the first that leaves the message.
pub fn attributes(bytes: &[u8]) -> impl Iterator<Item = (u16, &[u8])> {
    /// All but `NLA_F_NESTED` and `NLA_F_NET_BYTEORDER`.
    const TYPE: u16 = 0x3fff;
    let mut rest = bytes;
    std::iter::from_fn(move || {
        let length = usize::from(u16_at(rest, 0)?);
        let attribute = (u16_at(rest, 2)? & TYPE, rest.get(4..length)?);
        rest = rest.get(length.next_multiple_of(4)..).unwrap_or_default();
        Some(attribute)
    })
}

/// The value of the first attribute of this type.
pub fn attribute(bytes: &[u8], kind: u16) -> Option<&[u8]> {
    attributes(bytes).find(|(found, _)| *found == kind).map(|(_, value)| value)
}

/// The byte at this place.
pub fn u8_at(bytes: &[u8], at: usize) -> Option<u8> {
    bytes.get(at).copied()
}

/// The number of 16 bits at this place, in host order.
pub fn u16_at(bytes: &[u8], at: usize) -> Option<u16> {
    Some(u16::from_ne_bytes(*bytes.get(at..)?.first_chunk()?))
}

/// The number of 32 bits at this place, in host order.
pub fn u32_at(bytes: &[u8], at: usize) -> Option<u32> {
    Some(u32::from_ne_bytes(*bytes.get(at..)?.first_chunk()?))
}

/// A value that is one number of 32 bits, in host order.
pub fn u32_of(value: &[u8]) -> Option<u32> {
    Some(u32::from_ne_bytes(value.try_into().ok()?))
}

/// A value that is a string, its closing zero left out.
pub fn text(value: &[u8]) -> Option<&str> {
    let end = value.iter().position(|byte| *byte == 0).unwrap_or(value.len());
    std::str::from_utf8(value.get(..end)?).ok()
}

/// A value that is an address of either family, told by its length.
pub fn ip(value: &[u8]) -> Option<IpAddr> {
    match value.len() {
        4 => Ipv4Addr::read(value).map(IpAddr::V4),
        16 => Ipv6Addr::read(value).map(IpAddr::V6),
        _ => None,
    }
}

/// An address family, as messages name and hold its addresses.
pub trait Family: ::route::Family {
    /// Its number in messages.
    const NUMBER: u8;

    /// A value that is an address of this family.
    fn read(value: &[u8]) -> Option<Self>;
}

impl Family for Ipv4Addr {
    const NUMBER: u8 = AF_INET;

    fn read(value: &[u8]) -> Option<Ipv4Addr> {
        Some(Ipv4Addr::from(<[u8; 4]>::try_from(value).ok()?))
    }
}

impl Family for Ipv6Addr {
    const NUMBER: u8 = AF_INET6;

    fn read(value: &[u8]) -> Option<Ipv6Addr> {
        Some(Ipv6Addr::from(<[u8; 16]>::try_from(value).ok()?))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn attributes_end_where_one_leaves_the_message() {
        let bytes = [8, 0, 1, 0, 1, 2, 3, 4, 5, 0, 2, 0, 9, 0, 0, 0, 200, 0, 3, 0, 1];
        assert_eq!(attributes(&bytes).collect::<Vec<_>>(), [(1, &[1, 2, 3, 4][..]), (2, &[9][..])]);
        assert_eq!(attributes(&[0, 0, 1, 0]).count(), 0);
        assert_eq!((u32_at(&bytes, 18), u32_of(&[1, 2]), text(b"e0\0x"), ip(&[1; 5])), (None, None, Some("e0"), None));
    }
}

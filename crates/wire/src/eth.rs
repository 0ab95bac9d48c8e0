//! Ethernet II: destination, source, type (IEEE 802.3 §3.2).

use core::fmt;
use core::str::FromStr;
use zerocopy::{FromBytes, Immutable, IntoBytes, KnownLayout, Unaligned, big_endian::U16};

/// Bytes of an Ethernet header without tags.
pub const LEN: usize = 14;

/// An Ethernet address.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default, FromBytes, IntoBytes, Immutable, KnownLayout, Unaligned)]
#[repr(transparent)]
pub struct Mac(pub [u8; 6]);

impl Mac {
    /// All ones: every station.
    pub const BROADCAST: Mac = Mac([0xff; 6]);

    /// Group bit set: multicast or broadcast.
    pub fn is_group(self) -> bool {
        self.0[0] & 1 != 0
    }

    /// All zeros.
    pub fn is_zero(self) -> bool {
        self.0 == [0; 6]
    }

    /// The group address that carries an IPv6 multicast destination (RFC 2464 §7).
    pub fn for_ipv6_group(group: core::net::Ipv6Addr) -> Mac {
        let o = group.octets();
        Mac([0x33, 0x33, o[12], o[13], o[14], o[15]])
    }

    /// The group address that carries an IPv4 multicast destination (RFC 1112 §6.4).
    pub fn for_ipv4_group(group: core::net::Ipv4Addr) -> Mac {
        let o = group.octets();
        Mac([0x01, 0x00, 0x5e, o[1] & 0x7f, o[2], o[3]])
    }
}

impl fmt::Display for Mac {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let [a, b, c, d, e, g] = self.0;
        write!(f, "{a:02x}:{b:02x}:{c:02x}:{d:02x}:{e:02x}:{g:02x}")
    }
}

impl fmt::Debug for Mac {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

/// The text is not six hexadecimal octets with colons between them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct BadMac;

impl FromStr for Mac {
    type Err = BadMac;

    fn from_str(text: &str) -> Result<Mac, BadMac> {
        let mut octets = [0; 6];
        let mut parts = text.split(':');
        for octet in &mut octets {
            let part = parts.next().ok_or(BadMac)?;
            if part.is_empty() || part.len() > 2 {
                return Err(BadMac);
            }
            *octet = u8::from_str_radix(part, 16).map_err(|_| BadMac)?;
        }
        if parts.next().is_some() { Err(BadMac) } else { Ok(Mac(octets)) }
    }
}

/// The type field of an Ethernet header, host order.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct EtherType(pub u16);

impl EtherType {
    /// Internet Protocol version 4.
    pub const IPV4: EtherType = EtherType(0x0800);
    /// Address Resolution Protocol.
    pub const ARP: EtherType = EtherType(0x0806);
    /// IEEE 802.1Q customer tag.
    pub const VLAN: EtherType = EtherType(0x8100);
    /// IEEE 802.1ad service tag.
    pub const QINQ: EtherType = EtherType(0x88a8);
    /// Internet Protocol version 6.
    pub const IPV6: EtherType = EtherType(0x86dd);

    /// Below 0x600 the field is an IEEE 802.3 length, not a type.
    pub fn is_length(self) -> bool {
        self.0 < 0x600
    }
}

/// ```text
///  0                   6                  12     14
/// +-------------------+-------------------+------+
/// | destination       | source            | type |
/// +-------------------+-------------------+------+
/// ```
#[derive(Clone, Copy, Debug, FromBytes, IntoBytes, Immutable, KnownLayout, Unaligned)]
#[repr(C)]
pub struct Header {
    /// Destination station.
    pub dst: Mac,
    /// Source station.
    pub src: Mac,
    ethertype: U16,
}

impl Header {
    /// A header ready to be written.
    pub fn new(dst: Mac, src: Mac, ethertype: EtherType) -> Header {
        Header { dst, src, ethertype: U16::new(ethertype.0) }
    }

    /// The header at the front of `bytes`; none when there are fewer than 14.
    #[inline]
    pub fn read(bytes: &[u8]) -> Option<&Header> {
        Header::ref_from_prefix(bytes).ok().map(|(header, _)| header)
    }

    /// As [`Header::read`], to be changed in place.
    #[inline]
    pub fn read_mut(bytes: &mut [u8]) -> Option<&mut Header> {
        Header::mut_from_prefix(bytes).ok().map(|(header, _)| header)
    }

    /// The type field.
    #[inline]
    pub fn ethertype(&self) -> EtherType {
        EtherType(self.ethertype.get())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    extern crate std;
    use std::string::ToString;

    #[test]
    fn a_mac_reads_back_as_it_prints() {
        let mac = Mac([2, 0, 0, 0, 0xe, 0xff]);
        assert_eq!(mac.to_string(), "02:00:00:00:0e:ff");
        assert_eq!("02:00:00:00:0e:ff".parse(), Ok(mac));
        assert_eq!("02:00:00:00:0e".parse::<Mac>(), Err(BadMac));
        assert_eq!("02:00:00:00:0e:ff:1".parse::<Mac>(), Err(BadMac));
    }

    #[test]
    fn a_short_frame_has_no_header() {
        assert!(Header::read(&[0; 13]).is_none());
    }
}

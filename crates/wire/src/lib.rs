//! Packet headers as typed views of bytes, and Internet checksums.
//!
//! Every view is obtained by a checked read (`Header::read`, `Header::read_mut`) that fails on short input; a view once obtained never panics.
//! Multi-byte fields are in network order on the wire and in host order at the accessors. The crate needs no allocator and no operating system.
#![no_std]
#![forbid(unsafe_code)]

pub mod arp;
pub mod checksum;
pub mod eth;
pub mod ext;
pub mod frag;
pub mod icmp4;
pub mod icmp6;
pub mod ipv4;
pub mod ipv6;
pub mod srh;
pub mod udp;

pub use eth::{EtherType, Mac};

/// Internet protocol numbers, as in an IPv4 header's protocol or an IPv6 header's next header (IANA, host order).
pub mod proto {
    /// IPv6 hop-by-hop options (RFC 8200 §4.3).
    pub const HOP_BY_HOP: u8 = 0;
    /// ICMP for IPv4 (RFC 792).
    pub const ICMP4: u8 = 1;
    /// IGMP (RFC 3376).
    pub const IGMP: u8 = 2;
    /// IPv4 inside IP (RFC 2003).
    pub const IPIP: u8 = 4;
    /// TCP (RFC 9293).
    pub const TCP: u8 = 6;
    /// UDP (RFC 768).
    pub const UDP: u8 = 17;
    /// IPv6 inside IP (RFC 2473).
    pub const IPV6: u8 = 41;
    /// IPv6 routing header (RFC 8200 §4.4).
    pub const ROUTING: u8 = 43;
    /// IPv6 fragment header (RFC 8200 §4.5).
    pub const FRAGMENT: u8 = 44;
    /// Encapsulating security payload (RFC 4303).
    pub const ESP: u8 = 50;
    /// Authentication header (RFC 4302).
    pub const AH: u8 = 51;
    /// ICMP for IPv6 (RFC 4443).
    pub const ICMP6: u8 = 58;
    /// No next header (RFC 8200 §4.7).
    pub const NONE: u8 = 59;
    /// IPv6 destination options (RFC 8200 §4.6).
    pub const DEST_OPTS: u8 = 60;
    /// Mobility header (RFC 6275).
    pub const MOBILITY: u8 = 135;
    /// Protocol independent multicast (RFC 7761).
    pub const PIM: u8 = 103;
    /// UDP-Lite (RFC 3828).
    pub const UDP_LITE: u8 = 136;
    /// An Ethernet frame inside IPv6 (RFC 8986 §9).
    pub const ETHERNET: u8 = 143;
}

//! Frames built layer by layer, as Scapy writes them:
//!
//! ```
//! use testkit::addr;
//! use testkit::frame::{Ether, Ipv6, Srh, Udp};
//!
//! let path = [addr::sid(1), addr::sid(2)];
//! let frame = (Ether::new(addr::mac(1), addr::mac(2)) / Ipv6::new(addr::v6(1), path[0]).hop_limit(9) / Srh::through(&path) / Udp::new(1111, 2222)
//!     / b"payload")
//!     .bytes();
//! assert_eq!(frame.len(), 14 + 40 + 40 + 8 + 7);
//! ```
//!
//! Lengths, next headers and checksums are right unless a setter says otherwise, so a test shows exactly what is wrong with its packet.

mod ip;
mod link;
mod srh;
mod upper;

pub use ip::{Fragment, Ipv4, Ipv6, Options};
pub use link::{Ether, Vlan};
pub use srh::{Hash, Srh};
pub use upper::{Icmp4, Icmp6, Tcp, Udp};

use std::net::Ipv6Addr;
use std::ops::Div;
use wire::checksum::Sum;
use wire::{EtherType, proto};

/// One header, or the bytes at the end.
#[derive(Clone, Debug)]
pub enum Layer {
    /// Ethernet header.
    Ether(Ether),
    /// IEEE 802.1Q tag.
    Vlan(Vlan),
    /// IPv4 header with options.
    Ipv4(Ipv4),
    /// IPv6 header.
    Ipv6(Ipv6),
    /// Segment routing header.
    Srh(Srh),
    /// Hop-by-hop or destination options.
    Options(Options),
    /// IPv6 fragment header.
    Fragment(Fragment),
    /// UDP header.
    Udp(Udp),
    /// TCP header without options.
    Tcp(Tcp),
    /// ICMP header.
    Icmp4(Icmp4),
    /// ICMPv6 header.
    Icmp6(Icmp6),
    /// Any bytes.
    Raw(Vec<u8>),
}

/// Headers on top of each other, the outermost first.
#[derive(Clone, Debug, Default)]
pub struct Frame {
    layers: Vec<Layer>,
}

/// What a layer has to know of what stands around it.
pub(crate) struct Context<'a> {
    /// The layers outside this one, the outermost first.
    outside: &'a [Layer],
    /// The layer right inside, if any.
    inside: Option<&'a Layer>,
}

impl Frame {
    /// The bytes as they go over the wire.
    pub fn bytes(&self) -> Vec<u8> {
        let mut bytes = Vec::new();
        for (index, layer) in self.layers.iter().enumerate().rev() {
            let context = Context { outside: &self.layers[..index], inside: self.layers.get(index + 1) };
            bytes = layer.wrap(&context, bytes);
        }
        bytes
    }

    /// The layers, the outermost first: to be put inside another frame.
    pub fn into_layers(self) -> Vec<Layer> {
        self.layers
    }
}

impl Layer {
    /// This layer in front of `payload`.
    fn wrap(&self, context: &Context<'_>, payload: Vec<u8>) -> Vec<u8> {
        match self {
            Layer::Ether(layer) => layer.wrap(context, &payload),
            Layer::Vlan(layer) => layer.wrap(context, &payload),
            Layer::Ipv4(layer) => layer.wrap(context, &payload),
            Layer::Ipv6(layer) => layer.wrap(context, &payload),
            Layer::Srh(layer) => layer.wrap(context, &payload),
            Layer::Options(layer) => layer.wrap(context, &payload),
            Layer::Fragment(layer) => layer.wrap(context, &payload),
            Layer::Udp(layer) => layer.wrap(context, &payload),
            Layer::Tcp(layer) => layer.wrap(context, &payload),
            Layer::Icmp4(layer) => layer.wrap(&payload),
            Layer::Icmp6(layer) => layer.wrap(context, &payload),
            Layer::Raw(bytes) => [bytes.clone(), payload].concat(),
        }
    }

    /// The number by which an IP header announces this layer.
    fn protocol(&self) -> u8 {
        match self {
            Layer::Ether(_) => proto::ETHERNET,
            Layer::Ipv4(_) => proto::IPIP,
            Layer::Ipv6(_) => proto::IPV6,
            Layer::Srh(_) => proto::ROUTING,
            Layer::Options(options) => options.protocol(),
            Layer::Fragment(_) => proto::FRAGMENT,
            Layer::Udp(_) => proto::UDP,
            Layer::Tcp(_) => proto::TCP,
            Layer::Icmp4(_) => proto::ICMP4,
            Layer::Icmp6(_) => proto::ICMP6,
            Layer::Vlan(_) | Layer::Raw(_) => proto::NONE,
        }
    }

    /// The number by which an Ethernet header announces this layer; the one for local experiments where there is none.
    fn ethertype(&self) -> EtherType {
        match self {
            Layer::Vlan(_) => EtherType::VLAN,
            Layer::Ipv4(_) => EtherType::IPV4,
            Layer::Ipv6(_) => EtherType::IPV6,
            _ => EtherType(0x88b5),
        }
    }
}

impl Context<'_> {
    /// The protocol number of what is inside; "no next header" when nothing is.
    fn next_header(&self) -> u8 {
        self.inside.map_or(proto::NONE, Layer::protocol)
    }

    /// The type of what is inside.
    fn ethertype(&self) -> EtherType {
        self.inside.map_or(EtherType(0x88b5), Layer::ethertype)
    }

    /// The checksum's pseudo header for an upper layer of `len` bytes: with the final destination where a routing header has segments left
    /// (RFC 8200 §8.1). Empty when no IP header is outside.
    fn pseudo(&self, protocol: u8, len: usize) -> Sum {
        let mut last_segment = None;
        for layer in self.outside.iter().rev() {
            match layer {
                Layer::Srh(srh) => last_segment = srh.last_segment().or(last_segment),
                Layer::Ipv4(ip) => return Sum::pseudo4(ip.src(), ip.dst(), protocol, len),
                Layer::Ipv6(ip) => return Sum::pseudo6(ip.src(), last_segment.unwrap_or(ip.dst()), protocol, len),
                _ => {}
            }
        }
        Sum::default()
    }

    /// The source address of the IPv6 header that an extension header belongs to.
    fn ipv6_source(&self) -> Option<Ipv6Addr> {
        self.outside.iter().rev().find_map(|layer| match layer {
            Layer::Ipv6(ip) => Some(ip.src()),
            _ => None,
        })
    }
}

impl<L: Into<Layer>> Div<L> for Frame {
    type Output = Frame;

    fn div(mut self, layer: L) -> Frame {
        self.layers.push(layer.into());
        self
    }
}

macro_rules! layers {
    ($($name:ident)*) => {$(
        impl From<$name> for Layer {
            fn from(layer: $name) -> Layer {
                Layer::$name(layer)
            }
        }

        impl<L: Into<Layer>> Div<L> for $name {
            type Output = Frame;

            fn div(self, layer: L) -> Frame {
                Frame { layers: vec![self.into(), layer.into()] }
            }
        }
    )*};
}

layers!(Ether Vlan Ipv4 Ipv6 Srh Options Fragment Udp Tcp Icmp4 Icmp6);

impl From<&[u8]> for Layer {
    fn from(bytes: &[u8]) -> Layer {
        Layer::Raw(bytes.to_vec())
    }
}

impl<const N: usize> From<&[u8; N]> for Layer {
    fn from(bytes: &[u8; N]) -> Layer {
        Layer::Raw(bytes.to_vec())
    }
}

impl From<Vec<u8>> for Layer {
    fn from(bytes: Vec<u8>) -> Layer {
        Layer::Raw(bytes)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::addr;

    #[test]
    fn the_upper_checksum_covers_the_last_segment_not_the_active_one() {
        let path = [addr::sid(1), addr::sid(2), addr::sid(3)];
        let packet = (Ipv6::new(addr::v6(1), path[0]) / Srh::through(&path) / Udp::new(1111, 2222) / b"odd").bytes();
        let udp = &packet[40 + 8 + 48..];
        assert!(Sum::pseudo6(addr::v6(1), path[2], proto::UDP, udp.len()).bytes(udp).is_valid());
    }

    #[test]
    fn next_headers_and_lengths_follow_from_what_is_inside() {
        let inner = Ipv4::new(addr::v4(1), addr::v4(2)) / Udp::new(1, 2) / b"data";
        let outer = Ether::test() / Ipv6::new(addr::v6(1), addr::v6(2));
        let frame = inner.into_layers().into_iter().fold(outer, |frame, layer| frame / layer).bytes();
        assert_eq!(&frame[12..14], [0x86, 0xdd]);
        assert_eq!((frame[14 + 6], &frame[14 + 4..14 + 6]), (proto::IPIP, &[0, 32][..]));
        assert_eq!((frame[54 + 9], &frame[54 + 2..54 + 4]), (proto::UDP, &[0, 32][..]));
        assert!(Sum::default().bytes(&frame[54..74]).is_valid());
    }
}

//! Which flow a packet is of, as Linux's flow dissector sees it: the way through its headers, and what is taken from them.

use wire::{EtherType, eth, frag, ipv4, ipv6, proto};

use super::hash::{Addresses, Keys};
use crate::packet::Version;

/// Headers that are looked at after the first: the kernel's own limit.
const MAX_HEADERS: u8 = 15;
const GRE: u8 = 47;
const DCCP: u8 = 33;
const SCTP: u8 = 132;
/// A bridged Ethernet frame inside GRE.
const BRIDGED: EtherType = EtherType(0x6558);
/// PPP inside the GRE of PPTP (RFC 2637).
const PPP: EtherType = EtherType(0x880b);

/// How far to look.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Depth {
    /// Up to the first tunnel.
    Outer,
    /// Through tunnels.
    Inner,
}

/// What was found.
#[derive(Clone, Copy, Debug)]
pub(super) struct Found {
    pub(super) keys: Keys,
    /// A tunnel was found.
    pub(super) encapsulated: bool,
}

/// What to look at next.
enum Next {
    /// A packet of this type.
    Packet(EtherType),
    /// A header of this protocol.
    Header(u8),
    /// Nothing.
    End,
}

struct Walk<'p> {
    packet: &'p [u8],
    at: usize,
    depth: Depth,
    /// The header behind belongs to an IPv6 packet.
    v6: bool,
    encapsulated: bool,
    keys: Keys,
}

/// Looks through a packet that starts with its IP header; whatever its version field says, it is of `version`.
pub(super) fn dissect(packet: &[u8], version: Version, depth: Depth) -> Found {
    let (first, none) = match version {
        Version::V4 => (EtherType::IPV4, Addresses::V4([[0; 4]; 2])),
        Version::V6 => (EtherType::IPV6, Addresses::V6([[0; 16]; 2])),
    };
    let mut walk = Walk { packet, at: 0, depth, v6: false, encapsulated: false, keys: Keys::of(none) };
    let mut next = Next::Packet(first);
    for _ in 0..=MAX_HEADERS {
        next = match next {
            // A packet's first header is seen together with it.
            Next::Packet(ethertype) => match walk.packet(ethertype) {
                Next::Header(number) => walk.header(number),
                other => other,
            },
            Next::Header(number) => walk.header(number),
            Next::End => break,
        };
    }
    Found { keys: walk.keys, encapsulated: walk.encapsulated }
}

impl Walk<'_> {
    fn packet(&mut self, ethertype: EtherType) -> Next {
        match ethertype {
            EtherType::IPV4 => self.ipv4(),
            EtherType::IPV6 => self.ipv6(),
            EtherType::VLAN | EtherType::QINQ => {
                let Some(inner) = self.bytes::<2>(2) else { return Next::End };
                self.at += 4;
                Next::Packet(EtherType(u16::from_be_bytes(inner)))
            }
            _ => Next::End,
        }
    }

    fn ipv4(&mut self) -> Next {
        let Some(header) = self.rest().and_then(ipv4::Header::read).filter(|header| header.header_len() >= ipv4::LEN) else {
            return Next::End;
        };
        let (len, fragment, number) = (header.header_len(), header.is_fragment(), header.proto);
        self.keys.addresses = Addresses::V4([header.src().octets(), header.dst().octets()]);
        self.keys.proto = number;
        self.at += len;
        self.v6 = false;
        if fragment { Next::End } else { Next::Header(number) }
    }

    fn ipv6(&mut self) -> Next {
        let Some(header) = self.rest().and_then(ipv6::Header::read) else { return Next::End };
        let (number, label) = (header.next_header, header.flow_label());
        self.keys.addresses = Addresses::V6([header.src().octets(), header.dst().octets()]);
        self.keys.proto = number;
        if label != 0 {
            self.keys.label = label.to_le_bytes();
        }
        self.at += ipv6::LEN;
        self.v6 = true;
        Next::Header(number)
    }

    fn header(&mut self, number: u8) -> Next {
        self.keys.proto = number;
        match number {
            GRE => self.gre(),
            proto::HOP_BY_HOP | proto::ROUTING | proto::DEST_OPTS if self.v6 => {
                let Some([next, len]) = self.bytes::<2>(0) else { return Next::End };
                self.at += (usize::from(len) + 1) * 8;
                self.keys.proto = next;
                // Even if the walk ends here because there were too many.
                self.ports(next);
                Next::Header(next)
            }
            proto::FRAGMENT if self.v6 => {
                if let Some(header) = self.rest().and_then(frag::Header::read) {
                    self.keys.proto = header.next_header;
                }
                Next::End
            }
            proto::IPIP => self.tunnel(EtherType::IPV4),
            proto::IPV6 => self.tunnel(EtherType::IPV6),
            _ => {
                self.ports(number);
                Next::End
            }
        }
    }

    fn tunnel(&mut self, inner: EtherType) -> Next {
        self.encapsulated = true;
        if self.depth == Depth::Outer { Next::End } else { Next::Packet(inner) }
    }

    /// RFC 2784, RFC 2890, and RFC 2637 §4.1.
    fn gre(&mut self) -> Next {
        let Some([flags, version, a, b]) = self.bytes::<4>(0) else { return Next::End };
        let (checksum, routing, key, sequence, acknowledgement) =
            (flags & 0x80 != 0, flags & 0x40 != 0, flags & 0x20 != 0, flags & 0x10 != 0, version & 0x80 != 0);
        let (version, mut inner) = (version & 7, EtherType(u16::from_be_bytes([a, b])));
        if routing || version > 1 || version == 1 && !(inner == PPP && key) {
            return Next::End;
        }
        let mut len = 4 + 4 * (usize::from(checksum) + usize::from(key) + usize::from(sequence));
        if version == 1 {
            len += 4 * usize::from(acknowledgement);
            let Some([_, _, a, b]) = self.bytes::<4>(len) else { return Next::End };
            inner = match [a, b] {
                [0x00, 0x21] => EtherType::IPV4,
                [0x00, 0x57] => EtherType::IPV6,
                _ => inner,
            };
            len += 4;
        } else if inner == BRIDGED {
            let Some([a, b]) = self.bytes::<2>(len + 12) else { return Next::End };
            inner = EtherType(u16::from_be_bytes([a, b]));
            len += eth::LEN;
        }
        self.at += len;
        self.tunnel(inner)
    }

    /// The four bytes that stand for the ports.
    fn ports(&mut self, number: u8) {
        let at = match number {
            proto::TCP | proto::UDP | proto::UDP_LITE | proto::ESP | DCCP | SCTP => 0,
            proto::AH => 4,
            _ => return,
        };
        if let Some([a, b, c, d]) = self.bytes::<4>(at) {
            self.keys.ports = [[a, b], [c, d]];
        }
    }

    fn rest(&self) -> Option<&[u8]> {
        self.packet.get(self.at..)
    }

    fn bytes<const N: usize>(&self, at: usize) -> Option<[u8; N]> {
        self.packet.get(self.at.checked_add(at)?..)?.first_chunk().copied()
    }
}

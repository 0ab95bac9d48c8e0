//! What IPv4 answers have in common: a header with the options that go back to the sender (RFC 1122 §3.2.2.6).

use std::net::Ipv4Addr;

use port::Buf;
use wire::ipv4;
use zerocopy::IntoBytes;

use super::Host;
use crate::context::Context;
use crate::options4::{self, Echoed, Here};
use crate::packet::Packet;

/// The header of a packet that the router makes.
pub(super) struct Head4<'a> {
    pub(super) proto: u8,
    pub(super) source: Ipv4Addr,
    pub(super) to: Ipv4Addr,
    pub(super) tos: u8,
    /// At most 40 bytes, a multiple of 4.
    pub(super) options: &'a [u8],
}

impl Head4<'_> {
    /// Bytes of the header.
    pub(super) fn len(&self) -> usize {
        ipv4::LEN + self.options.len()
    }
}

impl Host {
    /// A packet with this header, identification and checksum not yet set, and `len` zero bytes behind it.
    pub(super) fn packet4(&mut self, cx: &Context<'_, '_>, head: &Head4<'_>, len: usize) -> Buf {
        let total = head.len() + len;
        let mut buf = self.blank(total);
        let mut header = ipv4::Header::new(head.source, head.to, head.proto, cx.settings.default_ttl, total.min(65535) as u16);
        header.set_header_len(head.len());
        header.tos = head.tos;
        buf[..ipv4::LEN].copy_from_slice(header.as_bytes());
        buf[ipv4::LEN..head.len()].copy_from_slice(head.options);
        buf
    }
}

/// The options of an answer from `source` to `packet`. None when one has no room for what the way back adds: then there is no answer.
pub(super) fn carried_back(cx: &Context<'_, '_>, packet: &Packet, source: Ipv4Addr) -> Option<Echoed> {
    let here =
        Here { address: &|| source, is_elsewhere: &|addr| !cx.is_here(addr), milliseconds: options4::milliseconds_of_day(packet.time) };
    options4::echo(&packet.buf, &packet.options.unwrap_or_default(), &here)
}

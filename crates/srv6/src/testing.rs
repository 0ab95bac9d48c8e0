//! Packets for tests. The addresses differ in every 16-bit word, so that nothing swapped goes unnoticed.

use std::net::Ipv6Addr;

use port::Buf;
use wire::{ipv6, proto};

use crate::{Env, FlowLabel, HmacKeys};

pub const SOURCE: Ipv6Addr = Ipv6Addr::new(0x2001, 0xdb8, 0x11, 0x12, 0x13, 0x14, 0x15, 0x16);
pub const SID: Ipv6Addr = Ipv6Addr::new(0xfc00, 0x21, 0x22, 0x23, 0x24, 0x25, 0x26, 0x27);
pub const MIDDLE: Ipv6Addr = Ipv6Addr::new(0xfc01, 0x31, 0x32, 0x33, 0x34, 0x35, 0x36, 0x37);
pub const LAST: Ipv6Addr = Ipv6Addr::new(0xfc02, 0x41, 0x42, 0x43, 0x44, 0x45, 0x46, 0x47);
pub const OTHER: Ipv6Addr = Ipv6Addr::new(0xfd03, 0x51, 0x52, 0x53, 0x54, 0x55, 0x56, 0x57);
pub const TUNSRC: Ipv6Addr = Ipv6Addr::new(0xfd04, 0x61, 0x62, 0x63, 0x64, 0x65, 0x66, 0x67);

static NO_KEYS: HmacKeys = HmacKeys::new();

/// Surroundings without keys, with the kernel's defaults.
pub fn env() -> Env<'static> {
    env_with(&NO_KEYS)
}

pub fn env_with(hmac_keys: &HmacKeys) -> Env<'_> {
    Env { hmac_keys, require_hmac: 0, flow_label: FlowLabel::Inherit, flow_hash: |_| 0xabc_dabcd, tunsrc: TUNSRC, l2_len: 0 }
}

/// An IPv6 packet under construction, from [`SOURCE`].
#[derive(Clone)]
pub struct Packet {
    ip: ipv6::Header,
    headers: Vec<(u8, Vec<u8>)>,
}

impl Packet {
    pub fn to(dst: Ipv6Addr) -> Packet {
        Packet { ip: ipv6::Header::new(SOURCE, dst, proto::NONE, 64, 0), headers: Vec::new() }
    }

    pub fn from(mut self, src: Ipv6Addr) -> Packet {
        self.ip.set_src(src);
        self
    }

    pub fn hop_limit(mut self, hop_limit: u8) -> Packet {
        self.ip.hop_limit = hop_limit;
        self
    }

    pub fn flow(mut self, traffic_class: u8, flow_label: u32) -> Packet {
        self.ip.set_flow(traffic_class, flow_label);
        self
    }

    /// An extension header; its first byte is filled in.
    pub fn header(mut self, number: u8, bytes: &[u8]) -> Packet {
        self.headers.push((number, bytes.to_vec()));
        self
    }

    /// An SRH with its segment list as on the wire: the last segment of the way first.
    pub fn srh(self, segments_left: u8, entries: &[Ipv6Addr]) -> Packet {
        let mut bytes = vec![0, entries.len() as u8 * 2, 4, segments_left, entries.len() as u8 - 1, 0, 0, 0];
        entries.iter().for_each(|entry| bytes.extend_from_slice(&entry.octets()));
        self.header(proto::ROUTING, &bytes)
    }

    /// The payload, last of all.
    pub fn carrying(self, number: u8, bytes: &[u8]) -> Packet {
        self.header(number, bytes)
    }

    pub fn build(mut self) -> Buf {
        let numbers: Vec<u8> = self.headers.iter().map(|(number, _)| *number).collect();
        let payload = self.headers.len() - 1;
        for ((_, bytes), next) in self.headers[..payload].iter_mut().zip(&numbers[1..]) {
            bytes[0] = *next;
        }
        let payload: Vec<u8> = self.headers.into_iter().flat_map(|(_, bytes)| bytes).collect();
        self.ip.next_header = numbers[0];
        self.ip.set_payload_len(payload.len() as u16);
        let mut buf = Buf::from_bytes(zerocopy_bytes(&self.ip));
        buf.append(&payload);
        buf
    }
}

fn zerocopy_bytes(header: &ipv6::Header) -> &[u8] {
    zerocopy::IntoBytes::as_bytes(header)
}

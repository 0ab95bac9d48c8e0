//! UDP, TCP, ICMP and ICMPv6.

use super::Context;
use wire::checksum::Sum;
use wire::{icmp4, icmp6, proto};

/// Sets the checksum at `at` over `bytes` and the pseudo header; 0 is sent as 0xffff when `never_zero` (UDP: zero would mean there is none).
fn seal(bytes: &mut [u8], at: usize, pseudo: Sum, never_zero: bool) {
    let mut checksum = pseudo.bytes(bytes).finish();
    if checksum == 0 && never_zero {
        checksum = 0xffff;
    }
    bytes[at..at + 2].copy_from_slice(&checksum.to_be_bytes());
}

/// A UDP header.
#[derive(Clone, Debug)]
pub struct Udp {
    src: u16,
    dst: u16,
    checksum: Option<u16>,
}

impl Udp {
    /// A header from port `src` to port `dst`.
    pub fn new(src: u16, dst: u16) -> Udp {
        Udp { src, dst, checksum: None }
    }

    /// Another checksum than the right one; 0 says there is none.
    pub fn checksum(mut self, checksum: u16) -> Udp {
        self.checksum = Some(checksum);
        self
    }

    pub(super) fn wrap(&self, context: &Context<'_>, payload: &[u8]) -> Vec<u8> {
        let len = 8 + payload.len();
        let checksum = self.checksum.unwrap_or(0);
        let mut bytes = Vec::with_capacity(len);
        for field in [self.src, self.dst, len as u16, checksum] {
            bytes.extend_from_slice(&field.to_be_bytes());
        }
        bytes.extend_from_slice(payload);
        if self.checksum.is_none() {
            seal(&mut bytes, 6, context.pseudo(proto::UDP, len), true);
        }
        bytes
    }
}

/// A TCP header of 20 bytes.
#[derive(Clone, Debug)]
pub struct Tcp {
    src: u16,
    dst: u16,
    flags: u8,
}

impl Tcp {
    /// The first segment of a connection from port `src` to port `dst`.
    pub fn syn(src: u16, dst: u16) -> Tcp {
        Tcp { src, dst, flags: 0x02 }
    }

    pub(super) fn wrap(&self, context: &Context<'_>, payload: &[u8]) -> Vec<u8> {
        let mut bytes = [self.src.to_be_bytes(), self.dst.to_be_bytes()].concat();
        bytes.extend_from_slice(&[0, 0, 0, 1, 0, 0, 0, 0, 0x50, self.flags, 0xff, 0xff, 0, 0, 0, 0]);
        bytes.extend_from_slice(payload);
        seal(&mut bytes, 16, context.pseudo(proto::TCP, 20 + payload.len()), false);
        bytes
    }
}

/// Type, code, checksum and the four bytes whose meaning depends on the type.
fn icmp(kind: u8, code: u8, rest: u32, payload: &[u8]) -> Vec<u8> {
    let mut bytes = vec![kind, code, 0, 0];
    bytes.extend_from_slice(&rest.to_be_bytes());
    bytes.extend_from_slice(payload);
    bytes
}

/// An ICMP header (RFC 792).
#[derive(Clone, Debug)]
pub struct Icmp4 {
    kind: u8,
    code: u8,
    rest: u32,
}

impl Icmp4 {
    /// An echo request.
    pub fn echo(id: u16, sequence: u16) -> Icmp4 {
        Icmp4 { kind: icmp4::ECHO, code: 0, rest: u32::from(id) << 16 | u32::from(sequence) }
    }

    /// An error of type `kind`; `rest` is the word before the quoted packet (pointer, next-hop MTU, gateway).
    pub fn error(kind: u8, code: u8, rest: u32) -> Icmp4 {
        Icmp4 { kind, code, rest }
    }

    pub(super) fn wrap(&self, payload: &[u8]) -> Vec<u8> {
        let mut bytes = icmp(self.kind, self.code, self.rest, payload);
        seal(&mut bytes, 2, Sum::default(), false);
        bytes
    }
}

/// An ICMPv6 header (RFC 4443).
#[derive(Clone, Debug)]
pub struct Icmp6 {
    kind: u8,
    code: u8,
    rest: u32,
}

impl Icmp6 {
    /// An echo request.
    pub fn echo(id: u16, sequence: u16) -> Icmp6 {
        Icmp6 { kind: icmp6::ECHO, code: 0, rest: u32::from(id) << 16 | u32::from(sequence) }
    }

    /// An error of type `kind`; `rest` is the word before the quoted packet (MTU, pointer).
    pub fn error(kind: u8, code: u8, rest: u32) -> Icmp6 {
        Icmp6 { kind, code, rest }
    }

    pub(super) fn wrap(&self, context: &Context<'_>, payload: &[u8]) -> Vec<u8> {
        let mut bytes = icmp(self.kind, self.code, self.rest, payload);
        let pseudo = context.pseudo(proto::ICMP6, bytes.len());
        seal(&mut bytes, 2, pseudo, false);
        bytes
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::addr;
    use crate::frame::{Ipv4, Ipv6};

    #[test]
    fn checksums_are_right_over_both_pseudo_headers() {
        let four = (Ipv4::new(addr::v4(1), addr::v4(2)) / Udp::new(1, 2) / b"abc").bytes();
        assert!(Sum::pseudo4(addr::v4(1), addr::v4(2), proto::UDP, 11).bytes(&four[20..]).is_valid());
        let six = (Ipv6::new(addr::v6(1), addr::v6(2)) / Icmp6::echo(1, 2) / b"abc").bytes();
        assert!(Sum::pseudo6(addr::v6(1), addr::v6(2), proto::ICMP6, 11).bytes(&six[40..]).is_valid());
        let tcp = (Ipv6::new(addr::v6(1), addr::v6(2)) / Tcp::syn(1, 2)).bytes();
        assert!(Sum::pseudo6(addr::v6(1), addr::v6(2), proto::TCP, 20).bytes(&tcp[40..]).is_valid());
    }

    #[test]
    fn a_udp_checksum_can_be_left_out() {
        let packet = (Ipv4::test() / Udp::new(1, 2).checksum(0) / b"abc").bytes();
        assert_eq!(&packet[26..28], [0, 0]);
    }
}

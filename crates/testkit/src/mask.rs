//! What a router may choose freely, or what differs between two boots of the same Linux, set to zero before two frames are compared.

mod guest;
mod lab;
mod one_boot;

use crate::tags;

/// Which recording a group of golden cases comes from, and so what is masked.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Mask {
    /// All cases from one boot: only the IPv4 identification of packets the router makes and the IPv4 time stamps are masked.
    OneBoot,
    /// Cases from guests: flow labels and fragment identifications of packets the router makes are masked as well.
    Guest,
    /// Cases that `against_kernel` recorded: as [`Mask::OneBoot`], and flow labels and fragment identifications of packets the router makes.
    Lab,
}

impl Mask {
    /// The mask for a group, the first part of a case's name.
    pub fn of_group(group: &str) -> Mask {
        match group {
            "srv6_end" | "srv6_headend" | "srv6_csid" | "ip4_forward" | "ip6_forward" | "rules" | "ecmp" | "vxlan" => Mask::OneBoot,
            group if group.ends_with("_more") => Mask::Lab,
            _ => Mask::Guest,
        }
    }

    /// Sets the free fields of an Ethernet frame to zero.
    pub fn apply(self, frame: &mut [u8]) {
        let tags = tags::len(frame);
        let frame = &mut frame[tags..];
        match self {
            Mask::OneBoot => one_boot::apply(frame),
            Mask::Guest => guest::apply(frame),
            Mask::Lab => lab::apply(frame),
        }
    }
}

/// ICMP error messages (RFC 792, RFC 1812 §4.3.1) and echo replies: what a router writes itself.
const ICMP4_OF_ROUTERS: &[u8] = &[0, 3, 5, 11, 12];

/// The byte at `at`; none when it lies outside.
fn byte(bytes: &[u8], at: usize) -> Option<u8> {
    bytes.get(at).copied()
}

/// The big-endian word at `at`; none when it lies outside.
fn word(bytes: &[u8], at: usize) -> Option<u16> {
    Some(u16::from_be_bytes(bytes.get(at..at + 2)?.try_into().ok()?))
}

/// Sets `len` bytes at `at` to zero, as far as they are there.
fn zero(bytes: &mut [u8], at: usize, len: usize) {
    let end = (at + len).min(bytes.len());
    if let Some(field) = bytes.get_mut(at..end) {
        field.fill(0);
    }
}

/// Keeps of a UDP checksum only whether there is one (RFC 768: zero says there is none).
fn checksum_presence(bytes: &mut [u8], at: usize) {
    if let Some(field) = bytes.get_mut(at..at + 2) {
        let there = if *field == [0, 0] { 0 } else { 0xff };
        field.fill(there);
    }
}

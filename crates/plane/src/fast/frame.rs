//! Packets in their frames: both headers with one look at the length.

use wire::{eth, ipv4, ipv6};
use zerocopy::{FromBytes, Immutable, IntoBytes, KnownLayout, Unaligned};

/// An IPv6 packet in its frame.
#[derive(FromBytes, IntoBytes, KnownLayout, Immutable, Unaligned)]
#[repr(C)]
pub(super) struct Frame6 {
    pub(super) eth: eth::Header,
    pub(super) ip: ipv6::Header,
}

/// An IPv4 packet in its frame.
#[derive(FromBytes, IntoBytes, KnownLayout, Immutable, Unaligned)]
#[repr(C)]
pub(super) struct Frame4 {
    pub(super) eth: eth::Header,
    pub(super) ip: ipv4::Header,
}

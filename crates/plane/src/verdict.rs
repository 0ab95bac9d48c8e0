//! What is to happen to a packet. Deciding returns a [`Verdict`]; [`crate::host`] performs it.

use std::net::IpAddr;

use route::{DropReason, DstRef, IfIndex};
use srv6::{Lookup4, Lookup6};

/// The outcome of looking at a packet.
#[derive(Debug)]
pub(crate) enum Verdict<'g> {
    /// Ask for a route of the IPv6 packet.
    Route6(Lookup6),
    /// Ask for a route of the IPv4 packet.
    Route4(Lookup4),
    /// Ask for its route again in its turn among the packets of the burst: which way it takes depends on what becomes of those before it.
    Turn6(Lookup6),
    /// As `Turn6` for an IPv4 packet.
    Turn4(Lookup4),
    /// Send it on.
    Forward(Forward<'g>),
    /// Send the Ethernet frame as it is.
    Frame(IfIndex),
    /// It is for the router: its IPv6 upper layer.
    Deliver6(DstRef<'g>),
    /// It is for the router: its IPv4 upper layer. True: it was sent to a broadcast or multicast address.
    Deliver4(bool),
    /// An ARP packet.
    Arp,
    /// It is the kernel's to go on with.
    Kernel,
    /// Drop it and tell the source.
    Error(IcmpError, DropReason),
    /// Drop it.
    Drop(DropReason),
}

/// A packet that is ready to leave but for its Ethernet header (and fragmentation, in IPv4).
#[derive(Debug)]
pub(crate) struct Forward<'g> {
    pub(crate) dst: DstRef<'g>,
    /// The interface out.
    pub(crate) dev: IfIndex,
    /// The neighbour it goes to; one that stands in `dst` as a gateway is used from there.
    pub(crate) to: IpAddr,
    /// Which of the route's ways it takes.
    pub(crate) hop: u16,
    /// MTU of the way out, bytes.
    pub(crate) mtu: u32,
    /// The source should be told of a better way.
    pub(crate) redirect: bool,
}

/// An ICMP or ICMPv6 error, by the version of the packet it is about.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct IcmpError {
    pub(crate) kind: u8,
    pub(crate) code: u8,
    /// The four bytes behind the checksum: MTU, pointer or gateway, in host order.
    pub(crate) info: u32,
    /// An IPv4 unreachable of the route itself, which has a rate limit of its own.
    pub(crate) route: bool,
}

impl IcmpError {
    pub(crate) const fn new(kind: u8, code: u8, info: u32) -> IcmpError {
        IcmpError { kind, code, info, route: false }
    }
}

//! What the plane does next with a packet that a behaviour has processed.

use std::net::{Ipv4Addr, Ipv6Addr};

use route::{DropReason, IfIndex, TableId};

/// What is at the front of the buffer now, and where it goes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Next {
    /// Ask for a route to the destination that the IPv6 packet has now, which must not be the router itself: [`Next::Route6`] of the default
    /// [`Lookup6`], and what most packets want, without the words of its wishes.
    Onward,
    /// An IPv6 packet, to be routed.
    Route6(Lookup6),
    /// An IPv4 packet, to be routed. Nothing of its header has been checked but that it is there.
    Route4(Lookup4),
    /// An Ethernet frame, to be sent as it is. The sender checks that the port is up, of Ethernet, and that the frame fits its MTU.
    Frame {
        /// The port to send it out of.
        port: IfIndex,
    },
}

/// How to route an IPv6 packet.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Lookup6 {
    /// Look this address up instead of the destination; when it is on link the packet is sent to this neighbour.
    pub nexthop: Option<Ipv6Addr>,
    /// Only routes out of this device.
    pub oif: Option<IfIndex>,
    /// Only this table, without rules.
    pub table: Option<TableId>,
    /// The packet enters the VRF of this table: as if it had come in there.
    pub vrf: Option<TableId>,
    /// A local address may be the answer; otherwise such a packet is dropped.
    pub local: bool,
    /// The destination stands in the configuration (a policy's first segment), and so is asked for again and again.
    pub configured: bool,
}

/// How to route an IPv4 packet.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Lookup4 {
    /// Look this address up instead of the destination; when it is on link the packet is sent to this neighbour.
    pub nexthop: Option<Ipv4Addr>,
    /// The packet enters the VRF of this table: as if it had come in there.
    pub vrf: Option<TableId>,
}

/// How packets of a burst went at a SID.
#[derive(Clone, Copy, Debug)]
pub struct Batch {
    /// How many were processed, from the first.
    pub packets: usize,
    /// Their bytes, before.
    pub bytes: usize,
    /// What all of them want.
    pub wish: Next,
    /// Why the one behind them ends here; none when it was not looked at.
    pub failed: Option<DropReason>,
}

impl Batch {
    /// One that wants this, of no packets yet.
    pub(crate) fn new(wish: Next) -> Batch {
        Batch { packets: 0, bytes: 0, wish, failed: None }
    }
}

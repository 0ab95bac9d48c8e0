//! Routes that are for some of the packets to their prefix only: by type of service (`tos`, IPv4), by source (`from`, IPv6).

use std::cmp::Reverse;
use std::net::{IpAddr, Ipv6Addr};

use crate::{Address, Flow, Prefix};

/// The bits of a packet's TOS that a route's is compared with: Linux looks at RFC 1349's, less the one that is ECN's now.
const COMPARED: u8 = 0x1c;

/// Which packets a route is for.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Default)]
pub struct Select {
    /// `tos`: this type of service, 0 for all.
    pub tos: u8,
    /// `from`: from these sources, none for all.
    pub from: Option<Prefix<Ipv6Addr>>,
}

impl Select {
    /// True when it is for all packets.
    pub fn is_all(&self) -> bool {
        *self == Select::default()
    }

    /// True when it is for packets of this flow.
    pub(crate) fn takes<A: Address>(&self, flow: &Flow<A>) -> bool {
        let source = |from: Prefix<Ipv6Addr>| matches!(flow.src.into(), IpAddr::V6(src) if from.contains(src));
        (self.tos == 0 || self.tos == flow.dsfield & COMPARED) && self.from.is_none_or(source)
    }

    /// The order in which routes of a prefix are asked: those for few packets first.
    pub(crate) fn order(&self) -> impl Ord + use<> {
        let last = |from: Prefix<Ipv6Addr>| u128::from(from.addr()) | u128::MAX.checked_shr(from.len().into()).unwrap_or(0);
        (Reverse(self.tos), self.from.is_none(), self.from.map(|from| (last(from), Reverse(from.len()))))
    }
}

/// Where a lookup goes on that has found a prefix with such routes.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Choice {
    /// What takes a packet, and the number of its route.
    pub(crate) options: Box<[(Select, u32)]>,
    /// The number of the route for all others: of the prefix itself or of a shorter one, 0 when there is none.
    pub(crate) otherwise: u32,
}

impl Choice {
    /// The number of the route that takes a packet.
    pub(crate) fn of<A: Address>(&self, flow: &Flow<A>) -> u32 {
        self.options.iter().find(|(select, _)| select.takes(flow)).map_or(self.otherwise, |(_, id)| *id)
    }
}

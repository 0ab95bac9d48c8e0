//! The resolved route: what is to happen to a packet that a lookup matched.

use std::net::IpAddr;
use std::sync::Arc;

use rcu::Ref;

use crate::{IfIndex, Neighbour, PolicyId, SidId};

/// The route a packet carries: borrowed, or held so that it may be parked. One word.
pub type DstRef<'g> = Ref<'g, Dst>;

/// The type of a route, as `ip route` names it.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
#[repr(u8)]
pub enum Kind {
    /// To be sent on.
    Unicast,
    /// An address of the router.
    Local,
    /// A broadcast address of a link.
    Broadcast,
    /// An anycast address of the router (IPv6 subnet-router anycast).
    Anycast,
    /// A group.
    Multicast,
    /// To be dropped silently.
    Blackhole,
    /// To be refused as unreachable.
    Unreachable,
    /// To be refused as prohibited.
    Prohibit,
    /// As if this table had no route.
    Throw,
    /// No table had a route: the shared null entry.
    NoRoute,
}

impl Kind {
    /// The word in the configuration language.
    pub fn word(self) -> &'static str {
        match self {
            Kind::Unicast => "unicast",
            Kind::Local => "local",
            Kind::Broadcast => "broadcast",
            Kind::Anycast => "anycast",
            Kind::Multicast => "multicast",
            Kind::Blackhole => "blackhole",
            Kind::Unreachable => "unreachable",
            Kind::Prohibit => "prohibit",
            Kind::Throw => "throw",
            Kind::NoRoute => "no route",
        }
    }
}

/// What a route does to the packet itself (a lightweight tunnel in Linux's words).
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Default)]
pub enum Encap {
    /// Nothing.
    #[default]
    None,
    /// `encap seg6local`: an SRv6 endpoint behaviour.
    Seg6Local(SidId),
    /// `encap seg6`: an SRv6 headend.
    Seg6(PolicyId),
}

/// One way out.
#[derive(Clone, Debug)]
pub struct Nexthop {
    /// The interface.
    pub dev: IfIndex,
    /// The gateway, which may be of the other family; without one the packet's destination is on the link.
    pub gateway: Option<Arc<Neighbour>>,
    /// What this way does to the packet.
    pub encap: Encap,
    /// Share of the flows, relative to the other ways.
    pub weight: u16,
}

/// A resolved route. Thousands of prefixes share one.
#[derive(Clone, Debug)]
#[repr(align(64))]
pub struct Dst {
    /// What kind of route.
    pub kind: Kind,
    /// First or only way out; `None` for the kinds that have none.
    pub nexthop: Option<Nexthop>,
    /// The further ways.
    pub more: Box<[Nexthop]>,
    /// MTU of the route, bytes; 0: that of the interface.
    pub mtu: u32,
    /// Preferred source address of packets that the router makes.
    pub src: Option<IpAddr>,
}

impl Dst {
    /// A route without a way out.
    pub fn special(kind: Kind) -> Dst {
        Dst { kind, nexthop: None, more: Box::default(), mtu: 0, src: None }
    }

    /// The interface of the first way, `IfIndex(0)` when there is none.
    #[inline]
    pub fn dev(&self) -> IfIndex {
        self.nexthop.as_ref().map_or(IfIndex(0), |hop| hop.dev)
    }

    /// The way that a flow of this hash takes: the ways share 2^31 hash values by weight (Linux `fib_select_multipath`).
    #[inline]
    pub fn select(&self, hash: u32) -> Option<(u16, &Nexthop)> {
        let first = self.nexthop.as_ref()?;
        if self.more.is_empty() {
            return Some((0, first));
        }
        let total: u64 = self.hops().map(|hop| u64::from(hop.weight)).sum();
        let mut sum = 0;
        (0..).zip(self.hops()).find(|(_, hop)| {
            sum += u64::from(hop.weight);
            u64::from(hash >> 1) < ((sum << 31) + total / 2) / total
        })
    }

    /// The way in this place, as [`Dst::select`] numbers them.
    #[inline]
    pub fn hop(&self, place: u16) -> Option<&Nexthop> {
        match place {
            0 => self.nexthop.as_ref(),
            further => self.more.get(usize::from(further) - 1),
        }
    }

    /// All ways out.
    pub fn hops(&self) -> impl Iterator<Item = &Nexthop> {
        self.nexthop.iter().chain(self.more.iter())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn hop(dev: u32, weight: u16) -> Nexthop {
        Nexthop { dev: IfIndex(dev), gateway: None, encap: Encap::None, weight }
    }

    #[test]
    fn flows_are_shared_by_weight() {
        let dst = Dst { nexthop: Some(hop(2, 1)), more: Box::new([hop(3, 3)]), ..Dst::special(Kind::Unicast) };
        let taken = |hash: u32| dst.select(hash).map(|(_, hop)| hop.dev.0);
        assert_eq!(taken(0), Some(2));
        assert_eq!(taken(u32::MAX / 4 - 1), Some(2));
        assert_eq!(taken(u32::MAX / 4 + 2), Some(3));
        assert_eq!(taken(u32::MAX), Some(3));
    }
}

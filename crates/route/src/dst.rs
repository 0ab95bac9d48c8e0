//! The resolved route: what is to happen to a packet that a lookup matched.

use std::net::IpAddr;
use std::sync::Arc;

use rcu::Ref;

use crate::{Buckets, Choice, IfIndex, Neighbour, NeighbourState, PolicyId, SidId, Tick};

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
    /// Of the 2^31 hash values of flows, those below this one take it that no way before it takes.
    pub until: u32,
}

impl Nexthop {
    /// True unless its gateway was asked for and did not answer yet, or not at all.
    #[inline]
    pub fn is_good(&self) -> bool {
        self.gateway.as_ref().is_none_or(|gateway| !matches!(gateway.load().0, NeighbourState::Incomplete | NeighbourState::Failed))
    }
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
    /// How flows choose among several ways.
    pub sharing: Sharing,
    /// Length of the prefixes it is for, where a rule asks for that (`suppress_prefixlength`); else [`Dst::ANY_LEN`].
    pub prefix_len: u8,
    /// Further metrics.
    pub metrics: Metrics,
    /// It is no route: the routes of its prefix are for some packets only, and this says which. Of kind [`Kind::Throw`].
    pub choice: Option<Box<Choice>>,
}

/// Metrics of a route beside its MTU.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Default)]
pub struct Metrics {
    /// `hoplimit`: TTL or hop limit of packets that the router makes; 0: none given.
    pub hop_limit: u8,
    /// `advmss`: what TCP of the host would announce. noref has none: it is kept to be shown.
    pub adv_mss: u32,
    /// `mtu lock`: kept to be shown.
    pub mtu_lock: bool,
}

/// How flows choose among the ways of a route.
#[derive(Clone, Debug, Default)]
pub enum Sharing {
    /// By their hash alone.
    #[default]
    Plain,
    /// By their hash among the ways whose gateway can be used: `fib_multipath_use_neigh`, and always in groups of nexthop objects.
    Answering,
    /// By the bucket that their hash falls into: in resilient groups of nexthop objects.
    Resilient(Arc<Buckets>),
}

impl Dst {
    /// The length of a route that prefixes of several lengths share: longer than any.
    pub const ANY_LEN: u8 = u8::MAX;

    /// A route without a way out.
    pub fn special(kind: Kind) -> Dst {
        Dst {
            kind,
            nexthop: None,
            more: Box::default(),
            mtu: 0,
            src: None,
            sharing: Sharing::Plain,
            prefix_len: Dst::ANY_LEN,
            metrics: Metrics::default(),
            choice: None,
        }
    }

    /// A route by these ways, which share the 2^31 hash values of flows by weight (Linux `fib_rebalance`).
    pub fn through(kind: Kind, ways: impl IntoIterator<Item = Nexthop>) -> Dst {
        let mut ways: Vec<Nexthop> = ways.into_iter().collect();
        let total = ways.iter().map(|way| u64::from(way.weight)).sum::<u64>().max(1);
        let mut sum = 0;
        for way in &mut ways {
            sum += u64::from(way.weight);
            way.until = (((sum << 31) + total / 2) / total) as u32;
        }
        let mut ways = ways.into_iter();
        Dst { nexthop: ways.next(), more: ways.collect(), ..Dst::special(kind) }
    }

    /// The interface of the first way, `IfIndex(0)` when there is none.
    #[inline]
    pub fn dev(&self) -> IfIndex {
        self.nexthop.as_ref().map_or(IfIndex(0), |hop| hop.dev)
    }

    /// True when it takes a flow's hash to [`select`](Dst::select) its way.
    #[inline]
    pub fn is_shared(&self) -> bool {
        !self.more.is_empty() || matches!(self.sharing, Sharing::Resilient(_))
    }

    /// The way that a flow of this hash, 31 bits, takes `now`; `use_neigh` as [`Sharing::Answering`].
    #[inline]
    pub fn select(&self, hash: u32, use_neigh: bool, now: Tick) -> Option<(u16, &Nexthop)> {
        let first = self.nexthop.as_ref()?;
        if let Sharing::Resilient(buckets) = &self.sharing {
            let place = buckets.select(hash, now);
            return self.hop(place).map(|way| (place, way));
        }
        if self.more.is_empty() {
            return Some((0, first));
        }
        let mut ways = (0..).zip(self.hops());
        if !use_neigh && matches!(self.sharing, Sharing::Plain) {
            return ways.find(|(_, way)| hash < way.until);
        }
        // The first that can be used takes what no other way can take (Linux `fib_select_multipath`, `nexthop_select_path`).
        let mut usable = ways.filter(|(_, way)| way.is_good());
        let fallback = usable.next();
        match fallback {
            Some((_, way)) if hash < way.until => fallback,
            _ => usable.find(|(_, way)| hash < way.until).or(fallback).or(Some((0, first))),
        }
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
    use wire::Mac;

    use super::*;

    fn hop(dev: u32, weight: u16) -> Nexthop {
        Nexthop { dev: IfIndex(dev), gateway: None, encap: Encap::None, weight, until: 0 }
    }

    #[test]
    fn flows_are_shared_by_weight() {
        let dst = Dst::through(Kind::Unicast, [hop(2, 1), hop(3, 3)]);
        let taken = |hash: u32| dst.select(hash, false, Tick::default()).map(|(place, hop)| (place, hop.dev.0));
        assert_eq!(taken(0), Some((0, 2)));
        assert_eq!(taken((1 << 29) - 1), Some((0, 2)));
        assert_eq!(taken(1 << 29), Some((1, 3)));
        assert_eq!(taken((1 << 31) - 1), Some((1, 3)));
    }

    #[test]
    fn weights_of_any_size_share_all_hash_values() {
        for weights in [&[256, 1, 7][..], &[1; 3], &[65535; 300], &[3, 5, 11, 13]] {
            let dst = Dst::through(Kind::Unicast, (2..).zip(weights).map(|(dev, weight)| hop(dev, *weight)));
            assert!(
                dst.select((1 << 31) - 1, false, Tick::default()).is_some_and(|(place, _)| usize::from(place) == weights.len() - 1),
                "{weights:?}"
            );
        }
    }

    #[test]
    fn flows_of_a_neighbour_that_does_not_answer_take_the_first_way_behind_that_has_their_hash() {
        let neighbours: Vec<_> = (0..3).map(|n| Arc::new(Neighbour::new(IfIndex(n), IpAddr::from([10, 1, n as u8, 2])))).collect();
        let ways = (2..).zip(&neighbours).map(|(dev, neighbour)| Nexthop { gateway: Some(neighbour.clone()), ..hop(dev, 1) });
        let dst = Dst { sharing: Sharing::Answering, ..Dst::through(Kind::Unicast, ways) };
        let taken = |hash: u32| dst.select(hash, false, Tick::default()).map(|(_, hop)| hop.dev.0);
        assert_eq!([0, 1 << 30, (1 << 31) - 1].map(taken), [Some(2), Some(3), Some(4)]);
        neighbours[1].store(NeighbourState::Failed, Mac::default());
        assert_eq!([0, 1 << 30, (1 << 31) - 1].map(taken), [Some(2), Some(4), Some(4)]);
        neighbours[2].store(NeighbourState::Incomplete, Mac::default());
        assert_eq!([0, 1 << 30, (1 << 31) - 1].map(taken), [Some(2); 3]);
        neighbours[0].store(NeighbourState::Failed, Mac::default());
        assert_eq!([0, 1 << 30, (1 << 31) - 1].map(taken), [Some(2); 3], "when none can be used the first is");
    }
}

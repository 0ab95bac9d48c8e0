//! Routes as they are configured.

use std::net::IpAddr;
use std::sync::Arc;

use crate::{Address, Encap, IfIndex, Kind, Metrics, Select, Tick};

/// One way out, as configured.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct Hop {
    /// The interface.
    pub dev: IfIndex,
    /// The gateway.
    pub via: Option<IpAddr>,
    /// The gateway is on the link, whatever the addresses say: a note of how the route was given.
    pub onlink: bool,
    /// What this way does to the packet.
    pub encap: Encap,
    /// Share of the flows.
    pub weight: u16,
}

/// What routes of the same effect have in common: one `Dst` serves them all.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub struct Effect {
    /// Kind of route.
    pub kind: Kind,
    /// Ways out.
    pub hops: Vec<Hop>,
    /// The nexthop object that says the ways out, 0 when the route itself does; then `hops` is empty.
    pub nexthop: u32,
    /// MTU, bytes; 0: none given.
    pub mtu: u32,
    /// Preferred source.
    pub src: Option<IpAddr>,
    /// Further metrics.
    pub metrics: Metrics,
    /// When the route goes by itself (`expires`, IPv6).
    pub expires: Option<Tick>,
}

impl Effect {
    /// An effect of nothing but a kind and ways out.
    pub fn new(kind: Kind, hops: Vec<Hop>) -> Effect {
        Effect { kind, hops, nexthop: 0, mtu: 0, src: None, metrics: Metrics::default(), expires: None }
    }

    /// True of what is a way of one route together with others of its metric: in IPv6 routes through gateways.
    pub fn joins<A: Address>(&self) -> bool {
        A::BITS == 128 && self.kind == Kind::Unicast && self.nexthop == 0 && self.hops.iter().all(|hop| hop.via.is_some())
    }
}

/// A configured route, without its prefix.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct RouteEntry {
    /// Which packets it is for.
    pub select: Select,
    /// Lower is better.
    pub metric: u32,
    /// Protocol number (`proto`): who put it there.
    pub protocol: u8,
    /// Scope number as in `ip route`.
    pub scope: u8,
    /// What it does.
    pub effect: Arc<Effect>,
}

impl RouteEntry {
    /// Where it stands among the routes of its prefix: those for few packets first, then by metric.
    pub(crate) fn rank(&self) -> impl Ord + use<> {
        (self.select.order(), self.metric)
    }

    /// True of one that stands in the same place.
    pub(crate) fn is_beside(&self, other: &RouteEntry) -> bool {
        self.metric == other.metric && self.select == other.select
    }

    /// As [`Effect::joins`].
    pub fn joins<A: Address>(&self) -> bool {
        self.effect.joins::<A>()
    }

    /// True when one of its ways leaves by the interface.
    pub(crate) fn leads_through(&self, dev: IfIndex) -> bool {
        self.effect.hops.iter().any(|hop| hop.dev == dev)
    }
}

/// How a route is put beside those that stand there.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Put {
    /// It must not exist.
    Add,
    /// It takes the place of the first of its metric (in IPv6 of all that are ways of one route), or is added.
    Replace,
    /// It is put behind those of its metric; in IPv6 it becomes a further way of them.
    Append,
}

//! Questions about routes, as `ip route get` asks the kernel: the way that a packet would take, by the lookup and the checks that packets meet.
//!
//! Linux answers them without a packet where the router itself would send (`ip_route_output_key_hash_rcu`, `ip6_route_output`) and with one made up for the
//! purpose where one comes in (`ip_route_input_rcu`); so does this.

mod v4;
mod v6;

use std::net::IpAddr;

use rcu::Guard;
use route::{Address, Answer, DropReason, Dst, DstRef, Encap, Flow, IfIndex, Kind, RouteRefs, TableId, Tick, Upper};

use crate::Tables;
use crate::context::Context;

/// A question puts no bucket of a resilient group to use: it has been used later than this.
const NEVER: Tick = Tick(0);

/// What is asked.
#[derive(Clone, Copy, Debug)]
pub struct Question<A> {
    /// Destination.
    pub dst: A,
    /// Source.
    pub src: Option<A>,
    /// The interface it comes in by; without one the router sends it.
    pub iif: Option<IfIndex>,
    /// The interface, or the VRF device, that the router sends it by.
    pub oif: Option<IfIndex>,
    /// Its mark.
    pub mark: u32,
    /// TOS or traffic class.
    pub dsfield: u8,
    /// Protocol and ports; 0: not said.
    pub upper: Upper,
}

/// Why there is no way.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Refusal {
    /// There is no route: ENETUNREACH.
    NetUnreachable,
    /// The route says `unreachable`: EHOSTUNREACH.
    HostUnreachable,
    /// Route or rule say `prohibit`: EACCES.
    Prohibited,
    /// Route or rule say `blackhole`, or nobody sends such a packet: EINVAL.
    Invalid,
    /// A packet that comes in so is dropped for this.
    Dropped(DropReason),
    /// It comes in for a group, which nothing is routed to; Linux says it has no room for the answer: EMSGSIZE.
    NotRouted,
}

impl Refusal {
    /// How `strerror` says it.
    pub fn text(self) -> &'static str {
        match self {
            Refusal::NetUnreachable => "Network is unreachable",
            Refusal::HostUnreachable | Refusal::Dropped(DropReason::ForwardingOff) => "No route to host",
            Refusal::Prohibited => "Permission denied",
            Refusal::Invalid | Refusal::Dropped(_) => "Invalid argument",
            Refusal::NotRouted => "Message too long",
        }
    }

    /// Why a route or a rule that refuses does; none of one that does not.
    fn of(answer: &Answer<'_>) -> Option<Refusal> {
        match answer.dst.kind {
            Kind::NoRoute | Kind::Throw => Some(Refusal::NetUnreachable),
            Kind::Unreachable if answer.by_rule => Some(Refusal::NetUnreachable),
            Kind::Unreachable => Some(Refusal::HostUnreachable),
            Kind::Prohibit => Some(Refusal::Prohibited),
            Kind::Blackhole => Some(Refusal::Invalid),
            Kind::Unicast | Kind::Local | Kind::Broadcast | Kind::Anycast | Kind::Multicast => None,
        }
    }
}

/// The way.
#[derive(Debug)]
pub struct Reply<'g> {
    /// The route; of kind [`Kind::NoRoute`] when none was asked for, or none needed.
    pub dst: DstRef<'g>,
    /// What the packet is to the router, whatever the route says.
    pub kind: Kind,
    /// Where the route stands; 0 when there is none.
    pub table: TableId,
    /// The interface out, or the one that the router sees its own packets on.
    pub dev: IfIndex,
    /// The gateway.
    pub via: Option<IpAddr>,
    /// What the way does to the packet.
    pub encap: Encap,
    /// The source that the router would send from.
    pub src: Option<IpAddr>,
    /// It is for the router, perhaps among others.
    pub local: bool,
    /// Its sender would be told of a better way.
    pub redirect: bool,
    /// Of several ways, the place of the one that is taken, and the hash by which, 31 bits.
    pub chosen: Option<(u16, u32)>,
}

impl<'g> Reply<'g> {
    /// By this interface, by no route.
    fn without_route(kind: Kind, dev: IfIndex) -> Reply<'g> {
        let dst = std::sync::Arc::new(Dst::special(Kind::NoRoute)).into();
        Reply { dst, kind, table: TableId(0), dev, via: None, encap: Encap::None, src: None, local: false, redirect: false, chosen: None }
    }

    /// To the router itself, by the route of `answer`.
    fn to_router(answer: Answer<'g>, dev: IfIndex) -> Reply<'g> {
        let (kind, table) = (answer.dst.kind, answer.table);
        Reply { dst: answer.dst, table, local: true, ..Reply::without_route(kind, dev) }
    }

    /// By a way of the route of `answer`.
    fn by(answer: Answer<'g>, place: u16, hash: u32) -> Option<Reply<'g>> {
        let Answer { dst, table, .. } = answer;
        let hop = dst.hop(place)?;
        let (kind, dev, encap, via) = (dst.kind, hop.dev, hop.encap, hop.gateway.as_ref().map(|gateway| gateway.addr()));
        let chosen = dst.is_shared().then_some((place, hash));
        Some(Reply { dst, table, via, encap, chosen, ..Reply::without_route(kind, dev) })
    }
}

/// Answers questions in one burst.
pub struct Asked<'a, 'g> {
    cx: Context<'a, 'g>,
}

impl<'a, 'g> Asked<'a, 'g> {
    /// As the tables are in this burst.
    pub fn new(tables: &'a Tables, guard: &'a Guard<'g>) -> Asked<'a, 'g> {
        Asked { cx: Context::new(tables, guard, RouteRefs::Noref) }
    }

    /// What is looked up for a packet that the router sends, in the VRF of the interface it is to leave by.
    fn own_flow<A: Address>(&self, question: &Question<A>) -> Flow<A> {
        let near = question.oif.unwrap_or(IfIndex::LO);
        let src = question.src.unwrap_or(A::UNSPECIFIED);
        Flow {
            oif: self.leaves_by(question.oif).unwrap_or(IfIndex(0)),
            mark: question.mark,
            dsfield: question.dsfield,
            upper: question.upper,
            ..self.cx.own_flow(question.dst, src, near)
        }
    }

    /// The interface named; a VRF device only says where to look.
    fn leaves_by(&self, oif: Option<IfIndex>) -> Option<IfIndex> {
        oif.filter(|oif| !self.cx.links.get(*oif).is_some_and(|link| link.is_vrf()))
    }

    /// What the router sees its own packets on: `lo`, or the VRF device of `dev`.
    fn loopback(&self, dev: IfIndex) -> IfIndex {
        match self.cx.vrf(dev) {
            (vrf, Some(_)) => vrf,
            _ => IfIndex::LO,
        }
    }
}

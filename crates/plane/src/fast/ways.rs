//! What the routes met in a burst do with a plain packet, worked out once for all packets that take them.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

use port::Buf;
use route::{Address, Dst, Encap, Fib, IfIndex, Kind, LinkKind, NeighbourState, Nexthop, RouteRefs, SidId};
use srv6::{Policy, Sid};
use wire::{EtherType, eth};
use zerocopy::FromBytes;

use super::frame::{Frame4, Frame6};
use crate::context::Context;
use crate::counters::PacketCount;
use crate::seg6;
use crate::trace::Ledger;
use crate::worker::recycle;

/// How a packet leaves.
#[derive(Clone, Copy)]
pub(super) struct Exit {
    dev: IfIndex,
    /// The port, by its place.
    port: u16,
    /// The biggest packet, bytes.
    mtu: u32,
    /// What stands in front of it on the wire.
    header: eth::Header,
}

/// The way to the neighbour on a link that a packet asked for last.
#[derive(Clone, Copy)]
pub(super) struct Near(Option<(IpAddr, Exit)>);

/// What a route does.
#[derive(Clone, Copy)]
pub(super) enum Does<'g> {
    /// What takes the general way.
    Else,
    /// It leads to one neighbour.
    Leave(Exit),
    /// It leads to the neighbours on a link.
    OnLink(Near),
    /// It leads to a SID.
    Process(SidId, &'g Sid),
    /// It leads into a policy, whose outer headers have this source.
    Encap(&'g Policy, Ipv6Addr),
}

impl Does<'_> {
    /// The way out that the route of this number is for a packet that asked for `to`, if it is one: the neighbour's address is known and need not be asked
    /// for again.
    #[inline]
    pub(super) fn exit<A: Address>(&mut self, cx: &Context<'_, '_>, fib: &Fib<A>, number: u32, to: A) -> Option<&Exit> {
        match self {
            Does::Leave(exit) => Some(exit),
            Does::OnLink(Near(near)) => {
                let to = to.into();
                if !near.is_some_and(|(known, _)| known == to) {
                    *near = exit_to(cx, fib, number, to).map(|exit| (to, exit));
                }
                near.as_ref().map(|(_, exit)| exit)
            }
            Does::Else | Does::Process(..) | Does::Encap(..) => None,
        }
    }
}

/// A route and what it did.
pub(super) struct Way<'g> {
    /// Number and family of the route.
    route: u64,
    pub(super) does: Does<'g>,
    /// The device of its nexthop.
    pub(super) dev: IfIndex,
    pub(super) count: PacketCount,
}

/// Places of the index.
const PLACES: usize = 512;

/// The place of the way that was found last for routes that fall here. What it says may be of another burst: whoever follows it looks which route is there.
pub(super) type Index = [u16; PLACES];

/// As [`Index`], of no route.
pub(super) const EMPTY: Index = [0; PLACES];

/// The routes met in a burst. A route whose place in the index another has taken is worked out again.
pub(super) struct Ways<'p, 'g> {
    ways: Vec<Way<'g>>,
    index: &'p mut Index,
}

impl<'p, 'g> Ways<'p, 'g> {
    /// None, in the memory of those of another burst.
    pub(super) fn reuse(ways: Vec<Way<'_>>, index: &'p mut Index) -> Ways<'p, 'g> {
        Ways { ways: recycle(ways), index }
    }

    /// The memory, to be used again.
    pub(super) fn into_memory(self) -> Vec<Way<'static>> {
        recycle(self.ways)
    }

    /// What the route of this number does, to be asked for with the key of a packet.
    #[inline]
    pub(super) fn of<A: Address>(&mut self, cx: &Context<'_, 'g>, fib: &Fib<A>, number: u32) -> &mut Way<'g> {
        let route = u64::from(number) << 8 | u64::from(A::BITS);
        let at = (number as usize).wrapping_mul(2) + usize::from(A::BITS == 32);
        let found = usize::from(self.index[at % PLACES]);
        if self.ways.get(found).is_none_or(|way| way.route != route) {
            return self.meet(cx, fib, number, route, at % PLACES);
        }
        &mut self.ways[found]
    }

    /// Works out what a route does that was not met yet, or not lately.
    #[inline(never)]
    fn meet<A: Address>(&mut self, cx: &Context<'_, 'g>, fib: &Fib<A>, number: u32, route: u64, place: usize) -> &mut Way<'g> {
        let (does, dev) = work_out(cx, fib, number);
        let at = self.ways.len();
        self.ways.push(Way { route, does, dev, count: PacketCount::default() });
        self.index[place] = at as u16;
        &mut self.ways[at]
    }

    /// Writes down what was counted.
    pub(super) fn count(&mut self, ledger: &mut Ledger) {
        for way in &mut self.ways {
            let count = std::mem::take(&mut way.count);
            match way.does {
                Does::Leave(_) | Does::OnLink(..) => {
                    ledger.counters.link_mut(way.dev).sent.merge(count);
                    ledger.counters.forwarded += count.packets;
                }
                Does::Process(..) | Does::Encap(..) | Does::Else => {}
            }
        }
    }
}

/// What a route does, and its device.
fn work_out<'g, A: Address>(cx: &Context<'_, 'g>, fib: &Fib<A>, number: u32) -> (Does<'g>, IfIndex) {
    let nothing = (Does::Else, IfIndex(0));
    // Packets take references of their own, where they are to.
    let Some(dst) = fib.route(cx.guard, number, RouteRefs::Noref) else { return nothing };
    let Some(hop) = only_way(&dst) else { return nothing };
    let does = match hop.encap {
        Encap::Seg6Local(id) if A::BITS == 128 && hop.dev != IfIndex::LO => {
            cx.tables.sids.borrow(cx.guard, id.0).map(|sid| Does::Process(id, sid))
        }
        Encap::Seg6Local(_) => None,
        // One that names a table of its own takes the general way.
        Encap::Seg6(id) => cx.tables.policies.borrow(cx.guard, id.0).filter(|policy| policy.table().is_none()).and_then(|policy| {
            let source = seg6::source(cx, policy, hop.dev).ok()?;
            Some(Does::Encap(policy, source))
        }),
        Encap::None if A::BITS == 128 && !cx.settings.all6.forwarding => None,
        Encap::None if hop.gateway.is_none() => Some(Does::OnLink(Near(None))),
        Encap::None => exit::<A>(cx, &dst, hop, None).map(Does::Leave),
    };
    (does.unwrap_or(Does::Else), hop.dev)
}

/// The way out of a route that sends all its packets on by one.
#[inline]
fn only_way(dst: &Dst) -> Option<&Nexthop> {
    dst.nexthop.as_ref().filter(|_| dst.kind == Kind::Unicast && !dst.is_shared())
}

/// The way by `hop` to its gateway, or to `to` when it has none. None unless the neighbour's address is known and need not be asked for again.
fn exit<A: Address>(cx: &Context<'_, '_>, dst: &Dst, hop: &Nexthop, to: Option<IpAddr>) -> Option<Exit> {
    let out = cx.links.get(hop.dev).filter(|link| link.up)?;
    let LinkKind::Port(port) = out.kind else { return None };
    let neighbour = match &hop.gateway {
        Some(gateway) => gateway.load(),
        None => cx.tables.network.neighbours.find(cx.guard, hop.dev, to?)?.load(),
    };
    let (state, mac) = neighbour;
    if !state.is_valid() || state == NeighbourState::Stale {
        return None;
    }
    let mtu = if dst.mtu == 0 { out.mtu } else { dst.mtu.min(out.mtu) };
    let ethertype = if A::BITS == 128 { EtherType::IPV6 } else { EtherType::IPV4 };
    let port = u16::try_from(port).ok().filter(|&port| port < u16::MAX)?;
    Some(Exit { dev: hop.dev, port, mtu, header: eth::Header::new(mac, out.mac, ethertype) })
}

/// The way by the route of this number to `to`, which is on its link. None as for [`exit`].
#[inline(never)]
fn exit_to<A: Address>(cx: &Context<'_, '_>, fib: &Fib<A>, number: u32, to: IpAddr) -> Option<Exit> {
    let dst = fib.route(cx.guard, number, RouteRefs::Noref)?;
    exit::<A>(cx, &dst, only_way(&dst)?, Some(to))
}

impl Exit {
    /// Makes IPv6 packets that came in by `iif` ready to leave, as `forward6` decides and `host::output` does in the case without an error or a redirect:
    /// the first ones of `bufs` of which that is true. How many they are; one more than the port stands in `out` for them.
    #[inline(always)]
    pub(super) fn forward6(&self, iif: IfIndex, bufs: &mut [Buf], out: &mut [u16], count: &mut PacketCount) -> usize {
        self.forward(iif, bufs, out, count, |frame| {
            let Ok((Frame6 { eth, ip }, _)) = Frame6::mut_from_prefix(frame) else { return false };
            let more = ip.hop_limit > 1;
            if more {
                *eth = self.header;
                ip.hop_limit -= 1;
            }
            more
        })
    }

    /// As [`Exit::forward6`] for IPv4 packets, whose source must not be `own`.
    #[inline(always)]
    pub(super) fn forward4(
        &self,
        iif: IfIndex,
        bufs: &mut [Buf],
        out: &mut [u16],
        count: &mut PacketCount,
        mut own: impl FnMut(Ipv4Addr) -> bool,
    ) -> usize {
        self.forward(iif, bufs, out, count, |frame| {
            let Ok((Frame4 { eth, ip }, _)) = Frame4::mut_from_prefix(frame) else { return false };
            let more = ip.ttl > 1 && !own(ip.src());
            if more {
                *eth = self.header;
                ip.decrement_ttl();
            }
            more
        })
    }

    /// Sends packets on that fit and leave by another port than they came in by, as far as `ready` finishes each, whose Ethernet header has room then.
    #[inline(always)]
    fn forward(
        &self,
        iif: IfIndex,
        bufs: &mut [Buf],
        out: &mut [u16],
        count: &mut PacketCount,
        mut ready: impl FnMut(&mut Buf) -> bool,
    ) -> usize {
        if iif == self.dev {
            return 0;
        }
        let mut sent = PacketCount::default();
        for (buf, out) in bufs.iter_mut().zip(out) {
            if buf.len() > self.mtu as usize || !buf.prepend(eth::LEN) {
                break;
            }
            if !ready(buf) {
                buf.trim_front(eth::LEN);
                break;
            }
            sent.add(buf.len());
            *out = self.port + 1;
        }
        count.merge(sent);
        sent.packets as usize
    }
}

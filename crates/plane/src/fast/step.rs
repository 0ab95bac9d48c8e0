//! A burst on the short way: what each packet does with the route found for it.

use std::net::{Ipv4Addr, Ipv6Addr};
use std::ops::Range;

use port::Buf;
use route::{Address, DstRef, Fib, IfIndex, RouteRefs, SidId};
use srv6::{Env, Inner, Lookup6, Policy, Sid};
use wire::eth;

use super::Other;
use super::enter::Ingress;
use super::lanes::{Answered, Family, Lanes, Scope};
use super::state::State;
use super::ways::{Does, Way, Ways};
use crate::arrivals::{BURST, Runs};
use crate::context::Context;
use crate::counters::PacketCount;
use crate::packet::{Packet, Version};
use crate::trace::Ledger;
use crate::verdict::Verdict;
use crate::{seg6, source4};

/// What is known of the interface that a packet is on, kept for those that follow it there.
pub(super) struct Here<'g> {
    iif: IfIndex,
    pub(super) dev: IfIndex,
    /// What behaviours may know.
    env: Env<'g>,
    /// The tables for packets on it.
    pub(super) scope: Scope,
    /// IPv4 packets are sent on, and no filter asks for more of a source than not to be the router's own.
    open4: bool,
}

impl<'g> Here<'g> {
    pub(super) fn nowhere(cx: &Context<'_, 'g>) -> Here<'g> {
        Here { iif: IfIndex(0), dev: IfIndex(0), env: cx.env, scope: Scope::Main, open4: false }
    }

    /// Looks around where a packet is.
    #[inline]
    fn look(&mut self, cx: &Context<'_, 'g>, state: &State) {
        if (self.iif, self.dev) != (state.iif, state.dev) {
            self.move_to(cx, state.iif, state.dev);
        }
        self.env.l2_len = if state.framed { eth::LEN } else { 0 };
    }

    #[inline(never)]
    fn move_to(&mut self, cx: &Context<'_, 'g>, iif: IfIndex, dev: IfIndex) {
        let link = cx.links.get(dev);
        let env = Env { require_hmac: link.map_or(0, |link| link.conf6.seg6_require_hmac), ..cx.env };
        let open4 = link.is_some_and(|link| link.conf4.forwarding) && source4::is_unfiltered(cx, iif);
        *self = Here { iif, dev, env, scope: cx.vrf(dev).1.map_or(Scope::Main, Scope::Vrf), open4 };
    }
}

/// The burst under way.
pub(super) struct Pass<'p, 'c, 'g> {
    pub(super) cx: &'p Context<'c, 'g>,
    /// In each place a frame; an empty buffer once the packet has taken the general way.
    pub(super) frames: &'p mut [Buf],
    pub(super) runs: Runs<'p>,
    /// Number of the first frame.
    pub(super) first: u64,
    pub(super) next: &'p mut Lanes,
    pub(super) ways: Ways<'p, 'g>,
    /// For each place, one more than the port that its packet leaves by.
    pub(super) out: &'p mut [u16; BURST],
    pub(super) others: &'p mut Vec<Other<'g>>,
    pub(super) here: Here<'g>,
    /// How many asked so far.
    pub(super) askers: u32,
    /// Lookups so far of each packet that is still on the short way, the one under way counted.
    pub(super) lookups: u8,
    pub(super) ledger: &'p mut Ledger,
}

impl<'g> Pass<'_, '_, 'g> {
    /// Looks at all frames: the plain ones ask, the others take the general way.
    #[inline(never)]
    pub(super) fn enter(&mut self) {
        let runs = self.runs;
        for (places, port, time) in runs.iter() {
            let ingress = Ingress::new(self.cx, port, self.ledger);
            let received = &mut self.ledger.counters.link_mut(ingress.index).received;
            for frame in &self.frames[places.clone()] {
                frame.prefetch();
                received.add(frame.len());
            }
            let asker = self.asker(ingress.state);
            self.in_turn(
                places,
                |pass, places| ingress.enter(&asker, places.start, &mut pass.frames[places], pass.next),
                |pass, at| {
                    let frame = std::mem::take(&mut pass.frames[at]);
                    pass.general(at, Packet::new(Version::V6, frame, time, pass.first + at as u64, ingress.index));
                },
            );
        }
    }

    /// Takes packets in the order of their places: as many as `short` can, which tells how many it took, then one by `general`, and so on.
    #[inline(always)]
    pub(super) fn in_turn(
        &mut self,
        mut places: Range<usize>,
        mut short: impl FnMut(&mut Self, Range<usize>) -> usize,
        mut general: impl FnMut(&mut Self, usize),
    ) {
        while !places.is_empty() {
            places.start += short(self, places.clone());
            if let Some(at) = places.next() {
                general(self, at);
            }
        }
    }

    /// Looks up what IPv6 packets ask for, and does what the routes say: each packet is ready to leave, asks again, or takes the general way.
    // Apart from the other loops of a burst, so that each has the processor's registers for itself.
    #[inline(never)]
    pub(super) fn answer6(&mut self, asked: &mut Family<Ipv6Addr>, routes: &mut Vec<u32>) {
        asked.answer(&self.cx.tables.network.v6, self.cx, routes, |group| self.step6(&group));
    }

    /// As [`Pass::answer6`] for IPv4.
    #[inline(never)]
    pub(super) fn answer4(&mut self, asked: &mut Family<Ipv4Addr>, routes: &mut Vec<u32>) {
        asked.answer(&self.cx.tables.network.v4, self.cx, routes, |group| self.step4(&group));
    }

    #[inline(always)]
    fn step6(&mut self, group: &Answered<'_, u128>) {
        let (cx, fib) = (self.cx, &self.cx.tables.network.v6);
        // Where packets take references, each is a group of its own.
        let mut held = self.hold(fib, group.route);
        let short = |pass: &mut Self, places: Range<usize>| {
            let Way { does, count, .. } = pass.ways.of(cx, fib, group.route);
            match *does {
                Does::Process(id, sid) => pass.process(places.clone(), group.state, id, sid),
                Does::Encap(policy, source) => pass.encap(places.clone(), group.state, Inner::V6, policy, source),
                Does::Leave(_) | Does::OnLink(_) | Does::Else => {
                    let exit = does.exit(cx, fib, group.route, Ipv6Addr::from_key(*group.key));
                    let (bufs, out) = (&mut pass.frames[places.clone()], &mut pass.out[places]);
                    return exit.map_or(0, |exit| exit.forward6(group.state.iif, bufs, out, count));
                }
            }
            places.len()
        };
        self.in_turn(group.places(), short, |pass, at| pass.general6(at, group, held.take()));
    }

    #[inline(always)]
    fn step4(&mut self, group: &Answered<'_, u32>) {
        let (cx, fib) = (self.cx, &self.cx.tables.network.v4);
        let mut held = self.hold(fib, group.route);
        self.here.look(cx, group.state);
        let mut foreign = None;
        let mut own = |src| {
            let own = foreign != Some(src) && cx.links.is_own4(src);
            if !own {
                foreign = Some(src);
            }
            own
        };
        let leave = |pass: &mut Self, places: Range<usize>| {
            let Way { does, dev, count, .. } = pass.ways.of(cx, fib, group.route);
            if !pass.here.open4 || *dev == group.state.iif {
                return 0;
            }
            let bufs = &mut pass.frames[places.clone()];
            if let Does::Encap(policy, source) = *does {
                let open = bufs.iter().take_while(|buf| !own(source4::of(buf))).count();
                pass.encap(places.start..places.start + open, group.state, Inner::V4, policy, source);
                return open;
            }
            let exit = does.exit(cx, fib, group.route, Ipv4Addr::from_key(*group.key));
            exit.map_or(0, |exit| exit.forward4(group.state.iif, bufs, &mut pass.out[places], count, &mut own))
        };
        self.in_turn(group.places(), leave, |pass, at| pass.general4(at, group, held.take()));
    }

    /// The reference of a packet's own, where routes are counted.
    #[inline]
    fn hold<A: Address>(&self, fib: &Fib<A>, route: u32) -> Option<DstRef<'g>> {
        if self.cx.refs == RouteRefs::Counted { fib.route(self.cx.guard, route, RouteRefs::Counted) } else { None }
    }

    /// Packets came to a SID.
    #[inline]
    fn process(&mut self, places: Range<usize>, state: &State, id: SidId, sid: &Sid) {
        self.here.look(self.cx, state);
        let state = state.changed(true);
        let Range { start: mut at, end } = places;
        while at < end {
            let batch = sid.input_all(&mut self.frames[at..end], &self.here.env);
            self.ledger.counters.sid_mut(id).processed.merge(PacketCount { packets: batch.packets as u64, bytes: batch.bytes as u64 });
            self.again(at..at + batch.packets, state, &batch.wish);
            at += batch.packets;
            if let Some(reason) = batch.failed {
                self.ledger.counters.sid_mut(id).errors += 1;
                self.leave_to(at, &state, Version::V6, Verdict::Drop(reason));
                at += 1;
            }
        }
    }

    /// Packets go into a policy.
    #[inline]
    fn encap(&mut self, places: Range<usize>, state: &State, inner: Inner, policy: &Policy, source: Ipv6Addr) {
        self.here.look(self.cx, state);
        let state = state.changed(false);
        let Range { start: mut at, end } = places;
        while at < end {
            let mut failed = None;
            let env = &self.here.env;
            let put_on = |buf| seg6::put_on(policy, source, buf, inner, env).map_err(|reason| failed = Some(reason)).is_ok();
            let done = self.frames[at..end].iter_mut().map(put_on).take_while(|&done| done).count();
            self.route_to(at..at + done, state, &Lookup6 { local: true, configured: true, ..Lookup6::default() });
            at += done;
            if let Some(reason) = failed {
                self.leave_to(at, &state, if inner == Inner::V4 { Version::V4 } else { Version::V6 }, Verdict::Drop(reason));
                at += 1;
            }
        }
    }
}

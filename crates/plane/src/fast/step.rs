//! A burst on the short way: what each packet does with the route found for it.

use std::net::{Ipv4Addr, Ipv6Addr};

use port::Buf;
use route::{Address, Answer, DstRef, Fib, IfIndex, RouteRefs, TableId};
use srv6::{Env, Inner, Lookup4, Lookup6, Next, Policy};
use wire::{eth, ipv4, ipv6};

use super::Other;
use super::enter::{Ingress, is_plain6};
use super::lanes::{Family, Lanes, PlaceInBurst, Scope};
use super::state::State;
use super::ways::{Does, Ways};
use crate::arrivals::{BURST, Runs};
use crate::context::Context;
use crate::ip4_input::{Addresses, check_addresses};
use crate::options4::Options;
use crate::packet::{MAX_LOOKUPS, Packet, Version};
use crate::trace::Ledger;
use crate::verdict::Verdict;
use crate::{decide, ethernet, seg6, source4};

/// How far ahead frames are fetched.
const AHEAD: usize = 4;

/// What is known of the interface that a packet is on, kept for those that follow it there.
pub(super) struct Here<'g> {
    iif: IfIndex,
    dev: IfIndex,
    /// What behaviours may know.
    env: Env<'g>,
    /// The tables for packets on it.
    scope: Scope,
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
    pub(super) ways: Ways<'g>,
    pub(super) states: &'p mut [State; BURST],
    /// For each place, one more than the port that its packet leaves by.
    pub(super) out: &'p mut [u32; BURST],
    pub(super) others: &'p mut Vec<Other<'g>>,
    pub(super) here: Here<'g>,
    pub(super) ledger: &'p mut Ledger,
}

impl<'g> Pass<'_, '_, 'g> {
    /// Looks at all frames: the plain ones ask, the others take the general way.
    #[inline(never)]
    pub(super) fn enter(&mut self) {
        let runs = self.runs;
        for (places, port, time) in runs.iter() {
            let mut ingress = Ingress::new(self.cx, port, self.ledger);
            for place in places {
                if let Some(ahead) = self.frames.get(place + AHEAD) {
                    ahead.prefetch();
                }
                let (buf, state) = (&mut self.frames[place], &mut self.states[place]);
                ingress.received.add(buf.len());
                if !ingress.enter(place as PlaceInBurst, buf, state, self.next) {
                    let packet = Packet::new(Version::V6, std::mem::take(buf), time, self.first + place as u64, ingress.index);
                    self.general(place, packet);
                }
            }
            ingress.leave(self.ledger);
        }
    }

    /// Follows a packet that is not plain to its verdict.
    #[cold]
    fn general(&mut self, place: usize, mut packet: Packet) {
        let (cx, ledger) = (self.cx, &mut *self.ledger);
        if ledger.is_tracing() {
            ledger.step(&packet, "in", || ethernet::describe(&packet.buf, cx.links.get(packet.iif)));
        }
        let verdict = ethernet::input(cx, &mut packet, ledger);
        let verdict = decide::settle(cx, &mut packet, verdict, ledger);
        self.others.push(Other { place, packet, verdict });
    }

    /// Looks up what IPv6 packets ask for, and does what the routes say.
    // Apart from the other loops of a burst, so that each has the processor's registers for itself.
    #[inline(never)]
    pub(super) fn answer6(&mut self, asked: &Family<Ipv6Addr>, routes: &mut Vec<u32>) {
        asked.answer(&self.cx.tables.network.v6, self.cx, routes, |scope, place, key, route| self.step6(scope, place, key, route));
    }

    /// As [`Pass::answer6`] for IPv4.
    #[inline(never)]
    pub(super) fn answer4(&mut self, asked: &Family<Ipv4Addr>, routes: &mut Vec<u32>) {
        asked.answer(&self.cx.tables.network.v4, self.cx, routes, |_, place, key, route| self.step4(place, key, route));
    }

    /// Does what the route found says: the packet is ready to leave, asks again, or takes the general way.
    #[inline(always)]
    fn step6(&mut self, scope: Scope, place: PlaceInBurst, key: u128, route: u32) {
        let (cx, at) = (self.cx, usize::from(place));
        let fib = &cx.tables.network.v6;
        let held = self.hold(fib, route);
        let (way, buf) = (self.ways.of(cx, fib, route), &mut self.frames[at]);
        let state = &mut self.states[at];
        match way.does {
            Does::Process(id, sid) => {
                self.here.look(cx, state);
                let bytes = buf.len();
                state.changed(false);
                // The wish is looked at where it stands: to move it costs more than all that most behaviours do.
                match &sid.input(buf, &self.here.env) {
                    Ok(wish) => {
                        way.count.add(bytes);
                        self.again(place, wish);
                    }
                    Err(reason) => {
                        self.ledger.counters.sid_mut(id).errors += 1;
                        self.leave_to(place, Version::V6, Verdict::Drop(*reason));
                    }
                }
            }
            Does::Encap(policy, source) => self.encap(place, Inner::V6, policy, source),
            _ => match way.does.exit(cx, fib, route, Ipv6Addr::from_key(key)) {
                Some(exit) if exit.forward6(buf, state.iif) => {
                    way.count.add(buf.len());
                    self.out[at] = exit.port + 1;
                }
                _ => self.general6(scope, place, key, route, held),
            },
        }
    }

    /// As [`Pass::step6`] for IPv4.
    #[inline(always)]
    fn step4(&mut self, place: PlaceInBurst, key: u32, route: u32) {
        let (cx, at) = (self.cx, usize::from(place));
        let fib = &cx.tables.network.v4;
        let held = self.hold(fib, route);
        let state = &self.states[at];
        self.here.look(cx, state);
        let (way, buf) = (self.ways.of(cx, fib, route), &mut self.frames[at]);
        let src = ipv4::Header::read(buf).map_or(Ipv4Addr::UNSPECIFIED, ipv4::Header::src);
        if !self.here.open4 || way.dev == state.iif || cx.links.is_own4(src) {
            return self.general4(place, key, route, held);
        }
        match way.does {
            Does::Encap(policy, source) => self.encap(place, Inner::V4, policy, source),
            _ => match way.does.exit(cx, fib, route, Ipv4Addr::from_key(key)) {
                Some(exit) if exit.forward4(buf, state.iif) => {
                    way.count.add(buf.len());
                    self.out[at] = exit.port + 1;
                }
                _ => self.general4(place, key, route, held),
            },
        }
    }

    /// The reference of a packet's own, where routes are counted.
    #[inline]
    fn hold<A: Address>(&self, fib: &Fib<A>, route: u32) -> Option<DstRef<'g>> {
        if self.cx.refs == RouteRefs::Counted { fib.route(self.cx.guard, route, RouteRefs::Counted) } else { None }
    }

    /// The packet goes into a policy.
    #[inline]
    fn encap(&mut self, place: PlaceInBurst, inner: Inner, policy: &Policy, source: Ipv6Addr) {
        let at = usize::from(place);
        let state = &mut self.states[at];
        self.here.look(self.cx, state);
        state.changed(true);
        let buf = &mut self.frames[at];
        let outcome = seg6::put_on(policy, source, buf, inner, &self.here.env);
        let dst = destination(buf);
        match outcome {
            Ok(()) if is_plain6(source.key()) => self.onward(place, dst),
            Ok(()) => self.leave_to(place, Version::V6, Verdict::Route6(Lookup6 { local: true, ..Lookup6::default() })),
            Err(reason) => self.leave_to(place, if inner == Inner::V4 { Version::V4 } else { Version::V6 }, Verdict::Drop(reason)),
        }
    }
}

/// The destination of an IPv6 packet; 0 when there is none.
#[inline]
fn destination(buf: &Buf) -> u128 {
    ipv6::Header::read(buf).map_or(0, |header| header.dst().key())
}

/// Asking again.
impl Pass<'_, '_, '_> {
    /// Asks for `dst`, the destination that an IPv6 packet has now.
    #[inline]
    fn onward(&mut self, place: PlaceInBurst, dst: u128) {
        if !is_plain6(dst) || !self.ask6(self.here.scope, place, dst) {
            let lookup = Lookup6 { local: self.states[usize::from(place)].local, ..Lookup6::default() };
            self.leave_to(place, Version::V6, Verdict::Route6(lookup));
        }
    }

    /// Asks for what a behaviour wants, if one address is all it takes.
    #[inline]
    fn again(&mut self, place: PlaceInBurst, wish: &Next) {
        let buf = &self.frames[usize::from(place)];
        match wish {
            Next::Onward => self.onward(place, destination(buf)),
            Next::Route6(lookup) => {
                if !self.again6(place, lookup) {
                    self.leave_to(place, Version::V6, Verdict::Route6(*lookup));
                }
            }
            Next::Route4(lookup) => {
                if !self.again4(place, lookup) {
                    self.leave_to(place, Version::V4, Verdict::Route4(*lookup));
                }
            }
            Next::Frame { port } => self.leave_to(place, Version::V6, Verdict::Frame(*port)),
        }
    }

    #[inline]
    fn again6(&mut self, place: PlaceInBurst, lookup: &Lookup6) -> bool {
        let Lookup6 { nexthop, oif, table, vrf, local } = *lookup;
        let Some(header) = ipv6::Header::read(&self.frames[usize::from(place)]) else { return false };
        let (src, dst) = (header.src().key(), nexthop.map_or(header.dst().key(), Address::key));
        if oif.is_some() || !is_plain6(src) || !is_plain6(dst) {
            return false;
        }
        let Some((dev, scope)) = self.scope(vrf, table) else { return false };
        let asks = self.ask6(scope, place, dst);
        if asks {
            let state = &mut self.states[usize::from(place)];
            (state.nexthop, state.local, state.dev) = (nexthop.is_some(), local, dev);
        }
        asks
    }

    #[inline]
    fn again4(&mut self, place: PlaceInBurst, lookup: &Lookup4) -> bool {
        let Lookup4 { nexthop, vrf } = *lookup;
        let Some(header) = ipv4::Header::read(&self.frames[usize::from(place)]) else { return false };
        let dst = nexthop.unwrap_or(header.dst());
        if header.header_len() != ipv4::LEN || check_addresses(header.src(), dst) != Ok(Addresses::Route) {
            return false;
        }
        let Some((dev, scope)) = self.scope(vrf, None) else { return false };
        let state = &mut self.states[usize::from(place)];
        let asks = self.cx.plain4 && state.lookups < MAX_LOOKUPS && self.next.v4.push(scope, place, dst.key());
        if asks {
            state.lookups += 1;
            (state.nexthop, state.dev) = (nexthop.is_some(), dev);
        }
        asks
    }

    #[inline(always)]
    fn ask6(&mut self, scope: Scope, place: PlaceInBurst, key: u128) -> bool {
        let state = &mut self.states[usize::from(place)];
        let asks = self.cx.plain6 && state.lookups < MAX_LOOKUPS && self.next.v6.push(scope, place, key);
        state.lookups += u8::from(asks);
        asks
    }

    /// The tables for a packet that is to enter the VRF of `vrf`, or to ask `table` alone; and the interface it is on then.
    #[inline]
    fn scope(&self, vrf: Option<TableId>, table: Option<TableId>) -> Option<(IfIndex, Scope)> {
        match (vrf, table) {
            (None, None) => Some((self.here.dev, self.here.scope)),
            (None, Some(table)) => Some((self.here.dev, Scope::Table(table))),
            (Some(vrf), None) => Some((self.cx.links.vrf_with_table(vrf)?.index, Scope::Vrf(vrf))),
            (Some(_), Some(_)) => None,
        }
    }
}

/// The general way, from some point on.
impl<'g> Pass<'_, '_, 'g> {
    /// The packet goes on with this verdict.
    #[cold]
    fn leave_to(&mut self, place: PlaceInBurst, version: Version, verdict: Verdict<'g>) {
        let packet = self.packet(place, version);
        self.others.push(Other { place: place.into(), packet, verdict });
    }

    /// From a route on, or from the lookup when the short way found none.
    #[cold]
    fn general6(&mut self, scope: Scope, place: PlaceInBurst, key: u128, route: u32, held: Option<DstRef<'g>>) {
        let cx = self.cx;
        let state = self.states[usize::from(place)];
        let mut packet = self.packet(place, Version::V6);
        let nexthop = state.nexthop.then(|| Ipv6Addr::from_key(key));
        let table = if let Scope::Table(table) = scope { Some(table) } else { None };
        let lookup = Lookup6 { nexthop, table, local: state.local, ..Lookup6::default() };
        let fib = &cx.tables.network.v6;
        let answer = match (held.or_else(|| fib.route(cx.guard, route, RouteRefs::Noref)), table) {
            (Some(dst), _) => Some(Answer::untraced(dst)),
            (None, Some(table)) => fib.lookup_table(cx.guard, table, &decide::flow6(cx, &packet, &lookup), cx.refs),
            (None, None) => Some(fib.lookup(cx.guard, &decide::flow6(cx, &packet, &lookup), cx.refs)),
        };
        let verdict = decide::route6(cx, &mut packet, &lookup, answer, self.ledger);
        self.others.push(Other { place: place.into(), packet, verdict });
    }

    /// As [`Pass::general6`] for IPv4.
    #[cold]
    fn general4(&mut self, place: PlaceInBurst, key: u32, route: u32, held: Option<DstRef<'g>>) {
        let cx = self.cx;
        let state = self.states[usize::from(place)];
        let mut packet = self.packet(place, Version::V4);
        let lookup = Lookup4 { nexthop: state.nexthop.then(|| Ipv4Addr::from_key(key)), ..Lookup4::default() };
        let fib = &cx.tables.network.v4;
        let answer = match held.or_else(|| fib.route(cx.guard, route, RouteRefs::Noref)) {
            Some(dst) => Answer::untraced(dst),
            None => fib.lookup(cx.guard, &decide::flow4(cx, &packet, &lookup), cx.refs),
        };
        let verdict = decide::route4(cx, &mut packet, &lookup, answer, self.ledger);
        self.others.push(Other { place: place.into(), packet, verdict });
    }

    /// The packet as the general way has it.
    fn packet(&mut self, place: PlaceInBurst, version: Version) -> Packet {
        let at = usize::from(place);
        let State { iif, dev, lookups, framed, .. } = self.states[at];
        let buf = std::mem::take(&mut self.frames[at]);
        // Linux looks at options where a packet comes in from a link, and one out of a tunnel came in as IPv6.
        let tunnelled = version == Version::V4 && !framed;
        Packet {
            dev,
            in_vrf: self.cx.vrf(dev).1.is_some(),
            l2_len: if framed { eth::LEN as u8 } else { 0 },
            lookups,
            options: tunnelled.then(Options::default),
            ..Packet::new(version, buf, self.runs.time(at), self.first + at as u64, iif)
        }
    }
}

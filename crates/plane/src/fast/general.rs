//! From the short way to the general one.

use std::net::{Ipv4Addr, Ipv6Addr};

use route::{Address, Answer, DstRef, RouteRefs};
use srv6::{Lookup4, Lookup6};
use wire::eth;

use super::Other;
use super::lanes::{Answered, Scope};
use super::state::State;
use super::step::Pass;
use crate::options4::Options;
use crate::packet::{Packet, Version};
use crate::verdict::Verdict;
use crate::{decide, ethernet};

impl<'g> Pass<'_, '_, 'g> {
    /// Follows a packet that is not plain to its verdict.
    #[cold]
    pub(super) fn general(&mut self, place: usize, mut packet: Packet) {
        let (cx, ledger) = (self.cx, &mut *self.ledger);
        if ledger.is_tracing() {
            ledger.step(&packet, "in", || ethernet::describe(&packet.buf, cx.links.get(packet.iif)));
        }
        let verdict = ethernet::input(cx, &mut packet, ledger);
        let verdict = decide::settle(cx, &mut packet, verdict, ledger);
        self.others.push(Other { place, packet, verdict });
    }

    /// The packet in a place goes on with this verdict.
    #[cold]
    pub(super) fn leave_to(&mut self, place: usize, state: &State, version: Version, verdict: Verdict<'g>) {
        let packet = self.packet(place, state, version);
        self.others.push(Other { place, packet, verdict });
    }

    /// From a route on, or from the lookup when the short way found none.
    #[cold]
    pub(super) fn general6(&mut self, place: usize, group: &Answered<'_, u128>, held: Option<DstRef<'g>>) {
        let cx = self.cx;
        let Answered { scope, state, key, route, .. } = *group;
        let mut packet = self.packet(place, state, Version::V6);
        let nexthop = state.nexthop.then(|| Ipv6Addr::from_key(*key));
        let table = if let Scope::Table(table) = scope { Some(table) } else { None };
        let lookup = Lookup6 { nexthop, table, local: state.local, ..Lookup6::default() };
        let fib = &cx.tables.network.v6;
        let answer = match held.or_else(|| fib.route(cx.guard, route, RouteRefs::Noref)) {
            Some(dst) => Some(Answer::untraced(dst)),
            None => fib.lookup_named(cx.guard, table, &decide::flow6(cx, &packet, &lookup), cx.refs),
        };
        let verdict = decide::route6(cx, &mut packet, &lookup, answer, self.ledger);
        self.others.push(Other { place, packet, verdict });
    }

    /// As [`Pass::general6`] for IPv4.
    #[cold]
    pub(super) fn general4(&mut self, place: usize, group: &Answered<'_, u32>, held: Option<DstRef<'g>>) {
        let cx = self.cx;
        let Answered { state, key, route, .. } = *group;
        let mut packet = self.packet(place, state, Version::V4);
        let lookup = Lookup4 { nexthop: state.nexthop.then(|| Ipv4Addr::from_key(*key)), ..Lookup4::default() };
        let fib = &cx.tables.network.v4;
        let answer = match held.or_else(|| fib.route(cx.guard, route, RouteRefs::Noref)) {
            Some(dst) => Answer::untraced(dst),
            None => fib.lookup(cx.guard, &decide::flow4(cx, &packet, &lookup), cx.refs),
        };
        let verdict = decide::route4(cx, &mut packet, &lookup, answer, self.ledger);
        self.others.push(Other { place, packet, verdict });
    }

    /// The packet as the general way has it.
    fn packet(&mut self, place: usize, state: &State, version: Version) -> Packet {
        let State { iif, dev, framed, by_sid, .. } = *state;
        let buf = std::mem::take(&mut self.frames[place]);
        // Linux looks at options where a packet comes in from a link, and one out of a tunnel came in as IPv6.
        let tunnelled = version == Version::V4 && !framed;
        Packet {
            dev,
            in_vrf: self.cx.vrf(dev).1.is_some(),
            l2_len: if framed { eth::LEN as u8 } else { 0 },
            lookups: self.lookups,
            by_sid,
            options: tunnelled.then(Options::default),
            ..Packet::new(version, buf, self.runs.time(place), self.first + place as u64, iif)
        }
    }
}

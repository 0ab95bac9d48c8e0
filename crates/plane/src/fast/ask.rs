//! Packets that ask again: a SID or a policy changed them.

use std::ops::Range;

use port::Buf;
use route::{Address, IfIndex, TableId};
use srv6::{Lookup4, Lookup6, Next};
use wire::{ipv4, ipv6};

use super::enter::is_plain6;
use super::lanes::{Asker, Scope};
use super::state::State;
use super::step::Pass;
use crate::ip4_input::{Addresses, check_addresses};
use crate::packet::{MAX_LOOKUPS, Version};
use crate::verdict::Verdict;

impl Pass<'_, '_, '_> {
    /// One who asks, told from all before.
    pub(super) fn asker(&mut self, state: State) -> Asker {
        self.askers += 1;
        Asker::new(state, self.askers)
    }

    /// Packets that want this, and are where the router looked around last.
    #[inline]
    pub(super) fn again(&mut self, places: Range<usize>, state: State, wish: &Next) {
        match wish {
            Next::Onward => self.route_to(places, state, &Lookup6::default()),
            Next::Route6(lookup) => self.route_to(places, state, lookup),
            Next::Route4(lookup) => self.route4_to(places, state, lookup),
            Next::Frame { port } => places.for_each(|at| self.leave_to(at, &state, Version::V6, Verdict::Frame(*port))),
        }
    }

    /// IPv6 packets ask for a route, if one address is all it takes.
    pub(super) fn route_to(&mut self, places: Range<usize>, state: State, lookup: &Lookup6) {
        let Lookup6 { nexthop, oif, table, vrf, local, configured: _ } = *lookup;
        let scope = self.scope(vrf, table).filter(|_| oif.is_none() && self.cx.plain6 && self.lookups < MAX_LOOKUPS);
        let nexthop = nexthop.map(Address::key);
        let question = |buf: &mut Buf| {
            let header = ipv6::Header::read(buf)?;
            let dst = nexthop.unwrap_or_else(|| header.dst().key());
            (is_plain6(header.src().key()) && is_plain6(dst)).then_some(dst)
        };
        let ask = |pass: &mut Self, places: Range<usize>| {
            let Some((dev, scope)) = scope else { return 0 };
            let asker = pass.asker(State { nexthop: nexthop.is_some(), local, dev, ..state });
            pass.next.v6.ask(scope, &asker, places.start, &mut pass.frames[places], question)
        };
        self.in_turn(places, ask, |pass, at| pass.leave_to(at, &state, Version::V6, Verdict::Route6(*lookup)));
    }

    /// As [`Pass::route_to`] for IPv4 packets.
    fn route4_to(&mut self, places: Range<usize>, state: State, lookup: &Lookup4) {
        let Lookup4 { nexthop, vrf } = *lookup;
        let scope = self.scope(vrf, None).filter(|_| self.cx.plain4 && self.lookups < MAX_LOOKUPS);
        let question = |buf: &mut Buf| {
            let header = ipv4::Header::read(buf).filter(|header| header.header_len() == ipv4::LEN)?;
            let dst = nexthop.unwrap_or(header.dst());
            (check_addresses(header.src(), dst) == Ok(Addresses::Route)).then_some(dst.key())
        };
        let ask = |pass: &mut Self, places: Range<usize>| {
            let Some((dev, scope)) = scope else { return 0 };
            let asker = pass.asker(State { nexthop: nexthop.is_some(), dev, ..state });
            pass.next.v4.ask(scope, &asker, places.start, &mut pass.frames[places], question)
        };
        self.in_turn(places, ask, |pass, at| pass.leave_to(at, &state, Version::V4, Verdict::Route4(*lookup)));
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

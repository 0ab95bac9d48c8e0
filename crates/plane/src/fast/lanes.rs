//! Packets that ask for a route, ordered by what is asked.

use std::net::{Ipv4Addr, Ipv6Addr};

pub(super) use route::Scope;
use route::{Address, RouteRefs};

use crate::arrivals::BURST;
use crate::context::Context;

/// How many sets of tables packets of one burst may ask at once; the others take the general way.
const SCOPES: usize = 8;

/// A packet's place in its burst.
pub(super) type PlaceInBurst = u8;

const _: () = assert!(BURST == 1 + PlaceInBurst::MAX as usize, "a place for each frame of a burst");

/// A packet that asks.
#[derive(Clone, Copy)]
struct Asking {
    place: PlaceInBurst,
    /// Which of the lane's keys it asks for.
    key: u16,
}

/// The packets of one family that ask the same tables.
struct Lane<A: Address> {
    scope: Scope,
    asking: Vec<Asking>,
    /// What they ask for. Packets that follow each other to one address ask once.
    keys: Vec<A::Key>,
}

impl<A: Address> Lane<A> {
    #[inline(always)]
    fn push(&mut self, share: bool, place: PlaceInBurst, key: A::Key) {
        if !share || self.keys.last() != Some(&key) {
            self.keys.push(key);
        }
        self.asking.push(Asking { place, key: (self.keys.len() - 1) as u16 });
    }
}

/// The packets of one family, a lane for each set of tables.
pub(super) struct Family<A: Address> {
    lanes: Vec<Lane<A>>,
    used: usize,
    /// Whether packets that follow each other may share an answer: not where each is to take its own reference.
    share: bool,
}

impl<A: Address> Default for Family<A> {
    fn default() -> Family<A> {
        Family { lanes: Vec::with_capacity(SCOPES), used: 0, share: false }
    }
}

impl<A: Address> Family<A> {
    /// Puts a question. False, and nothing done, when too many different tables are asked.
    #[inline(always)]
    pub(super) fn push(&mut self, scope: Scope, place: PlaceInBurst, key: A::Key) -> bool {
        match self.lanes.first_mut() {
            Some(lane) if lane.scope == scope && self.used != 0 => {
                lane.push(self.share, place, key);
                true
            }
            _ => self.push_elsewhere(scope, place, key),
        }
    }

    /// As [`Family::push`] where not the first tables are asked.
    #[inline(never)]
    fn push_elsewhere(&mut self, scope: Scope, place: PlaceInBurst, key: A::Key) -> bool {
        let share = self.share;
        let used = &self.lanes[..self.used];
        let at = used.iter().position(|lane| lane.scope == scope).unwrap_or(self.used);
        if at == SCOPES {
            return false;
        }
        if at == self.lanes.len() {
            self.lanes.push(Lane { scope, asking: Vec::with_capacity(BURST), keys: Vec::with_capacity(BURST) });
        }
        self.used = self.used.max(at + 1);
        let lane = &mut self.lanes[at];
        lane.scope = scope;
        lane.push(share, place, key);
        true
    }

    fn clear(&mut self) {
        for lane in &mut self.lanes[..self.used] {
            lane.asking.clear();
            lane.keys.clear();
        }
        self.used = 0;
    }

    /// Looks all up, and hands each that asks to `step` with its tables, its key and the number of the route found, 0 for none.
    #[inline(always)]
    pub(super) fn answer(
        &self,
        fib: &route::Fib<A>,
        cx: &Context<'_, '_>,
        routes: &mut Vec<u32>,
        mut step: impl FnMut(Scope, PlaceInBurst, A::Key, u32),
    ) {
        for lane in &self.lanes[..self.used] {
            fib.lookup_batch(cx.guard, lane.scope, &lane.keys, cx.refs, routes);
            for asking in &lane.asking {
                let at = usize::from(asking.key);
                if let (Some(&key), Some(&route)) = (lane.keys.get(at), routes.get(at)) {
                    step(lane.scope, asking.place, key, route);
                }
            }
        }
    }
}

/// Lookups to be made together.
#[derive(Default)]
pub(super) struct Lanes {
    pub(super) v6: Family<Ipv6Addr>,
    pub(super) v4: Family<Ipv4Addr>,
}

impl Lanes {
    pub(super) fn is_empty(&self) -> bool {
        self.v6.used == 0 && self.v4.used == 0
    }

    /// Empties them, for questions answered in this way.
    pub(super) fn clear(&mut self, refs: RouteRefs) {
        self.v6.clear();
        self.v4.clear();
        (self.v6.share, self.v4.share) = (refs == RouteRefs::Noref, refs == RouteRefs::Noref);
    }
}

//! Packets that ask for a route, ordered by what is asked.

use std::net::{Ipv4Addr, Ipv6Addr};
use std::ops::Range;

use port::Buf;
pub(super) use route::Scope;
use route::{Address, RouteRefs};

use super::state::State;
use crate::arrivals::BURST;
use crate::context::Context;

/// How many sets of tables packets of one burst may ask at once; the others take the general way.
const SCOPES: usize = 8;

/// What packets that ask have in common.
#[derive(Clone, Copy)]
pub(super) struct Asker {
    state: State,
    /// Which one of the burst's it is.
    number: u32,
}

impl Asker {
    /// One that differs from all others of the burst by its number.
    pub(super) fn new(state: State, number: u32) -> Asker {
        Asker { state, number }
    }

    /// The packet in a place, told from all others that ask in this burst.
    #[inline(always)]
    fn mark(&self, place: usize) -> u64 {
        u64::from(self.number) << 32 | place as u64
    }
}

/// Packets of one asker in places that follow each other, which ask for one address.
#[derive(Clone, Copy)]
struct Group {
    state: State,
    first: u16,
    /// The place behind the last one.
    end: u16,
}

/// A group whose question was answered.
pub(super) struct Answered<'a, K> {
    pub(super) scope: Scope,
    pub(super) state: &'a State,
    places: Range<u16>,
    pub(super) key: &'a K,
    /// The number of the route found, 0 for none.
    pub(super) route: u32,
}

impl<K> Answered<'_, K> {
    /// Where its packets are.
    #[inline(always)]
    pub(super) fn places(&self) -> Range<usize> {
        self.places.start.into()..self.places.end.into()
    }
}

/// The packets of one family that ask the same tables.
struct Lane<A: Address> {
    scope: Scope,
    groups: Vec<Group>,
    /// What each group asks for.
    keys: Vec<A::Key>,
    /// What the last group asks for, and the mark of the packet that would be its next: [`NO_MARK`] where none may join it.
    last: A::Key,
    next: u64,
}

/// Marks no packet.
const NO_MARK: u64 = u64::MAX;

impl<A: Address> Lane<A> {
    fn new(scope: Scope) -> Lane<A> {
        let last = A::UNSPECIFIED.key();
        Lane { scope, groups: Vec::with_capacity(BURST), keys: Vec::with_capacity(BURST), last, next: NO_MARK }
    }

    #[inline(always)]
    fn push(&mut self, share: bool, asker: &Asker, place: usize, key: A::Key) {
        let mark = asker.mark(place);
        if mark == self.next && key == self.last {
            self.next += 1;
        } else {
            self.close();
            self.keys.push(key);
            self.groups.push(Group { state: asker.state, first: place as u16, end: place as u16 + 1 });
            if share {
                (self.last, self.next) = (key, mark + 1);
            }
        }
    }

    /// Writes down where the last group ends. No packet joins it any more.
    #[inline]
    fn close(&mut self) {
        if let Some(group) = self.groups.last_mut().filter(|_| self.next != NO_MARK) {
            group.end = self.next as u16;
        }
        self.next = NO_MARK;
    }
}

/// The packets of one family, a lane for each set of tables.
pub(super) struct Family<A: Address> {
    lanes: Vec<Lane<A>>,
    used: usize,
    /// Whether packets may share an answer: not where each is to take its own reference.
    share: bool,
}

impl<A: Address> Default for Family<A> {
    fn default() -> Family<A> {
        Family { lanes: Vec::with_capacity(SCOPES), used: 0, share: false }
    }
}

impl<A: Address> Family<A> {
    /// Puts the questions of packets in places from `first` on, as far as `question` has one for each. How many were put: none when too many
    /// different tables are asked.
    #[inline(always)]
    pub(super) fn ask(
        &mut self,
        scope: Scope,
        asker: &Asker,
        first: usize,
        bufs: &mut [Buf],
        mut question: impl FnMut(&mut Buf) -> Option<A::Key>,
    ) -> usize {
        let Some(lane) = self.lane(scope) else { return 0 };
        let lane = &mut self.lanes[lane];
        for (n, buf) in bufs.iter_mut().enumerate() {
            let Some(key) = question(buf) else { return n };
            lane.push(self.share, asker, first + n, key);
        }
        bufs.len()
    }

    /// The lane for these tables; none when too many others are asked.
    #[inline]
    fn lane(&mut self, scope: Scope) -> Option<usize> {
        let at = self.lanes[..self.used].iter().position(|lane| lane.scope == scope).unwrap_or(self.used);
        if at == SCOPES {
            return None;
        }
        if at == self.used {
            self.open(scope);
        }
        Some(at)
    }

    #[cold]
    fn open(&mut self, scope: Scope) {
        match self.lanes.get_mut(self.used) {
            Some(lane) => lane.scope = scope,
            None => self.lanes.push(Lane::new(scope)),
        }
        self.used += 1;
    }

    fn clear(&mut self) {
        for lane in &mut self.lanes[..self.used] {
            lane.groups.clear();
            lane.next = NO_MARK;
            lane.keys.clear();
        }
        self.used = 0;
    }

    /// Looks all up, and hands each group with its answer to `step`.
    #[inline(always)]
    pub(super) fn answer(
        &mut self,
        fib: &route::Fib<A>,
        cx: &Context<'_, '_>,
        routes: &mut Vec<u32>,
        mut step: impl FnMut(Answered<'_, A::Key>),
    ) {
        for lane in &mut self.lanes[..self.used] {
            lane.close();
            fib.lookup_batch(cx.guard, lane.scope, &lane.keys, cx.refs, routes);
            for ((Group { state, first, end }, key), &route) in lane.groups.iter().zip(&lane.keys).zip(&*routes) {
                step(Answered { scope: lane.scope, state, places: *first..*end, key, route });
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

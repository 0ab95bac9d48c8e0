//! Routes that a worker found lately, by everything that finding them depended on.

use rcu::Guard;

use crate::{Address, Answer, Fib, Flow, IfIndex, RouteRefs, TableId};

/// Places of a cache, a power of two.
const PLACES: usize = 64;

/// What a worker asked for lately, and the number of the route that it found: for destinations that stand in the configuration, as the first segment of a policy
/// does, and so are asked for again and again. Fixed size; a question whose place another has taken is asked anew.
///
/// An answer is for questions that agree in all that a lookup may depend on: destination, source, interface, VRF, mark, traffic class, protocol and
/// ports, and the table where one is asked alone. It is good for one state of the tables, the one of [`Network::generation`](crate::Network::generation).
pub struct DstCache<A: Address> {
    generation: Option<u64>,
    places: Box<[Place<A>; PLACES]>,
}

/// A question and its answer. One cache line in IPv6.
#[derive(Clone, Copy)]
#[repr(align(64))]
struct Place<A> {
    asked: Asked<A>,
    /// The route's number; 0: nothing is remembered here.
    route: u32,
}

/// What a lookup depends on.
#[derive(Clone, Copy, PartialEq, Eq)]
struct Asked<A> {
    dst: A,
    src: A,
    iif: IfIndex,
    vrf: IfIndex,
    /// Table of the VRF, if `how` says that there is one.
    vrf_table: u32,
    /// The one table that is asked, if `how` says so.
    alone: u32,
    mark: u32,
    sport: u16,
    dport: u16,
    protocol: u8,
    dsfield: u8,
    how: u8,
}

impl<A: Address> Asked<A> {
    const IN_VRF: u8 = 1;
    const ALONE: u8 = 2;
    const FROM_KNOWN: u8 = 4;

    fn of(table: Option<TableId>, flow: &Flow<A>) -> Asked<A> {
        let Flow { dst, src, iif, vrf, vrf_table, link: _, oif: _, bound: _, mark, dsfield, from_known, upper } = *flow;
        let bit = |set: bool, bit: u8| if set { bit } else { 0 };
        Asked {
            dst,
            src,
            iif,
            vrf,
            vrf_table: vrf_table.map_or(0, |table| table.0),
            alone: table.map_or(0, |table| table.0),
            mark,
            sport: upper.sport,
            dport: upper.dport,
            protocol: upper.protocol,
            dsfield,
            how: bit(vrf_table.is_some(), Self::IN_VRF) | bit(table.is_some(), Self::ALONE) | bit(from_known, Self::FROM_KNOWN),
        }
    }

    fn place(&self) -> usize {
        let [high, low] = self.dst.halves();
        let context = u64::from(self.iif.0) << 40 ^ u64::from(self.vrf.0) << 20 ^ u64::from(self.mark) ^ u64::from(self.alone) << 32;
        let mixed = (high.rotate_left(29) ^ low ^ context ^ u64::from(self.dsfield) << 56).wrapping_mul(0x9e37_79b9_7f4a_7c15);
        (mixed >> 32) as usize % PLACES
    }
}

impl<A: Address> Default for DstCache<A> {
    fn default() -> DstCache<A> {
        let nobody = Flow::new(A::UNSPECIFIED, IfIndex(0));
        DstCache { generation: None, places: Box::new([Place { asked: Asked::of(None, &nobody), route: 0 }; PLACES]) }
    }
}

impl<A: Address> DstCache<A> {
    /// As [`Fib::lookup_named`]. `generation` is that of the burst's start.
    ///
    /// What must be asked anew each time is: references that are to be taken, destinations that mean something on a link only, packets that are bound to an
    /// interface, and whatever comes while a commit is under way. An answer that was remembered does not tell by which rule it was found.
    #[inline]
    pub fn lookup<'g>(
        &mut self,
        guard: &Guard<'g>,
        fib: &Fib<A>,
        generation: Option<u64>,
        table: Option<TableId>,
        flow: &Flow<A>,
        refs: RouteRefs,
    ) -> Option<Answer<'g>> {
        let ask = || fib.lookup_named(guard, table, flow, refs);
        if generation.is_none() || refs == RouteRefs::Counted || flow.dst.is_link_scoped() || flow.oif != IfIndex(0) || flow.bound {
            return ask();
        }
        if self.generation != generation {
            self.generation = generation;
            self.places.iter_mut().for_each(|place| place.route = 0);
        }
        let asked = Asked::of(table, flow);
        let place = &mut self.places[asked.place()];
        if place.route != 0
            && place.asked == asked
            && let Some(dst) = fib.route(guard, place.route, refs)
        {
            return Some(Answer::untraced(dst));
        }
        let answer = ask();
        // 0 for what is no route.
        *place = Place { asked, route: answer.as_ref().map_or(0, |answer| answer.number) };
        answer
    }
}

#[cfg(test)]
mod tests {
    use std::net::Ipv6Addr;

    use super::*;

    #[test]
    fn a_question_with_its_answer_is_a_cache_line() {
        assert_eq!((size_of::<Place<Ipv6Addr>>(), align_of::<Place<Ipv6Addr>>()), (64, 64));
    }
}

//! The plainest packets, from the frame to the way out.
//!
//! ```text
//! enter: which frames are plain ──► lanes: look up together ──► step: do what the route does ──► out
//!                                     ▲                           │ ask again
//!                                     └───────────────────────────┘
//! ```
//! Most packets need nothing but an address to be routed, and find a neighbour whose address is known. They take this short way, all of a burst together;
//! whatever is out of the ordinary is left, untouched or at a point between two lookups, to the general way (`ethernet`, `decide`, `host`), which gives
//! the same answers. Traced packets take the general way, which writes everything down.

mod ask;
mod enter;
mod frame;
mod general;
mod lanes;
mod state;
mod step;
mod ways;

use std::ops::Range;

use crate::arrivals::{Arrivals, BURST};
use crate::context::Context;
use crate::packet::Packet;
use crate::trace::Ledger;
use crate::verdict::Verdict;
use lanes::Lanes;
use step::{Here, Pass};
use ways::{EMPTY, Index, Way, Ways};

/// A packet on the general way, which is to be performed in its place among the others.
pub(crate) struct Other<'g> {
    pub(crate) place: usize,
    pub(crate) packet: Packet,
    pub(crate) verdict: Verdict<'g>,
}

/// Working memory of the short way, kept from burst to burst.
pub(crate) struct Fast {
    now: Lanes,
    next: Lanes,
    /// The numbers of the routes found.
    routes: Vec<u32>,
    ways: Vec<Way<'static>>,
    index: Index,
    /// For each place, one more than the port that its packet leaves by, once it is ready to.
    out: [u16; BURST],
}

impl Default for Fast {
    fn default() -> Fast {
        Fast { now: Lanes::default(), next: Lanes::default(), routes: Vec::new(), ways: Vec::new(), index: EMPTY, out: [0; BURST] }
    }
}

impl Fast {
    /// Takes the frames of a burst as far as the short way goes. Those that are not ready to leave then are in `others`, in the order of their places.
    pub(crate) fn run<'g>(
        &mut self,
        cx: &Context<'_, 'g>,
        arrivals: &mut Arrivals,
        first: u64,
        others: &mut Vec<Other<'g>>,
        ledger: &mut Ledger,
    ) {
        let Fast { now, next, routes, ways, index, out } = self;
        let (frames, runs) = arrivals.parts();
        out[..frames.len()].fill(0);
        next.clear(cx.refs);
        let ways_met = Ways::reuse(std::mem::take(ways), index);
        let mut pass =
            Pass { cx, frames, runs, first, next, ways: ways_met, out, others, here: Here::nowhere(cx), askers: 0, lookups: 0, ledger };
        pass.enter();
        while !pass.next.is_empty() {
            std::mem::swap(now, pass.next);
            pass.next.clear(cx.refs);
            pass.lookups += 1;
            pass.answer6(&mut now.v6, routes);
            pass.answer4(&mut now.v4, routes);
        }
        pass.ways.count(pass.ledger);
        *ways = pass.ways.into_memory();
        others.sort_unstable_by_key(|other| other.place);
    }

    /// The port that the packets in these places leave by, as many as follow each other by the same; none for those that are not ready to leave.
    #[inline]
    pub(crate) fn out(&self, places: Range<usize>) -> impl Iterator<Item = (Option<usize>, usize)> {
        let alike = self.out.get(places).unwrap_or_default().chunk_by(u16::eq);
        alike.map(|out| (out[0].checked_sub(1).map(usize::from), out.len()))
    }
}

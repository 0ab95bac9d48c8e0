//! Marks that packets get as they come in, for rules to select by: what other routers leave to a packet filter.

use crate::policy::Index;
use crate::{Address, Flow, Mark, Selector};

/// A line of the classifier.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct MarkRule<A: Address> {
    /// Packets it is for, as they come in: neither a mark nor a way out is known of them.
    pub select: Selector<A>,
    /// The bits that it sets, and to what.
    pub set: Mark,
}

/// The classifier as workers read it.
pub struct Marks<A: Address> {
    lines: Vec<MarkRule<A>>,
    index: Index<A>,
    asks_upper: bool,
}

impl<A: Address> Marks<A> {
    pub(crate) fn compile(lines: &[MarkRule<A>]) -> Marks<A> {
        let index = Index::build(lines.iter().map(|line| &line.select));
        Marks { lines: lines.to_vec(), index, asks_upper: lines.iter().any(|line| line.select.asks_upper()) }
    }

    /// True when no packet gets a mark.
    #[inline]
    pub fn is_empty(&self) -> bool {
        self.lines.is_empty()
    }

    /// True when some line looks at protocol or ports, so that the [`Flow`] needs them.
    pub fn asks_upper(&self) -> bool {
        self.asks_upper
    }

    /// The mark of a packet that comes in: that of the first line it matches, 0 without one.
    pub fn mark(&self, flow: &Flow<A>) -> u32 {
        let mut candidates = self.index.candidates(flow);
        let lines = std::iter::from_fn(|| candidates.next()).filter_map(|place| self.lines.get(place as usize));
        lines.into_iter().find(|line| line.select.matches(flow)).map_or(0, |line| line.set.value & line.set.mask)
    }
}

//! Prefixes with routes that are for some of their packets only.
//!
//! In the match table stands a route that is no route (its kind is `throw`) and holds a [`Choice`]: which packets take which route, and where the others go
//! on. That is the prefix's own route for all packets, or else what the next shorter prefix has; in IPv6 always the latter, since Linux does not look at a
//! prefix's routes without `from` where it has one with (`fib6_node_lookup`).

use std::sync::Arc;

use super::commit::best;
use super::{Entries, Rib, RibTable};
use crate::select::Choice;
use crate::{Address, Dst, Fib, Kind, Neighbours, Prefix, Select};

/// What stands for a prefix in the match table.
pub(super) struct Chosen {
    /// The number that the choice has among routes.
    leaf: u32,
    /// The options, and whether the last of them is for all packets: then there is no way on.
    options: Vec<(Select, u32)>,
}

/// True of a prefix whose routes are for some of its packets only.
pub(super) fn is_choice(entries: &Entries) -> bool {
    entries.iter().any(|entry| !entry.select.is_all())
}

impl<A: Address> Rib<A> {
    /// Makes the choice of a prefix; where its other packets go on is found by [`Rib::link_choices`]. `told` as of [`Rib::make`]. Its number.
    pub(super) fn choose(
        &mut self,
        table: &mut RibTable<A>,
        prefix: Prefix<A>,
        told: Option<u8>,
        fib: &Fib<A>,
        neighbours: &Neighbours,
    ) -> u32 {
        let Some(slot) = table.routes.get(&prefix) else { return 0 };
        let mut options = Vec::new();
        let down = self.down.clone();
        for group in slot.entries.chunk_by(|a, b| a.select == b.select) {
            let Some(first) = group.first() else { continue };
            if first.select.is_all() && A::BITS == 128 {
                continue;
            }
            let effect = best::<A>(group, &down);
            options.push((first.select, self.make(effect, told, fib, neighbours)));
        }
        // Nobody finds it before it is in the match table, and then it is complete.
        let leaf = fib.dsts.insert(Arc::new(Dst::special(Kind::Throw)));
        table.choices.insert(prefix, Chosen { leaf, options });
        leaf
    }

    /// Says where packets go on that a choice has no option for. All choices of the table are looked at: any prefix around them may have changed.
    pub(super) fn link_choices(&self, table: &RibTable<A>, fib: &Fib<A>) {
        for (prefix, chosen) in &table.choices {
            let choice = Choice { options: chosen.options.clone().into(), otherwise: table.shorter(*prefix) };
            let known = fib.dsts.snapshot(chosen.leaf).and_then(|dst| dst.choice.as_deref().cloned());
            if known.as_ref() != Some(&choice) {
                fib.dsts.replace(chosen.leaf, Arc::new(Dst { choice: Some(Box::new(choice)), ..Dst::special(Kind::Throw) }));
            }
        }
    }

    /// A choice that the match table does not lead to any more goes.
    pub(super) fn unchoose(&mut self, chosen: Chosen, fib: &Fib<A>) {
        fib.dsts.remove(chosen.leaf);
        chosen.options.into_iter().for_each(|(_, id)| self.unmake(id, fib));
    }
}

impl<A: Address> RibTable<A> {
    /// The number of the route of the longest prefix around this one, 0 when there is none.
    fn shorter(&self, prefix: Prefix<A>) -> u32 {
        let around = (0..prefix.len()).rev().filter(|len| self.lengths[usize::from(*len)] > 0);
        let leaf = |len| self.routes.get(&Prefix::new(prefix.addr(), len)?).map(|slot| slot.leaf).filter(|leaf| *leaf != 0);
        around.filter_map(leaf).next().unwrap_or(0)
    }
}

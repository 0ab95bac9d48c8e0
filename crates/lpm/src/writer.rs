//! Changing a trie under its readers.
//!
//! A changed prefix is followed down to the node it ends in, or to the answer above. The slots it covers there
//! are made anew from the [`Rib`]; then the node has other children and other leaves. These are
//! put beside the old ones, and one store lets readers go there:
//!
//! - to the node's bases (of which a lookup uses one), if its slots kept their shape;
//! - else the node itself is another, its parent's children are put anew with it among them, and the
//!   parent's bases are stored: there the shape is the same, so this goes up one level mostly;
//! - or to the word of the direct table.
//!
//! Readers see the tree before or after. What is cut off is retired.

use std::ops::Range;

use crate::arena::{Arena, Fresh};
use crate::build::{Slot, Slots, Store, build, push};
use crate::rib::{Entry, Rib};
use crate::tables::{NODE, STRIDE};
use crate::{Key, Prefix};

/// Prefixes that are made anew for each that changed, at most, where many are made anew together: so many cost about what one by itself does.
const REMADE_A_CHANGE: usize = 8;

/// The trie and the prefixes it was made of.
pub(crate) struct Trie<K: Key> {
    pub(crate) rib: Rib<K>,
    pub(crate) arena: Arena<K>,
}

impl<K: Key> Trie<K> {
    pub(crate) fn new() -> Self {
        Self { rib: Rib::new(), arena: Arena::new(K::DIRECT[0].1) }
    }

    pub(crate) fn insert(&mut self, prefix: Prefix<K>, value: u32) -> Option<u32> {
        let old = self.rib.insert(prefix, value);
        if old != Some(value) {
            self.update(prefix);
        }
        old
    }

    pub(crate) fn remove(&mut self, prefix: Prefix<K>) -> Option<u32> {
        let old = self.rib.remove(prefix);
        if old.is_some() {
            self.update(prefix);
        }
        old
    }

    /// Inserts many: one by one if they are few beside what there is, else all is made anew.
    pub(crate) fn extend(&mut self, entries: Vec<Entry<K>>) {
        if entries.len() < self.rib.len() / 64 {
            for (prefix, value) in entries {
                self.insert(prefix, value);
            }
        } else if !entries.is_empty() {
            self.rib.merge(entries);
            self.rebuild(self.wanted_bits());
        }
    }

    /// Makes many changes, sorted by prefix, each prefix once; a change without a value removes. What lies close together is made anew together.
    pub(crate) fn change(&mut self, changes: &[(Prefix<K>, Option<u32>)]) {
        let mut changed = Vec::with_capacity(changes.len());
        for &(prefix, value) in changes {
            let old = match value {
                Some(value) => self.rib.insert(prefix, value),
                None => self.rib.remove(prefix),
            };
            if old != value {
                changed.push(prefix);
            }
        }
        if !changed.is_empty() && !self.made_for_all() {
            self.update_each(&changed);
        }
    }

    fn update(&mut self, prefix: Prefix<K>) {
        if !self.made_for_all() {
            self.update_region(prefix);
        }
    }

    /// Where the whole trie has to be made anew it is, and true.
    fn made_for_all(&mut self) -> bool {
        self.arena.recover();
        let bits = self.wanted_bits();
        let all = self.rib.len() == 0 || bits != self.arena.tables().bits() || self.arena.is_sparse();
        if all {
            self.rebuild(bits);
        }
        all
    }

    /// Makes what is below these prefixes anew. There is at least one; they are sorted.
    fn update_each(&mut self, changed: &[Prefix<K>]) {
        let (Some(first), Some(last)) = (changed.first(), changed.last()) else { return };
        let common = first.truncated(first.addr().common(last.addr()));
        // A prefix stands before all that it covers.
        let shortest = changed.iter().map(|prefix| prefix.len()).min().unwrap_or(0);
        let all = common.truncated(shortest);
        let covered = || self.rib.count_within(all, changed.len() * REMADE_A_CHANGE) + self.words_within(all);
        if all == *first || covered() < changed.len() * REMADE_A_CHANGE {
            return self.update_region(all);
        }
        let half =
            Prefix::new(last.addr(), all.len() + 1).map_or(1, |upper| changed.partition_point(|prefix| prefix.addr() < upper.addr()));
        let (lower, upper) = changed.split_at(half.clamp(1, changed.len() - 1));
        self.update_each(lower);
        self.update_each(upper);
    }

    /// How many words of the direct table a prefix covers.
    fn words_within(&self, prefix: Prefix<K>) -> usize {
        1 << self.arena.tables().bits().saturating_sub(prefix.len())
    }

    /// Makes what is below a prefix anew.
    fn update_region(&mut self, prefix: Prefix<K>) {
        let bits = self.arena.tables().bits();
        let direct = prefix.addr().first(bits);
        match self.arena.tables().direct(direct) {
            word if prefix.len() > bits && word & NODE != 0 => self.update_nodes(prefix, direct, word & !NODE),
            _ => self.update_direct(prefix.truncated(bits)),
        }
    }

    /// Makes the whole trie anew, with a direct table of so many bits.
    fn rebuild(&mut self, bits: u8) {
        let mut fresh = Fresh::default();
        let words = words(&mut fresh, &self.rib.entries(), bits, 0, 0..1 << bits);
        self.arena = fresh.into_arena(bits, &words);
    }

    /// The size of the direct table for the prefixes there are. Shrinks late, so that a route that flaps does not
    /// have the trie rebuilt each time.
    fn wanted_bits(&self) -> u8 {
        let len = self.rib.len();
        let now = self.arena.tables().bits();
        K::DIRECT
            .iter()
            .filter(|&&(from, bits)| if bits <= now { len >= from / 4 } else { len >= from })
            .map(|&(_, bits)| bits)
            .max()
            .unwrap_or(now)
    }

    /// Makes the words of the direct table that `region` covers anew.
    fn update_direct(&mut self, region: Prefix<K>) {
        let bits = self.arena.tables().bits();
        let first = region.addr().first(bits);
        let slots = first..first + (1 << (bits - region.len()));
        let inherited = self.inherited(region);
        let words = words(&mut self.arena, &self.rib.within(region), bits, inherited, slots.clone());
        for (slot, word) in slots.zip(words) {
            self.arena.unlink_all(self.arena.direct(slot));
            self.arena.set_direct(slot, word);
        }
    }

    /// Makes the slots that `prefix` covers in a node anew, and what of its ancestors has to change with it.
    fn update_nodes(&mut self, prefix: Prefix<K>, direct: usize, root: u32) {
        // Down to the node that the prefix ends in, or where there is no child on its way.
        let mut path: Vec<(u32, usize)> = Vec::new();
        let mut offset = self.arena.tables().bits();
        let mut at = root;
        while prefix.len() > offset + STRIDE {
            let slot = prefix.addr().six(offset);
            let Some(child) = self.arena.tables().node(at).child(slot) else { break };
            path.push((at, slot));
            at = child;
            offset += STRIDE;
        }

        let region = prefix.truncated(offset + STRIDE);
        let first = region.addr().six(offset);
        let covered = first..first + (1 << (offset + STRIDE - region.len()));
        let mut old = self.arena.tables().node(at);
        let mut slots = Slots::of(self.arena.tables(), old);
        for slot in covered.clone() {
            self.arena.unlink_all(slots.get(slot));
        }
        let inherited = self.inherited(region);
        slots.fill(&mut self.arena, &self.rib.within(region), offset, covered, inherited);

        // Up again, until a store in place does it.
        loop {
            let content = slots.finish(&mut self.arena);
            self.arena.unlink(old);
            if let Slot::Node(new) = content
                && new.has_shape_of(old)
            {
                return self.arena.tables().set_bases(at, new);
            }
            let Some((parent, slot)) = path.pop() else {
                let word = root_word(&mut self.arena, content);
                return self.arena.set_direct(direct, word);
            };
            at = parent;
            old = self.arena.tables().node(at);
            slots = Slots::of(self.arena.tables(), old);
            slots.set(slot, content);
        }
    }

    /// What keys in `prefix` get from a shorter one.
    fn inherited(&self, prefix: Prefix<K>) -> u32 {
        self.rib.above(prefix).map_or(0, |(_, value)| value)
    }
}

/// The words for some slots of a direct table of so many bits, with all that is below them.
fn words<K: Key>(store: &mut impl Store, entries: &[Entry<K>], bits: u8, inherited: u32, slots: Range<usize>) -> Vec<u32> {
    let mut words = vec![inherited; slots.len()];
    push(
        entries,
        bits,
        &mut words,
        |key| key.first(bits) - slots.start,
        |_, deeper, inherited| {
            let root = build(store, deeper, bits, inherited);
            Some(root_word(store, root))
        },
    );
    words
}

fn root_word(store: &mut impl Store, content: Slot) -> u32 {
    match content {
        Slot::Leaf(answer) => answer,
        Slot::Node(node) => store.put_nodes(&[node]) | NODE,
    }
}

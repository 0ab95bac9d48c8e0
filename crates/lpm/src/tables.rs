//! The arrays that readers walk, and the walk: the only unsafe code of this crate.
//!
//! Three flat arrays, addressed by index:
//!
//! - `direct`: one word for each value of a key's first bits: a node's index with [`NODE`] set, or else
//!   the answer, 0 for "no route".
//! - `nodes`: each stands for 64 slots, the next six bits of a key. The children of a node are consecutive.
//! - `leaves`: answers. Those of a node are consecutive, one for each run of equal answers.
//!
//! # Invariants
//!
//! The walk ([`walk`]) reads without checking bounds, also while the writer is at work. It may, because
//! of what always holds of the arrays of one `Tables`, in whatever order a reader sees stores:
//!
//! 1. `direct` has exactly `1 << bits` words, and one with [`NODE`] is below `nodes.len() | NODE`.
//! 2. In each node, `first_leaf + 64 <= leaves.len()` and `first_child + 64 <= nodes.len()`.
//! 3. In each node, bit 0 of `runs` is clear. So a walk adds at most 63 to either.
//! 4. `fast` is set only on a processor that has the instructions of [`walk::one_fast`] and [`walk::batch_fast`].
//!
//! The fields are private and every store that could break one goes through a method that panics
//! instead, so no other module has to be trusted. (That a cell is not used again while readers
//! may look at it, matters for the right answer only.)

mod walk;

use crate::sync::{AtomicU32, AtomicU64, Ordering};
use std::marker::PhantomData;
use std::sync::Arc;

use crate::Key;

/// Slots of a node.
pub(crate) const SLOTS: usize = 64;

/// The bits of a key that a node decides on.
pub(crate) const STRIDE: u8 = 6;

/// Marks a direct word that is a node's index; values are below it.
pub(crate) const NODE: u32 = 1 << 31;

/// What a debug build has where no reader may look, until it is used again: a value that no test gives a prefix.
const SPOILT: u32 = NODE - 2;

/// A node as a value: the slots with children, the slots where a new run of answers begins, and where
/// children and answers stand.
#[derive(Clone, Copy, Default, PartialEq, Eq, Debug)]
pub(crate) struct Node {
    /// Bit `s`: slot `s` has a child.
    pub(crate) children: u64,
    /// Bit `s`: slot `s` has no child, and another answer than the last such slot before it. The first run has no bit.
    pub(crate) runs: u64,
    pub(crate) first_leaf: u32,
    pub(crate) first_child: u32,
}

impl Node {
    /// How many nodes stand at `first_child`.
    pub(crate) fn child_count(self) -> usize {
        self.children.count_ones() as usize
    }

    /// How many leaves stand at `first_leaf`.
    pub(crate) fn leaf_count(self) -> usize {
        if self.children == u64::MAX { 0 } else { self.runs.count_ones() as usize + 1 }
    }

    /// The index of a slot's child, if it has one.
    pub(crate) fn child(self, slot: usize) -> Option<u32> {
        let before = self.children & !(u64::MAX << slot);
        (self.children >> slot & 1 != 0).then(|| self.first_child + before.count_ones())
    }

    /// Whether the two differ only in where their children and leaves stand.
    pub(crate) fn has_shape_of(self, other: Self) -> bool {
        (self.children, self.runs) == (other.children, other.runs)
    }
}

/// A node as it stands in the array. A lookup uses only one of the bases, so a node whose slots keep their
/// shape is replaced in place.
#[derive(Default)]
#[repr(C)]
struct Cell {
    children: AtomicU64,
    runs: AtomicU64,
    first_leaf: AtomicU32,
    first_child: AtomicU32,
}

impl Cell {
    fn load(&self) -> Node {
        Node {
            children: self.children.load(Ordering::Relaxed),
            runs: self.runs.load(Ordering::Relaxed),
            first_leaf: self.first_leaf.load(Ordering::Relaxed),
            first_child: self.first_child.load(Ordering::Relaxed),
        }
    }

    fn store(&self, node: Node) {
        self.children.store(node.children, Ordering::Relaxed);
        self.runs.store(node.runs, Ordering::Relaxed);
        self.first_leaf.store(node.first_leaf, Ordering::Relaxed);
        self.first_child.store(node.first_child, Ordering::Relaxed);
    }
}

/// The arrays of one trie; a clone is the same arrays.
pub(crate) struct Tables<K> {
    direct: Arc<[AtomicU32]>,
    nodes: Arc<[Cell]>,
    leaves: Arc<[AtomicU32]>,
    bits: u8,
    fast: bool,
    _key: PhantomData<fn(K)>,
}

impl<K> Clone for Tables<K> {
    fn clone(&self) -> Self {
        Self { direct: Arc::clone(&self.direct), nodes: Arc::clone(&self.nodes), leaves: Arc::clone(&self.leaves), ..*self }
    }
}

impl<K: Key> Tables<K> {
    /// A trie without routes: a direct table of `1 << bits` words, room for so many nodes and leaves.
    pub(crate) fn new(bits: u8, nodes: usize, leaves: usize) -> Self {
        // Behind the last usable cell stand as many as a base may be off by. None without nodes.
        let (nodes, leaves) = if nodes == 0 { (0, 0) } else { (nodes + SLOTS, leaves + SLOTS) };
        Self {
            direct: (0..1usize << bits).map(|_| AtomicU32::default()).collect(),
            nodes: (0..nodes).map(|_| Cell::default()).collect(),
            leaves: (0..leaves).map(|_| AtomicU32::default()).collect(),
            bits,
            fast: walk::fast(),
            _key: PhantomData,
        }
    }

    /// A copy with room for so many nodes and leaves; not less than there was.
    pub(crate) fn grown(&self, nodes: usize, leaves: usize) -> Self {
        let copy = Self::new(self.bits, nodes, leaves);
        assert!(copy.nodes.len() >= self.nodes.len() && copy.leaves.len() >= self.leaves.len(), "tables only grow");
        for (to, from) in copy.nodes.iter().zip(&*self.nodes) {
            to.store(from.load());
        }
        for (to, from) in copy.leaves.iter().zip(&*self.leaves).chain(copy.direct.iter().zip(&*self.direct)) {
            to.store(from.load(Ordering::Relaxed), Ordering::Relaxed);
        }
        copy
    }

    /// How many bits of a key index the direct table.
    pub(crate) fn bits(&self) -> u8 {
        self.bits
    }

    /// How many nodes and leaves there is room for.
    pub(crate) fn capacity(&self) -> (usize, usize) {
        (self.nodes.len().saturating_sub(SLOTS), self.leaves.len().saturating_sub(SLOTS))
    }

    /// Bytes of the arrays.
    pub(crate) fn memory(&self) -> usize {
        size_of_val(&*self.direct) + size_of_val(&*self.nodes) + size_of_val(&*self.leaves)
    }

    pub(crate) fn direct(&self, slot: usize) -> u32 {
        self.direct[slot].load(Ordering::Relaxed)
    }

    pub(crate) fn node(&self, index: u32) -> Node {
        self.nodes[index as usize].load()
    }

    pub(crate) fn leaf(&self, index: u32) -> u32 {
        self.leaves[index as usize].load(Ordering::Relaxed)
    }

    /// Shows readers a new word: an answer, or a node with [`NODE`] that has been written before.
    pub(crate) fn set_direct(&self, slot: usize, word: u32) {
        assert!(word & NODE == 0 || ((word & !NODE) as usize) < self.nodes.len(), "node within the array");
        self.direct[slot].store(word, Ordering::Release);
    }

    /// Shows readers new children and leaves of a node, in place of the old, in as many slots.
    pub(crate) fn set_bases(&self, index: u32, node: Node) {
        self.check(node);
        let cell = &self.nodes[index as usize];
        debug_assert!(node.has_shape_of(cell.load()), "only the bases differ");
        cell.first_leaf.store(node.first_leaf, Ordering::Release);
        cell.first_child.store(node.first_child, Ordering::Release);
    }

    /// Writes nodes that no reader can reach yet.
    pub(crate) fn write_nodes(&self, at: u32, nodes: &[Node]) {
        let cells = &self.nodes[at as usize..][..nodes.len()];
        for (cell, &node) in cells.iter().zip(nodes) {
            self.check(node);
            cell.store(node);
        }
    }

    /// Writes leaves that no reader can reach yet.
    pub(crate) fn write_leaves(&self, at: u32, leaves: &[u32]) {
        let cells = &self.leaves[at as usize..][..leaves.len()];
        for (cell, &leaf) in cells.iter().zip(leaves) {
            cell.store(leaf, Ordering::Relaxed);
        }
    }

    /// Makes nodes that no reader can reach any more lead to what leaves have that none can reach: [`SPOILT`].
    pub(crate) fn spoil_nodes(&self, at: u32, count: u32) {
        let behind = self.capacity().1 as u32;
        self.spoil_leaves(behind, 1);
        let spoilt = Node { first_leaf: behind, ..Node::default() };
        (at..at + count).for_each(|index| self.write_nodes(index, &[spoilt]));
    }

    /// Makes leaves that no reader can reach any more [`SPOILT`].
    pub(crate) fn spoil_leaves(&self, at: u32, count: u32) {
        (at..at + count).for_each(|index| self.write_leaves(index, &[SPOILT]));
    }

    fn check(&self, node: Node) {
        assert!(
            node.runs & 1 == 0
                && node.first_leaf as usize + SLOTS <= self.leaves.len()
                && node.first_child as usize + SLOTS <= self.nodes.len(),
            "a node stays within the arrays"
        );
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// 65 nodes and 66 leaves: one node and two leaves that may be used, and what bases may be off by.
    fn tables() -> Tables<u32> {
        Tables::new(0, 1, 2)
    }

    #[test]
    fn empty_tables_are_a_word_and_answer_no_route() {
        let empty = Tables::<u32>::new(0, 0, 0);
        assert_eq!((empty.memory(), empty.capacity(), empty.lookup(7)), (4, (0, 0), 0));
    }

    #[test]
    fn a_clone_is_the_same_arrays_and_a_grown_copy_is_not() {
        let old = tables();
        let (clone, grown) = (old.clone(), old.grown(3, 4));
        old.set_direct(0, 9);
        assert_eq!((clone.direct(0), grown.direct(0), grown.capacity()), (9, 0, (3, 4)));
    }

    #[test]
    #[should_panic(expected = "node within the array")]
    fn a_direct_word_beyond_the_nodes_is_refused() {
        tables().set_direct(0, 65 | NODE);
    }

    #[test]
    #[should_panic(expected = "a node stays within the arrays")]
    fn a_node_with_leaves_beyond_the_array_is_refused() {
        tables().write_nodes(0, &[Node { first_leaf: 3, ..Node::default() }]);
    }

    #[test]
    #[should_panic(expected = "a node stays within the arrays")]
    fn a_node_with_children_beyond_the_array_is_refused() {
        let tables = tables();
        tables.set_bases(0, Node { first_child: 2, ..Node::default() });
    }

    #[test]
    #[should_panic(expected = "a node stays within the arrays")]
    fn a_run_that_begins_before_the_first_is_refused() {
        tables().write_nodes(0, &[Node { runs: 1, ..Node::default() }]);
    }
}

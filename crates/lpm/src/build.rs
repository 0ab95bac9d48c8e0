//! Making nodes out of prefixes.
//!
//! A prefix that ends within a node is pushed to all the slots it covers, so that a slot holds the
//! answer itself. Sorted prefixes make this one pass: what comes later in a slot is longer.

use crate::Key;
use crate::rib::Entry;
use crate::tables::{Node, SLOTS, STRIDE, Tables};

/// Where a builder puts nodes and leaves. What it returns is the index of the first.
pub(crate) trait Store {
    fn put_nodes(&mut self, nodes: &[Node]) -> u32;
    fn put_leaves(&mut self, leaves: &[u32]) -> u32;
}

/// A slot's content.
#[derive(Clone, Copy, PartialEq, Debug)]
pub(crate) enum Slot {
    /// The same answer for every key; 0 for "no route".
    Leaf(u32),
    /// A node that its parent has yet to put among its children.
    Node(Node),
}

/// The 64 slots of a node in the making.
pub(crate) struct Slots {
    answers: [u32; SLOTS],
    nodes: [Node; SLOTS],
    children: u64,
}

impl Slots {
    /// The same answer in every slot.
    pub(crate) fn uniform(answer: u32) -> Self {
        Self { answers: [answer; SLOTS], nodes: [Node::default(); SLOTS], children: 0 }
    }

    /// The slots of a node in the tables.
    pub(crate) fn of<K: Key>(tables: &Tables<K>, node: Node) -> Self {
        let mut slots = Self::uniform(0);
        let (mut child, mut leaf) = (node.first_child, node.first_leaf);
        for s in 0..SLOTS {
            if node.runs >> s & 1 != 0 {
                leaf += 1;
            }
            if node.children >> s & 1 != 0 {
                slots.set(s, Slot::Node(tables.node(child)));
                child += 1;
            } else {
                slots.answers[s] = tables.leaf(leaf);
            }
        }
        slots
    }

    pub(crate) fn get(&self, slot: usize) -> Slot {
        if self.children >> slot & 1 != 0 { Slot::Node(self.nodes[slot]) } else { Slot::Leaf(self.answers[slot]) }
    }

    pub(crate) fn set(&mut self, slot: usize, content: Slot) {
        match content {
            Slot::Leaf(answer) => {
                self.answers[slot] = answer;
                self.children &= !(1 << slot);
            }
            Slot::Node(node) => {
                self.nodes[slot] = node;
                self.children |= 1 << slot;
            }
        }
    }

    /// Fills the slots from `first` on, that many, with sorted `entries` of this node; `inherited` where there are none.
    pub(crate) fn fill<K: Key>(
        &mut self,
        store: &mut impl Store,
        entries: &[Entry<K>],
        offset: u8,
        slots: std::ops::Range<usize>,
        inherited: u32,
    ) {
        let first = slots.start;
        let answers = &mut self.answers[slots.clone()];
        answers.fill(inherited);
        let made = &mut self.nodes[slots.clone()];
        let mut children = 0u64;
        push(
            entries,
            offset + STRIDE,
            answers,
            |key| key.six(offset) - first,
            |s, entries, inherited| match build(store, entries, offset + STRIDE, inherited) {
                Slot::Leaf(answer) => Some(answer),
                Slot::Node(node) => {
                    made[s] = node;
                    children |= 1 << (first + s);
                    None
                }
            },
        );
        let mask = u64::MAX >> (SLOTS - slots.len()) << first;
        self.children = self.children & !mask | children;
    }

    /// Puts children and leaves into the store and returns the node, or the answer if there is but one.
    pub(crate) fn finish(&self, store: &mut impl Store) -> Slot {
        let mut node = Node { children: self.children, ..Node::default() };
        let mut nodes = [Node::default(); SLOTS];
        let mut leaves = [0; SLOTS];
        let (mut node_count, mut leaf_count) = (0, 0);
        for s in 0..SLOTS {
            match self.get(s) {
                Slot::Node(child) => {
                    nodes[node_count] = child;
                    node_count += 1;
                }
                Slot::Leaf(answer) if leaf_count > 0 && leaves[leaf_count - 1] == answer => {}
                Slot::Leaf(answer) => {
                    if leaf_count > 0 {
                        node.runs |= 1 << s;
                    }
                    leaves[leaf_count] = answer;
                    leaf_count += 1;
                }
            }
        }
        if node_count == 0 && leaf_count == 1 {
            return Slot::Leaf(leaves[0]);
        }
        if node_count > 0 {
            node.first_child = store.put_nodes(&nodes[..node_count]);
        }
        if leaf_count > 0 {
            node.first_leaf = store.put_leaves(&leaves[..leaf_count]);
        }
        Slot::Node(node)
    }
}

/// The subtree for sorted `entries`, all longer than `offset` and equal up to there.
pub(crate) fn build<K: Key>(store: &mut impl Store, entries: &[Entry<K>], offset: u8, inherited: u32) -> Slot {
    if entries.is_empty() {
        return Slot::Leaf(inherited);
    }
    let mut slots = Slots::uniform(inherited);
    slots.fill(store, entries, offset, 0..SLOTS, inherited);
    slots.finish(store)
}

/// Pushes sorted `entries` to `answers`, slots that are told apart by the bits up to `end`.
///
/// The entries longer than that are handed to `below`, all of one slot at once, with the slot's
/// answer so far, which is what they inherit: the shorter ones that cover the slot sort before.
/// What `below` returns replaces that answer.
pub(crate) fn push<K: Key>(
    entries: &[Entry<K>],
    end: u8,
    answers: &mut [u32],
    slot_of: impl Fn(K) -> usize,
    mut below: impl FnMut(usize, &[Entry<K>], u32) -> Option<u32>,
) {
    let mut rest = entries;
    while let Some((&(prefix, value), others)) = rest.split_first() {
        let slot = slot_of(prefix.addr());
        if prefix.len() <= end {
            let covered = 1 << (end - prefix.len());
            answers[slot..slot + covered].fill(value);
            rest = others;
        } else {
            let same = rest.iter().take_while(|(prefix, _)| slot_of(prefix.addr()) == slot).count();
            let (deeper, others) = rest.split_at(same);
            if let Some(answer) = below(slot, deeper, answers[slot]) {
                answers[slot] = answer;
            }
            rest = others;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Prefix;
    use crate::arena::Fresh;

    fn p(addr: u32, len: u8) -> Prefix<u32> {
        Prefix::new(addr, len).expect("length within 32")
    }

    #[test]
    fn no_entries_are_the_inherited_answer() {
        assert_eq!(build::<u32>(&mut Fresh::default(), &[], 6, 5), Slot::Leaf(5));
    }

    #[test]
    fn a_longer_prefix_overrides_the_slots_of_a_shorter_one() {
        // Slots 0 to 31 are 1, of which 8 to 15 are 2; the rest inherits 9.
        let entries = [(p(0, 1), 1), (p(0x2000_0000, 3), 2)];
        let Slot::Node(node) = build(&mut Fresh::default(), &entries, 0, 9) else { panic!("a node") };
        assert_eq!((node.children, node.runs), (0, 1 << 8 | 1 << 16 | 1 << 32));
        assert_eq!((node.child_count(), node.leaf_count()), (0, 4));
    }

    #[test]
    fn a_prefix_that_ends_in_a_later_node_is_a_child_that_inherits() {
        // The child in slot 63 is 2 in one slot and 1, from the /6, in the others.
        let entries = [(p(0xfc00_0000, 6), 1), (p(0xfff0_0000, 12), 2)];
        let mut fresh = Fresh::default();
        let Slot::Node(node) = build(&mut fresh, &entries, 0, 0) else { panic!("a node") };
        assert_eq!((node.children, node.runs, node.leaf_count()), (1 << 63, 0, 1));
        let tables = fresh.into_arena::<u32>(0, &[0]).tables().clone();
        let child = Slots::of(&tables, tables.node(node.first_child));
        assert_eq!((child.get(0), child.get(62), child.get(63)), (Slot::Leaf(1), Slot::Leaf(1), Slot::Leaf(2)));
    }

    #[test]
    fn subtrees_of_one_answer_collapse() {
        let entries = [(p(0x0a00_0000, 8), 3), (p(0x0a00_0000, 9), 3), (p(0x0a80_0000, 9), 3), (p(0x0a01_0203, 32), 3)];
        let Slot::Node(node) = build(&mut Fresh::default(), &entries, 0, 0) else { panic!("a node") };
        assert_eq!(node.child_count(), 1);
        assert_eq!(build(&mut Fresh::default(), &entries[1..], 8, 3), Slot::Leaf(3));
    }

    #[test]
    fn slots_behind_the_end_of_a_key_are_covered_too() {
        // At offset 30 two of the six bits are left: a /32 covers 16 slots.
        let Slot::Node(node) = build(&mut Fresh::default(), &[(p(2, 32), 7)], 30, 0) else { panic!("a node") };
        assert_eq!(node.runs, 1 << 32 | 1 << 48);
    }
}

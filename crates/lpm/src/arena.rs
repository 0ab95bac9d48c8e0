//! The writer's side of the tables: which cells are free, and what readers still have to leave.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use crate::Key;
use crate::build::{Slot, Store};
use crate::tables::{NODE, Node, Tables};

/// Consecutive cells of one array.
#[derive(Clone, Copy)]
struct Block {
    at: u32,
    count: u32,
}

/// Blocks out of the trie.
#[derive(Default)]
struct Blocks {
    nodes: Vec<Block>,
    leaves: Vec<Block>,
}

impl Blocks {
    fn is_empty(&self) -> bool {
        self.nodes.is_empty() && self.leaves.is_empty()
    }
}

/// Blocks that no reader can see any more, come back from the domain.
type Returned = Arc<Mutex<Blocks>>;

/// What is retired: when it is dropped, after a grace period, the blocks can be used again.
struct Limbo {
    blocks: Blocks,
    returned: Returned,
}

impl Drop for Limbo {
    fn drop(&mut self) {
        let mut returned = lock(&self.returned);
        returned.nodes.append(&mut self.blocks.nodes);
        returned.leaves.append(&mut self.blocks.leaves);
    }
}

fn lock(returned: &Returned) -> MutexGuard<'_, Blocks> {
    returned.lock().unwrap_or_else(PoisonError::into_inner)
}

/// The tables as the writer holds them, with their free cells.
pub(crate) struct Arena<K: Key> {
    tables: Tables<K>,
    nodes: Free,
    leaves: Free,
    /// Taken out of the trie by the change under way.
    unlinked: Blocks,
    returned: Returned,
    /// The tables are not those that readers have.
    moved: bool,
}

impl<K: Key> Arena<K> {
    /// An empty trie with a direct table of so many bits.
    pub(crate) fn new(bits: u8) -> Self {
        Self::of(Tables::new(bits, 0, 0), 0, 0)
    }

    /// Tables of which so many nodes and leaves are in use, the first ones.
    fn of(tables: Tables<K>, nodes: u32, leaves: u32) -> Self {
        Self {
            tables,
            nodes: Free::behind(nodes),
            leaves: Free::behind(leaves),
            unlinked: Blocks::default(),
            returned: Returned::default(),
            moved: true,
        }
    }

    pub(crate) fn tables(&self) -> &Tables<K> {
        &self.tables
    }

    /// Makes room again of what readers have left.
    pub(crate) fn recover(&mut self) {
        let mut returned = lock(&self.returned);
        if cfg!(debug_assertions) {
            returned.nodes.iter().for_each(|block| self.tables.spoil_nodes(block.at, block.count));
            returned.leaves.iter().for_each(|block| self.tables.spoil_leaves(block.at, block.count));
        }
        returned.nodes.drain(..).for_each(|block| self.nodes.give(block));
        returned.leaves.drain(..).for_each(|block| self.leaves.give(block));
    }

    /// Takes a node's arrays out of the trie, not what its children lead to.
    pub(crate) fn unlink(&mut self, node: Node) {
        if node.child_count() > 0 {
            self.unlinked.nodes.push(Block { at: node.first_child, count: node.child_count() as u32 });
        }
        if node.leaf_count() > 0 {
            self.unlinked.leaves.push(Block { at: node.first_leaf, count: node.leaf_count() as u32 });
        }
    }

    /// Takes all that a slot leads to out of the trie.
    pub(crate) fn unlink_all(&mut self, slot: Slot) {
        if let Slot::Node(node) = slot {
            self.unlink(node);
            for child in 0..node.child_count() as u32 {
                self.unlink_all(Slot::Node(self.tables.node(node.first_child + child)));
            }
        }
    }

    /// What a word of the direct table leads to.
    pub(crate) fn direct(&self, index: usize) -> Slot {
        match self.tables.direct(index) {
            word if word & NODE != 0 => Slot::Node(self.tables.node(word & !NODE)),
            answer => Slot::Leaf(answer),
        }
    }

    /// Replaces a word of the direct table. The node it was is unlinked, but not what that leads to.
    pub(crate) fn set_direct(&mut self, index: usize, word: u32) {
        let old = self.tables.direct(index);
        if old & NODE != 0 {
            self.unlinked.nodes.push(Block { at: old & !NODE, count: 1 });
        }
        self.tables.set_direct(index, word);
    }

    /// Ends a change: returns the tables if readers have others, and what has to be retired then, if anything.
    pub(crate) fn commit(&mut self) -> (Option<Tables<K>>, Option<Box<dyn Send>>) {
        let tables = std::mem::take(&mut self.moved).then(|| self.tables.clone());
        let blocks = std::mem::take(&mut self.unlinked);
        for block in &blocks.nodes {
            self.nodes.used -= block.count as usize;
        }
        for block in &blocks.leaves {
            self.leaves.used -= block.count as usize;
        }
        let limbo = (!blocks.is_empty()).then(|| Box::new(Limbo { blocks, returned: Arc::clone(&self.returned) }) as Box<dyn Send>);
        (tables, limbo)
    }

    /// Whether a copy without holes would be half the size at most. Making one costs the whole direct table too, so the holes must be worth that: many
    /// changes at once leave holes that come back when readers have left them.
    pub(crate) fn is_sparse(&self) -> bool {
        let (nodes, leaves) = self.tables.capacity();
        let direct = 1 << self.tables.bits();
        nodes > 2 * self.nodes.used + 256 + direct / 16 || leaves > 2 * self.leaves.used + 1024 + direct / 4
    }

    /// Bigger tables, with all that is in these: by so much that copying the direct table pays.
    fn grow(&mut self, more_nodes: usize, more_leaves: usize) {
        let (nodes, leaves) = self.tables.capacity();
        let least = 16 + (1 << self.tables.bits()) / 128;
        let step = |size: usize, more: usize| if more == 0 { size } else { size + more.max(size / 4).max(least) };
        self.tables = self.tables.grown(step(nodes, more_nodes).max(1), step(leaves, more_leaves));
        self.moved = true;
    }
}

impl<K: Key> Store for Arena<K> {
    fn put_nodes(&mut self, nodes: &[Node]) -> u32 {
        let at = loop {
            match self.nodes.take(nodes.len(), self.tables.capacity().0) {
                Some(at) => break at,
                None => self.grow(nodes.len(), 0),
            }
        };
        self.tables.write_nodes(at, nodes);
        at
    }

    fn put_leaves(&mut self, leaves: &[u32]) -> u32 {
        let at = loop {
            match self.leaves.take(leaves.len(), self.tables.capacity().1) {
                Some(at) => break at,
                None => self.grow(0, leaves.len()),
            }
        };
        self.tables.write_leaves(at, leaves);
        at
    }
}

/// The free cells of one array: blocks of each size, and all behind `end`.
struct Free {
    /// `blocks[n]` are blocks of `n` cells.
    blocks: Vec<Vec<u32>>,
    end: usize,
    /// Cells in the trie.
    used: usize,
}

impl Free {
    fn behind(end: u32) -> Self {
        Self { blocks: Vec::new(), end: end as usize, used: end as usize }
    }

    /// So many consecutive cells: a block of that size, else new ones, else the part of a larger block.
    fn take(&mut self, count: usize, capacity: usize) -> Option<u32> {
        let at = if let Some(at) = self.blocks.get_mut(count).and_then(Vec::pop) {
            at
        } else if self.end + count <= capacity {
            self.end += count;
            (self.end - count) as u32
        } else {
            let larger = (count + 1..self.blocks.len()).find(|&size| !self.blocks[size].is_empty())?;
            let at = self.blocks[larger].pop()?;
            self.give(Block { at: at + count as u32, count: (larger - count) as u32 });
            at
        };
        self.used += count;
        Some(at)
    }

    fn give(&mut self, block: Block) {
        let size = block.count as usize;
        if self.blocks.len() <= size {
            self.blocks.resize_with(size + 1, Vec::new);
        }
        self.blocks[size].push(block.at);
    }
}

/// New arrays, to be filled from the front.
#[derive(Default)]
pub(crate) struct Fresh {
    nodes: Vec<Node>,
    leaves: Vec<u32>,
}

impl Fresh {
    /// An arena of what has been put here, below these words of the direct table.
    pub(crate) fn into_arena<K: Key>(self, bits: u8, words: &[u32]) -> Arena<K> {
        // Some room, so that the next change need not copy everything.
        let room = |size: usize| size + size / 16;
        let tables = Tables::new(bits, room(self.nodes.len()), room(self.leaves.len()));
        tables.write_nodes(0, &self.nodes);
        tables.write_leaves(0, &self.leaves);
        for (slot, &word) in words.iter().enumerate() {
            tables.set_direct(slot, word);
        }
        Arena::of(tables, self.nodes.len() as u32, self.leaves.len() as u32)
    }
}

impl Store for Fresh {
    fn put_nodes(&mut self, nodes: &[Node]) -> u32 {
        self.nodes.extend_from_slice(nodes);
        (self.nodes.len() - nodes.len()) as u32
    }

    fn put_leaves(&mut self, leaves: &[u32]) -> u32 {
        self.leaves.extend_from_slice(leaves);
        (self.leaves.len() - leaves.len()) as u32
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn cells_are_used_again_by_size_and_large_blocks_are_split_before_growing() {
        let mut free = Free::behind(0);
        let blocks: Vec<u32> = [3, 5, 2].map(|count| free.take(count, 10).expect("room for ten")).to_vec();
        assert_eq!((blocks.as_slice(), free.take(1, 10)), ([0, 3, 8].as_slice(), None));
        free.give(Block { at: 3, count: 5 });
        free.give(Block { at: 0, count: 3 });
        assert_eq!(free.take(3, 10), Some(0));
        assert_eq!((free.take(4, 10), free.take(1, 10), free.take(1, 10)), (Some(3), Some(7), None));
    }

    #[test]
    fn unlinked_cells_come_back_only_when_what_was_retired_is_dropped() {
        let mut arena = Arena::<u32>::new(0);
        let first_leaf = arena.put_leaves(&[1, 2]);
        arena.unlink(Node { runs: 2, first_leaf, ..Node::default() });
        let (tables, retired) = arena.commit();
        assert!(tables.is_some(), "the tables have grown");
        arena.recover();
        assert_ne!(arena.put_leaves(&[3, 4]), first_leaf);
        drop(retired);
        arena.recover();
        assert_eq!(arena.put_leaves(&[5, 6]), first_leaf);
    }
}

//! The writer's own record of the prefixes, from which subtrees are made.

use std::collections::BTreeMap;

use crate::{Key, Prefix};

/// A prefix and its value.
pub(crate) type Entry<K> = (Prefix<K>, u32);

/// Prefixes and their values, sorted so that a prefix precedes what it covers.
///
/// A B-tree needs 13 bytes a prefix for IPv4 and 26 for IPv6, less than a radix tree with its
/// inner nodes, and gives a subtree as one range.
pub(crate) struct Rib<K: Key> {
    map: BTreeMap<Prefix<K>, u32>,
}

impl<K: Key> Rib<K> {
    pub(crate) fn new() -> Self {
        Self { map: BTreeMap::new() }
    }

    pub(crate) fn len(&self) -> usize {
        self.map.len()
    }

    pub(crate) fn get(&self, prefix: Prefix<K>) -> Option<u32> {
        self.map.get(&prefix).copied()
    }

    pub(crate) fn insert(&mut self, prefix: Prefix<K>, value: u32) -> Option<u32> {
        self.map.insert(prefix, value)
    }

    pub(crate) fn remove(&mut self, prefix: Prefix<K>) -> Option<u32> {
        self.map.remove(&prefix)
    }

    /// Merges entries in; of several with one prefix the last wins.
    pub(crate) fn merge(&mut self, entries: Vec<Entry<K>>) {
        let mut new: BTreeMap<_, _> = entries.into_iter().collect();
        if self.map.is_empty() {
            self.map = new;
        } else {
            self.map.append(&mut new);
        }
    }

    /// Everything, sorted.
    pub(crate) fn entries(&self) -> Vec<Entry<K>> {
        self.map.iter().map(|(&prefix, &value)| (prefix, value)).collect()
    }

    /// What `prefix` covers, itself included, sorted.
    pub(crate) fn within(&self, prefix: Prefix<K>) -> Vec<Entry<K>> {
        self.map.range(prefix..=Prefix::host(prefix.last())).map(|(&prefix, &value)| (prefix, value)).collect()
    }

    /// How many prefixes `prefix` covers, itself included, counted no further than `limit`.
    pub(crate) fn count_within(&self, prefix: Prefix<K>, limit: usize) -> usize {
        self.map.range(prefix..=Prefix::host(prefix.last())).take(limit).count()
    }

    /// The longest prefix that covers `prefix` and is shorter.
    pub(crate) fn above(&self, prefix: Prefix<K>) -> Option<Entry<K>> {
        self.longest(prefix.truncated(prefix.len().checked_sub(1)?))
    }

    /// The longest prefix that covers `at`, which may be `at` itself.
    pub(crate) fn longest(&self, mut at: Prefix<K>) -> Option<Entry<K>> {
        loop {
            // Whatever covers `at` also covers the greatest prefix that does not sort behind it,
            // so if that is not it, `at` can be cut to what the two have in common.
            let (&before, &value) = self.map.range(..=at).next_back()?;
            if before.covers(at) {
                return Some((before, value));
            }
            at = at.truncated(before.addr().common(at.addr()).min(before.len()));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn p(addr: u32, len: u8) -> Prefix<u32> {
        Prefix::new(addr, len).expect("length within 32")
    }

    #[test]
    fn the_covering_prefix_is_found_past_siblings_and_their_children() {
        let mut rib = Rib::new();
        rib.merge(vec![
            (p(0x0a00_0000, 8), 1),
            (p(0x0a01_0000, 16), 2),
            (p(0x0a01_0100, 24), 3),
            (p(0x0a02_0000, 16), 4),
            (p(0x0a02_0000, 24), 5),
        ]);
        assert_eq!(rib.above(p(0x0a02_0100, 24)), Some((p(0x0a02_0000, 16), 4)));
        assert_eq!(rib.above(p(0x0a02_0000, 16)), Some((p(0x0a00_0000, 8), 1)));
        assert_eq!(rib.above(p(0x0aff_0000, 16)), Some((p(0x0a00_0000, 8), 1)));
        assert_eq!(rib.above(p(0x0a00_0000, 8)), None);
        assert_eq!(rib.above(p(0, 0)), None);
        assert_eq!(rib.longest(p(0x0a02_0000, 24)), Some((p(0x0a02_0000, 24), 5)));
        assert_eq!(rib.longest(p(0x0b00_0000, 24)), None);
    }

    #[test]
    fn a_range_holds_the_prefix_and_what_it_covers_only() {
        let mut rib = Rib::new();
        for (addr, len) in [(0, 0), (0x0a00_0000, 8), (0x0a00_0000, 9), (0x0aff_ffff, 32), (0x0b00_0000, 8)] {
            rib.insert(p(addr, len), len.into());
        }
        let lens: Vec<u8> = rib.within(p(0x0a00_0000, 8)).iter().map(|(prefix, _)| prefix.len()).collect();
        assert_eq!(lens, [8, 9, 32]);
        assert_eq!(rib.within(p(0, 0)).len(), 5);
    }

    #[test]
    fn merging_keeps_the_last_of_each_prefix() {
        let mut rib = Rib::new();
        rib.merge(vec![(p(1, 32), 1), (p(0, 8), 7), (p(1, 32), 2)]);
        rib.merge(vec![(p(0, 8), 8), (p(9, 32), 9)]);
        assert_eq!(rib.entries(), [(p(0, 8), 8), (p(1, 32), 2), (p(9, 32), 9)]);
        assert_eq!(rib.len(), 3);
    }
}

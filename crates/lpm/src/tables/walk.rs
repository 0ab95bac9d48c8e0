//! The walk from a key to its answer: one key, or a batch of them side by side.
//!
//! The unsafe code here rests on the invariants in the head of [`tables`](super).

use crate::sync::Ordering;

use super::{Cell, NODE, STRIDE, Tables};
use crate::Key;

/// How many keys of a batch are under way at once: enough to hide the misses of each behind the others.
const GROUP: usize = 64;

impl<K: Key> Tables<K> {
    /// The answer for `key`, 0 if there is none.
    #[inline]
    pub(crate) fn lookup(&self, key: K) -> u32 {
        let word = self.word(key);
        if word & NODE == 0 {
            return word;
        }
        #[cfg(target_arch = "x86_64")]
        if self.fast {
            // SAFETY: invariant 4; the index is that of a direct word.
            return unsafe { one_fast(self, key, word & !NODE) };
        }
        // SAFETY: the index is that of a direct word.
        unsafe { one(self, key, word & !NODE) }
    }

    /// The answers for those of `keys` whose place in `out` is 0; it stays so where there is none. As many places as keys.
    pub(crate) fn lookup_batch(&self, keys: &[K], out: &mut [u32]) {
        for (keys, out) in keys.chunks(GROUP).zip(out.chunks_mut(GROUP)) {
            #[cfg(target_arch = "x86_64")]
            if self.fast {
                // SAFETY: invariant 4.
                unsafe { batch_fast(self, keys, out) };
                continue;
            }
            batch(self, keys, out);
        }
    }

    /// The word of the direct table for `key`.
    #[inline(always)]
    fn word(&self, key: K) -> u32 {
        let slot = key.first(self.bits);
        debug_assert!(slot < self.direct.len(), "slot of the direct table");
        // SAFETY: `Bits::first` returns a number of so many bits; invariant 1.
        unsafe { self.direct.get_unchecked(slot) }.load(Ordering::Acquire)
    }

    /// # Safety
    /// `index` is that of a direct word or comes from [`Cell::child`].
    #[inline(always)]
    unsafe fn cell(&self, index: u32) -> &Cell {
        // SAFETY: by the caller's promise and invariants 1 and 2.
        unsafe { at(&self.nodes, index as usize) }
    }

    /// # Safety
    /// `index` comes from [`Cell::leaf`].
    #[inline(always)]
    unsafe fn answer(&self, index: u32) -> u32 {
        // SAFETY: by the caller's promise and invariants 2 and 3.
        unsafe { at(&self.leaves, index as usize) }.load(Ordering::Relaxed)
    }
}

impl Cell {
    /// Whether slot `slot` has a child, and the child's index; if it has none, the index of some node.
    #[inline(always)]
    fn child(&self, slot: usize) -> (bool, u32) {
        let children = self.children.load(Ordering::Relaxed);
        let before = children & !(u64::MAX << slot);
        (children >> slot & 1 != 0, self.first_child.load(Ordering::Acquire) + before.count_ones())
    }

    /// The index of the answer in slot `slot`; if that has a child, the index of some leaf.
    #[inline(always)]
    fn leaf(&self, slot: usize) -> u32 {
        let up_to = self.runs.load(Ordering::Relaxed) << (63 - slot);
        self.first_leaf.load(Ordering::Acquire) + up_to.count_ones()
    }
}

/// Whether there are the instructions that make a walk short: without `popcnt`, counting bits takes a dozen.
#[cfg(target_arch = "x86_64")]
pub(super) fn fast() -> bool {
    is_x86_feature_detected!("popcnt") && is_x86_feature_detected!("bmi1") && is_x86_feature_detected!("bmi2")
}

#[cfg(not(target_arch = "x86_64"))]
pub(super) fn fast() -> bool {
    false
}

/// # Safety
/// As [`one`], on a processor with these features.
#[cfg(target_arch = "x86_64")]
#[target_feature(enable = "popcnt,bmi1,bmi2")]
pub(super) unsafe fn one_fast<K: Key>(tables: &Tables<K>, key: K, index: u32) -> u32 {
    // SAFETY: the caller's promise.
    unsafe { one(tables, key, index) }
}

#[cfg(target_arch = "x86_64")]
#[target_feature(enable = "popcnt,bmi1,bmi2")]
pub(super) fn batch_fast<K: Key>(tables: &Tables<K>, keys: &[K], out: &mut [u32]) {
    batch(tables, keys, out);
}

/// Walks down from a node.
///
/// # Safety
/// `index` is that of a direct word.
#[inline(always)]
unsafe fn one<K: Key>(tables: &Tables<K>, key: K, mut index: u32) -> u32 {
    let mut offset = tables.bits;
    loop {
        // SAFETY: that of a direct word at first, then that of a child.
        let cell = unsafe { tables.cell(index) };
        let slot = key.six(offset);
        let (down, child) = cell.child(slot);
        if !down {
            // SAFETY: a leaf of that cell.
            return unsafe { tables.answer(cell.leaf(slot)) };
        }
        index = child;
        offset += STRIDE;
    }
}

/// A key of a batch, by its place, and the node it has come to.
#[derive(Clone, Copy, Default)]
struct Walker {
    place: u32,
    node: u32,
}

/// Walks with all keys, one level at a time, while the next level's memory is on its way.
#[inline(always)]
fn batch<K: Key>(tables: &Tables<K>, keys: &[K], out: &mut [u32]) {
    assert!(keys.len() <= GROUP && keys.len() <= out.len(), "a group of keys and room for its answers");
    for key in keys {
        prefetch(tables.direct.as_ptr().wrapping_add(key.first(tables.bits)));
    }
    let mut walkers = [Walker::default(); GROUP];
    let mut places = [0; GROUP];
    let mut walking = 0;
    for (place, (&key, out)) in keys.iter().zip(&mut *out).enumerate() {
        // An answer that is there already is like one of the direct table: not a node.
        let word = if *out == 0 { tables.word(key) } else { *out & !NODE };
        *out = word;
        prefetch(tables.nodes.as_ptr().wrapping_add((word & !NODE) as usize));
        // SAFETY: at most one is added for each key, and there are no more than `GROUP`.
        unsafe {
            *at_mut(&mut walkers, walking) = Walker { place: place as u32, node: word & !NODE };
            *at_mut(&mut places, walking) = place;
        }
        walking += (word / NODE) as usize;
    }
    let places = &places[..walking];
    let mut offset = tables.bits;
    while walking > 0 {
        // SAFETY: the walkers are keys of this group, at the nodes of direct words at first, then where the last level left them.
        walking = unsafe {
            if offset <= 58 {
                level(tables, keys, out, &mut walkers, walking, |key| key.six_early(offset))
            } else {
                level(tables, keys, out, &mut walkers, walking, |key| key.six(offset))
            }
        };
        offset += STRIDE;
    }
    for &place in places {
        // SAFETY: a key of this group; the last level it was in left the index of a leaf.
        unsafe {
            let out = at_mut(out, place);
            *out = tables.answer(*out);
        }
    }
}

/// Takes the first `walking` walkers one level down; returns how many of them go on, which are then the first.
///
/// For each it leaves the index of the answer in `out`, which counts for those that do not go on. That is
/// decided by adding up, not by a branch that could not be predicted.
///
/// # Safety
/// `walking` is at most `GROUP`. Those walkers' places are below `keys.len()` and `out.len()`, and their nodes come from
/// direct words or from [`Cell::child`].
#[inline(always)]
unsafe fn level<K: Key>(
    tables: &Tables<K>,
    keys: &[K],
    out: &mut [u32],
    walkers: &mut [Walker; GROUP],
    walking: usize,
    six: impl Fn(K) -> usize,
) -> usize {
    let mut going_on = 0;
    for walker in 0..walking {
        // SAFETY: the caller's promise; `going_on` is never ahead of `walker`.
        unsafe {
            let Walker { place, node } = *at(&*walkers, walker);
            let slot = six(*at(keys, place as usize));
            let cell = tables.cell(node);
            let (down, child) = cell.child(slot);
            prefetch(tables.nodes.as_ptr().wrapping_add(child as usize));
            *at_mut(out, place as usize) = cell.leaf(slot);
            *at_mut(walkers, going_on) = Walker { place, node: child };
            going_on += usize::from(down);
        }
    }
    going_on
}

/// # Safety
/// `index` is below `slice.len()`.
#[inline(always)]
unsafe fn at<T>(slice: &[T], index: usize) -> &T {
    debug_assert!(index < slice.len(), "index within the slice");
    // SAFETY: the caller's promise.
    unsafe { slice.get_unchecked(index) }
}

/// # Safety
/// `index` is below `slice.len()`.
#[inline(always)]
unsafe fn at_mut<T>(slice: &mut [T], index: usize) -> &mut T {
    debug_assert!(index < slice.len(), "index within the slice");
    // SAFETY: the caller's promise.
    unsafe { slice.get_unchecked_mut(index) }
}

/// Has the processor fetch what is at `address`, if it is anything.
#[inline(always)]
fn prefetch<T>(address: *const T) {
    #[cfg(target_arch = "x86_64")]
    // SAFETY: a prefetch is a hint, it does not fault whatever the address.
    unsafe {
        use std::arch::x86_64::{_MM_HINT_T0, _mm_prefetch};
        _mm_prefetch::<_MM_HINT_T0>(address.cast());
    }
    #[cfg(not(target_arch = "x86_64"))]
    let _ = address;
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Prefix;
    use crate::writer::Trie;

    /// Prefixes of all lengths along one address, and their neighbours.
    fn trie<K: Key>(addr: K) -> Trie<K> {
        let mut trie = Trie::new();
        for len in 1..K::BITS {
            let prefix = Prefix::new(addr, len).expect("length within the key");
            trie.insert(prefix, len.into());
        }
        trie
    }

    fn all_walks_agree<K: Key>(addr: K, keys: &[K], expected: &[u32]) {
        let trie = trie(addr);
        let tables = trie.arena.tables();
        let portable = Tables { fast: false, ..tables.clone() };
        for tables in [tables, &portable] {
            let mut out = vec![0; keys.len()];
            tables.lookup_batch(keys, &mut out);
            assert_eq!(out, expected);
            assert!(keys.iter().map(|&key| tables.lookup(key)).eq(expected.iter().copied()));
        }
    }

    #[test]
    fn one_by_one_in_batches_and_without_special_instructions_the_answers_are_the_same() {
        let addr = 0x2001_0db8_1234_5678_9abc_def0_0fed_cba9_u128;
        // Flipping a bit leaves the prefixes that end before it.
        let keys: Vec<u128> = (0..128).map(|bit| addr ^ 1 << (127 - bit)).collect();
        let expected: Vec<u32> = (0..128).collect();
        all_walks_agree(addr, &keys, &expected);

        let addr = 0xc0a8_01fe_u32;
        let keys: Vec<u32> = (0..200).map(|n| addr ^ 1 << (31 - n % 32)).collect();
        let expected: Vec<u32> = (0..200).map(|n| n % 32).collect();
        all_walks_agree(addr, &keys, &expected);
    }
}

//! Host prefixes, matched exactly: SRv6 SIDs, the router's own addresses, neighbours.
//!
//! Open addressing with linear probing, at most half full. A slot belongs to one key for as
//! long as its table is published: removing leaves the key with [`GONE`] in place of its value. So a
//! reader that has found a key needs no second look, and probing never misses one that is there.

use crate::sync::{AtomicU32, AtomicU64, Ordering};
use std::sync::Arc;

use crate::Key;

/// Nothing has ever been in the slot.
const EMPTY: u32 = 0;

/// The slot's key has been removed.
const GONE: u32 = u32::MAX;

/// The halves of a key.
pub(crate) type Halves = (u64, u64);

#[derive(Default)]
struct Slot {
    first: AtomicU64,
    second: AtomicU64,
    value: AtomicU32,
}

/// The slots, a power of two or none; a clone is the same slots.
#[derive(Clone)]
pub(crate) struct Hosts {
    slots: Arc<[Slot]>,
    /// A bit for each first half of a key there is: most lookups end here, for the price of a multiplication.
    /// SIDs of one locator share it.
    first_halves: u64,
}

impl Hosts {
    fn with_slots(slots: usize) -> Self {
        Self { slots: (0..slots).map(|_| Slot::default()).collect(), first_halves: 0 }
    }

    pub(crate) fn memory(&self) -> usize {
        size_of_val(&*self.slots)
    }

    /// The value of a key, 0 if it is not there.
    #[inline]
    pub(crate) fn lookup(&self, key: Halves) -> u32 {
        if self.first_halves & bit_of(key) == 0 {
            return 0;
        }
        match self.probe(key).1 {
            GONE => 0,
            value => value,
        }
    }

    /// Fills in those places of `out` that are 0 and whose key is there. Returns how many are 0 still.
    pub(crate) fn lookup_batch<K: Key>(&self, keys: &[K], out: &mut [u32]) -> usize {
        let mut open = 0;
        for (key, out) in keys.iter().zip(out) {
            if *out == 0 {
                *out = self.lookup(key.halves());
                open += usize::from(*out == 0);
            }
        }
        open
    }

    /// The slot of a key with its value, or the empty one where it would be.
    #[inline]
    fn probe(&self, (first, second): Halves) -> (usize, u32) {
        let mut at = self.start((first, second));
        loop {
            let slot = &self.slots[at];
            // The key was written before the value, and is not written again.
            let value = slot.value.load(Ordering::Acquire);
            if value == EMPTY || slot.first.load(Ordering::Relaxed) == first && slot.second.load(Ordering::Relaxed) == second {
                return (at, value);
            }
            at = (at + 1) & (self.slots.len() - 1);
        }
    }

    #[inline]
    fn start(&self, key: Halves) -> usize {
        mix(key) as usize & self.slots.len().wrapping_sub(1)
    }

    fn write(&self, at: usize, (first, second): Halves, value: u32) {
        let slot = &self.slots[at];
        slot.first.store(first, Ordering::Relaxed);
        slot.second.store(second, Ordering::Relaxed);
        slot.value.store(value, Ordering::Release);
    }
}

/// Spreads keys that differ anywhere: a product of the halves, folded. Which keys are in the table is the
/// operator's choice, so it need not withstand chosen ones.
#[inline]
fn mix((first, second): Halves) -> u64 {
    let product = u128::from(first ^ 0x9e37_79b9_7f4a_7c15) * u128::from(second ^ 0xd1b5_4a32_d192_ed03);
    (product >> 64) as u64 ^ product as u64
}

/// The bit of `first_halves` for a key.
#[inline]
fn bit_of((first, _): Halves) -> u64 {
    1 << (first.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 58)
}

/// The writer's side.
pub(crate) struct HostWriter {
    hosts: Hosts,
    /// Keys with a value.
    live: usize,
    /// Slots that are not empty.
    taken: usize,
    moved: bool,
}

impl HostWriter {
    pub(crate) fn new() -> Self {
        Self { hosts: Hosts::with_slots(0), live: 0, taken: 0, moved: false }
    }

    pub(crate) fn hosts(&self) -> &Hosts {
        &self.hosts
    }

    pub(crate) fn len(&self) -> usize {
        self.live
    }

    pub(crate) fn get(&self, key: Halves) -> Option<u32> {
        Some(self.hosts.lookup(key)).filter(|&value| value != 0)
    }

    /// Sets a key's value and returns the one it had.
    pub(crate) fn insert(&mut self, key: Halves, value: u32) -> Option<u32> {
        self.reserve(1);
        let (at, old) = self.hosts.probe(key);
        self.hosts.write(at, key, value);
        self.moved |= self.hosts.first_halves & bit_of(key) == 0;
        self.hosts.first_halves |= bit_of(key);
        self.taken += usize::from(old == EMPTY);
        let old = Some(old).filter(|&old| old != EMPTY && old != GONE);
        self.live += usize::from(old.is_none());
        old
    }

    /// Makes room for so many more keys.
    pub(crate) fn reserve(&mut self, more: usize) {
        if 2 * (self.taken + more) > self.hosts.slots.len() {
            self.rebuild(self.live + more);
        }
    }

    pub(crate) fn remove(&mut self, key: Halves) -> Option<u32> {
        let old = self.get(key)?;
        let (at, _) = self.hosts.probe(key);
        self.hosts.slots[at].value.store(GONE, Ordering::Release);
        self.live -= 1;
        if self.live == 0 || self.hosts.slots.len() > 16 * self.live.max(4) {
            self.rebuild(self.live);
        }
        Some(old)
    }

    /// Returns the slots if readers have others.
    pub(crate) fn commit(&mut self) -> Option<Hosts> {
        std::mem::take(&mut self.moved).then(|| self.hosts.clone())
    }

    /// Copies the live keys to a table of a size for so many.
    fn rebuild(&mut self, keys: usize) {
        let slots = if keys == 0 { 0 } else { (keys * 3).next_power_of_two().max(8) };
        let old = std::mem::replace(&mut self.hosts, Hosts::with_slots(slots));
        for slot in &*old.slots {
            let value = slot.value.load(Ordering::Relaxed);
            if value != EMPTY && value != GONE {
                let key = (slot.first.load(Ordering::Relaxed), slot.second.load(Ordering::Relaxed));
                let (at, _) = self.hosts.probe(key);
                self.hosts.write(at, key, value);
                self.hosts.first_halves |= bit_of(key);
            }
        }
        self.taken = self.live;
        self.moved = true;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn keys_are_found_replaced_and_removed() {
        let mut writer = HostWriter::new();
        for n in 0..1000 {
            assert_eq!(writer.insert((n, n << 32), n as u32 + 1), None);
        }
        assert_eq!(writer.insert((7, 7 << 32), 77), Some(8));
        assert_eq!((writer.len(), writer.get((7, 7 << 32)), writer.get((7, 8 << 32))), (1000, Some(77), None));
        assert_eq!((writer.remove((7, 7 << 32)), writer.remove((7, 7 << 32))), (Some(77), None));
        assert_eq!(writer.insert((7, 7 << 32), 9), None);
        for n in 0..1000 {
            assert!(writer.remove((n, n << 32)).is_some());
        }
        assert_eq!((writer.len(), writer.hosts().memory()), (0, 0));
    }

    #[test]
    fn removing_and_inserting_forever_does_not_grow_the_table() {
        let mut writer = HostWriter::new();
        for n in 0..20 {
            writer.insert((0, n), 1);
        }
        let before = writer.hosts().memory();
        for n in 20..10_000 {
            writer.insert((0, n), 1);
            writer.remove((0, n - 20));
        }
        assert!(writer.hosts().memory() <= before, "{} bytes after {before}", writer.hosts().memory());
    }

    #[test]
    fn consecutive_addresses_spread_over_the_table() {
        let hosts = Hosts::with_slots(4096);
        let mut load = [0; 4096];
        for n in 0..2048u64 {
            load[hosts.start((0x2001_0db8_0000_0001, n << 48))] += 1;
            load[hosts.start((0x2001_0db8_0000_0000 + n, 1))] += 1;
        }
        assert!(load.iter().max() < Some(&10));
    }

    #[test]
    fn an_empty_table_has_no_slots_and_no_keys() {
        let writer = HostWriter::new();
        assert_eq!((writer.hosts().lookup((0, 0)), writer.hosts().memory(), writer.get((1, 2))), (0, 0, None));
    }
}

//! The datagrams of one protocol that wait for fragments: found by key, bounded in memory, let go in time.

use std::collections::{BTreeMap, HashMap};
use std::hash::Hash;

use route::DropReason;

use super::datagram::{Datagram, Fragment, Refused};

/// Bytes that may be held before no fragment is taken any more (net.ipv4.ipfrag_high_thresh, net.ipv6.ip6frag_high_thresh).
const MEMORY: usize = 4 << 20;

/// When a datagram is let go, nanoseconds, and a number that makes the order complete.
type Deadline = (u64, u64);

/// What became of a fragment.
#[derive(Debug)]
pub(super) enum Offered {
    Waiting,
    /// The datagram is complete and out of the table.
    Complete(Datagram),
    /// It was refused, for this reason, and this many others of its datagram are let go with it.
    Refused(DropReason, usize),
}

#[derive(Debug)]
pub(super) struct Table<K> {
    datagrams: HashMap<K, (Datagram, Deadline)>,
    deadlines: BTreeMap<Deadline, K>,
    created: u64,
    held: usize,
    lifetime: u64,
}

impl<K: Copy + Eq + Hash> Table<K> {
    /// A table whose datagrams wait `lifetime` nanoseconds.
    pub fn new(lifetime: u64) -> Table<K> {
        Table { datagrams: HashMap::new(), deadlines: BTreeMap::new(), created: 0, held: 0, lifetime }
    }

    pub fn contains(&self, key: &K) -> bool {
        self.datagrams.contains_key(key)
    }

    /// The datagram of `key`, which from now on waits if it is new. None when too much is held already.
    pub fn find(&mut self, key: K, now: u64) -> Option<&mut Datagram> {
        if self.held > MEMORY {
            return None;
        }
        if !self.contains(&key) {
            self.created += 1;
            let datagram = Datagram::default();
            let deadline = (now.saturating_add(self.lifetime), self.created);
            self.held += datagram.cost();
            self.deadlines.insert(deadline, key);
            self.datagrams.insert(key, (datagram, deadline));
        }
        self.datagrams.get_mut(&key).map(|(datagram, _)| datagram)
    }

    /// Gives the datagram of `key`, which [`Table::find`] found, another fragment.
    pub fn offer(&mut self, key: K, fragment: &Fragment<'_>) -> Offered {
        let Some((datagram, _)) = self.datagrams.get_mut(&key) else { return Offered::Refused(DropReason::FragmentLimit, 0) };
        let before = datagram.cost();
        let taken = datagram.take(fragment);
        self.held += datagram.cost() - before;
        let complete = datagram.is_complete();
        match taken {
            Ok(()) if complete => self.remove(&key).map_or(Offered::Waiting, Offered::Complete),
            Ok(()) => Offered::Waiting,
            Err(Refused::Duplicate) => Offered::Refused(DropReason::FragmentDuplicate, 0),
            Err(Refused::Corrupt) => Offered::Refused(DropReason::FragmentBad, self.kill(&key)),
            Err(Refused::Overlap) => Offered::Refused(DropReason::FragmentOverlap, self.kill(&key)),
        }
    }

    /// Lets go what has come of the datagram of `key` and has it wait anew. Returns the number of its fragments.
    pub fn restart(&mut self, key: K, now: u64) -> usize {
        let Some(old) = self.remove(&key) else { return 0 };
        if let Some(new) = self.find(key, now) {
            new.ticket = old.ticket;
        }
        old.fragments()
    }

    /// The next datagram that has waited long enough, taken out.
    pub fn expire(&mut self, now: u64) -> Option<(K, Datagram)> {
        let (&(due, _), &key) = self.deadlines.first_key_value()?;
        if due > now {
            return None;
        }
        self.remove(&key).map(|datagram| (key, datagram))
    }

    /// When the next datagram expires, nanoseconds.
    pub fn next_deadline(&self) -> Option<u64> {
        self.deadlines.first_key_value().map(|(&(due, _), _)| due)
    }

    fn kill(&mut self, key: &K) -> usize {
        self.remove(key).map_or(0, |datagram| datagram.fragments())
    }

    fn remove(&mut self, key: &K) -> Option<Datagram> {
        let (datagram, deadline) = self.datagrams.remove(key)?;
        self.deadlines.remove(&deadline);
        self.held -= datagram.cost();
        Some(datagram)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn offer(table: &mut Table<u32>, key: u32, offset: usize, len: usize, more: bool) -> Offered {
        if table.find(key, 0).is_none() {
            return Offered::Refused(DropReason::FragmentLimit, 0);
        }
        let bytes = vec![7; len];
        table.offer(
            key,
            &Fragment { header: &[0; 20], payload: &bytes, offset, more, df: false, ecn: 0, iif: 1, number: 0, named_at: 0, options: None },
        )
    }

    #[test]
    fn memory_is_bounded_and_comes_back() {
        let mut table = Table::new(30);
        let mut refused = 0;
        for key in 0..20_000 {
            refused += usize::from(matches!(offer(&mut table, key, 8, 8, true), Offered::Refused(DropReason::FragmentLimit, 0)));
        }
        assert!(refused > 10_000);
        assert!(table.held <= MEMORY + 1024);
        assert!(matches!(offer(&mut table, 0, 0, 8, true), Offered::Refused(DropReason::FragmentLimit, _)), "even one already known");
        assert!(table.expire(29).is_none());
        while table.expire(30).is_some() {}
        assert_eq!((table.held, table.deadlines.len(), table.datagrams.len()), (0, 0, 0));
    }

    #[test]
    fn a_datagram_that_was_killed_leaves_nothing_and_may_start_again() {
        let mut table = Table::new(30);
        offer(&mut table, 1, 0, 96, true);
        offer(&mut table, 1, 200, 8, true);
        assert!(matches!(offer(&mut table, 1, 88, 16, false), Offered::Refused(DropReason::FragmentBad, 2)));
        assert_eq!((table.held, table.deadlines.len()), (0, 0));
        assert!(matches!(offer(&mut table, 1, 0, 96, true), Offered::Waiting));
        assert!(matches!(offer(&mut table, 1, 88, 16, false), Offered::Refused(DropReason::FragmentOverlap, 1)));
        assert!(!table.contains(&1));
    }

    #[test]
    fn what_is_held_is_what_was_taken_whatever_comes() {
        use proptest::prelude::*;
        let step = (0u32..4, 0usize..12, 0usize..5, any::<bool>(), 0u64..8);
        proptest!(|(steps in proptest::collection::vec(step, 0..200))| {
            let mut table = Table::new(20);
            for (now, (key, offset, len, more, expire)) in (0u64..).zip(steps) {
                if table.find(key, now).is_some() {
                    let bytes = vec![7; len * 8];
                    let fragment = Fragment { header: &[0; 20], payload: &bytes, offset: offset * 8, more, df: false, ecn: 0, iif: 1, number: 0, named_at: 0, options: None };
                    if let Offered::Complete(datagram) = table.offer(key, &fragment) {
                        prop_assert_eq!(datagram.join(&[], &mut port::Pool::default()).len(), datagram.len());
                    }
                }
                if expire == 0 {
                    while table.expire(now).is_some() {}
                }
                prop_assert_eq!(table.held, table.datagrams.values().map(|(datagram, _)| datagram.cost()).sum::<usize>());
                prop_assert_eq!(table.deadlines.len(), table.datagrams.len());
            }
        });
    }
}

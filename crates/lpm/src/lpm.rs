//! The table as its users see it.

use crate::sync::{AtomicU32, AtomicUsize, Ordering};
use std::fmt;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use rcu::{Domain, DomainRef, Guard, Rcu};

use crate::hosts::{HostWriter, Hosts};
use crate::tables::Tables;
use crate::writer::Trie;
use crate::{Key, Prefix};

/// The greatest value a prefix can have.
pub const MAX_VALUE: u32 = (1 << 31) - 1;

/// A table from prefixes to values, looked up by longest match.
///
/// Lookups take a guard of the domain's readers: no lock, no wait, nothing written, whatever the writer does
/// meanwhile. A lookup during a change answers as before or as after it.
///
/// Changes are for the control plane: they take a lock, and allocate. What they replace is retired into the domain;
/// call [`Domain::reclaim`] after changes, and every few thousand within many, to have its memory used again.
///
/// Values are indices of the user's choice from 1 to [`MAX_VALUE`]; 0 stands for "no route".
pub struct Lpm<K: Key> {
    /// The value of the prefix of length 0, which would else be in every empty leaf.
    default: AtomicU32,
    tables: Rcu<Tables<K>>,
    hosts: Rcu<Hosts>,
    len: AtomicUsize,
    /// How many prefixes the trie has: without any nobody goes there.
    subnets: AtomicUsize,
    writer: Mutex<Writer<K>>,
    domain: DomainRef,
}

struct Writer<K: Key> {
    trie: Trie<K>,
    hosts: HostWriter,
    default: Option<u32>,
}

impl<K: Key> Lpm<K> {
    /// An empty table, some hundred bytes, read in `domain`.
    #[must_use]
    pub fn new(domain: &Arc<Domain>) -> Self {
        let writer = Writer { trie: Trie::new(), hosts: HostWriter::new(), default: None };
        Self {
            default: AtomicU32::new(0),
            tables: Rcu::new(domain, writer.trie.arena.tables().clone()),
            hosts: Rcu::new(domain, writer.hosts.hosts().clone()),
            len: AtomicUsize::new(0),
            subnets: AtomicUsize::new(0),
            writer: Mutex::new(writer),
            domain: DomainRef::new(domain),
        }
    }

    /// The value of the longest prefix that contains `key`, 0 if none does.
    ///
    /// # Panics
    /// If the guard belongs to a reader of another domain.
    #[inline]
    #[must_use]
    pub fn lookup(&self, guard: &Guard<'_>, key: K) -> u32 {
        if K::HOSTS {
            let value = self.hosts.load(guard).lookup(key.halves());
            if value != 0 {
                return value;
            }
        }
        match self.tables.load(guard).lookup(key) {
            0 => self.default.load(Ordering::Relaxed),
            value => value,
        }
    }

    /// [`lookup`](Self::lookup) of each of `keys` into the same place of `out`, where that is 0: several tables asked one
    /// after the other with the same `out` are one table with the first of them before the second. Returns how many are 0 still.
    ///
    /// Several times as fast as one by one, because the memory for many keys is fetched at once.
    ///
    /// # Panics
    /// If `out` is shorter than `keys`, or the guard belongs to a reader of another domain.
    pub fn lookup_batch(&self, guard: &Guard<'_>, keys: &[K], out: &mut [u32]) -> usize {
        let out = &mut out[..keys.len()];
        if K::HOSTS && self.hosts.load(guard).lookup_batch(keys, out) == 0 {
            return 0;
        }
        if self.subnets.load(Ordering::Relaxed) != 0 {
            self.tables.load(guard).lookup_batch(keys, out);
        }
        match self.default.load(Ordering::Relaxed) {
            0 => out.iter().filter(|&&value| value == 0).count(),
            default => {
                out.iter_mut().filter(|value| **value == 0).for_each(|value| *value = default);
                0
            }
        }
    }

    /// Sets the value of a prefix and returns the one it had.
    ///
    /// # Panics
    /// If `value` is 0 or above [`MAX_VALUE`].
    pub fn insert(&self, prefix: Prefix<K>, value: u32) -> Option<u32> {
        check(value);
        let mut writer = self.lock();
        let old = match Place::of(prefix) {
            Place::Default => writer.default.replace(value),
            Place::Host => writer.hosts.insert(prefix.addr().halves(), value),
            Place::Trie => writer.trie.insert(prefix, value),
        };
        self.commit(&mut writer);
        old
    }

    /// Removes a prefix and returns its value.
    pub fn remove(&self, prefix: Prefix<K>) -> Option<u32> {
        let mut writer = self.lock();
        let old = match Place::of(prefix) {
            Place::Default => writer.default.take(),
            Place::Host => writer.hosts.remove(prefix.addr().halves()),
            Place::Trie => writer.trie.remove(prefix),
        };
        self.commit(&mut writer);
        old
    }

    /// Sets the values of many prefixes; of several values for one prefix the last counts.
    ///
    /// Makes whole subtrees at once: a full Internet table takes a fraction of a second.
    ///
    /// # Panics
    /// If a value is 0 or above [`MAX_VALUE`]; nothing has changed then.
    pub fn extend(&self, entries: impl IntoIterator<Item = (Prefix<K>, u32)>) {
        let (mut subnets, mut hosts, mut default) = (Vec::new(), Vec::new(), None);
        for (prefix, value) in entries {
            check(value);
            match Place::of(prefix) {
                Place::Default => default = Some(value),
                Place::Host => hosts.push((prefix.addr().halves(), value)),
                Place::Trie => subnets.push((prefix, value)),
            }
        }
        let mut writer = self.lock();
        writer.default = default.or(writer.default);
        writer.hosts.reserve(hosts.len());
        for (key, value) in hosts {
            writer.hosts.insert(key, value);
        }
        writer.trie.extend(subnets);
        self.commit(&mut writer);
    }

    /// Makes many changes, sorted by prefix, each prefix once; a change without a value removes its prefix. Readers see them one by one, in no order.
    ///
    /// What lies close together costs far less than one by one. What is replaced meanwhile can be used again only after a grace period,
    /// so a million changes are better made some thousands at once, with [`Domain::reclaim`] after each.
    ///
    /// # Panics
    /// If a value is 0 or above [`MAX_VALUE`]; nothing has changed then.
    pub fn change(&self, changes: &[(Prefix<K>, Option<u32>)]) {
        changes.iter().filter_map(|(_, value)| *value).for_each(check);
        debug_assert!(changes.is_sorted_by(|(a, _), (b, _)| a < b), "changes are sorted");
        let mut writer = self.lock();
        let mut subnets = Vec::with_capacity(changes.len());
        for &(prefix, value) in changes {
            match (Place::of(prefix), value) {
                (Place::Default, value) => writer.default = value,
                (Place::Host, Some(value)) => _ = writer.hosts.insert(prefix.addr().halves(), value),
                (Place::Host, None) => _ = writer.hosts.remove(prefix.addr().halves()),
                (Place::Trie, value) => subnets.push((prefix, value)),
            }
        }
        writer.trie.change(&subnets);
        self.commit(&mut writer);
    }

    /// The value of exactly this prefix. For the control plane: takes the writer's lock.
    #[must_use]
    pub fn get(&self, prefix: Prefix<K>) -> Option<u32> {
        let writer = self.lock();
        match Place::of(prefix) {
            Place::Default => writer.default,
            Place::Host => writer.hosts.get(prefix.addr().halves()),
            Place::Trie => writer.trie.rib.get(prefix),
        }
    }

    /// The longest prefix that contains `key`, with its value. For the control plane: takes the writer's lock.
    #[must_use]
    pub fn longest_match(&self, key: K) -> Option<(Prefix<K>, u32)> {
        let writer = self.lock();
        let host = Prefix::host(key);
        let exact = if K::HOSTS { writer.hosts.get(key.halves()) } else { None };
        exact
            .map(|value| (host, value))
            .or_else(|| writer.trie.rib.longest(host))
            .or_else(|| writer.default.map(|value| (host.truncated(0), value)))
    }

    /// How many prefixes there are.
    #[must_use]
    pub fn len(&self) -> usize {
        self.len.load(Ordering::Relaxed)
    }

    /// Whether there is no prefix.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Bytes that readers touch: the arrays with the room in them, without the writer's record of the prefixes and
    /// what waits to be reclaimed. Takes the writer's lock.
    #[must_use]
    pub fn memory(&self) -> usize {
        let writer = self.lock();
        size_of::<Self>() + writer.trie.arena.tables().memory() + writer.hosts.hosts().memory()
    }

    fn lock(&self) -> MutexGuard<'_, Writer<K>> {
        self.writer.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Shows readers what has been changed, and retires what they have left.
    fn commit(&self, writer: &mut Writer<K>) {
        self.default.store(writer.default.unwrap_or(0), Ordering::Relaxed);
        if let Some(hosts) = writer.hosts.commit() {
            self.hosts.publish(hosts);
        }
        let (tables, unlinked) = writer.trie.arena.commit();
        if let Some(tables) = tables {
            self.tables.publish(tables);
        }
        if let Some(unlinked) = unlinked {
            self.domain.retire(unlinked);
        }
        self.subnets.store(writer.trie.rib.len(), Ordering::Relaxed);
        let len = writer.trie.rib.len() + writer.hosts.len() + usize::from(writer.default.is_some());
        self.len.store(len, Ordering::Relaxed);
    }
}

impl<K: Key> fmt::Debug for Lpm<K> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Lpm").field("len", &self.len()).finish_non_exhaustive()
    }
}

/// Where a prefix is kept.
enum Place {
    Default,
    Host,
    Trie,
}

impl Place {
    fn of<K: Key>(prefix: Prefix<K>) -> Self {
        match prefix.len() {
            0 => Self::Default,
            len if K::HOSTS && len == K::BITS => Self::Host,
            _ => Self::Trie,
        }
    }
}

#[track_caller]
fn check(value: u32) {
    assert!((1..=MAX_VALUE).contains(&value), "value {value} of a prefix must be from 1 to {MAX_VALUE}");
}

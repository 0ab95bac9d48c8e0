//! The table against a model, `prefix-trie`, under random changes.

mod internet;

use internet::{Random, RandomKey};
use lpm::{Key, Lpm, Prefix};
use prefix_trie::PrefixMap;
use proptest::prelude::*;
use rcu::{Domain, Reader};
use std::collections::BTreeMap;
use std::fmt::Debug;
use std::sync::Arc;

/// The table and the model of what it must answer.
struct Pair<K: Key>
where
    (K, u8): prefix_trie::Prefix,
{
    domain: Arc<Domain>,
    reader: Reader,
    table: Lpm<K>,
    model: PrefixMap<(K, u8), u32>,
}

impl<K: Key> Pair<K>
where
    (K, u8): prefix_trie::Prefix,
{
    fn new() -> Self {
        let domain = Domain::new();
        Self { reader: domain.reader(), table: Lpm::new(&domain), domain, model: PrefixMap::new() }
    }

    fn insert(&mut self, prefix: Prefix<K>, value: u32) {
        let old = self.model.insert((prefix.addr(), prefix.len()), value);
        assert_eq!(self.table.insert(prefix, value), old);
    }

    fn remove(&mut self, prefix: Prefix<K>) {
        let old = self.model.remove(&(prefix.addr(), prefix.len()));
        assert_eq!(self.table.remove(prefix), old);
    }

    fn extend(&mut self, entries: &[(Prefix<K>, u32)]) {
        self.table.extend(entries.iter().copied());
        for &(prefix, value) in entries {
            self.model.insert((prefix.addr(), prefix.len()), value);
        }
    }

    /// Makes changes at once; of several for one prefix the last counts.
    fn change(&mut self, changes: &[(Prefix<K>, Option<u32>)]) {
        let sorted: BTreeMap<_, _> = changes.iter().copied().collect();
        self.table.change(&sorted.iter().map(|(prefix, value)| (*prefix, *value)).collect::<Vec<_>>());
        for (prefix, value) in sorted {
            let key = (prefix.addr(), prefix.len());
            match value {
                Some(value) => _ = self.model.insert(key, value),
                None => _ = self.model.remove(&key),
            }
        }
    }

    /// Both answer the same for these keys, one by one, in a batch and by prefix.
    fn check(&mut self, keys: &[K]) {
        self.domain.reclaim();
        assert_eq!(self.table.len(), self.model.len());
        let expected: Vec<_> = keys.iter().map(|&key| self.model.get_lpm(&(key, K::BITS))).collect();
        let values: Vec<u32> = expected.iter().map(|found| found.as_ref().map_or(0, |(_, value)| **value)).collect();
        let mut batch = vec![0; keys.len()];
        let singles = self.reader.burst(|guard| {
            self.table.lookup_batch(guard, keys, &mut batch);
            keys.iter().map(|&key| self.table.lookup(guard, key)).collect::<Vec<u32>>()
        });
        assert_eq!(singles, values);
        assert_eq!(batch, values);
        for (&key, expected) in keys.iter().zip(expected) {
            let found = self.table.longest_match(key).map(|(prefix, value)| ((prefix.addr(), prefix.len()), value));
            assert_eq!(found, expected.map(|(prefix, &value)| (prefix, value)));
        }
    }

    /// Removes everything and checks that nothing is left.
    fn clear(&mut self) {
        let prefixes: Vec<(K, u8)> = self.model.keys().collect();
        for (addr, len) in prefixes {
            self.remove(Prefix::new(addr, len).expect("length within the key"));
        }
        self.domain.reclaim();
        assert!(self.table.is_empty());
        assert_eq!((self.table.memory(), self.domain.pending()), (Lpm::<K>::new(&self.domain).memory(), 0));
    }
}

#[derive(Clone, Debug)]
enum Change<K: Key> {
    Insert(Prefix<K>, u32),
    Remove(prop::sample::Index),
    Extend(Vec<(Prefix<K>, u32)>),
    Together(Vec<(Prefix<K>, Option<u32>)>),
}

fn changes<K: Key>(prefix: impl Strategy<Value = Prefix<K>> + Clone) -> impl Strategy<Value = Vec<Change<K>>> {
    let value = 1..5u32;
    let many = prop::collection::vec((prefix.clone(), value.clone()), 0..40);
    let together = prop::collection::vec((prefix.clone(), prop::option::of(value.clone())), 0..40);
    let change = prop_oneof![
        6 => (prefix, value).prop_map(|(prefix, value)| Change::Insert(prefix, value)),
        5 => any::<prop::sample::Index>().prop_map(Change::Remove),
        1 => many.prop_map(Change::Extend),
        3 => together.prop_map(Change::Together),
    ];
    prop::collection::vec(change, 1..120)
}

/// Makes the changes, checking at the edges of every prefix so far after each few.
fn follows_the_model<K: Key + Neighbours>(changes: Vec<Change<K>>)
where
    (K, u8): prefix_trie::Prefix,
{
    let mut pair = Pair::new();
    let mut seen = Vec::new();
    for (n, change) in changes.into_iter().enumerate() {
        match change {
            Change::Insert(prefix, value) => {
                seen.push(prefix);
                pair.insert(prefix, value);
            }
            Change::Remove(_) if seen.is_empty() => {}
            Change::Remove(which) => pair.remove(*which.get(&seen)),
            Change::Extend(entries) => {
                seen.extend(entries.iter().map(|(prefix, _)| *prefix));
                pair.extend(&entries);
            }
            Change::Together(changes) => {
                seen.extend(changes.iter().map(|(prefix, _)| *prefix));
                pair.change(&changes);
            }
        }
        if n % 8 == 0 {
            pair.check(&edges(&seen));
        }
    }
    pair.check(&edges(&seen));
    pair.clear();
}

/// The first and last addresses of prefixes, and those just outside.
fn edges<K: Key + Neighbours>(prefixes: &[Prefix<K>]) -> Vec<K> {
    prefixes.iter().flat_map(|prefix| [prefix.addr().before(), prefix.addr(), prefix.last(), prefix.last().after()]).collect()
}

trait Neighbours {
    fn before(self) -> Self;
    fn after(self) -> Self;
}

impl Neighbours for u32 {
    fn before(self) -> Self {
        self.wrapping_sub(1)
    }
    fn after(self) -> Self {
        self.wrapping_add(1)
    }
}

impl Neighbours for u128 {
    fn before(self) -> Self {
        self.wrapping_sub(1)
    }
    fn after(self) -> Self {
        self.wrapping_add(1)
    }
}

/// Few addresses, so that prefixes nest, meet and repeat.
fn prefix_v4() -> impl Strategy<Value = Prefix<u32>> + Clone {
    let addr = prop_oneof![any::<u32>(), 0..8u32, (0..8u32).prop_map(|n| 0x0a01_0200 | n << 5), Just(u32::MAX)];
    (addr, 0..=32u8).prop_map(|(addr, len)| Prefix::new(addr, len).expect("length within 32"))
}

fn prefix_v6() -> impl Strategy<Value = Prefix<u128>> + Clone {
    let sid = (0..4u128, 0..4u128).prop_map(|(node, function)| 0xfcbb_bb00 << 96 | node << 80 | function << 64);
    let addr = prop_oneof![any::<u128>(), sid, 0..4u128, Just(u128::MAX)];
    let len = prop_oneof![0..=128u8, Just(32), Just(48), Just(64), Just(127), Just(128)];
    (addr, len).prop_map(|(addr, len)| Prefix::new(addr, len).expect("length within 128"))
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 64, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn ipv4_follows_the_model(changes in changes(prefix_v4())) {
        follows_the_model(changes);
    }

    #[test]
    fn ipv6_follows_the_model(changes in changes(prefix_v6())) {
        follows_the_model(changes);
    }
}

/// Through all sizes of the direct table and back.
fn grows_and_shrinks<K: RandomKey>(lens: std::ops::RangeInclusive<u8>, count: usize)
where
    (K, u8): prefix_trie::Prefix,
{
    let mut random = Random(3);
    let everything = Prefix::new(K::ZERO, 0).expect("length 0");
    let mut pair = Pair::<K>::new();
    let mut prefixes = Vec::new();
    for n in 0..count {
        let len = lens.start() + random.below(usize::from(lens.end() - lens.start()) + 1) as u8;
        let prefix = Prefix::new(K::within(everything, &mut random), len).expect("length within the key");
        pair.insert(prefix, n as u32 % 7 + 1);
        prefixes.push(prefix);
        if n % 512 == 0 {
            pair.domain.reclaim();
        }
    }
    let keys: Vec<K> = prefixes.iter().step_by(7).map(|&prefix| K::within(prefix, &mut random)).collect();
    pair.check(&keys);
    for &prefix in &prefixes[50..] {
        pair.remove(prefix);
    }
    pair.check(&keys);
    assert!(pair.table.memory() < 64 << 10, "{} bytes for fifty prefixes", pair.table.memory());
    pair.clear();
}

#[test]
fn ipv4_grows_to_the_full_direct_table_and_shrinks() {
    grows_and_shrinks::<u32>(8..=32, 18_000);
}

#[test]
fn ipv6_grows_to_the_full_direct_table_and_shrinks() {
    grows_and_shrinks::<u128>(16..=64, 34_000);
}

/// Thousands of changes at once, some of them close together, in a table that is full already.
fn changes_together<K: RandomKey>(lens: std::ops::RangeInclusive<u8>)
where
    (K, u8): prefix_trie::Prefix,
{
    let mut random = Random(5);
    let everything = Prefix::new(K::ZERO, 0).expect("length 0");
    let mut pair = Pair::<K>::new();
    let mut prefixes = Vec::new();
    let within = |outer: Prefix<K>, random: &mut Random| {
        let len = lens.start() + random.below(usize::from(lens.end() - lens.start()) + 1) as u8;
        Prefix::new(K::within(outer, random), len).expect("length within the key")
    };
    for round in 0..30 {
        let mut changes = Vec::new();
        for n in 0..1000 {
            // A third anywhere, a third in one place, a third taken away.
            let place = Prefix::new(K::within(everything, &mut Random(round / 3 + 7)), 18).expect("length within the key");
            match n % 3 {
                0 => changes.push((within(everything, &mut random), Some(n % 5 + 1))),
                1 => changes.push((within(place, &mut random), Some(n % 5 + 1))),
                _ if prefixes.is_empty() => {}
                _ => changes.push((prefixes[random.below(prefixes.len())], None)),
            }
        }
        prefixes.extend(changes.iter().map(|(prefix, _)| *prefix));
        pair.change(&changes);
        let keys: Vec<K> = prefixes.iter().step_by(11).map(|&prefix| K::within(prefix, &mut random)).collect();
        pair.check(&keys);
    }
    pair.change(&prefixes.iter().map(|prefix| (*prefix, None)).collect::<Vec<_>>());
    pair.clear();
}

#[test]
fn ipv4_changes_made_together_follow_the_model() {
    changes_together::<u32>(12..=32);
}

#[test]
fn ipv6_changes_made_together_follow_the_model() {
    changes_together::<u128>(16..=64);
}

#[test]
fn an_empty_table_is_small_and_misses() {
    let domain = Domain::new();
    let table = Lpm::<u128>::new(&domain);
    assert!(table.memory() < 1024, "{} bytes", table.memory());
    assert_eq!(domain.reader().burst(|guard| table.lookup(guard, 1)), 0);
    let mut out = [0; 3];
    assert_eq!(domain.reader().burst(|guard| table.lookup_batch(guard, &[1, 2, 3], &mut out)), 3);
    assert_eq!(out, [0; 3]);
}

#[test]
fn what_an_earlier_table_has_answered_stays() {
    let domain = Domain::new();
    let table = Lpm::<u128>::new(&domain);
    let net = 0x2001_0db8_u128 << 96;
    table.insert(Prefix::new(net, 32).expect("net"), 5);
    table.insert(Prefix::host(net + 1), 6);
    let keys = [net + 1, net + 1, net + 2, net + 2, 1, 1];
    for earlier in [9, u32::MAX >> 1] {
        let mut out = [0, earlier, 0, earlier, 0, earlier];
        assert_eq!(domain.reader().burst(|guard| table.lookup_batch(guard, &keys, &mut out)), 1);
        assert_eq!(out, [6, earlier, 5, earlier, 0, earlier]);
    }
    table.insert(Prefix::new(0, 0).expect("default"), 7);
    let mut out = [0, 9, 0, 9, 0, 9];
    assert_eq!(domain.reader().burst(|guard| table.lookup_batch(guard, &keys, &mut out)), 0);
    assert_eq!(out, [6, 9, 5, 9, 7, 9]);
}

#[test]
fn a_few_routes_and_thousands_of_sids_cost_no_direct_table() {
    let domain = Domain::new();
    let table = Lpm::<u128>::new(&domain);
    table.insert(Prefix::new(0, 0).expect("default"), 1);
    table.insert(Prefix::new(0xfcbb_bb00 << 96, 32).expect("block"), 2);
    table.insert(Prefix::new(0xfcbb_bb00_0001 << 80, 48).expect("locator"), 3);
    assert!(table.memory() < 4096, "{} bytes", table.memory());
    let sid = |n: u32| 0xfcbb_bb00_0001 << 80 | u128::from(n) << 64;
    table.extend((0..4000).map(|n| (Prefix::host(sid(n)), n + 10)));
    assert!(table.memory() < 512 << 10, "{} bytes", table.memory());
    let keys = [sid(0), sid(3999), sid(4000), 0xfcbb_bb00 << 96, 1];
    assert_eq!(domain.reader().burst(|guard| keys.map(|key| table.lookup(guard, key))), [10, 4009, 3, 2, 1]);
}

#[test]
#[should_panic(expected = "value 0 of a prefix must be from 1")]
fn the_value_for_no_route_is_refused() {
    Lpm::<u32>::new(&Domain::new()).insert(Prefix::host(1), 0);
}

#[test]
#[should_panic(expected = "the guard belongs to a reader of another domain")]
fn a_guard_of_another_domain_is_refused() {
    let table = Lpm::<u32>::new(&Domain::new());
    Domain::new().reader().burst(|guard| table.lookup(guard, 1));
}

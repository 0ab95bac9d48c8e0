//! The whole Internet's routing table against a model, `prefix-trie`.
//!
//! Everything in a release build; without optimization, where each step takes ten times as long, fewer addresses, and changes
//! to a part of the table only.

mod internet;

use std::sync::Arc;
use std::time::{Duration, Instant};

use internet::{Internet, RandomKey, addresses};
use lpm::{Lpm, Prefix};
use prefix_trie::PrefixMap;
use rcu::Domain;

const ADDRESSES: usize = if cfg!(debug_assertions) { 50_000 } else { 1_000_000 };
const CHANGED: usize = if cfg!(debug_assertions) { 20 } else { 1 };

struct Loaded<K: RandomKey>
where
    (K, u8): prefix_trie::Prefix,
{
    domain: Arc<Domain>,
    table: Lpm<K>,
    model: PrefixMap<(K, u8), u32>,
    keys: Vec<K>,
    load_time: Duration,
}

impl<K: RandomKey> Loaded<K>
where
    (K, u8): prefix_trie::Prefix,
{
    fn new(routes: &[(Prefix<K>, u32)]) -> Self {
        let domain = Domain::new();
        let table = Lpm::new(&domain);
        let start = Instant::now();
        table.extend(routes.iter().copied());
        let load_time = start.elapsed();
        let model = routes.iter().map(|(prefix, value)| ((prefix.addr(), prefix.len()), *value)).collect();
        Self { domain, table, model, keys: addresses(routes, ADDRESSES), load_time }
    }

    fn check(&self) {
        assert_eq!(self.table.len(), self.model.len());
        let mut answers = vec![0; self.keys.len()];
        for (keys, answers) in self.keys.chunks(256).zip(answers.chunks_mut(256)) {
            self.domain.reader().burst(|guard| self.table.lookup_batch(guard, keys, answers));
        }
        for (&key, answer) in self.keys.iter().zip(answers) {
            let expected = self.model.get_lpm(&(key, K::BITS)).map_or(0, |(_, value)| *value);
            assert_eq!(answer, expected, "{:?}", Prefix::host(key));
        }
    }

    fn insert(&mut self, prefix: Prefix<K>, value: u32) {
        assert_eq!(self.table.insert(prefix, value), self.model.insert((prefix.addr(), prefix.len()), value));
    }

    fn remove(&mut self, prefix: Prefix<K>) {
        assert_eq!(self.table.remove(prefix), self.model.remove(&(prefix.addr(), prefix.len())));
    }
}

/// A router that loses a neighbour, every 50th route goes and every other 50th gets another next hop, and then all the others.
fn changes_and_empties<K: RandomKey>(routes: &[(Prefix<K>, u32)])
where
    (K, u8): prefix_trie::Prefix,
{
    let mut loaded = Loaded::new(routes);
    let full = loaded.table.memory();
    for (n, &(prefix, value)) in routes.iter().enumerate().step_by(25) {
        if n % 50 == 0 {
            loaded.remove(prefix);
        } else {
            loaded.insert(prefix, value + 64);
        }
        if n % 1000 == 0 {
            loaded.domain.reclaim();
        }
    }
    loaded.check();
    let changed = loaded.table.memory();
    assert!(changed < full + full / 3, "{changed} bytes after changes, {full} before");

    for (n, &(prefix, _)) in routes.iter().enumerate() {
        loaded.remove(prefix);
        if n % 1000 == 0 {
            loaded.domain.reclaim();
        }
    }
    loaded.domain.reclaim();
    assert_eq!((loaded.table.len(), loaded.domain.pending()), (0, 0));
    assert_eq!(loaded.table.memory(), Lpm::<K>::new(&loaded.domain).memory());
}

#[test]
fn the_internet_fits_and_every_address_is_answered_right() {
    let Internet { v4, v6 } = Internet::load();
    let (v4, v6) = (Loaded::new(&v4), Loaded::new(&v6));
    v4.check();
    v6.check();
    let (bytes_v4, bytes_v6) = (v4.table.memory(), v6.table.memory());
    println!("IPv4 {bytes_v4} bytes in {:?}, IPv6 {bytes_v6} bytes in {:?}", v4.load_time, v6.load_time);
    assert!(bytes_v4 + bytes_v6 < 20_000_000, "{bytes_v4} bytes for IPv4 and {bytes_v6} for IPv6");
    if !cfg!(debug_assertions) {
        assert!(v4.load_time + v6.load_time < Duration::from_millis(1500), "a second and a half to load");
    }
}

#[test]
fn routes_change_in_the_internet_and_nothing_is_left_behind() {
    let Internet { v4, v6 } = Internet::load();
    changes_and_empties(&v4.into_iter().step_by(CHANGED).collect::<Vec<_>>());
    changes_and_empties(&v6.into_iter().step_by(CHANGED).collect::<Vec<_>>());
}

//! Readers at work while the writer changes what they read.

mod internet;

use std::collections::BTreeSet;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::thread;

use internet::{Random, RandomKey};
use lpm::{Lpm, Prefix};
use rcu::Domain;

/// Two readers look up keys in prefixes of which the writer changes the values, removes and inserts longer ones, and makes the
/// direct table grow and shrink. Values tell which prefix they belong to, so a reader can tell a wrong answer.
fn answers_are_old_or_new<K: RandomKey>(len: u8, longer: [u8; 4]) {
    const NETS: u32 = 50;
    let rounds = if cfg!(debug_assertions) { 5 } else { 200 };
    let domain = Domain::new();
    let table = Lpm::<K>::new(&domain);
    let mut random = Random(4);
    let everything = Prefix::new(K::ZERO, 0).expect("length 0");
    let mut nets = BTreeSet::new();
    while nets.len() < NETS as usize {
        nets.insert(Prefix::new(K::within(everything, &mut random), len).expect("length"));
    }
    let nets: Vec<Prefix<K>> = nets.into_iter().collect();
    // A net's values are its number and its number + 50, those of the prefixes in it 1000 more.
    for (value, &net) in (1..).zip(&nets) {
        table.insert(net, value);
    }
    let (done, lookups) = (AtomicBool::new(false), AtomicUsize::new(0));
    thread::scope(|scope| {
        for seed in 0..2 {
            let (nets, table, done, lookups) = (&nets, &table, &done, &lookups);
            let mut reader = domain.reader();
            scope.spawn(move || {
                let mut random = Random(100 + seed);
                let mut answers = [0; 64];
                while !done.load(Ordering::Relaxed) {
                    let numbers: Vec<usize> = (0..64).map(|_| random.below(nets.len())).collect();
                    let keys: Vec<K> = numbers.iter().map(|&n| K::within(nets[n], &mut random)).collect();
                    answers.fill(0);
                    reader.burst(|guard| table.lookup_batch(guard, &keys, &mut answers));
                    let singles = reader.burst(|guard| keys.iter().map(|&k| table.lookup(guard, k)).collect::<Vec<_>>());
                    for (number, answer) in numbers.iter().zip(answers).chain(numbers.iter().zip(singles)) {
                        let net = *number as u32 + 1;
                        let right = [net, net + NETS, net + 1000, net + 1000 + NETS].contains(&answer);
                        assert!(right, "{answer} in net {net}");
                    }
                    lookups.fetch_add(keys.len(), Ordering::Relaxed);
                }
            });
        }
        // Ends the readers also when a check here fails.
        let _done = Done(&done);
        for round in 0..rounds {
            let other = if round % 2 == 0 { NETS } else { 0 };
            let mut inserted = Vec::new();
            for (value, &net) in (1..).zip(&nets) {
                table.insert(net, value + other);
                let inside = (0..8).map(|_| Prefix::new(K::within(net, &mut random), longer[random.below(4)]));
                let inside: Vec<Prefix<K>> = inside.map(|prefix| prefix.expect("length")).collect();
                if round % 3 == 0 {
                    table.extend(inside.iter().map(|&prefix| (prefix, value + 1000)));
                } else {
                    for &prefix in &inside {
                        table.insert(prefix, value + 1000 + other);
                    }
                }
                inserted.extend(inside);
                domain.reclaim();
            }
            for prefix in inserted {
                table.remove(prefix);
                domain.reclaim();
            }
        }
    });
    assert!(lookups.load(Ordering::Relaxed) > 0);
}

struct Done<'a>(&'a AtomicBool);

impl Drop for Done<'_> {
    fn drop(&mut self) {
        self.0.store(true, Ordering::Relaxed);
    }
}

#[test]
fn ipv4_readers_see_old_or_new() {
    answers_are_old_or_new::<u32>(12, [13, 20, 24, 32]);
}

#[test]
fn ipv6_readers_see_old_or_new() {
    answers_are_old_or_new::<u128>(32, [33, 48, 64, 128]);
}

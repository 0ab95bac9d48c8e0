//! Lookups of a million random addresses inside the prefixes of a full Internet table, against `prefix-trie`.
#![allow(missing_docs, reason = "criterion's macro makes a public function")]

#[path = "../tests/internet/mod.rs"]
mod internet;

use std::hint::black_box;
use std::time::Duration;

use criterion::{Criterion, Throughput, criterion_group, criterion_main};
use lpm::{Lpm, Prefix};
use prefix_trie::PrefixMap;

use internet::{Internet, RandomKey, addresses};

const ADDRESSES: usize = 1_000_000;
const BATCH: usize = 256;

fn full_table(c: &mut Criterion) {
    let Internet { v4, v6 } = Internet::load();
    family(c, "ipv4", &v4);
    family(c, "ipv6", &v6);
}

fn family<K: RandomKey>(c: &mut Criterion, name: &str, routes: &[(Prefix<K>, u32)])
where
    (K, u8): prefix_trie::Prefix,
{
    let domain = rcu::Domain::new();
    let mut reader = domain.reader();
    let ours = Lpm::new(&domain);
    ours.extend(routes.iter().copied());
    println!("{name}: {} prefixes, {} bytes", ours.len(), ours.memory());
    let keys = addresses(routes, ADDRESSES);
    let mut out = vec![0; ADDRESSES];

    let mut group = c.benchmark_group(name);
    group.sample_size(20).throughput(Throughput::Elements(ADDRESSES as u64));
    group.bench_function("batch", |b| {
        b.iter(|| {
            out.fill(0);
            for (keys, out) in keys.chunks(BATCH).zip(out.chunks_mut(BATCH)) {
                reader.burst(|guard| ours.lookup_batch(guard, keys, out));
            }
            black_box(&out);
        });
    });
    group.bench_function("single", |b| {
        b.iter(|| reader.burst(|guard| keys.iter().fold(0u32, |sum, &key| sum.wrapping_add(ours.lookup(guard, key)))));
    });
    let theirs: PrefixMap<(K, u8), u32> = routes.iter().map(|(prefix, value)| ((prefix.addr(), prefix.len()), *value)).collect();
    group.bench_function("prefix-trie", |b| {
        b.iter(|| keys.iter().fold(0u32, |sum, &key| sum.wrapping_add(theirs.get_lpm(&(key, K::BITS)).map_or(0, |(_, v)| *v))));
    });
    group.finish();

    let mut group = c.benchmark_group(format!("{name}/writer"));
    group.sample_size(10).measurement_time(Duration::from_secs(3));
    group.throughput(Throughput::Elements(routes.len() as u64)).bench_function("load", |b| {
        b.iter_with_large_drop(|| {
            let table = Lpm::new(&domain);
            table.extend(routes.iter().copied());
            table
        });
    });
    let flapping = &routes[..10_000.min(routes.len())];
    group.throughput(Throughput::Elements(2 * flapping.len() as u64)).bench_function("remove and insert", |b| {
        b.iter(|| {
            for &(prefix, value) in flapping {
                ours.remove(prefix);
                ours.insert(prefix, value);
            }
            domain.reclaim()
        });
    });
    group.finish();
}

criterion_group!(benches, full_table);
criterion_main!(benches);

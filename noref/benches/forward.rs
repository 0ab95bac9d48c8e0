//! The whole router over frames in memory, on one core, with a full Internet table: packets a second through each way.
//!
//! `noref bench seg6local` measures the same ways, with several workers; here criterion compares a way with itself before a change.
#![allow(missing_docs, reason = "criterion's macro makes a public function")]

#[path = "../src/bench/full_table/mod.rs"]
mod full_table;

use std::time::Duration;

use criterion::{Criterion, Throughput, criterion_group, criterion_main};
use plane::BURST;
use route::RouteRefs;

use full_table::{DESTINATIONS, Lane, Prefixes, Router, ways};

fn forward(c: &mut Criterion) {
    let prefixes = Prefixes::full().unwrap_or_else(|error| panic!("{error}"));
    let router = Router::new(prefixes).unwrap_or_else(|errors| panic!("{errors}"));
    let mut group = c.benchmark_group("forward");
    group.sample_size(20).measurement_time(Duration::from_secs(3)).throughput(Throughput::Elements(BURST as u64));
    for way in &ways(&router.prefixes, DESTINATIONS).expect("the full table has destinations of both families") {
        let destinations = if way.random { "random destinations" } else { "one destination" };
        for refs in [RouteRefs::Noref, RouteRefs::Counted] {
            let mut lane = Lane::new(router.worker(refs), way);
            group.bench_function(format!("{}, {destinations}/{refs:?}", way.name), |b| b.iter(|| assert_eq!(lane.burst(), BURST)));
        }
    }
    group.finish();
}

criterion_group!(benches, forward);
criterion_main!(benches);

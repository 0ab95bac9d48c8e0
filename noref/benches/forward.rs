//! The whole router over frames in memory, on one core, with a full Internet table: packets a second through each way.
#![allow(missing_docs, reason = "criterion's macro makes a public function")]

#[path = "../tests/full_table/mod.rs"]
mod full_table;

use std::hint::black_box;
use std::net::Ipv6Addr;
use std::time::Duration;

use criterion::{Criterion, Throughput, criterion_group, criterion_main};
use plane::{BURST, Worker};
use port::Time;
use route::RouteRefs;

use full_table::{Router, frames};

/// Different packets of each kind: what a batch of a router at work looks like.
const DESTINATIONS: usize = 1 << 16;

fn forward(c: &mut Criterion) {
    let router = Router::load();
    let mut group = c.benchmark_group("forward");
    group.sample_size(20).measurement_time(Duration::from_secs(3)).throughput(Throughput::Elements(BURST as u64));
    let sid = |number: u16| Ipv6Addr::new(0xfc00, 1, 0, 0, 0, 0, 0, number);
    let v6 = router.destinations6(DESTINATIONS);
    let v4 = router.destinations4(DESTINATIONS);
    let end = |next: &[Ipv6Addr]| next.iter().map(|&next| frames::end(sid(1), next)).collect::<Vec<_>>();
    let kinds: Vec<(&str, Vec<Vec<u8>>)> = vec![
        ("End, one destination", end(&v6[..1])),
        ("End, random destinations", end(&v6)),
        ("End.DX4", vec![frames::decap4(sid(2), v4[0])]),
        ("End.DT6", v6.iter().map(|&dst| frames::decap6(sid(3), dst)).collect()),
        ("H.Encaps of IPv4", vec![frames::ip4(full_table::ENCAPSULATED4)]),
        ("H.Encaps of IPv6", vec![frames::ip6(full_table::ENCAPSULATED6)]),
        ("IPv4, one destination", vec![frames::ip4(v4[0])]),
        ("IPv4, random destinations", v4.iter().map(|&dst| frames::ip4(dst)).collect()),
        ("IPv6, one destination", vec![frames::ip6(v6[0])]),
        ("IPv6, random destinations", v6.iter().map(|&dst| frames::ip6(dst)).collect()),
    ];
    for (name, frames) in &kinds {
        for refs in [RouteRefs::Noref, RouteRefs::Counted] {
            let mut worker = router.worker(refs);
            let mut at = 0;
            group.bench_function(format!("{name}/{refs:?}"), |b| b.iter(|| burst(&mut worker, frames, &mut at)));
            assert_eq!(worker.counters().dropped(), 0, "{name}: every packet is forwarded");
        }
    }
    group.finish();
}

/// One burst: received (copied from memory), taken through the router, sent (looked at and given back).
fn burst(worker: &mut Worker, frames: &[Vec<u8>], at: &mut usize) {
    for _ in 0..BURST {
        let frame = &frames[*at];
        *at = if *at + 1 == frames.len() { 0 } else { *at + 1 };
        let mut buf = worker.pool().take(frame.len());
        buf.append(frame);
        worker.receive(0, buf, Time::ZERO);
    }
    worker.run();
    let mut sent = 0;
    worker.drain(|frame| sent += usize::from(black_box(&frame.buf)[0] == 2));
    assert_eq!(sent, BURST);
}

criterion_group!(benches, forward);
criterion_main!(benches);

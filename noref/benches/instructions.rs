//! Instructions of the packet path, counted under valgrind: what guards it against becoming slower unseen, on any machine, busy or not.
//!
//! `.ci/instructions` runs it and holds the counts against those in `instructions.tsv` beside this file.
#![allow(missing_docs, reason = "gungraun's macros make public items")]

#[path = "../src/bench/full_table/mod.rs"]
mod full_table;

use std::collections::BTreeSet;
use std::hint::black_box;
use std::net::{Ipv4Addr, Ipv6Addr};

use gungraun::Callgrind;
use gungraun::prelude::*;
use lpm::{Key, Lpm};
use plane::BURST;
use route::RouteRefs;

use full_table::{GATEWAYS, Lane, Prefixes, Random, Router, ways};

/// Packets, or lookups, of a count: 4096, which `.ci/instructions` divides by.
const COUNTED: usize = 16 * BURST;
/// Prefixes of each family. Under valgrind the full table would take minutes.
const PREFIXES: usize = 2000;

/// Prefixes all over the address space, of lengths that are common in the Internet, each once.
fn prefixes() -> Prefixes {
    let mut random = Random::new(1);
    let v4: BTreeSet<_> = (0..PREFIXES)
        .map(|n| {
            let (len, addr) = ([24, 24, 22, 20][n % 4], 0x0b00_0000 + random.below(0x7000_0000) as u32);
            (Ipv4Addr::from(addr & u32::MAX << (32 - len)), len as u8)
        })
        .collect();
    let v6: BTreeSet<_> = (0..PREFIXES)
        .map(|n| {
            let (len, addr) = ([48, 48, 44, 32][n % 4], 0x2000 << 112 | u128::from(random.word()) << 56);
            (Ipv6Addr::from(addr & u128::MAX << (128 - len)), len as u8)
        })
        .collect();
    Prefixes { v4: v4.into_iter().collect(), v6: v6.into_iter().collect() }
}

/// A worker that has all it needs, and has done it once.
fn lane(name: &str, random: bool) -> Lane<'static> {
    let prefixes = prefixes();
    let ways = ways(&prefixes, COUNTED).expect("prefixes of both families");
    let way = ways.into_iter().find(|way| way.name == name && way.random == random).expect("a way of this name");
    let router = Router::new(prefixes).unwrap_or_else(|errors| panic!("{errors}"));
    let mut lane = Lane::new(router.worker(RouteRefs::Noref), Box::leak(Box::new(way)));
    lane.worker.online();
    assert_eq!(lane.burst(), BURST, "every packet of {name} leaves");
    lane
}

#[library_benchmark(setup = lane)]
#[bench::ipv4("IPv4", false)]
#[bench::ipv4_random("IPv4", true)]
#[bench::ipv6("IPv6", false)]
#[bench::ipv6_random("IPv6", true)]
#[bench::end("End", false)]
#[bench::end_random("End", true)]
#[bench::end_x("End.X", false)]
#[bench::end_t("End.T", false)]
#[bench::end_dx4("End.DX4", false)]
#[bench::end_dx6("End.DX6", false)]
#[bench::end_dt4("End.DT4", false)]
#[bench::end_dt6("End.DT6", false)]
#[bench::end_dt6_random("End.DT6", true)]
#[bench::end_dt46_ipv4("End.DT46 of IPv4", false)]
#[bench::end_dt46_ipv6("End.DT46 of IPv6", false)]
#[bench::end_b6_encaps("End.B6.Encaps", false)]
#[bench::h_encaps_ipv4("H.Encaps of IPv4", false)]
#[bench::h_encaps_ipv6("H.Encaps of IPv6", false)]
#[bench::vlan_ipv4("IPv4 between VLANs", false)]
#[bench::vlan_ipv6("IPv6 between VLANs", false)]
fn packets(mut lane: Lane<'static>) -> Lane<'static> {
    for _ in 0..COUNTED / BURST {
        lane.burst();
    }
    lane
}

/// A match table, and addresses that it has prefixes for.
struct Lookups<K: Key> {
    table: Lpm<K>,
    reader: rcu::Reader,
    keys: Vec<K>,
    out: Vec<u32>,
}

impl<K: Key> Lookups<K> {
    fn new(prefixes: impl Iterator<Item = (K, u8)>, keys: Vec<K>) -> Lookups<K> {
        let domain = rcu::Domain::new();
        let table = Lpm::new(&domain);
        let value = |(n, (addr, len))| Some((lpm::Prefix::new(addr, len)?, (n % GATEWAYS) as u32 + 1));
        table.extend(prefixes.enumerate().filter_map(value));
        Lookups { table, reader: domain.reader(), out: vec![0; keys.len()], keys }
    }

    /// Looks up all of them, a burst at a time; how many there are no prefixes for.
    #[inline]
    fn run(&mut self) -> usize {
        let Lookups { table, reader, keys, out } = self;
        let bursts = keys.chunks(BURST).zip(out.chunks_mut(BURST));
        bursts.map(|(keys, out)| reader.burst(|guard| table.lookup_batch(guard, keys, black_box(out)))).sum()
    }
}

fn lookups4() -> Lookups<u32> {
    let prefixes = prefixes();
    let keys = prefixes.destinations4(COUNTED).into_iter().map(u32::from).collect();
    Lookups::new(prefixes.v4.iter().map(|&(addr, len)| (addr.into(), len)), keys)
}

fn lookups6() -> Lookups<u128> {
    let prefixes = prefixes();
    let keys = prefixes.destinations6(COUNTED).into_iter().map(u128::from).collect();
    Lookups::new(prefixes.v6.iter().map(|&(addr, len)| (addr.into(), len)), keys)
}

#[library_benchmark(setup = lookups4)]
#[bench::ipv4()]
fn lookups_of_ipv4(mut lookups: Lookups<u32>) -> (usize, Lookups<u32>) {
    (lookups.run(), lookups)
}

#[library_benchmark(setup = lookups6)]
#[bench::ipv6()]
fn lookups_of_ipv6(mut lookups: Lookups<u128>) -> (usize, Lookups<u128>) {
    (lookups.run(), lookups)
}

library_benchmark_group!(name = instructions, benchmarks = [packets, lookups_of_ipv4, lookups_of_ipv6]);
// Instructions say it: what they cost differs from machine to machine, and valgrind only models it.
main!(config = LibraryBenchmarkConfig::default().tool(Callgrind::with_args(["--cache-sim=no"])), library_benchmark_groups = instructions);

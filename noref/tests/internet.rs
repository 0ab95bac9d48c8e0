//! The full Internet table from a network file: time and memory. A debug build takes an eighth of it.

#[path = "../src/bench/full_table/mod.rs"]
mod full_table;

use std::net::Ipv6Addr;
use std::time::{Duration, Instant};

use full_table::Prefixes;
use route::{Flow, IfIndex, Kind, RouteRefs};

/// What the tries may take, bytes.
const MEMORY: usize = 20_000_000;
/// What reading the file may take.
const TIME: Duration = Duration::from_secs(3);

#[test]
fn a_full_table_loads_quickly_and_stays_small() {
    let share = if cfg!(debug_assertions) { 8 } else { 1 };
    let prefixes = Prefixes::full().unwrap_or_else(|error| panic!("{error}")).thinned(share);
    let text = full_table::network_file(&prefixes);
    let begin = Instant::now();
    let configuration = control::network_file(&text, "full-table.ip", &full_table::PORTS).unwrap_or_else(|errors| panic!("{errors}"));
    let took = begin.elapsed();
    let network = configuration.editor.network().clone();
    let memory = network.domain().reader().burst(|guard| network.v4.memory(guard) + network.v6.memory(guard));
    println!("{} prefixes in {took:?}, tries of {memory} bytes", prefixes.len());
    assert!(memory < MEMORY, "{memory} bytes");
    assert!(cfg!(debug_assertions) || took < TIME, "{took:?}");

    let (dst, len) = *prefixes.v6.last().unwrap();
    let flow = Flow::new(dst, IfIndex(2));
    let kind = network.domain().reader().burst(|guard| network.v6.lookup(guard, &flow, RouteRefs::Noref).dst.kind);
    assert_eq!(kind, Kind::Unicast, "{dst}/{len} of {} bits", Ipv6Addr::BITS);
}

//! The full Internet table and 64 tables more, changed at random while two readers look up: each answer is compared with what an independent trie says.
//!
//! A debug build takes an eighth of the routes and a tenth of the changes; `NOREF_LONG=1`, and a release build, take all.

#[path = "../../src/bench/full_table/mod.rs"]
mod full_table;
mod model;
mod readers;
mod tables;

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::thread;
use std::time::Instant;

use full_table::Prefixes;
use readers::{Readers, Shared};
use testkit::program;
use testkit::rng::Rng;

/// Changes between two comparisons.
const ROUND: usize = 1000;
/// Retired values that may wait, whatever the readers do.
const PENDING: usize = 20_000;
/// What the process may grow by while the tables change and keep their size, bytes.
const GROWTH: u64 = 64 << 20;

fn is_whole() -> bool {
    testkit::is_long() || !cfg!(debug_assertions)
}

#[test]
fn every_answer_is_of_the_state_before_a_commit_or_behind_it() {
    let (share, changes) = if is_whole() { (1, 100_000) } else { (8, 10_000) };
    let prefixes = Prefixes::full().unwrap_or_else(|error| panic!("{error}")).thinned(share);
    let begin = Instant::now();
    let (mut writer, places, mut model) = tables::load(prefixes, 64, 16_000 / share);
    println!("{} routes in {} tables, loaded in {:?}", model.len(), places.len(), begin.elapsed());
    assert!(model.len() > 1_900_000 / share, "{}", model.len());

    let network = writer.network().clone();
    let shared = Shared { network: &network, places: &places, version: AtomicU64::new(0), paused: AtomicBool::new(true) };
    let (begin, mut random) = (Instant::now(), Rng::new(5));
    let (mut before, mut asked, mut waiting) = (None, 0, 0);
    thread::scope(|scope| {
        let readers = Readers::start(scope, &shared, 2);
        // Ends the readers also when a check here fails.
        let _pause = Pause(&shared.paused);
        for round in 0..changes / ROUND {
            let favourites = tables::favourites(&places, &mut random);
            let from = shared.version.load(Ordering::Relaxed);
            readers.go(&shared, &favourites);
            let mut steps = Vec::new();
            let mut left = ROUND;
            while left > 0 {
                let step = tables::draw(&places, &favourites, &model, &mut random, left);
                left -= step.len();
                writer.commit(&step, &mut model);
                shared.version.fetch_add(1, Ordering::Release);
                waiting = waiting.max(network.domain().pending());
                steps.push(step);
            }
            let seen = readers.pause(&shared);
            asked += seen.len();
            model.rewind(&steps);
            model::check(&mut model, from, &steps, seen.into_iter()).unwrap_or_else(|wrong| panic!("in round {round}: {wrong}"));
            writer.check(&places, &model, &mut random);
            network.domain().reclaim();
            assert_eq!(network.domain().pending(), 0, "both readers are offline");
            before.get_or_insert((writer.memory(), resident()));
        }
    });
    println!("{changes} changes in {:?}, {asked} answers compared, at most {waiting} values waited", begin.elapsed());
    let (tries, process) = before.expect("a round");
    assert!(asked > changes, "{asked}");
    assert!(waiting < PENDING, "{waiting}");
    // A trie is made anew when more than half of it is holes.
    assert!(writer.memory() < 2 * tries, "{} bytes, {tries} before", writer.memory());
    assert!(resident() < process + GROWTH, "{} bytes, {process} before", resident());
}

struct Pause<'a>(&'a AtomicBool);

impl Drop for Pause<'_> {
    fn drop(&mut self) {
        self.0.store(true, Ordering::Relaxed);
    }
}

/// Bytes of memory that the process has.
fn resident() -> u64 {
    program::memory(std::process::id())
}

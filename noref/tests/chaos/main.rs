//! A writer that changes everything and frees as fast as it can, and readers that stop at random while they have something borrowed. What is freed is
//! overwritten: whoever reads it finds no route, and a test that fails or a process that dies.
//!
//! Three seconds; a minute with `NOREF_LONG=1`.

#[path = "../../../crates/rcu/tests/poison/mod.rs"]
mod poison;
mod readers;
mod writer;

use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use poison::Poison;
use writer::Writer;

#[global_allocator]
static ALLOCATOR: Poison = Poison::new();

/// What may be allocated beyond the tables while readers stop for milliseconds, bytes.
const GROWTH: usize = 96 << 20;
/// What is left of it when no reader has anything borrowed.
const LEFT: usize = 4 << 20;

#[test]
fn nothing_stale_is_read_and_memory_stays_bounded_while_readers_pause_and_one_sleeps() {
    let time = Duration::from_secs(if testkit::is_long() { 60 } else { 3 });
    let mut writer = Writer::new();
    let tables = writer.tables();
    let domain = tables.network.domain().clone();
    // Was at work once, and sleeps from then on.
    let mut sleeper = domain.reader();
    sleeper.burst(|guard| assert!(tables.network.v4.is_plain(guard)));
    sleeper.offline();
    (0..200).for_each(|_| _ = writer.change());
    let before = ALLOCATOR.live();

    let done = AtomicBool::new(false);
    let (mut most, mut waiting, mut changes) = (0, 0, 0);
    let looked = thread::scope(|scope| {
        let borrowers = [1, 2].map(|seed| {
            let (tables, done) = (&tables, &done);
            scope.spawn(move || readers::borrow(tables, seed, done))
        });
        let (worker, over) = (tables.clone(), &done);
        let worker = scope.spawn(move || readers::forward(worker, 3, over));
        let begin = Instant::now();
        // Ends the readers also when a check here fails.
        let done = Done(&done);
        while begin.elapsed() < time {
            changes += writer.change();
            most = most.max(ALLOCATOR.live());
            waiting = waiting.max(domain.pending());
        }
        drop(done);
        let looked: u64 = borrowers.into_iter().map(|thread| thread.join().expect("a reader read nothing stale")).sum();
        (looked, worker.join().expect("a worker met nothing stale"))
    });
    println!(
        "{changes} changes, {waiting} values waited at most, {} KiB more than before; looked at, forwarded: {looked:?}",
        (most - before) >> 10
    );
    domain.reclaim();
    domain.reclaim();
    assert!(changes > 500 && looked.0 > 1000 && looked.1 > 1000, "{changes} changes, {looked:?}");
    assert_eq!((domain.pending(), ALLOCATOR.spoilt(), sleeper.is_online()), (0, 0, false));
    assert!(most < before + GROWTH, "{most} bytes, {before} before");
    assert!(ALLOCATOR.live() < before + LEFT, "{} bytes, {before} before", ALLOCATOR.live());
}

struct Done<'a>(&'a AtomicBool);

impl Drop for Done<'_> {
    fn drop(&mut self) {
        self.0.store(true, Ordering::Relaxed);
    }
}

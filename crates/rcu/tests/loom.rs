//! Every interleaving, and every value the memory model lets a load see, of small programs.
//!
//! `RUSTFLAGS="--cfg loom" cargo test -p noref-rcu --release --test loom`
//!
//! A value's destructor writes what its readers read, so that loom reports any order in which one could
//! overlap the other, as well as a read that finds the value dropped.
#![cfg(loom)]

use std::sync::Arc as StdArc;

use loom::cell::UnsafeCell;
use loom::sync::Arc;
use loom::sync::atomic::{AtomicUsize, Ordering};
use loom::thread;
use rcu::{Domain, Rcu, Reader, Ref, Slots};

const DROPPED: u64 = 0xdead;

/// A value that notices being read while or after it is dropped.
struct Value {
    content: UnsafeCell<u64>,
    drops: StdArc<AtomicUsize>,
}

// SAFETY: loom checks every access to the cell.
unsafe impl Sync for Value {}

impl Value {
    fn new(content: u64, drops: &StdArc<AtomicUsize>) -> Self {
        Self { content: UnsafeCell::new(content), drops: StdArc::clone(drops) }
    }

    fn read(&self) -> u64 {
        // SAFETY: only drop writes, and loom checks that it does not overlap.
        let content = self.content.with(|content| unsafe { *content });
        assert_ne!(content, DROPPED);
        content
    }
}

impl Drop for Value {
    fn drop(&mut self) {
        // SAFETY: as in `read`.
        self.content.with_mut(|content| unsafe { *content = DROPPED });
        self.drops.fetch_add(1, Ordering::Relaxed);
    }
}

/// A domain with a reader and a published 1, and the count of drops.
fn published() -> (StdArc<Domain>, Reader, StdArc<Rcu<Value>>, StdArc<AtomicUsize>) {
    let drops = StdArc::new(AtomicUsize::new(0));
    let domain = Domain::new();
    let reader = domain.reader();
    let rcu = StdArc::new(Rcu::new(&domain, Value::new(1, &drops)));
    (domain, reader, rcu, drops)
}

/// Frees what is left with the model's last thread, and counts that everything was dropped once.
fn all_dropped(domain: StdArc<Domain>, rcu: StdArc<Rcu<Value>>, drops: &AtomicUsize, expected: usize) {
    drop(rcu);
    domain.reclaim();
    assert_eq!((domain.pending(), drops.load(Ordering::Relaxed)), (0, expected));
}

#[test]
fn a_burst_reads_the_old_value_or_the_new_one_and_both_stay_until_it_ends() {
    loom::model(|| {
        let (domain, mut reader, rcu, drops) = published();
        let seen = StdArc::clone(&rcu);
        let worker = thread::spawn(move || {
            reader.burst(|guard| {
                let first = seen.load(guard);
                let second = seen.load(guard);
                assert!(first.read() <= second.read());
                first.read();
            });
        });
        rcu.publish(Value::new(2, &drops));
        domain.reclaim();
        worker.join().unwrap();
        all_dropped(domain, rcu, &drops, 2);
    });
}

#[test]
fn a_reader_that_stays_online_lets_memory_go_after_a_burst_and_not_before() {
    loom::model(|| {
        let (domain, mut reader, rcu, drops) = published();
        let seen = StdArc::clone(&rcu);
        let worker = thread::spawn(move || {
            reader.online();
            for _ in 0..2 {
                reader.burst(|guard| {
                    let value = seen.load(guard);
                    value.read();
                    seen.load(guard).read();
                    value.read();
                });
            }
        });
        rcu.publish(Value::new(2, &drops));
        domain.reclaim();
        domain.reclaim();
        worker.join().unwrap();
        all_dropped(domain, rcu, &drops, 2);
    });
}

#[test]
fn a_reader_that_goes_offline_and_online_again_takes_its_old_borrows_with_it() {
    loom::model(|| {
        let (domain, mut reader, rcu, drops) = published();
        let seen = StdArc::clone(&rcu);
        let worker = thread::spawn(move || {
            reader.burst(|guard| seen.load(guard).read());
            reader.online();
            reader.burst(|guard| seen.load(guard).read());
            reader.offline();
        });
        rcu.publish(Value::new(2, &drops));
        domain.reclaim();
        worker.join().unwrap();
        all_dropped(domain, rcu, &drops, 2);
    });
}

#[test]
fn two_readers_each_hold_up_what_they_may_see() {
    let mut model = loom::model::Builder::new();
    model.preemption_bound = Some(3);
    model.check(|| {
        let (domain, mut reader, rcu, drops) = published();
        let (mut here, seen) = (domain.reader(), StdArc::clone(&rcu));
        let worker = thread::spawn(move || reader.burst(|guard| seen.load(guard).read()));
        here.burst(|guard| {
            let value = rcu.load(guard);
            rcu.publish(Value::new(2, &drops));
            domain.reclaim();
            assert_eq!((value.read(), rcu.load(guard).read()), (1, 2));
        });
        domain.reclaim();
        worker.join().unwrap();
        drop(here);
        all_dropped(domain, rcu, &drops, 2);
    });
}

#[test]
fn synchronize_returns_after_the_value_before_is_gone() {
    loom::model(|| {
        let (domain, mut reader, rcu, drops) = published();
        let seen = StdArc::clone(&rcu);
        let worker = thread::spawn(move || {
            reader.burst(|guard| {
                let value = seen.load(guard);
                value.read();
            });
        });
        rcu.publish(Value::new(2, &drops));
        domain.synchronize();
        assert_eq!(drops.load(Ordering::Relaxed), 1);
        worker.join().unwrap();
        all_dropped(domain, rcu, &drops, 2);
    });
}

#[test]
fn a_held_reference_outlives_the_burst_and_the_retired_value() {
    loom::model(|| {
        let (domain, mut reader, rcu, drops) = published();
        let seen = StdArc::clone(&rcu);
        let worker = thread::spawn(move || {
            let held: Ref<'static, Value> = reader.burst(|guard| seen.load_ref(guard).hold());
            reader.offline();
            assert!(held.is_held());
            held.read();
        });
        rcu.publish(Value::new(2, &drops));
        domain.reclaim();
        worker.join().unwrap();
        all_dropped(domain, rcu, &drops, 2);
    });
}

#[test]
fn a_snapshot_never_meets_a_value_that_is_going_away() {
    loom::model(|| {
        let (domain, reader, rcu, drops) = published();
        drop(reader);
        let seen = StdArc::clone(&rcu);
        let other = thread::spawn(move || seen.snapshot().read());
        rcu.publish(Value::new(2, &drops));
        domain.reclaim();
        other.join().unwrap();
        all_dropped(domain, rcu, &drops, 2);
    });
}

#[test]
fn updates_from_two_threads_both_count() {
    loom::model(|| {
        let (domain, reader, rcu, drops) = published();
        drop(reader);
        let (other, counted) = (StdArc::clone(&rcu), StdArc::clone(&drops));
        let other = thread::spawn(move || other.update(|value| Value::new(value.read() + 1, &counted)));
        rcu.update(|value| Value::new(value.read() + 1, &drops));
        other.join().unwrap();
        assert_eq!(rcu.snapshot().read(), 3);
        all_dropped(domain, rcu, &drops, 3);
    });
}

#[test]
fn a_burst_never_finds_another_value_under_the_id_of_a_removed_one() {
    let mut model = loom::model::Builder::new();
    model.preemption_bound = Some(3);
    model.check(|| {
        let drops = StdArc::new(AtomicUsize::new(0));
        let domain = Domain::new();
        let mut reader = domain.reader();
        let slots = StdArc::new(Slots::new(&domain));
        let id = slots.insert(Arc::new(Value::new(1, &drops)));
        let seen = StdArc::clone(&slots);
        let worker = thread::spawn(move || {
            reader.burst(|guard| {
                let first = seen.get(guard, id);
                let second = seen.get(guard, id);
                if let (Some(first), Some(second)) = (first, second) {
                    assert_eq!(first.read(), second.read());
                }
            });
        });
        drop(slots.remove(id));
        domain.reclaim();
        slots.insert(Arc::new(Value::new(2, &drops)));
        worker.join().unwrap();
        drop(slots);
        domain.reclaim();
        assert_eq!((domain.pending(), drops.load(Ordering::Relaxed)), (0, 2));
    });
}

#[test]
fn a_burst_outlives_the_table_it_borrowed_from() {
    loom::model(|| {
        let drops = StdArc::new(AtomicUsize::new(0));
        let domain = Domain::new();
        let mut reader = domain.reader();
        let slots = StdArc::new(Slots::new(&domain));
        let id = slots.insert(Arc::new(Value::new(1, &drops)));
        let seen = StdArc::clone(&slots);
        let worker = thread::spawn(move || {
            reader.burst(|guard| {
                let value = seen.get(guard, id);
                drop(seen);
                assert_eq!(value.map(|value| value.read()), Some(1));
            });
        });
        drop(slots);
        domain.reclaim();
        worker.join().unwrap();
        domain.reclaim();
        assert_eq!((domain.pending(), drops.load(Ordering::Relaxed)), (0, 1));
    });
}

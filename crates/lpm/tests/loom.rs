//! A reader beside the writer in every interleaving, with every value that the memory model lets a load see, in tables of a few prefixes.
//!
//! `RUSTFLAGS="--cfg loom" cargo test -p noref-lpm --release --test loom`
#![cfg(loom)]

use std::sync::Arc;

use loom::thread;
use lpm::{Lpm, Prefix};
use rcu::{Domain, Guard};

const NET: u32 = 0x0a00_0000;
const OTHER: u32 = 0x0a80_0000;
const HOST: u128 = 0x2001_0db8_0000_0001_0000_0000_0000_0001;

/// Words of the writer's stack: it makes nodes in it, more than one of loom's threads has room for otherwise.
const STACK: usize = 1 << 16;

fn net(addr: u32, len: u8) -> Prefix<u32> {
    Prefix::new(addr, len).unwrap()
}

/// Has a reader look twice in one burst while `change` is at work, in tables as `before` makes them, and hands what it saw to `check`. The threads are switched twice at most where neither waits.
fn model<K: lpm::Key>(
    before: impl Fn(&Lpm<K>, &Domain) + Send + Sync + 'static,
    look: fn(&Lpm<K>, &Guard<'_>) -> u32,
    change: impl Fn(&Lpm<K>, &Domain) + Send + Sync + 'static,
    check: fn(u32, u32) -> bool,
) {
    let mut builder = loom::model::Builder::new();
    builder.preemption_bound = Some(2);
    builder.max_branches = 50_000;
    let (before, change) = (Arc::new(before), Arc::new(change));
    builder.check(move || {
        let (before, change) = (Arc::clone(&before), Arc::clone(&change));
        let writer = move || {
            let domain = Domain::new();
            let table = Arc::new(Lpm::<K>::new(&domain));
            before(&table, &domain);
            domain.reclaim();
            let (mut reader, seen) = (domain.reader(), Arc::clone(&table));
            let worker = thread::spawn(move || {
                reader.burst(|guard| {
                    let (first, second) = (look(&seen, guard), look(&seen, guard));
                    assert!(check(first, second), "{first}, then {second}");
                });
            });
            change(&table, &domain);
            worker.join().unwrap();
        };
        thread::Builder::new().stack_size(STACK).spawn(writer).unwrap().join().unwrap();
    });
}

#[test]
fn a_longer_prefix_is_seen_or_the_one_before_and_then_stays_seen() {
    model::<u32>(
        |table, domain| {
            table.insert(net(NET, 8), 1);
            // So that there is room for it, and nothing need be copied.
            table.insert(net(NET, 24), 2);
            table.remove(net(NET, 24));
            domain.reclaim();
        },
        |table, guard| table.lookup(guard, NET + 9),
        |table, _| _ = table.insert(net(NET, 24), 2),
        |first, second| matches!((first, second), (1, 1) | (1, 2) | (2, 2)),
    );
}

#[test]
fn a_prefix_that_goes_leaves_the_shorter_one() {
    model::<u32>(
        |table, _| {
            table.insert(net(NET, 8), 1);
            table.insert(net(NET, 24), 2);
        },
        |table, guard| table.lookup(guard, NET + 9),
        |table, _| _ = table.remove(net(NET, 24)),
        |first, second| matches!((first, second), (2, 2) | (2, 1) | (1, 1)),
    );
}

#[test]
fn cells_that_come_back_never_answer_for_what_they_were() {
    model::<u32>(
        |table, _| {
            table.insert(net(NET, 8), 1);
            table.insert(net(NET, 24), 2);
            table.insert(net(OTHER, 24), 3);
        },
        |table, guard| table.lookup(guard, NET + 9),
        |table, domain| {
            table.remove(net(NET, 24));
            domain.reclaim();
            table.insert(net(OTHER, 20), 4);
            domain.reclaim();
            table.insert(net(OTHER + 0x0001_0000, 24), 5);
        },
        |first, second| matches!((first, second), (2, 2) | (2, 1) | (1, 1)),
    );
}

#[test]
fn a_host_is_found_whole_or_not_at_all() {
    model::<u128>(
        |table, _| _ = table.insert(Prefix::host(HOST + 1), 1),
        |table, guard| table.lookup(guard, HOST),
        |table, _| {
            table.insert(Prefix::host(HOST), 2);
            table.insert(Prefix::host(HOST + 2), 3);
        },
        |first, second| matches!((first, second), (0, 0) | (0, 2) | (2, 2)),
    );
}

#[test]
fn a_host_that_goes_and_comes_back_has_its_own_value_each_time() {
    model::<u128>(
        |table, _| {
            table.insert(Prefix::host(HOST), 1);
            table.insert(Prefix::host(HOST + 1), 9);
        },
        |table, guard| table.lookup(guard, HOST),
        |table, _| {
            table.remove(Prefix::host(HOST));
            table.insert(Prefix::host(HOST), 2);
        },
        |first, second| matches!((first, second), (1, 1) | (1, 0) | (1, 2) | (0, 0) | (0, 2) | (2, 2)),
    );
}

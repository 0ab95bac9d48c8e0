//! Real threads: what loom cannot reach (many epochs, growth, both tables at once), in a fraction of a second.
#![cfg(not(loom))]

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use rcu::{Domain, Rcu, Reader, Ref, Slots};

const CHANGES: u64 = 20_000;
const READERS: usize = 3;

/// A value whose halves agree while it lives.
struct Value {
    number: u64,
    check: u64,
    live: Arc<AtomicU64>,
}

impl Value {
    fn new(number: u64, live: &Arc<AtomicU64>) -> Self {
        live.fetch_add(1, Ordering::Relaxed);
        Self { number, check: !number, live: Arc::clone(live) }
    }

    fn read(&self) -> u64 {
        assert_eq!(self.check, !self.number, "read after it was dropped");
        self.number
    }
}

impl Drop for Value {
    fn drop(&mut self) {
        self.check = self.number;
        self.live.fetch_sub(1, Ordering::Relaxed);
    }
}

/// What the threads share: each slot's value and the id it stands under are published together.
struct Tables {
    current: Rcu<Value>,
    last: Rcu<(u32, u64)>,
    slots: Slots<Value>,
    done: AtomicBool,
}

fn read(tables: &Tables, mut reader: Reader, nap: bool) {
    let mut newest = 0;
    let mut held: Option<Ref<'static, Value>> = None;
    while !tables.done.load(Ordering::Relaxed) {
        reader.online();
        for _ in 0..8 {
            reader.burst(|guard| {
                let value = tables.current.load_ref(guard);
                assert!(value.read() >= newest, "an older value came back");
                newest = value.read();
                let &(id, number) = tables.last.load(guard);
                if let Some(slot) = tables.slots.get(guard, id) {
                    assert_eq!(slot.read(), number, "another value under the id");
                }
                if newest % 7 == 0 {
                    held = Some(value.hold());
                }
                assert!(value.read() <= CHANGES);
            });
        }
        if let Some(held) = &held {
            held.read();
        }
        if nap {
            reader.offline();
            std::thread::yield_now();
        }
    }
}

#[test]
fn readers_find_whole_values_in_order_and_nothing_is_leaked() {
    let live = Arc::new(AtomicU64::new(0));
    let domain = Domain::new();
    let slots = Slots::new(&domain);
    let first = slots.insert(Arc::new(Value::new(0, &live)));
    let tables = Tables {
        current: Rcu::new(&domain, Value::new(0, &live)),
        last: Rcu::new(&domain, (first, 0)),
        slots,
        done: AtomicBool::new(false),
    };
    std::thread::scope(|scope| {
        for worker in 0..READERS {
            let (tables, reader) = (&tables, domain.reader());
            scope.spawn(move || read(tables, reader, worker % 2 == 0));
        }
        let mut id = first;
        for number in 1..=CHANGES {
            tables.current.publish(Value::new(number, &live));
            let next = tables.slots.insert(Arc::new(Value::new(number, &live)));
            tables.last.publish((next, number));
            tables.slots.remove(id);
            id = next;
            domain.reclaim();
            if number % 4096 == 0 {
                domain.synchronize();
            }
        }
        tables.done.store(true, Ordering::Relaxed);
    });
    assert_eq!((tables.slots.len(), tables.current.snapshot().read()), (1, CHANGES));
    drop(tables);
    domain.reclaim();
    assert_eq!((domain.pending(), live.load(Ordering::Relaxed)), (0, 0));
}

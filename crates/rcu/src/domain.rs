//! The domain: who reads, what waits to be freed, and when it may be.
//!
//! # Why this is enough
//! An item is retired with the number of the *next* epoch and dropped once every online reader has
//! announced that epoch. Three things have to hold; each line names the orderings it needs, and
//! `tests/loom.rs` fails when any of them is weakened.
//!
//! 1. *What was borrowed is no longer looked at.* A reader announces with a release store after its
//!    burst; the reclaimer loads the announcement with acquire before it drops. The same release stands in
//!    going offline, and in going online: an announcement that replaces "offline" must carry the
//!    bursts before it as well.
//! 2. *A later burst of an online reader cannot find the item.* The item is unpublished, then retired
//!    under the lock, then the epoch is stored with release under the same lock. A reader
//!    that announces this epoch has loaded it with acquire, so the unpublishing happens before its next burst.
//!    No fence is needed: only the order of loads matters, not when the store becomes visible.
//! 3. *A reader coming online cannot find the item unless the reclaimer sees it online.* This is the store-buffer
//!    pattern (reader: store slot, load pointer; reclaimer: store pointer, load slot) and needs
//!    the two sequentially consistent fences, one in `Slot::go_online`, one in `State::pass`. If the reclaimer misses
//!    the slot, its fence comes first, and every load of the reader after its own fence finds the item unpublished.
//!
//! The epoch that a reader announces may be older than the current one, which only delays freeing. It is
//! never newer than what the reader has seen unpublished.
//!
//! Values are published with release and loaded with acquire (`cell.rs`), so that a reader finds them whole.

use std::collections::VecDeque;
use std::fmt;
use std::sync::Arc;

use crate::reader::Reader;
use crate::sync::{AtomicU64, Mutex, Ordering, fence, lock, wait};

/// What an offline reader's slot says. Epochs start above it.
const OFFLINE: u64 = 0;

/// A set of readers and the memory they may be looking at.
///
/// Everything published in a domain ([`Rcu`](crate::Rcu), [`Slots`](crate::Slots)) is read under a
/// [`Guard`](crate::Guard) of one of its readers, and freed after a *grace period*: once every reader that was
/// online has finished a burst.
///
/// Nothing is freed behind anyone's back: only [`reclaim`](Self::reclaim),
/// [`synchronize`](Self::synchronize) and dropping the domain run destructors. Call `reclaim` after a
/// change of the tables, and every few thousand replacements within a large one.
pub struct Domain {
    epoch: OwnLine,
    state: Mutex<State>,
}

/// A word that shares its cache line (and the line prefetched with it) with nothing.
#[repr(align(128))]
struct OwnLine(AtomicU64);

struct State {
    readers: Vec<Arc<Slot>>,
    /// Oldest first; the epochs never decrease.
    retired: VecDeque<Retired>,
    /// What was retired up to this epoch may be dropped, whoever goes online now.
    passed: u64,
}

struct Retired {
    /// Free once every online reader has announced this epoch.
    epoch: u64,
    item: Box<dyn Send>,
}

/// Where one reader announces the epoch it has reached, or that it is offline.
pub(crate) struct Slot(OwnLine);

impl Domain {
    /// A domain without readers and with nothing to free.
    #[must_use]
    pub fn new() -> Arc<Self> {
        Arc::new(Self {
            epoch: OwnLine(AtomicU64::new(OFFLINE + 1)),
            state: Mutex::new(State { readers: Vec::new(), retired: VecDeque::new(), passed: OFFLINE }),
        })
    }

    /// Registers a reader, offline at first. It keeps the domain alive.
    #[must_use]
    pub fn reader(self: &Arc<Self>) -> Reader {
        let slot = Arc::new(Slot(OwnLine(AtomicU64::new(OFFLINE))));
        lock(&self.state).readers.push(Arc::clone(&slot));
        Reader::new(Arc::clone(self), slot)
    }

    /// Hands over what readers may still be looking at: it is dropped after a grace period.
    ///
    /// The item must be out of reach of new bursts already (unpublished). Runs no destructor, so it
    /// may be called under a lock that one of them takes.
    pub fn retire(&self, item: Box<dyn Send>) {
        let mut state = lock(&self.state);
        // Epochs only change under this lock, so the next one comes after the item was unpublished.
        let epoch = self.epoch.0.load(Ordering::Relaxed) + 1;
        state.retired.push_back(Retired { epoch, item });
    }

    /// Drops what no reader can see any more, and returns how many items that were. Never waits for a reader.
    ///
    /// Readers that are online have to pass a burst between two calls for anything to happen: the
    /// first call starts a grace period, a later one sees its end.
    pub fn reclaim(&self) -> usize {
        let mut state = lock(&self.state);
        let Some(newest) = state.retired.back() else { return 0 };
        let mut epoch = self.epoch.0.load(Ordering::Relaxed);
        if newest.epoch > epoch {
            epoch = self.advance();
        }
        let passed = state.pass(epoch);
        let free = state.retired.partition_point(|retired| retired.epoch <= passed);
        let free: Vec<Retired> = state.retired.drain(..free).collect();
        // Destructors may retire more, or take locks of their own.
        drop(state);
        let count = free.len();
        free.into_iter().for_each(|retired| drop(retired.item));
        count
    }

    /// Waits until every reader that is online now has finished the burst it may be in, then reclaims.
    ///
    /// For the control plane. Called inside a burst it would wait for itself, forever.
    pub fn synchronize(&self) {
        let target = {
            let _state = lock(&self.state);
            self.advance()
        };
        let mut round = 0;
        while lock(&self.state).pass(target) < target {
            wait(round);
            round += 1;
        }
        self.reclaim();
    }

    /// How many retired items wait to be dropped.
    #[must_use]
    pub fn pending(&self) -> usize {
        lock(&self.state).retired.len()
    }

    /// The epoch that a reader announces at the end of a burst.
    pub(crate) fn epoch(&self) -> u64 {
        self.epoch.0.load(Ordering::Acquire)
    }

    pub(crate) fn deregister(&self, slot: &Arc<Slot>) {
        lock(&self.state).readers.retain(|other| !Arc::ptr_eq(other, slot));
    }

    /// Starts a new epoch; the caller holds the lock.
    fn advance(&self) -> u64 {
        let next = self.epoch.0.load(Ordering::Relaxed) + 1;
        self.epoch.0.store(next, Ordering::Release);
        next
    }
}

impl Drop for Domain {
    fn drop(&mut self) {
        // Readers keep the domain alive, so there is none left.
        let retired = std::mem::take(&mut lock(&self.state).retired);
        drop(retired);
    }
}

impl fmt::Debug for Domain {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let state = lock(&self.state);
        f.debug_struct("Domain")
            .field("epoch", &self.epoch())
            .field("readers", &state.readers.len())
            .field("pending", &state.retired.len())
            .finish()
    }
}

impl State {
    /// Looks how far the readers are on their way to `epoch`, the current one or one before.
    fn pass(&mut self, epoch: u64) -> u64 {
        // Pairs with the fence of `Slot::go_online`.
        fence(Ordering::SeqCst);
        let reached = self.readers.iter().filter_map(|slot| slot.announced()).fold(epoch, u64::min);
        // A reader may go online with an epoch that it loaded long ago: it sees nothing of what was
        // retired up to here all the same.
        self.passed = self.passed.max(reached);
        self.passed
    }
}

impl Slot {
    /// Announces `epoch`; everything that was borrowed before has been given up.
    pub(crate) fn announce(&self, epoch: u64) {
        self.0.0.store(epoch, Ordering::Release);
    }

    pub(crate) fn go_online(&self, epoch: u64) {
        self.announce(epoch);
        fence(Ordering::SeqCst);
    }

    pub(crate) fn go_offline(&self) {
        self.announce(OFFLINE);
    }

    fn announced(&self) -> Option<u64> {
        match self.0.0.load(Ordering::Acquire) {
            OFFLINE => None,
            epoch => Some(epoch),
        }
    }
}

#[cfg(all(test, not(loom)))]
mod tests {
    use std::panic::{AssertUnwindSafe, catch_unwind};
    use std::sync::atomic::AtomicUsize;

    use super::*;
    use crate::Rcu;

    /// Counts drops.
    struct Item(Arc<AtomicUsize>);

    impl Drop for Item {
        fn drop(&mut self) {
            self.0.fetch_add(1, Ordering::Relaxed);
        }
    }

    fn dropped(count: &AtomicUsize) -> usize {
        count.load(Ordering::Relaxed)
    }

    #[test]
    fn memory_waits_for_every_online_reader_to_pass_a_burst() {
        let (domain, count) = (Domain::new(), Arc::default());
        let (mut one, mut two) = (domain.reader(), domain.reader());
        one.online();
        two.online();
        domain.retire(Box::new(Item(Arc::clone(&count))));
        assert_eq!((domain.reclaim(), domain.pending()), (0, 1));
        one.burst(|_| assert_eq!(domain.reclaim(), 0));
        assert_eq!(domain.reclaim(), 0);
        two.burst(|_| ());
        assert_eq!((domain.reclaim(), domain.pending(), dropped(&count)), (1, 0, 1));
    }

    #[test]
    fn a_reader_that_is_offline_or_gone_holds_up_nothing() {
        let (domain, count) = (Domain::new(), Arc::default());
        let idle = domain.reader();
        let mut asleep = domain.reader();
        let mut gone = domain.reader();
        asleep.online();
        gone.online();
        domain.retire(Box::new(Item(Arc::clone(&count))));
        asleep.offline();
        assert_eq!(domain.reclaim(), 0);
        drop(gone);
        assert_eq!((domain.reclaim(), dropped(&count), idle.is_online()), (1, 1, false));
    }

    #[test]
    fn a_burst_of_an_offline_reader_holds_up_memory_while_it_lasts() {
        let (domain, count) = (Domain::new(), Arc::default());
        let mut reader = domain.reader();
        reader.burst(|_| {
            domain.retire(Box::new(Item(Arc::clone(&count))));
            assert_eq!((domain.reclaim(), domain.reclaim()), (0, 0));
        });
        assert_eq!((reader.is_online(), domain.reclaim()), (false, 1));
    }

    #[test]
    fn a_burst_that_panics_ends_all_the_same() {
        let domain = Domain::new();
        let mut reader = domain.reader();
        reader.online();
        domain.retire(Box::new(()));
        domain.reclaim();
        let burst = catch_unwind(AssertUnwindSafe(|| reader.burst(|_| panic!("in a burst"))));
        assert!(burst.is_err());
        assert_eq!((reader.is_online(), domain.reclaim()), (true, 1));
    }

    #[test]
    fn a_destructor_may_retire_more() {
        let (domain, count) = (Domain::new(), Arc::default());
        let inner = Rcu::new(&domain, Item(Arc::clone(&count)));
        domain.retire(Box::new(inner));
        assert_eq!((domain.reclaim(), domain.pending(), dropped(&count)), (1, 1, 0));
        assert_eq!((domain.reclaim(), domain.pending(), dropped(&count)), (1, 0, 1));
    }

    #[test]
    fn synchronize_drops_what_was_retired_before_it() {
        let (domain, count) = (Domain::new(), Arc::default());
        let mut reader = domain.reader();
        reader.online();
        domain.retire(Box::new(Item(Arc::clone(&count))));
        let worker = std::thread::spawn(move || {
            while Arc::strong_count(reader.domain()) > 1 {
                reader.burst(|_| ())
            }
        });
        domain.synchronize();
        assert_eq!((domain.pending(), dropped(&count)), (0, 1));
        drop(domain);
        worker.join().unwrap();
    }

    #[test]
    fn a_domain_drops_what_is_still_retired_with_it() {
        let (domain, count) = (Domain::new(), Arc::default());
        let outer = Rcu::new(&domain, Rcu::new(&domain, Item(Arc::clone(&count))));
        outer.publish(Rcu::new(&domain, Item(Arc::clone(&count))));
        let reader = domain.reader();
        drop(outer);
        drop(domain);
        assert_eq!(dropped(&count), 0);
        drop(reader);
        assert_eq!(dropped(&count), 2);
    }
}

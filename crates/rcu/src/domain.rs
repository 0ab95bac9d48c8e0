//! The domain: who reads, what waits to be freed, and when it may be.

use std::collections::VecDeque;
use std::fmt;
use std::sync::{Arc, Weak};

use crate::reader::{Guard, Reader};
use crate::sync::{AtomicU64, Mutex, Ordering, fence, lock, wait};

/// What an offline reader's slot says. Epochs start above it.
const OFFLINE: u64 = 0;

/// A set of readers and the memory they may be looking at.
///
/// Everything published in a domain ([`Rcu`](crate::Rcu), [`Slots`](crate::Slots)) is read under a
/// [`Guard`] of one of its readers, and freed after a *grace period*: once every reader that was
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

/// What a shared structure keeps of its domain: enough to retire into it and to check guards.
///
/// It does not keep the domain alive, so that a retired structure that holds one (a table inside a
/// table) is no cycle.
#[derive(Clone)]
pub struct DomainRef {
    domain: Weak<Domain>,
    /// Its own copy of the address spares the packet path what `Weak::as_ptr` has to ask first.
    address: usize,
}

impl DomainRef {
    /// A reference to `domain`.
    #[must_use]
    pub fn new(domain: &Arc<Domain>) -> Self {
        Self { domain: Arc::downgrade(domain), address: Arc::as_ptr(domain).addr() }
    }

    /// Makes sure that `guard` protects what is published in this domain.
    ///
    /// # Panics
    /// If the guard belongs to a reader of another domain: it would protect nothing.
    #[inline]
    #[track_caller]
    pub fn check(&self, guard: &Guard<'_>) {
        // The weak reference keeps the address from being used again.
        if self.address != guard.domain().addr() {
            wrong_domain();
        }
    }

    /// [`Domain::retire`]. If the domain is gone, so are its readers: the item is dropped at once.
    pub fn retire(&self, item: Box<dyn Send>) {
        match self.domain.upgrade() {
            Some(domain) => domain.retire(item),
            None => {
                // The failed upgrade read the count of strong references without acquiring what
                // the last reader did before it let go of its own.
                fence(Ordering::Acquire);
                drop(item);
            }
        }
    }
}

impl fmt::Debug for DomainRef {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("DomainRef").field(&self.domain.as_ptr()).finish()
    }
}

#[cold]
#[track_caller]
fn wrong_domain() -> ! {
    panic!("the guard belongs to a reader of another domain");
}

//! Readers and the bursts in which they may borrow.

use std::cell::Cell;
use std::fmt;
use std::marker::PhantomData;
use std::sync::Arc;

use crate::domain::{Domain, Slot};

/// A worker's way into a [`Domain`]. `Send`, so that it can be made before its thread; not `Sync`.
///
/// Online, each burst costs one load of the domain's epoch and one store to the reader's own cache
/// line. An online reader that makes no bursts holds up all memory retired in its domain: go
/// [`offline`](Self::offline) before sleeping or blocking.
pub struct Reader {
    domain: Arc<Domain>,
    slot: Arc<Slot>,
    online: bool,
    _not_sync: Cell<()>,
}

impl Reader {
    pub(crate) fn new(domain: Arc<Domain>, slot: Arc<Slot>) -> Self {
        Self { domain, slot, online: false, _not_sync: Cell::new(()) }
    }

    /// Runs `f`, in which published values may be borrowed through the guard.
    ///
    /// Nothing borrowed through it can leave `f`, and bursts of one reader cannot nest. A reader that
    /// is offline goes online for this burst, which costs a fence.
    #[inline]
    pub fn burst<R>(&mut self, f: impl for<'g> FnOnce(&Guard<'g>) -> R) -> R {
        let stay_online = self.online;
        self.online();
        let burst = Burst { reader: self, stay_online };
        f(&Guard { domain: Arc::as_ptr(&burst.reader.domain), _brand: PhantomData })
    }

    /// Joins the readers that memory waits for. Does nothing if online already.
    #[inline]
    pub fn online(&mut self) {
        if !self.online {
            self.slot.go_online(self.domain.epoch());
            self.online = true;
        }
    }

    /// Leaves the readers that memory waits for, until [`online`](Self::online) or the next burst.
    #[inline]
    pub fn offline(&mut self) {
        self.slot.go_offline();
        self.online = false;
    }

    /// Whether memory waits for this reader between its bursts.
    #[must_use]
    pub fn is_online(&self) -> bool {
        self.online
    }

    /// The domain it reads.
    #[must_use]
    pub fn domain(&self) -> &Arc<Domain> {
        &self.domain
    }
}

impl Drop for Reader {
    fn drop(&mut self) {
        self.offline();
        self.domain.deregister(&self.slot);
    }
}

impl fmt::Debug for Reader {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Reader").field("online", &self.online).finish_non_exhaustive()
    }
}

/// Ends the burst, also when it panics.
struct Burst<'r> {
    reader: &'r mut Reader,
    stay_online: bool,
}

impl Drop for Burst<'_> {
    #[inline]
    fn drop(&mut self) {
        if self.stay_online {
            self.reader.slot.announce(self.reader.domain.epoch());
        } else {
            self.reader.offline();
        }
    }
}

/// The proof that a burst is under way: what is borrowed for `'g` stays until it ends.
///
/// `'g` belongs to one burst alone (it is invariant), and the guard to one thread.
pub struct Guard<'g> {
    /// Only compared; as a pointer it keeps the guard to its thread.
    domain: *const Domain,
    _brand: PhantomData<fn(&'g ()) -> &'g ()>,
}

impl Guard<'_> {
    /// The address of the domain that this guard is good for.
    #[inline]
    pub(crate) fn domain(&self) -> *const Domain {
        self.domain
    }
}

impl fmt::Debug for Guard<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Guard").finish_non_exhaustive()
    }
}

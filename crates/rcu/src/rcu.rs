//! One published value.

use std::fmt;

use crate::cell::Cell;
use crate::domain::Domain;
use crate::domain_ref::DomainRef;
use crate::reader::Guard;
use crate::reference::Ref;
use crate::sync::{Arc, Mutex, lock};

/// A value that readers borrow and writers replace as a whole.
pub struct Rcu<T: Send + Sync + 'static> {
    cell: Cell<T>,
    writers: Mutex<()>,
    domain: DomainRef,
}

impl<T: Send + Sync + 'static> Rcu<T> {
    /// Publishes a first value.
    #[must_use]
    pub fn new(domain: &std::sync::Arc<Domain>, value: T) -> Self {
        Self { cell: Cell::new(Some(Arc::new(value))), writers: Mutex::new(()), domain: DomainRef::new(domain) }
    }

    /// Borrows the current value for the rest of the burst: one load, nothing written.
    ///
    /// # Panics
    /// If the guard belongs to a reader of another domain.
    #[inline]
    #[track_caller]
    pub fn load<'g>(&self, guard: &Guard<'g>) -> &'g T {
        self.domain.check(guard);
        // SAFETY: only drop leaves the cell empty, and what it held when the burst loaded it lives until the burst ends.
        unsafe { self.cell.load().unwrap_unchecked().as_ref() }
    }

    /// As [`load`](Self::load), as a reference that can be held beyond the burst.
    ///
    /// # Panics
    /// If the guard belongs to a reader of another domain.
    #[inline]
    #[track_caller]
    pub fn load_ref<'g>(&self, guard: &Guard<'g>) -> Ref<'g, T> {
        self.domain.check(guard);
        // SAFETY: as in `load`, and the value lives in an `Arc`.
        unsafe { Ref::borrowed(self.cell.load().unwrap_unchecked()) }
    }

    /// Replaces the value with one pointer store; the old one is retired.
    pub fn publish(&self, value: T) {
        self.publish_arc(Arc::new(value));
    }

    /// As [`publish`](Self::publish), for a value that is shared already.
    pub fn publish_arc(&self, value: Arc<T>) {
        let old = {
            let _writers = lock(&self.writers);
            // SAFETY: the lock is held; the old value is retired below.
            unsafe { self.cell.swap(Some(value)) }
        };
        self.retire(old);
    }

    /// The current value, counted. For the control plane: it takes the writers' lock.
    #[must_use]
    pub fn snapshot(&self) -> Arc<T> {
        let _writers = lock(&self.writers);
        // SAFETY: the lock is held, and only drop leaves the cell empty.
        unsafe { self.cell.share().unwrap_unchecked() }
    }

    /// Replaces the value by one made from it; no other writer comes between.
    ///
    /// `f` must not write to this same `Rcu`: it runs under the writers' lock. If it panics, the value stays.
    pub fn update(&self, f: impl FnOnce(&T) -> T) {
        let old = {
            let _writers = lock(&self.writers);
            // SAFETY: the lock is held, so the cell's own reference stays; the old value is retired below.
            unsafe {
                let value = f(self.cell.load().unwrap_unchecked().as_ref());
                self.cell.swap(Some(Arc::new(value)))
            }
        };
        self.retire(old);
    }

    fn retire(&self, old: Option<Arc<T>>) {
        if let Some(old) = old {
            self.domain.retire(Box::new(old));
        }
    }
}

impl<T: Send + Sync + 'static> Drop for Rcu<T> {
    fn drop(&mut self) {
        // A burst can outlive the cell it borrowed from, so the last value is retired like any other.
        // SAFETY: nobody else is left to write.
        let last = unsafe { self.cell.swap(None) };
        self.retire(last);
    }
}

impl<T: Send + Sync + fmt::Debug> fmt::Debug for Rcu<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Rcu").field(&*self.snapshot()).finish()
    }
}

#[cfg(all(test, not(loom)))]
mod tests {
    use std::panic::{AssertUnwindSafe, catch_unwind};

    use super::*;

    #[test]
    fn a_burst_keeps_the_value_it_borrowed_while_another_is_published() {
        let domain = Domain::new();
        let mut reader = domain.reader();
        let rcu = Rcu::new(&domain, 1u64);
        reader.burst(|guard| {
            let before = rcu.load(guard);
            rcu.publish(2);
            domain.reclaim();
            assert_eq!((*before, *rcu.load(guard)), (1, 2));
        });
        assert_eq!(domain.reclaim(), 1);
    }

    #[test]
    fn a_burst_keeps_the_value_of_a_cell_that_is_dropped_in_it() {
        let domain = Domain::new();
        let rcu = Rcu::new(&domain, 1u64);
        domain.reader().burst(|guard| {
            let value = rcu.load(guard);
            drop(rcu);
            assert_eq!((domain.reclaim(), *value), (0, 1));
        });
        assert_eq!(domain.reclaim(), 1);
    }

    #[test]
    fn a_snapshot_stays_as_it_was() {
        let domain = Domain::new();
        let rcu = Rcu::new(&domain, 1u64);
        let before = rcu.snapshot();
        rcu.publish_arc(Arc::new(2));
        domain.reclaim();
        assert_eq!((*before, *rcu.snapshot()), (1, 2));
        assert_eq!(Arc::strong_count(&before), 1);
    }

    #[test]
    fn an_update_that_panics_leaves_the_value() {
        let domain = Domain::new();
        let rcu = Rcu::new(&domain, 1u64);
        assert!(catch_unwind(AssertUnwindSafe(|| rcu.update(|_| panic!("in an update")))).is_err());
        rcu.update(|value| value + 1);
        assert_eq!(*rcu.snapshot(), 2);
    }
}

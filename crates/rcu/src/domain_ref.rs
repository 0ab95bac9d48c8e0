//! The domain as seen from what is published in it.

use std::fmt;
use std::sync::{Arc, Weak};

use crate::domain::Domain;
use crate::reader::Guard;
use crate::sync::{Ordering, fence};

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

    /// As [`Domain::retire`](crate::Domain::retire). If the domain is gone, so are its readers: the item is dropped at once.
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

#[cfg(all(test, not(loom)))]
mod tests {
    use super::*;
    use crate::Rcu;

    #[test]
    fn what_outlives_its_domain_drops_at_once() {
        let domain = Domain::new();
        let (first, second) = (Arc::new(1u64), Arc::new(2u64));
        let rcu = Rcu::new(&domain, Arc::clone(&first));
        drop(domain);
        rcu.publish(Arc::clone(&second));
        assert_eq!((Arc::strong_count(&first), Arc::strong_count(&second)), (1, 2));
        drop(rcu);
        assert_eq!(Arc::strong_count(&second), 1);
    }

    #[test]
    #[should_panic(expected = "another domain")]
    fn a_guard_of_another_domain_is_refused() {
        let rcu = Rcu::new(&Domain::new(), 1u64);
        Domain::new().reader().burst(|guard| assert_eq!(*rcu.load(guard), 1));
    }
}

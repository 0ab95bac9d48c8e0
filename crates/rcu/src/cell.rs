//! The place a reader looks at: one atomic pointer to a value that lives in an [`Arc`].
//!
//! Invariants:
//! - the pointer is null or came from `Arc::into_raw`, and the cell owns that one strong reference;
//! - the reference taken out by a swap lives on for a grace period, so that a pointer loaded under a
//!   guard stays good for the rest of the burst;
//! - writers of one cell take turns (the owner's lock), so that none takes the value away while another copies it.

use std::marker::PhantomData;
use std::ptr::{self, NonNull};

use crate::sync::{Arc, AtomicPtr, Ordering};

pub(crate) struct Cell<T> {
    value: AtomicPtr<T>,
    _owns: PhantomData<Arc<T>>,
}

impl<T> Cell<T> {
    pub(crate) fn new(value: Option<Arc<T>>) -> Self {
        Self { value: AtomicPtr::new(into_raw(value)), _owns: PhantomData }
    }

    /// Where the value is; good to look at under a guard of the cell's domain or the writers' lock.
    #[inline]
    pub(crate) fn load(&self) -> Option<NonNull<T>> {
        NonNull::new(self.value.load(Ordering::Acquire))
    }

    /// Another reference to the value.
    ///
    /// # Safety
    /// The caller holds the writers' lock.
    pub(crate) unsafe fn share(&self) -> Option<Arc<T>> {
        let value = self.load()?;
        // SAFETY: the cell owns a reference, and no writer can take it out meanwhile.
        Some(unsafe { share(value) })
    }

    /// Publishes `value` and takes out the one before.
    ///
    /// # Safety
    /// The caller holds the writers' lock, and lets what it is given live for a grace period.
    pub(crate) unsafe fn swap(&self, value: Option<Arc<T>>) -> Option<Arc<T>> {
        // The lock has made the old value visible to this writer; readers acquire the new one.
        let old = self.value.swap(into_raw(value), Ordering::Release);
        // SAFETY: not null, so it came from `into_raw`, and the cell's reference is now ours.
        (!old.is_null()).then(|| unsafe { Arc::from_raw(old) })
    }
}

/// Another strong reference to a value in an `Arc`.
///
/// # Safety
/// `value` came from `Arc::into_raw` and a strong reference lives during the call.
pub(crate) unsafe fn share<T>(value: NonNull<T>) -> Arc<T> {
    // SAFETY: the caller's promise; the reference counted first is the one taken over then.
    unsafe {
        Arc::increment_strong_count(value.as_ptr());
        Arc::from_raw(value.as_ptr())
    }
}

fn into_raw<T>(value: Option<Arc<T>>) -> *mut T {
    value.map_or(ptr::null_mut(), |value| Arc::into_raw(value).cast_mut())
}

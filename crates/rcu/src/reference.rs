//! A reference to a published value that is borrowed for a burst or held beyond it.
//!
//! ```text
//!   63                                  1   0
//!  ┌──────────────────────────────────────┬───┐
//!  │ address of the value, inside its Arc │ H │   H = 0: borrowed, dropping it does nothing
//!  └──────────────────────────────────────┴───┘   H = 1: owns one strong reference
//! ```
//!
//! Invariants: the address is that of a live value in an [`Arc`], live at least for `'g`; with the tag
//! set, the `Ref` owns one strong reference.

use std::fmt;
use std::marker::PhantomData;
use std::ops::Deref;
use std::ptr::NonNull;

use crate::cell::share;
use crate::sync::Arc;

const HELD: usize = 1;

/// One word: a value borrowed for `'g`, or held by a strong reference of its own.
///
/// The lifetime tells which can be kept: a `Ref<'static, T>` is always held. It comes from
/// [`hold`](Self::hold), so that every place where a reference is counted shows.
///
/// The tag needs the low bit of the address: a type of alignment 1 does not compile.
///
/// ```compile_fail,E0080
/// rcu::Ref::from(std::sync::Arc::new(1u8));
/// ```
pub struct Ref<'g, T> {
    tagged: NonNull<T>,
    _borrows: PhantomData<&'g T>,
    _owns: PhantomData<Arc<T>>,
}

impl<'g, T> Ref<'g, T> {
    /// Borrows without counting.
    ///
    /// # Safety
    /// `value` came from `Arc::into_raw`, and a strong reference to it lives for `'g`.
    #[inline]
    pub(crate) unsafe fn borrowed(value: NonNull<T>) -> Self {
        const { assert!(align_of::<T>() > HELD, "the tag needs the low bit of the address") };
        Self { tagged: value, _borrows: PhantomData, _owns: PhantomData }
    }

    /// Takes a strong reference, so that the result outlives the burst: one atomic increment.
    #[must_use]
    pub fn hold(&self) -> Ref<'static, T>
    where
        T: 'static,
    {
        Ref::from(self.to_arc())
    }

    /// Takes a strong reference, as an `Arc`.
    #[must_use]
    pub fn to_arc(&self) -> Arc<T> {
        // SAFETY: the value lives in an `Arc` and is alive for `'g`.
        unsafe { share(self.value()) }
    }

    /// Whether it owns a strong reference.
    #[inline]
    #[must_use]
    pub fn is_held(&self) -> bool {
        self.tagged.addr().get() & HELD != 0
    }

    /// The same value, borrowed from this reference: costs nothing, whichever this is.
    #[inline]
    #[must_use]
    pub fn borrow<'a>(&'a self) -> Ref<'a, T> {
        // SAFETY: this reference keeps the value for `'a`.
        unsafe { Ref::borrowed(self.value()) }
    }

    /// Whether both refer to the same value in memory.
    #[inline]
    #[must_use]
    pub fn ptr_eq(&self, other: &Ref<'_, T>) -> bool {
        self.value() == other.value()
    }

    #[inline]
    fn value(&self) -> NonNull<T> {
        let untagged = self.tagged.as_ptr().map_addr(|addr| addr & !HELD);
        // SAFETY: the address of a value whose alignment is 2 or more, so not 0 without its low bit.
        unsafe { NonNull::new_unchecked(untagged) }
    }
}

impl<T: 'static> From<Arc<T>> for Ref<'static, T> {
    /// Held: the reference that the `Arc` had.
    fn from(value: Arc<T>) -> Self {
        const { assert!(align_of::<T>() > HELD, "the tag needs the low bit of the address") };
        // SAFETY: an `Arc` never points to null.
        let value = unsafe { NonNull::new_unchecked(Arc::into_raw(value).cast_mut()) };
        Self { tagged: value.map_addr(|addr| addr | HELD), _borrows: PhantomData, _owns: PhantomData }
    }
}

impl<T> Deref for Ref<'_, T> {
    type Target = T;

    #[inline]
    fn deref(&self) -> &T {
        // SAFETY: alive for `'g`, which outlives this borrow.
        unsafe { self.value().as_ref() }
    }
}

impl<T> Clone for Ref<'_, T> {
    /// As it is: a borrowed one stays borrowed, a held one takes another strong reference.
    #[inline]
    fn clone(&self) -> Self {
        if self.is_held() {
            std::mem::forget(self.to_arc());
        }
        Self { tagged: self.tagged, _borrows: PhantomData, _owns: PhantomData }
    }
}

impl<T> Drop for Ref<'_, T> {
    #[inline]
    fn drop(&mut self) {
        if self.is_held() {
            // SAFETY: held, so it owns a strong reference, which nobody gives back but this.
            drop(unsafe { Arc::from_raw(self.value().as_ptr()) });
        }
    }
}

// SAFETY: it is a `&T` or an `Arc<T>`, and both may be sent and shared under these bounds.
unsafe impl<T: Send + Sync> Send for Ref<'_, T> {}
// SAFETY: as above.
unsafe impl<T: Send + Sync> Sync for Ref<'_, T> {}

impl<T: fmt::Debug> fmt::Debug for Ref<'_, T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        (**self).fmt(f)
    }
}

#[cfg(all(test, not(loom)))]
mod tests {
    use super::*;
    use crate::{Domain, Rcu};

    #[test]
    fn a_reference_is_one_word_and_so_is_an_optional_one() {
        assert_eq!(size_of::<Ref<'_, u64>>(), size_of::<usize>());
        assert_eq!(size_of::<Option<Ref<'_, u64>>>(), size_of::<usize>());
    }

    #[test]
    fn borrowing_does_not_count_and_holding_does() {
        let domain = Domain::new();
        let rcu = Rcu::new(&domain, 1u64);
        let counted = rcu.snapshot();
        let held = domain.reader().burst(|guard| {
            let borrowed = rcu.load_ref(guard);
            let again = borrowed.clone();
            assert_eq!((Arc::strong_count(&counted), again.is_held()), (2, false));
            let held = borrowed.hold();
            assert_eq!((Arc::strong_count(&counted), *held), (3, 1));
            assert!(held.is_held() && held.ptr_eq(&borrowed) && !borrowed.is_held());
            held
        });
        drop(rcu);
        assert_eq!((domain.reclaim(), Arc::strong_count(&counted)), (1, 2));
        assert_eq!(std::thread::spawn(move || *held).join().unwrap(), 1);
        assert_eq!(Arc::strong_count(&counted), 1);
    }

    #[test]
    fn what_is_borrowed_from_a_held_reference_does_not_count() {
        let counted = Arc::new(1u64);
        let held = Ref::from(Arc::clone(&counted));
        let borrowed = held.borrow();
        assert_eq!((*borrowed, borrowed.is_held(), Arc::strong_count(&counted)), (1, false, 2));
        let second = borrowed.hold();
        drop(borrowed);
        drop(held);
        assert_eq!((*second, Arc::strong_count(&counted)), (1, 2));
    }

    #[test]
    fn a_copy_of_a_held_reference_is_held() {
        let counted = Arc::new(1u64);
        let held = Ref::from(Arc::clone(&counted));
        let copy = held.clone();
        drop(held);
        assert_eq!((*copy, copy.is_held(), Arc::strong_count(&counted)), (1, true, 2));
        assert!(Arc::ptr_eq(&copy.to_arc(), &counted));
    }

    #[test]
    fn equal_values_in_two_places_are_not_the_same() {
        let (one, two) = (Ref::from(Arc::new(1u64)), Ref::from(Arc::new(1u64)));
        assert!(!one.ptr_eq(&two));
    }
}

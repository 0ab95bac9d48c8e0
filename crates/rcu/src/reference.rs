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
use std::num::NonZeroUsize;
use std::ops::Deref;
use std::ptr::NonNull;

use crate::cell::share;
use crate::sync::Arc;

const HELD: usize = 1;

/// One word: a value borrowed for `'g`, or held by a strong reference of its own.
///
/// The lifetime tells which can be kept: only [`hold`](Self::hold) makes a `Ref<'static, T>`, and it is
/// the only place where a reference is counted. Published values need an alignment of 2 or more; less
/// does not compile.
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
        // A value's address is never 0, so this does not change what it means: it only keeps the type.
        self.tagged.map_addr(|addr| NonZeroUsize::new(addr.get() & !HELD).unwrap_or(addr))
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

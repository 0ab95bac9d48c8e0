//! One place where the crate takes its primitives from: std, or loom's models of them under `--cfg loom`.
//!
//! [`Arc`] here is the one that published values live in. What no reader's safety hangs on (the
//! domain's own `Arc` and `Weak`, the `OnceLock` of a chunk) comes from std in both builds.

#[cfg(loom)]
pub(crate) use loom::sync::{
    Arc, Mutex, MutexGuard,
    atomic::{AtomicPtr, AtomicU64, Ordering, fence},
};
#[cfg(not(loom))]
pub(crate) use std::sync::{
    Arc, Mutex, MutexGuard,
    atomic::{AtomicPtr, AtomicU64, Ordering, fence},
};

use std::sync::PoisonError;

/// Locks, whatever happened to an earlier holder: no lock of this crate is held across code that
/// could leave its data half changed.
pub(crate) fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Gives way to other threads; `round` counts how often the caller has waited already.
#[cfg(not(loom))]
pub(crate) fn wait(round: u32) {
    const YIELDS: u32 = 32;
    const NAP: std::time::Duration = std::time::Duration::from_micros(50);
    if round < YIELDS {
        std::thread::yield_now();
    } else {
        std::thread::sleep(NAP);
    }
}

#[cfg(loom)]
pub(crate) fn wait(_round: u32) {
    loom::thread::yield_now();
}

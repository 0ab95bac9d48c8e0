//! Where the crate takes its atomics from: std, or loom's models of them under `--cfg loom`.
//!
//! The writers' lock is std's in both builds: readers do not take it.

#[cfg(loom)]
pub(crate) use loom::sync::atomic::{AtomicU32, AtomicU64, AtomicUsize, Ordering};
#[cfg(not(loom))]
pub(crate) use std::sync::atomic::{AtomicU32, AtomicU64, AtomicUsize, Ordering};

//! Which state of the tables readers see: one number for all of them.

use std::sync::atomic::{AtomicU64, Ordering};

/// The number of the state that was published last. The writer moves it on before and behind each commit, so that it is odd while things change.
///
/// # Why what a worker remembers by it is safe
/// A worker takes the number at the start of a burst and remembers by it what lookups of that burst found. An id that a commit takes out of use was found under
/// a number before that commit, and is given out again after a grace period that begins behind the first of its two steps. So a worker that still sees
/// the number from before began its burst before that grace period ended, and whose id it is has not changed.
#[derive(Debug, Default)]
pub(crate) struct Generation(AtomicU64);

impl Generation {
    /// The state as of now; none while a commit is under way.
    #[inline]
    pub(crate) fn now(&self) -> Option<u64> {
        Some(self.0.load(Ordering::Acquire)).filter(|number| number % 2 == 0)
    }

    /// A commit begins, or is over. For the one writer.
    pub(crate) fn step(&self) {
        self.0.store(self.0.load(Ordering::Relaxed) + 1, Ordering::Release);
    }
}

//! Threads that end before the one that started them.

use std::panic::resume_unwind;
use std::thread::ScopedJoinHandle;

/// What a thread returned. Its panic goes on here.
pub fn join<T>(thread: ScopedJoinHandle<'_, T>) -> T {
    thread.join().unwrap_or_else(|panic| resume_unwind(panic))
}

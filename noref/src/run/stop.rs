//! How workers are told to end.

use std::io::{self, Write};
use std::os::fd::{AsFd, BorrowedFd};
use std::os::unix::net::UnixStream;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

/// The end that tells. Its descriptors can be read when a worker ended of itself.
#[derive(Default)]
pub struct Stopper {
    told: Arc<AtomicBool>,
    bells: Vec<UnixStream>,
}

impl Stopper {
    /// What one more worker looks at.
    ///
    /// # Errors
    /// When there are no descriptors left.
    pub fn watch(&mut self) -> io::Result<Stop> {
        let (here, there) = UnixStream::pair()?;
        self.bells.push(here);
        Ok(Stop { told: Arc::clone(&self.told), bell: there })
    }

    /// One descriptor a worker.
    pub fn descriptors(&self) -> impl Iterator<Item = BorrowedFd<'_>> {
        self.bells.iter().map(AsFd::as_fd)
    }

    /// Tells all workers, and wakes those that sleep.
    pub fn stop(&mut self) {
        self.told.store(true, Ordering::Relaxed);
        for bell in &mut self.bells {
            // A worker that is gone needs no waking.
            let _ = bell.write_all(&[0]);
        }
    }
}

/// The end that is told. Looking at it reads memory that is written to once.
pub struct Stop {
    told: Arc<AtomicBool>,
    bell: UnixStream,
}

impl Stop {
    pub fn is_told(&self) -> bool {
        self.told.load(Ordering::Relaxed)
    }

    /// Can be read once the worker is told.
    pub fn descriptor(&self) -> BorrowedFd<'_> {
        self.bell.as_fd()
    }
}

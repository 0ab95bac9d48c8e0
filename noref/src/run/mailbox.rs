//! How a worker is asked for something without being stopped: it looks at one flag a round, and takes what is asked for between two bursts.

use std::io;
use std::os::fd::{AsFd, BorrowedFd};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::Sender;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use super::bell::{Bell, Ear, bell};
use super::queue::Queue;
use super::slow::Ways;
use super::snapshot::Snapshot;
use crate::trace::Wanted;

/// What a worker is asked for.
pub enum Request {
    /// What it counted.
    Snapshot(Sender<Snapshot>),
    /// To take part in a trace.
    Trace(Wanted),
    /// To work on these too.
    AddQueues(Vec<Queue>),
    /// To let the queues of the port in this place go: what they have is forwarded, what was given to them sent. Told when it is done.
    RemoveQueues(usize, Sender<()>),
    /// To leave packets to the kernel by these ways from now on.
    Ways(Ways),
    /// To end.
    Stop,
}

#[derive(Default)]
struct Shared {
    /// There are requests. Written to when there are new ones only, so that looking at it costs nothing.
    any: AtomicBool,
    requests: Mutex<Vec<Request>>,
}

impl Shared {
    fn requests(&self) -> MutexGuard<'_, Vec<Request>> {
        self.requests.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// The end that asks.
pub struct Mailbox {
    shared: Arc<Shared>,
    bell: Bell,
}

/// The worker's end.
pub struct Inbox {
    shared: Arc<Shared>,
    ear: Ear,
}

/// Both ends.
///
/// # Errors
/// When there are no descriptors left.
pub fn mailbox() -> io::Result<(Mailbox, Inbox)> {
    let (bell, ear) = bell()?;
    let shared = Arc::<Shared>::default();
    Ok((Mailbox { shared: Arc::clone(&shared), bell }, Inbox { shared, ear }))
}

impl Mailbox {
    /// Asks, and wakes the worker if it sleeps. What is asked of a worker that has ended is never answered.
    pub fn send(&self, request: Request) {
        self.shared.requests().push(request);
        // Rung before the flag is set: a worker that saw the flag first would take the request and leave the ring behind, with which it could not sleep until
        // the next request.
        self.bell.ring();
        self.shared.any.store(true, Ordering::Release);
    }
}

impl Inbox {
    /// True when something is asked for.
    #[inline]
    pub fn has_any(&self) -> bool {
        self.shared.any.load(Ordering::Relaxed)
    }

    /// What is asked for, oldest first.
    pub fn take(&mut self) -> Vec<Request> {
        // The flag first: what is asked for from here on sets it again.
        self.shared.any.swap(false, Ordering::Acquire);
        self.ear.hear();
        std::mem::take(&mut *self.shared.requests())
    }

    /// Can be read when something is asked for.
    pub fn descriptor(&self) -> BorrowedFd<'_> {
        self.ear.as_fd()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use port::live::wait_readable;
    use std::time::Duration;

    #[test]
    fn what_is_asked_for_wakes_the_worker_once_and_comes_in_order() {
        let (mailbox, mut inbox) = mailbox().unwrap();
        assert!(!inbox.has_any());
        // More often than a socket has room for.
        for place in 0..5000 {
            mailbox.send(Request::RemoveQueues(place, std::sync::mpsc::channel().0));
        }
        assert!(inbox.has_any() && wait_readable(inbox.descriptor(), Duration::ZERO).unwrap());
        let places = inbox.take().into_iter().map(|request| match request {
            Request::RemoveQueues(place, _) => place,
            _ => unreachable!(),
        });
        assert!(places.eq(0..5000));
        assert!(!inbox.has_any() && !wait_readable(inbox.descriptor(), Duration::ZERO).unwrap());
    }
}

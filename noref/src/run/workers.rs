//! The workers of a running router, as the rest of the program sees them: each is a thread with a mailbox.

use std::io;
use std::sync::mpsc::{self, Receiver};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

use plane::Tables;

use super::mailbox::{Mailbox, Request, mailbox};
use super::queue::Queue;
use super::slow::Ways;
use super::snapshot::Snapshot;
use super::work::{Share, Work};
use crate::failure::Failure;
use crate::trace::Wanted;

/// How long a worker may take to look into its mailbox before what it would have told is left out.
const PATIENCE: Duration = Duration::from_secs(2);

/// All workers.
pub struct Workers {
    handles: Vec<Handle>,
}

struct Handle {
    mailbox: Mailbox,
    thread: Mutex<Option<JoinHandle<Snapshot>>>,
}

impl Workers {
    /// Starts a worker for each share, on the core of its number.
    ///
    /// # Errors
    /// When there are no threads or descriptors left.
    pub fn start(tables: &Arc<Tables>, shares: Vec<Share>, busy_poll: bool) -> Result<Workers, Failure> {
        let start = |(number, share): (usize, Share)| {
            let (mailbox, inbox) = mailbox().map_err(Failure::unusable)?;
            let work = Work::new(number, Arc::clone(tables), share, inbox, busy_poll);
            let thread = thread::Builder::new().name(format!("noref-{number}")).spawn(|| work.run()).map_err(Failure::unusable)?;
            Ok(Handle { mailbox, thread: Mutex::new(Some(thread)) })
        };
        Ok(Workers { handles: shares.into_iter().enumerate().map(start).collect::<Result<_, Failure>>()? })
    }

    /// How many there are.
    pub fn len(&self) -> usize {
        self.handles.len()
    }

    /// What each counted so far, between two bursts; those that do not answer in time are left out.
    pub fn snapshots(&self) -> Vec<Snapshot> {
        let (to, from) = mpsc::channel();
        for handle in &self.handles {
            handle.mailbox.send(Request::Snapshot(to.clone()));
        }
        drop(to);
        let mut snapshots: Vec<_> = answers(&from, self.handles.len()).collect();
        snapshots.sort_by_key(|snapshot| snapshot.worker);
        snapshots
    }

    /// Has all workers take part in a trace.
    pub fn trace(&self, wanted: &Wanted) {
        for handle in &self.handles {
            handle.mailbox.send(Request::Trace(wanted.clone()));
        }
    }

    /// Gives each worker its share of new queues.
    pub fn add_queues(&self, shares: Vec<Vec<Queue>>) {
        for (handle, share) in self.handles.iter().zip(shares).filter(|(_, share)| !share.is_empty()) {
            handle.mailbox.send(Request::AddQueues(share));
        }
    }

    /// Has all workers let the queues of a port go, and waits for that. False when one did not in time.
    pub fn remove_queues(&self, place: usize) -> bool {
        let (to, from) = mpsc::channel();
        for handle in &self.handles {
            handle.mailbox.send(Request::RemoveQueues(place, to.clone()));
        }
        drop(to);
        answers(&from, self.handles.len()).count() == self.handles.len()
    }

    /// Gives each worker ways to the kernel of its own, in place of those it has.
    ///
    /// # Errors
    /// When they cannot be made.
    pub fn set_ways(&self, make: impl Fn() -> io::Result<Ways>) -> io::Result<()> {
        for handle in &self.handles {
            handle.mailbox.send(Request::Ways(make()?));
        }
        Ok(())
    }

    /// True when a worker ended of itself, by a fault.
    pub fn has_one_ended(&self) -> bool {
        let ended = |thread: &Option<JoinHandle<Snapshot>>| thread.as_ref().is_some_and(JoinHandle::is_finished);
        self.handles.iter().any(|handle| ended(&handle.thread.lock().unwrap_or_else(PoisonError::into_inner)))
    }

    /// Tells all to end, and waits until they have; what each counted. None the second time.
    ///
    /// # Errors
    /// When one ended by a fault.
    pub fn stop(&self) -> Result<Vec<Snapshot>, Failure> {
        for handle in &self.handles {
            handle.mailbox.send(Request::Stop);
        }
        let threads = self.handles.iter().filter_map(|handle| handle.thread.lock().unwrap_or_else(PoisonError::into_inner).take());
        let fault = |_| Failure::incomplete("a worker ended by a fault of noref; the message above says where");
        threads.map(|thread| thread.join().map_err(fault)).collect()
    }
}

/// Up to `count` answers, while they come in time.
fn answers<T>(from: &Receiver<T>, count: usize) -> impl Iterator<Item = T> {
    let end = Instant::now() + PATIENCE;
    (0..count).map_while(move |_| from.recv_timeout(end.saturating_duration_since(Instant::now())).ok())
}

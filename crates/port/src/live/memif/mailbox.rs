//! What a port and its connection say to each other: the one belongs to a worker, the other to a thread that may wait.
//!
//! The worker looks at one flag a round. Everything else happens when a peer comes or goes.

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

use super::ring::{Broken, Receiver, Sender};
use super::sys::Event;

/// The rings of one queue, connected.
#[derive(Debug)]
pub(super) struct Lines {
    /// None when the peer has fewer.
    pub(super) receiver: Option<Receiver>,
    pub(super) sender: Sender,
    /// What the peer rings for the receiver.
    pub(super) rung: Option<Event>,
}

/// Between one port and the connection.
#[derive(Debug)]
pub(super) struct Mailbox {
    /// The port is to look at `lines`.
    changed: AtomicBool,
    lines: Mutex<Option<Lines>>,
    /// Wakes the worker that waits for the port. No peer has it.
    pub(super) bell: Event,
    /// The peer is to be woken for what was sent.
    waking: AtomicBool,
    /// What the port found wrong with a peer, by the number of its connection.
    broken: Mutex<Option<(u64, Broken)>>,
    /// How often a peer came: the number of the last connection.
    connections: AtomicU64,
    /// Wakes the connection's thread. No peer has it.
    control: Arc<Event>,
}

impl Mailbox {
    pub(super) fn new(bell: Event, control: Arc<Event>) -> Mailbox {
        Mailbox {
            changed: AtomicBool::new(false),
            lines: Mutex::new(None),
            bell,
            waking: AtomicBool::new(false),
            broken: Mutex::new(None),
            connections: AtomicU64::new(0),
            control,
        }
    }

    /// For the connection: a peer came with rings for the port, or went.
    pub(super) fn put(&self, lines: Option<Lines>) {
        let mut slot = self.lines.lock().unwrap_or_else(PoisonError::into_inner);
        // Under the lock, so that the port takes what was put in last, once, and knows its number.
        self.connections.fetch_add(lines.is_some().into(), Ordering::Relaxed);
        *slot = lines;
        self.changed.store(true, Ordering::Relaxed);
        drop(slot);
        self.bell.ring();
    }

    /// For the connection: true when the peer is to be woken, once.
    pub(super) fn take_waking(&self) -> bool {
        self.waking.swap(false, Ordering::AcqRel)
    }

    /// For the connection: what the port found wrong with this peer, once.
    pub(super) fn take_broken(&self) -> Option<Broken> {
        let found = self.broken.lock().unwrap_or_else(PoisonError::into_inner).take();
        // With one that went before it nothing can be done.
        found.filter(|(number, _)| *number == self.connections()).map(|(_, broken)| broken)
    }

    /// For the port: true when there is something to [`Mailbox::take`].
    #[inline]
    pub(super) fn has_changed(&self) -> bool {
        self.changed.load(Ordering::Relaxed)
    }

    /// For the port: the rings it has from now on, and the number of their connection.
    pub(super) fn take(&self) -> (Option<Lines>, u64) {
        let mut lines = self.lines.lock().unwrap_or_else(PoisonError::into_inner);
        self.changed.store(false, Ordering::Relaxed);
        (lines.take(), self.connections())
    }

    /// For the port: has the peer be woken.
    pub(super) fn wake_peer(&self) {
        if !self.waking.swap(true, Ordering::AcqRel) {
            self.control.ring();
        }
    }

    /// For the port: has the connection of this number be ended, if it is there still.
    pub(super) fn report(&self, number: u64, broken: Broken) {
        *self.broken.lock().unwrap_or_else(PoisonError::into_inner) = Some((number, broken));
        self.control.ring();
    }

    /// How often a peer came.
    pub(super) fn connections(&self) -> u64 {
        self.connections.load(Ordering::Relaxed)
    }
}

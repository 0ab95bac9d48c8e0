//! Following the kernel, without its socket: events in, dumps to be made out. Time comes from outside.
//!
//! ```text
//! datagrams ──► Follow ──► snapshot, dirty ──► Mirror
//!                 │  ▲
//!            due  ▼  │ dumped
//!             one dump at a time
//! ```
//! Events are told from before the first dump on. One that a dump knew already changes nothing that later events do not change again.

use std::time::Duration;

use super::decode::message::{ERROR, NOOP, OVERRUN, messages};
use super::dump::Progress;
use super::event::Again;
use super::object::{Object, Objects};
use super::snapshot::{Dirty, Snapshot};

/// A dump that is made because events left something open waits until no event came for this long,
const QUIET: Duration = Duration::from_millis(100);
/// but not longer than this.
const PATIENCE: Duration = Duration::from_secs(2);
/// Settings of which the kernel does not tell when they change are read this often.
const SETTINGS_EVERY: Duration = Duration::from_secs(1);
/// Everything is compared with the kernel this often.
const CHECK_EVERY: Duration = Duration::from_secs(60);
/// Dumps that are torn are made again this often before what they told is taken, to be compared once more later.
const ATTEMPTS: u32 = 5;

/// What happened while the kernel was followed.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct MirrorCounters {
    /// Events that were read.
    pub events: u64,
    /// Messages that could not be read.
    pub malformed: u64,
    /// Times that the kernel lost events, because they came faster than they were read (ENOBUFS).
    pub lost: u64,
    /// Datagrams that were longer than what was read of them (MSG_TRUNC).
    pub truncated: u64,
    /// Dumps that were made.
    pub dumps: u64,
    /// Dumps during which the dumped changed (NLM_F_DUMP_INTR), or of which a part was lost.
    pub torn: u64,
    /// Dumps that the kernel refused.
    pub refused: u64,
    /// Checks of everything against the kernel.
    pub checks: u64,
    /// Things that were not as the kernel had them when checked.
    pub differences: u64,
}

/// What is known of the kernel, and how sure that is.
#[derive(Debug)]
pub struct Follow {
    /// What is known.
    pub snapshot: Snapshot,
    /// What of it is not in the tables yet.
    pub dirty: Dirty,
    /// What happened.
    pub counters: MirrorCounters,
    again: Again,
    /// What was never read.
    unread: Objects,
    /// Events were lost: what still waits to be read is from before or around the loss, and of no use.
    lost: bool,
    /// When something was first to be dumped later, and the last event.
    waiting_since: Option<Duration>,
    last_event: Duration,
    /// Objects that a check has still to compare.
    checking: Objects,
    next_check: Duration,
    check_began: Duration,
    next_settings: Duration,
    attempts: u32,
}

impl Default for Follow {
    fn default() -> Follow {
        Follow::new()
    }
}

impl Follow {
    /// Nothing is known: everything is to be dumped.
    pub fn new() -> Follow {
        Follow {
            snapshot: Snapshot::default(),
            // The router's own default settings need not be the kernel's.
            dirty: Dirty { settings: true, ..Dirty::default() },
            counters: MirrorCounters::default(),
            again: Again { now: Objects::ALL, later: Objects::NONE },
            unread: Objects::ALL,
            lost: false,
            waiting_since: None,
            last_event: Duration::ZERO,
            checking: Objects::NONE,
            next_check: CHECK_EVERY,
            check_began: Duration::ZERO,
            next_settings: SETTINGS_EVERY,
            attempts: 0,
        }
    }

    /// Takes in a datagram of events; `truncated` when it was longer than what was read of it.
    pub fn datagram(&mut self, now: Duration, datagram: &[u8], truncated: bool) {
        self.last_event = now;
        if truncated {
            self.counters.truncated += 1;
            tracing::warn!(bytes = datagram.len(), "a message of the kernel was cut off; everything is read again");
            self.lost = true;
        }
        if self.lost {
            return;
        }
        for message in messages(datagram) {
            let Ok(message) = message else {
                self.malformed(0);
                self.lost = true;
                return;
            };
            match message.kind {
                OVERRUN => self.lost(),
                // Answers to requests that want none.
                NOOP | ERROR => {}
                kind => {
                    self.counters.events += 1;
                    if self.snapshot.event(&message, &mut self.dirty, &mut self.again).is_none() {
                        self.malformed(kind);
                    }
                }
            }
        }
        if !self.again.later.is_empty() {
            self.waiting_since.get_or_insert(now);
        }
    }

    /// Takes of a datagram of events, which is to be taken in later, what is urgent: see [`Snapshot::urgent`].
    pub fn urgent(&mut self, datagram: &[u8]) {
        if !self.lost {
            self.snapshot.urgent(datagram, &mut self.dirty);
        }
    }

    /// Events were lost: nothing that is known is sure. Those that wait are passed over until there are none: told after the dumps, an event from
    /// before the loss would bring back what a lost one took away.
    pub fn lost(&mut self) {
        self.counters.lost += 1;
        tracing::warn!("the kernel lost events, they came faster than they were read; everything is read again");
        self.lost = true;
    }

    /// No event waits to be read.
    pub fn drained(&mut self) {
        if std::mem::take(&mut self.lost) {
            self.again.now = Objects::ALL;
        }
    }

    /// The events at hand are read: what is to be dumped, if anything is.
    pub fn due(&mut self, now: Duration) -> Option<Object> {
        if self.lost {
            return None;
        }
        if now >= self.next_settings {
            self.next_settings = now + SETTINGS_EVERY;
            self.again.now.add(Objects::of(&[Object::Settings, Object::Devices]));
        }
        if self.waiting_since.is_some_and(|since| now >= self.last_event + QUIET || now >= since + PATIENCE) {
            self.waiting_since = None;
            self.again.now.add(std::mem::take(&mut self.again.later));
        }
        // A check waits for quiet: while events are under way, what they tell would count as a difference.
        if now >= self.next_check && now >= self.last_event + QUIET {
            self.next_check = now + CHECK_EVERY;
            self.check_began = now;
            self.counters.checks += 1;
            self.checking = Objects::ALL;
        }
        match self.first() {
            // It comes behind the groups.
            Some(Object::Buckets) if !self.snapshot.has_buckets() => {
                self.snapshot.buckets.clear();
                self.settled(Object::Buckets);
                self.first()
            }
            first => first,
        }
    }

    fn first(&self) -> Option<Object> {
        self.again.now.first().or_else(|| self.checking.first())
    }

    /// A dump that was due ended, and told this.
    pub fn dumped(&mut self, now: Duration, object: Object, told: Snapshot, how: Progress) {
        self.counters.dumps += 1;
        match how {
            Progress::Refused(error) => {
                // Kernels before 5.3 have no nexthop objects; the others refuse nothing but under pressure.
                self.counters.refused += 1;
                tracing::warn!(?object, error, "the kernel refused a dump");
                self.attempts = 0;
                self.settled(object);
                return;
            }
            Progress::Torn | Progress::More => {
                self.counters.torn += 1;
                tracing::info!(?object, "what was read changed meanwhile; it is read again");
                self.attempts += 1;
                if self.attempts < ATTEMPTS {
                    return;
                }
                // It changes faster than it can be read: better something old than nothing, and another look when it is quiet.
                self.again.later.add(Objects::of(&[object]));
                self.waiting_since.get_or_insert(now);
            }
            Progress::Done => {}
        }
        self.attempts = 0;
        let differences = self.snapshot.replace(object, told, &mut self.dirty) as u64;
        // Neighbours that age, and settings, are not told of.
        let only_checked = self.checking.contains(object) && !self.again.now.contains(object);
        if only_checked && differences > 0 && !matches!(object, Object::Neighbours | Object::Settings) {
            self.counters.differences += differences;
            tracing::warn!(?object, differences, "the tables were not as the kernel has them");
        }
        self.settled(object);
        if only_checked && self.checking.is_empty() {
            // Of very many routes a check takes long: most of the time is left to other things.
            self.next_check = now + CHECK_EVERY.max((now - self.check_began) * 30);
        }
    }

    /// How long the kernel may be waited for at most, until something is due.
    pub fn patience(&self, now: Duration) -> Duration {
        let waiting = self.waiting_since.map(|since| (self.last_event + QUIET).min(since + PATIENCE));
        let next = self.next_settings.min(self.next_check.max(self.last_event + QUIET)).min(waiting.unwrap_or(Duration::MAX));
        if self.lost { Duration::ZERO } else { next.saturating_sub(now) }
    }

    /// When an event was last read.
    pub fn last_event(&self) -> Duration {
        self.last_event
    }

    /// True when everything known is what the kernel last told: nothing is to be read again because of events.
    pub fn is_settled(&self) -> bool {
        self.again == Again::default() && !self.lost && self.dirty.is_clean()
    }

    /// Begins a check of everything against the kernel now, if none goes on.
    pub fn check(&mut self) {
        self.next_check = Duration::ZERO;
    }

    /// True once everything was read, however much of it changed since.
    pub fn has_read_all(&self) -> bool {
        self.unread.is_empty()
    }

    fn settled(&mut self, object: Object) {
        self.unread.remove(object);
        self.again.now.remove(object);
        self.checking.remove(object);
    }

    fn malformed(&mut self, kind: u16) {
        self.counters.malformed += 1;
        tracing::warn!(kind, "a message of the kernel could not be read");
    }
}

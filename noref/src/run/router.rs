//! The running router as the control socket and metrics see it. Asking it for something stops no worker.

use std::collections::BTreeMap;
use std::net::Ipv6Addr;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use control::Configuration;
use control::mirror::{MirrorCounters, Unsupported};
use plane::{SidCount, Tables};
use route::{Editor, Prefix, SidId, TableId};

use super::clock::Clock;
use super::mirror::Mirroring;
use super::snapshot::Snapshot;
use super::workers::Workers;
use crate::trace::Wanted;

/// A running router.
pub struct Router {
    workers: Workers,
    tables: Arc<Tables>,
    source: Source,
    ports: Mutex<Vec<PortState>>,
    began: Instant,
}

/// Who writes the tables.
pub enum Source {
    /// The network file, and whoever changes it over the control socket.
    Standalone(Box<Mutex<Configuration>>, Clock),
    /// The mirror of the kernel.
    Mirror(Arc<Mirroring>),
}

/// A port, as it is at the moment.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct PortState {
    /// Its place among the ports: what counters name it by.
    pub place: usize,
    /// The interface's name in the settings.
    pub name: String,
    /// `AF_XDP` or `AF_PACKET`; empty while it is not open.
    pub driver: &'static str,
    /// Queues that it has; 0 while it is not open.
    pub queues: u32,
    /// The interface's number in the kernel; 0 while it is not there.
    pub index: u32,
    /// What the operator should know, a sentence each; also why it is not open.
    pub notes: Vec<String>,
}

/// How far the tables are from the kernel's.
#[derive(Clone, PartialEq, Debug)]
pub struct MirrorStanding {
    /// All that the kernel told is in the tables, and nothing is to be read again.
    pub settled: bool,
    /// Since the last event of the kernel that was read.
    pub last_event: Duration,
    /// What happened so far.
    pub counters: MirrorCounters,
    /// What the kernel has and noref leaves to it, with the reason.
    pub unsupported: Vec<Unsupported>,
}

impl Router {
    /// A router of these workers, whose tables come from `source`.
    pub fn new(workers: Workers, tables: Arc<Tables>, source: Source, ports: Vec<PortState>) -> Router {
        Router { workers, tables, source, ports: Mutex::new(ports), began: Instant::now() }
    }

    /// How long it has been running.
    pub fn uptime(&self) -> Duration {
        self.began.elapsed()
    }

    /// Its workers.
    pub fn workers(&self) -> &Workers {
        &self.workers
    }

    /// What each worker counted, as it was between two of its bursts. Workers that do not answer within two seconds are left out.
    pub fn snapshots(&self) -> Vec<Snapshot> {
        self.workers.snapshots()
    }

    /// Its ports, in their places.
    pub fn ports(&self) -> Vec<PortState> {
        self.ports.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// A port is this now.
    pub(super) fn set_port(&self, state: PortState) {
        let mut ports = self.ports.lock().unwrap_or_else(PoisonError::into_inner);
        match ports.iter_mut().find(|port| port.place == state.place) {
            Some(port) => *port = state,
            None => ports.push(state),
        }
    }

    /// There is no such port any more.
    pub(super) fn forget_port(&self, place: usize) {
        self.ports.lock().unwrap_or_else(PoisonError::into_inner).retain(|port| port.place != place);
    }

    /// The tables that workers read.
    pub fn tables(&self) -> &Arc<Tables> {
        &self.tables
    }

    /// Changes the tables of a router that is alone on its interfaces; none in mirror mode, where the kernel says what is in them. Changes are
    /// seen by workers after `editor.commit()`.
    pub fn configuration<R>(&self, f: impl FnOnce(&mut Configuration) -> R) -> Option<R> {
        match &self.source {
            Source::Standalone(configuration, clock) => {
                let mut configuration = configuration.lock().unwrap_or_else(|poisoned| {
                    // Whoever panicked may have left half of something.
                    let mut configuration = poisoned.into_inner();
                    configuration.editor.rollback();
                    configuration
                });
                configuration.editor.set_time(clock.tick());
                Some(f(&mut configuration))
            }
            Source::Mirror(_) => None,
        }
    }

    /// Does what is due in the tables of a router that is alone on its interfaces, unless somebody has them: then it is due again.
    pub(super) fn keep_up(&self) {
        if let Source::Standalone(configuration, clock) = &self.source
            && let Ok(mut configuration) = configuration.try_lock()
        {
            configuration.editor.set_time(clock.tick());
            configuration.editor.keep_up();
        }
    }

    /// Reads the tables as their writer has them, in either mode. The writer waits meanwhile, workers do not.
    pub fn editor<R>(&self, f: impl FnOnce(&Editor) -> R) -> R {
        match &self.source {
            Source::Standalone(configuration, clock) => {
                let mut configuration = configuration.lock().unwrap_or_else(PoisonError::into_inner);
                configuration.editor.set_time(clock.tick());
                f(&configuration.editor)
            }
            Source::Mirror(mirroring) => mirroring.read(|mirror| f(mirror.editor())),
        }
    }

    /// Every SID: the table and the prefix of its route, and the number under which it is counted and found in the tables.
    pub fn sids(&self) -> Vec<(TableId, Prefix<Ipv6Addr>, SidId)> {
        match &self.source {
            Source::Standalone(configuration, _) => configuration.lock().unwrap_or_else(PoisonError::into_inner).placed_sids(),
            Source::Mirror(mirroring) => mirroring.read(|mirror| mirror.sids().collect()),
        }
    }

    /// What was counted under the numbers of SIDs before they came, where that was something: not theirs, but of others that are gone.
    pub fn counted_before(&self) -> BTreeMap<SidId, SidCount> {
        match &self.source {
            Source::Standalone(configuration, _) => {
                let configuration = configuration.lock().unwrap_or_else(PoisonError::into_inner);
                let before = configuration.sids.iter().map(|sid| (sid.id, sid.counted_before));
                before.filter(|(_, before)| *before != SidCount::default()).collect()
            }
            Source::Mirror(mirroring) => mirroring.counted_before(),
        }
    }

    /// How far the tables are from the kernel's; none of a router that does not follow it.
    pub fn mirror(&self) -> Option<MirrorStanding> {
        match &self.source {
            Source::Standalone(..) => None,
            Source::Mirror(mirroring) => Some(mirroring.standing()),
        }
    }

    /// Has all workers take part in a trace, from their next round on.
    pub fn trace(&self, wanted: &Wanted) {
        self.workers.trace(wanted);
    }
}

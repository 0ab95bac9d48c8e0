//! `noref run`: a router on interfaces of the running kernel.
//!
//! ```text
//! settings ──► devices ──► queues ──► shares, one a worker ──► a thread each, on a core of its own ──► slow way up
//!     start                                                       ▲ mailboxes              ▲ tables
//!                               control socket, metrics ──► Router                  mirror of the kernel, or a network file
//! ```
//! The main thread looks after the ports and waits for the end.

mod bell;
mod clock;
mod complaint;
mod devices;
mod found;
mod mailbox;
mod memif;
mod mirror;
mod notify;
mod ports;
mod queue;
mod router;
mod settings;
mod shares;
mod slow;
mod snapshot;
mod start;
mod stopwatch;
mod work;
mod workers;

use std::os::fd::AsFd;
use std::path::Path;
use std::sync::Arc;
use std::time::{Duration, Instant};

use plane::Counters;
use port::live::{Signal, Signals, wait_any};

pub use self::router::{MirrorStanding, PortState, Router};
pub use self::settings::{DEFAULT_SOCKET, MetricsAddress, parse_workers};
pub use self::snapshot::{QueueSnapshot, Snapshot};
#[cfg(test)]
pub use self::{clock::Clock, router::Source, workers::Workers};

use self::notify::Notify;
use self::ports::Ports;
use self::settings::{Mode, Settings};
use self::start::{Beside, Started};
use crate::api::Places;
use crate::args::{Refs, RunArgs};
use crate::failure::Failure;
use crate::report::{EventReport, PortReport, Report, Sids};
use crate::stderr::say;
use crate::stdout::Stdout;

/// Ports are looked after this often.
const LOOK_EVERY: Duration = Duration::from_millis(200);

/// Routes between interfaces as `args` say, until a signal or the time ends it. Nothing is done to an interface before all that is to be read was read.
///
/// # Errors
/// When arguments, settings, the network file or an interface can not be used, or the result can not be printed.
pub fn run(args: &RunArgs) -> Result<(), Failure> {
    let settings = Settings::of(args)?;
    let signals = Signals::new().map_err(Failure::unusable)?;
    let found = devices::look(&settings.ports)?;
    let places =
        Places::take(&settings.control.socket, settings.control.group.as_deref(), settings.metrics.as_ref()).map_err(Failure::unusable)?;
    let workers = settings.workers.unwrap_or_else(|| shares::fitting(&found, &settings.ports));
    let Started { router, ports, beside } = match &settings.mode {
        Mode::Standalone(net) => start::standalone(&found, &settings, workers, net)?,
        Mode::Mirror => start::mirror(&found, &settings, workers)?,
    };
    let services = places.serve(&router).map_err(Failure::unusable)?;
    let mut running = Running { router, ports, beside, notify: Notify::from_environment() };
    running.tell();
    running.wait(&signals, settings.seconds, args.config.as_deref());
    running.notify.stopping();
    drop(services);
    let Running { router, ports, beside, .. } = running;
    let done = router.workers().stop()?;
    // Only now that no worker has a port of it any more.
    drop(ports);
    let report = report(&router, &done);
    if let Some(beside) = beside {
        beside.end();
    }
    Stdout::new().finish(settings.json, &report)
}

/// A running router, as the main thread has it.
struct Running {
    router: Arc<Router>,
    ports: Ports,
    beside: Option<Beside>,
    notify: Notify,
}

impl Running {
    /// Tells everybody that it runs.
    fn tell(&self) {
        let ports = devices::describe(&self.router.ports());
        say(format_args!("running: {ports}"));
        self.notify.ready(&format!("running: {ports}"));
    }

    /// Waits for a signal to end, the end of a worker, or the time; looks after the ports meanwhile.
    fn wait(&mut self, signals: &Signals, seconds: Option<u64>, config: Option<&Path>) {
        let end = seconds.and_then(|seconds| Instant::now().checked_add(Duration::from_secs(seconds)));
        let mut alive = Instant::now();
        while end.is_none_or(|end| Instant::now() < end) {
            let left = end.map_or(LOOK_EVERY, |end| end.saturating_duration_since(Instant::now()).min(LOOK_EVERY));
            if let Err(error) = wait_any(&[signals.as_fd()], left) {
                return say(format_args!("waiting for the end: {error}"));
            }
            match signals.take() {
                Ok(None) => {}
                Ok(Some(Signal::Reload)) => self.reload(config),
                Ok(Some(Signal::End)) => return,
                Err(error) => return say(format_args!("waiting for the end: {error}")),
            }
            if self.router.workers().has_one_ended() {
                return;
            }
            self.router.keep_up();
            self.ports.look(&self.router, self.beside.as_ref().map(|beside| &beside.mirroring));
            if let Some(beside) = &mut self.beside {
                beside.look(&self.router);
            }
            if self.notify.watchdog().is_some_and(|every| alive.elapsed() >= every) {
                alive = Instant::now();
                // A router whose workers do not answer is not alive.
                if self.router.snapshots().len() == self.router.workers().len() {
                    self.notify.alive();
                }
            }
        }
    }

    /// Reads the settings again.
    fn reload(&mut self, config: Option<&Path>) {
        self.notify.reloading();
        match config.map(Settings::read) {
            None => say("reload: there is no settings file (--config), so there is nothing to read again"),
            Some(Ok(settings)) => {
                self.ports.reload(settings, &self.router, self.beside.as_ref().map(|beside| &beside.mirroring));
                say("reload: done");
            }
            Some(Err(failure)) => say(format_args!("reload: {failure}; everything stays as it is")),
        }
        self.notify.ready(&format!("running: {}", devices::describe(&self.router.ports())));
    }
}

/// What happened at the ports.
fn report(router: &Router, done: &[Snapshot]) -> Report {
    let mut report = Report::new(Refs::Noref);
    for port in router.ports() {
        let queues = done.iter().flat_map(|done| &done.queues).filter(|queue| queue.place == port.place);
        let Some(sum) = QueueSnapshot::sum(queues) else { continue };
        let (received, sent) = sum.traffic();
        report.packets += received.packets;
        report.ports.push(PortReport { port: port.name.clone(), received, sent, delivered: 0 });
        let happened = sum.events.into_iter().filter(|&(_, count)| count > 0);
        report.events.extend(happened.map(|(event, count)| EventReport { port: port.name.clone(), event, count }));
    }
    let counters: Vec<&Counters> = done.iter().map(|done| &done.counters).collect();
    let (all, before) = (router.sids(), router.counted_before());
    let sids = Sids { all: &all, before: &before };
    router.editor(|editor| report.count(editor.links(), router.tables(), &sids, &counters));
    report
}

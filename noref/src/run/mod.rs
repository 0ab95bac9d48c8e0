//! `noref run`: a router on interfaces of the running kernel.
//!
//! ```text
//! settings ──► devices ──► queues ──► shares, one a worker ──► a thread each, on a core of its own
//!                                                                 ▲ mailboxes
//!                               control socket, metrics ──► Router
//! ```
//! The main thread only waits for the end.

mod clock;
mod devices;
mod mailbox;
mod queue;
mod router;
mod settings;
mod shares;
mod snapshot;
mod work;
mod workers;

use std::os::fd::AsFd;
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use plane::Counters;
use port::live::{Signals, wait_any};

pub use self::router::{MirrorStanding, PortState, Router};
pub use self::settings::{DEFAULT_SOCKET, MetricsAddress, parse_workers};
pub use self::snapshot::{QueueSnapshot, Snapshot, WorkTime};

pub use self::router::Source;
pub use self::workers::Workers;

use self::settings::{Mode, Settings};
use self::work::Done;
use crate::api::Places;
use crate::args::{Refs, RunArgs};
use crate::failure::Failure;
use crate::network;
use crate::report::{EventReport, PortReport, Report, Traffic};
use crate::stderr::say;
use crate::stdout::Stdout;

/// Looked up again after this time at the latest, whether the end has come.
const LONGEST_WAIT: Duration = Duration::from_secs(3600);

/// Routes between interfaces as `args` say, until a signal or the time ends it. Nothing is done to an interface before the network file was read.
///
/// # Errors
/// When arguments, settings, the network file or an interface can not be used, or the result can not be printed.
pub fn run(args: &RunArgs) -> Result<(), Failure> {
    let settings = Settings::of(args)?;
    let Mode::Standalone(net) = &settings.mode else {
        return Err(Failure::unusable("mode mirror is not there yet: use --net FILE"));
    };
    let found = devices::look(&settings.ports)?;
    let configuration = network::read(net, &devices::as_ports(&found))?;
    for warning in &configuration.warnings {
        say(format_args!("warning: {warning}"));
    }
    devices::compare(&found, &configuration);
    let signals = Signals::new().map_err(Failure::unusable)?;
    let places = Places::take(&settings.control.socket, settings.control.group.as_deref()).map_err(Failure::unusable)?;
    let workers = settings.workers.unwrap_or_else(|| shares::fitting(&found, &settings.ports));
    let mut opened = devices::open(&found, &settings, workers)?;
    let states = opened.iter().map(|opened| opened.state()).collect();
    let shares = shares::deal(&mut opened, workers)?;
    opened.iter().flat_map(|device| device.notes()).for_each(say);

    let tables = Arc::clone(&configuration.tables);
    let workers = Workers::start(&tables, shares, settings.busy_poll)?;
    let router = Arc::new(Router::new(workers, tables, Source::Standalone(Box::new(Mutex::new(configuration))), states));
    let services = places.serve(&router).map_err(Failure::unusable)?;
    say(format_args!("running: {}", devices::describe(&router.ports())));

    wait(&signals, router.workers(), settings.seconds);
    drop(services);
    let done = router.workers().stop()?;
    // Only now that no worker has a port of it any more.
    drop(opened);
    let mut report = report(&router, &done);
    let counters: Vec<&Counters> = done.iter().map(|done| &done.counters).collect();
    router.configuration(|configuration| report.count(configuration, &counters));
    Stdout::new().finish(settings.json, &report)
}

/// Waits for a signal, the end of a worker, or the time.
fn wait(signals: &Signals, workers: &Workers, seconds: Option<u64>) {
    let end = seconds.and_then(|seconds| Instant::now().checked_add(Duration::from_secs(seconds)));
    let descriptors: Vec<_> = [signals.as_fd()].into_iter().chain(workers.descriptors()).collect();
    loop {
        let left = end.map_or(LONGEST_WAIT, |end| end.saturating_duration_since(Instant::now()));
        match wait_any(&descriptors, left.min(LONGEST_WAIT)) {
            Ok(false) if end.is_none_or(|end| Instant::now() < end) => {}
            Ok(_) => return,
            Err(error) => return say(format_args!("waiting for the end: {error}")),
        }
    }
}

/// What happened at the ports.
fn report(router: &Router, done: &[Done]) -> Report {
    let mut report = Report::new(Refs::Noref);
    for port in router.ports() {
        let mut queues = done.iter().flat_map(|done| &done.queues).filter(|queue| queue.place == port.place);
        let Some(mut sum) = queues.next().cloned() else { continue };
        queues.for_each(|queue| sum.add(queue));
        let received = Traffic { packets: sum.counters.rx_packets, bytes: sum.counters.rx_bytes };
        let sent = Traffic { packets: sum.counters.tx_packets, bytes: sum.counters.tx_bytes };
        report.packets += received.packets;
        report.ports.push(PortReport { port: port.name.clone(), received, sent, delivered: 0 });
        let happened = sum.events.into_iter().filter(|&(_, count)| count > 0);
        report.events.extend(happened.map(|(event, count)| EventReport { port: port.name.clone(), event, count }));
    }
    report
}

//! `noref run`: a router on interfaces of the running kernel, alone on them.
//!
//! ```text
//! interfaces ──► queues ──► shares, one a worker ──► a thread each, on a core of its own
//! ```
//! The main thread only waits for the end. So far one worker has all queues.

mod clock;
mod devices;
mod queue;
mod stop;
mod work;

use std::os::fd::AsFd;
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

use plane::Counters;
use port::live::{Signals, wait_any};

use self::queue::Queue;
use self::stop::Stopper;
use self::work::{Done, Work};
use crate::args::{PortName, Refs, RunArgs};
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
/// When arguments, the network file or an interface can not be used, or the result can not be printed.
pub fn run(args: &RunArgs) -> Result<(), Failure> {
    let ports = args.ports();
    let found = devices::look(&ports)?;
    let configuration = network::read(&args.net, &devices::as_ports(&found))?;
    for warning in &configuration.warnings {
        say(format_args!("warning: {warning}"));
    }
    devices::compare(&found, &configuration);
    let signals = Signals::new().map_err(Failure::unusable)?;
    let mut opened = devices::open(&found, args.driver, args.busy_poll)?;

    let mut queues = Vec::new();
    let mut running = Vec::new();
    for (place, device) in opened.iter_mut().enumerate() {
        let ports = device.take_ports();
        device.notes().iter().for_each(say);
        running.push(devices::describe(device, ports.len()));
        queues.extend(ports.into_iter().map(|port| Queue::new(place, device.device().name(), port)));
    }
    let mut stopper = Stopper::default();
    let mut workers = Vec::new();
    for (number, share) in [queues].into_iter().enumerate() {
        let stop = stopper.watch().map_err(Failure::unusable)?;
        let work = Work::new(configuration.tables.clone(), share, stop, args.busy_poll);
        workers.push(start(number, work)?);
    }
    say(format_args!("running: {}", running.join(", ")));

    wait(&signals, &stopper, args.seconds);
    stopper.stop();
    let done: Vec<Done> = workers.into_iter().map(join).collect::<Result<_, _>>()?;
    // Only now that no worker has a port of it any more.
    drop(opened);
    let mut report = report(&ports, &done);
    let counters: Vec<&Counters> = done.iter().map(|done| &done.counters).collect();
    report.count(&configuration, &counters);
    Stdout::new().finish(args.json, &report)
}

/// Starts a worker on the core of its number.
fn start(number: usize, work: Work) -> Result<JoinHandle<Done>, Failure> {
    let body = move || {
        if let Err(error) = port::live::pin_to_core(number) {
            say(format_args!("worker {number} stays on no core of its own: {error}"));
        }
        work.run()
    };
    thread::Builder::new().name(format!("noref-{number}")).spawn(body).map_err(Failure::unusable)
}

fn join(worker: JoinHandle<Done>) -> Result<Done, Failure> {
    worker.join().map_err(|_| Failure::incomplete("a worker ended by a fault of noref; the message above says where"))
}

/// Waits for a signal, the end of a worker, or the time.
fn wait(signals: &Signals, stopper: &Stopper, seconds: Option<u64>) {
    let end = seconds.and_then(|seconds| Instant::now().checked_add(Duration::from_secs(seconds)));
    let descriptors: Vec<_> = [signals.as_fd()].into_iter().chain(stopper.descriptors()).collect();
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
fn report(names: &[PortName], done: &[Done]) -> Report {
    let mut report = Report::new(Refs::Noref);
    for (place, name) in names.iter().enumerate() {
        let mut port = PortReport { port: name.to_string(), ..PortReport::default() };
        let mut events: Vec<(&'static str, u64)> = Vec::new();
        for queue in done.iter().flat_map(|done| &done.queues).filter(|queue| queue.place == place) {
            add(&mut port.received, queue.counters.rx_packets, queue.counters.rx_bytes);
            add(&mut port.sent, queue.counters.tx_packets, queue.counters.tx_bytes);
            for &(event, count) in &queue.events {
                match events.iter_mut().find(|(known, _)| *known == event) {
                    Some((_, sum)) => *sum += count,
                    None => events.push((event, count)),
                }
            }
        }
        report.packets += port.received.packets;
        report.ports.push(port);
        let happened = events.into_iter().filter(|&(_, count)| count > 0);
        report.events.extend(happened.map(|(event, count)| EventReport { port: name.to_string(), event, count }));
    }
    report
}

fn add(traffic: &mut Traffic, packets: u64, bytes: u64) {
    traffic.packets += packets;
    traffic.bytes += bytes;
}

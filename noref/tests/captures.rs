//! Hostile and odd packets through whole routers: public captures, and golden frames damaged at random. Nothing may panic or hang, and every
//! packet's way must end: sent, delivered, dropped for a reason, or waiting for a neighbour or for other fragments.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Mutex, PoisonError, mpsc};
use std::thread;
use std::time::Duration;

use plane::{Step, Worker};
use port::Time;
use route::RouteRefs;
use testkit::capture;
use testkit::differences::Differences;
use testkit::golden::{Case, PORTS};
use testkit::mutate::mutate;
use testkit::network::{self, BEHAVIOURS, Destinations, HEADENDS, addressed_to_e0};
use testkit::replay::{Replay, Scratch};
use testkit::rng::Rng;

/// Damaged frames in all.
const MUTATIONS: usize = 100_000;
/// Longer than any of these tests takes by far.
const PATIENCE: Duration = Duration::from_secs(300);
/// The steps that end a packet's way.
const ENDS: &[&str] = &["out", "deliver", "drop", "wait"];

/// Sends frames, `apart` from each other, each to a port by its place, through the router that the network file `net` describes.
///
/// # Errors
/// What went wrong.
fn send_through(net: &str, frames: impl Iterator<Item = (usize, Vec<u8>)>, apart: Duration, refs: RouteRefs) -> Result<(), String> {
    let configuration = control::network_file(net, "network.ip", PORTS).map_err(|errors| errors.to_string())?;
    let mut worker = Worker::new(configuration.tables.clone(), refs);
    worker.trace(true);
    let mut now = Time::from_micros(1_767_225_600_000_000);
    let mut open = BTreeSet::new();
    for (port, frame) in frames {
        now = now.after(apart);
        if worker.next_due().is_some_and(|due| due <= now) {
            settle(&mut worker, &mut open)?;
            worker.advance(now);
        }
        open.insert(worker.frames());
        let mut buf = worker.pool().take(frame.len());
        buf.append(&frame);
        if !worker.receive(port, buf, now) {
            settle(&mut worker, &mut open)?;
        }
    }
    settle(&mut worker, &mut open)?;
    let links = configuration.editor.links();
    let received: u64 = (0..PORTS.len()).map(|place| worker.counters().of_port(links, place).received.packets).sum();
    if received != worker.frames() {
        return Err(format!("{received} of {} frames are counted", worker.frames()));
    }
    // Let every timer fire: what waits is given up, then the errors about it, whose neighbours may not answer either.
    for _ in 0..3 {
        now = now.after(Duration::from_secs(600));
        worker.advance(now);
    }
    match worker.waiting() {
        0 => Ok(()),
        waiting => Err(format!("{waiting} packets wait for ever")),
    }
}

/// Processes what was received, and strikes off the frames whose way has ended: that must be all of them.
fn settle(worker: &mut Worker, open: &mut BTreeSet<u64>) -> Result<(), String> {
    worker.run();
    worker.drain(|_| {});
    for Step { frame, stage, .. } in worker.take_steps() {
        if ENDS.contains(&stage) {
            open.remove(&frame);
        }
    }
    open.first().map_or(Ok(()), |frame| Err(format!("frame {frame} has gone without a word")))
}

/// Runs `work` on every item, on all processors, and fails with what went wrong, also when it takes for ever.
fn for_each<T: Sync>(items: &[T], work: impl Fn(&T) -> Option<String> + Sync) {
    let (done, wait) = mpsc::channel::<()>();
    thread::spawn(move || {
        if wait.recv_timeout(PATIENCE) == Err(mpsc::RecvTimeoutError::Timeout) {
            eprintln!("a router hangs");
            std::process::exit(101);
        }
    });
    let next = AtomicUsize::new(0);
    let complaints = Mutex::new(Vec::new());
    thread::scope(|scope| {
        for _ in 0..thread::available_parallelism().map_or(1, usize::from) {
            scope.spawn(|| {
                while let Some(item) = items.get(next.fetch_add(1, Ordering::Relaxed)) {
                    if let Some(complaint) = work(item) {
                        complaints.lock().unwrap_or_else(PoisonError::into_inner).push(complaint);
                    }
                }
            });
        }
    });
    drop(done);
    let complaints = complaints.into_inner().unwrap_or_else(PoisonError::into_inner);
    assert!(complaints.is_empty(), "{} of {} went wrong:\n{}", complaints.len(), items.len(), complaints.join("\n"));
}

/// Every file under the shared captures; empty, and said, when they are not there.
fn shared_captures() -> Vec<PathBuf> {
    let Some(shared) = testkit::shared() else {
        eprintln!("skipped: no captures beside the repository; NOREF_SHARED names the directory that holds captures/");
        return Vec::new();
    };
    let mut directories = vec![shared.join("captures")];
    let mut files = Vec::new();
    while let Some(directory) = directories.pop() {
        for entry in std::fs::read_dir(&directory).unwrap_or_else(|e| panic!("{}: {e}", directory.display())).flatten() {
            match entry.path() {
                path if path.is_dir() => directories.push(path),
                path if path.extension().is_some_and(|end| end == "tsv" || end == "md") => {}
                path => files.push(path),
            }
        }
    }
    files.sort();
    assert!(files.len() > 400, "{}: only {} captures", shared.display(), files.len());
    files
}

/// All frames of the shared captures.
fn shared_frames() -> Vec<Vec<u8>> {
    shared_captures().iter().flat_map(|file| capture::read_as_far_as_it_goes(file).0).map(|record| record.bytes).collect()
}

#[test]
fn every_shared_capture_can_be_replayed_or_is_refused_with_a_reason() {
    let scratch = Scratch::new();
    let net = scratch.path().join("network.ip");
    std::fs::write(&net, network::plain()).expect("a network file");
    for_each(&shared_captures(), |file| {
        let (records, error) = capture::read_as_far_as_it_goes(file);
        let tx = Scratch::new();
        let program = Path::new(env!("CARGO_BIN_EXE_noref"));
        let outcome = Replay::new(program, &net, tx.path()).ports(PORTS).rx("e0", file).argument("--json").run();
        let packets = outcome.json().and_then(|report| report["packets"].as_u64());
        let refused = outcome.status == Some(2) && !outcome.stderr.is_empty();
        let good = match error {
            Some(_) if records.is_empty() => refused,
            _ => outcome.completed() && packets == Some(records.len() as u64),
        };
        (!good).then(|| format!("{}: exit status {:?}, {packets:?} packets: {}", file.display(), outcome.status, outcome.stderr.trim()))
    });
}

#[test]
fn every_shared_packet_is_accounted_for_in_a_plain_router_and_at_every_behaviour() {
    let frames = shared_frames();
    let mut destinations = Destinations::default();
    frames.iter().for_each(|frame| destinations.collect(frame));
    let networks = 0..2 * BEHAVIOURS.len().max(2 * HEADENDS.len());
    let every = networks.map(|shift| (format!("shift {shift}"), network::with_every_behaviour(&destinations, shift)));
    let networks: Vec<_> = std::iter::once(("plain".to_owned(), network::plain())).chain(every).enumerate().collect();
    for_each(&networks, |(number, (name, net))| {
        let refs = if number % 2 == 0 { RouteRefs::Noref } else { RouteRefs::Counted };
        let frames = frames.iter().cloned().map(addressed_to_e0).chain(frames.iter().cloned()).map(|frame| (0, frame));
        let sent = send_through(net, frames, Duration::from_millis(1), refs);
        sent.err().map(|complaint| format!("{name}: {complaint}"))
    });
}

#[test]
fn a_hundred_thousand_damaged_golden_frames_are_accounted_for() {
    let list = Differences::read(&testkit::root().join("tests/differences.toml"));
    let cases: Vec<_> =
        Case::all(&testkit::root().join("tests/golden")).into_iter().filter(|case| list.not_yet(&case.name).is_none()).collect();
    let frames = |case: &Case| case.records().into_iter().map(|(port, record)| (port, record.bytes)).collect::<Vec<_>>();
    let good: Vec<_> = cases.iter().flat_map(frames).collect();
    let each = MUTATIONS.div_ceil(cases.len());
    let numbered: Vec<_> = cases.iter().enumerate().collect();
    for_each(&numbered, |(seed, case)| {
        let mut rng = Rng::new(*seed as u64);
        let own = frames(case);
        let damaged = (0..each).map(|_| {
            let ((port, frame), (_, other)) = (rng.choose(&own), rng.choose(&good));
            (*port, mutate(&mut rng, frame, other))
        });
        let net = std::fs::read_to_string(case.network()).expect("a network file");
        let refs = if seed % 2 == 0 { RouteRefs::Noref } else { RouteRefs::Counted };
        // Far enough apart that reassembly and neighbours run into their time limits.
        let sent = send_through(&net, damaged, Duration::from_millis(40), refs);
        sent.err().map(|complaint| format!("{} (seed {seed}): {complaint}", case.name))
    });
}

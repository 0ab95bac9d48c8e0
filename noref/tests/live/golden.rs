//! Every golden case on devices: its frames sent into the far ends of veth pairs, what comes out compared with what Linux put out.
//!
//! `GOLDEN=srv6_end/End_D cargo test -p noref --test live` runs only the cases whose names begin so.
//!
//! Frames keep their order and their spacing: one is sent when what the one before it causes has come out, and no sooner than in the recording, because
//! limits on the rate of ICMP errors count real time. What comes out is put to the frame that was sent last. On a machine that is busy something may come
//! out too late for that: a case that differs is run again, alone, and the second time counts.

use std::collections::BTreeSet;
use std::fmt::Write as _;
use std::io::Write as _;
use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use port::Time;
use testkit::capture::{self, Record};
use testkit::differences::{Differences, Judgement};
use testkit::golden::{Case, Comparison, PORTS, SPACING};
use testkit::replay::Scratch;

use crate::lab::{self, Cables, Lab};
use crate::router::{Failed, Router};

/// Cases that run at the same time. Most of a case's time is spent waiting.
const LANES: usize = 4;
/// Frames of a case that are described when they differ.
const SHOWN: usize = 12;
/// How long what is expected may take to come out.
const PATIENCE: Duration = Duration::from_secs(1);
/// How long after a frame something may come out that Linux does not send: after the last one, and after one that is listed as different and to which
/// Linux says nothing.
const LONG_LOOK: Duration = Duration::from_millis(50);

#[test]
fn standalone_under_af_xdp_every_frame_is_as_linux_or_listed_as_different() {
    let list = Differences::read(&testkit::root().join("tests/differences.toml"));
    let live = Differences::read(&testkit::root().join("noref/tests/live/differences.toml"));
    let only = std::env::var("GOLDEN").unwrap_or_default();
    let wanted = |case: &Case| case.name.starts_with(&only) && list.not_yet(&case.name).is_none();
    let cases: Vec<Case> = Case::all(&testkit::root().join("tests/golden")).into_iter().filter(wanted).collect();

    let differs = |case: &Case| [&list, &live].into_iter().flat_map(|list| list.frames(&case.name)).collect();
    let mut results = match each(&cases, |case| standalone(case, &differs(case))) {
        Ok(results) => results,
        Err(why) => return lab::skip(&why).unwrap_or_default(),
    };
    let mut report = String::new();
    let mut failures = String::new();
    let mut totals = (0, 0, 0, 0);
    for (case, (comparison, took)) in cases.iter().zip(&mut results) {
        let mut judgement = judge(&list, &live, comparison);
        if !judgement.is_good() {
            *comparison = standalone(case, &differs(case)).unwrap_or_else(|why| panic!("{}: {why:?}", case.name));
            judgement = judge(&list, &live, comparison);
        }
        let mark = if judgement.is_good() { "ok" } else { "FAILED" };
        let (frames, equal, listed) = (comparison.frames, judgement.equal, judgement.listed);
        totals = (totals.0 + 1, totals.1 + frames, totals.2 + equal, totals.3 + listed);
        let _ = writeln!(report, "{:45} {frames:4} frames {equal:4} equal {listed:3} listed  {took:7.1?}  {mark}", comparison.case);
        if !judgement.is_good() {
            describe(&mut failures, comparison, &judgement);
        }
    }
    let (cases, frames, equal, listed) = totals;
    let _ = writeln!(report, "{cases} cases, {frames} frames compared: {equal} equal, {listed} listed as different");
    let _ = std::io::stdout().lock().write_all(format!("\n{report}").as_bytes());
    assert!(failures.is_empty(), "these frames differ from Linux and are not listed, or are listed and do not differ:\n{failures}");
}

/// A case through `noref run`, alone on its devices. `differs` are the frames that are listed.
fn standalone(case: &Case, differs: &BTreeSet<u64>) -> Result<Comparison, Failed> {
    let lab = Lab::new().and_then(|lab| lab.silence_kernel().map(|()| lab)).map_err(Failed::NotHere)?;
    let network = std::fs::read_to_string(case.network()).map_err(|error| Failed::Refused(error.to_string()))?;
    let mut cables = lab.cables().map_err(Failed::NotHere)?;
    let router = Router::standalone(&lab.router, PORTS, &network, &["--driver", "af-xdp"])?;
    let out = send(case, differs, &mut cables);
    let comparison = compare(case, &out);
    let output = router.stop();
    if output.status.success() {
        Ok(comparison)
    } else {
        Err(Failed::Refused(format!("{}: {}", output.status, String::from_utf8_lossy(&output.stderr))))
    }
}

/// Sends a case's frames; what comes out, by port, stamped as the frame that it is put to.
fn send(case: &Case, differs: &BTreeSet<u64>, cables: &mut Cables) -> Vec<Vec<Record>> {
    let expected = case.expected();
    let mut out = vec![Vec::new(); PORTS.len()];
    let mut collect = |cables: &mut Cables, time: Time| {
        let came = cables.receive();
        let count = came.len();
        came.into_iter().for_each(|(port, bytes)| out[port].push(Record { time, bytes }));
        count
    };
    // What a start says of its own accord, a test of the ports above all, is nobody's answer.
    thread::sleep(LONG_LOOK);
    cables.receive();
    let begin = Instant::now();
    let mut last = Time::ZERO;
    for (port, frame) in case.records() {
        let number = frame.time.0 / SPACING;
        last = Time(number * SPACING);
        cables.send(port, &frame.bytes);
        let next = begin + Duration::from_nanos((number + 1) * SPACING);
        let mut missing = expected.get(&number).copied().unwrap_or(0);
        let look = if differs.contains(&number) && missing == 0 { LONG_LOOK } else { Duration::from_nanos(SPACING) };
        let next = next.max(Instant::now() + look);
        while missing > 0 && begin.elapsed() < next.duration_since(begin) + PATIENCE {
            cables.wait(Instant::now() + Duration::from_millis(5));
            missing = missing.saturating_sub(collect(cables, last));
        }
        thread::sleep(next.saturating_duration_since(Instant::now()));
        collect(cables, last);
    }
    thread::sleep(LONG_LOOK);
    collect(cables, last);
    out
}

fn compare(case: &Case, out: &[Vec<Record>]) -> Comparison {
    let scratch = Scratch::new();
    for (port, records) in PORTS.iter().zip(out).filter(|(_, records)| !records.is_empty()) {
        capture::write(&scratch.path().join(format!("{port}.pcap")), records);
    }
    case.compare(scratch.path())
}

/// Holds a comparison against what differs anyway and what differs on devices.
fn judge(list: &Differences, live: &Differences, comparison: &Comparison) -> Judgement {
    let mut judgement = list.judge(comparison);
    let on_devices = live.judge(comparison);
    let found = |number: &u64| comparison.different.iter().any(|difference| difference.number == *number);
    let excused = |number: &u64| found(number) && !on_devices.unlisted.contains(number);
    let before = judgement.unlisted.len();
    judgement.unlisted.retain(|number| !excused(number));
    judgement.listed += before - judgement.unlisted.len();
    judgement.stale.extend(on_devices.stale);
    judgement
}

fn describe(failures: &mut String, comparison: &Comparison, judgement: &Judgement) {
    let _ = writeln!(failures, "{}:", comparison.case);
    for difference in comparison.different.iter().filter(|difference| judgement.unlisted.contains(&difference.number)).take(SHOWN) {
        let _ = writeln!(failures, "  {difference}");
    }
    if judgement.unlisted.len() > SHOWN {
        let _ = writeln!(failures, "  and {} more", judgement.unlisted.len() - SHOWN);
    }
    for number in &judgement.stale {
        let _ = writeln!(failures, "  frame {number} is listed and does not differ");
    }
}

/// How a case went and how long it took, or why it cannot be run here.
type Outcome = Result<(Comparison, Duration), String>;

/// Runs every case, several at a time; the results in the order of the cases. An error says why they cannot be run here.
fn each(cases: &[Case], run: impl Fn(&Case) -> Result<Comparison, Failed> + Sync) -> Result<Vec<(Comparison, Duration)>, String> {
    let next = AtomicUsize::new(0);
    let outcomes: Mutex<Vec<Option<Outcome>>> = Mutex::new(cases.iter().map(|_| None).collect());
    let lane = || {
        loop {
            let place = next.fetch_add(1, Ordering::Relaxed);
            let Some(case) = cases.get(place) else { return };
            let begin = Instant::now();
            let outcome = match run(case) {
                Ok(comparison) => Ok((comparison, begin.elapsed())),
                Err(Failed::NotHere(why)) => Err(why),
                Err(Failed::Refused(why)) => panic!("{}: {why}", case.name),
            };
            outcomes.lock().expect("no lane panicked")[place] = Some(outcome);
        }
    };
    thread::scope(|scope| (0..LANES).for_each(|_| drop(scope.spawn(lane))));
    outcomes.into_inner().expect("no lane panicked").into_iter().map(|outcome| outcome.expect("every case was run")).collect()
}

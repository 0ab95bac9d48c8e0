//! Every golden case on devices: its frames sent into the far ends of veth pairs, what comes out compared with what Linux put out.
//!
//! `GOLDEN=srv6_end/End_D cargo test -p noref --test live` runs only the cases whose names begin so.
//!
//! Frames keep their order and their spacing: one is sent when what the one before it causes has come out, and no sooner than in the recording, because
//! limits on the rate of ICMP errors count real time. What comes out is put to the frame that was sent last. On a machine that is busy something may come
//! out too late for that: a case that differs is run again, alone, up to twice, and the last time counts.

use std::collections::BTreeSet;
use std::fmt::Write as _;
use std::io::Write as _;
use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use port::Time;
use serde_json::Value;
use testkit::capture::{self, Record};
use testkit::differences::{Differences, Judgement, Totals};
use testkit::golden::{Case, Comparison, PORTS, Rules, SPACING};
use testkit::kernel;
use testkit::questions::Questions;
use testkit::replay::Scratch;

use crate::lab::{self, Cables, Lab};
use crate::router::{Failed, Router};

/// Cases that run at the same time. Most of a case's time is spent waiting.
const LANES: usize = 4;
/// How often a case that differs is run again.
const RETRIES: usize = 2;
/// How long what is expected may take to come out.
const PATIENCE: Duration = Duration::from_secs(1);
/// How long after a frame something may come out that Linux does not send: after the last one, and after one that is listed as different and to which
/// Linux says nothing.
const LONG_LOOK: Duration = Duration::from_millis(50);

#[test]
fn standalone_under_af_xdp_every_frame_is_as_linux_or_listed_as_different() {
    run_all(&Way { run: standalone, listed: None, rules: Rules::live });
}

#[test]
fn beside_the_kernel_every_frame_is_as_linux_or_listed_as_different() {
    run_all(&Way { run: beside_the_kernel, listed: Some("noref/tests/live/mirror.toml"), rules: Rules::beside_the_kernel });
}

/// What came out, by the place of its port, stamped as the frame that it is put to.
type Out = [Vec<Record>; PORTS.len()];

/// One case to be run.
struct Run<'a> {
    case: &'a Case,
    /// The frames that are listed as different.
    differs: BTreeSet<u64>,
    rules: Rules,
    /// Adds up what noref sends.
    sent: &'a AtomicUsize,
}

/// How the cases are run.
struct Way {
    /// Runs one; what came out by each port.
    run: fn(&Run<'_>) -> Result<Out, Failed>,
    /// What differs this way beside what differs anyway. With it, an answer may be noref's or the kernel's, so that what is listed need not differ.
    listed: Option<&'static str>,
    /// How answers are compared.
    rules: fn(&str) -> Rules,
}

fn run_all(way: &Way) {
    let list = Differences::read(&testkit::root().join("tests/differences.toml"));
    let more = way.listed.map(|file| Differences::read(&testkit::root().join(file)));
    let lists: Vec<&Differences> = [&list].into_iter().chain(&more).collect();
    let only = std::env::var("GOLDEN").unwrap_or_default();
    let wanted = |case: &Case| case.name.starts_with(&only) && lists.iter().all(|list| list.not_yet(&case.name).is_none());
    let cases: Vec<Case> = Case::all(&testkit::root().join("tests/golden")).into_iter().filter(wanted).collect();

    let _alone = lab::alone();
    let sent = AtomicUsize::new(0);
    let compare = |case: &Case| {
        let differs = lists.iter().flat_map(|list| list.frames(&case.name)).collect();
        let run = Run { case, differs, rules: (way.rules)(case.group()), sent: &sent };
        (way.run)(&run).map(|out| compare(&run, &out))
    };
    let outcomes = each(&cases, compare);
    if let Some(Err(why)) = outcomes.iter().find(|_| outcomes.iter().all(Result::is_err)) {
        return lab::skip(why).unwrap_or_default();
    }
    let mut report = String::new();
    let mut failures = String::new();
    let mut totals = Totals::default();
    for (case, outcome) in cases.iter().zip(outcomes) {
        let (mut comparison, took) = match outcome {
            Ok(result) => result,
            Err(why) => {
                let _ = writeln!(report, "{:45} not run: this kernel cannot: {why}", case.name);
                continue;
            }
        };
        let mut judgement = judge(&lists, &comparison);
        for _ in 0..RETRIES {
            if judgement.is_good() {
                break;
            }
            comparison = compare(case).unwrap_or_else(|why| panic!("{}: {why:?}", case.name));
            judgement = judge(&lists, &comparison);
        }
        let mark = if judgement.is_good() { "ok" } else { "FAILED" };
        let (frames, equal, listed) = (comparison.frames, judgement.equal, judgement.listed);
        totals.add(&comparison, &judgement);
        let _ = writeln!(report, "{:45} {frames:4} frames {equal:4} equal {listed:3} listed  {took:7.1?}  {mark}", comparison.case);
        if !judgement.is_good() {
            let _ = write!(failures, "{}:\n{}", comparison.case, judgement.describe(&comparison));
        }
    }
    let sent = sent.load(Ordering::Relaxed);
    let _ = writeln!(report, "{totals}; noref sent {sent} frames");
    let _ = std::io::stdout().lock().write_all(format!("\n{report}").as_bytes());
    assert!(sent > totals.frames / 4, "noref sent {sent} frames only: who forwarded the others?");
    assert!(failures.is_empty(), "these frames differ from Linux and are not listed, or are listed and do not differ:\n{failures}");
}

/// A case through `noref run`, alone on its devices.
fn standalone(run: &Run<'_>) -> Result<Out, Failed> {
    let lab = Lab::new().and_then(|lab| lab.silence_kernel().map(|()| lab)).map_err(Failed::NotHere)?;
    let mut cables = lab.cables().map_err(Failed::NotHere)?;
    let router = Router::standalone(&lab.router, PORTS, &network(run.case)?, &["--driver", "af-xdp", "--json"])?;
    let out = send(run, &mut cables);
    ended(router, run.sent).map(|()| out)
}

/// A case through `noref run --mirror` and the kernel that it follows.
fn beside_the_kernel(run: &Run<'_>) -> Result<Out, Failed> {
    let lab = Lab::new().map_err(Failed::NotHere)?;
    lab.configure_kernel(&network(run.case)?).map_err(Failed::NotHere)?;
    let mut cables = lab.cables().map_err(Failed::NotHere)?;
    let router = Router::mirror(&lab.router, PORTS, &["--driver", "af-xdp", "--json"])?;
    let out = send(run, &mut cables);
    let answers = |records: Vec<Record>| records.into_iter().filter(|record| !kernel::is_own_accord(&record.bytes)).collect();
    ended(router, run.sent).map(|()| out.map(answers))
}

fn network(case: &Case) -> Result<String, Failed> {
    std::fs::read_to_string(case.network()).map_err(|error| Failed::Refused(error.to_string()))
}

/// Ends the router and adds up what it sent.
fn ended(router: Router, total: &AtomicUsize) -> Result<(), Failed> {
    let output = router.stop();
    if !output.status.success() {
        return Err(Failed::Refused(format!("{}: {}", output.status, String::from_utf8_lossy(&output.stderr))));
    }
    let report: Value = serde_json::from_slice(&output.stdout).map_err(|error| Failed::Refused(error.to_string()))?;
    let sent = |port: &Value| port.pointer("/sent/packets").and_then(Value::as_u64);
    let all: u64 = report.get("ports").and_then(Value::as_array).into_iter().flatten().filter_map(sent).sum();
    total.fetch_add(all as usize, Ordering::Relaxed);
    Ok(())
}

/// Sends a case's frames; what comes out, by port, stamped as the frame that it is put to.
fn send(run: &Run<'_>, cables: &mut Cables) -> Out {
    let Run { case, differs, rules, .. } = run;
    let expected = case.expected(*rules);
    let mut out: Out = Default::default();
    let mut questions = Questions::default();
    let mut collect = |cables: &mut Cables, time: Time| {
        let mut count = 0;
        for (port, bytes) in cables.receive() {
            // What a timer asks again is no answer.
            if rules.repeats || !questions.is_repeated(PORTS[port], &bytes) {
                count += 1;
                out[port].push(Record { time, bytes });
            }
        }
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

fn compare(run: &Run<'_>, out: &Out) -> Comparison {
    let scratch = Scratch::new();
    for (port, records) in PORTS.iter().zip(out).filter(|(_, records)| !records.is_empty()) {
        capture::write(&scratch.path().join(format!("{port}.pcap")), records);
    }
    run.case.compare_by(scratch.path(), run.rules)
}

/// Holds a comparison against the lists. What is listed must differ, unless answers may be the kernel's: then there are two lists.
fn judge(lists: &[&Differences], comparison: &Comparison) -> Judgement {
    let mut judgements = lists.iter().map(|list| list.judge(comparison));
    let mut all = judgements.next().unwrap_or_default();
    for other in judgements {
        let before = all.unlisted.len();
        all.unlisted.retain(|number| other.unlisted.contains(number));
        all.listed += before - all.unlisted.len();
        all.stale.clear();
    }
    all
}

/// How a case went and how long it took, or why it cannot be run here.
type Outcome = Result<(Comparison, Duration), String>;

/// Runs every case, several at a time; the outcomes in the order of the cases.
fn each(cases: &[Case], run: impl Fn(&Case) -> Result<Comparison, Failed> + Sync) -> Vec<Outcome> {
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

//! Every golden case through `noref replay`: each frame as Linux, but for what tests/differences.toml lists.
//!
//! `GOLDEN=srv6_end/End_D cargo test -p noref --test golden` runs only the cases whose names begin so.

use std::fmt::Write as _;
use std::io::Write as _;
use std::path::Path;

use testkit::differences::{Differences, Totals};
use testkit::golden::{Case, Comparison, PORTS};
use testkit::replay::{Replay, Scratch};

#[test]
fn every_frame_is_as_linux_or_listed_as_different() {
    let list = Differences::read(&testkit::root().join("tests/differences.toml"));
    let only = std::env::var("GOLDEN").unwrap_or_default();
    let mut report = String::new();
    let (mut required, mut waiting) = (Totals::default(), Totals::default());
    let mut failures = String::new();

    for case in Case::all(&testkit::root().join("tests/golden")) {
        if !case.name.starts_with(&only) {
            continue;
        }
        let (comparison, complaint) = run(&case);
        let judgement = list.judge(&comparison);
        let not_yet = list.not_yet(&case.name);
        let totals = if not_yet.is_some() { &mut waiting } else { &mut required };
        totals.add(&comparison, &judgement);
        let mark = match (judgement.is_good() && complaint.is_none(), not_yet) {
            (true, None) => "ok",
            (false, None) => "FAILED",
            (true, Some(_)) => "ok, listed as not yet",
            (false, Some(_)) => "not yet",
        };
        let (frames, equal, listed) = (comparison.frames, judgement.equal, judgement.listed);
        let _ = writeln!(report, "{:45} {frames:4} frames {equal:4} equal {listed:3} listed  {mark}", case.name);
        if not_yet.is_none() && mark == "FAILED" {
            let _ = writeln!(failures, "{}: {}", case.name, complaint.unwrap_or_default());
            failures.push_str(&judgement.describe(&comparison));
        }
    }

    let _ = writeln!(report, "{required}");
    if waiting.frames > 0 {
        let _ = writeln!(report, "not yet required: {waiting}");
    }
    // Straight to the stream: the test harness would keep it to itself when all is well.
    let _ = std::io::stdout().lock().write_all(format!("\n{report}").as_bytes());
    assert!(failures.is_empty(), "these frames differ from Linux and are not listed, or are listed and do not differ:\n{failures}");
}

/// Runs a case; what the program complained about when it did not complete.
fn run(case: &Case) -> (Comparison, Option<String>) {
    let tx = Scratch::new();
    let replay = Replay::new(Path::new(env!("CARGO_BIN_EXE_noref")), &case.network(), tx.path()).ports(PORTS);
    let outcome = case.inputs().iter().fold(replay, |replay, (port, file)| replay.rx(port, file)).run();
    let complaint = (!outcome.completed()).then(|| match outcome.timed_out {
        true => "did not end in time".to_owned(),
        false => format!("exit status {:?}: {}", outcome.status, outcome.stderr.trim()),
    });
    (case.compare(tx.path()), complaint)
}

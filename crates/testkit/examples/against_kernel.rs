//! Asks the running kernel what it does with the frames of cases, records its answers, and shows where noref differs.
//!
//! ```console
//! # cargo build -p noref
//! # cargo run -p noref-testkit --example against_kernel -- target/debug/noref tests/golden-more/*/*
//! ```
//!
//! A case is a directory with `network.ip`, `in-PORT.pcap` and `frames.tsv` as tests/golden/README.md describes them; its `out-PORT.pcap`
//! and the last column of `frames.tsv` are written anew.

use std::path::{Path, PathBuf};
use std::process::ExitCode;
use testkit::capture::{self, Record};
use testkit::golden::{Case, PORTS, SPACING};
use testkit::kernel::Kernel;
use testkit::replay::{Replay, Scratch};

fn main() -> ExitCode {
    let mut arguments = std::env::args_os().skip(1).map(PathBuf::from);
    let Some(noref) = arguments.next() else {
        eprintln!("usage: against_kernel NOREF CASE_DIR…");
        return ExitCode::FAILURE;
    };
    let mut equal = true;
    for dir in arguments {
        let case = Case::open(&dir);
        match record(&case, &dir) {
            Ok(()) => equal &= compare(&case, &noref),
            Err(reason) => {
                eprintln!("{}: not compared: {reason}", case.name);
                equal = false;
            }
        }
    }
    if equal { ExitCode::SUCCESS } else { ExitCode::FAILURE }
}

/// Sends the case's frames to a router made of the kernel and writes down what leaves it.
fn record(case: &Case, dir: &Path) -> Result<(), String> {
    let kernel = Kernel::new(&case.network())?;
    let mut out: Vec<Vec<Record>> = vec![Vec::new(); PORTS.len()];
    let mut table = "frame\tport\tlabel\tkernel\n".to_owned();
    for (port, frame) in case.records() {
        let number = frame.time.0 / SPACING;
        let answers = kernel.answers(port, &frame.bytes);
        let mut summary: Vec<_> = answers.iter().map(|(port, bytes)| format!("{}: {} bytes", PORTS[*port], bytes.len())).collect();
        if summary.is_empty() {
            summary.push("none".into());
        }
        let label = case.frames.iter().find(|line| line.number == number).map_or("", |line| &line.label);
        table += &format!("{number}\t{}\t{label}\t{}\n", PORTS[port], summary.join(" | "));
        for (port, bytes) in answers {
            out[port].push(Record { time: frame.time, bytes });
        }
    }
    for (port, records) in PORTS.iter().zip(out) {
        let file = dir.join(format!("out-{port}.pcap"));
        let _ = std::fs::remove_file(&file);
        if !records.is_empty() {
            capture::write(&file, &records);
        }
    }
    std::fs::write(dir.join("frames.tsv"), table).map_err(|e| e.to_string())
}

/// Runs the case through noref; true when every frame is as with the kernel.
fn compare(case: &Case, noref: &Path) -> bool {
    let tx = Scratch::new();
    let replay = Replay::new(noref, &case.network(), tx.path()).ports(PORTS);
    let outcome = case.inputs().iter().fold(replay, |replay, (port, file)| replay.rx(port, file)).run();
    let comparison = case.compare(tx.path());
    // What noref sends later, when waiting packets are given up, has nothing to be compared with.
    let different: Vec<_> = comparison.different.iter().filter(|it| case.frames.iter().any(|line| line.number == it.number)).collect();
    println!("{}: {} of {} frames differ", case.name, different.len(), comparison.frames);
    if !outcome.completed() {
        println!("  exit status {:?}: {}", outcome.status, outcome.stderr.trim());
    }
    different.iter().for_each(|difference| println!("  {difference}"));
    outcome.completed() && different.is_empty()
}

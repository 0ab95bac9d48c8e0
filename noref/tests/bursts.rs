//! The outcome does not depend on how packets are batched, nor on how they carry their routes.
//!
//! The frames of every golden case come ten in a microsecond, so that many share a burst. A traced run takes them one by one.

use std::fs;
use std::path::{Path, PathBuf};

use port::capture::{Reader, Writer};
use port::{Pool, Time};
use serde_json::Value;
use testkit::golden::{Case, PORTS};
use testkit::replay::{Replay, Scratch};

/// Writes a capture with the times of its frames, which are 4 ms apart, pressed together.
fn press_together(from: &Path, to: &Path) {
    let (mut pool, mut reader) = (Pool::default(), Reader::open(from).unwrap());
    let mut writer = Writer::new(Vec::new()).unwrap();
    while let Some(packet) = reader.next(&mut pool).unwrap() {
        writer.write(Time::from_micros(packet.time.0 / 40_000_000), &packet.buf).unwrap();
    }
    fs::write(to, writer.into_inner()).unwrap();
}

/// A run's result as JSON, without what differs by its arguments, and the captures of all ports.
type Outcome = (Value, Vec<Vec<u8>>);

/// Runs a case. None when its network needs what is not there yet.
fn run(case: &Case, inputs: &[(String, PathBuf)], arguments: &[&str]) -> Option<Outcome> {
    let tx = Scratch::new();
    let replay = Replay::new(Path::new(env!("CARGO_BIN_EXE_noref")), &case.network(), tx.path()).ports(PORTS).argument("--json");
    let replay = inputs.iter().fold(replay, |replay, (port, file)| replay.rx(port, file));
    let outcome = arguments.iter().fold(replay, |replay, argument| replay.argument(argument)).run();
    if outcome.status == Some(2) {
        return None;
    }
    let mut result = outcome.json().unwrap_or_else(|| panic!("{}: {}", case.name, outcome.stderr));
    let fields = result.as_object_mut().unwrap();
    fields.remove("trace");
    fields.remove("refs");
    Some((result, PORTS.iter().map(|port| fs::read(tx.path().join(format!("{port}.pcap"))).unwrap()).collect()))
}

#[test]
fn bursts_and_single_packets_and_counted_references_end_the_same() {
    let mut compared = 0;
    for case in Case::all(&testkit::root().join("tests/golden")) {
        let scratch = Scratch::new();
        let mut inputs = case.inputs();
        for (port, file) in &mut inputs {
            let pressed = scratch.path().join(format!("{port}.pcap"));
            press_together(file, &pressed);
            *file = pressed;
        }
        let Some(bursts) = run(&case, &inputs, &[]) else { continue };
        assert_eq!(run(&case, &inputs, &["--trace"]).as_ref(), Some(&bursts), "{}: one by one", case.name);
        assert_eq!(run(&case, &inputs, &["--refs", "counted"]).as_ref(), Some(&bursts), "{}: counted", case.name);
        compared += 1;
    }
    assert!(compared > 50, "{compared} cases");
}

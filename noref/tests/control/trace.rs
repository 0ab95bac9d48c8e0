//! Packets traced on their way.

use std::fs;
use std::path::Path;
use std::process::{Child, Output};
use std::time::Instant;

use serde_json::Value;
use testkit::program::signal;
use testkit::replay::Scratch;

use super::program::{PATIENCE, client, ended, noref};
use super::{Lab, ping, start};

/// Sends echo requests until the program has ended: the trace may not be on yet when the first one comes.
fn meanwhile(lab: &Lab, to: &str, mut child: Child) -> Output {
    let begin = Instant::now();
    while child.try_wait().unwrap().is_none() && begin.elapsed() < PATIENCE {
        lab.left.inside(|| ping(to.parse().unwrap(), 1));
    }
    ended(child)
}

/// Sends echo requests until a trace has saved some of them.
fn until_saved(lab: &Lab, file: &Path) {
    let begin = Instant::now();
    while fs::metadata(file).map_or(0, |metadata| metadata.len()) < 500 {
        assert!(begin.elapsed() < PATIENCE, "nothing is traced");
        lab.left.inside(|| ping("10.2.0.2".parse().unwrap(), 1));
    }
}

#[test]
fn the_way_of_packets_is_told_as_in_a_replay() {
    let Some((lab, router)) = start() else { return };
    let socket = router.socket();
    assert!(lab.left.inside(|| ping("10.2.0.2".parse().unwrap(), 1)), "neighbours are known from here on");
    let child = client(&socket, &["trace", "port", "e0", "from", "10.1.0.2", "to", "10.2.0.0/24", "proto", "icmp", "-n", "2"]);
    let output = meanwhile(&lab, "10.2.0.2", child);
    assert!(output.status.success(), "{output:?}");
    let text = String::from_utf8(output.stdout).unwrap();
    let lines: Vec<_> = text.lines().collect();
    assert!(lines[0].starts_with("frame 0 at 1") && lines[0].ends_with(" s"), "{text}");
    let stages: Vec<_> = lines[1..].iter().take_while(|line| !line.is_empty()).filter_map(|line| line.split_whitespace().next()).collect();
    assert_eq!(stages, ["in", "lookup", "forward", "out"], "{text}");
    assert!(lines[1].contains("e0: ") && lines[1].contains("IPv4 10.1.0.2 to 10.2.0.2"), "{text}");
    assert_eq!(lines.iter().filter(|line| line.starts_with("frame ")).count(), 2, "{text}");
    assert!(!text.contains("  in       e1: "), "answers are not told of: {text}");
    assert_eq!(router.stop().status.code(), Some(0));
}

#[test]
fn what_a_sid_did_and_why_packets_ended_is_told() {
    let Some((lab, router)) = start() else { return };
    let socket = router.socket();
    let output = meanwhile(&lab, "10.9.0.9", client(&socket, &["trace", "sid", "fc00::d4", "-n", "1"]));
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    assert!(text.contains("  seg6     End.DX4: "), "{text}");
    let child = client(&socket, &["trace", "drop", "route_blackhole", "-n", "1", "--json"]);
    let output = meanwhile(&lab, "10.66.0.1", child);
    let told: Value = serde_json::from_str(String::from_utf8_lossy(&output.stdout).lines().next().unwrap()).unwrap();
    assert_eq!((&told["frame"]["frame"], &told["frame"]["port"], &told["more"]), (&0.into(), &"e0".into(), &true.into()), "{told}");

    let refused = noref(&socket, &["trace", "port", "e9"]);
    assert_eq!(refused.status.code(), Some(2));
    let why = String::from_utf8_lossy(&refused.stderr).into_owned();
    assert!(why.contains("no port is called \"e9\" (accepted: e0, e1)"), "{why}");
    assert_eq!(router.stop().status.code(), Some(0));
}

#[test]
fn a_trace_ends_at_ctrl_c_with_what_it_saved() {
    let Some((lab, router)) = start() else { return };
    let scratch = Scratch::new();
    let file = scratch.path().join("trace.pcapng");
    let child = client(&router.socket(), &["trace", "proto", "icmp", "--pcap", file.to_str().unwrap()]);
    until_saved(&lab, &file);
    signal(child.id(), "INT");
    let output = ended(child);
    assert!(output.status.success(), "{output:?}");
    assert!(String::from_utf8_lossy(&output.stderr).contains("saved"), "{output:?}");
    assert!(String::from_utf8_lossy(&fs::read(&file).unwrap()).contains("  in       e0: "), "each packet has its way as a comment");
    assert!(!testkit::capture::read(&file).is_empty());
    // Nobody traces any more: packets go on.
    assert!(lab.left.inside(|| ping("10.2.0.2".parse().unwrap(), 1)));
    assert_eq!(router.stop().status.code(), Some(0));
}

#[test]
fn a_trace_ends_with_the_router() {
    let Some((lab, router)) = start() else { return };
    let scratch = Scratch::new();
    let file = scratch.path().join("trace.pcapng");
    let child = client(&router.socket(), &["trace", "--pcap", file.to_str().unwrap()]);
    until_saved(&lab, &file);
    assert_eq!(router.stop().status.code(), Some(0));
    let output = ended(child);
    // With the last line of the reply, or without it: the router is gone.
    assert!(matches!(output.status.code(), Some(0 | 3)), "{output:?}");
}

//! `noref bench live` for a moment: that packets take the ways it measures, through the kernel and through noref, and that nothing of its lab stays.

use std::fs;
use std::path::Path;
use std::process::{Command, Stdio};

use serde_json::Value;
use testkit::program::{alone, is_refused, skipped};
use testkit::replay::Scratch;

use super::{assert_documented, command, xml};

/// Each way's name, whether its destinations can be random, and the length of its frames.
const WAYS: [(&str, bool, u64); 7] = [
    ("IPv6", true, 62),
    ("End", true, 94),
    ("End.DX4", false, 82),
    ("End.DT6", true, 102),
    ("IPv4", true, 42),
    ("H.Encaps of IPv4", false, 42),
    ("H.Encaps of IPv6", false, 62),
];

/// The rows of a run, and its drawing. None, with a word why, where it cannot be made.
fn live(arguments: &[&str]) -> Option<(Vec<Value>, String)> {
    let scratch = Scratch::new();
    let dir = scratch.path();
    let mut command = command(&[&["live", "--runs", "1", "--json", "l.json", "--svg", "l.svg"], arguments].concat(), dir);
    let child = command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().expect("noref runs");
    let lab = format!("noref-bench-{}", child.id());
    let output = child.wait_with_output().expect("it ends");
    let said = String::from_utf8_lossy(&output.stderr);
    if output.status.code() == Some(2) && (is_refused(&said) || said.contains("install it")) {
        skipped(&said);
        return None;
    }
    // On a machine that is busy otherwise packets may be lost at any rate.
    assert!(output.status.success() || said.contains("not every packet was forwarded"), "{said}");
    let read = |name: &str| fs::read_to_string(dir.join(name)).unwrap_or_else(|error| panic!("{name}: {error}: {said}"));
    let json: Value = serde_json::from_str(&read("l.json")).expect("JSON");
    assert_documented(&json);
    let namespaces = Command::new("ip").args(["netns", "list"]).output().expect("iproute2").stdout;
    assert!(!String::from_utf8_lossy(&namespaces).contains(&lab) && !Path::new("/run").join(lab).exists(), "its lab stays");
    Some((json["live"].as_array().expect("rows").clone(), read("l.svg")))
}

fn assert_packets_came(row: &Value) {
    let runs = row["runs"].as_array().expect("runs");
    assert!(runs.len() == 1 && runs.iter().all(|run| run["received"].as_u64() > Some(0)), "{row}");
}

#[test]
fn the_kernel_and_noref_are_measured_on_each_way() {
    let _alone = alone();
    let Some((rows, svg)) = live(&["--generator", "xdp", "--time", "0.1", "--destinations", "random"]) else { return };
    let measured: Vec<_> = rows.iter().map(|row| (&row["way"], &row["destinations"], &row["bytes"], &row["over"], &row["by"])).collect();
    let expected: Vec<_> = WAYS
        .iter()
        .flat_map(|&(way, random, bytes)| ["kernel", "noref"].map(|by| (way, if random { "random" } else { "one" }, bytes, "veth", by)))
        .map(|(way, to, bytes, over, by)| [way.into(), to.into(), bytes.into(), over.into(), by.into()])
        .collect();
    assert_eq!(measured, expected.iter().map(|[a, b, c, d, e]| (a, b, c, d, e)).collect::<Vec<_>>());
    for row in &rows {
        assert_packets_came(row);
        assert_eq!((row["by"] == "noref"), row["busy_ns"]["best"].as_f64() > Some(0.0), "{row}");
    }
    let bars = xml::elements(&svg).unwrap().iter().filter(|element| element.starts_with("rect ")).count();
    assert_eq!(bars, 1 + rows.len() + 2, "the ground, the bars, the legend");
}

#[test]
fn noref_is_measured_between_ports_of_testpmd() {
    let _alone = alone();
    let Some((rows, _)) = live(&["--generator", "testpmd", "--time", "1", "--ways", "end,H.Encaps of IPv4"]) else { return };
    assert_eq!(
        rows.iter().map(|row| (&row["way"], &row["over"])).collect::<Vec<_>>(),
        [(&"End".into(), &"memif".into()), (&"H.Encaps of IPv4".into(), &"memif".into())]
    );
    rows.iter().for_each(assert_packets_came);
}

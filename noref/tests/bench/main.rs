//! `noref bench` over a few prefixes and few frames: what is measured and how it is told, not how fast it is.

mod live;
mod xml;

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};
use std::sync::OnceLock;

use serde_json::Value;
use testkit::replay::Scratch;

/// Prefixes of both families, one inside another.
const PREFIXES: &str = "\
# what a small router knows
20.0.0.0/8
20.1.0.0/16
93.184.216.0/24
2001:db8::/32
2001:db8:aaaa::/48
2a00:1450::/29
";

/// Every way that the first table has, and whether its destinations are one or random.
const WAYS: &[(&str, &str, u64)] = &[
    ("End", "one", 94),
    ("End", "random", 94),
    ("End.X", "one", 94),
    ("End.T", "one", 94),
    ("End.DX4", "one", 82),
    ("End.DT4", "one", 82),
    ("End.DX6", "one", 102),
    ("End.DT6", "one", 102),
    ("End.DT6", "random", 102),
    ("End.DT46 of IPv4", "one", 82),
    ("End.DT46 of IPv6", "one", 102),
    ("End.B6.Encaps", "one", 94),
    ("H.Encaps of IPv4", "one", 42),
    ("H.Encaps of IPv6", "one", 62),
    ("IPv6", "one", 62),
    ("IPv6", "random", 62),
    ("IPv4", "one", 42),
    ("IPv4", "random", 42),
    ("IPv4 between VLANs", "one", 46),
    ("IPv6 between VLANs", "one", 66),
];

fn command(arguments: &[&str], dir: &Path) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_noref"));
    command.arg("bench").args(arguments).current_dir(dir);
    command
}

fn bench(arguments: &[&str], dir: &Path) -> Output {
    command(arguments, dir).output().expect("noref runs")
}

fn prefixes(dir: &Path, text: &str) -> PathBuf {
    let path = dir.join("prefixes.txt");
    fs::write(&path, text).expect("a file");
    path
}

/// One run of everything, which the tests look at.
struct Run {
    json: Value,
    svg: String,
    text: String,
}

fn all() -> &'static Run {
    static RUN: OnceLock<Run> = OnceLock::new();
    RUN.get_or_init(|| {
        let scratch = Scratch::new();
        let dir = scratch.path();
        prefixes(dir, PREFIXES);
        let output = bench(&["all", "--routes", "prefixes.txt", "--frames", "300", "--json", "b.json", "--svg", "b.svg"], dir);
        assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
        let read = |name: &str| fs::read_to_string(dir.join(name)).unwrap_or_else(|error| panic!("{name}: {error}"));
        let json = serde_json::from_str(&read("b.json")).expect("JSON");
        Run { json, svg: read("b.svg"), text: String::from_utf8(output.stdout).expect("text") }
    })
}

fn rows<'r>(run: &'r Run, series: &str) -> &'r Vec<Value> {
    run.json[series].as_array().unwrap_or_else(|| panic!("{series} is a list"))
}

/// Workers that are measured without a word.
fn workers() -> Vec<u64> {
    let cores = std::thread::available_parallelism().map_or(1, usize::from) as u64;
    [1, 2].into_iter().filter(|n| *n <= cores).collect()
}

#[test]
fn every_way_is_measured_and_every_packet_forwarded() {
    let run = all();
    let measured: Vec<_> = rows(run, "seg6local")
        .iter()
        .map(|row| {
            (
                row["way"].as_str().unwrap(),
                row["destinations"].as_str().unwrap(),
                row["bytes"].as_u64().unwrap(),
                row["workers"].as_u64().unwrap(),
            )
        })
        .collect();
    let expected: Vec<_> = WAYS.iter().flat_map(|&(way, to, bytes)| workers().into_iter().map(move |n| (way, to, bytes, n))).collect();
    assert_eq!(measured, expected);
    for row in rows(run, "seg6local").iter().chain(rows(run, "rules")) {
        for refs in ["noref", "counted"] {
            let figure = &row[refs];
            // Rounds of two bursts, and as much before them.
            assert_eq!(figure["offered"].as_u64(), Some((7 + 1) * 512 * row["workers"].as_u64().unwrap()), "{row}");
            assert_eq!(figure["forwarded"], figure["offered"], "{row}");
            assert_eq!(figure["drops"].as_array().map(Vec::len), Some(0), "{row}");
            assert!(figure["mpps"]["best"].as_f64() >= figure["mpps"]["median"].as_f64(), "{row}");
            assert!(figure["ns"]["best"].as_f64() <= figure["ns"]["median"].as_f64(), "{row}");
        }
        assert!(row["ratio"]["best"].as_f64().unwrap() > 0.0);
    }
}

#[test]
fn packets_pass_none_to_three_tables_that_miss_and_a_thousand_rules() {
    let number = |row: &Value, name: &str| row[name].as_u64().unwrap();
    let measured: Vec<_> = rows(all(), "rules").iter().map(|row| (number(row, "tables_missed"), number(row, "other_rules"))).collect();
    let series = (0..=3).map(|missed| (missed, 0)).chain([(3, 1000)]);
    let expected: Vec<_> = series.flat_map(|row| workers().into_iter().map(move |_| row)).collect();
    assert_eq!(measured, expected);
}

#[test]
fn every_lookup_finds_its_prefix() {
    let measured =
        rows(all(), "lpm").iter().map(|row| (row["family"].as_str().unwrap(), row["destinations"].as_str().unwrap())).collect::<Vec<_>>();
    let kinds = ["random", "zipf", "sequential"];
    assert_eq!(measured, ["ipv4", "ipv6"].into_iter().flat_map(|family| kinds.map(|kind| (family, kind))).collect::<Vec<_>>());
    assert!(rows(all(), "lpm").iter().all(|row| row["missed"] == 0 && row["prefixes"] == 3));
}

#[test]
fn every_change_is_seen_and_no_packet_lost_meanwhile() {
    let update = &all().json["update"];
    assert_eq!(update["forwarded"], update["offered"], "{update}");
    assert_eq!((&update["drops"], &update["latency"]["unseen"]), (&Value::Array(vec![]), &Value::from(0)), "{update}");
    let at_once: Vec<_> = update["rates"].as_array().unwrap().iter().map(|row| row["at_once"].as_u64().unwrap()).collect();
    assert_eq!(at_once, [1, 100, 10_000, 1000]);
}

#[test]
fn every_member_of_the_json_document_is_documented() {
    assert_documented(&all().json);
}

fn assert_documented(json: &Value) {
    fn members(value: &Value, into: &mut BTreeSet<String>) {
        match value {
            Value::Object(map) => map.iter().for_each(|(name, value)| {
                into.insert(name.clone());
                members(value, into);
            }),
            Value::Array(values) => values.iter().for_each(|value| members(value, into)),
            _ => (),
        }
    }
    let mut names = BTreeSet::new();
    members(json, &mut names);
    let document = fs::read_to_string(testkit::root().join("docs/bench.md")).expect("docs/bench.md");
    for name in names {
        assert!(document.contains(&format!("`{name}`")), "docs/bench.md does not say what `{name}` is");
    }
    assert_eq!(json["version"], 1);
}

#[test]
fn the_plot_is_well_formed_and_has_a_bar_for_each_figure() {
    let run = all();
    let elements = xml::elements(&run.svg).unwrap_or_else(|error| panic!("{error} in {}", run.svg));
    let figures = 2 * (rows(run, "seg6local").len() + rows(run, "rules").len());
    let legend = 2 * workers().len();
    let bars = elements.iter().filter(|element| element.starts_with("rect ")).count();
    assert_eq!(bars, 1 + figures + legend, "the ground, the bars, the legend");
}

#[test]
fn the_terminal_says_what_machine_it_was_and_what_is_not_there_yet() {
    let text = &all().text;
    for part in [
        "Linux ",
        "prefixes.txt: 3 IPv4 and 3 IPv6 prefixes",
        "End.DX4",
        "16 queues 3.305 → 10.205",
        "tunnel transmit",
        "not yet",
        "none of ",
    ] {
        assert!(text.contains(part), "{part:?} is missing in {text}");
    }
    if cfg!(debug_assertions) {
        assert!(text.contains("this is a debug build"), "{text}");
    }
}

#[test]
fn what_cannot_be_measured_is_refused_with_the_reason() {
    let scratch = Scratch::new();
    let dir = scratch.path();
    for (text, arguments, message) in [
        ("", &["live"][..], "bench live"),
        ("", &["--routes", "nowhere.txt"], "nowhere.txt: No such file"),
        ("20.0.0.0/8\n20.0.0.0\n", &["--routes", "prefixes.txt"], "prefixes.txt:2: \"20.0.0.0\" is no prefix: write ADDRESS/LENGTH"),
        ("20.0.0.0/33\n", &["--routes", "prefixes.txt"], "prefixes.txt:1:"),
        ("20.0.0.0/8\n", &["--routes", "prefixes.txt"], "packets of both families are sent"),
        ("20.0.0.0/8\n2001:db8::/32\n20.0.0.0/8\n", &["seg6local", "--routes", "prefixes.txt"], "prefixes.txt, as routes:"),
    ] {
        prefixes(dir, text);
        let output = bench(arguments, dir);
        let said = String::from_utf8_lossy(&output.stderr);
        assert_eq!(output.status.code(), Some(2), "{arguments:?}: {said}");
        assert!(said.contains(message), "{arguments:?}: expected {message:?} in {said}");
    }
}

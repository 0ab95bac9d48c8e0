//! The comparison with Linux: a case is a router and frames for it, with what Linux put out (tests/golden/README.md has the layout).

use crate::capture;
use crate::mask::Mask;
use crate::questions::Questions;
use std::collections::BTreeMap;
use std::fmt;
use std::fs;
use std::path::{Path, PathBuf};

/// The ports every case has.
pub const PORTS: &[&str] = &["e0", "e1", "e2", "e3"];

/// Frame *i* of a case is stamped *i* times this, in nanoseconds.
pub const SPACING: u64 = 4_000_000;

/// One router and the frames sent to it.
#[derive(Clone, Debug)]
pub struct Case {
    /// Group and case, as in `srv6_end/End_DX4`.
    pub name: String,
    dir: PathBuf,
    /// A line for each frame.
    pub frames: Vec<Line>,
}

/// What frames.tsv says of one frame.
#[derive(Clone, Debug)]
pub struct Line {
    /// The frame's number; it gives the time stamp.
    pub number: u64,
    /// What the frame is.
    pub label: String,
}

/// What came out, by the number of the frame that caused it: port and masked bytes, sorted.
type Answers = BTreeMap<u64, Vec<(String, Vec<u8>)>>;

impl Case {
    /// Every case under `root`, sorted by name.
    ///
    /// # Panics
    /// When `root` is no directory of cases.
    pub fn all(root: &Path) -> Vec<Case> {
        let mut cases = Vec::new();
        for group in directories(root) {
            for dir in directories(&group) {
                cases.push(Case::open(&dir));
            }
        }
        assert!(!cases.is_empty(), "{}: no cases", root.display());
        cases
    }

    /// The case in one directory.
    ///
    /// # Panics
    /// When its list of frames cannot be read.
    pub fn open(dir: &Path) -> Case {
        let group = dir.parent().map(file_name).unwrap_or_default();
        Case { name: format!("{group}/{}", file_name(dir)), frames: lines(&dir.join("frames.tsv")), dir: dir.to_owned() }
    }

    /// The first part of the name.
    pub fn group(&self) -> &str {
        self.name.split('/').next().unwrap_or_default()
    }

    /// The router's configuration.
    pub fn network(&self) -> PathBuf {
        self.dir.join("network.ip")
    }

    /// The captures that go in: port and file, sorted by port.
    pub fn inputs(&self) -> Vec<(String, PathBuf)> {
        port_files(&self.dir, "in-")
    }

    /// What goes in, in the order in which it comes, each with the place of its port in [`PORTS`].
    pub fn records(&self) -> Vec<(usize, capture::Record)> {
        let mut all = Vec::new();
        for (port, file) in self.inputs() {
            let place = PORTS.iter().position(|name| *name == port).unwrap_or_default();
            all.extend(capture::read(&file).into_iter().map(|record| (place, record)));
        }
        all.sort_by_key(|(_, record)| record.time);
        all
    }

    /// How many packets Linux put out, by the number of the frame that caused them.
    pub fn expected(&self, rules: Rules) -> BTreeMap<u64, usize> {
        answers(port_files(&self.dir, "out-"), rules).into_iter().map(|(number, out)| (number, out.len())).collect()
    }

    /// Compares what a router wrote to `tx`, one capture a port, with what Linux did.
    pub fn compare(&self, tx: &Path) -> Comparison {
        self.compare_by(tx, Rules::of_group(self.group()))
    }

    /// As [`Case::compare`], by other rules than the group's.
    pub fn compare_by(&self, tx: &Path, rules: Rules) -> Comparison {
        let mut linux = answers(port_files(&self.dir, "out-"), rules);
        let mut noref = answers(port_files(tx, ""), rules);
        let mut different = Vec::new();
        for line in &self.frames {
            let (linux, noref) = (linux.remove(&line.number).unwrap_or_default(), noref.remove(&line.number).unwrap_or_default());
            if linux != noref {
                different.push(Difference { number: line.number, label: line.label.clone(), linux, noref });
            }
        }
        // Linux was watched until the last frame; what a timer sends later has nothing to be held against.
        let end = self.frames.last().map_or(0, |line| line.number);
        let stray = noref.into_iter().filter(|(number, _)| *number <= end);
        different.extend(stray.map(|(number, noref)| Difference { number, label: "no such frame".into(), linux: Vec::new(), noref }));
        Comparison { case: self.name.clone(), frames: self.frames.len(), different }
    }
}

/// How two routers are compared.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Rules {
    /// What is free.
    pub mask: Mask,
    /// Questions for a neighbour that repeat an earlier one are compared too: both routers' timers see the same time.
    pub repeats: bool,
}

impl Rules {
    /// Those for a group of cases, the first part of a case's name.
    pub fn of_group(group: &str) -> Rules {
        Rules { mask: Mask::of_group(group), repeats: true }
    }

    /// Those where timers see the time of the machine, which may be busy.
    pub fn live(group: &str) -> Rules {
        Rules { repeats: false, ..Rules::of_group(group) }
    }

    /// Those where the running kernel has a part in the answers: it was booted at another time, and its timers run.
    pub fn beside_the_kernel(group: &str) -> Rules {
        let mask = match Mask::of_group(group) {
            Mask::OneBoot => Mask::Lab,
            mask => mask,
        };
        Rules { mask, repeats: false }
    }
}

/// How a case went.
#[derive(Clone, Debug)]
pub struct Comparison {
    /// The case's name.
    pub case: String,
    /// Frames compared.
    pub frames: usize,
    /// Those that caused something else than with Linux.
    pub different: Vec<Difference>,
}

/// One frame that caused something else than with Linux.
#[derive(Clone, Debug)]
pub struct Difference {
    /// The frame's number.
    pub number: u64,
    /// What the frame is.
    pub label: String,
    linux: Vec<(String, Vec<u8>)>,
    noref: Vec<(String, Vec<u8>)>,
}

impl Difference {
    /// True when the same packets left by the same ports, and at most the flow labels of their outermost IPv6 headers differ.
    pub fn is_only_a_flow_label(&self) -> bool {
        let without_label = |(port, bytes): &(String, Vec<u8>)| {
            let mut bytes = bytes.clone();
            if let (Some([0x86, 0xdd]), Some(field)) = (bytes_at(&bytes, 12), bytes.get_mut(15..18)) {
                field[0] &= 0xf0;
                field[1..].fill(0);
            }
            (port.clone(), bytes)
        };
        let all = |out: &[(String, Vec<u8>)]| {
            let mut out: Vec<_> = out.iter().map(without_label).collect();
            out.sort();
            out
        };
        all(&self.linux) == all(&self.noref)
    }
}

impl fmt::Display for Difference {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let summary = |out: &[(String, Vec<u8>)]| match out {
            [] => "nothing".to_owned(),
            out => out.iter().map(|(port, bytes)| format!("{port}: {} bytes", bytes.len())).collect::<Vec<_>>().join(", "),
        };
        write!(f, "frame {} ({}): Linux sends {}; noref {}", self.number, self.label, summary(&self.linux), summary(&self.noref))?;
        for ((port, linux), (other, noref)) in self.linux.iter().zip(&self.noref) {
            let at = linux.iter().zip(noref).position(|(a, b)| a != b).unwrap_or(linux.len().min(noref.len()));
            if port == other && linux != noref {
                let piece = |bytes: &[u8]| bytes[at..].iter().take(16).map(|byte| format!("{byte:02x}")).collect::<String>();
                write!(f, "\n    {port}, from byte {at}: Linux {} noref {}", piece(linux), piece(noref))?;
            }
        }
        Ok(())
    }
}

fn answers(files: Vec<(String, PathBuf)>, rules: Rules) -> Answers {
    let mut answers = Answers::new();
    let mut questions = Questions::default();
    for (port, file) in files {
        for mut record in capture::read(&file) {
            rules.mask.apply(&mut record.bytes);
            if !rules.repeats && questions.is_repeated(&port, &record.bytes) {
                continue;
            }
            let number = record.time.0 / SPACING;
            answers.entry(number).or_default().push((port.clone(), record.bytes));
        }
    }
    answers.values_mut().for_each(|out| out.sort());
    answers
}

fn lines(file: &Path) -> Vec<Line> {
    let text = fs::read_to_string(file).unwrap_or_else(|e| panic!("{}: {e}", file.display()));
    let line = |line: &str| {
        let mut columns = line.split('\t');
        let number = columns.next().and_then(|number| number.parse().ok()).unwrap_or_else(|| panic!("{}: {line}", file.display()));
        Line { number, label: columns.nth(1).unwrap_or_default().to_owned() }
    };
    text.lines().skip(1).filter(|text| !text.is_empty()).map(line).collect()
}

/// The files `<prefix>PORT.pcap` in a directory, with their ports.
fn port_files(dir: &Path, prefix: &str) -> Vec<(String, PathBuf)> {
    let entries = entries(dir).into_iter().filter_map(|path| {
        let port = file_name(&path).strip_prefix(prefix)?.strip_suffix(".pcap")?.to_owned();
        Some((port, path))
    });
    entries.collect()
}

fn directories(dir: &Path) -> Vec<PathBuf> {
    entries(dir).into_iter().filter(|path| path.is_dir()).collect()
}

/// Two bytes at `at`; none when they lie outside.
fn bytes_at(bytes: &[u8], at: usize) -> Option<[u8; 2]> {
    bytes.get(at..at + 2)?.try_into().ok()
}

/// What is in a directory, sorted.
fn entries(dir: &Path) -> Vec<PathBuf> {
    let entries = fs::read_dir(dir).unwrap_or_else(|e| panic!("{}: {e}", dir.display()));
    let mut paths: Vec<_> = entries.map(|entry| entry.unwrap_or_else(|e| panic!("{}: {e}", dir.display())).path()).collect();
    paths.sort();
    paths
}

fn file_name(path: &Path) -> &str {
    path.file_name().and_then(|name| name.to_str()).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::replay::Scratch;
    use crate::root;

    #[test]
    fn every_frame_that_goes_in_has_a_line() {
        for case in Case::all(&root().join("tests/golden")) {
            let times = case.inputs().iter().flat_map(|(_, file)| capture::read(file)).map(|record| record.time).collect::<Vec<_>>();
            let mut numbers: Vec<_> = times.iter().map(|time| time.0 / SPACING).collect();
            numbers.sort();
            let lines: Vec<_> = case.frames.iter().map(|line| line.number).collect();
            assert_eq!(numbers, lines, "{}", case.name);
        }
    }

    #[test]
    fn a_router_that_sends_nothing_differs_exactly_where_linux_sends() {
        let cases = Case::all(&root().join("tests/golden"));
        let case = cases.iter().find(|case| case.name == "srv6_end/End").unwrap();
        let comparison = case.compare(Scratch::new().path());
        assert_eq!(comparison.frames, case.frames.len());
        assert!(comparison.different.iter().all(|difference| !difference.linux.is_empty()));
        assert!(comparison.different.iter().any(|difference| difference.label == "SL2->1"));
        assert!(comparison.different.iter().all(|difference| difference.label != "no SRH"));
    }
}

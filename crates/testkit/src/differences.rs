//! Where noref differs from Linux on purpose: `tests/differences.toml`, data beside the golden cases.

use crate::golden::{Comparison, Difference};
use serde::Deserialize;
use std::collections::{BTreeMap, BTreeSet};
use std::fmt::{self, Write as _};
use std::fs;
use std::path::Path;

/// The whole list.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Differences {
    /// What differs on purpose.
    #[serde(default, rename = "difference")]
    pub listed: Vec<Listed>,
    /// Cases that need what is not built yet; they are run and reported, and may differ anywhere.
    #[serde(default)]
    pub not_yet: Vec<NotYet>,
}

/// Frames that differ for one reason.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Listed {
    /// What noref does instead, and why.
    pub reason: String,
    /// The section that noref follows where Linux does not, as in `RFC 8986 §4.5`.
    pub rfc: String,
    /// The one field that may differ; without it anything may.
    #[serde(default)]
    pub only: Option<Field>,
    /// The frames' numbers, by group and case.
    pub frames: BTreeMap<String, BTreeSet<u64>>,
}

/// A field that may be all that differs.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Field {
    /// The flow label of the outermost IPv6 header.
    FlowLabel,
}

/// Cases whose time has not come.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct NotYet {
    /// `group/*` or `group/case`.
    pub cases: String,
    /// What is missing.
    pub missing: String,
}

/// Frames of a case that are described when they differ.
const SHOWN: usize = 12;

/// How a comparison stands against the list.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Judgement {
    /// Frames that are as Linux.
    pub equal: usize,
    /// Frames that differ and are listed.
    pub listed: usize,
    /// Frames that differ and are not listed.
    pub unlisted: Vec<u64>,
    /// Frames that are listed and do not differ.
    pub stale: Vec<u64>,
}

impl Judgement {
    /// True when every frame is as Linux or listed, and none is listed without need.
    pub fn is_good(&self) -> bool {
        self.unlisted.is_empty() && self.stale.is_empty()
    }

    /// What is not good about a comparison, a line each.
    pub fn describe(&self, comparison: &Comparison) -> String {
        let mut text = String::new();
        for difference in comparison.different.iter().filter(|difference| self.unlisted.contains(&difference.number)).take(SHOWN) {
            let _ = writeln!(text, "  {difference}");
        }
        if self.unlisted.len() > SHOWN {
            let _ = writeln!(text, "  and {} more", self.unlisted.len() - SHOWN);
        }
        for number in &self.stale {
            let _ = writeln!(text, "  frame {number} is listed and does not differ");
        }
        text
    }
}

/// Of several cases.
#[derive(Clone, Copy, Debug, Default)]
pub struct Totals {
    /// Cases compared.
    pub cases: usize,
    /// Frames compared.
    pub frames: usize,
    /// Those that are as Linux.
    pub equal: usize,
    /// Those that differ and are listed.
    pub listed: usize,
}

impl Totals {
    /// Adds a case.
    pub fn add(&mut self, comparison: &Comparison, judgement: &Judgement) {
        self.cases += 1;
        self.frames += comparison.frames;
        self.equal += judgement.equal;
        self.listed += judgement.listed;
    }
}

impl fmt::Display for Totals {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Totals { cases, frames, equal, listed } = self;
        write!(f, "{cases} cases, {frames} frames compared: {equal} equal, {listed} listed as different")
    }
}

impl Differences {
    /// Reads the list.
    ///
    /// # Panics
    /// When the file is missing or is not such a list.
    pub fn read(file: &Path) -> Differences {
        let text = fs::read_to_string(file).unwrap_or_else(|e| panic!("{}: {e}", file.display()));
        toml::from_str(&text).unwrap_or_else(|e| panic!("{}: {e}", file.display()))
    }

    /// What a case still waits for, if it does.
    pub fn not_yet(&self, case: &str) -> Option<&NotYet> {
        self.not_yet.iter().find(|entry| match entry.cases.strip_suffix('*') {
            Some(prefix) => case.starts_with(prefix),
            None => entry.cases == case,
        })
    }

    /// Holds a comparison against the list.
    pub fn judge(&self, comparison: &Comparison) -> Judgement {
        let mut judgement = Judgement { equal: comparison.frames.saturating_sub(comparison.different.len()), ..Judgement::default() };
        for difference in &comparison.different {
            match self.rows(&comparison.case).any(|(row, frames)| frames.contains(&difference.number) && row.covers(difference)) {
                true => judgement.listed += 1,
                false => judgement.unlisted.push(difference.number),
            }
        }
        let differs = |number: &u64| comparison.different.iter().any(|difference| difference.number == *number);
        judgement.stale = self.rows(&comparison.case).flat_map(|(_, frames)| frames).copied().filter(|number| !differs(number)).collect();
        judgement
    }

    /// The numbers of a case's frames that are listed.
    pub fn frames(&self, case: &str) -> BTreeSet<u64> {
        self.rows(case).flat_map(|(_, frames)| frames).copied().collect()
    }

    /// The rows that name frames of a case, with these frames.
    fn rows<'a>(&'a self, case: &'a str) -> impl Iterator<Item = (&'a Listed, &'a BTreeSet<u64>)> {
        self.listed.iter().filter_map(move |row| row.frames.get(case).map(|frames| (row, frames)))
    }
}

impl Listed {
    /// True when nothing differs but what may.
    fn covers(&self, difference: &Difference) -> bool {
        match self.only {
            None => true,
            Some(Field::FlowLabel) => difference.is_only_a_flow_label(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::golden::Case;
    use crate::replay::Scratch;
    use crate::root;

    const LIST: &str = r#"
        [[difference]]
        reason = "shown here"
        rfc = "RFC 8986 §4.1"
        frames = { "srv6_end/End" = [0, 2] }

        [[difference]]
        reason = "but these differ in more"
        rfc = "RFC 6437 §3"
        only = "flow-label"
        frames = { "srv6_end/End" = [1] }

        [[not_yet]]
        cases = "vxlan/*"
        missing = "tunnels"
    "#;

    #[test]
    fn a_difference_must_be_listed_and_a_listed_one_must_differ() {
        let list: Differences = toml::from_str(LIST).unwrap();
        let case = Case::all(&root().join("tests/golden")).into_iter().find(|case| case.name == "srv6_end/End").unwrap();
        let judgement = list.judge(&case.compare(Scratch::new().path()));
        assert_eq!((judgement.listed, judgement.stale), (1, vec![2]));
        assert!(judgement.unlisted.contains(&1) && !judgement.unlisted.contains(&0));
    }

    #[test]
    fn a_star_stands_for_every_case_of_a_group() {
        let list: Differences = toml::from_str(LIST).unwrap();
        assert!(list.not_yet("vxlan/v4_default").is_some());
        assert!(list.not_yet("srv6_end/End").is_none());
    }

    #[test]
    fn the_list_names_cases_and_frames_that_exist() {
        let cases = Case::all(&root().join("tests/golden"));
        for (name, numbers) in Differences::read(&root().join("tests/differences.toml")).listed.iter().flat_map(|row| &row.frames) {
            let case = cases.iter().find(|case| case.name == *name).unwrap_or_else(|| panic!("no case {name}"));
            for number in numbers {
                assert!(case.frames.iter().any(|line| line.number == *number), "{name} has no frame {number}");
            }
        }
    }
}

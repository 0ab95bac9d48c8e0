//! What was measured, as the JSON document has it (its layout: docs/bench.md).

use route::DropReason;
use serde::Serialize;

use super::live::LiveRow;
use super::machine::Machine;
use super::patches::Patches;

/// The result of a run. A series that was not asked for is not there.
#[derive(Serialize, Debug)]
pub struct Report {
    /// Version of this layout.
    pub version: u32,
    pub machine: Machine,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub settings: Option<Settings>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub seg6local: Option<Vec<Row>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub rules: Option<Vec<Row>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub lpm: Option<Vec<LookupRow>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub update: Option<Update>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub live: Option<Vec<LiveRow>>,
}

impl Report {
    /// One without figures yet.
    pub fn new(machine: Machine) -> Report {
        Report { version: VERSION, machine, settings: None, seg6local: None, rules: None, lpm: None, update: None, live: None }
    }
}

/// The version of the layout.
pub const VERSION: u32 = 1;

/// What was asked for, of the series with frames in memory.
#[derive(Serialize, Debug)]
pub struct Settings {
    /// Frames of each worker in a round, at least.
    pub frames: u64,
    pub rounds: usize,
    /// Prefixes in the tables.
    pub prefixes_ipv4: usize,
    pub prefixes_ipv6: usize,
}

/// A way, measured with so many workers.
#[derive(Serialize, Debug)]
pub struct Row {
    pub way: String,
    /// `one` or `random`: the destinations of the packets.
    pub destinations: &'static str,
    /// Length of the frames that come in, bytes.
    pub bytes: usize,
    /// Tables that are asked in vain before the one with the route, beside `local`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub tables_missed: Option<usize>,
    /// Rules that are for other packets.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub other_rules: Option<usize>,
    pub workers: usize,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub noref: Option<Figure>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub counted: Option<Figure>,
    /// Borrowed against counted, packets a second.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub ratio: Option<Spread>,
    /// Borrowed with these workers against borrowed with one, packets a second.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub against_one_worker: Option<Spread>,
    /// What the author of the kernel patches measured of this way, elsewhere.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub patches: Option<Patches>,
}

impl Row {
    /// True when every packet was forwarded.
    pub fn is_whole(&self) -> bool {
        self.figures().all(|figure| figure.forwarded == figure.offered)
    }

    pub fn figures(&self) -> impl Iterator<Item = &Figure> {
        self.noref.iter().chain(&self.counted)
    }
}

/// A way, measured with its routes carried in one way.
#[derive(Serialize, Clone, Debug)]
pub struct Figure {
    /// Packets of all workers together, millions a second.
    pub mpps: Spread,
    /// Nanoseconds of a worker for a packet.
    pub ns: Spread,
    /// Clocks of the time stamp counter for a packet.
    pub clocks: Option<Spread>,
    /// Packets that came in, in all rounds and before them.
    pub offered: u64,
    /// Those of them that left as they should.
    pub forwarded: u64,
    /// Why others were dropped.
    pub drops: Vec<Drop>,
}

/// Packets dropped for a reason.
#[derive(Serialize, Clone, Debug)]
pub struct Drop {
    pub reason: &'static str,
    pub packets: u64,
}

impl Drop {
    /// The reasons for which packets were dropped, by how many there are of each.
    pub fn all(packets: impl Fn(DropReason) -> u64) -> Vec<Drop> {
        let drops = DropReason::ALL.iter().map(|&reason| Drop { reason: reason.word(), packets: packets(reason) });
        drops.filter(|drop| drop.packets != 0).collect()
    }
}

/// Of several rounds.
#[derive(Serialize, Clone, Copy, PartialEq, Debug, Default)]
pub struct Spread {
    pub best: f64,
    pub median: f64,
}

impl Spread {
    /// Of rates: the highest is the best.
    pub fn of_rates(rates: impl Iterator<Item = f64>) -> Spread {
        let mut rates: Vec<f64> = rates.collect();
        rates.sort_by(f64::total_cmp);
        rates.last().zip(rates.get(rates.len() / 2)).map_or_else(Spread::default, |(&best, &median)| Spread { best, median })
    }

    /// Of costs: the lowest is the best. None of none.
    pub fn of_costs(costs: impl Iterator<Item = f64>) -> Option<Spread> {
        let mut costs: Vec<f64> = costs.collect();
        costs.sort_by(f64::total_cmp);
        costs.first().zip(costs.get(costs.len() / 2)).map(|(&best, &median)| Spread { best, median })
    }

    pub fn map(self, f: impl Fn(f64) -> f64) -> Spread {
        Spread { best: f(self.best), median: f(self.median) }
    }

    /// How many times the other it is: the best against the best, the median against the median.
    pub fn against(self, other: Spread) -> Spread {
        Spread { best: self.best / other.best, median: self.median / other.median }
    }
}

/// Lookups in the match table alone.
#[derive(Serialize, Debug)]
pub struct LookupRow {
    /// `ipv4` or `ipv6`.
    pub family: &'static str,
    /// `random`, `zipf` or `sequential`.
    pub destinations: &'static str,
    /// Nanoseconds a lookup, one by one.
    pub alone_ns: Spread,
    /// Nanoseconds a lookup, in batches.
    pub batch_ns: Spread,
    /// Lookups of a round.
    pub lookups: usize,
    /// Destinations for which no prefix was found: there should be none.
    pub missed: usize,
    pub prefixes: usize,
    /// Memory of the match table, bytes.
    pub memory: usize,
}

/// Changes of routes under traffic.
#[derive(Serialize, Debug)]
pub struct Update {
    pub rates: Vec<UpdateRow>,
    pub latency: Latency,
    /// Packets that came to the worker meanwhile.
    pub offered: u64,
    pub forwarded: u64,
    pub drops: Vec<Drop>,
}

/// Changes a second, so many at once.
#[derive(Serialize, Debug)]
pub struct UpdateRow {
    /// `calls` of the tables' writer, or `lines` of the language.
    pub by: &'static str,
    /// Changes in a commit.
    pub at_once: usize,
    pub changes: usize,
    /// Millions a second.
    pub millions: f64,
    /// Packets of the worker meanwhile, millions a second.
    pub traffic_mpps: f64,
}

/// From asking for a change until a packet has left by it.
#[derive(Serialize, Debug)]
pub struct Latency {
    pub changes: usize,
    /// Changes that no packet had left by after a second: there should be none.
    pub unseen: usize,
    /// Microseconds.
    pub p50_us: f64,
    pub p99_us: f64,
    pub max_us: f64,
}

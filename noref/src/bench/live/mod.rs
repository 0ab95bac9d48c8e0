//! Routers on real ports: the load is raised until packets are lost. The kernel and noref in the same lab with the same source, one after the other in each run; or
//! noref between two memif interfaces of dpdk-testpmd.

mod search;
mod testpmd;
mod veth;

use std::path::PathBuf;
use std::time::Duration;

use clap::{Args, ValueEnum};
use serde::Serialize;

use self::search::{Probe, highest};
use self::testpmd::Testpmd;
use self::veth::Veth;
use super::Bench;
use super::full_table::{Prefixes, Way, ways};
use super::machine::{cores, count};
use super::report::Spread;
use crate::failure::Failure;
use crate::lab::directory::Directory;
use crate::lab::namespace::{self, Namespace};
use crate::lab::{Interrupt, Router};
use crate::show::columns::{Align, Columns};

/// The ways that both the kernel and noref know without VRFs, in the order in which they are measured.
const WAYS: [&str; 7] = ["IPv6", "End", "End.DX4", "End.DT6", "IPv4", "H.Encaps of IPv4", "H.Encaps of IPv6"];
/// Different packets where destinations are random.
const DESTINATIONS: usize = 1024;
/// Seconds of a probe, and runs, where nothing else is said.
const TIME: f64 = 1.0;
const RUNS: u32 = 3;

/// What is for this series alone.
#[derive(Args, Clone, PartialEq, Debug, Default)]
#[command(next_help_heading = "Options of live")]
pub struct LiveArgs {
    /// What makes the load
    #[arg(long, value_name = "HOW")]
    pub generator: Option<Generator>,

    /// How long each rate is offered, seconds; without it 1
    #[arg(long, value_name = "S", value_parser = parse_time)]
    pub time: Option<f64>,

    /// How often each rate is searched for; without it 3
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..=1000))]
    pub runs: Option<u32>,

    /// Ways to be measured, by their names in the table; without it all
    #[arg(long, value_name = "WAY,…", value_delimiter = ',', value_parser = parse_way)]
    pub ways: Vec<&'static str>,

    /// Where packets go; without it to one destination
    #[arg(long, value_name = "HOW")]
    pub destinations: Option<Destinations>,
}

/// What makes the load.
#[derive(ValueEnum, Clone, Copy, PartialEq, Eq, Debug)]
pub enum Generator {
    /// The kernel itself, by a program on live frames, over veth pairs: the kernel and noref are compared
    Xdp,
    /// dpdk-testpmd, over memif: noref alone
    Testpmd,
}

/// Where packets go.
#[derive(ValueEnum, Clone, Copy, PartialEq, Eq, Debug)]
pub enum Destinations {
    /// All to one
    One,
    /// To many, where the way looks a destination up: by their last 16 bits (xdp), or 1024 of them (testpmd)
    Random,
}

fn parse_time(text: &str) -> Result<f64, String> {
    let time = text.parse().ok().filter(|time| (0.01..=3600.0).contains(time));
    time.ok_or_else(|| format!("{text} is no time: write seconds, from 0.01 to 3600"))
}

fn parse_way(text: &str) -> Result<&'static str, String> {
    let way = WAYS.into_iter().find(|way| way.eq_ignore_ascii_case(text));
    way.ok_or_else(|| format!("{text:?} is none of the ways {}", WAYS.join(", ")))
}

/// The number of workers, when it can be measured with.
pub fn check(generator: Generator, workers: &[u16]) -> Result<usize, String> {
    let workers = match *workers {
        [] => 1,
        [workers] => usize::from(workers),
        _ => return Err("bench live: give one number of workers to --workers".into()),
    };
    match (generator, cores()) {
        (Generator::Testpmd, _) if workers > 1 => {
            Err("bench live --generator testpmd measures one worker: testpmd sends by one queue".into())
        }
        (_, cores) if cores < 2 => Err("bench live takes two cores: one for who makes the load".into()),
        (_, cores) if workers > cores => Err(format!("--workers {workers}: there are {}", count(cores, "core"))),
        _ => Ok(workers),
    }
}

/// A way through a router on real ports.
#[derive(Serialize, Debug)]
pub struct LiveRow {
    pub way: String,
    /// `one` or `random`.
    pub destinations: &'static str,
    /// Length of the frames that come in, bytes.
    pub bytes: usize,
    /// `veth` or `memif`.
    pub over: &'static str,
    /// `kernel` or `noref`.
    pub by: &'static str,
    pub workers: usize,
    /// Packets that came out at the highest rate with at most 0.5 % lost, millions a second.
    pub mpps: Spread,
    /// Nanoseconds of the workers' busy time for a packet, then.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub busy_ns: Option<Spread>,
    /// Against the kernel, packets a second.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub against_kernel: Option<Spread>,
    /// The probe at that rate, of each run.
    pub runs: Vec<Probe>,
}

impl LiveRow {
    fn new(way: &Way, over: &'static str, by: &'static str, workers: usize, runs: Vec<Probe>) -> LiveRow {
        LiveRow {
            way: way.name.to_owned(),
            destinations: if way.random { "random" } else { "one" },
            bytes: way.frames.frame_len(),
            over,
            by,
            workers,
            mpps: Spread::of_rates(runs.iter().map(|probe| probe.rate() / 1e6)),
            busy_ns: Spread::of_costs(runs.iter().filter_map(|probe| probe.busy_ns)),
            against_kernel: None,
            runs,
        }
    }

    /// True when there was a rate that passed in each run.
    pub fn is_whole(&self) -> bool {
        self.runs.iter().all(Probe::passes)
    }

    fn cells(&self) -> Vec<String> {
        let pair = |spread: Spread| format!("{:.2} {:.2}", spread.best, spread.median);
        let most = self.runs.iter().map(Probe::loss).fold(0.0, f64::max);
        vec![
            self.way.clone(),
            self.destinations.to_owned(),
            self.bytes.to_string(),
            self.over.to_owned(),
            self.by.to_owned(),
            self.workers.to_string(),
            pair(self.mpps),
            format!("{:.2} %", most * 100.0),
            self.busy_ns.map_or_else(String::new, |ns| format!("{:.0} {:.0}", ns.best, ns.median)),
            self.against_kernel.map_or_else(String::new, pair),
        ]
    }
}

/// How busy a router's workers were, at one moment.
struct Worked {
    packets: u64,
    busy: f64,
}

impl Worked {
    fn look(router: Option<&Router>) -> Result<Worked, Failure> {
        let workers = router.map(Router::workers).transpose()?.unwrap_or_default();
        Ok(Worked {
            packets: workers.iter().map(|row| row.received.packets).sum(),
            busy: workers.iter().map(|row| row.busy * row.seconds).sum(),
        })
    }

    /// Nanoseconds for a packet since then.
    fn since(&self, router: Option<&Router>) -> Result<Option<f64>, Failure> {
        let now = Worked::look(router)?;
        let packets = now.packets.saturating_sub(self.packets);
        Ok((packets > 0).then(|| (now.busy - self.busy) * 1e9 / packets as f64))
    }
}

impl Bench {
    /// Measures and prints the rows.
    ///
    /// # Errors
    /// When the lab cannot be made, somebody interrupts, or it cannot be printed.
    pub fn live(&mut self, args: &LiveArgs) -> Result<Vec<LiveRow>, Failure> {
        namespace::possible().map_err(|why| Failure::unusable(format!("bench live makes network namespaces: {why}; run it as root")))?;
        let interrupt = Interrupt::new()?;
        let prefixes = prefixes();
        let ways = chosen(&prefixes, args);
        self.stdout.line(
            "\nlive: the highest rate with at most 0.5 % lost. Of two figures the first is the best run, the second the median; busy is a worker's time for a packet\n",
        )?;
        let mut columns = columns();
        let lab = format!("noref-bench-{}", std::process::id());
        let path = PathBuf::from(format!("/run/{lab}"));
        let directory = Directory::new(path.clone(), 0o700).map_err(|error| Failure::unusable(format!("{}: {error}", path.display())))?;
        let mut live = Live { args, interrupt, prefixes, lab, directory, workers: self.workers.first().copied().unwrap_or(1) };
        let mut rows = Vec::new();
        let bed = match args.generator {
            Some(Generator::Testpmd) => testpmd::possible().and_then(|()| Namespace::new(live.lab.clone())).map(Bed::Memif),
            _ => Veth::new(&live.lab, &live.prefixes, live.workers).map(Bed::Veth),
        };
        let bed = bed.map_err(Failure::unusable)?;
        for way in &ways {
            let measured = match &bed {
                Bed::Veth(veth) => live.over_veth(veth, way)?,
                Bed::Memif(namespace) => vec![live.over_memif(namespace, way)?],
            };
            let cells: Vec<_> = measured.iter().map(LiveRow::cells).collect();
            self.stdout.print(|output| columns.print(&cells, output))?;
            self.stdout.flush()?;
            rows.extend(measured);
        }
        Ok(rows)
    }
}

/// Where packets go to and come from.
enum Bed {
    Veth(Veth),
    Memif(Namespace),
}

/// What all ways are measured with.
struct Live<'a> {
    args: &'a LiveArgs,
    interrupt: Interrupt,
    prefixes: Prefixes,
    /// What the names of its namespaces begin with.
    lab: String,
    directory: Directory,
    workers: usize,
}

impl Live<'_> {
    fn time(&self) -> Duration {
        Duration::from_secs_f64(self.args.time.unwrap_or(TIME))
    }

    fn runs(&self) -> u32 {
        self.args.runs.unwrap_or(RUNS)
    }

    /// The kernel and noref in turn, run by run.
    fn over_veth(&self, veth: &Veth, way: &Way) -> Result<Vec<LiveRow>, Failure> {
        let ends = veth.open(way).map_err(Failure::incomplete)?;
        let (mut kernel, mut noref) = (Vec::new(), Vec::new());
        for _ in 0..self.runs() {
            kernel.push(highest(|rate| ends.offer(rate, self.time(), None, &self.interrupt))?);
            let router = veth.start(&self.directory.path().join("noref")).map_err(Failure::incomplete)?;
            noref.push(highest(|rate| ends.offer(rate, self.time(), Some(&router), &self.interrupt))?);
        }
        let kernel = LiveRow::new(way, "veth", "kernel", self.workers, kernel);
        let mut noref = LiveRow::new(way, "veth", "noref", self.workers, noref);
        noref.against_kernel = Some(noref.mpps.against(kernel.mpps));
        Ok(vec![kernel, noref])
    }

    fn over_memif(&mut self, namespace: &Namespace, way: &Way) -> Result<LiveRow, Failure> {
        let mut testpmd = Testpmd::start(namespace, self.directory.path(), &self.prefixes, way).map_err(Failure::incomplete)?;
        let runs = (0..self.runs()).map(|_| testpmd.offer(self.time(), &self.interrupt)).collect::<Result<_, _>>()?;
        Ok(LiveRow::new(way, "memif", "noref", 1, runs))
    }
}

/// A prefix of each family, of those set aside for measuring (RFC 2544, RFC 5180).
fn prefixes() -> Prefixes {
    Prefixes { v4: vec![([198, 18, 0, 0].into(), 15)], v6: vec![([0x2001, 2, 0, 0, 0, 0, 0, 0].into(), 48)] }
}

/// The ways asked for.
fn chosen(prefixes: &Prefixes, args: &LiveArgs) -> Vec<Way> {
    let wanted = if args.ways.is_empty() { &WAYS[..] } else { &args.ways };
    let random = args.destinations == Some(Destinations::Random);
    let mut all = ways(prefixes, DESTINATIONS).unwrap_or_default();
    // Those with one destination stand first; where there is no other it is the one.
    if random {
        all.reverse();
    }
    let take = |name: &&str| all.iter().position(|way| way.name == *name);
    let places: Vec<usize> = wanted.iter().filter_map(take).collect();
    let mut all: Vec<Option<Way>> = all.into_iter().map(Some).collect();
    places.into_iter().filter_map(|place| all.get_mut(place).and_then(Option::take)).collect()
}

fn columns() -> Columns {
    let right = |name| (name, Align::Right);
    Columns::new(&[
        ("way             ", Align::Left),
        ("to    ", Align::Left),
        right("bytes"),
        ("over ", Align::Left),
        ("by    ", Align::Left),
        right("workers"),
        right("       Mpps"),
        right("  lost"),
        right("busy, ns"),
        right("noref/kernel"),
    ])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_way_has_packets_with_one_and_with_many_destinations() {
        let prefixes = prefixes();
        for destinations in [Destinations::One, Destinations::Random] {
            let args = LiveArgs { destinations: Some(destinations), ..LiveArgs::default() };
            let chosen = chosen(&prefixes, &args);
            assert_eq!(chosen.iter().map(|way| way.name).collect::<Vec<_>>(), WAYS);
            let random: Vec<_> = chosen.iter().filter(|way| way.random).map(|way| way.name).collect();
            let expected: &[&str] = if destinations == Destinations::One { &[] } else { &["IPv6", "End", "End.DT6", "IPv4"] };
            assert_eq!(random, expected);
        }
    }
}

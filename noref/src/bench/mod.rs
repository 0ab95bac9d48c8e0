//! `noref bench`: how fast the router is on this machine, with routes borrowed and with routes counted.
//!
//! ```text
//! prefixes ──► Router ──► a series: ways × workers ──► measure: threads on cores of their own, rounds ──► Row ──► table, JSON, plot
//! ```
//! Frames come from memory and go to memory, so that no device, driver or kernel is measured. docs/bench.md says how to read the figures.

mod full_table;
mod live;
mod lookups;
mod machine;
mod measure;
mod patches;
mod plot;
mod report;
mod rules;
mod seg6local;
mod svg;
mod table;
mod update;

use std::fs;
use std::path::PathBuf;
use std::time::Instant;

use clap::{Args, ValueEnum};

use self::full_table::{DESTINATIONS, Prefixes, Router, ways};
use self::live::LiveArgs;
use self::machine::Machine;
use self::report::{Report, Settings};
use crate::args::Refs;
use crate::failure::Failure;
use crate::stderr::say;
use crate::stdout::Stdout;

/// Measure how fast this machine forwards with routes borrowed and counted
///
/// Sends frames from memory through the whole router and back to memory, with the full Internet table, on one core and on several at once. It needs no
/// privileges and no devices, except for live. All series take some minutes; the machine should do nothing else meanwhile.
#[derive(Args, Debug)]
#[command(after_help = EXAMPLES)]
pub struct BenchArgs {
    /// What to measure
    #[arg(value_enum, default_value = "all")]
    pub series: Series,

    /// Numbers of workers to measure with, each worker on a core of its own; without it 1 and 2, as far as there are cores
    #[arg(long, value_name = "N,…", value_delimiter = ',', value_parser = clap::value_parser!(u16).range(1..=256))]
    pub workers: Vec<u16>,

    /// How packets carry their routes; without it both ways
    #[arg(long, value_name = "HOW")]
    pub refs: Option<BenchRefs>,

    /// The prefixes of the tables, a line each, plain or compressed with gzip; without it the full Internet table, benches/data of noref's repository
    #[arg(long, value_name = "FILE")]
    pub routes: Option<PathBuf>,

    /// Frames of each worker in a round, rounded up to whole bursts of 256: fewer are quicker and say less; without it 1048576
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u64).range(1..=1 << 32))]
    pub frames: Option<u64>,

    /// Write the figures as one JSON document (its layout: docs/bench.md)
    #[arg(long, value_name = "FILE")]
    pub json: Option<PathBuf>,

    /// Draw packets a second as bars
    #[arg(long, value_name = "FILE")]
    pub svg: Option<PathBuf>,

    #[command(flatten)]
    pub live: LiveArgs,
}

const EXAMPLES: &str = "\
Examples:
  noref bench
  noref bench seg6local --workers 1,2 --json bench.json --svg bench.svg
  noref bench lpm --routes prefixes.txt
  noref bench seg6local --frames 4096
  noref bench live --generator xdp
  noref bench live --generator testpmd --ways End --time 5 --json live.json

Exit status:
  0  everything was measured, and every packet was forwarded
  1  packets were not forwarded, or the result could not be written
  2  arguments or the prefixes could not be used, or what live takes is not there";

/// What is measured together.
#[derive(ValueEnum, Clone, Copy, PartialEq, Eq, Debug)]
#[value(rename_all = "lower")]
pub enum Series {
    /// SRv6 behaviours and headends, plain IPv6 and IPv4
    Seg6local,
    /// Tables that rules lead to in vain before the one with the route
    Rules,
    /// The match table alone
    Lpm,
    /// Changes of routes under traffic
    Update,
    /// All of these
    All,
    /// A router on real ports, under a load that is raised until it loses packets; takes root
    Live,
}

/// How packets carry their routes.
#[derive(ValueEnum, Clone, Copy, PartialEq, Eq, Debug)]
pub enum BenchRefs {
    /// Each way after the other, and how many times faster borrowed ones are
    Both,
    /// Borrowed: no packet writes to a route
    Noref,
    /// Counted as in a kernel without the patches
    Counted,
}

impl BenchRefs {
    fn each(self) -> &'static [Refs] {
        match self {
            BenchRefs::Both => &[Refs::Noref, Refs::Counted],
            BenchRefs::Noref => &[Refs::Noref],
            BenchRefs::Counted => &[Refs::Counted],
        }
    }
}

/// Frames of each worker in a round, where nothing else is said.
const FRAMES: u64 = 1 << 20;

/// What every series is measured with.
struct Bench {
    stdout: Stdout,
    workers: Vec<usize>,
    refs: &'static [Refs],
    frames: u64,
}

/// Measures and tells.
///
/// # Errors
/// When arguments or the prefixes cannot be used, a packet was not forwarded, or the result cannot be written.
pub fn run(args: &BenchArgs) -> Result<(), Failure> {
    let workers = check(args).map_err(Failure::unusable)?;
    let begin = Instant::now();
    // Before anything that makes a load of its own.
    let machine = Machine::look();
    let frames = args.frames.unwrap_or(FRAMES);
    let mut bench = Bench { stdout: Stdout::new(), workers, refs: args.refs.unwrap_or(BenchRefs::Both).each(), frames };
    bench.stdout.line(&machine)?;
    for warning in &machine.warnings {
        bench.stdout.line(format_args!("warning: {warning}"))?;
    }
    bench.stdout.flush()?;

    let mut report = Report::new(machine);
    if args.series == Series::Live {
        report.live = Some(bench.live(&args.live)?);
    } else {
        let prefixes = match &args.routes {
            Some(path) => Prefixes::read(path),
            None => Prefixes::full(),
        };
        let prefixes = prefixes.map_err(Failure::unusable)?;
        report.settings =
            Some(Settings { frames, rounds: measure::ROUNDS, prefixes_ipv4: prefixes.v4.len(), prefixes_ipv6: prefixes.v6.len() });
        bench.measure(args, prefixes, &mut report)?;
    }
    bench.stdout.line(format_args!("\ntook {:.0} s", begin.elapsed().as_secs_f64()))?;
    bench.stdout.flush()?;

    if let Some(path) = &args.json {
        let text = serde_json::to_string_pretty(&report).map_err(|error| Failure::incomplete(format!("{}: {error}", path.display())))?;
        write(path, &(text + "\n"))?;
    }
    if let Some(path) = &args.svg {
        write(path, &plot::draw(&report))?;
    }
    report.complaint().map_or(Ok(()), |complaint| Err(Failure::incomplete(complaint)))
}

impl Bench {
    /// Measures the series asked for, one after the other.
    fn measure(&mut self, args: &BenchArgs, prefixes: Prefixes, report: &mut Report) -> Result<(), Failure> {
        let wanted = |series| [series, Series::All].contains(&args.series);
        let name = args.routes.as_ref().map_or_else(|| "the full Internet table".to_owned(), |path| path.display().to_string());
        self.stdout.line(format_args!("{name}: {} IPv4 and {} IPv6 prefixes", prefixes.v4.len(), prefixes.v6.len()))?;
        self.stdout.flush()?;
        if prefixes.usable4().is_empty() || prefixes.usable6().is_empty() {
            return Err(Failure::unusable(format!(
                "{name}: packets of both families are sent, and there is no prefix of global unicast addresses (0.0.0.0/8, 10.0.0.0/8 and 127.0.0.0/8 are none) of one of them"
            )));
        }
        if wanted(Series::Lpm) {
            report.lpm = Some(self.lpm(&prefixes)?);
        }
        if args.series == Series::Lpm {
            return Ok(());
        }
        let mut router = Router::new(prefixes).map_err(|errors| Failure::unusable(format!("{name}, as routes: {errors}")))?;
        if wanted(Series::Seg6local) {
            let ways = ways(&router.prefixes, DESTINATIONS).unwrap_or_default();
            report.seg6local = Some(self.seg6local(&router, &ways)?);
        }
        if wanted(Series::Rules) {
            report.rules = Some(self.rules(&mut router)?);
        }
        if args.series == Series::All {
            self.stdout.line("\ntunnel transmit, the third series of kernel patches: not yet, noref has no tunnels")?;
        }
        if wanted(Series::Update) {
            report.update = Some(self.update(&mut router)?);
        }
        Ok(())
    }
}

impl Report {
    /// What is to be complained of: packets that were not forwarded.
    fn complaint(&self) -> Option<String> {
        let rows = self.seg6local.iter().chain(&self.rules).flatten().filter(|row| !row.is_whole()).count();
        let lookups = self.lpm.iter().flatten().filter(|row| row.missed != 0).count();
        let update = self.update.as_ref().is_some_and(|update| update.forwarded != update.offered || update.latency.unseen != 0);
        let live = self.live.iter().flatten().filter(|row| !row.is_whole()).count();
        let bad = rows + lookups + usize::from(update) + live;
        (bad != 0).then(|| format!("in {} not every packet was forwarded or not every lookup answered", machine::count(bad, "row")))
    }
}

/// The numbers of workers, when the arguments can be used.
fn check(args: &BenchArgs) -> Result<Vec<usize>, String> {
    match (args.series, &args.live.generator) {
        (Series::Live, None) => return Err("bench live: write --generator xdp or --generator testpmd, which make the load".into()),
        (Series::Live, Some(generator)) => {
            if args.refs.is_some() || args.routes.is_some() || args.frames.is_some() {
                return Err(
                    "--refs, --routes and --frames are for the series with frames in memory; live has --time, --runs and --ways".into()
                );
            }
            return live::check(*generator, &args.workers).map(|workers| vec![workers]);
        }
        (_, Some(_)) => return Err("--generator is for bench live".into()),
        (_, None) if args.live != LiveArgs::default() => return Err("--time, --runs, --ways and --destinations are for bench live".into()),
        (_, None) => (),
    }
    if matches!(args.series, Series::Lpm | Series::Update) {
        if args.svg.is_some() {
            return Err(
                "--svg draws packets a second of seg6local and rules, and neither is measured here; the figures are in --json".into()
            );
        }
        if args.refs.is_some() || !args.workers.is_empty() {
            return Err(
                "--workers and --refs are for seg6local and rules: lpm takes one thread and no references, update one borrowing worker"
                    .into(),
            );
        }
    }
    let cores = machine::cores();
    let mut workers: Vec<usize> = args.workers.iter().map(|&n| n.into()).collect();
    if workers.is_empty() {
        workers = [1, 2].into_iter().filter(|n| *n <= cores).collect();
    }
    workers.sort_unstable();
    workers.dedup();
    if args.svg.is_some() && workers.len() > plot::SHADES {
        return Err(format!("--svg draws at most {} numbers of workers: give fewer to --workers", plot::SHADES));
    }
    match workers.iter().find(|n| **n > cores) {
        Some(n) => {
            Err(format!("--workers {n}: there are {}, and workers that share one measure the scheduler", machine::count(cores, "core")))
        }
        None => Ok(workers),
    }
}

fn write(path: &PathBuf, text: &str) -> Result<(), Failure> {
    fs::write(path, text).map_err(|error| Failure::incomplete(format!("{}: {error}", path.display())))?;
    say(format_args!("wrote {}", path.display()));
    Ok(())
}

#[cfg(test)]
mod tests {
    use clap::Parser;

    use super::*;
    use crate::args::{Cli, Command};

    fn parse(args: &str) -> Result<Vec<usize>, String> {
        match Cli::try_parse_from(args.split(' ')).map_err(|error| error.to_string())?.command {
            Command::Bench(args) => check(&args),
            other => Err(format!("{other:?}")),
        }
    }

    #[test]
    fn what_is_wrong_with_an_argument_is_said() {
        for (args, message) in [
            ("noref bench live", "--generator xdp or --generator testpmd"),
            ("noref bench live --generator moongen", "[possible values: xdp, testpmd]"),
            ("noref bench live --generator xdp --frames 9", "live has --time, --runs and --ways"),
            ("noref bench live --generator xdp --workers 1,2", "one number of workers"),
            ("noref bench live --generator testpmd --workers 2", "one worker"),
            ("noref bench live --generator xdp --ways End.DT4", "\"End.DT4\" is none of the ways"),
            ("noref bench live --generator xdp --time 0", "0 is no time"),
            ("noref bench lpm --generator xdp", "--generator is for bench live"),
            ("noref bench lpm --runs 2", "are for bench live"),
            ("noref bench tunnels", "[possible values: seg6local, rules, lpm, update, all, live]"),
            ("noref bench --workers 0", "0 is not in 1..=256"),
            ("noref bench --workers 1,256", "workers that share one measure the scheduler"),
            ("noref bench --frames 0", "0 is not in 1.."),
            ("noref bench --refs some", "[possible values: both, noref, counted]"),
            ("noref bench lpm --workers 1", "--workers and --refs are for seg6local and rules"),
            ("noref bench update --refs noref", "--workers and --refs are for seg6local and rules"),
            ("noref bench --workers 1,2,3,4,5 --svg x", "at most 4 numbers of workers"),
            ("noref bench lpm --svg x", "--svg draws packets a second of seg6local and rules"),
        ] {
            let error = parse(args).unwrap_err();
            assert!(error.contains(message), "{args}: expected {message:?} in {error}");
        }
    }

    #[test]
    fn without_a_word_one_worker_is_measured_and_two_where_there_are_cores() {
        assert!(parse("noref bench").unwrap().starts_with(&[1]));
        assert_eq!(parse("noref bench --workers 1,1").unwrap(), [1]);
    }
}

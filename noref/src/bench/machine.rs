//! What the figures were measured on.

use std::fmt;
use std::fs;
use std::thread;
use std::time::{Duration, Instant};

use port::live::clocks;
use serde::Serialize;

/// Above this load for each core, before anything was measured, others take time from the workers.
const DOUBTFUL: f64 = 0.25;
/// How long the rate of the time stamp counter is measured.
const SAMPLE: Duration = Duration::from_millis(50);

/// The machine and the build.
#[derive(Serialize, Debug)]
pub struct Machine {
    /// The processor's name for itself.
    pub cpu: String,
    /// Cores that the program may run on.
    pub cores: usize,
    /// `uname -sr`.
    pub kernel: String,
    /// Programs that wanted to run, on average, in the last 1, 5 and 15 minutes before the start.
    pub load: Option<[f64; 3]>,
    /// Rate of the time stamp counter, 10⁹ clocks a second.
    pub tsc_ghz: Option<f64>,
    /// `release`, or `debug`, whose figures say nothing.
    pub build: &'static str,
    /// Why the figures are doubtful; empty when they are not.
    pub warnings: Vec<String>,
}

impl Machine {
    /// Looks at the machine, before anything is measured.
    pub fn look() -> Machine {
        let read = |path: &str| fs::read_to_string(path).unwrap_or_default();
        let cores = cores();
        let load = load(&read("/proc/loadavg"));
        let mut warnings = Vec::new();
        if let Some([load, ..]) = load.filter(|[load, ..]| *load > DOUBTFUL * cores as f64) {
            warnings.push(format!(
                "the load was {load:.2} on {} at the start: others took time from the workers, figures are doubtful",
                count(cores, "core")
            ));
        }
        if cfg!(debug_assertions) {
            warnings.push("this is a debug build: its figures say nothing, build with --release".to_owned());
        }
        Machine {
            cpu: cpu(&read("/proc/cpuinfo")),
            cores,
            kernel: format!("Linux {}", read("/proc/sys/kernel/osrelease").trim()),
            load,
            tsc_ghz: tsc_ghz(),
            build: if cfg!(debug_assertions) { "debug" } else { "release" },
            warnings,
        }
    }
}

impl fmt::Display for Machine {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}, {}, {}", self.cpu, count(self.cores, "core"), self.kernel)?;
        if let Some([one, five, fifteen]) = self.load {
            write!(f, ", load {one:.2} {five:.2} {fifteen:.2}")?;
        }
        if let Some(ghz) = self.tsc_ghz {
            write!(f, ", TSC {ghz:.3} GHz")?;
        }
        write!(f, ", noref {} ({})", env!("CARGO_PKG_VERSION"), self.build)
    }
}

/// Cores that the program may run on.
pub fn cores() -> usize {
    thread::available_parallelism().map_or(1, usize::from)
}

/// `1 core`, `2 cores`.
pub fn count(n: usize, what: &str) -> String {
    format!("{n} {what}{}", if n == 1 { "" } else { "s" })
}

fn cpu(cpuinfo: &str) -> String {
    let name = cpuinfo.lines().find_map(|line| line.strip_prefix("model name")?.trim_start().strip_prefix(':'));
    name.map_or_else(|| std::env::consts::ARCH.to_owned(), |name| name.split_whitespace().collect::<Vec<_>>().join(" "))
}

fn load(loadavg: &str) -> Option<[f64; 3]> {
    let mut words = loadavg.split_whitespace().map(|word| word.parse().ok());
    Some([words.next()??, words.next()??, words.next()??])
}

/// The rate of the counter, measured against the system's clock.
fn tsc_ghz() -> Option<f64> {
    let (begin, first) = (Instant::now(), clocks()?);
    thread::sleep(SAMPLE);
    let (took, last) = (begin.elapsed(), clocks()?);
    Some(last.wrapping_sub(first) as f64 / took.as_nanos() as f64)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_machine_is_read_as_the_kernel_writes_it() {
        assert_eq!(cpu("processor\t: 0\nmodel name\t: AMD EPYC  7B13\nstepping\t: 0\n"), "AMD EPYC 7B13");
        assert_eq!(cpu("processor : 0\n"), std::env::consts::ARCH);
        assert_eq!(load("7.77 8.40 9.35 3/512 1234\n"), Some([7.77, 8.40, 9.35]));
        assert_eq!(load(""), None);
    }
}

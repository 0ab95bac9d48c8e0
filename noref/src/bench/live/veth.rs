//! Between two veth pairs: frames made and counted in the kernel, the kernel or noref between them.
//!
//! ```text
//! far: e0 ══► e0 :router: e1 ══► e1 :far
//!    source      kernel, or noref beside it      sink
//! ```

use std::path::Path;
use std::thread;
use std::time::{Duration, Instant};

use port::live::xdp::{Sink, Source, Varied};
use port::live::{Device, pin_to_core};
use wire::eth;

use super::Worked;
use super::search::Probe;
use crate::bench::full_table::{PORTS, Prefixes, Way, network_file_without_vrf};
use crate::bench::machine::cores;
use crate::failure::Failure;
use crate::lab::namespace::Namespace;
use crate::lab::{Interrupt, Router, SETTINGS};
use crate::threads::join;

/// A device that nothing comes in by.
const PARKED: &str = "parked";
/// Frames that are sent at once below the highest rate. A veth device holds 256.
const AT_ONCE: u32 = 64;
/// Frames that are sent at once where there is no pause between.
const WITHOUT_PAUSE: u32 = 4096;
/// A source that is further behind than this does not catch up.
const BEHIND: Duration = Duration::from_millis(1);
/// How long what is on its way may take in the end.
const LAST_LOOK: Duration = Duration::from_millis(50);
/// noref ends by itself then, should this process be killed.
const LONGEST: Duration = Duration::from_secs(1800);

/// The lab.
pub struct Veth {
    router: Namespace,
    far: Namespace,
    workers: usize,
}

impl Veth {
    /// Makes it, with as many queues as there are to be workers; `prefix` begins the namespaces' names.
    ///
    /// # Errors
    /// What could not be done and why. Then nothing is left of it.
    pub fn new(prefix: &str, prefixes: &Prefixes, workers: usize) -> Result<Veth, String> {
        let make = |place: &str| Namespace::new(format!("{prefix}-{place}"));
        let veth = Veth { router: make("router")?, far: make("far")?, workers };
        veth.router.configure(SETTINGS)?;
        // The far ends say and answer nothing.
        veth.far.configure("sysctl -w net.ipv6.conf.default.disable_ipv6=1")?;
        for port in PORTS {
            let queues = format!("numtxqueues {workers} numrxqueues {workers}");
            let there = veth.far.name();
            veth.router.configure(&format!("ip link add {port} {queues} type veth peer name {port} {queues} netns {there}"))?;
            veth.far.configure(&format!("ip link set {port} mtu 9000 up"))?;
        }
        veth.far.configure(&format!("ip link add {PARKED} type veth peer name {PARKED}-peer"))?;
        veth.router.configure(&lines(&network_file_without_vrf(prefixes)))?;
        // For End.DX4 the kernel asks for the packet's destination, not for the nexthop, on the nexthop's link (docs/linux-differences.md).
        for to in prefixes.destinations4(1) {
            veth.router.configure(&format!("ip neigh replace {to} lladdr 02:00:00:00:1f:00 dev {} nud permanent", PORTS[1]))?;
        }
        // A veth device takes frames of XDP where the other end polls, which merging makes it do. There is nothing to be merged.
        veth.router.inside(|| {
            let set = Device::named(PORTS[0]).and_then(|device| device.set_merges_segments(true));
            set.map_err(|error| format!("{}: {error}", PORTS[0]))
        })?;
        Ok(veth)
    }

    /// noref beside the kernel.
    ///
    /// # Errors
    /// Why it did not start, in its own words.
    pub fn start(&self, files: &Path) -> Result<Router, String> {
        let workers = self.workers.to_string();
        let arguments = [&["--mirror", "--driver", "af-xdp", "--workers", &workers, "--port"], &PORTS[..]].concat();
        Router::start("the lab", &self.router, files, &arguments, Some(LONGEST))
    }

    /// Opens both ends for a way's frames. Where destinations are `random` they lie in the one prefix of its family.
    ///
    /// # Errors
    /// What the kernel refused.
    pub fn open(&self, way: &Way) -> Result<Ends<'_>, String> {
        let frame = way.frames.get(0);
        self.far.inside(|| {
            let index = |port| Device::named(port).map(|device| device.index()).map_err(|error| error.to_string());
            let varied = varied(way);
            let source = Source::new(frame, index(PORTS[0])?, Some(index(PARKED)?), varied).map_err(|error| error.to_string())?;
            let sink = Sink::new(index(PORTS[1])?, way.sent).map_err(|error| error.to_string())?;
            Ok(Ends { far: &self.far, source, cores: self.workers, sink })
        })
    }
}

/// What an operator types, of a network file.
fn lines(network: &str) -> String {
    let line = |line: &str| match line.strip_prefix("sysctl ") {
        Some(setting) => format!("sysctl -w {setting}\n"),
        None => format!("ip {line}\n"),
    };
    network.lines().filter(|line| !line.is_empty()).map(line).collect()
}

/// The last 16 bits in which the way's frames differ, which are those of a destination. IPv4's identification balances them.
fn varied(way: &Way) -> Option<Varied> {
    let first = way.frames.get(0);
    let last = |frame: &[u8]| (0..first.len()).rev().find(|&at| frame[at] != first[at]);
    let at = (1..way.frames.len()).filter_map(|n| last(way.frames.get(n))).max()?.saturating_sub(1);
    let ip4 = first.get(12..14) == Some(&[8, 0]);
    Some(Varied { at, balance: ip4.then_some(eth::LEN + 4) })
}

/// The source, on as many cores as there are queues, and the sink.
pub struct Ends<'v> {
    far: &'v Namespace,
    source: Source,
    cores: usize,
    sink: Sink,
}

impl Ends<'_> {
    /// Offers so many packets a second, or as many as there can be, for this time. `router` tells how busy it was.
    ///
    /// # Errors
    /// What the kernel refused, or that somebody interrupts.
    pub fn offer(&self, rate: Option<f64>, time: Duration, router: Option<&Router>, interrupt: &Interrupt) -> Result<Probe, Failure> {
        interrupt.look()?;
        let count = || self.sink.count().map_err(Failure::incomplete);
        let worked = Worked::look(router)?;
        let before = count()?;
        let share = rate.map(|rate| rate / self.cores as f64);
        let laps: Vec<(u64, f64)> = thread::scope(|scope| {
            let run = |number| scope.spawn(move || self.far.inside(|| run(&self.source, number, share, time)));
            let spawned: Vec<_> = (0..self.cores).map(run).collect();
            spawned.into_iter().map(join).collect::<Result<_, String>>()
        })
        .map_err(Failure::incomplete)?;
        thread::sleep(LAST_LOOK);
        Ok(Probe {
            sent: laps.iter().map(|(sent, _)| sent).sum(),
            received: count()? - before,
            seconds: laps.iter().map(|(_, seconds)| *seconds).fold(f64::MIN_POSITIVE, f64::max),
            busy_ns: worked.since(router)?,
        })
    }
}

/// One core's source: packets sent, and seconds.
fn run(source: &Source, number: usize, rate: Option<f64>, time: Duration) -> Result<(u64, f64), String> {
    // Workers are on the first cores.
    let core = cores().saturating_sub(1 + number);
    pin_to_core(core).map_err(|error| format!("core {core}: {error}"))?;
    let at_once = if rate.is_some() { AT_ONCE } else { WITHOUT_PAUSE };
    let begin = Instant::now();
    let (mut sent, mut due) = (0_u64, begin);
    while begin.elapsed() < time {
        source.send(at_once).map_err(|error| error.to_string())?;
        sent += u64::from(at_once);
        let Some(rate) = rate else { continue };
        due += Duration::from_secs_f64(f64::from(at_once) / rate);
        let now = Instant::now();
        if now > due + BEHIND {
            due = now;
        }
        while Instant::now() < due && begin.elapsed() < time {
            std::hint::spin_loop();
        }
    }
    Ok((sent, begin.elapsed().as_secs_f64()))
}

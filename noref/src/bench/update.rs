//! Changes of routes while a worker forwards by them.
//!
//! ```text
//! core 0   worker: bursts of random IPv4 packets, the first of each to the probed prefix ──► writes down when that leaves by another gateway
//! core 1   writer: puts routes, commits, and in the second part waits until the worker has seen it
//! ```

use std::net::Ipv4Addr;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use control::Configuration;
use plane::{Counters, Worker};
use route::{HopSpec, IfIndex, Prefix, Put, RouteRefs, RouteSpec};

use super::Bench;
use super::full_table::{GATEWAYS, Lane, Prefixes, Random, Router, Way, frames, gateway4};
use super::measure::pin;
use super::report::{Drop, Latency, Update, UpdateRow};
use super::table::loss;
use crate::failure::Failure;
use crate::show::columns::{Align, Columns};
use crate::threads::join;

/// Frames of a burst, as a running worker takes them from a queue.
const TURN: usize = 64;
/// Packets of the traffic before it repeats itself.
const PACKETS: usize = 1 << 16;
/// The prefix whose change is waited for, and a destination in it.
const PROBED: (Ipv4Addr, u8) = (Ipv4Addr::new(198, 51, 100, 0), 24);
const PROBE: Ipv4Addr = Ipv4Addr::new(198, 51, 100, 7);
/// Commits are measured for so many changes in each.
const AT_ONCE: [usize; 3] = [1, 100, 10_000];
/// Lines in a request.
const LINES: usize = 1000;
/// No row is measured longer.
const LONGEST: Duration = Duration::from_secs(5);
/// How long a change is waited for.
const PATIENCE: Duration = Duration::from_secs(1);

/// What the worker shows to the writer.
struct Shown {
    epoch: Instant,
    /// Nanoseconds since the epoch, and in the lowest byte the gateway that the probe left by then for the first time.
    probe: AtomicU64,
    packets: AtomicU64,
    stop: AtomicBool,
}

/// Stops the worker when the writer ends, in whatever way.
struct Stop<'s>(&'s AtomicBool);

impl std::ops::Drop for Stop<'_> {
    fn drop(&mut self) {
        self.0.store(true, Ordering::Relaxed);
    }
}

/// What the worker did.
struct Traffic {
    offered: u64,
    good: u64,
    counters: Counters,
}

impl Bench {
    /// Measures and prints.
    ///
    /// # Errors
    /// Those of standard output, or a change that is refused.
    pub fn update(&mut self, router: &mut Router) -> Result<Update, Failure> {
        self.stdout.line("\nupdate: IPv4 routes replaced by one writer, while one worker forwards random packets by them\n")?;
        if super::machine::cores() < 2 {
            self.stdout.line("warning: writer and worker share the only core: the scheduler is measured\n")?;
        }
        self.stdout.flush()?;
        let changes = usize::try_from(self.frames / 4).unwrap_or(usize::MAX).clamp(AT_ONCE.len(), 1 << 22);
        let dev = probed(&mut router.configuration).map_err(|error| Failure::incomplete(format!("changing routes: {error}")))?;
        let worker = router.worker(RouteRefs::Noref);
        let way = traffic(&router.prefixes);
        let shown = Shown { epoch: Instant::now(), probe: AtomicU64::new(0), packets: AtomicU64::new(0), stop: AtomicBool::new(false) };
        let (measured, traffic) = thread::scope(|scope| {
            let forwards = scope.spawn(|| forward(worker, &way, &shown));
            let writes = scope.spawn(|| {
                pin(1);
                let _stop = Stop(&shown.stop);
                write(router, dev, changes, &shown)
            });
            let measured = join(writes);
            (measured, join(forwards))
        });
        let (rates, latency) = measured.map_err(|error| Failure::incomplete(format!("changing routes: {error}")))?;
        let Traffic { offered, good, counters } = traffic;
        let drops = Drop::all(|reason| counters.drops(reason));
        let update = Update { rates, latency, offered, forwarded: u64::min(good, counters.forwarded), drops };
        self.print_update(&update)?;
        Ok(update)
    }

    fn print_update(&mut self, update: &Update) -> Result<(), Failure> {
        let mut columns = Columns::new(&[
            ("by", Align::Left),
            ("changes at once", Align::Right),
            ("changes", Align::Right),
            ("millions a second", Align::Right),
            ("traffic meanwhile, Mpps", Align::Right),
        ]);
        let row = |row: &UpdateRow| {
            let numbers =
                [row.at_once.to_string(), row.changes.to_string(), format!("{:.3}", row.millions), format!("{:.2}", row.traffic_mpps)];
            [vec![row.by.to_owned()], numbers.to_vec()].concat()
        };
        let cells: Vec<_> = update.rates.iter().map(row).collect();
        self.stdout.print(|output| columns.print(&cells, output))?;
        let Latency { changes, unseen, p50_us, p99_us, max_us } = update.latency;
        self.stdout.line(format_args!(
            "\nuntil a packet has left by a change, µs: half within {p50_us:.1}, 99 % within {p99_us:.1}, all within {max_us:.1} ({changes} changes, one a commit)"
        ))?;
        if unseen != 0 {
            self.stdout.line(format_args!("  {unseen} changes were not seen within a second"))?;
        }
        let Update { offered, forwarded, drops, .. } = update;
        match offered == forwarded {
            true => self.stdout.line(format_args!("packets lost meanwhile: none of {offered}"))?,
            false => self.stdout.line(format_args!("packets lost meanwhile: {}", loss(*offered, *forwarded, drops)))?,
        }
        self.stdout.flush()
    }
}

/// Random packets, of which the first of each burst goes to the probed prefix.
fn traffic(prefixes: &Prefixes) -> Way {
    let destinations = prefixes.destinations4(PACKETS).into_iter().enumerate();
    let frames = destinations.map(|(n, dst)| frames::ip4(if n % TURN == 0 { PROBE } else { dst })).collect();
    Way { name: "IPv4", random: true, frames, sent: 42 }
}

/// The worker's thread.
fn forward(worker: Worker, way: &Way, shown: &Shown) -> Traffic {
    pin(0);
    let mut lane = Lane::new(worker, way);
    let (mut offered, mut good, mut gateway) = (0, 0, None);
    lane.worker.online();
    while !shown.stop.load(Ordering::Relaxed) {
        let mut first = true;
        good += lane.burst_of(TURN, |sent| {
            // The last byte of the neighbour's address is the gateway's number.
            if std::mem::take(&mut first) && sent.buf.get(5).copied() != gateway {
                gateway = sent.buf.get(5).copied();
                let nanos = shown.epoch.elapsed().as_nanos() as u64;
                shown.probe.store(nanos << 8 | u64::from(gateway.unwrap_or_default()), Ordering::Release);
            }
        }) as u64;
        offered += TURN as u64;
        shown.packets.store(offered, Ordering::Relaxed);
    }
    lane.worker.offline();
    Traffic { offered, good, counters: lane.worker.counters().clone() }
}

/// The writer's thread.
fn write(router: &mut Router, dev: IfIndex, changes: usize, shown: &Shown) -> Result<(Vec<UpdateRow>, Latency), String> {
    let configuration = &mut router.configuration;
    let mut random = Random::new(3);
    let usable = router.prefixes.usable4();
    let mut next = |_| (usable[random.below(usable.len())], random.below(GATEWAYS));
    let mut rates = Vec::new();
    for at_once in AT_ONCE {
        let mut clock = Row::new("calls", at_once, shown);
        while clock.goes_on(changes) {
            let routes: Vec<_> = (0..at_once).map(&mut next).collect();
            clock.time(|| {
                routes.iter().try_for_each(|&(prefix, gateway)| put(configuration, dev, prefix, gateway))?;
                commit(configuration);
                Ok(())
            })?;
        }
        rates.push(clock.done());
    }
    let mut clock = Row::new("lines", LINES, shown);
    while clock.goes_on(changes) {
        let line = |((addr, len), gateway)| format!("route replace {addr}/{len} via {} dev e1\n", gateway4(gateway));
        let text: String = (0..LINES).map(&mut next).map(line).collect();
        clock.time(|| configuration.apply(&text, "lines").map(drop).map_err(|errors| errors.to_string()))?;
    }
    rates.push(clock.done());
    Ok((rates, latency(configuration, dev, (changes / 64).clamp(16, 4096), shown)?))
}

/// Changes the probed route again and again, and waits each time until a packet has left by it.
fn latency(configuration: &mut Configuration, dev: IfIndex, changes: usize, shown: &Shown) -> Result<Latency, String> {
    let mut micros = Vec::with_capacity(changes);
    let mut unseen = 0;
    for n in 0..changes {
        let gateway = 1 + n % 2;
        let begin = shown.epoch.elapsed();
        put(configuration, dev, PROBED, gateway)?;
        commit(configuration);
        let seen = loop {
            let probe = shown.probe.load(Ordering::Acquire);
            if probe & 0xff == gateway as u64 {
                break Some(Duration::from_nanos(probe >> 8));
            }
            if shown.epoch.elapsed() - begin > PATIENCE {
                break None;
            }
            std::hint::spin_loop();
        };
        match seen {
            Some(seen) => micros.push(seen.saturating_sub(begin).as_secs_f64() * 1e6),
            None => unseen += 1,
        }
    }
    micros.sort_by(f64::total_cmp);
    let within =
        |share: f64| micros.get(((micros.len() as f64 * share) as usize).min(micros.len().saturating_sub(1))).copied().unwrap_or_default();
    Ok(Latency { changes, unseen, p50_us: within(0.5), p99_us: within(0.99), max_us: within(1.0) })
}

/// Makes the probed route, before there is traffic, and says by which interface it leads.
fn probed(configuration: &mut Configuration) -> Result<IfIndex, String> {
    let dev = configuration.editor.links().of_port(1).map(|link| link.index).ok_or("the second port is missing")?;
    put(configuration, dev, PROBED, 0)?;
    commit(configuration);
    Ok(dev)
}

fn put(configuration: &mut Configuration, dev: IfIndex, (addr, len): (Ipv4Addr, u8), gateway: usize) -> Result<(), String> {
    let prefix = Prefix::new(addr, len).ok_or_else(|| format!("{addr}/{len} is no prefix"))?;
    let hop = HopSpec::new(dev, Some(gateway4(gateway).into()));
    let spec = RouteSpec::new(prefix, vec![hop]);
    configuration.editor.route_put(spec, Put::Replace).map_err(|error| format!("{addr}/{len}: {error}"))
}

/// Shows what was put to workers, and frees what they have left.
fn commit(configuration: &mut Configuration) {
    configuration.editor.commit();
    configuration.editor.network().domain().reclaim();
}

/// A row being measured.
struct Row<'s> {
    row: UpdateRow,
    shown: &'s Shown,
    begin: Instant,
    /// Packets of the worker before.
    before: u64,
    /// Spent on changes; making up what to change is not.
    took: Duration,
}

impl<'s> Row<'s> {
    fn new(by: &'static str, at_once: usize, shown: &'s Shown) -> Row<'s> {
        let row = UpdateRow { by, at_once, changes: 0, millions: 0.0, traffic_mpps: 0.0 };
        Row { row, shown, begin: Instant::now(), before: shown.packets.load(Ordering::Relaxed), took: Duration::ZERO }
    }

    /// True until there were so many changes, or it takes too long.
    fn goes_on(&self, changes: usize) -> bool {
        self.row.changes < changes && self.begin.elapsed() < LONGEST
    }

    fn time(&mut self, change: impl FnOnce() -> Result<(), String>) -> Result<(), String> {
        let begin = Instant::now();
        change()?;
        self.took += begin.elapsed();
        self.row.changes += self.row.at_once;
        Ok(())
    }

    fn done(self) -> UpdateRow {
        let packets = self.shown.packets.load(Ordering::Relaxed) - self.before;
        UpdateRow {
            millions: self.row.changes as f64 / self.took.as_secs_f64() / 1e6,
            traffic_mpps: packets as f64 / self.begin.elapsed().as_secs_f64() / 1e6,
            ..self.row
        }
    }
}

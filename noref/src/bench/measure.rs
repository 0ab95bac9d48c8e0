//! Packets a second of one way: workers of their own cores, all at once, round by round.

use std::sync::Barrier;
use std::thread;
use std::time::{Duration, Instant};

use plane::{BURST, Counters};
use port::live::{clocks, pin_to_core};
use route::RouteRefs;

use super::full_table::{Lane, Router, Way};
use super::report::{Drop, Figure, Spread};
use crate::args::Refs;
use crate::stderr::say;
use crate::threads::join;

/// Times that everything is measured: the best and the median are told.
pub const ROUNDS: usize = 7;
/// Frames before the first round at most: caches fill, buffers are made.
const WARM_UP: u64 = 1 << 16;

/// How a way is measured.
#[derive(Clone, Copy)]
pub struct Plan<'p> {
    pub workers: usize,
    /// Ways to carry routes. A round measures them one after the other, so that what else the machine does spoils neither alone.
    pub refs: &'p [Refs],
    /// Frames of each worker in a round.
    pub frames: u64,
}

impl Plan<'_> {
    /// Bursts of each worker in a round.
    fn bursts(&self) -> u64 {
        self.frames.div_ceil(BURST as u64).max(1)
    }
}

/// A worker's round.
#[derive(Clone, Copy)]
struct Lap {
    begin: Instant,
    end: Instant,
    clocks: Option<u64>,
}

/// What a worker did with its routes carried in one way.
struct Share {
    laps: Vec<Lap>,
    offered: u64,
    /// Packets that left as they should.
    good: u64,
    counters: Counters,
}

/// Measures a way: a figure for each of the plan's ways to carry routes, in their order.
pub fn measure(router: &Router, way: &Way, plan: &Plan<'_>) -> Vec<Figure> {
    let barrier = Barrier::new(plan.workers);
    let shares: Vec<Vec<Share>> = thread::scope(|scope| {
        let barrier = &barrier;
        let spawned: Vec<_> = (0..plan.workers).map(|number| scope.spawn(move || work(router, way, plan, number, barrier))).collect();
        spawned.into_iter().map(join).collect()
    });
    (0..plan.refs.len()).map(|at| figure(&shares.iter().map(|shares| &shares[at]).collect::<Vec<_>>(), plan)).collect()
}

/// The thread of a worker.
fn work(router: &Router, way: &Way, plan: &Plan<'_>, number: usize, barrier: &Barrier) -> Vec<Share> {
    pin(number);
    let _others = Others;
    // Workers begin at different frames, as flows that are spread over queues do.
    let begin = number * way.frames.len() / plan.workers;
    let mut lanes: Vec<_> = plan
        .refs
        .iter()
        .map(|&refs| {
            let refs = RouteRefs::from(refs);
            let lane = Lane::new(router.worker(refs), way).from(begin);
            (lane, Share { laps: Vec::with_capacity(ROUNDS), offered: 0, good: 0, counters: Counters::default() })
        })
        .collect();
    for (lane, share) in &mut lanes {
        run(lane, share, plan.bursts().min(WARM_UP / BURST as u64));
    }
    for round in 0..ROUNDS {
        for turn in 0..lanes.len() {
            // Neither is always the first.
            let at = (round + turn) % lanes.len();
            let (lane, share) = &mut lanes[at];
            barrier.wait();
            let lap = run(lane, share, plan.bursts());
            share.laps.push(lap);
        }
    }
    lanes.into_iter().map(|(lane, share)| Share { counters: lane.worker.counters().clone(), ..share }).collect()
}

/// So many bursts.
fn run(lane: &mut Lane<'_>, share: &mut Share, bursts: u64) -> Lap {
    let (begin, first) = (Instant::now(), clocks());
    lane.worker.online();
    let good: usize = (0..bursts).map(|_| lane.burst()).sum();
    lane.worker.offline();
    let (last, end) = (clocks(), Instant::now());
    share.offered += bursts * BURST as u64;
    share.good += good as u64;
    Lap { begin, end, clocks: first.zip(last).map(|(first, last)| last.wrapping_sub(first)) }
}

/// What the workers did together.
fn figure(shares: &[&Share], plan: &Plan<'_>) -> Figure {
    let packets = (plan.bursts() * BURST as u64) as f64;
    let workers = shares.len() as f64;
    let round = |round: usize| shares.iter().filter_map(move |share| share.laps.get(round));
    // From when the first began until the last had ended: a worker that was kept from its core counts against all.
    let mpps = (0..ROUNDS).filter_map(|n| {
        let begin = round(n).map(|lap| lap.begin).min()?;
        let end = round(n).map(|lap| lap.end).max()?;
        Some(workers * packets / micros(end.duration_since(begin)))
    });
    let mpps = Spread::of_rates(mpps);
    let clocks = (0..ROUNDS).filter_map(|n| {
        let sum = round(n).map(|lap| lap.clocks).sum::<Option<u64>>()?;
        Some(sum as f64 / (workers * packets))
    });
    let counters = || shares.iter().map(|share| &share.counters);
    let forwarded = counters().map(|counters| counters.forwarded).sum();
    let left = shares.iter().map(|share| share.good).sum();
    Figure {
        ns: mpps.map(|mpps| 1000.0 * workers / mpps),
        clocks: Spread::of_costs(clocks),
        mpps,
        offered: shares.iter().map(|share| share.offered).sum(),
        // What the router says it forwarded, and what was seen to leave.
        forwarded: u64::min(forwarded, left),
        drops: Drop::all(|reason| counters().map(|counters| counters.drops(reason)).sum()),
    }
}

/// Those that wait for a worker, which they would do for ever if it panicked: then the program ends.
struct Others;

impl std::ops::Drop for Others {
    fn drop(&mut self) {
        if thread::panicking() {
            std::process::abort();
        }
    }
}

/// Keeps the calling thread on a core of its own, or says that it is on none.
pub fn pin(number: usize) {
    if let Err(error) = pin_to_core(number) {
        say(format_args!("worker {number} is on no core of its own: {error}"));
    }
}

fn micros(duration: Duration) -> f64 {
    (duration.as_secs_f64() * 1e6).max(f64::MIN_POSITIVE)
}

//! Routes that change in the kernel while packets are forwarded.

use std::cell::Cell;
use std::collections::BTreeSet;
use std::fmt::Write as _;
use std::fs;
use std::net::Ipv4Addr;
use std::time::{Duration, Instant};

use serde_json::Value;
use testkit::replay::Scratch;
use testkit::route_changes::{Change, HostRoute, RouteChanges};

use crate::bed::Bed;
use crate::lab::Lab;

/// How long it may take until the tables are the kernel's.
const SETTLED: Duration = Duration::from_secs(30);
/// How long a start beside 100,000 routes may take.
const STARTED: Duration = Duration::from_secs(2);
/// Changes a second that the mirror keeps up with.
const RATE: f64 = 100_000.0;
/// Rounds of changes at least, so that memory can be compared.
const ROUNDS: usize = 4;
/// Memory that may come and go without being a leak: what waits for a grace period, and what the allocator keeps.
pub const ROOM: u64 = 16 << 20;

/// The destination of a number: 10.128.0.0 and up.
fn destination(number: u32) -> Ipv4Addr {
    Ipv4Addr::from(0x0a80_0000 + number)
}

/// Lines for `ip -batch`: a route each.
pub fn lines(verb: &str, numbers: impl Iterator<Item = u32>, via: &str) -> String {
    numbers.fold(String::new(), |mut text, number| {
        let _ = writeln!(text, "route {verb} {}/32 via {via}", destination(number));
        text
    })
}

/// Has `ip` do these lines; how long it took.
pub fn batch(lab: &Lab, text: &str) -> Duration {
    let scratch = Scratch::new();
    let file = scratch.path().join("lines");
    fs::write(&file, text).expect("a temporary file can be written");
    let begin = Instant::now();
    lab.router.run_with("ip", &["-batch", &file.to_string_lossy()]).unwrap();
    begin.elapsed()
}

/// The routes in the kernel's main table, each with its prefix. `family` is `-4` or `-6`.
pub fn kernel_routes(lab: &Lab, family: &str) -> Vec<(String, Value)> {
    let (all, host) = if family == "-4" { ("0.0.0.0/0", "/32") } else { ("::/0", "/128") };
    let shown = lab.router.ip(&format!("-j {family} route show table main")).unwrap();
    let rows: Vec<Value> = serde_json::from_str(&shown).unwrap();
    let prefix = |row: &Value| match row.get("dst").and_then(Value::as_str).unwrap_or_default() {
        "default" => all.to_owned(),
        prefix if prefix.contains('/') => prefix.to_owned(),
        address => format!("{address}{host}"),
    };
    rows.into_iter().map(|row| (prefix(&row), row)).collect()
}

/// Those in noref's.
fn routes(bed: &Bed) -> BTreeSet<String> {
    let rows = bed.router.show("routes");
    let main = rows.iter().filter(|row| row.get("table").and_then(Value::as_str) == Some("main"));
    main.filter_map(|row| row.get("prefix").and_then(Value::as_str)).filter(|prefix| prefix.contains('.')).map(str::to_owned).collect()
}

/// Waits until the mirror has the kernel's IPv4 routes; a failure when it does not.
pub fn assert_equal_to_the_kernel(bed: &Bed) {
    let settled = |row: &Value| row.get("settled") == Some(&Value::Bool(true));
    bed.wait_until("the mirror settles", SETTLED, |bed| bed.router.show("mirror").iter().all(settled));
    let kernel: BTreeSet<_> = kernel_routes(&bed.lab, "-4").into_iter().map(|(prefix, _)| prefix).collect();
    let begin = Instant::now();
    let mut mirror = routes(bed);
    while mirror != kernel && begin.elapsed() < SETTLED {
        mirror = routes(bed);
    }
    let (missing, stray) = (kernel.difference(&mirror).count(), mirror.difference(&kernel).count());
    assert_eq!((missing, stray), (0, 0), "routes that noref has not, and that only noref has; the kernel has {}", kernel.len());
}

/// The upper one of two: what a start takes is not held against what follows.
pub fn median(values: &[u64]) -> u64 {
    let mut values = values.to_vec();
    values.sort_unstable();
    values[values.len() / 2]
}

/// How the kernel is told of changes.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum By {
    /// `ip -batch`.
    Ip,
    /// Messages, many at once: as fast as the kernel makes changes.
    Messages,
}

/// A change to the routes of these numbers, all with the gateway behind one port.
pub struct Round {
    change: Change,
    numbers: Vec<u32>,
    via: Ipv4Addr,
    dev: u32,
}

impl Round {
    /// Through e1 or e2.
    pub fn new(lab: &Lab, change: Change, numbers: impl Iterator<Item = u32>, port: u8) -> Round {
        let shown = lab.router.ip(&format!("-j link show dev e{port}")).unwrap();
        let shown: Value = serde_json::from_str(&shown).unwrap();
        let dev = shown.pointer("/0/ifindex").and_then(Value::as_u64).expect("it has a number");
        Round { change, numbers: numbers.collect(), via: Ipv4Addr::new(10, 0, port, 2), dev: dev as u32 }
    }

    /// How many routes it changes.
    pub fn len(&self) -> usize {
        self.numbers.len()
    }

    /// Has the kernel make it; how long it took.
    pub fn make(&self, lab: &Lab, by: By) -> Duration {
        match by {
            By::Ip => batch(lab, &lines(&format!("{:?}", self.change).to_lowercase(), self.numbers.iter().copied(), &self.via.to_string())),
            By::Messages => lab.router.inside(|| {
                let changes = RouteChanges::new().unwrap();
                let routes = self.numbers.iter().map(|number| HostRoute { to: destination(*number), via: self.via, dev: self.dev });
                let begin = Instant::now();
                changes.make(self.change, routes).unwrap();
                begin.elapsed()
            }),
        }
    }
}

/// Changes routes while packets pass, and returns how many changes the kernel made a second.
fn churn(by: By) -> Option<f64> {
    let bed = Bed::beside_the_kernel()?;
    let (count, time) = match (testkit::is_long(), cfg!(debug_assertions)) {
        (true, _) => (100_000, Duration::from_secs(60)),
        (false, false) => (20_000, Duration::from_secs(3)),
        // A build for debugging takes its time with each.
        (false, true) => (2_000, Duration::from_secs(2)),
    };
    let rounds = [
        Round::new(&bed.lab, Change::Add, 0..count, 1),
        Round::new(&bed.lab, Change::Replace, 0..count, 2),
        Round::new(&bed.lab, Change::Del, (0..count).filter(|number| number % 3 > 0), 2),
        Round::new(&bed.lab, Change::Del, (0..count).filter(|number| number % 3 == 0), 2),
    ];
    let traffic = bed.begin_traffic();
    let (begin, mut changes, mut spent) = (Instant::now(), 0, Duration::ZERO);
    let mut memory = Vec::new();
    while begin.elapsed() < time || memory.len() < ROUNDS {
        for round in &rounds {
            spent += round.make(&bed.lab, by);
            changes += round.len();
        }
        memory.push(bed.router.memory());
    }
    // In the end some are there.
    rounds[0].make(&bed.lab, by);
    Round::new(&bed.lab, Change::Del, (0..count).filter(|number| number % 3 > 0), 1).make(&bed.lab, by);
    let told = traffic.stop();
    let rate = changes as f64 / spent.as_secs_f64();
    println!("{changes} changes, {rate:.0} a second, while {told:?}; memory {memory:?}");
    assert_equal_to_the_kernel(&bed);
    println!("{:?}", bed.router.show("mirror"));
    assert_eq!((told.lost(), told.twice), (0, 0), "{told:?}");
    let (early, late) = memory.split_at(memory.len() / 2);
    let (early, late) = (median(early), median(late));
    assert!(late < early + ROOM + early / 20, "memory grows: {memory:?}");
    bed.assert_it_forwards("afterwards");
    assert!(bed.router.stop().status.success());
    Some(rate)
}

#[test]
fn routes_that_change_as_fast_as_ip_can_lose_no_packet_and_end_as_the_kernels() {
    churn(By::Ip);
}

#[test]
fn routes_that_change_as_fast_as_the_kernel_can_lose_no_packet_and_end_as_the_kernels() {
    let Some(rate) = churn(By::Messages) else { return };
    // A build for debugging leaves the kernel less of the cores, and so does a machine that is busy with other things.
    assert!(cfg!(debug_assertions) || !testkit::is_long() || rate > RATE, "{rate:.0} changes a second");
}

/// Starts beside a kernel with so many routes; how long it took until it forwards with all of them.
fn start_beside(count: u32) -> Option<Duration> {
    let begin = Cell::new(Instant::now());
    let bed = Bed::beside_a_kernel_that(|lab| {
        Round::new(lab, Change::Add, 0..count, 1).make(lab, By::Messages);
        begin.set(Instant::now());
        Ok(())
    })?;
    let took = begin.get().elapsed();
    println!("it forwards with {count} routes after {took:?}; memory {}", bed.router.memory());
    assert_equal_to_the_kernel(&bed);
    bed.assert_it_forwards(&format!("with {count} routes"));
    assert!(bed.router.stop().status.success());
    Some(took)
}

#[test]
fn it_starts_beside_a_kernel_with_a_hundred_thousand_routes_in_two_seconds() {
    let Some(took) = start_beside(100_000) else { return };
    // A build for debugging takes its time, and so does a machine that is busy with other things.
    assert!(cfg!(debug_assertions) || !testkit::is_long() || took < STARTED, "{took:?}");
}

#[test]
fn it_starts_beside_a_kernel_with_a_million_routes() {
    if testkit::is_long() && !cfg!(debug_assertions) {
        start_beside(1_000_000);
    }
}

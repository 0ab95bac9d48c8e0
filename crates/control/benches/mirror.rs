//! What it takes to follow the kernel's routes, without the kernel: messages in memory, read, told to the tables, committed.
//!
//!     cargo bench -p noref-control --bench mirror [-- ROUTES]
//!
//! Prints microseconds of one core a route, the best of some rounds. A dump comes in datagrams of 32 KiB as from the kernel, changes come a message a datagram,
//! and the tables are brought up to date after every so many, as when they come faster than they are told.

use std::net::Ipv4Addr;
use std::time::{Duration, Instant};

use control::mirror::{Dump, Follow, Mirror, Object, Progress};
use testkit::route_changes::{Change, HostRoute};

/// Changes that are told to the tables together.
const TOGETHER: [usize; 3] = [1, 64, 1024];
const ROUNDS: usize = 5;
const DATAGRAM: usize = 32 << 10;
const SEQUENCE: u32 = 1;
const NLM_F_MULTI: u16 = 2;

fn route(number: u32, gateway: u8) -> HostRoute {
    HostRoute { to: Ipv4Addr::from(0x0a80_0000 + number), via: Ipv4Addr::new(10, 0, gateway, 2), dev: u32::from(gateway) + 1 }
}

/// A follower that has read everything, all of which is empty but for `told`.
fn begin(told: &mut Vec<(Object, Dump)>) -> Follow {
    let mut follow = Follow::new();
    while let Some(object) = follow.due(Duration::ZERO) {
        let told = told.iter().position(|(of, _)| *of == object).map(|at| told.swap_remove(at).1.told);
        follow.dumped(Duration::ZERO, object, told.unwrap_or_default(), Progress::Done);
    }
    follow
}

fn devices() -> (Object, Dump) {
    let mut devices = Dump::begin(Object::Devices, SEQUENCE).0;
    for index in 2..5_u32 {
        let mut message = Vec::new();
        message.extend([0; 4]);
        message.extend(16_u16.to_ne_bytes());
        message.extend(NLM_F_MULTI.to_ne_bytes());
        message.extend(SEQUENCE.to_ne_bytes());
        message.extend([0; 4]);
        // `struct ifinfomsg`: Ethernet, the device's number, up and running.
        message.extend([0, 0, 1, 0]);
        message.extend(index.to_ne_bytes());
        message.extend(0x1_0043_u32.to_ne_bytes());
        message.extend([0; 4]);
        for (kind, value) in
            [(3_u16, format!("e{index}\0\0").into_bytes()), (4, 1500_u32.to_ne_bytes().to_vec()), (1, vec![2, 0, 0, 0, 0, 1, 0, 0])]
        {
            message.extend((value.len() as u16 + 4).to_ne_bytes());
            message.extend(kind.to_ne_bytes());
            message.extend(value);
        }
        let length = message.len() as u32;
        message[..4].copy_from_slice(&length.to_ne_bytes());
        devices.datagram(&message, false);
    }
    (Object::Devices, devices)
}

/// Reads a dump of so many routes and tells it to empty tables; how long the two took.
fn dump(count: u32) -> (Duration, Duration, Follow, Mirror) {
    let mut datagrams = vec![Vec::with_capacity(DATAGRAM)];
    for number in 0..count {
        let mut message = Vec::new();
        route(number, 1).message(Change::Add, NLM_F_MULTI, &mut message);
        message[8..12].copy_from_slice(&SEQUENCE.to_ne_bytes());
        if datagrams.last().is_none_or(|datagram| datagram.len() + message.len() > DATAGRAM) {
            datagrams.push(Vec::with_capacity(DATAGRAM));
        }
        datagrams.last_mut().expect("there is one").extend(message);
    }
    let begin_read = Instant::now();
    let mut routes = Dump::begin(Object::Routes4, SEQUENCE).0;
    for datagram in &datagrams {
        assert_eq!(routes.datagram(datagram, false), Progress::More);
    }
    let read = begin_read.elapsed();
    let mut mirror = Mirror::new(&["e2", "e3", "e4"]);
    let mut follow = begin(&mut vec![devices(), (Object::Routes4, routes)]);
    assert_eq!(follow.snapshot.devices.values().filter(|device| device.up).count(), 3);
    let begin_told = Instant::now();
    mirror.reconcile(&mut follow.snapshot, &mut follow.dirty);
    (read, begin_told.elapsed(), follow, mirror)
}

/// Takes in a round of changes.
fn changes(follow: &mut Follow, mirror: &mut Mirror, datagrams: &[Vec<u8>], together: usize) -> Duration {
    let begin = Instant::now();
    for some in datagrams.chunks(together) {
        for datagram in some {
            follow.datagram(Duration::ZERO, datagram, false);
        }
        mirror.reconcile(&mut follow.snapshot, &mut follow.dirty);
    }
    begin.elapsed()
}

fn main() {
    let count = std::env::args().skip(1).find_map(|argument| argument.parse().ok()).unwrap_or(100_000);
    let each = |time: Duration| time.as_secs_f64() * 1e6 / f64::from(count);
    let best = |times: Vec<Duration>| each(times.into_iter().min().unwrap_or_default());
    let (mut read, mut told) = (Vec::new(), Vec::new());
    for _ in 0..ROUNDS {
        let (reading, telling, ..) = dump(count);
        read.push(reading);
        told.push(telling);
    }
    println!("dump of {count} routes: {:.2} µs to read each, {:.2} µs to tell the tables", best(read), best(told));
    let messages = |change, gateway| -> Vec<Vec<u8>> {
        let message = |number| {
            let mut message = Vec::new();
            route(number, gateway).message(change, 0, &mut message);
            message
        };
        (0..count).map(message).collect()
    };
    let rounds = [messages(Change::Add, 1), messages(Change::Replace, 2), messages(Change::Del, 2)];
    for together in TOGETHER {
        let (_, _, mut follow, mut mirror) = dump(0);
        let mut reader = mirror.tables().network.domain().reader();
        let mut times = [const { Vec::new() }; 3];
        for _ in 0..ROUNDS {
            for (round, times) in rounds.iter().zip(&mut times) {
                times.push(changes(&mut follow, &mut mirror, round, together));
                reader.burst(|_| ());
            }
        }
        let [add, replace, del] = times.map(best);
        println!("{together:>4} changes together: add {add:.2} µs, replace {replace:.2} µs, delete {del:.2} µs");
    }
}

//! Numbered packets from one side to the other at a steady rate, and what became of them.

use std::net::Ipv4Addr;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

use testkit::frame::{Ether, Ipv4, Udp};
use wire::Mac;

use crate::lab::{Cables, Lab};

/// Time between two looks at what came out.
const STEP: Duration = Duration::from_micros(500);
/// How long what is on its way may take in the end.
const LAST_LOOK: Duration = Duration::from_millis(300);
/// Where the number stands: behind Ethernet, IPv4 and UDP header.
const NUMBER: usize = 14 + 20 + 8;
/// What stands behind it.
const MARK: &[u8] = b"noref traffic";
/// Frames that are sent at once at most. A veth device holds 256, and what it loses noref never had.
const MOST_AT_ONCE: u64 = 16;

/// Packets on their way from 10.0.0.2, behind e0, to an address behind another port.
pub struct Traffic {
    stop: Arc<AtomicBool>,
    thread: JoinHandle<Told>,
}

/// What became of the packets.
#[derive(Debug)]
pub struct Told {
    pub sent: u64,
    /// Each counted once.
    pub received: u64,
    pub twice: u64,
    /// Frames that came out and that the receiver had no room for.
    pub overrun: u64,
    /// The longest time in which none came out.
    pub gap: Duration,
    /// When the first came out after the longest gap, from the beginning.
    pub after: Duration,
}

impl Told {
    /// Packets that did not come out.
    pub fn lost(&self) -> u64 {
        (self.sent - self.received).saturating_sub(self.overrun)
    }
}

impl Traffic {
    /// Begins with so many packets a second.
    pub fn start(lab: &Lab, to: Ipv4Addr, rate: u64) -> Result<Traffic, String> {
        let cables = lab.cables()?;
        let stop = Arc::new(AtomicBool::new(false));
        let told = Arc::clone(&stop);
        Ok(Traffic { stop, thread: thread::spawn(move || run(cables, to, rate, &told)) })
    }

    /// Ends, after what is on its way has come out.
    pub fn stop(self) -> Told {
        self.stop.store(true, Ordering::Relaxed);
        self.thread.join().expect("traffic does not panic")
    }
}

fn run(mut cables: Cables, to: Ipv4Addr, rate: u64, stop: &AtomicBool) -> Told {
    let mut frame = frame(to, 0);
    let mut told = Told { sent: 0, received: 0, twice: 0, overrun: 0, gap: Duration::ZERO, after: Duration::ZERO };
    let mut seen: Vec<bool> = Vec::new();
    let begin = Instant::now();
    let (mut last, mut counted_from, mut counted) = (begin, begin, 0);
    let mut look = |cables: &mut Cables, told: &mut Told| {
        for (_, frame) in cables.receive() {
            let Some(number) = number(&frame) else { continue };
            let place = number as usize;
            if place >= seen.len() {
                seen.resize(place + 1, false);
            }
            if std::mem::replace(&mut seen[place], true) {
                told.twice += 1;
                continue;
            }
            told.received += 1;
            let now = Instant::now();
            if now - last > told.gap {
                (told.gap, told.after) = (now - last, now - begin);
            }
            last = now;
        }
    };
    while !stop.load(Ordering::Relaxed) {
        let due = (counted_from.elapsed().as_secs_f64() * rate as f64) as u64;
        if due > counted + MOST_AT_ONCE {
            // A sender that fell behind does not catch up.
            (counted_from, counted) = (Instant::now(), 0);
            continue;
        }
        for _ in counted..due {
            frame[NUMBER..NUMBER + 4].copy_from_slice(&(told.sent as u32).to_be_bytes());
            cables.send(0, &frame);
            told.sent += 1;
        }
        counted = due.max(counted);
        look(&mut cables, &mut told);
        thread::sleep(STEP);
    }
    let end = Instant::now();
    while end.elapsed() < LAST_LOOK {
        look(&mut cables, &mut told);
        thread::sleep(STEP);
    }
    told.overrun = cables.overrun();
    told
}

/// A packet with its number. Its checksum is left out, so that the number can change.
pub fn frame(to: Ipv4Addr, number: u32) -> Vec<u8> {
    let ether = Ether::new(Mac([2, 0, 0, 0, 0x0e, 0]), Mac([2, 0, 0, 0, 0x0f, 0]));
    let ip = Ipv4::new(Ipv4Addr::new(10, 0, 0, 2), to);
    (ether / ip / Udp::new(4660, 22136).checksum(0) / &number.to_be_bytes() / MARK).bytes()
}

fn number(frame: &[u8]) -> Option<u32> {
    let number = frame.get(NUMBER..NUMBER + 4)?.try_into().ok().map(u32::from_be_bytes)?;
    (frame.get(NUMBER + 4..NUMBER + 4 + MARK.len())? == MARK).then_some(number)
}

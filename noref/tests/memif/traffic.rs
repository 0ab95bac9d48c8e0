//! Numbered frames into testpmd, and those that come out of it.

use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use port::live::memif::{MemifDevice, MemifSettings, Role, SocketName};
use port::{Pool, Port, Time};

use crate::peers::{LOG2_SLOTS, socket};

/// Ethernet, IPv6 and a segment routing header of two segments: the frame of SRv6 measurements.
const FRAME: usize = 94;
/// Where the number is: the second half of the source address.
const NUMBER: usize = 30;
/// The number of frames that are sent until the first comes through.
const PROBE: u64 = u64::MAX;
/// After this time without a frame none is on its way any more.
const QUIET: Duration = Duration::from_millis(500);
/// How often the pace is caught up with.
const TICK: Duration = Duration::from_micros(200);
/// The most frames that are sent at once.
const BURST: u64 = 256;

/// What became of the frames of one run.
pub struct Outcome {
    pub sent: u64,
    pub received: u64,
    /// Frames that came at another place than they were sent.
    pub disordered: u64,
    /// Frames that were not what End makes of them.
    pub changed: u64,
}

/// Both ends.
pub struct Stream {
    into: Box<dyn Port + Send>,
    out: Box<dyn Port + Send>,
    _devices: [MemifDevice; 2],
}

impl Stream {
    /// Opens both ends in this role.
    pub fn open(directory: &Path, role: Role) -> Stream {
        let open = |name: &str| {
            let mut settings = MemifSettings::new(SocketName::Path(socket(directory, name)));
            (settings.role, settings.slots) = (role, 1 << LOG2_SLOTS);
            let mut device = MemifDevice::open(name, settings, |_| {}).unwrap();
            (device.take_ports().remove(0), device)
        };
        let ((into, a), (out, b)) = (open("in"), open("out"));
        Stream { into, out, _devices: [a, b] }
    }

    /// Sends probes until one comes through, then waits until no more do.
    pub fn settle(&mut self, said: impl Fn() -> String) {
        let (begin, mut pool) = (Instant::now(), Pool::default());
        let mut batch = Vec::new();
        while batch.is_empty() {
            assert!(begin.elapsed() < Duration::from_secs(30), "nothing comes through; testpmd: {}", said());
            self.into.rx(&mut pool, &mut Vec::new(), 64).unwrap();
            self.into.tx(&frame(PROBE), Time::ZERO);
            self.into.flush().unwrap();
            thread::sleep(Duration::from_millis(20));
            self.out.rx(&mut pool, &mut batch, 64).unwrap();
        }
        receive(&mut *self.out, &AtomicBool::new(true));
    }

    /// Sends for this time, so many frames a second or as many as are taken, and receives until no more come.
    pub fn run(&mut self, time: Duration, pace: Option<f64>) -> Outcome {
        let (into, out) = (&mut self.into, &mut self.out);
        let done = AtomicBool::new(false);
        thread::scope(|scope| {
            let receiver = scope.spawn(|| receive(&mut **out, &done));
            let sent = send(&mut **into, time, pace);
            done.store(true, Ordering::Relaxed);
            Outcome { sent, ..receiver.join().unwrap() }
        })
    }
}

/// Sends numbered frames; how many. A full ring is waited for.
fn send(port: &mut dyn Port, time: Duration, pace: Option<f64>) -> u64 {
    let (begin, mut pool, mut ignored) = (Instant::now(), Pool::default(), Vec::new());
    let mut frame = frame(0);
    let mut sent = 0;
    while begin.elapsed() < time {
        let due = pace.map_or(sent + BURST, |pace| (begin.elapsed().as_secs_f64() * pace) as u64);
        let burst = due.saturating_sub(sent).min(BURST);
        let end = sent + burst;
        for _ in 0..burst {
            frame[NUMBER..NUMBER + 8].copy_from_slice(&sent.to_be_bytes());
            let before = port.counters().tx_packets;
            port.tx(&frame, Time::ZERO);
            if port.counters().tx_packets == before {
                break;
            }
            sent += 1;
        }
        port.flush().unwrap();
        // What comes back here is not looked at.
        port.rx(&mut pool, &mut ignored, 64).unwrap();
        ignored.drain(..).for_each(|packet| pool.give(packet.buf));
        // Nothing is due, or the ring is full.
        if sent < end || burst < BURST {
            thread::sleep(TICK);
        }
    }
    sent
}

/// Receives until `done`, and then until no more come.
fn receive(port: &mut dyn Port, done: &AtomicBool) -> Outcome {
    let (mut pool, mut batch, mut last) = (Pool::default(), Vec::new(), Instant::now());
    let mut outcome = Outcome { sent: 0, received: 0, disordered: 0, changed: 0 };
    let expected = passed(&frame(0));
    while !done.load(Ordering::Relaxed) || last.elapsed() < QUIET {
        if port.rx(&mut pool, &mut batch, 64).unwrap() == 0 {
            port::live::wait_readable(port.descriptor().unwrap(), Duration::from_millis(20)).unwrap();
            continue;
        }
        last = Instant::now();
        for packet in batch.drain(..) {
            let number = packet.buf.get(NUMBER..NUMBER + 8).map(|bytes| u64::from_be_bytes(bytes.try_into().unwrap()));
            if number != Some(PROBE) && is_ours(&packet.buf) {
                outcome.disordered += u64::from(number != Some(outcome.received));
                outcome.changed += u64::from(!is_same(&packet.buf, &expected));
                outcome.received += 1;
            }
            pool.give(packet.buf);
        }
    }
    outcome
}

/// A frame to the SID, with a number.
fn frame(number: u64) -> [u8; FRAME] {
    let (sid, last): (std::net::Ipv6Addr, std::net::Ipv6Addr) = ("fcbb:0:1::1".parse().unwrap(), "fcbb:0:2::77".parse().unwrap());
    let mut frame = [0; FRAME];
    frame[..14].copy_from_slice(&[2, 0, 0, 0, 0x0e, 1, 2, 0, 0, 0, 0x0f, 7, 0x86, 0xdd]);
    // IPv6: 40 bytes behind it, which are a routing header; hop limit 64.
    frame[14..22].copy_from_slice(&[0x60, 0, 0, 0, 0, 40, 43, 64]);
    frame[22..24].copy_from_slice(&[0xfd, 0x01]);
    frame[NUMBER..NUMBER + 8].copy_from_slice(&number.to_be_bytes());
    frame[38..54].copy_from_slice(&sid.octets());
    // Nothing behind it, 32 bytes of segments, type 4, one segment left, the last entry is 1.
    frame[54..62].copy_from_slice(&[59, 4, 4, 1, 1, 0, 0, 0]);
    frame[62..78].copy_from_slice(&last.octets());
    frame[78..94].copy_from_slice(&sid.octets());
    frame
}

/// What End makes of it (RFC 8986 §4.1), MACs aside.
fn passed(frame: &[u8; FRAME]) -> [u8; FRAME] {
    let mut frame = *frame;
    frame[21] -= 1;
    frame[57] = 0;
    frame.copy_within(62..78, 38);
    frame
}

/// An SRv6 frame: not what routers tell each other.
fn is_ours(frame: &[u8]) -> bool {
    frame.len() == FRAME && frame[20] == 43
}

/// The same, except for MACs and number.
fn is_same(frame: &[u8], expected: &[u8; FRAME]) -> bool {
    frame[12..NUMBER] == expected[12..NUMBER] && frame[NUMBER + 8..] == expected[NUMBER + 8..]
}

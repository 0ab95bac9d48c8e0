//! A wrapper that spoils what passes through a port: what a bad link does, at will and repeatably.

use std::io;
#[cfg(unix)]
use std::os::fd::BorrowedFd;
use std::time::Duration;

use crate::{Counters, Pool, Port, Received, Time};

/// How often what goes wrong, in packets of a thousand.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Faults {
    /// Packets that vanish.
    pub drop: u16,
    /// Packets of which one bit turns over.
    pub corrupt: u16,
    /// Packets that come twice.
    pub duplicate: u16,
}

/// A port on a bad link. Faults happen to received and sent packets alike; the same seed and traffic give the same faults.
#[derive(Debug)]
pub struct FaultInjector<P> {
    port: P,
    faults: Faults,
    dice: Dice,
    scratch: Vec<u8>,
    fresh: Vec<Received>,
}

impl<P: Port> FaultInjector<P> {
    /// Puts `port` on a link with `faults`.
    pub fn new(port: P, faults: Faults, seed: u64) -> FaultInjector<P> {
        FaultInjector { port, faults, dice: Dice(seed), scratch: Vec::new(), fresh: Vec::new() }
    }

    /// The port without the link.
    pub fn into_inner(self) -> P {
        self.port
    }
}

impl<P: Port> Port for FaultInjector<P> {
    /// May append more than `max` when packets come twice, and fewer than the port received when they vanish.
    fn rx(&mut self, pool: &mut Pool, batch: &mut Vec<Received>, max: usize) -> io::Result<usize> {
        let before = batch.len();
        let outcome = self.port.rx(pool, &mut self.fresh, max);
        for mut packet in self.fresh.drain(..) {
            if self.dice.rolls(self.faults.drop) {
                pool.give(packet.buf);
                continue;
            }
            if self.dice.rolls(self.faults.corrupt) {
                self.dice.flip(&mut packet.buf);
            }
            if self.dice.rolls(self.faults.duplicate) {
                batch.push(packet.clone());
            }
            batch.push(packet);
        }
        outcome.map(|_| batch.len() - before)
    }

    fn tx(&mut self, frame: &[u8], time: Time) {
        if self.dice.rolls(self.faults.drop) {
            return;
        }
        self.scratch.clear();
        self.scratch.extend_from_slice(frame);
        if self.dice.rolls(self.faults.corrupt) {
            self.dice.flip(&mut self.scratch);
        }
        if self.dice.rolls(self.faults.duplicate) {
            self.port.tx(&self.scratch, time);
        }
        self.port.tx(&self.scratch, time);
    }

    fn flush(&mut self) -> io::Result<()> {
        self.port.flush()
    }

    fn ended(&self) -> bool {
        self.port.ended()
    }

    /// Those of the port: what it received and what it was given to send, behind the faults.
    fn counters(&self) -> Counters {
        self.port.counters()
    }

    #[cfg(unix)]
    fn descriptor(&self) -> Option<BorrowedFd<'_>> {
        self.port.descriptor()
    }

    fn events(&mut self) -> Vec<(&'static str, u64)> {
        self.port.events()
    }

    fn stop_receiving(&mut self) {
        self.port.stop_receiving();
    }

    fn drain(&mut self, timeout: Duration) -> bool {
        self.port.drain(timeout)
    }
}

/// SplitMix64 (Steele, Lea, Flood 2014): small, repeatable, good enough to spoil packets.
#[derive(Debug)]
struct Dice(u64);

impl Dice {
    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ (z >> 31)
    }

    fn rolls(&mut self, per_mille: u16) -> bool {
        per_mille > 0 && self.next() % 1000 < u64::from(per_mille)
    }

    /// Turns one bit over.
    fn flip(&mut self, bytes: &mut [u8]) {
        let roll = self.next();
        let bits = (bytes.len() as u64 * 8).max(1);
        let bit = roll % bits;
        if let Some(byte) = bytes.get_mut((bit / 8) as usize) {
            *byte ^= 1 << (bit % 8);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::MemoryPort;

    const FRAMES: usize = 10_000;

    fn receive(faults: Faults, seed: u64) -> Vec<Vec<u8>> {
        let port = MemoryPort::once(vec![vec![0; 60]; FRAMES]);
        let mut port = FaultInjector::new(port, faults, seed);
        let (mut pool, mut batch) = (Pool::default(), Vec::new());
        while !port.ended() {
            port.rx(&mut pool, &mut batch, 32).unwrap();
        }
        batch.iter().map(|packet| packet.buf.to_vec()).collect()
    }

    #[test]
    fn without_faults_everything_passes() {
        assert_eq!(receive(Faults::default(), 1), vec![vec![0; 60]; FRAMES]);
    }

    #[test]
    fn faults_happen_about_as_often_as_asked_and_repeatably() {
        let faults = Faults { drop: 100, corrupt: 50, duplicate: 20 };
        let frames = receive(faults, 7);
        let near = |n: usize, expected: usize| n.abs_diff(expected) < expected / 5;
        assert!(near(FRAMES * 51 / 50 - frames.len(), FRAMES / 10), "{}", frames.len());
        let bad: Vec<u32> = frames.iter().map(|f| f.iter().map(|b| b.count_ones()).sum()).filter(|&bits: &u32| bits > 0).collect();
        assert!(near(bad.len(), FRAMES * 9 / 200) && bad.iter().all(|&bits| bits == 1), "{}", bad.len());
        assert_eq!(frames, receive(faults, 7));
        assert_ne!(frames, receive(faults, 8));
    }

    #[test]
    fn what_is_sent_passes_the_same_link() {
        let mut port = FaultInjector::new(MemoryPort::default().keeping(), Faults { drop: 0, corrupt: 1000, duplicate: 1000 }, 3);
        port.tx(&[0; 4], Time(9));
        port.tx(&[], Time(9));
        port.flush().unwrap();
        let mut memory = port.into_inner();
        let (first, second) = (memory.take_sent().unwrap(), memory.take_sent().unwrap());
        assert_eq!(first, second);
        assert_eq!(first.frame.iter().map(|b| b.count_ones()).sum::<u32>(), 1);
        assert_eq!(memory.counters().tx_packets, 4);
    }
}

//! A port in memory: its frames are there from the start and what is sent is counted or kept. For tests and measurements, which see the router
//! and no device.

use std::collections::VecDeque;
use std::io;
use std::time::Duration;

use crate::{Counters, Link, Pool, Port, Received, Time};

/// A frame that a [`MemoryPort`] sent.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Sent {
    /// The time given with it.
    pub time: Time,
    /// Its bytes, Ethernet header first.
    pub frame: Vec<u8>,
}

/// A port whose frames stand in memory.
#[derive(Debug, Default)]
pub struct MemoryPort {
    frames: Vec<Vec<u8>>,
    next: usize,
    again: bool,
    clock: Time,
    interval: Duration,
    keeps: bool,
    sent: VecDeque<Sent>,
    counters: Counters,
}

impl MemoryPort {
    /// Receives each of `frames` (Ethernet) once, in order.
    pub fn once(frames: Vec<Vec<u8>>) -> MemoryPort {
        MemoryPort { frames, ..MemoryPort::default() }
    }

    /// Receives `frames` (Ethernet) in order again and again, without end.
    pub fn again_and_again(frames: Vec<Vec<u8>>) -> MemoryPort {
        MemoryPort { frames, again: true, ..MemoryPort::default() }
    }

    /// The first frame comes at `start`, each other one `interval` after the one before it. Else all come at the epoch.
    #[must_use]
    pub fn timed(self, start: Time, interval: Duration) -> MemoryPort {
        MemoryPort { clock: start, interval, ..self }
    }

    /// Keeps what is sent for [`MemoryPort::take_sent`], instead of only counting it.
    #[must_use]
    pub fn keeping(self) -> MemoryPort {
        MemoryPort { keeps: true, ..self }
    }

    /// Puts a frame behind those not yet received.
    pub fn push(&mut self, frame: Vec<u8>) {
        self.frames.push(frame);
    }

    /// The oldest frame sent and kept that was not taken before.
    pub fn take_sent(&mut self) -> Option<Sent> {
        self.sent.pop_front()
    }
}

impl Port for MemoryPort {
    fn rx(&mut self, pool: &mut Pool, batch: &mut Vec<Received>, max: usize) -> io::Result<usize> {
        for given in 0..max {
            if self.next == self.frames.len() && self.again {
                self.next = 0;
            }
            let Some(frame) = self.frames.get(self.next) else { return Ok(given) };
            self.next += 1;
            let mut buf = pool.take(frame.len());
            buf.append(frame);
            let packet = Received { buf, time: self.clock, wire_len: frame.len(), link: Link::Ethernet };
            self.clock = self.clock.after(self.interval);
            self.counters.received(&packet);
            batch.push(packet);
        }
        Ok(max)
    }

    fn tx(&mut self, frame: &[u8], time: Time) {
        self.counters.sent(frame.len());
        if self.keeps {
            self.sent.push_back(Sent { time, frame: frame.to_vec() });
        }
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }

    fn ended(&self) -> bool {
        self.next == self.frames.len() && (!self.again || self.frames.is_empty())
    }

    fn counters(&self) -> Counters {
        self.counters
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn rx(port: &mut MemoryPort, max: usize) -> Vec<Received> {
        let mut batch = Vec::new();
        let n = port.rx(&mut Pool::default(), &mut batch, max).unwrap();
        assert_eq!(n, batch.len());
        batch
    }

    #[test]
    fn frames_come_once_in_order_and_at_their_times() {
        let mut port = MemoryPort::once(vec![vec![1], vec![2, 2], vec![3]]).timed(Time(10), Duration::from_nanos(5));
        let batch = rx(&mut port, 2);
        assert_eq!(batch.iter().map(|p| (p.buf[0], p.time)).collect::<Vec<_>>(), [(1, Time(10)), (2, Time(15))]);
        assert!(!port.ended());
        assert_eq!(rx(&mut port, 2).len(), 1);
        assert!(port.ended());
        assert_eq!(port.counters(), Counters { rx_packets: 3, rx_bytes: 4, ..Counters::default() });
        port.push(vec![4]);
        assert_eq!(rx(&mut port, 2)[0].buf[..], [4]);
    }

    #[test]
    fn frames_come_again_and_again_without_end() {
        let mut port = MemoryPort::again_and_again(vec![vec![1], vec![2]]);
        assert_eq!(rx(&mut port, 5).iter().map(|p| p.buf[0]).collect::<Vec<_>>(), [1, 2, 1, 2, 1]);
        assert!(!port.ended());
        let mut port = MemoryPort::again_and_again(Vec::new());
        assert!(rx(&mut port, 5).is_empty() && port.ended());
    }

    #[test]
    fn what_is_sent_is_counted_and_kept_when_asked_to() {
        let mut port = MemoryPort::default().keeping();
        port.tx(&[1, 2, 3], Time(7));
        port.tx(&[4], Time(8));
        assert_eq!(port.take_sent(), Some(Sent { time: Time(7), frame: vec![1, 2, 3] }));
        assert_eq!((port.counters().tx_packets, port.counters().tx_bytes), (2, 4));
        let mut port = MemoryPort::default();
        port.tx(&[1], Time(7));
        assert_eq!((port.take_sent(), port.counters().tx_packets), (None, 1));
    }
}

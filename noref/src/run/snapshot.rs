//! What a worker counted, as it tells it between two bursts.

use std::time::Duration;

use plane::Counters;

use crate::report::Traffic;

/// One worker at one moment.
#[derive(Clone, Debug)]
pub struct Snapshot {
    /// Its number, from 0.
    pub worker: usize,
    /// The core it stays on, if it could be kept there.
    pub core: Option<usize>,
    /// What happened to packets.
    pub counters: Counters,
    /// Packets that wait for a neighbour.
    pub waiting: usize,
    /// Its queues.
    pub queues: Vec<QueueSnapshot>,
    /// What it did with its time.
    pub time: WorkTime,
    /// What became of packets that it left to the kernel.
    pub kernel: KernelCount,
}

/// Packets left to the kernel.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct KernelCount {
    /// It took them.
    pub passed: u64,
    /// It did not: the device that leads to it is down or not there.
    pub failed: u64,
}

/// One queue of a worker.
#[derive(Clone, Debug)]
pub struct QueueSnapshot {
    /// The port, by its place among the ports.
    pub place: usize,
    /// The port's name.
    pub port: String,
    /// The queue's number on its device; none for one that only sends.
    pub queue: Option<u32>,
    /// What stands behind it: `AF_XDP`, `AF_PACKET` …
    pub driver: &'static str,
    /// Packets and bytes.
    pub counters: port::Counters,
    /// What else happened there, by name (docs/ports.md).
    pub events: Vec<(&'static str, u64)>,
}

/// What a worker did with its time.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct WorkTime {
    /// Since it began.
    pub total: Duration,
    /// Of it, rounds in which frames came.
    pub busy: Duration,
    /// The same in clocks of the processor's time stamp counter, where it is steady.
    pub busy_clocks: Option<u64>,
    /// Rounds, all of them.
    pub rounds: u64,
    /// Rounds in which frames came.
    pub busy_rounds: u64,
    /// Times that it went to sleep.
    pub sleeps: u64,
}

impl QueueSnapshot {
    /// What several queues counted, together.
    pub fn sum<'a>(mut queues: impl Iterator<Item = &'a QueueSnapshot>) -> Option<QueueSnapshot> {
        let mut sum = queues.next()?.clone();
        queues.for_each(|queue| sum.add(queue));
        Some(sum)
    }

    /// What came in and what went out.
    pub fn traffic(&self) -> (Traffic, Traffic) {
        let port::Counters { rx_packets, rx_bytes, tx_packets, tx_bytes, rx_truncated: _, tx_failed: _ } = self.counters;
        (Traffic { packets: rx_packets, bytes: rx_bytes }, Traffic { packets: tx_packets, bytes: tx_bytes })
    }

    /// Adds this to what a queue of the same port counted, if there is one of it.
    pub fn add_to(self, queues: &mut Vec<QueueSnapshot>) {
        match queues.iter_mut().find(|queue| queue.place == self.place) {
            Some(queue) => queue.add(&self),
            None => queues.push(self),
        }
    }

    fn add(&mut self, other: &QueueSnapshot) {
        let port::Counters { rx_packets, rx_bytes, rx_truncated, tx_packets, tx_bytes, tx_failed } = other.counters;
        self.counters.rx_packets += rx_packets;
        self.counters.rx_bytes += rx_bytes;
        self.counters.rx_truncated += rx_truncated;
        self.counters.tx_packets += tx_packets;
        self.counters.tx_bytes += tx_bytes;
        self.counters.tx_failed += tx_failed;
        for &(event, count) in &other.events {
            match self.events.iter_mut().find(|(known, _)| *known == event) {
                Some((_, sum)) => *sum += count,
                None => self.events.push((event, count)),
            }
        }
    }
}

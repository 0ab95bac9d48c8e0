//! A queue of a memif interface as a port.

use std::cell::Cell;
use std::hint;
use std::io;
use std::os::fd::{AsFd, BorrowedFd};
use std::sync::Arc;
use std::time::{Duration, Instant};

use super::mailbox::{Lines, Mailbox};
use super::ring::Broken;
use super::sys::Events;
use crate::{Counters, Link, Pool, Port, Received, Time};

/// How often it is looked for a packet before sleeping, a microsecond or two in all: peers say that they sent and look whether to wake us, and nothing
/// keeps their processor from doing it the other way round within that time.
const LAST_LOOKS: u32 = 32;
/// How long a port that is dropped waits for what it sent to be taken.
const DRAIN: Duration = Duration::from_millis(100);

/// A queue of a memif interface: a ring in each direction, while a peer is connected. One worker owns it. Receiving and sending take no system call,
/// except where the peer asks to be woken: then [`Port::flush`] takes one.
///
/// To ask for [`Port::descriptor`] says that the caller will wait for it: from then to the next [`Port::rx`] the peer wakes us for what it sends. While
/// the worker is awake it does not.
#[derive(Debug)]
pub struct MemifPort {
    mailbox: Arc<Mailbox>,
    events: Events,
    lines: Option<Lines>,
    /// The number of their connection.
    connection: u64,
    /// Of a peer that went, the slots that are still to be looked at: what it put in before.
    leaving: Option<u16>,
    /// The worker was told what to wait for.
    waits: Cell<bool>,
    counters: Counters,
    unreadable: u64,
    ring_full: u64,
    unconnected: u64,
}

impl MemifPort {
    pub(super) fn new(mailbox: Arc<Mailbox>) -> io::Result<MemifPort> {
        let events = Events::new()?;
        events.add(&mailbox.bell)?;
        Ok(MemifPort {
            mailbox,
            events,
            lines: None,
            connection: 0,
            leaving: None,
            waits: Cell::new(false),
            counters: Counters::default(),
            unreadable: 0,
            ring_full: 0,
            unconnected: 0,
        })
    }

    /// True while a peer is connected, as far as this port has seen.
    pub fn is_connected(&self) -> bool {
        self.lines.is_some()
    }

    /// Takes the rings of a peer that came, or lets go of those of one that went.
    #[cold]
    fn change(&mut self) {
        self.let_go();
        self.leaving = None;
        (self.lines, self.connection) = self.mailbox.take();
        if let Some(Lines { receiver: Some(receiver), rung, .. }) = &self.lines {
            receiver.set_wants_waking(false);
            if let Some(rung) = rung {
                // Without it the worker still has its packets, when something else wakes it.
                let _ = self.events.add(rung);
            }
        }
    }

    /// Slots of a peer that went that are still to be looked at. It may go on writing: what waits at first is all.
    #[cold]
    fn leaving(&mut self) -> u16 {
        let receiver = self.lines.as_ref().and_then(|lines| lines.receiver.as_ref());
        *self.leaving.get_or_insert_with(|| receiver.and_then(|receiver| receiver.waiting().ok()).unwrap_or(0))
    }

    fn let_go(&mut self) {
        if let Some(rung) = self.lines.take().and_then(|lines| lines.rung) {
            self.events.remove(&rung);
        }
    }

    #[cold]
    fn break_off(&mut self, broken: Broken) {
        self.let_go();
        self.leaving = None;
        self.mailbox.report(self.connection, broken);
    }

    /// The worker is awake again: the peer need not wake it.
    #[cold]
    fn awake(&self) {
        self.waits.set(false);
        self.events.clear();
        if let Some(Lines { receiver: Some(receiver), .. }) = &self.lines {
            receiver.set_wants_waking(false);
        }
    }
}

impl Port for MemifPort {
    fn rx(&mut self, pool: &mut Pool, batch: &mut Vec<Received>, max: usize) -> io::Result<usize> {
        if self.waits.get() {
            self.awake();
        }
        if self.mailbox.has_changed() && self.leaving() == 0 {
            self.change();
        }
        let Some(Lines { receiver: Some(receiver), .. }) = &mut self.lines else { return Ok(0) };
        let waiting = match receiver.waiting() {
            Ok(0) => {
                // One that went and took back what it had put in keeps nobody waiting.
                self.leaving = self.leaving.map(|_| 0);
                return Ok(0);
            }
            Ok(waiting) => waiting.min(self.leaving.unwrap_or(waiting)),
            Err(broken) => {
                self.break_off(broken);
                return Ok(0);
            }
        };
        let (before, time) = (batch.len(), Time::now());
        let mut bytes = 0;
        let taken = receiver.receive(waiting, max, pool, |buf| {
            bytes += buf.len() as u64;
            batch.push(Received { wire_len: buf.len(), buf, time, link: Link::Ethernet });
        });
        let packets = batch.len() - before;
        self.counters.rx_packets += packets as u64;
        self.counters.rx_bytes += bytes;
        self.unreadable += taken.unreadable;
        if let Some(leaving) = &mut self.leaving {
            // The end of a packet that is not there will not come.
            *leaving = if taken.slots == 0 { 0 } else { leaving.saturating_sub(taken.slots) };
        }
        Ok(packets)
    }

    fn tx(&mut self, frame: &[u8], _time: Time) {
        if self.lines.is_none() && self.mailbox.has_changed() {
            self.change();
        }
        let Some(lines) = &mut self.lines else {
            self.unconnected += 1;
            self.counters.tx_failed += 1;
            return;
        };
        match lines.sender.put(frame) {
            Ok(true) => self.counters.sent(frame.len()),
            Ok(false) => {
                self.ring_full += 1;
                self.counters.tx_failed += 1;
            }
            Err(broken) => {
                self.counters.tx_failed += 1;
                self.break_off(broken);
            }
        }
    }

    fn flush(&mut self) -> io::Result<()> {
        if self.lines.as_mut().is_some_and(|lines| lines.sender.publish()) {
            self.mailbox.wake_peer();
        }
        Ok(())
    }

    fn counters(&self) -> Counters {
        self.counters
    }

    fn descriptor(&self) -> Option<BorrowedFd<'_>> {
        self.waits.set(true);
        if self.mailbox.has_changed() {
            self.mailbox.bell.ring();
        }
        if let Some(Lines { receiver: Some(receiver), .. }) = &self.lines {
            receiver.set_wants_waking(true);
            for _ in 0..LAST_LOOKS {
                if receiver.waiting() != Ok(0) {
                    self.mailbox.bell.ring();
                    break;
                }
                hint::spin_loop();
            }
        }
        Some(self.events.as_fd())
    }

    fn events(&mut self) -> Vec<(&'static str, u64)> {
        vec![
            ("rx_unreadable", self.unreadable),
            ("tx_ring_full", self.ring_full),
            ("tx_unconnected", self.unconnected),
            ("connections", self.mailbox.connections()),
        ]
    }
}

impl Drop for MemifPort {
    /// Waits, bounded, until the peer has taken what was sent: told that we go it would forget it.
    fn drop(&mut self) {
        let until = Instant::now() + DRAIN;
        while !self.mailbox.has_changed() && self.lines.as_ref().is_some_and(|lines| !lines.sender.is_empty()) && Instant::now() < until {
            std::thread::sleep(Duration::from_millis(1));
        }
        self.let_go();
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::live::memif::ring::{Receiver, Sender};
    use crate::live::memif::shared::{Descriptor, Regions, Ring};
    use crate::live::memif::sys::Event;
    use crate::live::sys::Mapping;

    /// Rings of a client, and its hand on the one to us.
    fn client() -> (Lines, Ring) {
        let regions = Arc::new(Regions::new(vec![Mapping::anonymous(8192).unwrap()]));
        let ring = |offset| Ring::new(&regions, 0, offset, 3).unwrap();
        let lines = Lines { receiver: Some(Receiver::server(ring(0))), sender: Sender::server(ring(1024)), rung: None };
        (lines, ring(0))
    }

    #[test]
    fn a_peer_that_went_and_takes_back_what_it_had_put_in_keeps_no_other_from_coming() {
        let mailbox = Arc::new(Mailbox::new(Event::new().unwrap(), Arc::new(Event::new().unwrap())));
        let mut port = MemifPort::new(Arc::clone(&mailbox)).unwrap();
        let (mut pool, mut batch) = (Pool::default(), Vec::new());
        let (first, hand) = client();
        mailbox.put(Some(first));
        assert_eq!(port.rx(&mut pool, &mut batch, 64).unwrap(), 0);
        (0..3).for_each(|slot| hand.write(slot, Descriptor { flags: 0, region: 0, length: 60, offset: 4096 }));
        hand.set_head(3);
        mailbox.put(None);
        assert_eq!(port.rx(&mut pool, &mut batch, 1).unwrap(), 1, "what came before the end still arrives");
        hand.set_head(1);
        for _ in 0..3 {
            assert_eq!(port.rx(&mut pool, &mut batch, 1).unwrap(), 0);
        }
        assert!(!port.is_connected() && !mailbox.has_changed());
    }

    #[test]
    fn what_is_wrong_with_a_peer_that_went_is_not_held_against_the_next_one() {
        let mailbox = Arc::new(Mailbox::new(Event::new().unwrap(), Arc::new(Event::new().unwrap())));
        let mut port = MemifPort::new(Arc::clone(&mailbox)).unwrap();
        let (mut pool, mut batch) = (Pool::default(), Vec::new());
        let ((first, hand), (second, other_hand)) = (client(), client());
        mailbox.put(Some(first));
        assert_eq!(port.rx(&mut pool, &mut batch, 64).unwrap(), 0);
        (0..3).for_each(|slot| hand.write(slot, Descriptor { flags: 0, region: 0, length: 60, offset: 4096 }));
        hand.set_head(3);
        mailbox.put(None);
        assert_eq!(port.rx(&mut pool, &mut batch, 1).unwrap(), 1);
        mailbox.put(Some(second));
        // More than the ring has.
        hand.set_head(10_000);
        assert_eq!(port.rx(&mut pool, &mut batch, 1).unwrap(), 0);
        assert_eq!(mailbox.take_broken(), None);
        assert_eq!(port.rx(&mut pool, &mut batch, 1).unwrap(), 0);
        assert!(port.is_connected());
        other_hand.set_head(10_000);
        assert_eq!(port.rx(&mut pool, &mut batch, 1).unwrap(), 0);
        assert!(mailbox.take_broken().is_some() && !port.is_connected(), "its own faults are");
    }
}

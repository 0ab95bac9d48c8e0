//! A queue of a port, as the worker that owns it has it.

use std::io;

use plane::Worker;
use port::{Port, Received, Time};

use super::snapshot::QueueSnapshot;
use crate::stderr::say;

/// A queue and whose it is.
pub struct Queue {
    /// The port it belongs to, by its place among the ports.
    pub place: usize,
    /// The port's name.
    pub name: String,
    /// Its number on the device; none for one that only sends.
    number: Option<u32>,
    driver: &'static str,
    port: Box<dyn Port + Send>,
    /// Something was handed to it since it was flushed.
    unsent: bool,
    /// The last error that was told, so that it is told once.
    told: Option<i32>,
}

impl Queue {
    /// Queue `number` of the port in place `place`.
    pub fn new(place: usize, name: &str, number: Option<u32>, driver: &'static str, port: Box<dyn Port + Send>) -> Queue {
        Queue { place, name: name.to_owned(), number, driver, port, unsent: false, told: None }
    }

    pub fn port(&self) -> &(dyn Port + Send) {
        &*self.port
    }

    /// False when it only sends.
    pub fn receives(&self) -> bool {
        self.number.is_some()
    }

    /// Appends up to `max` frames that came in.
    pub fn receive(&mut self, worker: &mut Worker, batch: &mut Vec<Received>, max: usize) {
        let outcome = self.port.rx(worker.pool(), batch, max).map(|_| ());
        self.look(outcome);
    }

    /// New frames are the kernel's from here on, those that are there can still be received.
    pub fn stop_receiving(&mut self) {
        self.port.stop_receiving();
    }

    /// Hands over a frame, to leave with the next flush.
    pub fn send(&mut self, frame: &[u8], time: Time) {
        self.port.tx(frame, time);
        self.unsent = true;
    }

    pub fn flush(&mut self) {
        if std::mem::take(&mut self.unsent) {
            let outcome = self.port.flush();
            self.look(outcome);
        }
    }

    /// What happened here. What its counters of packets do not say is told by name.
    pub fn snapshot(&mut self) -> QueueSnapshot {
        let counters = self.port.counters();
        let mut events = vec![("rx_truncated", counters.rx_truncated), ("tx_failed", counters.tx_failed)];
        events.extend(self.port.events());
        QueueSnapshot { place: self.place, port: self.name.clone(), queue: self.number, driver: self.driver, counters, events }
    }

    /// Tells of an error, once. A device that went down may come up again, so it is no reason to end.
    fn look(&mut self, outcome: io::Result<()>) {
        match outcome {
            Ok(()) => {}
            Err(error) if self.told == error.raw_os_error() && self.told.is_some() => {}
            Err(error) => {
                say(format_args!("{}: {error}", self.name));
                self.told = error.raw_os_error();
            }
        }
    }
}

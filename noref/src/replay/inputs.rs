//! The captures that a replay reads.

use std::path::Path;

use port::capture::{Merge, Reader};
use port::{Pool, Time};

use crate::args::{PortCapture, PortName};
use crate::failure::Failure;

/// All captures, merged by time.
pub struct Inputs {
    merge: Merge,
    /// The port of each capture, as its number in the list of ports.
    ports: Vec<usize>,
    /// Bytes of all captures, when each is a file.
    total: Option<u64>,
}

impl Inputs {
    /// Opens every capture and reads its first packet.
    ///
    /// # Errors
    /// When one can not be opened or is none, or standard input is to be read twice.
    pub fn open(rx: &[PortCapture], ports: &[PortName], pool: &mut Pool) -> Result<Inputs, Failure> {
        if rx.iter().filter(|input| is_standard_input(&input.capture)).count() > 1 {
            return Err(Failure::unusable("standard input can be read only once: give - to one --rx"));
        }
        let readers = rx.iter().map(|input| Reader::open(&input.capture)).collect::<Result<_, _>>().map_err(Failure::unusable)?;
        let merge = Merge::new(readers, pool).map_err(Failure::unusable)?;
        let ports = rx.iter().filter_map(|input| ports.iter().position(|port| *port == input.port)).collect();
        let total = rx.iter().map(|input| length(&input.capture)).sum();
        Ok(Inputs { merge, ports, total })
    }

    /// When the first packet of all comes; that of the epoch when there is none.
    pub fn begin(&self) -> Time {
        self.merge.next_time().unwrap_or(Time::ZERO)
    }

    /// The next packet and the number of the port it arrives at; None when all captures have ended.
    pub fn next(&mut self, pool: &mut Pool) -> Option<(usize, port::Received)> {
        let (input, packet) = self.merge.next(pool)?;
        Some((*self.ports.get(input)?, packet))
    }

    /// Bytes read so far.
    pub fn offset(&self) -> u64 {
        self.merge.offset()
    }

    /// Bytes of all captures, unless one is no file.
    pub fn total(&self) -> Option<u64> {
        self.total
    }

    /// Captures that broke off so far.
    pub fn broken(&self) -> &[port::capture::CaptureError] {
        self.merge.broken()
    }
}

pub fn is_standard_input(path: &Path) -> bool {
    path == Path::new("-")
}

fn length(path: &Path) -> Option<u64> {
    let metadata = (!is_standard_input(path)).then(|| path.metadata().ok()).flatten()?;
    metadata.is_file().then_some(metadata.len())
}

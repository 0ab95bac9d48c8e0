//! One worker between memory and memory.

use std::hint::black_box;

use plane::{BURST, Sent, Worker};
use port::Time;

use super::frames::Frames;
use super::{PORTS, Way};

/// A worker and the frames that come to it.
pub struct Lane<'w> {
    pub worker: Worker,
    frames: &'w Frames,
    /// Length of what goes out, bytes.
    sent: usize,
    at: usize,
}

impl<'w> Lane<'w> {
    /// The packets of this way to this worker.
    pub fn new(worker: Worker, way: &'w Way) -> Lane<'w> {
        Lane { worker, frames: &way.frames, sent: way.sent, at: 0 }
    }

    /// Begins with the frame in this place.
    pub fn from(mut self, place: usize) -> Lane<'w> {
        self.at = place % self.frames.len().max(1);
        self
    }

    /// One burst: received (copied from memory), taken through the router, sent (looked at and given back). How many packets left as they should: by the second
    /// port, in the length expected.
    pub fn burst(&mut self) -> usize {
        self.burst_of(BURST, |_| ())
    }

    /// As [`Lane::burst`], of so many frames, at most [`BURST`]; `look` sees each one that leaves.
    #[inline]
    pub fn burst_of(&mut self, frames: usize, mut look: impl FnMut(&Sent<'_>)) -> usize {
        let Lane { worker, frames: all, sent: expected, at } = self;
        let next = || {
            let frame = all.get(*at);
            *at = if *at + 1 >= all.len() { 0 } else { *at + 1 };
            frame
        };
        worker.receive_copies(0, Time::ZERO, std::iter::repeat_with(next).take(frames));
        worker.run();
        let mut good = 0;
        worker.drain(|sent| {
            let buf = black_box(sent.buf);
            good += usize::from(sent.port == PORTS.len() - 1 && buf.len() == *expected && buf.first() == Some(&2));
            look(&sent);
        });
        good
    }
}

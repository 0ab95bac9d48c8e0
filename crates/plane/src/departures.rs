//! Frames that are to be sent, in order, until they are handed over.

use std::ops::Range;

use port::{Buf, Pool, Time};

/// A frame to be sent.
#[derive(Debug)]
pub struct Sent<'a> {
    /// The port, by its place among the ports.
    pub port: usize,
    /// When the frame that caused it came in.
    pub time: Time,
    /// Number of that frame.
    pub frame: u64,
    /// The frame, Ethernet header first.
    pub buf: &'a Buf,
}

/// Frames to be sent one after the other by one port, caused by frames that came in at one time.
#[derive(Debug)]
pub struct SentTogether<'a> {
    /// The port, by its place among the ports.
    pub port: usize,
    /// When the frames that caused them came in.
    pub time: Time,
    /// The frames, Ethernet header first.
    pub bufs: &'a [Buf],
    /// Number of the frame that caused the first; those behind it were caused each by the next one.
    first: u64,
}

impl<'a> SentTogether<'a> {
    /// Each frame.
    pub fn iter(&self) -> impl Iterator<Item = Sent<'a>> + use<'a> {
        let Self { port, time, bufs, first } = *self;
        (first..).zip(bufs).map(move |(frame, buf)| Sent { port, time, frame, buf })
    }
}

struct Batch {
    port: usize,
    time: Time,
    /// Number of the frame that caused the first.
    first: u64,
    places: Range<usize>,
}

/// The frames, and which of them leave together.
#[derive(Default)]
pub(crate) struct Departures {
    bufs: Vec<Buf>,
    batches: Vec<Batch>,
}

impl Departures {
    /// Puts one frame behind the others, caused by the one of number `cause`.
    pub(crate) fn push(&mut self, port: usize, time: Time, cause: u64, buf: Buf) {
        self.extend(port, time, cause, std::iter::once(buf));
    }

    /// Puts frames behind the others, caused by those of the numbers from `first` on.
    #[inline]
    pub(crate) fn extend(&mut self, port: usize, time: Time, first: u64, bufs: impl Iterator<Item = Buf>) {
        let begin = self.bufs.len();
        self.bufs.extend(bufs);
        self.batches.push(Batch { port, time, first, places: begin..self.bufs.len() });
    }

    /// Hands all over, in order; their buffers go to the pool.
    #[inline]
    pub(crate) fn drain(&mut self, pool: &mut Pool, mut send: impl FnMut(SentTogether<'_>)) {
        for Batch { port, time, first, places } in self.batches.drain(..) {
            send(SentTogether { port, time, first, bufs: &self.bufs[places] });
        }
        pool.give_all(&mut self.bufs);
    }
}

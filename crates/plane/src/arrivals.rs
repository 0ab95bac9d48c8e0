//! The frames of a burst, as they came.

use std::ops::Range;

use port::{Buf, Time};

/// Frames of a burst at most.
pub const BURST: usize = 256;

/// Frames that came together: by one port, at one time.
#[derive(Clone, Copy, Debug)]
struct Run {
    port: usize,
    time: Time,
    /// The place behind the last of them.
    end: usize,
}

/// The frames of a burst in the order in which they came. Each has a place, from 0.
#[derive(Default)]
pub(crate) struct Arrivals {
    frames: Vec<Buf>,
    runs: Vec<Run>,
}

impl Arrivals {
    pub(crate) fn new() -> Arrivals {
        Arrivals { frames: Vec::with_capacity(BURST), runs: Vec::with_capacity(BURST) }
    }

    /// Takes one more. False when there is no room for another.
    #[inline]
    pub(crate) fn push(&mut self, port: usize, frame: Buf, time: Time) -> bool {
        self.frames.push(frame);
        self.note(port, time);
        self.frames.len() < BURST
    }

    /// Takes more that came together: as many as there is room for. How many that were.
    #[inline]
    pub(crate) fn extend(&mut self, port: usize, time: Time, frames: impl Iterator<Item = Buf>) -> usize {
        let before = self.frames.len();
        self.frames.extend(frames.take(BURST.saturating_sub(before)));
        self.note(port, time);
        self.frames.len() - before
    }

    /// Writes down where the last ones came from.
    #[inline]
    fn note(&mut self, port: usize, time: Time) {
        let end = self.frames.len();
        match self.runs.last_mut() {
            Some(run) if run.port == port && run.time == time => run.end = end,
            _ => self.runs.push(Run { port, time, end }),
        }
    }

    /// The frames, and where they came from.
    pub(crate) fn parts(&mut self) -> (&mut [Buf], Runs<'_>) {
        (&mut self.frames, Runs(&self.runs))
    }

    /// Takes the frames out, which have the places from 0.
    pub(crate) fn drain(&mut self) -> (impl Iterator<Item = Buf> + '_, Runs<'_>) {
        (self.frames.drain(..), Runs(&self.runs))
    }

    /// How many there are.
    pub(crate) fn len(&self) -> usize {
        self.frames.len()
    }

    pub(crate) fn clear(&mut self) {
        self.frames.clear();
        self.runs.clear();
    }
}

/// Where the frames of a burst came from.
#[derive(Clone, Copy)]
pub(crate) struct Runs<'a>(&'a [Run]);

impl<'a> Runs<'a> {
    /// The places of those that came together, with their port and time.
    pub(crate) fn iter(self) -> impl Iterator<Item = (Range<usize>, usize, Time)> + use<'a> {
        self.0.iter().scan(0, |begin, run| {
            let places = std::mem::replace(begin, run.end)..run.end;
            Some((places, run.port, run.time))
        })
    }

    /// The time of the frame in a place.
    pub(crate) fn time(self, place: usize) -> Time {
        let run = self.0.partition_point(|run| run.end <= place);
        self.0.get(run).map_or(Time::ZERO, |run| run.time)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn frames_that_came_together_are_told_by_their_places() {
        let mut arrivals = Arrivals::new();
        for (port, time) in [(0, 1), (0, 1), (2, 1), (2, 5)] {
            assert!(arrivals.push(port, Buf::default(), Time(time)));
        }
        let (_, runs) = arrivals.parts();
        let times: Vec<_> = (0..4).map(|place| runs.time(place)).collect();
        assert_eq!(times, [Time(1), Time(1), Time(1), Time(5)]);
        let runs: Vec<_> = runs.iter().collect();
        assert_eq!(runs, [(0..2, 0, Time(1)), (2..3, 2, Time(1)), (3..4, 2, Time(5))]);
        arrivals.clear();
        assert_eq!(arrivals.parts().1.iter().count(), 0);
    }
}

//! How much of its time a worker is busy, for at most one look at a clock beside the one that gives packets their time.

use std::time::{Duration, Instant};

use port::live::{clocks, clocks_are_steady};

use super::snapshot::WorkTime;

/// Counts a worker's busy clocks: those of the processor's time stamp counter where it is steady, else nanoseconds of the system's clock.
///
/// A busy round ends where the next one begins: under load, what a worker does between two rounds counts too, and no clock is looked at twice.
pub struct Stopwatch {
    began: Instant,
    /// The counter then, where it is used.
    first: Option<u64>,
    /// When the round began.
    round: u64,
    /// The round before was busy, and this one began at its end.
    goes_on: bool,
    busy: u64,
    /// What of it was told as time, and the time: a rate that is known better later makes no time of the past shorter.
    told: (u64, Duration),
    rounds: u64,
    busy_rounds: u64,
}

impl Stopwatch {
    pub fn start() -> Stopwatch {
        let first = clocks().filter(|_| clocks_are_steady());
        Stopwatch { began: Instant::now(), first, round: 0, goes_on: false, busy: 0, told: Default::default(), rounds: 0, busy_rounds: 0 }
    }

    /// A round begins, at this moment.
    #[inline]
    pub fn begin(&mut self, moment: Instant) {
        if !self.goes_on {
            self.round = self.at(|| moment);
        }
    }

    /// The round ends; it was busy when frames came.
    #[inline]
    pub fn end(&mut self, came: bool) {
        self.rounds += 1;
        self.goes_on = came;
        if came {
            let end = self.at(Instant::now);
            self.busy_rounds += 1;
            self.busy += end.saturating_sub(self.round);
            self.round = end;
        }
    }

    /// What was counted so far.
    pub fn time(&mut self) -> WorkTime {
        let (clocks, total) = (self.at(Instant::now), self.began.elapsed());
        let (before, busy) = self.told;
        let busy = busy + total.mul_f64((self.busy - before) as f64 / clocks.max(1) as f64);
        self.told = (self.busy, busy);
        WorkTime { total, busy, busy_clocks: self.first.map(|_| self.busy), rounds: self.rounds, busy_rounds: self.busy_rounds, sleeps: 0 }
    }

    /// Clocks since the start. Where the counter is not used the system's clock is asked, by `moment`.
    #[inline]
    fn at(&self, moment: impl FnOnce() -> Instant) -> u64 {
        match self.first.zip(clocks()) {
            Some((first, now)) => now.wrapping_sub(first),
            None => moment().saturating_duration_since(self.began).as_nanos() as u64,
        }
    }
}

#[cfg(test)]
mod tests {
    use std::thread::sleep;

    use super::*;

    const WHILE: Duration = Duration::from_millis(20);

    #[test]
    fn busy_rounds_count_from_the_end_of_the_one_before_and_others_do_not() {
        for first in [Some(0), None] {
            let started = Stopwatch::start();
            let mut stopwatch = Stopwatch { first: first.and(started.first), ..started };
            let mut round = |came, within: Duration, after: Duration| {
                stopwatch.begin(Instant::now());
                sleep(within);
                stopwatch.end(came);
                sleep(after);
                stopwatch.time()
            };
            round(false, WHILE, WHILE);
            let one = round(true, WHILE, WHILE);
            let two = round(true, WHILE, WHILE);
            assert!((WHILE..one.total - 2 * WHILE).contains(&one.busy), "{one:?}");
            assert!((3 * WHILE..two.total - 3 * WHILE).contains(&two.busy), "{two:?}");
            let idle = round(false, WHILE, WHILE);
            assert_eq!((idle.rounds, idle.busy_rounds, idle.busy, idle.busy_clocks), (4, 2, two.busy, two.busy_clocks));
            assert_eq!(idle.busy_clocks.is_some(), first.is_some() && clocks_are_steady());
        }
    }
}

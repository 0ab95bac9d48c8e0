//! The time that packets and timers of a worker have.

use std::time::Instant;

use port::Time;

/// The machine's time as it was at the start, going on steadily: setting the machine's clock moves no timer.
#[derive(Clone, Copy)]
pub struct Clock {
    began: Instant,
    time: Time,
}

impl Clock {
    pub fn start() -> Clock {
        Clock { began: Instant::now(), time: Time::now() }
    }

    pub fn now(&self) -> Time {
        self.at(Instant::now())
    }

    /// The time at a moment after the start.
    pub fn at(&self, moment: Instant) -> Time {
        self.time.after(moment.saturating_duration_since(self.began))
    }
}

//! The time that packets and timers of a worker have.

use std::time::Instant;

use port::Time;
use route::Tick;

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

    /// As the tables' writer is told it.
    pub fn tick(&self) -> Tick {
        Tick::from_nanos(self.now().0)
    }

    /// The time at a moment after the start.
    pub fn at(&self, moment: Instant) -> Time {
        self.time.after(moment.saturating_duration_since(self.began))
    }
}

//! When a packet was received or sent.

use std::fmt;
use std::time::{Duration, SystemTime};

/// A point in time: nanoseconds since 1970-01-01 00:00 UTC. Reaches to the year 2554; arithmetic stops there instead of wrapping.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Default)]
pub struct Time(pub u64);

impl Time {
    /// The epoch.
    pub const ZERO: Time = Time(0);

    /// `micros` microseconds after the epoch.
    pub const fn from_micros(micros: u64) -> Time {
        Time(micros.saturating_mul(1_000))
    }

    /// `seconds` and `nanos` after the epoch. `nanos` may be a second or more.
    pub const fn from_parts(seconds: u64, nanos: u64) -> Time {
        Time(seconds.saturating_mul(1_000_000_000).saturating_add(nanos))
    }

    /// The machine's time.
    pub fn now() -> Time {
        SystemTime::UNIX_EPOCH.elapsed().map_or(Time::ZERO, |since| Time::ZERO.after(since))
    }

    /// Whole seconds since the epoch.
    pub const fn seconds(self) -> u64 {
        self.0 / 1_000_000_000
    }

    /// Nanoseconds beyond the whole second.
    pub const fn nanos(self) -> u32 {
        (self.0 % 1_000_000_000) as u32
    }

    /// The time `span` later.
    #[must_use]
    pub const fn after(self, span: Duration) -> Time {
        let nanos = span.as_nanos();
        Time(self.0.saturating_add(if nanos > u64::MAX as u128 { u64::MAX } else { nanos as u64 }))
    }

    /// How long ago `earlier` was; zero when it lies ahead.
    pub const fn since(self, earlier: Time) -> Duration {
        Duration::from_nanos(self.0.saturating_sub(earlier.0))
    }
}

/// Seconds since the epoch with nine places.
impl fmt::Display for Time {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}.{:09}", self.seconds(), self.nanos())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn time_is_shown_in_seconds_and_never_wraps() {
        let time = Time::from_micros(12_000_004);
        assert_eq!(time.to_string(), "12.000004000");
        assert_eq!(time.after(Duration::from_millis(5)).since(time), Duration::from_millis(5));
        assert_eq!(time.since(Time(u64::MAX)), Duration::ZERO);
        assert_eq!(Time::from_parts(u64::MAX, 1).after(Duration::MAX), Time(u64::MAX));
    }
}

//! Time as the tables know it.

/// A moment: hundredths of a second since 1970, as fine as netlink tells of buckets.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Default)]
pub struct Tick(pub u64);

impl Tick {
    /// In a second.
    pub const PER_SECOND: u64 = 100;

    /// The tick of a moment in nanoseconds since 1970.
    #[inline]
    pub const fn from_nanos(nanos: u64) -> Tick {
        Tick(nanos / (1_000_000_000 / Tick::PER_SECOND))
    }

    /// The moment so many ticks later.
    #[must_use]
    pub fn after(self, ticks: impl Into<u64>) -> Tick {
        Tick(self.0.saturating_add(ticks.into()))
    }

    /// Ticks from an earlier moment to this one.
    pub fn since(self, earlier: Tick) -> u64 {
        self.0.saturating_sub(earlier.0)
    }
}

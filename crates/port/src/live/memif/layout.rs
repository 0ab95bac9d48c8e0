//! How a client lays its memory out: one region, rings first, then the buffers of each slot.
//!
//! ```text
//! │ rings to the server │ rings to the client │ buffers of the first ring │ of the second │ …
//! ```

use super::shared::{MOST_LOG2_SLOTS, ring_bytes};

/// Bytes of a buffer: what DPDK and VPP have, and as much as DPDK can take in one piece. Longer packets take several.
pub(super) const BUFFER: u32 = 2048;
/// From one buffer to the next: an odd number of cache lines, so that packets spread over the cache's sets.
const STRIDE: u32 = BUFFER + LINE;
const LINE: u32 = 64;
/// The largest region, which keeps all offsets within 32 bits.
const LARGEST: u64 = 1 << 30;

/// Which way a ring goes.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Direction {
    ToServer,
    ToClient,
}

/// Where the buffers of a ring's slots are, in region 0.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct Buffers {
    first: u32,
}

impl Buffers {
    /// Offset of a slot's buffer.
    #[inline]
    pub(super) fn offset(self, slot: u16) -> u32 {
        self.first + STRIDE * u32::from(slot)
    }
}

/// A client's memory.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct Layout {
    queues: u16,
    log2_slots: u8,
}

impl Layout {
    /// For so many rings in each direction, of so many slots. None when that is more memory than a region can have.
    pub(super) fn new(queues: u16, log2_slots: u8) -> Option<Layout> {
        let layout = Layout { queues, log2_slots };
        (log2_slots <= MOST_LOG2_SLOTS && layout.bytes() <= LARGEST).then_some(layout)
    }

    /// Bytes of the region.
    pub(super) fn bytes(&self) -> u64 {
        self.rings() * (u64::from(self.ring_bytes()) + self.slots() * u64::from(STRIDE))
    }

    /// Offset of a ring.
    pub(super) fn ring(&self, direction: Direction, index: u16) -> u32 {
        self.ring_bytes() * self.number(direction, index)
    }

    /// The buffers of a ring.
    pub(super) fn buffers(&self, direction: Direction, index: u16) -> Buffers {
        let rings = self.ring_bytes() * u32::from(self.queues) * 2;
        Buffers { first: rings + self.number(direction, index) * self.slots() as u32 * STRIDE }
    }

    fn number(&self, direction: Direction, index: u16) -> u32 {
        let before = if direction == Direction::ToServer { 0 } else { self.queues };
        u32::from(before) + u32::from(index)
    }

    fn rings(&self) -> u64 {
        u64::from(self.queues) * 2
    }

    fn slots(&self) -> u64 {
        1 << self.log2_slots
    }

    /// A multiple of a cache line: no two rings share one.
    fn ring_bytes(&self) -> u32 {
        (ring_bytes(1 << self.log2_slots) as u32).next_multiple_of(LINE)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rings_and_buffers_stand_apart_and_within_the_region() {
        for (queues, log2_slots) in [(1, 0), (1, 10), (3, 7), (4, 14), (64, 6)] {
            let layout = Layout::new(queues, log2_slots).unwrap();
            let mut parts: Vec<(u32, u32)> = Vec::new();
            for direction in [Direction::ToServer, Direction::ToClient] {
                for index in 0..queues {
                    parts.push((layout.ring(direction, index), ring_bytes(1 << log2_slots) as u32));
                    let buffers = layout.buffers(direction, index);
                    parts.extend((0..1 << log2_slots).map(|slot| (buffers.offset(slot), BUFFER)));
                }
            }
            parts.sort_unstable();
            assert!(parts.windows(2).all(|pair| pair[0].0 + pair[0].1 <= pair[1].0), "{queues} {log2_slots}");
            assert!(parts.iter().all(|(offset, _)| offset % LINE == 0));
            assert!(parts.last().is_some_and(|&(offset, len)| u64::from(offset + len) <= layout.bytes()));
        }
        assert_eq!(Layout::new(64, 14), None, "4 GiB");
    }
}

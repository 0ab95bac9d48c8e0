//! The rings that an AF_XDP socket shares with the kernel: one side puts in, the other takes out, nobody locks.
//!
//! ```text
//! consumer                producer
//!    ▼                       ▼
//!  ┌───┬───┬───┬───┬───┬───┬───┬───┐
//!  │ taken │ put in and shown  │free   slot = counter mod size; both counters only grow, and wrap at 2³²
//!  └───┴───┴───┴───┴───┴───┴───┴───┘
//! ```
//!
//! Invariants: a ring has one producer and one consumer, of which the kernel is the other; size is a power of two; ours is the only value of our
//! side. Orderings, as in Documentation/networking/af_xdp.rst:
//!
//! - The producer writes slots, then stores its counter with *release*; the consumer loads it with *acquire*, then reads the slots. So it sees what
//!   was written.
//! - The consumer reads slots, then stores its counter with *release*; the producer loads it with *acquire*, then writes the slots anew. So nothing is
//!   overwritten that is still being read.
//! - Whether the kernel wants to be woken is read after the counter is stored, with a full fence between: else each side could miss what the other
//!   just said (the kernel raises the flag and looks at the counter once more).

use std::io;
use std::mem::size_of;
use std::os::fd::BorrowedFd;
use std::ptr::NonNull;
use std::sync::atomic::{AtomicU32, Ordering, fence};

use crate::live::sys::{Mapping, Plain};

/// Where the parts of a ring stand in its memory.
pub(super) type Offsets = libc::xdp_ring_offset;

/// A ring, seen from either side.
#[derive(Debug)]
struct Ring<T> {
    producer: NonNull<AtomicU32>,
    consumer: NonNull<AtomicU32>,
    flags: NonNull<AtomicU32>,
    slots: NonNull<T>,
    size: u32,
    _memory: Mapping,
}

// SAFETY: the pointers are into the mapping, which moves along, and what is behind them is touched as the module's head says.
unsafe impl<T: Send> Send for Ring<T> {}

impl<T: Plain> Ring<T> {
    fn map(fd: BorrowedFd<'_>, page_offset: i64, offsets: &Offsets, size: u32) -> io::Result<Ring<T>> {
        if !size.is_power_of_two() {
            return Err(io::Error::new(io::ErrorKind::InvalidInput, format!("a ring has a power of two of slots, not {size}")));
        }
        let memory = Mapping::shared(fd, offsets.desc as usize + size as usize * size_of::<T>(), page_offset)?;
        Ok(Ring {
            producer: memory.at(offsets.producer as usize, 1)?,
            consumer: memory.at(offsets.consumer as usize, 1)?,
            flags: memory.at(offsets.flags as usize, 1)?,
            slots: memory.at(offsets.desc as usize, size as usize)?,
            size,
            _memory: memory,
        })
    }

    fn producer(&self) -> &AtomicU32 {
        // SAFETY: within the mapping, aligned; both sides touch it atomically only.
        unsafe { self.producer.as_ref() }
    }

    fn consumer(&self) -> &AtomicU32 {
        // SAFETY: as above.
        unsafe { self.consumer.as_ref() }
    }

    fn flags(&self) -> &AtomicU32 {
        // SAFETY: as above.
        unsafe { self.flags.as_ref() }
    }

    /// The slot of a counter: always one of the ring's.
    fn slot(&self, counter: u32) -> NonNull<T> {
        // SAFETY: the remainder is less than the slots that the mapping was checked to have.
        unsafe { self.slots.add((counter & (self.size - 1)) as usize) }
    }
}

/// The side that puts in.
#[derive(Debug)]
pub(super) struct Producer<T> {
    ring: Ring<T>,
    /// Put in, shown or not.
    written: u32,
    /// The consumer's counter when last looked at.
    taken: u32,
}

impl<T: Plain> Producer<T> {
    /// Our side of a ring of the socket.
    pub(super) fn map(fd: BorrowedFd<'_>, page_offset: i64, offsets: &Offsets, size: u32) -> io::Result<Producer<T>> {
        let ring = Ring::map(fd, page_offset, offsets, size)?;
        let (written, taken) = (ring.producer().load(Ordering::Relaxed), ring.consumer().load(Ordering::Acquire));
        Ok(Producer { ring, written, taken })
    }

    /// Puts a value in, which the kernel sees after [`Producer::show`]; false, and nothing done, when the ring is full.
    #[inline]
    #[must_use]
    pub(super) fn push(&mut self, value: T) -> bool {
        if !self.has_room(1) {
            return false;
        }
        // SAFETY: the slot is ours: the consumer has gone past it, which was loaded with acquire, and does not look at it before it is shown.
        unsafe { self.ring.slot(self.written).write(value) };
        self.written = self.written.wrapping_add(1);
        true
    }

    /// True when there is room for so many more.
    #[inline]
    pub(super) fn has_room(&mut self, values: u32) -> bool {
        let full = |taken| self.ring.size.saturating_sub(self.written.wrapping_sub(taken)) < values;
        if full(self.taken) {
            self.taken = self.ring.consumer().load(Ordering::Acquire);
        }
        !full(self.taken)
    }

    /// Shows the kernel what was put in.
    #[inline]
    pub(super) fn show(&mut self) {
        self.ring.producer().store(self.written, Ordering::Release);
    }

    /// How many values the kernel has not taken yet.
    pub(super) fn waiting(&mut self) -> u32 {
        self.taken = self.ring.consumer().load(Ordering::Acquire);
        self.written.wrapping_sub(self.taken)
    }

    /// True when the kernel looks at the ring only after a system call.
    #[inline]
    pub(super) fn wants_wakeup(&self) -> bool {
        fence(Ordering::SeqCst);
        self.ring.flags().load(Ordering::Relaxed) & libc::XDP_RING_NEED_WAKEUP != 0
    }
}

/// The side that takes out.
#[derive(Debug)]
pub(super) struct Consumer<T> {
    ring: Ring<T>,
    /// Taken, given back or not.
    read: u32,
    /// The producer's counter when last looked at.
    shown: u32,
}

impl<T: Plain> Consumer<T> {
    /// Our side of a ring of the socket.
    pub(super) fn map(fd: BorrowedFd<'_>, page_offset: i64, offsets: &Offsets, size: u32) -> io::Result<Consumer<T>> {
        let ring = Ring::map(fd, page_offset, offsets, size)?;
        let (read, shown) = (ring.consumer().load(Ordering::Relaxed), ring.producer().load(Ordering::Acquire));
        Ok(Consumer { ring, read, shown })
    }

    /// Takes the oldest value out. Its slot stays ours until [`Consumer::give_back`].
    #[inline]
    pub(super) fn pop(&mut self) -> Option<T> {
        if self.read == self.shown {
            self.shown = self.ring.producer().load(Ordering::Acquire);
            if self.read == self.shown {
                return None;
            }
        }
        // SAFETY: the producer wrote the slot before it moved its counter past it, which was loaded with acquire, and does not write it again before
        // we give it back. Any bits are a value.
        let value = unsafe { self.ring.slot(self.read).read() };
        self.read = self.read.wrapping_add(1);
        Some(value)
    }

    /// Gives the slots of what was taken back to the kernel.
    #[inline]
    pub(super) fn give_back(&mut self) {
        self.ring.consumer().store(self.read, Ordering::Release);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::fd::{AsFd, AsRawFd, FromRawFd, OwnedFd};

    const OFFSETS: Offsets = Offsets { producer: 0, consumer: 64, desc: 192, flags: 128 };

    /// A ring's memory without a socket, its counters at `start`.
    fn memory(start: u32) -> OwnedFd {
        // SAFETY: the name is a string with its zero.
        let fd = unsafe { libc::memfd_create(c"noref-ring".as_ptr(), libc::MFD_CLOEXEC) };
        assert!(fd >= 0, "{}", io::Error::last_os_error());
        // SAFETY: the descriptor is new.
        let fd = unsafe { OwnedFd::from_raw_fd(fd) };
        // SAFETY: no memory is involved.
        assert_eq!(unsafe { libc::ftruncate(fd.as_raw_fd(), 4096) }, 0);
        let ring = Ring::<u64>::map(fd.as_fd(), 0, &OFFSETS, 8).unwrap();
        ring.producer().store(start, Ordering::Relaxed);
        ring.consumer().store(start, Ordering::Relaxed);
        fd
    }

    /// Both sides of one ring of eight slots.
    fn sides(start: u32) -> (Producer<u64>, Consumer<u64>, OwnedFd) {
        let fd = memory(start);
        (Producer::map(fd.as_fd(), 0, &OFFSETS, 8).unwrap(), Consumer::map(fd.as_fd(), 0, &OFFSETS, 8).unwrap(), fd)
    }

    #[test]
    fn values_come_out_in_order_once_they_are_shown() {
        let (mut producer, mut consumer, _) = sides(0);
        assert!(producer.push(1) && producer.push(2));
        assert_eq!(consumer.pop(), None);
        producer.show();
        assert_eq!((consumer.pop(), consumer.pop(), consumer.pop()), (Some(1), Some(2), None));
        assert_eq!(producer.waiting(), 2);
        consumer.give_back();
        assert_eq!(producer.waiting(), 0);
    }

    #[test]
    fn a_full_ring_takes_no_more_until_slots_are_given_back() {
        let (mut producer, mut consumer, _) = sides(0);
        assert!((0..7).all(|value| producer.push(value)) && producer.has_room(1) && !producer.has_room(2));
        assert!(producer.push(7) && !producer.has_room(1) && !producer.push(8));
        producer.show();
        assert_eq!(consumer.pop(), Some(0));
        assert!(!producer.push(8), "taken and not given back");
        consumer.give_back();
        assert!(producer.has_room(1) && producer.push(8) && !producer.push(9));
    }

    #[test]
    fn counters_wrap() {
        let (mut producer, mut consumer, _) = sides(u32::MAX - 2);
        for round in 0..100_u64 {
            assert!((0..5).all(|value| producer.push(round * 5 + value)));
            producer.show();
            assert!((0..5).all(|value| consumer.pop() == Some(round * 5 + value)));
            assert_eq!(consumer.pop(), None);
            consumer.give_back();
        }
    }

    #[test]
    fn the_wish_to_be_woken_is_seen() {
        let (producer, _, fd) = sides(0);
        assert!(!producer.wants_wakeup());
        let ring = Ring::<u64>::map(fd.as_fd(), 0, &OFFSETS, 8).unwrap();
        ring.flags().store(libc::XDP_RING_NEED_WAKEUP, Ordering::Relaxed);
        assert!(producer.wants_wakeup());
    }

    #[test]
    fn two_threads_hand_over_every_value() {
        let (mut producer, mut consumer, _) = sides(7);
        const COUNT: u64 = 20_000;
        let taker = std::thread::spawn(move || {
            let mut expected = 0;
            while expected < COUNT {
                match consumer.pop() {
                    Some(value) => {
                        assert_eq!(value, expected);
                        expected += 1;
                        consumer.give_back();
                    }
                    None => std::thread::yield_now(),
                }
            }
        });
        for value in 0..COUNT {
            while !producer.push(value) {
                std::thread::yield_now();
            }
            producer.show();
        }
        taker.join().unwrap();
    }

    #[test]
    fn a_size_that_is_no_power_of_two_is_refused() {
        assert!(Producer::<u64>::map(memory(0).as_fd(), 0, &OFFSETS, 6).is_err());
    }
}

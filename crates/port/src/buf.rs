//! A packet's bytes with room in front, so that headers can be taken off and put on without moving the rest.
//!
//! A [`Buf`] is moved wherever its packet goes, so it is two words: where its memory begins, and how much of it is what. The only unsafe code on packets'
//! bytes is here.
//!
//! # Invariants
//!
//! 1. `memory` is the start of an allocation of `units * UNIT` bytes, aligned to [`UNIT`], all of them initialised, that this value alone owns; without
//!    units there is none, and `memory` dangles.
//! 2. `head + len` is at most `units * UNIT`.
//!
//! The fields are private, and whoever writes one keeps them.

use std::alloc::{Layout, alloc_zeroed, dealloc, handle_alloc_error};
use std::ops::{Deref, DerefMut};
use std::ptr::NonNull;
use std::slice;

/// Bytes kept free in front of a received packet: enough for an outer Ethernet and IPv6 header and a segment list of a dozen SIDs.
pub const HEADROOM: usize = 320;

/// Memory comes in cache lines.
const UNIT: usize = 64;

/// Bytes of a buffer out of a [`Pool`]: an odd number of cache lines, so that the headers of a batch spread over the cache's sets.
const STANDARD: usize = 35 * UNIT;

/// The most that a buffer has: what 16 bits of units can say.
const MAX: usize = u16::MAX as usize * UNIT;

/// One packet. Dereferences to its bytes.
///
/// ```text
/// | headroom | bytes | tailroom |
/// 0          head    head + len  capacity
/// ```
pub struct Buf {
    memory: NonNull<u8>,
    len: u32,
    head: u16,
    units: u16,
}

// SAFETY: it owns its memory alone (invariant 1), and gives references to it only as a slice would.
unsafe impl Send for Buf {}
// SAFETY: as above.
unsafe impl Sync for Buf {}

impl Buf {
    /// An empty buffer that can take `room` bytes behind `headroom` free ones.
    ///
    /// # Panics
    /// When they are 4 MiB or more, or the headroom 64 KiB.
    pub fn with_room(headroom: usize, room: usize) -> Buf {
        let head = u16::try_from(headroom).expect("a headroom below 64 KiB");
        let bytes = headroom.saturating_add(room);
        assert!(bytes <= MAX, "a buffer of {bytes} bytes");
        let units = bytes.div_ceil(UNIT) as u16;
        Buf { memory: allocate(units), len: 0, head, units }
    }

    /// A buffer that holds a copy of `bytes`, with the usual headroom.
    pub fn from_bytes(bytes: &[u8]) -> Buf {
        let mut buf = Buf::with_room(HEADROOM, bytes.len().max(STANDARD - HEADROOM));
        buf.append(bytes);
        buf
    }

    /// Bytes free in front.
    #[inline]
    pub fn headroom(&self) -> usize {
        usize::from(self.head)
    }

    /// Bytes free behind.
    #[inline]
    pub fn tailroom(&self) -> usize {
        self.capacity() - self.end()
    }

    /// Puts `n` bytes of unspecified content in front, for the caller to fill: after [`Buf::trim_front`] they are the bytes trimmed. False, and
    /// nothing changed, when the headroom is too small.
    #[inline]
    #[must_use]
    pub fn prepend(&mut self, n: usize) -> bool {
        if n > self.headroom() {
            return false;
        }
        self.head -= n as u16;
        self.len += n as u32;
        true
    }

    /// Moves the packet to a bigger buffer that has `n` bytes of headroom. What stood in the headroom is kept. Not for the packet path.
    ///
    /// # Panics
    /// When the buffer would have 4 MiB or more, or a headroom of 64 KiB.
    pub fn reserve_front(&mut self, n: usize) {
        let more = n.saturating_sub(self.headroom());
        let end = self.end();
        let mut moved = Buf::with_room(self.headroom() + more, self.capacity() - self.headroom());
        moved.whole_mut()[more..more + end].copy_from_slice(&self.whole()[..end]);
        moved.len = self.len;
        *self = moved;
    }

    /// Takes `n` bytes off the front (all of them when there are fewer).
    #[inline]
    pub fn trim_front(&mut self, n: usize) {
        let n = n.min(self.len());
        let head = self.headroom() + n;
        if head > usize::from(u16::MAX) {
            return self.move_to_front(n);
        }
        self.head = head as u16;
        self.len -= n as u32;
    }

    /// Keeps the `len` bytes at `at`. False, and nothing changed, when they are not all there, or the room in front of them would be 64 KiB.
    #[inline]
    #[must_use]
    pub fn narrow(&mut self, at: usize, len: usize) -> bool {
        let there = at.checked_add(len).is_some_and(|end| end <= self.len());
        match u16::try_from(self.headroom().saturating_add(at)) {
            Ok(head) if there => (self.head, self.len) = (head, len as u32),
            _ => return false,
        }
        true
    }

    /// As [`Buf::trim_front`] where so much room in front cannot be said.
    #[cold]
    fn move_to_front(&mut self, n: usize) {
        self.copy_within(n.., 0);
        self.len -= n as u32;
    }

    /// Keeps the first `len` bytes (all of them when there are fewer).
    #[inline]
    pub fn truncate(&mut self, len: usize) {
        self.len = len.min(self.len()) as u32;
    }

    /// Puts a copy of `bytes` behind. When they do not fit the buffer moves to a bigger one: not for the packet path.
    ///
    /// # Panics
    /// When the buffer would have 4 MiB or more.
    #[inline]
    pub fn append(&mut self, bytes: &[u8]) {
        self.extend(bytes.len()).copy_from_slice(bytes);
    }

    /// Puts `n` bytes of unspecified content behind, for the caller to fill. As [`Buf::append`] when they do not fit.
    ///
    /// # Panics
    /// When the buffer would have 4 MiB or more.
    #[inline]
    pub fn extend(&mut self, n: usize) -> &mut [u8] {
        if n > self.tailroom() {
            self.grow(n);
        }
        let end = self.end();
        self.len += n as u32;
        &mut self.whole_mut()[end..end + n]
    }

    /// Moves the packet to a buffer with `room` bytes behind it.
    #[cold]
    fn grow(&mut self, room: usize) {
        let mut moved = Buf::with_room(self.headroom(), self.len().saturating_add(room));
        let end = self.end();
        moved.whole_mut()[..end].copy_from_slice(&self.whole()[..end]);
        moved.len = self.len;
        *self = moved;
    }

    /// Removes the `n` bytes at `at` by moving what stands before them up. False, and nothing changed, when they are not all there.
    #[must_use]
    pub fn remove(&mut self, at: usize, n: usize) -> bool {
        if at + n > self.len() {
            return false;
        }
        self.copy_within(..at, n);
        self.trim_front(n);
        true
    }

    /// Makes room for `n` bytes at `at` by moving what stands before down; the new bytes are for the caller to fill. False, and nothing
    /// changed, when the headroom is too small or `at` lies outside.
    #[must_use]
    pub fn insert(&mut self, at: usize, n: usize) -> bool {
        if at > self.len() || !self.prepend(n) {
            return false;
        }
        self.copy_within(n..n + at, 0);
        true
    }

    /// Has the processor fetch the first bytes of the packet, so that reading them a little later does not wait.
    #[inline]
    pub fn prefetch(&self) {
        #[cfg(target_arch = "x86_64")]
        {
            use std::arch::x86_64::{_MM_HINT_T0, _mm_prefetch};
            // SAFETY: a prefetch reads nothing and faults nowhere; SSE is part of the architecture.
            unsafe { _mm_prefetch::<_MM_HINT_T0>(self.memory.as_ptr().wrapping_add(self.headroom()).cast::<i8>()) }
        }
    }

    /// Bytes of the packet.
    #[expect(clippy::len_without_is_empty, reason = "that of the slice")]
    #[inline]
    pub fn len(&self) -> usize {
        self.len as usize
    }

    /// Bytes of the memory.
    #[inline]
    fn capacity(&self) -> usize {
        usize::from(self.units) * UNIT
    }

    /// Where the packet ends in the memory.
    #[inline]
    fn end(&self) -> usize {
        self.headroom() + self.len()
    }

    /// The memory, with what is free in it.
    #[inline]
    fn whole(&self) -> &[u8] {
        // SAFETY: invariant 1.
        unsafe { slice::from_raw_parts(self.memory.as_ptr(), self.capacity()) }
    }

    #[inline]
    fn whole_mut(&mut self) -> &mut [u8] {
        // SAFETY: invariant 1.
        unsafe { slice::from_raw_parts_mut(self.memory.as_ptr(), self.capacity()) }
    }
}

/// Zeroed memory of so many units; none for none.
fn allocate(units: u16) -> NonNull<u8> {
    if units == 0 {
        return NonNull::dangling();
    }
    let layout = layout(units);
    // SAFETY: the layout is not of size zero.
    let memory = unsafe { alloc_zeroed(layout) };
    NonNull::new(memory).unwrap_or_else(|| handle_alloc_error(layout))
}

fn layout(units: u16) -> Layout {
    Layout::from_size_align(usize::from(units) * UNIT, UNIT).unwrap_or_else(|_| unreachable!("4 MiB at most"))
}

impl Drop for Buf {
    #[inline]
    fn drop(&mut self) {
        if self.units != 0 {
            // SAFETY: invariant 1: it was allocated with this layout.
            unsafe { dealloc(self.memory.as_ptr(), layout(self.units)) }
        }
    }
}

impl Default for Buf {
    /// Without memory.
    #[inline]
    fn default() -> Buf {
        Buf { memory: NonNull::dangling(), len: 0, head: 0, units: 0 }
    }
}

impl Clone for Buf {
    fn clone(&self) -> Buf {
        let mut copy = Buf { memory: allocate(self.units), ..*self };
        copy.whole_mut().copy_from_slice(self.whole());
        copy
    }
}

impl Deref for Buf {
    type Target = [u8];

    #[inline]
    fn deref(&self) -> &[u8] {
        debug_assert!(self.end() <= self.capacity(), "a packet within its memory");
        // SAFETY: the invariants.
        unsafe { slice::from_raw_parts(self.memory.as_ptr().add(self.headroom()), self.len()) }
    }
}

impl DerefMut for Buf {
    #[inline]
    fn deref_mut(&mut self) -> &mut [u8] {
        debug_assert!(self.end() <= self.capacity(), "a packet within its memory");
        // SAFETY: the invariants.
        unsafe { slice::from_raw_parts_mut(self.memory.as_ptr().add(self.headroom()), self.len()) }
    }
}

impl std::fmt::Debug for Buf {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "Buf({} bytes behind {})", self.len, self.head)
    }
}

/// Buffers of one worker, used again and again. It allocates until as many exist as are in flight at once, and no more.
#[derive(Debug, Default)]
pub struct Pool {
    /// Of [`STANDARD`] size; what they say of their bytes is of no matter.
    free: Vec<Buf>,
}

impl Pool {
    /// A pool that already owns `n` buffers.
    pub fn with_buffers(n: usize) -> Pool {
        Pool { free: (0..n).map(|_| Buf::with_room(HEADROOM, STANDARD - HEADROOM)).collect() }
    }

    /// An empty buffer for a packet of up to `len` bytes.
    #[inline]
    pub fn take(&mut self, len: usize) -> Buf {
        if len > STANDARD - HEADROOM {
            return Buf::with_room(HEADROOM, len);
        }
        let Some(mut buf) = self.free.pop() else { return Buf::with_room(HEADROOM, STANDARD - HEADROOM) };
        (buf.head, buf.len) = (HEADROOM as u16, 0);
        buf
    }

    /// Takes a buffer back. One of another size is let go, so that a jumbo frame does not stay in memory for ever.
    #[inline]
    pub fn give(&mut self, buf: Buf) {
        if buf.capacity() == STANDARD {
            self.free.push(buf);
        }
    }

    /// As [`Pool::give`] of all of these.
    #[inline]
    pub fn give_all(&mut self, bufs: &mut Vec<Buf>) {
        if bufs.iter().all(|buf| buf.capacity() == STANDARD) {
            self.free.append(bufs);
        } else {
            bufs.drain(..).for_each(|buf| self.give(buf));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_header_taken_off_comes_back_with_prepend() {
        let mut buf = Buf::from_bytes(b"ethernet-ip-payload");
        buf.trim_front(9);
        assert_eq!(&buf[..], b"ip-payload");
        assert!(buf.prepend(9));
        assert_eq!(&buf[..], b"ethernet-ip-payload");
    }

    #[test]
    fn bytes_can_be_cut_out_and_put_into_the_middle() {
        let mut buf = Buf::from_bytes(b"abcdef");
        assert!(buf.remove(2, 2));
        assert_eq!(&buf[..], b"abef");
        assert!(buf.insert(2, 3));
        buf[2..5].copy_from_slice(b"123");
        assert_eq!(&buf[..], b"ab123ef");
        assert!(!buf.remove(6, 2));
        assert!(!buf.insert(0, 10_000));
        assert!(!buf.narrow(6, 2) && !buf.narrow(8, 0) && !buf.narrow(1, usize::MAX));
        assert_eq!(&buf[..], b"ab123ef");
        assert!(buf.narrow(1, 4));
        assert_eq!(&buf[..], b"b123");
    }

    #[test]
    fn what_no_buffer_can_have_is_refused_before_anything_changes() {
        for n in [MAX + 1, usize::MAX] {
            let mut buf = Buf::with_room(0, UNIT);
            let refused = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| buf.extend(n).len()));
            assert!(refused.is_err() && buf.is_empty());
        }
    }

    #[test]
    fn a_pool_gives_a_buffer_out_again() {
        let mut pool = Pool::with_buffers(1);
        let mut buf = pool.take(100);
        buf.append(b"x");
        pool.give(buf);
        let buf = pool.take(100);
        assert_eq!((buf.len(), buf.headroom(), pool.free.len()), (0, HEADROOM, 0));
        let jumbo = pool.take(70_000);
        pool.give(jumbo);
        assert_eq!(pool.free.len(), 0);
    }
}

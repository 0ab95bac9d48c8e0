//! A packet's bytes with room in front, so that headers can be taken off and put on without moving the rest.
//!
//! Invariant, which reading the bytes rests on: `head + len` is at most `memory.len()`. The three fields are private, and whoever writes one keeps it.

use std::ops::{Deref, DerefMut};

/// Bytes kept free in front of a received packet: enough for an outer Ethernet and IPv6 header and a segment list of a dozen SIDs.
pub const HEADROOM: usize = 320;

/// Bytes of a buffer out of a [`Pool`]: an odd number of cache lines, so that the headers of a batch spread over the cache's sets.
const STANDARD: usize = 35 * 64;

/// One packet. Dereferences to its bytes.
///
/// ```text
/// | headroom | bytes | tailroom |
/// 0          head    head + len  capacity
/// ```
#[derive(Clone, Default)]
pub struct Buf {
    memory: Box<[u8]>,
    // 32 bits each: three words are moved where a packet moves, not four.
    head: u32,
    len: u32,
}

impl Buf {
    /// An empty buffer that can take `room` bytes behind `headroom` free ones.
    ///
    /// # Panics
    /// When they are 4 GiB or more.
    pub fn with_room(headroom: usize, room: usize) -> Buf {
        let memory = zeroed(headroom + room);
        Buf { memory, head: headroom as u32, len: 0 }
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
        self.head as usize
    }

    /// Bytes free behind.
    #[inline]
    pub fn tailroom(&self) -> usize {
        self.memory.len() - self.end()
    }

    /// Puts `n` bytes of unspecified content in front, for the caller to fill: after [`Buf::trim_front`] they are the bytes trimmed. False, and
    /// nothing changed, when the headroom is too small.
    #[inline]
    #[must_use]
    pub fn prepend(&mut self, n: usize) -> bool {
        if n > self.head as usize {
            return false;
        }
        self.head -= n as u32;
        self.len += n as u32;
        true
    }

    /// Moves the packet to a bigger buffer that has `n` bytes of headroom. What stood in the headroom is kept. Not for the packet path.
    ///
    /// # Panics
    /// When the buffer would have 4 GiB or more.
    pub fn reserve_front(&mut self, n: usize) {
        let more = n.saturating_sub(self.headroom());
        let mut memory = zeroed(self.memory.len() + more);
        memory[more..].copy_from_slice(&self.memory);
        self.memory = memory;
        self.head += more as u32;
    }

    /// Takes `n` bytes off the front (all of them when there are fewer).
    #[inline]
    pub fn trim_front(&mut self, n: usize) {
        let n = n.min(self.len as usize) as u32;
        self.head += n;
        self.len -= n;
    }

    /// Keeps the first `len` bytes (all of them when there are fewer).
    #[inline]
    pub fn truncate(&mut self, len: usize) {
        self.len = len.min(self.len as usize) as u32;
    }

    /// Puts a copy of `bytes` behind. When they do not fit the buffer moves to a bigger one: not for the packet path.
    ///
    /// # Panics
    /// When the buffer would have 4 GiB or more.
    #[inline]
    pub fn append(&mut self, bytes: &[u8]) {
        if bytes.len() > self.tailroom() {
            self.grow(bytes.len());
        }
        let end = self.end();
        self.memory[end..end + bytes.len()].copy_from_slice(bytes);
        self.len += bytes.len() as u32;
    }

    /// Moves the packet to a buffer with `room` bytes behind it.
    #[cold]
    fn grow(&mut self, room: usize) {
        let end = self.end();
        let mut memory = zeroed(end + room);
        memory[..end].copy_from_slice(&self.memory[..end]);
        self.memory = memory;
    }

    /// Removes the `n` bytes at `at` by moving what stands before them up. False, and nothing changed, when they are not all there.
    #[must_use]
    pub fn remove(&mut self, at: usize, n: usize) -> bool {
        if at + n > self.len as usize {
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
        if at > self.len as usize || !self.prepend(n) {
            return false;
        }
        self.copy_within(n..n + at, 0);
        true
    }

    /// Where the packet ends in the memory.
    #[inline]
    fn end(&self) -> usize {
        self.head as usize + self.len as usize
    }

    /// Empties the buffer and restores its headroom, for the next packet.
    #[inline]
    fn reset(&mut self) {
        self.head = HEADROOM.min(self.memory.len()) as u32;
        self.len = 0;
    }
}

/// Memory of a size that `head` and `len` can say.
fn zeroed(bytes: usize) -> Box<[u8]> {
    assert!(u32::try_from(bytes).is_ok(), "a buffer of {bytes} bytes");
    vec![0; bytes].into_boxed_slice()
}

impl Deref for Buf {
    type Target = [u8];

    #[inline]
    fn deref(&self) -> &[u8] {
        debug_assert!(self.end() <= self.memory.len(), "a packet within its memory");
        // SAFETY: the invariant in this module's head.
        unsafe { self.memory.get_unchecked(self.head as usize..self.end()) }
    }
}

impl DerefMut for Buf {
    #[inline]
    fn deref_mut(&mut self) -> &mut [u8] {
        debug_assert!(self.end() <= self.memory.len(), "a packet within its memory");
        let bytes = self.head as usize..self.end();
        // SAFETY: the invariant in this module's head.
        unsafe { self.memory.get_unchecked_mut(bytes) }
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
        self.free.pop().unwrap_or_else(|| Buf::with_room(HEADROOM, STANDARD - HEADROOM))
    }

    /// Takes a buffer back. One of another size is let go, so that a jumbo frame does not stay in memory for ever.
    #[inline]
    pub fn give(&mut self, mut buf: Buf) {
        if buf.memory.len() == STANDARD {
            buf.reset();
            self.free.push(buf);
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
        assert_eq!(&buf[..], b"ab123ef");
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

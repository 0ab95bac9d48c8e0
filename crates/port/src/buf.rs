//! A packet's bytes with room in front, so that headers can be taken off and put on without moving the rest.

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
    head: usize,
    len: usize,
}

impl Buf {
    /// An empty buffer that can take `room` bytes behind `headroom` free ones.
    pub fn with_room(headroom: usize, room: usize) -> Buf {
        Buf { memory: vec![0; headroom + room].into_boxed_slice(), head: headroom, len: 0 }
    }

    /// A buffer that holds a copy of `bytes`, with the usual headroom.
    pub fn from_bytes(bytes: &[u8]) -> Buf {
        let mut buf = Buf::with_room(HEADROOM, bytes.len().max(STANDARD - HEADROOM));
        buf.append(bytes);
        buf
    }

    /// Bytes free in front.
    pub fn headroom(&self) -> usize {
        self.head
    }

    /// Bytes free behind.
    pub fn tailroom(&self) -> usize {
        self.memory.len() - self.head - self.len
    }

    /// Puts `n` bytes of unspecified content in front, for the caller to fill: after [`Buf::trim_front`] they are the bytes trimmed. False, and
    /// nothing changed, when the headroom is too small.
    #[inline]
    #[must_use]
    pub fn prepend(&mut self, n: usize) -> bool {
        if n > self.head {
            return false;
        }
        self.head -= n;
        self.len += n;
        true
    }

    /// Moves the packet to a bigger buffer that has `n` bytes of headroom. What stood in the headroom is kept. Not for the packet path.
    pub fn reserve_front(&mut self, n: usize) {
        let more = n.saturating_sub(self.head);
        let mut memory = vec![0; self.memory.len() + more].into_boxed_slice();
        memory[more..].copy_from_slice(&self.memory);
        self.memory = memory;
        self.head += more;
    }

    /// Takes `n` bytes off the front (all of them when there are fewer).
    #[inline]
    pub fn trim_front(&mut self, n: usize) {
        let n = n.min(self.len);
        self.head += n;
        self.len -= n;
    }

    /// Keeps the first `len` bytes (all of them when there are fewer).
    #[inline]
    pub fn truncate(&mut self, len: usize) {
        self.len = self.len.min(len);
    }

    /// Puts a copy of `bytes` behind. When they do not fit the buffer moves to a bigger one: not for the packet path.
    pub fn append(&mut self, bytes: &[u8]) {
        if bytes.len() > self.tailroom() {
            let mut memory = vec![0; self.head + self.len + bytes.len()].into_boxed_slice();
            memory[..self.head + self.len].copy_from_slice(&self.memory[..self.head + self.len]);
            self.memory = memory;
        }
        let end = self.head + self.len;
        self.memory[end..end + bytes.len()].copy_from_slice(bytes);
        self.len += bytes.len();
    }

    /// Removes the `n` bytes at `at` by moving what stands before them up. False, and nothing changed, when they are not all there.
    #[must_use]
    pub fn remove(&mut self, at: usize, n: usize) -> bool {
        if at + n > self.len {
            return false;
        }
        self.memory.copy_within(self.head..self.head + at, self.head + n);
        self.trim_front(n);
        true
    }

    /// Makes room for `n` bytes at `at` by moving what stands before down; the new bytes are for the caller to fill. False, and nothing
    /// changed, when the headroom is too small or `at` lies outside.
    #[must_use]
    pub fn insert(&mut self, at: usize, n: usize) -> bool {
        if at > self.len || !self.prepend(n) {
            return false;
        }
        self.memory.copy_within(self.head + n..self.head + n + at, self.head);
        true
    }

    /// Empties the buffer and restores its headroom, for the next packet.
    fn reset(&mut self) {
        self.head = HEADROOM.min(self.memory.len());
        self.len = 0;
    }
}

impl Deref for Buf {
    type Target = [u8];

    #[inline]
    fn deref(&self) -> &[u8] {
        &self.memory[self.head..self.head + self.len]
    }
}

impl DerefMut for Buf {
    #[inline]
    fn deref_mut(&mut self) -> &mut [u8] {
        &mut self.memory[self.head..self.head + self.len]
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

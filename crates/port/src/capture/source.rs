//! The bytes of a capture, read in order and counted. It holds one record at a time, never the file.

use std::io::{self, Read};

use super::{Cause, MAX_RECORD};

/// Bytes read ahead. Record headers are looked at in place, so it must be no smaller than the biggest of them.
const AHEAD: usize = 64 * 1024;

/// Where a capture's bytes come from.
pub(super) struct Source {
    input: Box<dyn Read + Send>,
    buffer: Vec<u8>,
    start: usize,
    end: usize,
    offset: u64,
}

impl Source {
    pub(super) fn new(input: Box<dyn Read + Send>) -> Source {
        Source { input, buffer: vec![0; AHEAD], start: 0, end: 0, offset: 0 }
    }

    /// Bytes taken so far.
    pub(super) fn offset(&self) -> u64 {
        self.offset
    }

    /// The next `n` bytes (up to [`MAX_RECORD`] and a header), which stay to be taken; fewer when the input ends.
    pub(super) fn peek(&mut self, n: usize) -> io::Result<&[u8]> {
        debug_assert!(n <= MAX_RECORD + 64);
        if self.start + n > self.buffer.len() {
            self.buffer.copy_within(self.start..self.end, 0);
            self.end -= self.start;
            self.start = 0;
            if n > self.buffer.len() {
                self.buffer.resize(n, 0);
            }
        }
        while self.end - self.start < n {
            match self.input.read(&mut self.buffer[self.end..]) {
                Ok(0) => break,
                Ok(read) => self.end += read,
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) => return Err(error),
            }
        }
        Ok(&self.buffer[self.start..self.end.min(self.start + n)])
    }

    /// The next `n` bytes as `what`; the capture breaks off there when they are not all there.
    pub(super) fn look(&mut self, n: usize, what: &'static str) -> Result<&[u8], Cause> {
        let bytes = self.peek(n)?;
        match bytes.len() == n {
            true => Ok(bytes),
            false => Err(Cause::BrokenOff { what, wanted: n as u64, there: bytes.len() as u64 }),
        }
    }

    /// Takes `n` bytes that [`Source::peek`] showed.
    pub(super) fn take(&mut self, n: usize) {
        let n = n.min(self.end - self.start);
        self.start += n;
        self.offset += n as u64;
    }

    /// Passes `n` bytes over without keeping them; `false` when the input ends before.
    pub(super) fn skip(&mut self, mut n: u64) -> io::Result<bool> {
        while n > 0 {
            let step = n.min(AHEAD as u64) as usize;
            let there = self.peek(step)?.len();
            self.take(there);
            if there < step {
                return Ok(false);
            }
            n -= there as u64;
        }
        Ok(true)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Gives one byte a read, as a pipe may.
    struct Trickle(Vec<u8>);

    impl Read for Trickle {
        fn read(&mut self, into: &mut [u8]) -> io::Result<usize> {
            match (self.0.is_empty(), into.first_mut()) {
                (false, Some(byte)) => {
                    *byte = self.0.remove(0);
                    Ok(1)
                }
                _ => Ok(0),
            }
        }
    }

    #[test]
    fn bytes_come_in_order_however_little_a_read_gives() {
        let mut source = Source::new(Box::new(Trickle((0..20).collect())));
        assert_eq!(source.peek(3).unwrap(), [0, 1, 2]);
        source.take(3);
        assert!(source.skip(5).unwrap());
        assert_eq!(source.look(2, "it").unwrap(), [8, 9]);
        assert_eq!(source.offset(), 8);
        assert_eq!(source.peek(100).unwrap().len(), 12);
        assert!(matches!(source.look(13, "it"), Err(Cause::BrokenOff { wanted: 13, there: 12, .. })));
        assert!(!source.skip(13).unwrap());
        assert_eq!(source.offset(), 20);
    }

    #[test]
    fn a_record_bigger_than_the_read_ahead_fits() {
        let mut source = Source::new(Box::new(io::repeat(7)));
        source.take(0);
        assert!(source.skip(AHEAD as u64 * 3 + 5).unwrap());
        assert_eq!(source.peek(MAX_RECORD).unwrap().len(), MAX_RECORD);
        assert!(source.buffer.len() <= MAX_RECORD + AHEAD);
    }
}

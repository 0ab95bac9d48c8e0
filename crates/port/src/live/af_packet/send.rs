//! Frames that wait to be sent through a packet socket, handed over many a call.

use std::io;
use std::mem::MaybeUninit;
use std::os::fd::{AsRawFd, BorrowedFd};

use crate::live::sys;

/// Frames handed over in one call.
const BATCH: usize = 64;

/// Frames that wait, one behind the other in one piece of memory that is used again and again.
#[derive(Debug, Default)]
pub(super) struct Outbox {
    bytes: Vec<u8>,
    /// Where each ends.
    ends: Vec<usize>,
}

impl Outbox {
    /// Puts a frame behind those that wait; true when it is time to send.
    #[must_use]
    pub(super) fn push(&mut self, frame: &[u8]) -> bool {
        self.bytes.extend_from_slice(frame);
        self.ends.push(self.bytes.len());
        self.ends.len() >= BATCH
    }

    /// Sends what waits, in order, and tells the length of each frame and whether the kernel took it. Nothing waits afterwards.
    ///
    /// # Errors
    /// When the device is gone.
    pub(super) fn send(&mut self, fd: BorrowedFd<'_>, mut told: impl FnMut(usize, bool)) -> io::Result<()> {
        let mut first = 0;
        let mut gone = Ok(());
        while first < self.ends.len() {
            let outcome = if gone.is_ok() { self.send_from(fd, first) } else { Ok(0) };
            let taken = *outcome.as_ref().unwrap_or(&0);
            (first..first + taken).for_each(|frame| told(self.frame(frame).len(), true));
            first += taken;
            if taken == 0 {
                // The first was refused: too long, no room in the queue, the link is down. The others may fare better.
                told(self.frame(first).len(), false);
                first += 1;
            }
            if let Err(error) = outcome
                && matches!(error.raw_os_error(), Some(libc::ENXIO | libc::ENODEV))
            {
                gone = Err(error);
            }
        }
        self.bytes.clear();
        self.ends.clear();
        gone
    }

    fn frame(&self, number: usize) -> &[u8] {
        let start = number.checked_sub(1).map_or(0, |before| self.ends[before]);
        &self.bytes[start..self.ends[number]]
    }

    /// One call; how many frames the kernel took of those from `first` on.
    fn send_from(&self, fd: BorrowedFd<'_>, first: usize) -> io::Result<usize> {
        let count = (self.ends.len() - first).min(BATCH);
        // SAFETY: zeros are values of these structures: null pointers and lengths of nothing.
        let (mut vectors, mut messages): ([libc::iovec; BATCH], [libc::mmsghdr; BATCH]) =
            unsafe { (MaybeUninit::zeroed().assume_init(), MaybeUninit::zeroed().assume_init()) };
        for (place, (vector, message)) in vectors.iter_mut().zip(&mut messages).take(count).enumerate() {
            let frame = self.frame(first + place);
            *vector = libc::iovec { iov_base: frame.as_ptr().cast_mut().cast(), iov_len: frame.len() };
            message.msg_hdr.msg_iov = vector;
            message.msg_hdr.msg_iovlen = 1;
        }
        // SAFETY: `count` messages are there, each with one vector, to bytes that are only read and live through the call.
        let taken = unsafe { libc::sendmmsg(fd.as_raw_fd(), messages.as_mut_ptr(), count as u32, libc::MSG_DONTWAIT as _) };
        sys::check(taken).map(|taken| taken as usize)
    }
}

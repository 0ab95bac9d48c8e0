//! The signals that ask a program to end or to read its settings again, as something that can be waited for.

use std::io;
use std::mem::MaybeUninit;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, OwnedFd};

use super::sys::owned;

/// What a signal asks for.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Signal {
    /// To end: SIGINT, SIGTERM.
    End,
    /// To read the settings again: SIGHUP.
    Reload,
}

/// SIGINT, SIGTERM and SIGHUP. They interrupt nothing any more: the descriptor can be read when one has come.
#[derive(Debug)]
pub struct Signals {
    descriptor: OwnedFd,
}

impl Signals {
    /// Keeps them from the calling thread and from those it starts later. To be called before others run: one of them would be ended by the signal, and
    /// the program with it.
    ///
    /// # Errors
    /// When there are no descriptors left.
    pub fn new() -> io::Result<Signals> {
        let mut set = MaybeUninit::<libc::sigset_t>::zeroed();
        // SAFETY: the set is the calling thread's own memory and is made empty before it is used; nothing is written to where the old mask would go;
        // the descriptor is new.
        let descriptor = unsafe {
            libc::sigemptyset(set.as_mut_ptr());
            libc::sigaddset(set.as_mut_ptr(), libc::SIGINT);
            libc::sigaddset(set.as_mut_ptr(), libc::SIGTERM);
            libc::sigaddset(set.as_mut_ptr(), libc::SIGHUP);
            match libc::pthread_sigmask(libc::SIG_BLOCK, set.as_ptr(), std::ptr::null_mut()) {
                0 => owned(libc::signalfd(-1, set.as_ptr(), libc::SFD_CLOEXEC | libc::SFD_NONBLOCK))?,
                error => return Err(io::Error::from_raw_os_error(error)),
            }
        };
        Ok(Signals { descriptor })
    }

    /// The next signal that has come; none when none has.
    ///
    /// # Errors
    /// Those of `read(2)`.
    pub fn take(&self) -> io::Result<Option<Signal>> {
        let mut info = MaybeUninit::<libc::signalfd_siginfo>::zeroed();
        let len = size_of::<libc::signalfd_siginfo>();
        // SAFETY: the kernel writes at most as many bytes as the structure has.
        let read = unsafe { libc::read(self.descriptor.as_raw_fd(), info.as_mut_ptr().cast(), len) };
        if read < 0 {
            let error = io::Error::last_os_error();
            return if error.kind() == io::ErrorKind::WouldBlock { Ok(None) } else { Err(error) };
        }
        // SAFETY: integers, of which zeros are a value, and so is what the kernel wrote over them.
        let number = unsafe { info.assume_init() }.ssi_signo;
        Ok(Some(if number == libc::SIGHUP as u32 { Signal::Reload } else { Signal::End }))
    }
}

impl AsFd for Signals {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.descriptor.as_fd()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::live::wait_readable;
    use std::time::Duration;

    #[test]
    fn a_signal_to_end_can_be_read_and_does_not_end_the_thread() {
        std::thread::spawn(|| {
            let signals = Signals::new().unwrap();
            assert!(!wait_readable(signals.as_fd(), Duration::ZERO).unwrap());
            // SAFETY: no memory is involved; the signal goes to this thread, which keeps it waiting.
            assert_eq!(unsafe { libc::pthread_kill(libc::pthread_self(), libc::SIGTERM) }, 0);
            assert!(wait_readable(signals.as_fd(), Duration::from_secs(5)).unwrap());
            assert_eq!(signals.take().unwrap(), Some(Signal::End));
            // SAFETY: as above.
            assert_eq!(unsafe { libc::pthread_kill(libc::pthread_self(), libc::SIGHUP) }, 0);
            assert_eq!([signals.take().unwrap(), signals.take().unwrap()], [Some(Signal::Reload), None]);
        })
        .join()
        .unwrap();
    }
}

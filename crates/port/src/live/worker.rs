//! What a worker does besides receiving and sending: it waits, and stays on its core.

use std::ffi::c_int;
use std::io;
use std::mem::MaybeUninit;
use std::os::fd::{AsRawFd, BorrowedFd};
use std::time::Duration;

use super::sys::{check, option, poll};

/// Waits until a port's descriptor can be read or `timeout` passed; true when it can. Waiting also wakes a driver that asked to be woken.
///
/// # Errors
/// What happened to the socket, or those of `poll(2)`. `ENETDOWN` is told once when the device went down, after which the port can be used on, or went
/// away, after which sending is an error too. A signal is no error, it ends the waiting.
pub fn wait_readable(descriptor: BorrowedFd<'_>, timeout: Duration) -> io::Result<bool> {
    wait_any(&[descriptor], timeout)
}

/// As [`wait_readable`], for any of several descriptors: those of a worker's ports, and of what else is to wake it.
///
/// # Errors
/// As [`wait_readable`], for the first that has one.
pub fn wait_any(descriptors: &[BorrowedFd<'_>], timeout: Duration) -> io::Result<bool> {
    let entry = |fd: &BorrowedFd<'_>| libc::pollfd { fd: fd.as_raw_fd(), events: libc::POLLIN, revents: 0 };
    let mut polled: Vec<libc::pollfd> = descriptors.iter().map(entry).collect();
    poll(&mut polled, Some(timeout))?;
    if polled.iter().any(|entry| entry.revents & libc::POLLIN != 0) {
        return Ok(true);
    }
    for &descriptor in descriptors {
        // An AF_XDP socket whose device is gone says so here and not in the events. What is no socket has no such option.
        if let Ok(error @ 1..) = option::<c_int>(descriptor, libc::SOL_SOCKET, libc::SO_ERROR) {
            return Err(io::Error::from_raw_os_error(error));
        }
    }
    Ok(false)
}

/// Keeps the calling thread on one core, numbered from 0.
///
/// # Errors
/// When there is no such core, or the thread may not run there (cgroups).
pub fn pin_to_core(core: usize) -> io::Result<()> {
    let mut cores = MaybeUninit::<libc::cpu_set_t>::zeroed();
    if core >= size_of::<libc::cpu_set_t>() * 8 {
        return Err(io::Error::new(io::ErrorKind::InvalidInput, format!("there is no core {core}")));
    }
    // SAFETY: zeros are an empty set, of which the core's bit is one; the kernel reads as many bytes as the set has; 0 is the calling thread.
    check(unsafe {
        libc::CPU_SET(core, &mut *cores.as_mut_ptr());
        libc::sched_setaffinity(0, size_of::<libc::cpu_set_t>(), cores.as_ptr())
    })
    .map(|_| ())
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::Write;
    use std::os::fd::AsFd;
    use std::os::unix::net::UnixStream;
    use std::time::Instant;

    #[test]
    fn any_of_several_descriptors_ends_the_waiting() {
        let (one, _far) = UnixStream::pair().unwrap();
        let (two, mut far) = UnixStream::pair().unwrap();
        let begin = Instant::now();
        assert!(!wait_any(&[one.as_fd(), two.as_fd()], Duration::from_micros(1_500)).unwrap());
        assert!(begin.elapsed() >= Duration::from_micros(1_500));
        far.write_all(b"x").unwrap();
        assert!(wait_any(&[one.as_fd(), two.as_fd()], Duration::from_secs(10)).unwrap());
        assert!(!wait_readable(one.as_fd(), Duration::ZERO).unwrap());
    }

    #[test]
    fn a_thread_stays_on_its_core() {
        std::thread::spawn(|| {
            // SAFETY: no memory is involved.
            let here = unsafe { libc::sched_getcpu() };
            pin_to_core(usize::try_from(here).unwrap()).unwrap();
            // SAFETY: no memory is involved.
            assert_eq!(unsafe { libc::sched_getcpu() }, here);
        })
        .join()
        .unwrap();
        assert!(pin_to_core(1_000_000).is_err());
    }
}

//! System calls as safe functions: sockets and their options, memory shared with the kernel, questions about devices.
//!
//! Invariants: a [`Mapping`] is unmapped once, by its owner, after which nobody can reach it; the kernel is only ever told lengths that the
//! memory has; what it fills in is of a [`Plain`] type. (Memory of frames that a socket was told of stays in place while the kernel uses it, also
//! when it is unmapped here.)

use std::ffi::c_int;
use std::io;
use std::mem::{MaybeUninit, size_of};
use std::os::fd::{AsRawFd, BorrowedFd, FromRawFd, OwnedFd, RawFd};
use std::ptr::NonNull;
use std::time::Duration;

/// A type of which every bit pattern is a value, padding aside.
///
/// # Safety
/// That it is one: integers, and structures and arrays of them.
pub(super) unsafe trait Plain: Copy {}

// SAFETY: an integer.
unsafe impl Plain for c_int {}
// SAFETY: an integer.
unsafe impl Plain for u64 {}

/// The result of a call that returns −1 and sets `errno` when it fails.
pub(super) fn check(result: c_int) -> io::Result<c_int> {
    if result < 0 { Err(io::Error::last_os_error()) } else { Ok(result) }
}

/// The descriptor that a call has just made.
///
/// # Safety
/// It is the result of such a call, and nobody else has the descriptor.
pub(super) unsafe fn owned(result: c_int) -> io::Result<OwnedFd> {
    // SAFETY: as the caller promises.
    check(result).map(|fd| unsafe { OwnedFd::from_raw_fd(fd) })
}

/// Waits until one of these has what it waits for, `timeout` passed (none: as long as it takes), or a signal came.
pub(super) fn poll(polled: &mut [libc::pollfd], timeout: Option<Duration>) -> io::Result<()> {
    // Up to a millisecond more, and never a busy loop for what is less than one.
    let millis = timeout.map_or(-1, |timeout| c_int::try_from(timeout.as_nanos().div_ceil(1_000_000)).unwrap_or(c_int::MAX));
    // SAFETY: as many entries are there as are handed over.
    match check(unsafe { libc::poll(polled.as_mut_ptr(), polled.len() as _, millis) }) {
        Err(error) if error.kind() != io::ErrorKind::Interrupted => Err(error),
        Ok(_) | Err(_) => Ok(()),
    }
}

/// A new socket; not blocking, closed on `exec`.
pub(super) fn socket(domain: c_int, kind: c_int, protocol: c_int) -> io::Result<OwnedFd> {
    // SAFETY: no memory is involved; the socket is new.
    unsafe { owned(libc::socket(domain, kind | libc::SOCK_CLOEXEC | libc::SOCK_NONBLOCK, protocol)) }
}

/// Sets an option of a socket.
pub(super) fn set_option<T: Copy>(fd: BorrowedFd<'_>, level: c_int, name: c_int, value: &T) -> io::Result<()> {
    // SAFETY: the kernel reads as many bytes as the value has.
    check(unsafe { libc::setsockopt(fd.as_raw_fd(), level, name, std::ptr::from_ref(value).cast(), size_of::<T>() as u32) }).map(|_| ())
}

/// Has a socket take nothing of what comes from now on: a filter (classic BPF) that keeps no byte of a packet.
pub(super) fn take_nothing(fd: BorrowedFd<'_>) -> io::Result<()> {
    let mut nothing = libc::sock_filter { code: (libc::BPF_RET | libc::BPF_K) as u16, jt: 0, jf: 0, k: 0 };
    // The kernel copies the program during the call.
    set_option(fd, libc::SOL_SOCKET, libc::SO_ATTACH_FILTER, &libc::sock_fprog { len: 1, filter: &mut nothing })
}

/// Asks for an option of a socket. What the kernel does not fill in (an older one knows fewer fields) is zero.
pub(super) fn option<T: Plain>(fd: BorrowedFd<'_>, level: c_int, name: c_int) -> io::Result<T> {
    let mut value = MaybeUninit::<T>::zeroed();
    let mut len = size_of::<T>() as u32;
    // SAFETY: the kernel writes at most the bytes that the value has.
    check(unsafe { libc::getsockopt(fd.as_raw_fd(), level, name, value.as_mut_ptr().cast(), &mut len) })?;
    // SAFETY: zeros are a value of a plain type, and so is whatever was written over them.
    Ok(unsafe { value.assume_init() })
}

/// Binds a socket to an address of its family.
pub(super) fn bind<T: Copy>(fd: BorrowedFd<'_>, address: &T) -> io::Result<()> {
    // SAFETY: the kernel reads as many bytes as the address has.
    check(unsafe { libc::bind(fd.as_raw_fd(), std::ptr::from_ref(address).cast(), size_of::<T>() as u32) }).map(|_| ())
}

/// One call of `sendto(2)` or `recvfrom(2)` without data: work for the kernel to do now on an AF_XDP socket's rings.
pub(super) fn wake(fd: BorrowedFd<'_>, way: Wake) -> io::Result<()> {
    let (fd, flags) = (fd.as_raw_fd(), libc::MSG_DONTWAIT);
    let result = match way {
        // SAFETY: no bytes, no address.
        Wake::Send => unsafe { libc::sendto(fd, std::ptr::null(), 0, flags, std::ptr::null(), 0) },
        // SAFETY: no bytes, no address.
        Wake::Receive => unsafe { libc::recvfrom(fd, std::ptr::null_mut(), 0, flags, std::ptr::null_mut(), std::ptr::null_mut()) },
    };
    check(result as c_int).map(|_| ())
}

/// Which ring is to be worked on.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Wake {
    /// The one of frames to be sent.
    Send,
    /// The one of frames to be filled.
    Receive,
}

/// Memory from `mmap(2)`, shared with the kernel or not. The pages are there from the start.
#[derive(Debug)]
pub(super) struct Mapping {
    start: NonNull<u8>,
    len: usize,
}

// SAFETY: the memory belongs to no thread; who may touch which part is for the types that own a mapping to say.
unsafe impl Send for Mapping {}

impl Mapping {
    /// `len` bytes of zeros of our own.
    pub(super) fn anonymous(len: usize) -> io::Result<Mapping> {
        Mapping::new(len, libc::MAP_PRIVATE | libc::MAP_ANONYMOUS, -1, 0)
    }

    /// `len` bytes of what stands behind a descriptor, from `offset` on.
    pub(super) fn shared(fd: BorrowedFd<'_>, len: usize, offset: i64) -> io::Result<Mapping> {
        Mapping::new(len, libc::MAP_SHARED, fd.as_raw_fd(), offset)
    }

    fn new(len: usize, flags: c_int, fd: RawFd, offset: i64) -> io::Result<Mapping> {
        // SAFETY: the kernel chooses an address where nothing is mapped.
        let start =
            unsafe { libc::mmap(std::ptr::null_mut(), len, libc::PROT_READ | libc::PROT_WRITE, flags | libc::MAP_POPULATE, fd, offset) };
        match NonNull::new(start) {
            Some(address) if start != libc::MAP_FAILED => Ok(Mapping { start: address.cast(), len }),
            _ => Err(io::Error::last_os_error()),
        }
    }

    pub(super) fn len(&self) -> usize {
        self.len
    }

    /// A pointer to `count` values of `T` at `offset`: within the memory and aligned, else none.
    #[inline]
    pub(super) fn find<T>(&self, offset: usize, count: usize) -> Option<NonNull<T>> {
        let end = count.checked_mul(size_of::<T>())?.checked_add(offset)?;
        if end > self.len || !(self.start.as_ptr() as usize + offset).is_multiple_of(align_of::<T>()) {
            return None;
        }
        // SAFETY: the offset lies within the mapping.
        Some(unsafe { self.start.add(offset) }.cast())
    }

    /// As [`Mapping::find`], with an error where the kernel said that it is there.
    pub(super) fn at<T>(&self, offset: usize, count: usize) -> io::Result<NonNull<T>> {
        let place = self.find(offset, count);
        place.ok_or_else(|| io::Error::new(io::ErrorKind::InvalidData, "a place outside the memory shared with the kernel"))
    }
}

impl Drop for Mapping {
    fn drop(&mut self) {
        // SAFETY: mapped by us, with this length, and the owner that could reach it is gone.
        unsafe { libc::munmap(self.start.as_ptr().cast(), self.len) };
    }
}

/// `struct ifreq`: a device's name and what is asked or told about it.
#[repr(C, align(8))]
pub(super) struct Request {
    name: [u8; libc::IFNAMSIZ],
    pub(super) data: [u8; 24],
}

/// What a [`Request`] can be about.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Question {
    /// The device's number, in the first four bytes.
    Index,
    /// Its MTU, in the first four bytes.
    Mtu,
    /// Its address: the kind in two bytes, then the address.
    HardwareAddress,
    /// `IFF_UP` and so on, in the first two bytes.
    Flags,
    /// `/dev/net/tun`: make or take the device, with the flags in the first two bytes.
    AttachTun,
}

impl Request {
    /// About the device `name`.
    ///
    /// # Errors
    /// When no device can have such a name.
    pub(super) fn about(name: &str) -> io::Result<Request> {
        let bytes = name.as_bytes();
        let mut request = Request { name: [0; libc::IFNAMSIZ], data: [0; 24] };
        if bytes.is_empty() || bytes.len() >= libc::IFNAMSIZ || bytes.contains(&0) {
            return Err(io::Error::new(io::ErrorKind::InvalidInput, format!("{name:?} is no name of a device: 1 to 15 bytes, no zero")));
        }
        request.name[..bytes.len()].copy_from_slice(bytes);
        Ok(request)
    }

    /// The device's name, which the kernel may have filled in.
    pub(super) fn name(&self) -> String {
        let len = self.name.iter().position(|&byte| byte == 0).unwrap_or(self.name.len());
        String::from_utf8_lossy(&self.name[..len]).into_owned()
    }

    /// Has the kernel answer a question, in the request, or do something.
    pub(super) fn ioctl(&mut self, fd: BorrowedFd<'_>, what: Question) -> io::Result<()> {
        let code = match what {
            Question::Index => libc::SIOCGIFINDEX,
            Question::Mtu => libc::SIOCGIFMTU,
            Question::HardwareAddress => libc::SIOCGIFHWADDR,
            Question::Flags => libc::SIOCGIFFLAGS,
            Question::AttachTun => libc::TUNSETIFF as _,
        };
        // SAFETY: these codes take a pointer to an ifreq, which this is in size and alignment, and follow no pointer in it.
        check(unsafe { libc::ioctl(fd.as_raw_fd(), code as _, std::ptr::from_mut(self)) }).map(|_| ())
    }

    /// The `ethtool` question at `about`, whose first word is its number: 0x03 (49 words), 0x17, 0x25, 0x26, 0x2b, 0x2c (2) or 0x3c (9). The answer stands there.
    pub(super) fn ethtool(&mut self, fd: BorrowedFd<'_>, about: &mut [u32]) -> io::Result<()> {
        if !matches!((about.first(), about.len()), (Some(0x03), 49) | (Some(0x17 | 0x25 | 0x26 | 0x2b | 0x2c), 2) | (Some(0x3c), 9)) {
            return Err(io::ErrorKind::InvalidInput.into());
        }
        let address = (about.as_mut_ptr() as usize).to_ne_bytes();
        self.data[..address.len()].copy_from_slice(&address);
        // SAFETY: the words are as many as the question's structure has, and the kernel reads and writes no more.
        check(unsafe { libc::ioctl(fd.as_raw_fd(), libc::SIOCETHTOOL as _, std::ptr::from_mut(self)) }).map(|_| ())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_place_outside_a_mapping_is_refused() {
        let mapping = Mapping::anonymous(4096).unwrap();
        assert!(mapping.at::<u64>(4088, 1).is_ok());
        assert!(mapping.at::<u64>(4089, 1).is_err());
        assert!(mapping.at::<u64>(4, 1).is_err(), "not aligned");
        assert!(mapping.at::<u64>(0, usize::MAX / 4).is_err());
        assert_eq!(mapping.len(), 4096);
    }

    #[test]
    fn names_that_no_device_has_are_refused() {
        assert!(["", "a-name-too-long1", "nul\0"].into_iter().all(|name| Request::about(name).is_err()));
        assert_eq!(Request::about("fifteen-letters").unwrap().name(), "fifteen-letters");
    }
}

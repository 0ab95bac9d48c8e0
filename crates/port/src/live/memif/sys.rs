//! The system calls of memif as safe functions: a socket that carries messages and descriptors, memory that cannot shrink, events.
//!
//! Invariants: a descriptor that was received is owned by what it is returned in, whatever else is wrong with the message; the kernel is only told of
//! memory that is there, with its length.
//!
//! A peer's descriptor is somebody else's open file: it may block, or run the peer's code (FUSE), when it is used. So its kind is found out by ways that
//! do not ask the file ([`is_event`], [`sealed_len`]), and a peer's event is written to by no worker ([`Event::ring_shared`]).

use std::ffi::c_int;
use std::io;
use std::mem::{MaybeUninit, offset_of, size_of, zeroed};
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, FromRawFd, OwnedFd, RawFd};
use std::slice;
use std::time::Duration;

use super::message::BYTES;
use super::settings::SocketName;
use crate::live::sys::{self as live, Plain, check, option, owned, socket};

/// The most descriptors that one message can carry (`SCM_MAX_FD`).
const MOST_DESCRIPTORS: usize = 253;
/// `TMPFS_MAGIC`: what `fstatfs(2)` says of a memfd without huge pages.
const TMPFS: u64 = 0x0102_1994;

/// A socket's address with its length.
fn address(name: &SocketName) -> io::Result<(libc::sockaddr_un, u32)> {
    // SAFETY: a structure of integers, of which zeros are a value.
    let mut address: libc::sockaddr_un = unsafe { zeroed() };
    address.sun_family = libc::AF_UNIX as libc::sa_family_t;
    let (skip, bytes) = match name {
        SocketName::Path(path) => (0, path.as_os_str().as_encoded_bytes()),
        SocketName::Abstract(name) => (1, name.as_bytes()),
    };
    if bytes.is_empty() || skip + bytes.len() >= address.sun_path.len() || bytes.contains(&0) {
        return Err(io::Error::new(io::ErrorKind::InvalidInput, "the name of a socket has 1 to 107 bytes, none of them zero"));
    }
    for (to, from) in address.sun_path[skip..].iter_mut().zip(bytes) {
        *to = *from as _;
    }
    // A path ends with a zero, an abstract name with its length.
    let len = offset_of!(libc::sockaddr_un, sun_path) + bytes.len() + 1;
    Ok((address, len as u32))
}

/// Connects to a server's socket.
pub(super) fn connect(name: &SocketName) -> io::Result<OwnedFd> {
    let (address, len) = address(name)?;
    let socket = socket(libc::AF_UNIX, libc::SOCK_SEQPACKET, 0)?;
    // SAFETY: the kernel reads `len` bytes of the address, which has more.
    check(unsafe { libc::connect(socket.as_raw_fd(), std::ptr::from_ref(&address).cast(), len) })?;
    Ok(socket)
}

/// Makes a server's socket, which only its owner may connect to. The file must not be there.
pub(super) fn listen(name: &SocketName) -> io::Result<OwnedFd> {
    let (address, len) = address(name)?;
    let socket = socket(libc::AF_UNIX, libc::SOCK_SEQPACKET, 0)?;
    // SAFETY: no memory is involved. The mode becomes the file's when it is made.
    check(unsafe { libc::fchmod(socket.as_raw_fd(), 0o600) })?;
    // SAFETY: the kernel reads `len` bytes of the address, which has more.
    check(unsafe { libc::bind(socket.as_raw_fd(), std::ptr::from_ref(&address).cast(), len) })?;
    // SAFETY: no memory is involved.
    check(unsafe { libc::listen(socket.as_raw_fd(), 8) })?;
    Ok(socket)
}

/// The next client that connected to a server's socket, if there is one.
///
/// # Errors
/// When it cannot be let in: it goes on waiting.
pub(super) fn accept(listener: BorrowedFd<'_>) -> io::Result<Option<OwnedFd>> {
    let flags = libc::SOCK_CLOEXEC | libc::SOCK_NONBLOCK;
    // SAFETY: the address is not asked for; the socket is new.
    match unsafe { owned(libc::accept4(listener.as_raw_fd(), std::ptr::null_mut(), std::ptr::null_mut(), flags)) } {
        Err(error) if matches!(error.kind(), io::ErrorKind::WouldBlock | io::ErrorKind::Interrupted) => Ok(None),
        accepted => accepted.map(Some),
    }
}

/// True when the process at the other end was this user's, or root's, when it connected.
pub(super) fn is_trusted(socket: BorrowedFd<'_>) -> bool {
    // SAFETY: no memory is involved.
    let own = unsafe { libc::geteuid() };
    option::<libc::ucred>(socket, libc::SOL_SOCKET, libc::SO_PEERCRED).is_ok_and(|peer| peer.uid == own || peer.uid == 0)
}

// SAFETY: integers.
unsafe impl Plain for libc::ucred {}

/// Memory for the control part of a message, aligned for its header.
#[repr(C, align(8))]
struct ControlBytes([u8; 1040]);

/// Sends a message, with a descriptor or without.
pub(super) fn send(socket: BorrowedFd<'_>, bytes: &[u8; BYTES], descriptor: Option<BorrowedFd<'_>>) -> io::Result<()> {
    let mut part = libc::iovec { iov_base: bytes.as_ptr().cast_mut().cast(), iov_len: BYTES };
    let mut control = ControlBytes([0; 1040]);
    // SAFETY: a structure of integers and pointers, of which zeros are a value.
    let mut header: libc::msghdr = unsafe { zeroed() };
    header.msg_iov = &mut part;
    header.msg_iovlen = 1;
    if let Some(descriptor) = descriptor {
        header.msg_control = control.0.as_mut_ptr().cast();
        // SAFETY: arithmetic. The buffer has room for one descriptor and more.
        header.msg_controllen = unsafe { libc::CMSG_SPACE(size_of::<RawFd>() as u32) } as _;
        // SAFETY: the control buffer is aligned and has room for the header and a descriptor.
        unsafe {
            let entry = libc::CMSG_FIRSTHDR(&header);
            (*entry).cmsg_level = libc::SOL_SOCKET;
            (*entry).cmsg_type = libc::SCM_RIGHTS;
            (*entry).cmsg_len = libc::CMSG_LEN(size_of::<RawFd>() as u32) as _;
            libc::CMSG_DATA(entry).cast::<RawFd>().write_unaligned(descriptor.as_raw_fd());
        }
    }
    // SAFETY: the kernel only reads, and as much as the structures say, all of which is there.
    let sent = check(unsafe { libc::sendmsg(socket.as_raw_fd(), &header, libc::MSG_NOSIGNAL | libc::MSG_DONTWAIT) } as c_int)?;
    if sent as usize == BYTES { Ok(()) } else { Err(io::ErrorKind::WriteZero.into()) }
}

/// Receives a message: how many bytes it has (0 at the end of the connection, more than fit when it is too long), and its descriptors.
pub(super) fn receive(socket: BorrowedFd<'_>, bytes: &mut [u8; BYTES]) -> io::Result<(usize, Vec<OwnedFd>)> {
    let mut part = libc::iovec { iov_base: bytes.as_mut_ptr().cast(), iov_len: BYTES };
    let mut control = ControlBytes([0; 1040]);
    const { assert!(MOST_DESCRIPTORS * size_of::<RawFd>() + size_of::<libc::cmsghdr>() <= size_of::<ControlBytes>()) }
    // SAFETY: a structure of integers and pointers, of which zeros are a value.
    let mut header: libc::msghdr = unsafe { zeroed() };
    header.msg_iov = &mut part;
    header.msg_iovlen = 1;
    header.msg_control = control.0.as_mut_ptr().cast();
    header.msg_controllen = size_of::<ControlBytes>() as _;
    let flags = libc::MSG_CMSG_CLOEXEC | libc::MSG_DONTWAIT | libc::MSG_TRUNC;
    // SAFETY: the kernel writes no more than the structures say, all of which is there.
    let len = check(unsafe { libc::recvmsg(socket.as_raw_fd(), &mut header, flags) } as c_int)?;
    let mut descriptors = Vec::new();
    // SAFETY: the kernel filled the control buffer in and set its length.
    let mut entry = unsafe { libc::CMSG_FIRSTHDR(&header) };
    // SAFETY: null, or an entry within the control buffer.
    while let Some(found) = unsafe { entry.as_ref() } {
        if found.cmsg_level == libc::SOL_SOCKET && found.cmsg_type == libc::SCM_RIGHTS {
            // SAFETY: arithmetic.
            let head = unsafe { libc::CMSG_LEN(0) } as usize;
            for place in 0..found.cmsg_len.saturating_sub(head) / size_of::<RawFd>() {
                // SAFETY: as many descriptors stand behind the header as its length says; the kernel made them for us.
                descriptors.push(unsafe { OwnedFd::from_raw_fd(libc::CMSG_DATA(entry).cast::<RawFd>().add(place).read_unaligned()) });
            }
        }
        // SAFETY: the entry is of this header.
        entry = unsafe { libc::CMSG_NXTHDR(&header, entry) };
    }
    Ok((len as usize, descriptors))
}

/// `len` bytes of memory behind a descriptor, which nobody can make fewer of or seal otherwise.
pub(super) fn memory(len: u64) -> io::Result<OwnedFd> {
    // SAFETY: the name ends with a zero; the file is new.
    let memory = unsafe { owned(libc::memfd_create(c"noref-memif".as_ptr(), libc::MFD_CLOEXEC | libc::MFD_ALLOW_SEALING)) }?;
    let len = i64::try_from(len).map_err(|_| io::ErrorKind::InvalidInput)?;
    // SAFETY: no memory of ours is involved.
    check(unsafe { libc::ftruncate(memory.as_raw_fd(), len) })?;
    let seals = libc::F_SEAL_SHRINK | libc::F_SEAL_GROW | libc::F_SEAL_SEAL;
    // SAFETY: no memory of ours is involved.
    check(unsafe { libc::fcntl(memory.as_raw_fd(), libc::F_ADD_SEALS, seals) })?;
    Ok(memory)
}

/// Bytes of a peer's memory, which must be sealed against shrinking and made of ordinary pages: then touching a byte of it cannot fault for ever (huge
/// pages can run out under a mapping, when the peer gives its own back).
///
/// # Errors
/// When it is not, with what it would have to be.
pub(super) fn sealed_len(memory: BorrowedFd<'_>) -> io::Result<u64> {
    let refused = |why| io::Error::new(io::ErrorKind::InvalidData, why);
    // The kernel answers this one itself, and for nothing but memfds (and hugetlbfs).
    // SAFETY: no memory of ours is involved.
    let seals = check(unsafe { libc::fcntl(memory.as_raw_fd(), libc::F_GET_SEALS) });
    match seals {
        Ok(seals) if seals & libc::F_SEAL_SHRINK != 0 => {}
        Ok(_) => return Err(refused("memory that is not sealed against shrinking (F_SEAL_SHRINK)")),
        Err(_) => return Err(refused("memory that is no memfd")),
    }
    let mut system = MaybeUninit::<libc::statfs>::zeroed();
    // SAFETY: the kernel fills the structure in.
    check(unsafe { libc::fstatfs(memory.as_raw_fd(), system.as_mut_ptr()) })?;
    // SAFETY: integers, of which zeros are a value and whatever was written too.
    if unsafe { system.assume_init() }.f_type as u64 != TMPFS {
        return Err(refused("memory of huge pages"));
    }
    let mut status = MaybeUninit::<libc::stat>::zeroed();
    // SAFETY: the kernel fills the structure in.
    check(unsafe { libc::fstat(memory.as_raw_fd(), status.as_mut_ptr()) })?;
    // SAFETY: integers, of which zeros are a value and whatever was written too.
    Ok(unsafe { status.assume_init() }.st_size as u64)
}

/// True for an event (`eventfd(2)`), as `/proc` says, which does not ask the file.
pub(super) fn is_event(descriptor: BorrowedFd<'_>) -> bool {
    let link = std::fs::read_link(format!("/proc/self/fd/{}", descriptor.as_raw_fd()));
    link.is_ok_and(|link| link.as_os_str() == "anon_inode:[eventfd]")
}

/// Something that can be rung, and waited for until it is.
#[derive(Debug)]
pub(super) struct Event(OwnedFd);

impl Event {
    /// One of our own.
    pub(super) fn new() -> io::Result<Event> {
        // SAFETY: no memory is involved; the event is new.
        unsafe { owned(libc::eventfd(0, libc::EFD_CLOEXEC | libc::EFD_NONBLOCK)) }.map(Event)
    }

    /// A peer's, or one that a peer has too. From now on it does not block who rings it, whatever it did before; the open file is the peer's too.
    ///
    /// # Errors
    /// Gives the descriptor back that is none.
    pub(super) fn of_peer(descriptor: OwnedFd) -> Result<Event, OwnedFd> {
        if !is_event(descriptor.as_fd()) {
            return Err(descriptor);
        }
        // SAFETY: no memory is involved. When it fails, `ring_shared` looks before it writes.
        unsafe {
            let flags = libc::fcntl(descriptor.as_raw_fd(), libc::F_GETFL);
            libc::fcntl(descriptor.as_raw_fd(), libc::F_SETFL, flags.max(0) | libc::O_NONBLOCK);
        }
        Ok(Event(descriptor))
    }

    /// Rings it. For one that no peer has.
    pub(super) fn ring(&self) {
        let one = 1_u64.to_ne_bytes();
        // SAFETY: the kernel reads 8 bytes. That it is rung often enough already is no error.
        let _ = unsafe { libc::write(self.0.as_raw_fd(), one.as_ptr().cast(), one.len()) };
    }

    /// Rings one that a peer has too. The peer can fill it, and take `O_NONBLOCK` away again: one that is full is rung already, and left alone. Between
    /// looking and ringing it can still do both, which is why no worker rings one.
    pub(super) fn ring_shared(&self) {
        let mut polled = libc::pollfd { fd: self.0.as_raw_fd(), events: libc::POLLOUT, revents: 0 };
        if live::poll(slice::from_mut(&mut polled), Some(Duration::ZERO)).is_ok() && polled.revents & libc::POLLOUT != 0 {
            self.ring();
        }
    }

    /// Has it not be rung. For one that no peer has.
    pub(super) fn clear(&self) {
        let mut count = [0_u8; 8];
        // SAFETY: the kernel writes at most 8 bytes. That it was not rung is no error.
        let _ = unsafe { libc::read(self.0.as_raw_fd(), count.as_mut_ptr().cast(), count.len()) };
    }
}

impl AsFd for Event {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.0.as_fd()
    }
}

/// Events that can be waited for together. Each is told once for each time it is rung, so that nobody has to read it.
#[derive(Debug)]
pub(super) struct Events(OwnedFd);

impl Events {
    pub(super) fn new() -> io::Result<Events> {
        // SAFETY: no memory is involved; the descriptor is new.
        unsafe { owned(libc::epoll_create1(libc::EPOLL_CLOEXEC)) }.map(Events)
    }

    /// Adds one.
    pub(super) fn add(&self, event: &Event) -> io::Result<()> {
        let mut what = libc::epoll_event { events: (libc::EPOLLIN | libc::EPOLLET) as u32, u64: 0 };
        // SAFETY: the kernel reads the structure.
        check(unsafe { libc::epoll_ctl(self.0.as_raw_fd(), libc::EPOLL_CTL_ADD, event.0.as_raw_fd(), &mut what) }).map(|_| ())
    }

    /// Takes one out. A peer that has it too keeps it open, so closing it would not.
    pub(super) fn remove(&self, event: &Event) {
        // SAFETY: no memory is involved. One that is not in it need not be taken out.
        let _ = unsafe { libc::epoll_ctl(self.0.as_raw_fd(), libc::EPOLL_CTL_DEL, event.0.as_raw_fd(), std::ptr::null_mut()) };
    }

    /// Has none of them be rung.
    pub(super) fn clear(&self) {
        let mut rung = [libc::epoll_event { events: 0, u64: 0 }; 4];
        // SAFETY: the kernel writes at most as many as there are. None is no error.
        let _ = unsafe { libc::epoll_wait(self.0.as_raw_fd(), rung.as_mut_ptr(), rung.len() as c_int, 0) };
    }
}

impl AsFd for Events {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.0.as_fd()
    }
}

/// Waits until something can be read, or ended, or `timeout` passed. Which of them it is.
pub(super) fn poll<const N: usize>(descriptors: [BorrowedFd<'_>; N], timeout: Option<Duration>) -> io::Result<[bool; N]> {
    let mut polled = descriptors.map(|fd| libc::pollfd { fd: fd.as_raw_fd(), events: libc::POLLIN, revents: 0 });
    live::poll(&mut polled, timeout)?;
    Ok(polled.map(|entry| entry.revents != 0))
}

#[cfg(test)]
pub(super) mod tests {
    use super::*;
    use crate::live::memif::channel::Channel;

    /// Two ends of a control socket.
    pub(in crate::live::memif) fn channels() -> (Channel, Channel) {
        let mut pair = [0; 2];
        // SAFETY: the kernel writes two descriptors.
        check(unsafe {
            libc::socketpair(libc::AF_UNIX, libc::SOCK_SEQPACKET | libc::SOCK_CLOEXEC | libc::SOCK_NONBLOCK, 0, pair.as_mut_ptr())
        })
        .unwrap();
        // SAFETY: they are new.
        let [one, other] = pair.map(|fd| Channel::new(unsafe { OwnedFd::from_raw_fd(fd) }));
        (one, other)
    }

    /// Memory as [`memory`] makes it, that can shrink.
    pub(in crate::live::memif) fn unsealed(len: u64) -> OwnedFd {
        // SAFETY: the name ends with a zero; the file is new.
        let memory = unsafe { owned(libc::memfd_create(c"test".as_ptr(), libc::MFD_CLOEXEC | libc::MFD_ALLOW_SEALING)) }.unwrap();
        // SAFETY: no memory of ours is involved.
        check(unsafe { libc::ftruncate(memory.as_raw_fd(), len as i64) }).unwrap();
        memory
    }

    /// Sends bytes that need not be a message.
    pub(in crate::live::memif) fn send_raw(socket: BorrowedFd<'_>, bytes: &[u8]) {
        // SAFETY: the kernel reads as many bytes as there are.
        let sent = unsafe { libc::send(socket.as_raw_fd(), bytes.as_ptr().cast(), bytes.len(), 0) };
        assert_eq!(sent as usize, bytes.len());
    }

    /// Sends a message with `count` descriptors, each the socket itself.
    pub(in crate::live::memif) fn send_descriptors(socket: BorrowedFd<'_>, bytes: &[u8; BYTES], count: usize) {
        let mut part = libc::iovec { iov_base: bytes.as_ptr().cast_mut().cast(), iov_len: BYTES };
        let mut control = ControlBytes([0; 1040]);
        // SAFETY: integers and pointers, of which zeros are a value; the control buffer has room for 253 descriptors.
        let sent = unsafe {
            let mut header: libc::msghdr = zeroed();
            header.msg_iov = &mut part;
            header.msg_iovlen = 1;
            header.msg_control = control.0.as_mut_ptr().cast();
            header.msg_controllen = libc::CMSG_SPACE((count * size_of::<RawFd>()) as u32) as _;
            let entry = libc::CMSG_FIRSTHDR(&header);
            (*entry).cmsg_level = libc::SOL_SOCKET;
            (*entry).cmsg_type = libc::SCM_RIGHTS;
            (*entry).cmsg_len = libc::CMSG_LEN((count * size_of::<RawFd>()) as u32) as _;
            for place in 0..count {
                libc::CMSG_DATA(entry).cast::<RawFd>().add(place).write_unaligned(socket.as_raw_fd());
            }
            libc::sendmsg(socket.as_raw_fd(), &header, 0)
        };
        assert_eq!(sent, BYTES as isize);
    }

    #[test]
    fn our_own_memory_is_what_a_server_may_use() {
        let memory = memory(8192).unwrap();
        assert_eq!(sealed_len(memory.as_fd()).unwrap(), 8192);
        // SAFETY: no memory of ours is involved.
        assert!(check(unsafe { libc::ftruncate(memory.as_raw_fd(), 0) }).is_err(), "nobody can shrink it");
        assert!(sealed_len(unsealed(8192).as_fd()).is_err());
    }

    #[test]
    fn an_event_is_told_once_for_each_time_it_is_rung() {
        let (event, events) = (Event::new().unwrap(), Events::new().unwrap());
        let readable = || poll([events.as_fd()], Some(Duration::ZERO)).unwrap()[0];
        events.add(&event).unwrap();
        assert!(!readable());
        for _ in 0..3 {
            event.ring();
            assert!(readable());
            events.clear();
            assert!(!readable(), "though nobody read it");
        }
        events.remove(&event);
        event.ring();
        assert!(!readable());
    }

    #[test]
    fn an_event_that_a_peer_filled_blocks_nobody() {
        // SAFETY: no memory is involved; the event is new.
        let blocking = unsafe { owned(libc::eventfd(0, libc::EFD_CLOEXEC)) }.unwrap();
        let most = (u64::MAX - 1).to_ne_bytes();
        // SAFETY: the kernel reads 8 bytes.
        assert_eq!(unsafe { libc::write(blocking.as_raw_fd(), most.as_ptr().cast(), most.len()) }, 8);
        let event = Event::of_peer(blocking).unwrap();
        event.ring();
        // SAFETY: no memory is involved.
        check(unsafe { libc::fcntl(event.0.as_raw_fd(), libc::F_SETFL, 0) }).unwrap();
        event.ring_shared();
    }

    #[test]
    fn names_that_no_socket_can_have_are_refused() {
        for name in ["", &"x".repeat(108), "zero\0"] {
            assert!(address(&SocketName::Path(name.into())).is_err());
            assert!(address(&SocketName::Abstract(name.to_owned())).is_err());
        }
        assert!(address(&SocketName::Path("x".repeat(107).into())).is_ok());
        assert!(address(&SocketName::Abstract("x".repeat(106))).is_ok());
    }
}

//! One AF_XDP socket: a queue of a device, its memory and its four rings.
//!
//! Chunks go in two circles that never mix, so that a flood of received frames cannot keep one from being sent, nor the other way round:
//!
//! ```text
//! first half    fill ring → kernel → receive ring → copied out → fill ring
//! second half   idle → copied in → send ring → kernel → completion ring → idle
//! ```
//!
//! Each ring has as many slots as there are chunks in its circle, so that putting a chunk into a ring always works.
//!
//! A frame longer than a chunk goes through several, one slot each; all but the last say that more follows (Linux 6.6).

use std::ffi::c_int;
use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::time::{Duration, Instant};

use super::ring::{Consumer, Producer};
use super::umem::{self, Umem};
use crate::live::sys::{self, Plain, Wake};

// SAFETY: structures of integers.
unsafe impl Plain for libc::xdp_mmap_offsets {}
// SAFETY: as above.
unsafe impl Plain for libc::xdp_statistics {}
// SAFETY: as above.
unsafe impl Plain for libc::xdp_options {}
// SAFETY: as above.
unsafe impl Plain for libc::xdp_desc {}

/// How long a queue may stay taken by a socket that was just closed: the kernel lets go of it a little later.
const RELEASE: Duration = Duration::from_millis(500);
/// Frames that one call sends in copy mode.
const SENT_A_CALL: u32 = 32;
/// Chunks that a frame may have: the kernel makes no packet of more pages than 17 (`MAX_SKB_FRAGS`).
const CHUNKS_A_FRAME: usize = 16;
/// Bytes of an Ethernet header.
const ETHERNET: usize = 14;
/// Busy polling: how long one call may look for frames, and how many it processes.
const BUSY_MICROSECONDS: c_int = 20;
const BUSY_FRAMES: c_int = 64;

/// The socket. Fields are dropped in order: the kernel's side first, then the memory.
#[derive(Debug)]
pub(super) struct Socket {
    fd: OwnedFd,
    fill: Producer<u64>,
    completion: Consumer<u64>,
    rx: Consumer<libc::xdp_desc>,
    tx: Producer<libc::xdp_desc>,
    umem: Umem,
    /// Chunks of the second circle that nothing is sent from.
    idle: Vec<u64>,
    /// Chunks of the first circle that the fill ring had no slot for yet.
    owed: Vec<u64>,
    slots: u32,
    zero_copy: bool,
    /// A frame may take several chunks.
    several: bool,
    busy: bool,
}

/// What a socket is to be.
#[derive(Clone, Copy, Debug)]
pub(super) struct Wanted {
    /// The device's index.
    pub(super) device: u32,
    /// Which of its queues.
    pub(super) queue: u32,
    /// Slots of each ring.
    pub(super) slots: u32,
    /// Bytes of the longest frame.
    pub(super) frame_len: usize,
    /// The device reads and writes the memory itself.
    pub(super) zero_copy: bool,
}

impl Socket {
    /// Takes a queue of a device.
    ///
    /// # Errors
    /// When the queue is taken or not there, the driver cannot do without copies or a frame needs several chunks and may not, or we may not.
    pub(super) fn open(wanted: Wanted) -> io::Result<Socket> {
        let begin = Instant::now();
        loop {
            match Socket::try_open(wanted) {
                Err(error) if error.raw_os_error() == Some(libc::EBUSY) && begin.elapsed() < RELEASE => {
                    std::thread::sleep(Duration::from_millis(5));
                }
                result => return result,
            }
        }
    }

    fn try_open(wanted: Wanted) -> io::Result<Socket> {
        let Wanted { device, queue, slots, frame_len, zero_copy } = wanted;
        if !slots.is_power_of_two() {
            let message = format!("rings have a power of two of slots, not {slots}");
            return Err(io::Error::new(io::ErrorKind::InvalidInput, message));
        }
        let several = frame_len > umem::WHOLE;
        let fd = sys::socket(libc::AF_XDP, libc::SOCK_RAW, 0)?;
        let umem = Umem::new(slots * 2, frame_len)?;
        let set = |name: c_int, value: u32| sys::set_option(fd.as_fd(), libc::SOL_XDP, name, &value);
        sys::set_option(fd.as_fd(), libc::SOL_XDP, libc::XDP_UMEM_REG, &umem.registration()?)?;
        for ring in [libc::XDP_UMEM_FILL_RING, libc::XDP_UMEM_COMPLETION_RING, libc::XDP_RX_RING, libc::XDP_TX_RING] {
            set(ring, slots)?;
        }
        let offsets: libc::xdp_mmap_offsets = sys::option(fd.as_fd(), libc::SOL_XDP, libc::XDP_MMAP_OFFSETS)?;
        if offsets.fr.flags == offsets.fr.producer {
            return Err(io::Error::new(io::ErrorKind::Unsupported, "this kernel is older than 5.4: its rings cannot ask to be woken"));
        }
        let fill_offset = libc::XDP_UMEM_PGOFF_FILL_RING as i64;
        let completion_offset = libc::XDP_UMEM_PGOFF_COMPLETION_RING as i64;
        let mut socket = Socket {
            fill: Producer::map(fd.as_fd(), fill_offset, &offsets.fr, slots)?,
            completion: Consumer::map(fd.as_fd(), completion_offset, &offsets.cr, slots)?,
            rx: Consumer::map(fd.as_fd(), libc::XDP_PGOFF_RX_RING, &offsets.rx, slots)?,
            tx: Producer::map(fd.as_fd(), libc::XDP_PGOFF_TX_RING, &offsets.tx, slots)?,
            idle: (slots..slots * 2).map(|number| umem.address(number)).collect(),
            owed: Vec::with_capacity(slots as usize),
            umem,
            slots,
            zero_copy: false,
            several,
            busy: false,
            fd,
        };
        for number in 0..slots {
            socket.fill(socket.umem.address(number));
        }
        socket.fill.show();
        let mode = if zero_copy { libc::XDP_ZEROCOPY } else { libc::XDP_COPY } | if several { libc::XDP_USE_SG } else { 0 };
        let address = libc::sockaddr_xdp {
            sxdp_family: libc::AF_XDP as u16,
            sxdp_flags: mode | libc::XDP_USE_NEED_WAKEUP,
            sxdp_ifindex: device,
            sxdp_queue_id: queue,
            sxdp_shared_umem_fd: 0,
        };
        sys::bind(socket.fd.as_fd(), &address).map_err(|error| if several { too_long(frame_len, &error) } else { error })?;
        let options: libc::xdp_options = sys::option(socket.fd.as_fd(), libc::SOL_XDP, libc::XDP_OPTIONS)?;
        socket.zero_copy = options.flags & libc::XDP_OPTIONS_ZEROCOPY != 0;
        Ok(socket)
    }

    /// From now on each look for frames has the device work.
    pub(super) fn poll_busily(&mut self) -> io::Result<()> {
        let set = |name: c_int, value: c_int| sys::set_option(self.fd.as_fd(), libc::SOL_SOCKET, name, &value);
        set(libc::SO_PREFER_BUSY_POLL, 1)?;
        set(libc::SO_BUSY_POLL, BUSY_MICROSECONDS)?;
        set(libc::SO_BUSY_POLL_BUDGET, BUSY_FRAMES)?;
        self.busy = true;
        Ok(())
    }

    /// True when the device reads and writes the memory itself.
    pub(super) fn is_zero_copy(&self) -> bool {
        self.zero_copy
    }

    /// Hands up to `max` received frames to `take`, oldest first, and gives their memory back to the kernel. A frame may come in several pieces:
    /// `take` is told whether more follow, the rest of them in a later call if need be; and gets none for a piece that the kernel placed where no frame can
    /// be.
    ///
    /// # Errors
    /// When the device is gone.
    #[inline]
    pub(super) fn receive(&mut self, max: usize, mut take: impl FnMut(Option<&[u8]>, bool)) -> io::Result<()> {
        let (mut frames, mut pieces) = (0, 0);
        self.pay_debts();
        while frames < max
            && let Some(descriptor) = self.rx.pop()
        {
            let more = descriptor.options & libc::XDP_PKT_CONTD != 0;
            take(self.umem.frame(descriptor.addr, descriptor.len), more);
            self.fill(self.umem.chunk_of(descriptor.addr));
            pieces += 1;
            frames += usize::from(!more);
        }
        if pieces > 0 {
            self.rx.give_back();
            self.fill.show();
        }
        // Also when nothing came: a driver that ran out of memory waits to be told that there is some again.
        if self.busy || self.fill.wants_wakeup() {
            self.wake(Wake::Receive)?;
        }
        Ok(())
    }

    /// Gives a chunk of the first circle to the kernel. There is a slot for each, but the kernel shows a frame before it gives back the slot from which it
    /// took the chunk: whoever is quicker than that finds the ring full, and owes the chunk.
    fn fill(&mut self, address: u64) {
        if !self.fill.push(address) {
            self.owed.push(address);
        }
    }

    /// Gives the kernel the chunks that are owed, as far as it has slots by now.
    #[inline]
    fn pay_debts(&mut self) {
        if self.owed.is_empty() {
            return;
        }
        while let Some(address) = self.owed.pop() {
            if !self.fill.push(address) {
                self.owed.push(address);
                break;
            }
        }
        self.fill.show();
    }

    /// Copies a frame into idle chunks and puts it into the send ring, where the kernel sees it after [`Socket::transmit`]. False when no chunks are
    /// idle or the frame is too long or too short. (The kernel throws a descriptor away that it finds wrong, and its chunk would be lost.)
    #[inline]
    #[must_use]
    pub(super) fn queue(&mut self, frame: &[u8]) -> bool {
        if frame.len() < ETHERNET {
            return false;
        }
        let chunks = frame.len().div_ceil(self.umem.chunk());
        if chunks > if self.several { CHUNKS_A_FRAME } else { 1 } {
            return false;
        }
        if self.idle.len() < chunks {
            self.reap();
        }
        // A chunk can be idle again before the kernel gives back the slot that it was sent from.
        if self.idle.len() < chunks || !self.tx.has_room(chunks as u32) {
            return false;
        }
        let mut rest = frame;
        while let Some(piece) = rest.get(..rest.len().min(self.umem.chunk())).filter(|piece| !piece.is_empty())
            && let Some(address) = self.idle.pop()
        {
            rest = rest.get(piece.len()..).unwrap_or_default();
            let written = self.umem.write(address, piece);
            debug_assert!(written, "a piece fits a chunk");
            let options = if rest.is_empty() { 0 } else { libc::XDP_PKT_CONTD };
            let pushed = self.tx.push(libc::xdp_desc { addr: address, len: piece.len() as u32, options });
            debug_assert!(pushed, "there was room for all pieces");
        }
        true
    }

    /// Has the kernel send what is queued. What it cannot send now stays queued, for the next call.
    ///
    /// # Errors
    /// When the device is gone.
    pub(super) fn transmit(&mut self) -> io::Result<()> {
        self.tx.show();
        // One call sends a few frames, and one more finds that there are no others.
        let mut calls = self.tx.waiting().div_ceil(SENT_A_CALL);
        while calls > 0 && self.tx.wants_wakeup() {
            if !self.wake(Wake::Send)? || self.tx.waiting() == 0 {
                break;
            }
            calls -= 1;
        }
        self.reap();
        Ok(())
    }

    /// True when something given to [`Socket::queue`] is not known to have left. Asked for before sleeping: what the kernel could not send when it
    /// was told to would else wait for the next frame.
    pub(super) fn is_sending(&self) -> bool {
        self.idle.len() < self.slots as usize
    }

    /// A system call that has the kernel look at a ring. False when it makes no sense to call again at once.
    ///
    /// # Errors
    /// When the device is gone.
    fn wake(&self, way: Wake) -> io::Result<bool> {
        match sys::wake(self.fd.as_fd(), way) {
            Ok(()) => Ok(true),
            Err(error) => match error.raw_os_error() {
                // Its share of one call is used up.
                Some(libc::EAGAIN | libc::EINTR) => Ok(true),
                // No memory, the driver's queue is full, or the link is down: it may change.
                Some(libc::ENOBUFS | libc::ENOMEM | libc::EBUSY | libc::ENETDOWN) => Ok(false),
                _ => Err(error),
            },
        }
    }

    /// Takes the chunks back that were sent.
    fn reap(&mut self) {
        while let Some(address) = self.completion.pop() {
            self.idle.push(address);
        }
        self.completion.give_back();
    }

    /// Waits until everything queued is sent and its memory is ours again, `timeout` at most. True when it is.
    pub(super) fn drain(&mut self, timeout: Duration) -> bool {
        let begin = Instant::now();
        loop {
            let sending = self.transmit().is_ok();
            if !self.is_sending() {
                return true;
            }
            if !sending || begin.elapsed() >= timeout {
                return false;
            }
            std::thread::sleep(Duration::from_micros(50));
        }
    }

    /// What the kernel counted.
    pub(super) fn statistics(&self) -> io::Result<libc::xdp_statistics> {
        sys::option(self.fd.as_fd(), libc::SOL_XDP, libc::XDP_STATISTICS)
    }
}

/// Why a socket for frames longer than a chunk is refused.
fn too_long(frame_len: usize, error: &io::Error) -> io::Error {
    let message = format!(
        "frames of {frame_len} bytes go through several chunks of {} (Linux 6.6, and a driver that can): {error}; lower the device's MTU to {}",
        umem::WHOLE,
        umem::WHOLE - 22
    );
    io::Error::new(error.kind(), message)
}

impl AsFd for Socket {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.fd.as_fd()
    }
}

//! TUN and TAP: a device of the kernel whose other end is this port. What the kernel sends there is received here, what is sent here the kernel
//! receives (Documentation/networking/tuntap.rst).
//!
//! A system call a packet, and the queue between is bounded by the kernel (`txqueuelen`, 500 packets at first): right for what is rare.

use std::fs::{File, OpenOptions};
use std::io::{self, Read, Write};
use std::os::fd::{AsFd, BorrowedFd};
use std::os::unix::fs::OpenOptionsExt;

use super::sys::{Question, Request};
use crate::{Counters, Link, Pool, Port, Received, Time};

/// The largest packet the kernel makes, and an Ethernet header with a VLAN tag.
const LARGEST: usize = 65_535 + 18;
/// Bytes of an Ethernet header.
const ETHERNET: usize = 14;

/// What the device carries.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum TapKind {
    /// Ethernet frames: the device has a MAC, and neighbours.
    Tap,
    /// IP packets. Of what is sent here, the Ethernet header is left out.
    Tun,
}

/// A TUN or TAP device. Unless it was made persistent (`ip tuntap add`) it is gone when this value is dropped or the process dies.
#[derive(Debug)]
pub struct TapPort {
    file: File,
    name: String,
    kind: TapKind,
    scratch: Box<[u8]>,
    counters: Counters,
    not_ip: u64,
}

impl TapPort {
    /// Makes the device in the thread's network namespace, or takes the persistent one of that name. It is down at first. A `%d` in the name becomes
    /// the first number that is free.
    ///
    /// # Errors
    /// When somebody has the device, it is of the other kind, the name is none, or we may not (CAP_NET_ADMIN, and `/dev/net/tun` must be there).
    pub fn open(name: &str, kind: TapKind) -> io::Result<TapPort> {
        let about = |what: String| move |error: io::Error| io::Error::new(error.kind(), format!("{what}: {error}"));
        let mut options = OpenOptions::new();
        let file = options.read(true).write(true).custom_flags(libc::O_NONBLOCK).open("/dev/net/tun");
        let file = file.map_err(about("/dev/net/tun".to_owned()))?;
        let mut request = Request::about(name)?;
        let flags = match kind {
            TapKind::Tap => libc::IFF_TAP,
            TapKind::Tun => libc::IFF_TUN,
        } | libc::IFF_NO_PI;
        request.data[..2].copy_from_slice(&(flags as u16).to_ne_bytes());
        request.ioctl(file.as_fd(), Question::AttachTun).map_err(about(format!("device {name}")))?;
        Ok(TapPort {
            file,
            name: request.name(),
            kind,
            scratch: vec![0; LARGEST].into_boxed_slice(),
            counters: Counters::default(),
            not_ip: 0,
        })
    }

    /// The device's name.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// The device once more, for a worker of its own. It keeps the device there.
    ///
    /// # Errors
    /// When there are no descriptors left.
    pub fn another(&self) -> io::Result<TapPort> {
        Ok(TapPort {
            file: self.file.try_clone()?,
            name: self.name.clone(),
            kind: self.kind,
            scratch: vec![0; LARGEST].into_boxed_slice(),
            counters: Counters::default(),
            not_ip: 0,
        })
    }

    /// An address for our end of a TAP device of this name, locally administered: the device's own is the kernel's.
    pub fn station(name: &str) -> [u8; 6] {
        // FNV-1a.
        let hash = name.bytes().fold(0xcbf2_9ce4_8422_2325_u64, |hash, byte| (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3));
        let [a, b, c, d, e, ..] = hash.to_be_bytes();
        [0x02, a, b, c, d, e]
    }

    /// One more way into a TUN device, for a worker of its own. It keeps the device there.
    ///
    /// # Errors
    /// When there are no descriptors left.
    pub fn sender(&self) -> io::Result<TunSender> {
        Ok(TunSender { file: self.file.try_clone()? })
    }
}

/// Sends IP packets into a TUN device: the kernel receives them there.
#[derive(Debug)]
pub struct TunSender {
    file: File,
}

impl TunSender {
    /// Sends a packet, IP header first. A system call; false when the kernel does not take it (the device is down, the packet is no IP).
    pub fn send(&mut self, packet: &[u8]) -> bool {
        // The kernel takes a packet whole or not at all.
        self.file.write_all(packet).is_ok()
    }
}

impl Port for TapPort {
    fn rx(&mut self, pool: &mut Pool, batch: &mut Vec<Received>, max: usize) -> io::Result<usize> {
        let (before, time) = (batch.len(), Time::now());
        let link = match self.kind {
            TapKind::Tap => Link::Ethernet,
            TapKind::Tun => Link::Ip,
        };
        for _ in 0..max {
            let len = match self.file.read(&mut self.scratch) {
                Ok(len) => len,
                Err(error) if matches!(error.kind(), io::ErrorKind::WouldBlock | io::ErrorKind::Interrupted) => break,
                Err(error) => return Err(error),
            };
            let mut buf = pool.take(len);
            buf.append(&self.scratch[..len]);
            let packet = Received { buf, time, wire_len: len, link };
            self.counters.received(&packet);
            batch.push(packet);
        }
        Ok(batch.len() - before)
    }

    fn tx(&mut self, frame: &[u8], _time: Time) {
        let packet = match (self.kind, frame.get(12..ETHERNET)) {
            (TapKind::Tap, _) => frame,
            (TapKind::Tun, Some([0x08, 0x00] | [0x86, 0xdd])) => &frame[ETHERNET..],
            (TapKind::Tun, _) => {
                self.not_ip += 1;
                self.counters.tx_failed += 1;
                return;
            }
        };
        // The kernel takes a packet whole or not at all.
        match self.file.write_all(packet) {
            Ok(()) => self.counters.sent(frame.len()),
            Err(_) => self.counters.tx_failed += 1,
        }
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }

    fn counters(&self) -> Counters {
        self.counters
    }

    fn descriptor(&self) -> Option<BorrowedFd<'_>> {
        Some(self.file.as_fd())
    }

    fn events(&mut self) -> Vec<(&'static str, u64)> {
        vec![("tx_not_ip", self.not_ip)]
    }
}

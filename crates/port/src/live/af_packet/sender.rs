//! The sending half of a packet port alone.

use std::io;
use std::os::fd::{AsFd, OwnedFd};

use super::send::Outbox;
use crate::live::device::Device;
use crate::live::sys;
use crate::{Counters, Pool, Port, Received, Time};

/// Bytes that may wait in the kernel to be sent.
const SEND_BUFFER: i32 = 4 << 20;

/// Sends on a device and receives nothing: for a worker that owns none of the device's queues. It goes with any port of the device.
#[derive(Debug)]
pub struct PacketSender {
    socket: OwnedFd,
    outbox: Outbox,
    pub(super) counters: Counters,
}

impl PacketSender {
    /// Sends on a device of the thread's network namespace.
    ///
    /// # Errors
    /// When there is no such device, or we may not (CAP_NET_RAW).
    pub fn open(name: &str) -> io::Result<PacketSender> {
        PacketSender::on(Device::named(name)?.index())
    }

    /// Sends on the device of this number.
    pub(super) fn on(device: u32) -> io::Result<PacketSender> {
        let socket = sys::socket(libc::AF_PACKET, libc::SOCK_RAW, 0)?;
        // Both only make it faster.
        let _ = sys::set_option(socket.as_fd(), libc::SOL_PACKET, libc::PACKET_QDISC_BYPASS, &1_i32);
        let _ = sys::set_option(socket.as_fd(), libc::SOL_SOCKET, libc::SO_SNDBUFFORCE, &SEND_BUFFER);
        sys::bind(socket.as_fd(), &super::address(device, 0))?;
        Ok(PacketSender { socket, outbox: Outbox::default(), counters: Counters::default() })
    }
}

impl Port for PacketSender {
    fn rx(&mut self, _pool: &mut Pool, _batch: &mut Vec<Received>, _max: usize) -> io::Result<usize> {
        Ok(0)
    }

    fn tx(&mut self, frame: &[u8], _time: Time) {
        if self.outbox.push(frame) {
            // A device that is gone is told by the next flush.
            let _ = self.flush();
        }
    }

    fn flush(&mut self) -> io::Result<()> {
        let PacketSender { socket, outbox, counters } = self;
        outbox.send(socket.as_fd(), |len, taken| if taken { counters.sent(len) } else { counters.tx_failed += 1 })
    }

    fn counters(&self) -> Counters {
        self.counters
    }
}

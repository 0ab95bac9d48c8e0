//! A queue of a device as a port.

use std::io;
use std::os::fd::{AsFd, BorrowedFd};
use std::sync::Arc;
use std::time::Duration;

use super::socket::{Socket, Wanted};
use super::{Copies, XdpError, XdpSettings};
use crate::live::checksum;
use crate::live::device::Device;
use crate::live::xdp::Filter;
use crate::{Buf, Counters, Link, Pool, Port, Received, Time};

/// How long a port that is dropped waits for what it sent to leave.
const DRAIN: Duration = Duration::from_millis(100);
/// How long the frame of the self-test may take to leave.
const SELF_TEST: Duration = Duration::from_millis(300);
/// Ethernet header and two VLAN tags, which the MTU does not count.
const LINK_HEADERS: usize = 14 + 8;
/// "Local Experimental EtherType 1" of IEEE 802.
const EXPERIMENTAL: [u8; 2] = [0x88, 0xb5];

/// A queue of a device, through AF_XDP. One worker owns it. Dropped, it lets the kernel have new frames first, then waits (bounded) for what it
/// sent.
#[derive(Debug)]
pub struct XdpPort {
    socket: Socket,
    filter: Arc<Filter>,
    queue: u32,
    /// Frames may come from a stack that leaves checksums to hardware which is not there.
    finishes_checksums: bool,
    counters: Counters,
    /// A frame whose pieces have not all come; none when one of them is missing.
    begun: Option<Option<Buf>>,
    frame_len: usize,
    misplaced: u64,
    finished: u64,
    notes: Vec<String>,
}

impl XdpPort {
    pub(super) fn open(device: &Device, queue: u32, settings: XdpSettings, filter: Arc<Filter>) -> Result<XdpPort, XdpError> {
        let failed = |what: &'static str| {
            let device = device.name().to_owned();
            move |source| XdpError::Socket { device, queue, what, source }
        };
        let frame_len = device.mtu() as usize + LINK_HEADERS;
        let open = |zero_copy| Socket::open(Wanted { device: device.index(), queue, slots: settings.slots, frame_len, zero_copy });
        let mut notes = Vec::new();
        let mut socket = match settings.copies {
            Copies::Copy => open(false).map_err(failed("a socket with copies"))?,
            Copies::Zero => open(true).map_err(failed("a socket without copies"))?,
            Copies::Auto => match open(true).and_then(|socket| tested(socket, device)) {
                Ok(socket) => socket,
                Err(error) if error.raw_os_error() == Some(libc::EBUSY) => return Err(failed("another socket has it")(error)),
                Err(error) => {
                    notes.push(format!("{}, queue {queue}: frames are copied by the kernel (without copies: {error})", device.name()));
                    let socket = open(false).map_err(failed("a socket with copies"))?;
                    tested(socket, device).map_err(failed("a socket with copies"))?
                }
            },
        };
        if settings.busy_poll {
            socket.poll_busily().map_err(failed("busy polling"))?;
        }
        filter
            .set_socket(queue, socket.as_fd())
            .map_err(|error| failed("directing its frames to the socket")(io::Error::other(error.to_string())))?;
        let finishes_checksums = device.driver() == "veth";
        Ok(XdpPort {
            socket,
            filter,
            queue,
            finishes_checksums,
            counters: Counters::default(),
            begun: None,
            frame_len,
            misplaced: 0,
            finished: 0,
            notes,
        })
    }

    /// True when the device reads and writes the frames' memory itself.
    pub fn is_zero_copy(&self) -> bool {
        self.socket.is_zero_copy()
    }

    /// What the operator should know, a sentence each.
    pub fn notes(&self) -> &[String] {
        &self.notes
    }
}

/// The socket, after one frame went through its send ring: some drivers accept sockets, those without copies above all, and then do nothing. The
/// frame is to the port's own MAC, which no switch forwards back, of a type for experiments. While the link is down nothing is tried.
fn tested(mut socket: Socket, device: &Device) -> io::Result<Socket> {
    if !device.is_running()? {
        return Ok(socket);
    }
    let mut frame = [0; 60];
    frame[..6].copy_from_slice(&device.mac());
    frame[6..12].copy_from_slice(&device.mac());
    frame[12..14].copy_from_slice(&EXPERIMENTAL);
    if socket.queue(&frame) && socket.drain(SELF_TEST) {
        return Ok(socket);
    }
    Err(io::Error::new(io::ErrorKind::TimedOut, "the driver accepts the socket, but a test frame did not leave"))
}

impl Port for XdpPort {
    fn rx(&mut self, pool: &mut Pool, batch: &mut Vec<Received>, max: usize) -> io::Result<usize> {
        let (before, time) = (batch.len(), Time::now());
        let XdpPort { socket, counters, begun, frame_len, misplaced, finished, finishes_checksums, .. } = self;
        socket.receive(max, |piece, more| {
            let room = || if more { *frame_len } else { piece.map_or(0, <[u8]>::len) };
            let mut buf = begun.take().unwrap_or_else(|| Some(pool.take(room())));
            match (&mut buf, piece) {
                (Some(buf), Some(piece)) => buf.append(piece),
                (buf, None) => {
                    *misplaced += 1;
                    *buf = None;
                }
                (None, Some(_)) => {}
            }
            if more {
                *begun = Some(buf);
                return;
            }
            let Some(mut buf) = buf else { return };
            if *finishes_checksums && checksum::finish_partial(&mut buf) {
                *finished += 1;
            }
            let packet = Received { time, wire_len: buf.len(), link: Link::Ethernet, buf };
            counters.received(&packet);
            batch.push(packet);
        })?;
        if self.socket.is_sending() {
            self.socket.transmit()?;
        }
        Ok(batch.len() - before)
    }

    fn tx(&mut self, frame: &[u8], _time: Time) {
        // A full ring is sent, and what left by then makes room.
        if self.socket.queue(frame) || (self.socket.transmit().is_ok() && self.socket.queue(frame)) {
            self.counters.sent(frame.len());
        } else {
            self.counters.tx_failed += 1;
        }
    }

    fn flush(&mut self) -> io::Result<()> {
        self.socket.transmit()
    }

    fn counters(&self) -> Counters {
        self.counters
    }

    fn descriptor(&self) -> Option<BorrowedFd<'_>> {
        Some(self.socket.as_fd())
    }

    fn events(&mut self) -> Vec<(&'static str, u64)> {
        let mut events = vec![("rx_misplaced", self.misplaced), ("rx_checksum_finished", self.finished)];
        if let Ok(kernel) = self.socket.statistics() {
            events.extend([
                ("rx_dropped", kernel.rx_dropped),
                ("rx_invalid_descriptors", kernel.rx_invalid_descs),
                ("rx_ring_full", kernel.rx_ring_full),
                ("rx_fill_ring_empty", kernel.rx_fill_ring_empty_descs),
                ("tx_invalid_descriptors", kernel.tx_invalid_descs),
                ("tx_ring_empty", kernel.tx_ring_empty_descs),
            ]);
        }
        events
    }

    fn stop_receiving(&mut self) {
        // It fails only when the map is gone, and with it the filter.
        let _ = self.filter.clear_socket(self.queue);
    }

    fn drain(&mut self, timeout: Duration) -> bool {
        self.socket.drain(timeout)
    }
}

impl Drop for XdpPort {
    fn drop(&mut self) {
        self.stop_receiving();
        self.drain(DRAIN);
    }
}

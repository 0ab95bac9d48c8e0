//! AF_PACKET: for devices without XDP. The kernel still has every frame too; a packet socket gets a copy.
//!
//! Frames come as the kernel's own stack sees them, with things undone that hardware would do: checksums not finished are finished here; VLAN tags that
//! were taken off are put back; several segments in one, which no router can forward, are counted and left out (`rx_unsegmented`: switch off
//! segmentation where they come from).

mod promiscuous;
#[allow(unsafe_code, reason = "memory shared with the kernel; its head says what keeps it sound")]
mod ring;
#[allow(unsafe_code, reason = "a system call")]
mod send;
mod sender;

use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};

pub(super) use promiscuous::Promiscuous;
use ring::BlockRing;
pub use sender::PacketSender;

use super::checksum;
use super::device::Device;
use super::sys::{self, Plain};
use crate::{Counters, Link, Pool, Port, Received, Time};

/// Length of the addresses of an Ethernet header, behind which a VLAN tag stands.
const ADDRESSES: usize = 12;

#[allow(unsafe_code, reason = "says that a structure of the kernel is plain")]
// SAFETY: a structure of integers.
unsafe impl Plain for libc::tpacket_stats_v3 {}

/// How a packet port is opened.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct PacketSettings {
    /// Blocks of the receive ring, 256 KiB each.
    pub blocks: usize,
    /// Ports with the same number, of one device, share its frames by flow: a port for each worker.
    pub group: Option<u16>,
}

impl Default for PacketSettings {
    /// 8 MiB, not shared.
    fn default() -> PacketSettings {
        PacketSettings { blocks: 32, group: None }
    }
}

/// A device, through packet sockets: one receives, the other sends.
#[derive(Debug)]
pub struct PacketPort {
    receiver: OwnedFd,
    _promiscuous: Promiscuous,
    ring: BlockRing,
    /// Its counters are the port's.
    sender: PacketSender,
    events: Events,
    notes: Vec<String>,
}

#[derive(Clone, Copy, Debug, Default)]
struct Events {
    dropped: u64,
    finished: u64,
    unfinished: u64,
    unsegmented: u64,
    vlan_restored: u64,
}

impl PacketPort {
    /// Receives and sends on a device of the thread's network namespace, which hears everything from now on (promiscuous mode).
    ///
    /// # Errors
    /// When there is no such device, there is no memory for the ring, or we may not (CAP_NET_RAW).
    pub fn open(name: &str, settings: PacketSettings) -> io::Result<PacketPort> {
        let device = Device::named(name)?;
        let mut notes = Vec::new();
        if device.merges_segments().unwrap_or(false) {
            notes.push(match device.set_merges_segments(false) {
                Ok(()) => format!("{name}: received segments were put together (gro), which a router cannot forward; switched off"),
                Err(error) => {
                    format!("{name}: received segments are put together (gro), which a router cannot forward, and it stays so: {error}")
                }
            });
        }
        let receiver = sys::socket(libc::AF_PACKET, libc::SOCK_RAW, 0)?;
        let set = |fd: &OwnedFd, name, value: i32| sys::set_option(fd.as_fd(), libc::SOL_PACKET, name, &value);
        set(&receiver, libc::PACKET_IGNORE_OUTGOING, 1)?;
        let ring = BlockRing::new(receiver.as_fd(), settings.blocks)?;
        // Nothing comes before the socket has a protocol, which it gets last.
        sys::bind(receiver.as_fd(), &address(device.index(), libc::ETH_P_ALL as u16))?;
        if let Some(group) = settings.group {
            set(&receiver, libc::PACKET_FANOUT, i32::from(group) | (libc::PACKET_FANOUT_HASH as i32) << 16)?;
        }
        let sender = PacketSender::on(device.index())?;
        Ok(PacketPort { receiver, _promiscuous: Promiscuous::new(device.index())?, ring, sender, events: Events::default(), notes })
    }

    /// What the operator should know, a sentence each.
    pub fn notes(&self) -> &[String] {
        &self.notes
    }

    /// What the kernel dropped since it was last asked: it begins anew each time.
    fn fetch_drops(&mut self) {
        if let Ok(kernel) = sys::option::<libc::tpacket_stats_v3>(self.receiver.as_fd(), libc::SOL_PACKET, libc::PACKET_STATISTICS) {
            self.events.dropped += u64::from(kernel.tp_drops);
        }
    }
}

fn address(device: u32, protocol: u16) -> libc::sockaddr_ll {
    libc::sockaddr_ll {
        sll_family: libc::AF_PACKET as u16,
        sll_protocol: protocol.to_be(),
        sll_ifindex: device as i32,
        sll_hatype: 0,
        sll_pkttype: 0,
        sll_halen: 0,
        sll_addr: [0; 8],
    }
}

impl Port for PacketPort {
    fn rx(&mut self, pool: &mut Pool, batch: &mut Vec<Received>, max: usize) -> io::Result<usize> {
        let before = batch.len();
        for _ in 0..max {
            let Some(frame) = self.ring.next() else { break };
            if frame.is_unsegmented {
                self.events.unsegmented += 1;
                continue;
            }
            let mut buf = pool.take(frame.bytes.len());
            buf.append(frame.bytes);
            if let Some((start, offset)) = frame.unfinished {
                let all = frame.wire_len == frame.bytes.len();
                let finished = all && checksum::finish(&mut buf, start, offset);
                self.events.finished += u64::from(finished);
                self.events.unfinished += u64::from(!finished);
            }
            let mut wire_len = frame.wire_len;
            if let Some(tag) = frame.vlan
                && buf.insert(ADDRESSES, tag.len())
            {
                buf[ADDRESSES..ADDRESSES + tag.len()].copy_from_slice(&tag);
                wire_len += tag.len();
                self.events.vlan_restored += 1;
            }
            let packet = Received { buf, time: frame.time, wire_len, link: Link::Ethernet };
            self.sender.counters.received(&packet);
            batch.push(packet);
        }
        Ok(batch.len() - before)
    }

    fn tx(&mut self, frame: &[u8], time: Time) {
        self.sender.tx(frame, time);
    }

    fn flush(&mut self) -> io::Result<()> {
        self.sender.flush()
    }

    fn counters(&self) -> Counters {
        self.sender.counters()
    }

    fn descriptor(&self) -> Option<BorrowedFd<'_>> {
        Some(self.receiver.as_fd())
    }

    fn events(&mut self) -> Vec<(&'static str, u64)> {
        self.fetch_drops();
        let Events { dropped, finished, unfinished, unsegmented, vlan_restored } = self.events;
        vec![
            ("rx_misplaced", self.ring.misplaced()),
            ("rx_ring_full", dropped),
            ("rx_checksum_finished", finished),
            ("rx_checksum_unfinished", unfinished),
            ("rx_unsegmented", unsegmented),
            ("rx_vlan_restored", vlan_restored),
        ]
    }

    fn stop_receiving(&mut self) {
        // It fails only for want of memory; then frames go on coming, as they do to the kernel.
        let _ = sys::take_nothing(self.receiver.as_fd());
    }
}

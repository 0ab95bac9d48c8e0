//! What every port can do, whatever stands behind it.

use std::io;
#[cfg(unix)]
use std::os::fd::BorrowedFd;
use std::time::Duration;

use crate::{Buf, Pool, Time};

/// What the first byte of a received packet belongs to.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum Link {
    /// An Ethernet header, without preamble and check sequence.
    Ethernet,
    /// An IP header of the version that its first four bits say.
    Ip,
    /// An IPv4 header, or what claims to be one.
    Ip4,
    /// An IPv6 header, or what claims to be one.
    Ip6,
}

/// A packet as a port hands it over.
#[derive(Clone, Debug)]
pub struct Received {
    /// The bytes there are; fewer than `wire_len` when the capture cut the packet off.
    pub buf: Buf,
    /// When it came.
    pub time: Time,
    /// Bytes it had on the wire, at least those in `buf`.
    pub wire_len: usize,
    /// What `buf` begins with.
    pub link: Link,
}

/// Bytes of an Ethernet header.
const ETHERNET: usize = 14;

/// The station that packets without Ethernet header are said to come from: a locally administered address that no device has.
const NOBODY: [u8; 6] = [0x02, 0, 0, 0, 0, 0];

impl Received {
    /// Gives a packet that begins with its IP header an Ethernet header addressed to `mac`, so that all packets go the same way. Its type follows
    /// the link; where the link leaves it open and the version is neither 4 nor 6, IPv4 (whose input then refuses the version).
    pub fn into_ethernet(mut self, mac: [u8; 6]) -> Received {
        let ether_type: u16 = match (self.link, self.buf.first().map(|byte| byte >> 4)) {
            (Link::Ethernet, _) => return self,
            (Link::Ip6, _) | (Link::Ip, Some(6)) => 0x86dd,
            (Link::Ip4 | Link::Ip, _) => 0x0800,
        };
        if !self.buf.prepend(ETHERNET) {
            let mut roomy = Buf::from_bytes(&[0; ETHERNET]);
            roomy.append(&self.buf);
            self.buf = roomy;
        }
        self.buf[..6].copy_from_slice(&mac);
        self.buf[6..12].copy_from_slice(&NOBODY);
        self.buf[12..ETHERNET].copy_from_slice(&ether_type.to_be_bytes());
        self.wire_len += ETHERNET;
        self.link = Link::Ethernet;
        self
    }
}

/// What a port counted since it was opened. Bytes are those that were there, not those of the wire.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Counters {
    /// Packets received.
    pub rx_packets: u64,
    /// Bytes of them.
    pub rx_bytes: u64,
    /// Packets received that were cut off: they had more bytes on the wire.
    pub rx_truncated: u64,
    /// Packets sent.
    pub tx_packets: u64,
    /// Bytes of them.
    pub tx_bytes: u64,
    /// Packets that the port could not send.
    pub tx_failed: u64,
}

impl Counters {
    /// Every counter with its name, for export. A field added and forgotten here does not compile.
    pub fn named(&self) -> [(&'static str, u64); 6] {
        let Counters { rx_packets, rx_bytes, rx_truncated, tx_packets, tx_bytes, tx_failed } = *self;
        [
            ("rx_packets", rx_packets),
            ("rx_bytes", rx_bytes),
            ("rx_truncated", rx_truncated),
            ("tx_packets", tx_packets),
            ("tx_bytes", tx_bytes),
            ("tx_failed", tx_failed),
        ]
    }

    pub(crate) fn received(&mut self, packet: &Received) {
        self.rx_packets += 1;
        self.rx_bytes += packet.buf.len() as u64;
        self.rx_truncated += u64::from(packet.wire_len > packet.buf.len());
    }

    pub(crate) fn sent(&mut self, bytes: usize) {
        self.tx_packets += 1;
        self.tx_bytes += bytes as u64;
    }
}

/// Something that packets come from and go to. One worker owns it; nothing in it is shared.
pub trait Port {
    /// Appends up to `max` received packets to `batch` in the order they came, and says how many; none when none wait. Their buffers are of `pool`.
    ///
    /// # Errors
    /// When the port can receive no more; what was appended before stays.
    fn rx(&mut self, pool: &mut Pool, batch: &mut Vec<Received>, max: usize) -> io::Result<usize>;

    /// Sends a frame (Ethernet header first), or queues it until [`Port::flush`]. What can not be sent is counted in [`Counters::tx_failed`]. `time`
    /// is when the frame that caused it came, for ports that record it.
    fn tx(&mut self, frame: &[u8], time: Time);

    /// Sends what is queued. Called at the end of each burst.
    ///
    /// # Errors
    /// When the port can send no more.
    fn flush(&mut self) -> io::Result<()>;

    /// True when no more will ever be received: the end of a capture. A live port has none.
    fn ended(&self) -> bool {
        false
    }

    /// What the port counted.
    fn counters(&self) -> Counters;

    /// What poll(2) waits for when nothing is to be received: readable when something is. None when the port never waits. To be asked each time before
    /// waiting: a port may have its peer wake it from here to the next [`Port::rx`] only.
    #[cfg(unix)]
    fn descriptor(&self) -> Option<BorrowedFd<'_>> {
        None
    }

    /// What else happened to packets, by name, since the port was opened: those lost before they reached it, those repaired on the way. May ask the
    /// kernel; not for the packet path.
    fn events(&mut self) -> Vec<(&'static str, u64)> {
        Vec::new()
    }

    /// No new packets come after this; those that are there can still be received, until [`Port::rx`] finds none. The first step of letting a port go
    /// without losing a packet: then what was received is forwarded, what is to be sent drained ([`Port::drain`]), and the port dropped. A port whose
    /// source cannot be told does nothing here.
    fn stop_receiving(&mut self) {}

    /// Sends what is queued and waits until it has left and its memory is free, `timeout` at most. True when it has. A port that gives what it sends
    /// out of its hands at once has nothing to wait for.
    fn drain(&mut self, timeout: Duration) -> bool {
        let _ = timeout;
        self.flush().is_ok()
    }
}

impl<P: Port + ?Sized> Port for Box<P> {
    fn rx(&mut self, pool: &mut Pool, batch: &mut Vec<Received>, max: usize) -> io::Result<usize> {
        (**self).rx(pool, batch, max)
    }

    fn tx(&mut self, frame: &[u8], time: Time) {
        (**self).tx(frame, time);
    }

    fn flush(&mut self) -> io::Result<()> {
        (**self).flush()
    }

    fn ended(&self) -> bool {
        (**self).ended()
    }

    fn counters(&self) -> Counters {
        (**self).counters()
    }

    #[cfg(unix)]
    fn descriptor(&self) -> Option<BorrowedFd<'_>> {
        (**self).descriptor()
    }

    fn events(&mut self) -> Vec<(&'static str, u64)> {
        (**self).events()
    }

    fn stop_receiving(&mut self) {
        (**self).stop_receiving();
    }

    fn drain(&mut self, timeout: Duration) -> bool {
        (**self).drain(timeout)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn received(bytes: &[u8], link: Link) -> Received {
        Received { buf: Buf::from_bytes(bytes), time: Time::ZERO, wire_len: bytes.len(), link }
    }

    #[test]
    fn a_packet_without_ethernet_header_gets_one_addressed_to_the_port() {
        let mac = [2, 0, 0, 0, 0x0e, 1];
        for (link, first, ether_type) in [
            (Link::Ip, 0x45, [0x08, 0x00]),
            (Link::Ip, 0x60, [0x86, 0xdd]),
            (Link::Ip, 0x90, [0x08, 0x00]),
            (Link::Ip4, 0x60, [0x08, 0x00]),
            (Link::Ip6, 0x45, [0x86, 0xdd]),
        ] {
            let packet = received(&[first, 7], link).into_ethernet(mac);
            assert_eq!(packet.buf[..6], mac);
            assert_eq!(packet.buf[12..14], ether_type, "{link:?} {first:#x}");
            assert_eq!(packet.buf[14..], [first, 7]);
            assert_eq!((packet.wire_len, packet.link), (16, Link::Ethernet));
        }
        assert_eq!(received(&[], Link::Ip).into_ethernet(mac).buf.len(), 14);
        assert_eq!(received(&[1, 2], Link::Ethernet).into_ethernet(mac).buf[..], [1, 2]);
    }

    #[test]
    fn an_ethernet_header_is_put_on_even_without_headroom() {
        let mut buf = Buf::with_room(0, 2);
        buf.append(&[0x45, 9]);
        let packet = Received { buf, time: Time::ZERO, wire_len: 2, link: Link::Ip }.into_ethernet([1; 6]);
        assert_eq!((packet.buf.len(), packet.buf[15]), (16, 9));
    }
}

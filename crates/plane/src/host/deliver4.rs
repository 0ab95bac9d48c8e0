//! IPv4 packets for the router itself: fragments, options, then the upper layer (RFC 1122 §3.2, Linux `ip_local_deliver`).

use route::DropReason;
use wire::checksum::Sum;
use wire::{icmp4, ipv4, proto, udp};

use super::Host;
use crate::context::Context;
use crate::forward4;
use crate::packet::Packet;
use crate::reassembly::{Arrival, Fate, Outcome};
use crate::trace::Ledger;
use crate::verdict::{IcmpError, Verdict};

impl Host {
    /// Delivers a packet that a local route led here; `group`: it was sent to a broadcast or multicast address.
    pub(super) fn deliver4(&mut self, cx: &Context<'_, '_>, mut packet: Packet, group: bool, ledger: &mut Ledger) {
        if let Err(refused) = forward4::options(cx, &mut packet, !group) {
            let refused = match refused {
                // No error about what was sent to a group (RFC 1812 §4.3.2.7).
                Verdict::Error(_, reason) if group => Verdict::Drop(reason),
                refused => refused,
            };
            return self.perform(cx, packet, refused, ledger);
        }
        let Some(header) = ipv4::Header::read(&packet.buf) else { return self.drop(packet, DropReason::HeaderTruncated, ledger) };
        if header.is_fragment() {
            match self.fragment4(cx, packet, ledger) {
                Some(whole) => packet = whole,
                None => return,
            }
        }
        let Some(header) = ipv4::Header::read(&packet.buf) else { return self.drop(packet, DropReason::HeaderTruncated, ledger) };
        match header.proto {
            proto::ICMP4 => self.icmp4(cx, packet, group, ledger),
            proto::UDP | proto::UDP_LITE => self.udp4(cx, packet, group, ledger),
            proto::TCP if !group => self.tcp4(cx, packet, ledger),
            proto::TCP | proto::IGMP | proto::PIM => self.drop(packet, DropReason::NoProtocol, ledger),
            _ => self.refuse4(cx, packet, group, icmp4::unreachable::PROTOCOL, DropReason::NoProtocol, ledger),
        }
    }

    /// Nobody takes the packet: the source is told, unless it spoke to a group.
    fn refuse4(&mut self, cx: &Context<'_, '_>, packet: Packet, group: bool, code: u8, reason: DropReason, ledger: &mut Ledger) {
        if group {
            return self.drop(packet, reason, ledger);
        }
        self.perform(cx, packet, Verdict::Error(IcmpError::new(icmp4::UNREACHABLE, code, 0), reason), ledger);
    }

    fn fragment4(&mut self, cx: &Context<'_, '_>, mut packet: Packet, ledger: &mut Ledger) -> Option<Packet> {
        let arrival =
            Arrival { vrf: cx.vrf(packet.dev).0.0, iif: packet.iif.0, number: packet.number, now: packet.time.0, options: packet.options };
        let Outcome { fate, lost, lost_reason } = self.fragments4.input(&packet.buf, arrival, &mut self.pool);
        self.fragments_lost(lost, lost_reason, ledger);
        match fate {
            Fate::Whole => return Some(packet),
            Fate::Complete { packet: whole, options, .. } => {
                ledger.step(&packet, "whole", || format!("the last fragment is here: {} bytes", whole.len()));
                self.pool.give(std::mem::replace(&mut packet.buf, whole));
                packet.options = options;
                return Some(packet);
            }
            Fate::Waiting => {
                ledger.counters.reassembled += 1;
                ledger.step(&packet, "wait", || "for the other fragments".into());
                self.pool.give(packet.buf);
            }
            Fate::Dropped(reason) => self.drop(packet, reason, ledger),
            Fate::Problem { .. } => self.drop(packet, DropReason::FragmentBad, ledger),
        }
        None
    }

    fn icmp4(&mut self, cx: &Context<'_, '_>, packet: Packet, group: bool, ledger: &mut Ledger) {
        let message = ipv4::Header::read(&packet.buf).and_then(|header| packet.buf.get(header.header_len()..));
        let Some(header) = message.and_then(icmp4::Header::read) else {
            return self.drop(packet, DropReason::BadUpperChecksum, ledger);
        };
        if !message.is_some_and(|message| Sum::default().bytes(message).is_valid()) {
            return self.drop(packet, DropReason::BadUpperChecksum, ledger);
        }
        match header.kind {
            icmp4::ECHO => self.echo4(cx, packet, group, ledger),
            icmp4::TIMESTAMP => self.timestamp4(cx, packet, group, ledger),
            kind if icmp4::is_error(kind) => self.delivered(packet, || format!("ICMP error type {kind}"), ledger),
            _ => self.drop(packet, DropReason::IcmpIgnored, ledger),
        }
    }

    fn udp4(&mut self, cx: &Context<'_, '_>, mut packet: Packet, group: bool, ledger: &mut Ledger) {
        let Some(end) = datagram_end(&packet.buf) else { return self.drop(packet, DropReason::BadUpperChecksum, ledger) };
        // An error quotes the datagram without what is behind it.
        packet.buf.truncate(end);
        self.refuse4(cx, packet, group, icmp4::unreachable::PORT, DropReason::NoListener, ledger);
    }
}

/// Where the datagram of UDP or UDP-Lite behind the IPv4 header ends; none when its length or checksum is wrong.
fn datagram_end(packet: &[u8]) -> Option<usize> {
    let ip = ipv4::Header::read(packet)?;
    let upper = packet.get(ip.header_len()..)?;
    let header = udp::Header::read(upper)?;
    let lite = ip.proto == proto::UDP_LITE;
    let covered = match usize::from(header.len.get()) {
        0 if lite => upper.len(),
        covered => covered,
    };
    let bytes = upper.get(..covered).filter(|_| covered >= udp::LEN)?;
    let len = if lite { upper.len() } else { covered };
    // UDP-Lite has no "no checksum" (RFC 3828 §3.1).
    let valid = match header.checksum.get() {
        0 => !lite,
        _ => Sum::pseudo4(ip.src(), ip.dst(), ip.proto, len).bytes(bytes).is_valid(),
    };
    valid.then_some(ip.header_len() + len)
}

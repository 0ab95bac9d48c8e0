//! Out: the Ethernet header, and the MTU in IPv4.

use std::net::{IpAddr, Ipv4Addr};

use port::Buf;
use route::{DropReason, IfIndex, Kind, LinkKind, NeighbourState};
use wire::{EtherType, Mac, eth, icmp4, ipv4, ipv6};
use zerocopy::IntoBytes;

use super::{Cause, Host};
use crate::context::Context;
use crate::fragment4;
use crate::packet::{Packet, Version};
use crate::trace::Ledger;
use crate::verdict::{Forward, IcmpError};

impl Host {
    /// Sends a forwarded packet: an IPv4 one that is too big for its way out in fragments.
    pub(super) fn forward<'g>(&mut self, cx: &Context<'_, 'g>, packet: Packet, forward: Forward<'g>, ledger: &mut Ledger) {
        ledger.step(&packet, "forward", || {
            let hops = match packet.version {
                Version::V4 => ipv4::Header::read(&packet.buf).map_or(0, |header| header.ttl),
                Version::V6 => ipv6::Header::read(&packet.buf).map_or(0, |header| header.hop_limit),
            };
            format!("{} hops left, {} bytes of at most {} to {}", hops, packet.buf.len(), forward.mtu, cx.name(forward.dev))
        });
        if packet.buf.len() <= forward.mtu as usize || packet.version == Version::V6 {
            return self.send_to_neighbour(cx, packet, forward, ledger);
        }
        self.in_fragments4(cx, packet, forward, ledger);
    }

    /// Sends an IPv4 packet in fragments of at most `forward.mtu` bytes.
    pub(super) fn in_fragments4<'g>(&mut self, cx: &Context<'_, 'g>, packet: Packet, forward: Forward<'g>, ledger: &mut Ledger) {
        let mut fragments = Vec::new();
        let split = fragment4::fragment(&packet.buf, forward.mtu as usize, &mut self.pool, |fragment| fragments.push(fragment));
        if let Err(reason) = split {
            return self.drop(packet, reason, ledger);
        }
        ledger.step(&packet, "fragment", || format!("{} fragments", fragments.len()));
        self.send_fragments(cx, packet, fragments, &forward, ledger);
    }

    /// Sends what a packet was cut into: the first fragment counts as the packet, the others as made here.
    pub(super) fn send_fragments<'g>(
        &mut self,
        cx: &Context<'_, 'g>,
        packet: Packet,
        fragments: Vec<Buf>,
        forward: &Forward<'g>,
        ledger: &mut Ledger,
    ) {
        let Packet { version, time, number, iif, priority, mut own, .. } = packet;
        self.pool.give(packet.buf);
        ledger.counters.originated += fragments.len().saturating_sub(1) as u64;
        for buf in fragments {
            let Forward { dst, dev, to, hop, mtu, .. } = forward;
            let forward = Forward { dst: dst.clone(), dev: *dev, to: *to, hop: *hop, mtu: *mtu, redirect: false };
            let fragment = Packet { own, priority, ..Packet::new(version, buf, time, number, iif) };
            own = true;
            self.send_to_neighbour(cx, fragment, forward, ledger);
        }
    }

    /// Sends a packet to its neighbour, or lets it wait until the neighbour's address is known.
    pub(super) fn send_to_neighbour<'g>(&mut self, cx: &Context<'_, 'g>, packet: Packet, forward: Forward<'g>, ledger: &mut Ledger) {
        let Forward { dst, dev, to, hop, .. } = &forward;
        // Nobody is asked for there.
        if cx.links.below(*dev).is_some_and(|link| link.kind == LinkKind::Dummy) {
            return self.drop(packet, DropReason::DummyDevice, ledger);
        }
        if let Some(mac) = group_mac(*to, dst.kind) {
            return self.emit(cx, packet, *dev, mac, ledger);
        }
        let gateway = dst.hop(*hop).and_then(|hop| hop.gateway.as_deref());
        let neighbour = gateway.or_else(|| cx.tables.network.neighbours.find(cx.guard, *dev, *to));
        match neighbour.map(|neighbour| neighbour.load()) {
            Some((NeighbourState::Stale, mac)) => {
                let addr = gateway.map_or(*to, |gateway| gateway.addr());
                self.neighbour_used(*dev, addr, packet.time);
                self.emit(cx, packet, *dev, mac, ledger);
            }
            Some((state, mac)) if state.is_valid() => self.emit(cx, packet, *dev, mac, ledger),
            _ => {
                let addr = gateway.map_or(*to, |gateway| gateway.addr());
                self.wait(cx, packet, forward, addr, ledger);
            }
        }
    }

    /// Puts the Ethernet header on, and tags, and sends.
    pub(super) fn emit(&mut self, cx: &Context<'_, '_>, mut packet: Packet, dev: IfIndex, mac: Mac, ledger: &mut Ledger) {
        let Some(link) = cx.links.get(dev).filter(|link| link.up) else { return self.drop(packet, DropReason::LinkDown, ledger) };
        let way = match cx.links.way_out(dev, packet.priority) {
            Ok(way) => way,
            Err(reason) => return self.drop(packet, reason, ledger),
        };
        let ethertype = if packet.version == Version::V4 { EtherType::IPV4 } else { EtherType::IPV6 };
        if !packet.buf.prepend(eth::LEN) {
            return self.drop(packet, DropReason::NoHeadroom, ledger);
        }
        let header = eth::Header::new(mac, link.mac, ethertype);
        packet.buf[..eth::LEN].copy_from_slice(header.as_bytes());
        if !crate::ethernet::put_tags(&mut packet.buf, way.tags()) {
            return self.drop(packet, DropReason::NoHeadroom, ledger);
        }
        ledger.step(&packet, "out", || format!("{}: {} bytes to {mac}", link.name, packet.buf.len()));
        ledger.counters.forwarded += u64::from(!packet.own);
        self.leave(cx, (dev, way.port), Cause::from(&packet), packet.buf, ledger);
    }

    /// Sends an Ethernet frame as it is (End.DX2), with the tags of the interface.
    pub(super) fn frame(&mut self, cx: &Context<'_, '_>, mut packet: Packet, dev: IfIndex, ledger: &mut Ledger) {
        let Some(link) = cx.links.get(dev).filter(|link| link.up) else { return self.drop(packet, DropReason::SidDevice, ledger) };
        let Ok(way) = cx.links.way_out(dev, packet.priority) else { return self.drop(packet, DropReason::SidDevice, ledger) };
        if packet.buf.len() > eth::LEN + link.mtu as usize {
            return self.drop(packet, DropReason::TooBig, ledger);
        }
        if !crate::ethernet::put_tags(&mut packet.buf, way.tags()) {
            return self.drop(packet, DropReason::NoHeadroom, ledger);
        }
        ledger.counters.forwarded += 1;
        ledger.step(&packet, "out", || format!("{}: frame of {} bytes as it is", link.name, packet.buf.len()));
        self.leave(cx, (dev, way.port), Cause::from(&packet), packet.buf, ledger);
    }

    /// Sends a frame of the router's own making that is no IP packet.
    pub(super) fn emit_frame(&mut self, cx: &Context<'_, '_>, cause: Cause, dev: IfIndex, frame: &[u8], ledger: &mut Ledger) {
        let Ok(way) = cx.links.way_out(dev, 0) else { return };
        let mut buf = self.pool.take(frame.len());
        buf.append(frame);
        if !crate::ethernet::put_tags(&mut buf, way.tags()) {
            return;
        }
        ledger.counters.originated += 1;
        ledger.step_of(cause.number, cause.time, "out", || crate::ethernet::describe(frame, cx.links.get(dev)));
        self.leave(cx, (dev, way.port), cause, buf, ledger);
    }

    /// Sends a frame by a port that was sent by `dev`: it counts there, and on the port if that is another.
    fn leave(&mut self, cx: &Context<'_, '_>, (dev, port): (IfIndex, usize), cause: Cause, buf: Buf, ledger: &mut Ledger) {
        let bytes = buf.len();
        ledger.counters.link_mut(dev).sent.add(bytes);
        if let Some(link) = cx.links.of_port(port).filter(|link| link.index != dev) {
            ledger.counters.link_mut(link.index).sent.add(bytes);
        }
        self.out.push(port, cause.time, cause.number, buf);
    }

    /// A packet whose neighbour never answered: its source is told (Linux `ipv4_link_failure`, `ip6_link_failure`).
    pub(super) fn unresolved(&mut self, cx: &Context<'_, '_>, packet: Packet, ledger: &mut Ledger) {
        match packet.version {
            Version::V4 => self.error4(cx, &packet, IcmpError::new(icmp4::UNREACHABLE, icmp4::unreachable::HOST, 0), ledger),
            Version::V6 => self.error6(cx, &packet, IcmpError::new(wire::icmp6::UNREACHABLE, wire::icmp6::unreachable::ADDRESS, 0), ledger),
        }
        self.drop(packet, DropReason::NeighbourFailed, ledger);
    }

    /// A buffer that holds `len` zero bytes.
    pub(super) fn blank(&mut self, len: usize) -> Buf {
        const ZEROS: [u8; 256] = [0; 256];
        let mut buf = self.pool.take(len);
        let mut left = len;
        while left > 0 {
            let n = left.min(ZEROS.len());
            buf.append(&ZEROS[..n]);
            left -= n;
        }
        buf
    }
}

/// Group addresses need nobody to be asked.
fn group_mac(to: IpAddr, kind: Kind) -> Option<Mac> {
    match to {
        IpAddr::V6(to) if to.is_multicast() => Some(Mac::for_ipv6_group(to)),
        IpAddr::V4(to) if to.is_multicast() => Some(Mac::for_ipv4_group(to)),
        IpAddr::V4(to) if to == Ipv4Addr::BROADCAST || kind == Kind::Broadcast => Some(Mac::BROADCAST),
        _ => None,
    }
}

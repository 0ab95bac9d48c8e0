//! Neighbour discovery (RFC 4861, Linux `ndisc.c`): solicitations, advertisements, redirects.

use std::net::{IpAddr, Ipv6Addr};

use route::{DropReason, IfIndex, Link, NeighbourState};
use wire::{Mac, icmp6, ipv6, proto};
use zerocopy::IntoBytes;

use super::resolver::Told;
use super::{Cause, Host};
use crate::context::Context;
use crate::packet::{Packet, Version};
use crate::trace::Ledger;
use crate::verdict::Forward;

/// Hop limit that proves a message comes from the link (RFC 4861 §7.1).
const HOP_LIMIT: u8 = 255;
/// Bytes of a solicitation or advertisement without options.
const MESSAGE: usize = 24;
/// Bytes of a redirect without options.
const REDIRECT: usize = 40;

mod option {
    pub const SOURCE_MAC: u8 = 1;
    pub const TARGET_MAC: u8 = 2;
    pub const REDIRECTED: u8 = 4;
}

mod flag {
    pub const ROUTER: u8 = 0x80;
    pub const SOLICITED: u8 = 0x40;
    pub const OVERRIDE: u8 = 0x20;
}

impl Host {
    /// A neighbour discovery message whose checksum is right: `at` is where its ICMPv6 header stands.
    pub(super) fn ndisc(&mut self, cx: &Context<'_, '_>, packet: Packet, at: usize, ledger: &mut Ledger) {
        let Some(message) = Message::read(&packet.buf, at) else { return self.drop(packet, DropReason::BadNeighbourDiscovery, ledger) };
        let done = match message.kind {
            icmp6::NEIGHBOUR_SOLICITATION => self.solicited(cx, &packet, &message, ledger),
            icmp6::NEIGHBOUR_ADVERTISEMENT => self.advertised(cx, &packet, &message, ledger),
            // A router learns neither routes nor prefixes this way, and a host is not asked for its own.
            _ => Some("neighbour discovery message of no concern to a router"),
        };
        match done {
            Some(what) => self.delivered(packet, || what.into(), ledger),
            None => self.drop(packet, DropReason::BadNeighbourDiscovery, ledger),
        }
    }

    fn solicited(&mut self, cx: &Context<'_, '_>, packet: &Packet, message: &Message, ledger: &mut Ledger) -> Option<&'static str> {
        let dev = packet.iif;
        let link = cx.links.get(dev)?;
        let has = |link: &Link| link.has_addr(IpAddr::V6(message.target));
        // An address of the VRF device is asked for on its members (Linux `ndisc_recv_ns`).
        let own = has(link) || cx.links.vrf_of(dev).is_some_and(has);
        if !(own || link.conf6.forwarding && cx.is_anycast(message.target, dev)) {
            return None;
        }
        let probe = message.src.is_unspecified();
        if probe && (message.mac.is_some() || message.dst != icmp6::solicited_node(message.dst)) {
            return None;
        }
        let known = |cx: &Context<'_, '_>| cx.tables.network.neighbours.find(cx.guard, dev, message.src.into()).map(|n| n.load());
        if !probe && message.dst.is_multicast() && message.mac.is_none() && known(cx).is_none_or(|(state, _)| state == NeighbourState::None)
        {
            return None;
        }
        let cause = Cause::from(packet);
        let multicast = message.dst.is_multicast();
        if let (false, Some(mac)) = (probe, message.mac) {
            self.learn(cx, (dev, message.src.into()), mac, Told::ToUs, cause, ledger);
        }
        let mut flags = if link.conf6.forwarding { flag::ROUTER } else { 0 };
        if !probe {
            flags |= flag::SOLICITED;
        }
        if own && multicast {
            flags |= flag::OVERRIDE;
        }
        let to = if probe { Ipv6Addr::new(0xff02, 0, 0, 0, 0, 0, 0, 1) } else { message.src };
        let mac = multicast.then_some((option::TARGET_MAC, link.mac));
        // The answer goes to the neighbour itself: its address need not be one that a route leads to.
        let at = known(cx).filter(|(state, _)| !probe && state.is_valid()).map(|(_, mac)| mac);
        let source = if has(link) { message.target } else { cx.links.source6(dev, to)? };
        self.send_ndisc(cx, dev, (source, to), icmp6::NEIGHBOUR_ADVERTISEMENT, flags, message.target, mac, at, cause, ledger);
        Some("neighbour solicitation answered")
    }

    fn advertised(&mut self, cx: &Context<'_, '_>, packet: &Packet, message: &Message, ledger: &mut Ledger) -> Option<&'static str> {
        let solicited = message.flags & flag::SOLICITED != 0;
        if message.target.is_multicast() || solicited && message.dst.is_multicast() {
            return None;
        }
        let dev = packet.iif;
        let known = cx.tables.network.neighbours.find(cx.guard, dev, message.target.into())?.load();
        let mac = match message.mac {
            Some(mac) if !known.0.is_valid() || message.flags & flag::OVERRIDE != 0 => mac,
            Some(mac) if mac != known.1 => return Some("neighbour advertisement without override for a known neighbour"),
            _ if known.0.is_valid() => known.1,
            _ => return None,
        };
        let told = if solicited { Told::InAnswer } else { Told::InPassing };
        self.learn(cx, (dev, message.target.into()), mac, told, Cause::from(packet), ledger);
        Some("neighbour advertisement")
    }

    /// Asks who has `target`, from `source` if that is an address of the interface.
    #[expect(clippy::too_many_arguments, reason = "the fields of the solicitation, and where to write it down")]
    pub(super) fn solicitation(
        &mut self,
        cx: &Context<'_, '_>,
        dev: IfIndex,
        target: Ipv6Addr,
        source: Option<Ipv6Addr>,
        known: Option<Mac>,
        cause: Cause,
        ledger: &mut Ledger,
    ) {
        let Some(link) = cx.links.get(dev) else { return };
        let own = source.filter(|source| link.has_addr(IpAddr::V6(*source)));
        let Some(source) = own.or_else(|| link.link_local()) else { return };
        let to = if known.is_some() { target } else { icmp6::solicited_node(target) };
        let mac = Some((option::SOURCE_MAC, link.mac));
        self.send_ndisc(cx, dev, (source, to), icmp6::NEIGHBOUR_SOLICITATION, 0, target, mac, known, cause, ledger);
    }

    #[expect(clippy::too_many_arguments, reason = "the fields of the message, and where to write it down")]
    fn send_ndisc(
        &mut self,
        cx: &Context<'_, '_>,
        dev: IfIndex,
        (source, to): (Ipv6Addr, Ipv6Addr),
        kind: u8,
        flags: u8,
        target: Ipv6Addr,
        mac: Option<(u8, Mac)>,
        known: Option<Mac>,
        cause: Cause,
        ledger: &mut Ledger,
    ) {
        let payload = MESSAGE + if mac.is_some() { 8 } else { 0 };
        let mut buf = self.blank(ipv6::LEN + payload);
        buf[..ipv6::LEN].copy_from_slice(ipv6::Header::new(source, to, proto::ICMP6, HOP_LIMIT, payload as u16).as_bytes());
        let message = &mut buf[ipv6::LEN..];
        message[0] = kind;
        message[4] = flags;
        message[8..24].copy_from_slice(&target.octets());
        if let Some((number, mac)) = mac {
            message[24..26].copy_from_slice(&[number, 1]);
            message[26..32].copy_from_slice(&mac.0);
        }
        super::icmp6::fill_checksum(&mut buf);
        let packet = Packet::made(Version::V6, buf, cause.time, cause.number, dev);
        match known {
            Some(mac) => {
                ledger.counters.originated += 1;
                self.emit(cx, packet, dev, mac, ledger);
            }
            None => self.originate6(cx, packet, dev, ledger),
        }
    }

    /// Tells the source of a packet that goes back where it came from of the better way (RFC 4861 §8.2, Linux `ndisc_send_redirect`).
    pub(super) fn redirect6(&mut self, cx: &Context<'_, '_>, packet: &Packet, forward: &Forward<'_>, ledger: &mut Ledger) {
        let Some(header) = ipv6::Header::read(&packet.buf) else { return };
        let (src, dst) = (header.src(), header.dst());
        let gateway = forward.dst.hop(forward.hop).and_then(|hop| hop.gateway.as_deref());
        let target = match gateway.map(|gateway| gateway.addr()) {
            Some(IpAddr::V6(gateway)) => gateway,
            _ => dst,
        };
        // Twice as in Linux: once for where the packet goes, once for whom the message is to.
        if !self.peers.allow(IpAddr::V6(dst), 1000, packet.time.0) {
            return;
        }
        let Some(source) = cx.links.get(forward.dev).and_then(|link| link.link_local()) else { return };
        if target != dst && !target.is_unicast_link_local() {
            return;
        }
        let Some(way) = self.way6(cx, (source, src), forward.dev, packet) else { return };
        if way.gateway().is_some() || !self.peers.allow(IpAddr::V6(src), 1000, packet.time.0) {
            return;
        }
        // The address that the packet goes to: a SID's nexthop where the route has no gateway.
        let next = gateway.map_or(forward.to, |gateway| gateway.addr());
        let mac = cx.tables.network.neighbours.find(cx.guard, forward.dev, next).and_then(|n| n.mac());
        let options = if mac.is_some() { 8 } else { 0 };
        let quoted = (ipv6::MIN_MTU - ipv6::LEN - REDIRECT - options).min(packet.buf.len() + 8) & !7;
        let mut buf = self.blank(ipv6::LEN + REDIRECT + options + quoted);
        let payload = (REDIRECT + options + quoted) as u16;
        buf[..ipv6::LEN].copy_from_slice(ipv6::Header::new(source, src, proto::ICMP6, HOP_LIMIT, payload).as_bytes());
        let message = &mut buf[ipv6::LEN..];
        message[0] = icmp6::REDIRECT;
        message[8..24].copy_from_slice(&target.octets());
        message[24..40].copy_from_slice(&dst.octets());
        if let Some(mac) = mac {
            message[40..42].copy_from_slice(&[option::TARGET_MAC, 1]);
            message[42..48].copy_from_slice(&mac.0);
        }
        let quote = &mut message[REDIRECT + options..];
        quote[..2].copy_from_slice(&[option::REDIRECTED, (quoted / 8) as u8]);
        let bytes = (quoted - 8).min(packet.buf.len());
        quote[8..8 + bytes].copy_from_slice(&packet.buf[..bytes]);
        // The packet is quoted as it was before its hop was taken off.
        if let Some(header) = ipv6::Header::read_mut(&mut quote[8..]) {
            header.hop_limit = header.hop_limit.wrapping_add(1);
        }
        super::icmp6::fill_checksum(&mut buf);
        ledger.step(packet, "redirect", || format!("{src} is told that {dst} is reached by {target}"));
        self.originate6(cx, Packet::made(Version::V6, buf, packet.time, packet.number, forward.dev), forward.dev, ledger);
    }
}

/// A received message, taken apart.
struct Message {
    kind: u8,
    flags: u8,
    src: Ipv6Addr,
    dst: Ipv6Addr,
    target: Ipv6Addr,
    /// The address in the option that goes with the kind.
    mac: Option<Mac>,
}

impl Message {
    /// None for messages that RFC 4861 §6.1 and §7.1 say to ignore.
    fn read(packet: &[u8], at: usize) -> Option<Message> {
        let header = ipv6::Header::read(packet)?;
        let bytes = packet.get(at..)?;
        let icmp = icmp6::Header::read(bytes)?;
        if header.hop_limit != HOP_LIMIT || icmp.code != 0 {
            return None;
        }
        let solicits_or_advertises = matches!(icmp.kind, icmp6::NEIGHBOUR_SOLICITATION | icmp6::NEIGHBOUR_ADVERTISEMENT);
        let target = match bytes.get(8..MESSAGE) {
            Some(target) if solicits_or_advertises => Ipv6Addr::from(<[u8; 16]>::try_from(target).ok()?),
            None if solicits_or_advertises => return None,
            _ => Ipv6Addr::UNSPECIFIED,
        };
        if target.is_multicast() {
            return None;
        }
        let wanted = if icmp.kind == icmp6::NEIGHBOUR_SOLICITATION { option::SOURCE_MAC } else { option::TARGET_MAC };
        let mac = if solicits_or_advertises { mac_option(bytes.get(MESSAGE..)?, wanted)? } else { None };
        Some(Message { kind: icmp.kind, flags: icmp.rest[0], src: header.src(), dst: header.dst(), target, mac })
    }
}

/// The Ethernet address in the first option `wanted`; the outer none for malformed options.
fn mac_option(mut options: &[u8], wanted: u8) -> Option<Option<Mac>> {
    let mut found = None;
    while let [number, words, ..] = *options {
        let len = usize::from(words) * 8;
        let option = options.get(..len).filter(|option| !option.is_empty())?;
        if number == wanted && found.is_none() {
            found = Some(Mac(option.get(2..).and_then(|mac| mac.try_into().ok())?));
        }
        options = options.get(len..)?;
    }
    options.is_empty().then_some(found)
}

//! ICMP errors, echo and redirects for IPv4 (RFC 792, RFC 1812 §4.3, Linux `icmp_send`).

use std::net::{IpAddr, Ipv4Addr};

use route::DropReason;
use wire::checksum::Sum;
use wire::{icmp4, ipv4, proto};

use super::Host;
use super::answer4::{Head4, carried_back};
use crate::context::Context;
use crate::options4;
use crate::packet::{Addressed, Packet, Version};
use crate::rate::{Global, Peer};
use crate::trace::Ledger;
use crate::verdict::{Forward, IcmpError};

/// An error is at most this long, IPv4 header included (RFC 1812 §4.3.2.3).
const LONGEST: usize = 576;
/// Precedence "internetwork control", which errors carry (RFC 1812 §4.3.2.5).
const PRECEDENCE: u8 = 0xc0;
/// The bits of a TOS that are not precedence.
const TOS_BITS: u8 = 0x1e;
/// The address to answer from when the router has none (RFC 7600 §5.3 and Linux).
const DUMMY: Ipv4Addr = Ipv4Addr::new(192, 0, 0, 8);

impl Host {
    /// Tells the source of `packet` what happened to it, unless RFC 1812 §4.3.2.7 or a rate limit forbids.
    pub(super) fn error4(&mut self, cx: &Context<'_, '_>, packet: &Packet, error: IcmpError, ledger: &mut Ledger) {
        let Some(header) = ipv4::Header::read(&packet.buf) else { return };
        let (to, dst, tos) = (header.src(), header.dst(), header.tos);
        if let Some(why) = forbidden(packet, error.kind) {
            return ledger.step(packet, "icmp", || format!("no ICMP error: {why}"));
        }
        let vrf = cx.vrf(packet.dev).0.0;
        if error.route && !self.peers.allow_route_error4(Peer { addr: IpAddr::V4(to), vrf }, packet.time.0) {
            ledger.counters.drop(DropReason::RateLimited);
            return ledger.step(packet, "icmp", || "no ICMP error: rate limit".into());
        }
        let own = self.is_local4(cx, dst, packet.dev);
        let Some(way) = self.way4(cx, (if own { dst } else { Ipv4Addr::UNSPECIFIED }, to), packet.dev, packet) else {
            return ledger.step(packet, "icmp", || format!("no ICMP error: no route back to {to}"));
        };
        let inbound = cx.settings.icmp4_errors_use_inbound.then(|| cx.links.source4(packet.iif, to)).flatten();
        let source = if own { Some(dst) } else { inbound.or_else(|| cx.source_by(&way.dst, way.place, to, packet.dev)) };
        if !way.is_local() && !self.allow4(cx, error, to, vrf, packet.time.0) {
            ledger.counters.drop(DropReason::RateLimited);
            return ledger.step(packet, "icmp", || "no ICMP error: rate limit".into());
        }
        let source = source.unwrap_or(DUMMY);
        let Some(options) = carried_back(cx, packet, source) else {
            return ledger.step(packet, "icmp", || "no ICMP error: an option has no room for the way back".into());
        };
        let head = Head4 { proto: proto::ICMP4, source, to, tos: tos & TOS_BITS | PRECEDENCE, options: &options };
        let room = LONGEST.min(way.mtu as usize).saturating_sub(head.len() + icmp4::LEN);
        if room <= ipv4::LEN {
            return ledger.step(packet, "icmp", || format!("no ICMP error: an MTU of {} has no room for a quote", way.mtu));
        }
        ledger.step(packet, "icmp", || format!("{} from {source} to {to}", crate::describe::error4(error.kind, error.code)));
        let quote = packet.buf.len().min(room);
        let mut message = self.packet4(cx, &head, icmp4::LEN + quote);
        let body = &mut message[head.len()..];
        body[..2].copy_from_slice(&[error.kind, error.code]);
        body[4..8].copy_from_slice(&error.info.to_be_bytes());
        body[icmp4::LEN..].copy_from_slice(&packet.buf[..quote]);
        self.finish4(cx, message, head.len(), packet, Some(cx.hash(packet)), ledger);
    }

    /// Limits over all and by destination; fragmentation needed is exempt, since path MTU discovery depends on it.
    fn allow4(&mut self, cx: &Context<'_, '_>, error: IcmpError, to: Ipv4Addr, vrf: u32, now: u64) -> bool {
        let settings = cx.settings;
        let discovery = error.kind == icmp4::UNREACHABLE && error.code == icmp4::unreachable::FRAGMENTATION_NEEDED;
        if discovery || settings.icmp4_ratemask.checked_shr(error.kind.into()).unwrap_or(0) & 1 == 0 {
            return true;
        }
        let global = self.global.get_or_insert_with(|| Global::new(settings.icmp4_msgs_per_sec, settings.icmp4_msgs_burst));
        let limit = settings.icmp4_ratelimit;
        let allowed = global.allow(now) && (limit == 0 || self.peers.allow(Peer { addr: IpAddr::V4(to), vrf }, limit, now));
        if allowed {
            global.consume();
        }
        allowed
    }

    /// Answers an echo request that stands behind the IPv4 header.
    pub(super) fn echo4(&mut self, cx: &Context<'_, '_>, packet: Packet, group: bool, ledger: &mut Ledger) {
        if cx.settings.icmp4_echo_ignore_all {
            return self.drop(packet, DropReason::IcmpIgnored, ledger);
        }
        let Some(at) = ipv4::Header::read(&packet.buf).map(ipv4::Header::header_len) else {
            return self.drop(packet, DropReason::HeaderTruncated, ledger);
        };
        let end = packet.buf.len();
        let code = packet.buf.get(at + 1).copied().unwrap_or_default();
        self.reply4(cx, packet, group, [icmp4::ECHO_REPLY, code], end, &[], ledger);
    }

    /// Answers a time stamp request that stands behind the IPv4 header: its originate time comes back with the time of receipt and of the answer.
    pub(super) fn timestamp4(&mut self, cx: &Context<'_, '_>, packet: Packet, group: bool, ledger: &mut Ledger) {
        let Some(at) = ipv4::Header::read(&packet.buf).map(ipv4::Header::header_len) else {
            return self.drop(packet, DropReason::HeaderTruncated, ledger);
        };
        let [a, b, c, d] = options4::milliseconds_of_day(packet.time).to_be_bytes();
        self.reply4(cx, packet, group, [icmp4::TIMESTAMP_REPLY, 0], at + icmp4::LEN + 4, &[a, b, c, d, a, b, c, d], ledger);
    }

    /// Answers a request with a message of this type and code: the request's bytes up to `end` behind type and checksum, then `tail`.
    #[expect(clippy::too_many_arguments, reason = "the parts of the message, and where to write it down")]
    fn reply4(&mut self, cx: &Context<'_, '_>, packet: Packet, group: bool, kind: [u8; 2], end: usize, tail: &[u8], ledger: &mut Ledger) {
        let Some(header) = ipv4::Header::read(&packet.buf) else { return self.drop(packet, DropReason::HeaderTruncated, ledger) };
        let (to, dst, tos, at) = (header.src(), header.dst(), header.tos, header.header_len());
        if group && cx.settings.icmp4_echo_ignore_broadcasts || to.is_unspecified() {
            return self.drop(packet, DropReason::IcmpIgnored, ledger);
        }
        let source = if group { cx.answers_from(to, packet.dev) } else { Some(dst) };
        let (Some(source), Some(request)) = (source, packet.buf.get(at..end)) else {
            return self.drop(packet, DropReason::NoSourceAddress, ledger);
        };
        let Some(options) = carried_back(cx, &packet, source) else { return self.drop(packet, DropReason::BadOption, ledger) };
        let head = Head4 { proto: proto::ICMP4, source, to, tos, options: &options };
        let mut reply = self.packet4(cx, &head, request.len() + tail.len());
        let message = &mut reply[head.len()..];
        message[..request.len()].copy_from_slice(request);
        message[request.len()..].copy_from_slice(tail);
        message[..2].copy_from_slice(&kind);
        message[2..4].fill(0);
        self.finish4(cx, reply, head.len(), &packet, None, ledger);
        self.delivered(packet, || format!("request answered by {source}, to {to}"), ledger);
    }

    /// Tells the source of a packet that goes back where it came from of the better gateway (RFC 1812 §5.2.7.2), or in IPv6 as RFC 4861 §8 says.
    pub(super) fn redirect(&mut self, cx: &Context<'_, '_>, packet: &Packet, forward: &Forward<'_>, ledger: &mut Ledger) {
        if packet.version == Version::V6 {
            return self.redirect6(cx, packet, forward, ledger);
        }
        let Some(header) = ipv4::Header::read(&packet.buf) else { return };
        let gateway = forward.dst.hop(forward.hop).and_then(|hop| hop.gateway.as_deref());
        let gateway = match gateway.map(|gateway| gateway.addr()) {
            Some(IpAddr::V4(gateway)) => gateway,
            Some(IpAddr::V6(_)) => return,
            None => header.dst(),
        };
        let peer = Peer { addr: IpAddr::V4(header.src()), vrf: cx.vrf(packet.dev).0.0 };
        if self.peers.allow_redirect4(peer, packet.time.0) {
            self.error4(cx, packet, IcmpError::new(icmp4::REDIRECT, 1, gateway.into()), ledger);
        }
    }

    /// Sends an ICMP message about `packet` that is complete but for checksums and identification; `hash` as in [`Packet`].
    fn finish4(
        &mut self,
        cx: &Context<'_, '_>,
        mut message: port::Buf,
        at: usize,
        packet: &Packet,
        hash: Option<u32>,
        ledger: &mut Ledger,
    ) {
        let body = &mut message[at..];
        let sum = Sum::default().bytes(body).finish();
        body[2..4].copy_from_slice(&sum.to_be_bytes());
        let near = packet.dev;
        let message = Packet { hash, ..Packet::made(Version::V4, message, packet.time, packet.number, near) };
        self.originate4(cx, message, near, ledger);
    }
}

/// Why no error of type `kind` may be sent about `packet`.
fn forbidden(packet: &Packet, kind: u8) -> Option<&'static str> {
    let header = ipv4::Header::read(&packet.buf)?;
    if packet.addressed != Addressed::Host || header.dst().is_multicast() || header.dst().is_broadcast() {
        return Some("the packet was sent to a group");
    }
    if header.flags_offset() & ipv4::OFFSET != 0 {
        return Some("the packet is not a first fragment");
    }
    if header.src().is_unspecified() || header.src().is_loopback() || header.src().is_multicast() || header.src().is_broadcast() {
        return Some("the source is no single node");
    }
    if icmp4::is_error(kind) && header.proto == proto::ICMP4 {
        let inner = packet.buf.get(header.header_len()).copied();
        if inner.is_none_or(|inner| inner > icmp4::MAX_TYPE || counts_as_error(inner)) {
            return Some("the packet is an ICMP error itself");
        }
    }
    None
}

/// What Linux sends no errors about: besides the errors of RFC 792, router discovery and what was never assigned.
fn counts_as_error(kind: u8) -> bool {
    matches!(kind, 1..=7 | 9..=12)
}

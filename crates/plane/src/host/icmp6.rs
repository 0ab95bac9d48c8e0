//! ICMPv6 errors and echo (RFC 4443, Linux `icmp6_send`).

use std::net::{IpAddr, Ipv6Addr};

use route::{DropReason, DstRef, IfIndex, Kind};
use wire::checksum::Sum;
use wire::ext::{self, Target};
use wire::{icmp6, ipv6, proto};
use zerocopy::IntoBytes;

use super::Host;
use super::originate::{HOP_LIMIT_OF_WAY, Way};
use crate::context::Context;
use crate::flow_hash;
use crate::packet::{Addressed, Packet, Version};
use crate::trace::Ledger;
use crate::verdict::IcmpError;

/// Bytes of the packet that an error quotes: as many as fit the smallest MTU (RFC 4443 §2.4 (c)).
const QUOTE: usize = ipv6::MIN_MTU - ipv6::LEN - icmp6::LEN;

/// The packet that a message is about, the interface it is sent near, and the hash as in [`Packet`].
struct Cause<'p> {
    packet: &'p Packet,
    near: IfIndex,
    hash: Option<u32>,
}

impl Host {
    /// Tells the source of `packet` what happened to it, unless a rule of RFC 4443 §2.4 or a rate limit forbids.
    pub(super) fn error6(&mut self, cx: &Context<'_, '_>, packet: &Packet, error: IcmpError, ledger: &mut Ledger) {
        let Some(header) = ipv6::Header::read(&packet.buf) else { return };
        let (to, dst) = (header.src(), header.dst());
        if let Some(why) = forbidden(packet, error, to, dst) {
            return ledger.step(packet, "icmp", || format!("no ICMPv6 error: {why}"));
        }
        let near = if to.is_unicast_link_local() { packet.iif } else { packet.dev };
        let Some(way) = self.way6(cx, (Ipv6Addr::UNSPECIFIED, to), near, packet) else {
            return ledger.step(packet, "icmp", || format!("no ICMPv6 error: no route back to {to}"));
        };
        // As in Linux the limit comes before the source is chosen: under a flood that work is not done.
        if !way.is_local() && !self.allow6(cx, error.kind, to, packet) {
            ledger.counters.drop(DropReason::RateLimited);
            return ledger.step(packet, "icmp", || "no ICMPv6 error: rate limit".into());
        }
        // Linux looks for an anycast address in all VRFs (`ipv6_chk_acast_addr_src`).
        let own = !dst.is_multicast() && (cx.is_own6(dst, packet.dev) || cx.links.is_anycast6(dst));
        let source = if own { Some(dst) } else { preferred(&way).or_else(|| cx.links.source6(packet.iif, to)) };
        let Some(source) = source.or_else(|| cx.links.source6(way.dev, to)) else {
            return ledger.step(packet, "icmp", || "no ICMPv6 error: no address to send it from".into());
        };
        ledger.step(packet, "icmp", || format!("{} from {source} to {to}", crate::describe::error6(error.kind, error.code)));
        let quote = packet.buf.len().min(QUOTE);
        let mut message = icmp6_packet(self, source, to, quote);
        message[ipv6::LEN..ipv6::LEN + 2].copy_from_slice(&[error.kind, error.code]);
        message[ipv6::LEN + 4..ipv6::LEN + 8].copy_from_slice(&error.info.to_be_bytes());
        message[ipv6::LEN + icmp6::LEN..].copy_from_slice(&packet.buf[..quote]);
        let hash = Some(cx.hash(packet));
        self.finish6(cx, message, 0, Cause { packet, near, hash }, ledger);
    }

    /// Limits by destination (net.ipv6.icmp.ratelimit); packet too big is exempt, since path MTU discovery depends on it.
    fn allow6(&mut self, cx: &Context<'_, '_>, kind: u8, to: Ipv6Addr, packet: &Packet) -> bool {
        kind == icmp6::TOO_BIG || self.peers.allow(IpAddr::V6(to), cx.settings.icmp6_ratelimit, packet.time.0)
    }

    /// Answers an echo request that stands at `at`; `dst` is the local route that led here.
    pub(super) fn echo6(&mut self, cx: &Context<'_, '_>, mut packet: Packet, at: usize, dst: &DstRef<'_>, ledger: &mut Ledger) {
        let Some(header) = ipv6::Header::read(&packet.buf) else { return self.drop(packet, DropReason::HeaderTruncated, ledger) };
        let (to, addressed, class) = (header.src(), header.dst(), header.traffic_class());
        let code = packet.buf.get(at + 1).copied().unwrap_or_default();
        if cx.settings.icmp6_echo_ignore_all || to.is_multicast() || to.is_unspecified() {
            return self.drop(packet, DropReason::IcmpIgnored, ledger);
        }
        // On a VRF device the packet counts as received by the interface that has the address (Linux `icmp6_iif`).
        let near = if cx.links.get(packet.dev).is_some_and(|link| link.is_vrf()) { dst.dev() } else { packet.dev };
        let source = if addressed.is_multicast() || dst.kind == Kind::Anycast {
            // Where Linux has to choose a source it asks for a way back on the very interface, and takes that.
            packet.bound = true;
            let way = self.way6(cx, (Ipv6Addr::UNSPECIFIED, to), near, &packet);
            way.and_then(|way| preferred(&way).or_else(|| cx.links.source6(near, to)))
        } else {
            Some(addressed)
        };
        let (Some(source), Some(body)) = (source, packet.buf.get(at + icmp6::LEN..)) else {
            return self.drop(packet, DropReason::NoSourceAddress, ledger);
        };
        let mut reply = icmp6_packet(self, source, to, body.len());
        reply[ipv6::LEN..ipv6::LEN + 2].copy_from_slice(&[icmp6::ECHO_REPLY, code]);
        reply[ipv6::LEN + 4..].copy_from_slice(&packet.buf[at + 4..]);
        self.finish6(cx, reply, class, Cause { packet: &packet, near, hash: None }, ledger);
        self.delivered(packet, || format!("echo request answered to {to}"), ledger);
    }

    fn finish6(&mut self, cx: &Context<'_, '_>, mut message: port::Buf, class: u8, cause: Cause<'_>, ledger: &mut Ledger) {
        let Cause { packet, near, hash } = cause;
        let label = flow_hash::label(&message);
        if let Some(header) = ipv6::Header::read_mut(&mut message) {
            header.set_flow(class, label);
        }
        fill_checksum(&mut message);
        let message = Packet { hash, bound: packet.bound, ..Packet::made(Version::V6, message, packet.time, packet.number, near) };
        self.originate6(cx, message, near, ledger);
    }
}

/// The source that the route asks for.
fn preferred(way: &Way<'_>) -> Option<Ipv6Addr> {
    match way.dst.src {
        Some(IpAddr::V6(src)) => Some(src),
        _ => None,
    }
}

/// An ICMPv6 packet with a body of `len` zero bytes.
fn icmp6_packet(host: &mut Host, source: Ipv6Addr, to: Ipv6Addr, len: usize) -> port::Buf {
    let mut buf = host.blank(ipv6::LEN + icmp6::LEN + len);
    let header = ipv6::Header::new(source, to, proto::ICMP6, HOP_LIMIT_OF_WAY, (icmp6::LEN + len) as u16);
    buf[..ipv6::LEN].copy_from_slice(header.as_bytes());
    buf
}

/// Sets the checksum of the ICMPv6 message right behind the IPv6 header.
pub(super) fn fill_checksum(packet: &mut [u8]) {
    let Some((header, message)) = packet.split_at_mut_checked(ipv6::LEN) else { return };
    let Some(header) = ipv6::Header::read(header) else { return };
    let Some(field) = message.get_mut(2..4) else { return };
    field.fill(0);
    let sum = Sum::pseudo6(header.src(), header.dst(), proto::ICMP6, message.len()).bytes(message).finish();
    message[2..4].copy_from_slice(&sum.to_be_bytes());
}

/// Why no error may be sent about `packet` (RFC 4443 §2.4 (e)).
fn forbidden(packet: &Packet, error: IcmpError, src: Ipv6Addr, dst: Ipv6Addr) -> Option<&'static str> {
    let option = error.kind == icmp6::PARAMETER_PROBLEM && error.code == icmp6::parameter::OPTION;
    let reported =
        error.kind == icmp6::TOO_BIG || option && packet.buf.get(error.info as usize).is_some_and(|option| option & 0xc0 == 0x80);
    if (dst.is_multicast() || packet.addressed != Addressed::Host) && !reported {
        return Some("the packet was sent to a group");
    }
    if src.is_unspecified() || src.is_multicast() || src.is_loopback() {
        return Some("the source is no single node");
    }
    if is_about_error(&packet.buf) {
        return Some("the packet is an ICMPv6 error itself");
    }
    None
}

fn is_about_error(packet: &[u8]) -> bool {
    match ext::find(packet, Target::Upper) {
        Ok(upper) if upper.proto == proto::ICMP6 && upper.fragment_offset == 0 => match packet.get(upper.offset) {
            Some(&kind) => icmp6::is_error(kind),
            // A first fragment without it says nothing; any other packet might have been one.
            None => ext::find(packet, Target::Proto(proto::FRAGMENT)).is_err(),
        },
        _ => false,
    }
}

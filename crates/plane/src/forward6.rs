//! Forwarding of IPv6 (RFC 8200, Linux `ip6_forward`): may the packet go on, and how.

use std::net::{IpAddr, Ipv6Addr};

use route::{DropReason, DstRef};
use srv6::Lookup6;
use wire::{icmp6, ipv6};

use crate::context::Context;
use crate::packet::{Addressed, Packet};
use crate::verdict::{Forward, IcmpError, Verdict};

/// Decides on a packet whose route is `dst`; `nexthop` is a SID's, to be used when the route has no gateway. Takes the hop off.
pub(crate) fn decide<'g>(cx: &Context<'_, 'g>, packet: &mut Packet, dst: DstRef<'g>, place: u16, nexthop: Option<Ipv6Addr>) -> Verdict<'g> {
    if !cx.settings.all6.forwarding {
        return Verdict::Drop(DropReason::ForwardingOff);
    }
    if packet.addressed != Addressed::Host {
        return Verdict::Drop(DropReason::NotUnicastFrame);
    }
    let Some(hop) = dst.hop(place) else { return Verdict::Drop(DropReason::RouteBlackhole) };
    let dev = hop.dev;
    let Some(out) = cx.links.get(dev).filter(|link| link.up) else { return Verdict::Drop(DropReason::LinkDown) };
    let passed_on = packet.passed_on;
    let len = packet.buf.len();
    let Some(header) = ipv6::Header::read_mut(&mut packet.buf) else { return Verdict::Drop(DropReason::HeaderTruncated) };
    if header.hop_limit <= 1 && !passed_on {
        return Verdict::Error(IcmpError::new(icmp6::TIME_EXCEEDED, icmp6::time_exceeded::HOP_LIMIT, 0), DropReason::HopLimit);
    }
    let redirect = packet.iif == dev && !packet.source_routed && !passed_on;
    if !redirect && !passed_on {
        let src = header.src();
        if src.is_unspecified() || src.is_multicast() || src.is_loopback() {
            return Verdict::Drop(DropReason::MartianSource);
        }
        if src.is_unicast_link_local() {
            return Verdict::Error(IcmpError::new(icmp6::UNREACHABLE, icmp6::unreachable::BEYOND_SCOPE, 0), DropReason::BeyondScope);
        }
    }
    let too_big = |mtu| Verdict::Error(IcmpError::new(icmp6::TOO_BIG, 0, mtu), DropReason::TooBig);
    let mtu = out.mtu.max(ipv6::MIN_MTU as u32);
    if len > mtu as usize {
        return too_big(mtu);
    }
    header.hop_limit -= u8::from(!passed_on);
    // The route's own MTU is looked at on the way out, as in Linux: the error quotes the packet with its hop taken off. It may be less than 1280.
    let mtu = if dst.mtu != 0 { dst.mtu } else { mtu };
    if len > mtu as usize {
        return too_big(mtu);
    }
    if out.is_vrf() {
        packet.pass_on(out);
        return Verdict::Route6(Lookup6 { local: true, ..Lookup6::default() });
    }
    let to = IpAddr::V6(nexthop.unwrap_or(header.dst()));
    Verdict::Forward(Forward { dst, dev, to, hop: place, mtu, redirect })
}

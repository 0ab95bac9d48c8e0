//! Forwarding of IPv4 (RFC 1812 §5.2.7, Linux `ip_forward`): may the packet go on, and how.

use std::net::{IpAddr, Ipv4Addr};

use route::{DropReason, DstRef, IfIndex};
use srv6::Lookup4;
use wire::{icmp4, ipv4};

use crate::context::Context;
use crate::options4::{self, Here};
use crate::packet::{Addressed, Packet};
use crate::verdict::{Forward, IcmpError, Verdict};

/// Checks and fills in the options of a packet that has any, once its route is known; `local`: it is for one of the router's own addresses.
///
/// # Errors
/// The verdict for a packet that its options stop.
pub(crate) fn options<'g>(cx: &Context<'_, 'g>, packet: &mut Packet, local: bool) -> Result<(), Verdict<'g>> {
    let Some(header) = ipv4::Header::read(&packet.buf) else { return Err(Verdict::Drop(DropReason::HeaderTruncated)) };
    if header.header_len() <= ipv4::LEN || packet.options.is_some() {
        return Ok(());
    }
    let (src, dst) = (header.src(), header.dst());
    let near = packet.dev;
    let here = Here {
        address: &|| if local { dst } else { cx.answers_from(src, near).unwrap_or(Ipv4Addr::UNSPECIFIED) },
        is_elsewhere: &|addr| !cx.is_here(addr),
        milliseconds: options4::milliseconds_of_day(packet.time),
    };
    let options = match options4::compile(&mut packet.buf, &here) {
        Ok(options) => options,
        Err(bad) => {
            packet.options = Some(bad.before);
            let info = u32::from(bad.pointer) << 24;
            return Err(Verdict::Error(IcmpError::new(icmp4::PARAMETER_PROBLEM, 0, info), DropReason::BadOption));
        }
    };
    if options.source_route.is_some() {
        let accepted = cx.settings.all4.accept_source_route && cx.links.get(packet.iif).is_some_and(|link| link.conf4.accept_source_route);
        return Err(Verdict::Drop(if accepted { DropReason::Unsupported } else { DropReason::SourceRouted }));
    }
    packet.options = Some(options);
    Ok(())
}

/// Fills the options in for the way out, after a redirect has quoted them as they came.
pub(crate) fn leave(cx: &Context<'_, '_>, packet: &mut Packet, forward: &Forward<'_>) {
    let Some(options) = &mut packet.options else { return };
    let Some(dst) = ipv4::Header::read(&packet.buf).map(ipv4::Header::dst) else { return };
    let out = || cx.source_by(&forward.dst, forward.hop, dst, IfIndex(0)).unwrap_or(Ipv4Addr::UNSPECIFIED);
    options4::forward(&mut packet.buf, options, out);
}

/// The priority of a forwarded packet, by the four bits of the old type of service (RFC 1349, Linux `rt_tos2priority`).
fn priority(tos: u8) -> u32 {
    const BULK: u32 = 2;
    const INTERACTIVE_BULK: u32 = 4;
    const INTERACTIVE: u32 = 6;
    [0, BULK, INTERACTIVE, INTERACTIVE_BULK][usize::from(tos >> 3 & 3)]
}

/// Decides on a packet whose route is `dst`; `nexthop` is a SID's, to be used when the route has no gateway; `on_link` says that the source is a
/// neighbour. Takes the hop off.
pub(crate) fn decide<'g>(
    cx: &Context<'_, 'g>,
    packet: &mut Packet,
    dst: DstRef<'g>,
    place: u16,
    nexthop: Option<Ipv4Addr>,
    on_link: bool,
) -> Verdict<'g> {
    if packet.addressed != Addressed::Host {
        return Verdict::Drop(DropReason::NotUnicastFrame);
    }
    let passed_on = packet.passed_on;
    let Some(hop) = dst.hop(place) else { return Verdict::Drop(DropReason::RouteBlackhole) };
    let (dev, gateway) = (hop.dev, hop.gateway.is_some());
    let Some(out) = cx.links.get(dev).filter(|link| link.up) else { return Verdict::Drop(DropReason::LinkDown) };
    let len = packet.buf.len();
    let Some(header) = ipv4::Header::read_mut(&mut packet.buf) else { return Verdict::Drop(DropReason::HeaderTruncated) };
    if header.ttl <= 1 && !passed_on {
        return Verdict::Error(IcmpError::new(icmp4::TIME_EXCEEDED, 0, 0), DropReason::HopLimit);
    }
    let mtu = if dst.mtu != 0 { dst.mtu } else { out.mtu }.min(65535);
    if len > mtu as usize && header.flags_offset() & ipv4::DF != 0 {
        let error = IcmpError::new(icmp4::UNREACHABLE, icmp4::unreachable::FRAGMENTATION_NEEDED, mtu);
        return Verdict::Error(error, DropReason::TooBig);
    }
    if !passed_on {
        header.decrement_ttl();
        packet.priority = priority(header.tos);
    }
    if out.is_vrf() {
        packet.pass_on(out);
        return Verdict::Route4(Lookup4::default());
    }
    let to = IpAddr::V4(nexthop.unwrap_or(header.dst()));
    let sends = cx.settings.all4.send_redirects || out.conf4.send_redirects;
    let redirect = !passed_on && packet.dev == dev && on_link && sends && (gateway || nexthop.is_none());
    Verdict::Forward(Forward { dst, dev, to, hop: place, mtu, redirect })
}

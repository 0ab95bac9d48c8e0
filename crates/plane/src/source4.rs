//! Is the source address of an IPv4 packet believable (Linux `fib_validate_source`, RFC 3704)?

use std::net::Ipv4Addr;

use route::{DropReason, IfIndex, Kind, RouteRefs};

use crate::context::Context;
use crate::packet::Packet;

/// True when no filter asks for more of the source of a packet that came in by `iif` and leaves by another interface than not to be one of the
/// router's own addresses.
pub(crate) fn is_unfiltered(cx: &Context<'_, '_>, iif: IfIndex) -> bool {
    cx.links.get(iif).is_some_and(|ingress| ingress.conf4.rp_filter.max(cx.settings.all4.rp_filter) == 0)
}

/// Checks `src` of a packet that will leave by `out` (none: it is for the router). True when the source is a neighbour on the ingress link.
///
/// # Errors
/// The reason to drop the packet.
pub(crate) fn check(cx: &Context<'_, '_>, packet: &Packet, src: Ipv4Addr, out: Option<IfIndex>) -> Result<bool, DropReason> {
    let Some(ingress) = cx.links.get(packet.iif) else { return Err(DropReason::PortDown) };
    let filter = ingress.conf4.rp_filter.max(cx.settings.all4.rp_filter);
    let turns_back = out == Some(packet.iif) && (ingress.conf4.send_redirects || cx.settings.all4.send_redirects);
    if filter == 0 && !turns_back {
        let own = !ingress.conf4.accept_local && cx.links.is_own4(src);
        return if own { Err(DropReason::OwnSource) } else { Ok(false) };
    }
    if src.is_unspecified() {
        return Ok(false);
    }
    let back = cx.tables.network.v4.lookup(cx.guard, &cx.flow(src, src, packet.dev, packet.iif), RouteRefs::Noref);
    match back.dst.kind {
        Kind::Unicast => {}
        Kind::Local if ingress.conf4.accept_local => {}
        Kind::Local => return Err(DropReason::OwnSource),
        Kind::NoRoute if filter == 0 => return Ok(false),
        Kind::NoRoute => return Err(DropReason::ReversePath),
        _ => return Err(DropReason::MartianSource),
    }
    let hop = back.dst.hops().find(|hop| hop.dev == packet.iif);
    match hop {
        Some(hop) => Ok(hop.gateway.is_none()),
        None if filter == 1 => Err(DropReason::ReversePath),
        None => Ok(false),
    }
}

//! Input of an IPv6 packet: what is checked before a route is asked for (RFC 8200, Linux `ip6_rcv`).

use route::{DropReason, Flow, Link, Upper};
use srv6::Lookup6;
use wire::{icmp6, ipv6, proto};

use crate::context::Context;
use crate::hop_by_hop::{self, Refused};
use crate::packet::{Addressed, Packet, Version};
use crate::trace::Ledger;
use crate::upper;
use crate::verdict::{IcmpError, Verdict};

/// Checks the packet, cuts off what is beyond its length, and asks for a route.
pub(crate) fn input<'g>(cx: &Context<'_, 'g>, link: &Link, packet: &mut Packet, ledger: &mut Ledger) -> Verdict<'g> {
    if packet.addressed == Addressed::Other {
        return Verdict::Drop(DropReason::OtherHost);
    }
    if !link.has_ipv6() {
        return Verdict::Drop(DropReason::Ip6Disabled);
    }
    if let Err(reason) = check(packet) {
        return Verdict::Drop(reason);
    }
    packet.version = Version::V6;
    let marks = cx.tables.network.v6.marks.load(cx.guard);
    if let (false, Some(header)) = (marks.is_empty(), ipv6::Header::read(&packet.buf)) {
        let upper = if marks.asks_upper() { upper::of6(&packet.buf) } else { Upper::default() };
        let flow = cx.flow(header.dst(), header.src(), packet.iif, packet.iif);
        packet.mark = marks.mark(&Flow { dsfield: header.traffic_class(), upper, ..flow });
    }
    enter_vrf(cx, packet);
    if packet.buf[6] == proto::HOP_BY_HOP {
        match hop_by_hop::hop_by_hop(&packet.buf) {
            Ok(passed) => {
                if let Some(jumbo) = passed.jumbo {
                    packet.buf.truncate(ipv6::LEN + jumbo);
                }
                ledger.step(packet, "options", || "hop-by-hop options allow it to pass".into());
            }
            Err(Refused::Silent) => return Verdict::Drop(DropReason::BadHopByHop),
            Err(Refused::Problem { code, pointer }) => {
                return Verdict::Error(IcmpError::new(icmp6::PARAMETER_PROBLEM, code, pointer), DropReason::BadHopByHop);
            }
        }
    }
    Verdict::Route6(Lookup6 { local: true, ..Lookup6::default() })
}

fn check(packet: &mut Packet) -> Result<(), DropReason> {
    let header = ipv6::Header::read(&packet.buf).ok_or(DropReason::HeaderTruncated)?;
    if header.version() != 6 {
        return Err(DropReason::BadVersion);
    }
    let (src, dst) = (header.src(), header.dst());
    if src.is_loopback() || src.is_multicast() {
        return Err(DropReason::MartianSource);
    }
    // A group of reserved or interface-local scope does not come from a wire (RFC 4291 §2.7).
    let confined = dst.is_multicast() && dst.octets()[1] & 15 <= 1;
    if dst.is_loopback() || confined {
        return Err(DropReason::MartianDestination);
    }
    let payload = header.payload_len();
    if payload != 0 || header.next_header != proto::HOP_BY_HOP {
        if ipv6::LEN + payload > packet.buf.len() {
            return Err(DropReason::LengthMismatch);
        }
        packet.buf.truncate(ipv6::LEN + payload);
    }
    Ok(())
}

/// A packet that comes in on a member of a VRF is on the VRF device from here on, unless it concerns the link itself (Linux `vrf_ip6_rcv`).
fn enter_vrf(cx: &Context<'_, '_>, packet: &mut Packet) {
    use route::Address;
    let Some(vrf) = cx.links.vrf_of(packet.iif) else { return };
    packet.in_vrf = true;
    if ipv6::Header::read(&packet.buf).is_some_and(|header| !header.dst().is_link_scoped()) {
        packet.move_to(vrf);
    }
}

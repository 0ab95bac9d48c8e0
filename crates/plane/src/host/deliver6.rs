//! IPv6 packets for the router itself: extension headers, then the upper layer (RFC 8200 §4, Linux `ip6_protocol_deliver_rcu`).

use std::net::Ipv6Addr;

use route::{DropReason, DstRef, Kind};
use srv6::{Inner, LocalError, LocalSrh, Lookup4, Lookup6, local_address_srh};
use wire::checksum::Sum;
use wire::{icmp6, ipv6, proto, srh, udp};

use super::Host;
use crate::context::Context;
use crate::decide;
use crate::hop_by_hop::{self, Refused};
use crate::packet::{Addressed, Packet, Version};
use crate::reassembly::{Arrival, Fate, FragmentHeader, Outcome};
use crate::seg6;
use crate::trace::Ledger;
use crate::verdict::{IcmpError, Verdict};

/// Routing type of the source route for RPL (RFC 6554), which Linux drops in silence unless told to follow it.
const RPL: u8 = 3;

/// Where delivery stands in a packet's headers.
struct Cursor {
    /// Protocol of the header at hand.
    proto: u8,
    /// Its offset.
    at: usize,
    /// Offset of the byte that named it.
    named_at: usize,
    /// A fragment header was passed.
    fragmented: bool,
}

impl Host {
    /// Delivers a packet that a local route led here.
    pub(super) fn deliver6(&mut self, cx: &Context<'_, '_>, mut packet: Packet, dst: DstRef<'_>, ledger: &mut Ledger) {
        let Some(header) = ipv6::Header::read(&packet.buf) else { return self.drop(packet, DropReason::HeaderTruncated, ledger) };
        if header.dst().is_multicast() && !cx.is_member(header.dst(), packet.iif) {
            return self.drop(packet, DropReason::NotForUs, ledger);
        }
        let mut cursor = Cursor { proto: header.next_header, at: ipv6::LEN, named_at: 6, fragmented: false };
        loop {
            let step = match cursor.proto {
                proto::HOP_BY_HOP if cursor.at == ipv6::LEN && !cursor.fragmented => self.skip(&packet, &mut cursor),
                proto::DEST_OPTS => self.dest_opts(&packet, &mut cursor),
                proto::ROUTING => match self.routing(cx, packet, &mut cursor, ledger) {
                    Some(back) => {
                        packet = back;
                        Ok(())
                    }
                    None => return,
                },
                proto::FRAGMENT => match self.fragment(cx, packet, &mut cursor, ledger) {
                    Some(back) => {
                        packet = back;
                        Ok(())
                    }
                    None => return,
                },
                // RFC 6980 §5: neighbour discovery never comes in fragments.
                proto::ICMP6 if cursor.fragmented && is_ndisc(&packet.buf, cursor.at) => {
                    return self.drop(packet, DropReason::BadNeighbourDiscovery, ledger);
                }
                proto::ICMP6 => return self.icmp6(cx, packet, cursor.at, &dst, ledger),
                proto::UDP | proto::UDP_LITE => return self.udp6(cx, packet, cursor.proto, cursor.at, ledger),
                proto::TCP => return self.tcp6(cx, packet, cursor.at, &dst, ledger),
                proto::NONE | proto::PIM => return self.drop(packet, DropReason::NoProtocol, ledger),
                _ => {
                    let error = IcmpError::new(icmp6::PARAMETER_PROBLEM, icmp6::parameter::NEXT_HEADER, cursor.named_at as u32);
                    return self.perform(cx, packet, Verdict::Error(error, DropReason::NoProtocol), ledger);
                }
            };
            if let Err(refused) = step {
                return self.perform(cx, packet, refused, ledger);
            }
        }
    }

    /// Passes the hop-by-hop header, whose options were looked at on input.
    fn skip(&mut self, packet: &Packet, cursor: &mut Cursor) -> Result<(), Verdict<'static>> {
        let (Some(&next), Some(&len)) = (packet.buf.get(cursor.at), packet.buf.get(cursor.at + 1)) else {
            return Err(Verdict::Drop(DropReason::BadExtensionHeader));
        };
        cursor.pass(next, (usize::from(len) + 1) * 8);
        Ok(())
    }

    fn dest_opts(&mut self, packet: &Packet, cursor: &mut Cursor) -> Result<(), Verdict<'static>> {
        match hop_by_hop::destination(&packet.buf, cursor.at) {
            Ok(passed) => {
                let next = packet.buf.get(cursor.at).copied().unwrap_or(proto::NONE);
                cursor.pass(next, passed.len);
                Ok(())
            }
            Err(Refused::Silent) => Err(Verdict::Drop(DropReason::BadExtensionHeader)),
            Err(Refused::Problem { code, pointer }) => {
                Err(Verdict::Error(IcmpError::new(icmp6::PARAMETER_PROBLEM, code, pointer), DropReason::BadExtensionHeader))
            }
        }
    }

    /// A routing header at a local address: an SRH acts as End if `seg6_enabled` allows; others must have no segments left. Gives the packet back when
    /// delivery goes on.
    fn routing(&mut self, cx: &Context<'_, '_>, mut packet: Packet, cursor: &mut Cursor, ledger: &mut Ledger) -> Option<Packet> {
        let header = packet.buf.get(cursor.at..).and_then(srh::Header::read).copied();
        let Some(header) = header.filter(|header| cursor.at + header.len() <= packet.buf.len()) else {
            self.drop(packet, DropReason::BadExtensionHeader, ledger);
            return None;
        };
        let group = ipv6::Header::read(&packet.buf).is_some_and(|ip| ip.dst().is_multicast());
        if group || packet.addressed != Addressed::Host {
            self.drop(packet, DropReason::NotUnicastFrame, ledger);
            return None;
        }
        if header.routing_type == srh::TYPE {
            return self.segment_routing(cx, packet, header, cursor, ledger);
        }
        if header.segments_left == 0 && header.routing_type != RPL {
            cursor.pass(header.next_header, header.len());
            packet.source_routed = true;
            return Some(packet);
        }
        let verdict = if header.routing_type == RPL {
            Verdict::Drop(DropReason::BadExtensionHeader)
        } else {
            let pointer = cursor.at as u32 + 2;
            Verdict::Error(IcmpError::new(icmp6::PARAMETER_PROBLEM, icmp6::parameter::FIELD, pointer), DropReason::BadExtensionHeader)
        };
        self.perform(cx, packet, verdict, ledger);
        None
    }

    fn segment_routing(
        &mut self,
        cx: &Context<'_, '_>,
        mut packet: Packet,
        header: srh::Header,
        cursor: &mut Cursor,
        ledger: &mut Ledger,
    ) -> Option<Packet> {
        let enabled = cx.settings.all6.seg6_enabled && cx.links.get(packet.iif).is_some_and(|link| link.conf6.seg6_enabled);
        if !enabled {
            self.drop(packet, DropReason::Seg6Disabled, ledger);
            return None;
        }
        let env = seg6::env(cx, &packet, Ipv6Addr::UNSPECIFIED);
        let done = local_address_srh(&mut packet.buf, cursor.at, &env);
        ledger.step(&packet, "seg6", || {
            format!("local address as End: {} segments left, now {}", header.segments_left, crate::describe::ip6(&packet.buf))
        });
        let verdict = match done {
            Ok(LocalSrh::Deliver) => {
                cursor.pass(header.next_header, header.len());
                packet.source_routed = true;
                return Some(packet);
            }
            Ok(LocalSrh::Received(inner)) => {
                packet.l2_len = 0;
                match inner {
                    Inner::V4 => {
                        packet.version = Version::V4;
                        Verdict::Route4(Lookup4::default())
                    }
                    Inner::V6 => Verdict::Route6(Lookup6 { local: true, ..Lookup6::default() }),
                }
            }
            Ok(LocalSrh::Route6) => self.next_segment(cx, &mut packet, ledger),
            Err(LocalError::Drop(reason)) => Verdict::Drop(reason),
            Err(LocalError::ParameterProblem { pointer }) => {
                Verdict::Error(IcmpError::new(icmp6::PARAMETER_PROBLEM, icmp6::parameter::FIELD, pointer as u32), DropReason::BadSrh)
            }
        };
        self.perform(cx, packet, verdict, ledger);
        None
    }

    /// The next segment may be local again: that costs a hop, so that a chain of them ends.
    fn next_segment<'g>(&mut self, cx: &Context<'_, 'g>, packet: &mut Packet, ledger: &mut Ledger) -> Verdict<'g> {
        let verdict = decide::settle(cx, packet, Verdict::Route6(Lookup6 { local: true, ..Lookup6::default() }), ledger);
        if !matches!(&verdict, Verdict::Deliver6(dst) if matches!(dst.kind, Kind::Local | Kind::Anycast)) {
            return verdict;
        }
        match ipv6::Header::read_mut(&mut packet.buf) {
            Some(header) if header.hop_limit > 1 => {
                header.hop_limit -= 1;
                verdict
            }
            _ => Verdict::Error(IcmpError::new(icmp6::TIME_EXCEEDED, icmp6::time_exceeded::HOP_LIMIT, 0), DropReason::HopLimit),
        }
    }

    /// A fragment: goes on when it is whole or completes its datagram.
    fn fragment(&mut self, cx: &Context<'_, '_>, mut packet: Packet, cursor: &mut Cursor, ledger: &mut Ledger) -> Option<Packet> {
        let place = FragmentHeader { at: cursor.at, named_at: cursor.named_at, repeated: cursor.fragmented };
        let arrival = Arrival { vrf: cx.vrf(packet.dev).0.0, iif: packet.iif.0, number: packet.number, now: packet.time.0, options: None };
        let Outcome { fate, lost, lost_reason } = self.fragments6.input(&packet.buf, place, arrival, &mut self.pool);
        self.fragments_lost(lost, lost_reason, ledger);
        cursor.fragmented = true;
        let verdict = match fate {
            Fate::Whole => {
                let next = packet.buf.get(cursor.at).copied().unwrap_or(proto::NONE);
                cursor.pass(next, 8);
                return Some(packet);
            }
            Fate::Complete { packet: whole, at, proto, .. } => {
                ledger.step(&packet, "whole", || format!("the last fragment is here: {} bytes", whole.len()));
                self.pool.give(std::mem::replace(&mut packet.buf, whole));
                (cursor.proto, cursor.at) = (proto, at);
                return Some(packet);
            }
            Fate::Waiting => {
                ledger.counters.reassembled += 1;
                ledger.step(&packet, "wait", || "for the other fragments".into());
                self.pool.give(packet.buf);
                return None;
            }
            Fate::Dropped(reason) => Verdict::Drop(reason),
            Fate::Problem { code, pointer } => {
                Verdict::Error(IcmpError::new(icmp6::PARAMETER_PROBLEM, code, pointer), DropReason::FragmentBad)
            }
        };
        self.perform(cx, packet, verdict, ledger);
        None
    }

    fn icmp6(&mut self, cx: &Context<'_, '_>, packet: Packet, at: usize, dst: &DstRef<'_>, ledger: &mut Ledger) {
        if !upper_is_valid(&packet.buf, at, proto::ICMP6) {
            return self.drop(packet, DropReason::BadUpperChecksum, ledger);
        }
        match packet.buf.get(at..).and_then(icmp6::Header::read).map(|header| header.kind) {
            Some(icmp6::ECHO) => self.echo6(cx, packet, at, dst, ledger),
            Some(icmp6::ROUTER_SOLICITATION..=icmp6::REDIRECT) => self.ndisc(cx, packet, at, ledger),
            Some(kind) if icmp6::is_error(kind) => self.delivered(packet, || format!("ICMPv6 error type {kind}"), ledger),
            Some(_) => self.drop(packet, DropReason::IcmpIgnored, ledger),
            None => self.drop(packet, DropReason::BadExtensionHeader, ledger),
        }
    }

    fn udp6(&mut self, cx: &Context<'_, '_>, mut packet: Packet, number: u8, at: usize, ledger: &mut Ledger) {
        let Some(end) = datagram_end(&packet.buf, number, at) else { return self.drop(packet, DropReason::BadUpperChecksum, ledger) };
        // An error quotes the datagram without what is behind it.
        packet.buf.truncate(end);
        let error = IcmpError::new(icmp6::UNREACHABLE, icmp6::unreachable::PORT, 0);
        self.perform(cx, packet, Verdict::Error(error, DropReason::NoListener), ledger);
    }
}

impl Cursor {
    fn pass(&mut self, next: u8, len: usize) {
        self.named_at = self.at;
        self.at += len;
        self.proto = next;
    }
}

fn is_ndisc(packet: &[u8], at: usize) -> bool {
    matches!(packet.get(at), Some(icmp6::ROUTER_SOLICITATION..=icmp6::REDIRECT))
}

/// Where the datagram of UDP or UDP-Lite that stands at `at` ends; none when its length or checksum is wrong.
fn datagram_end(packet: &[u8], number: u8, at: usize) -> Option<usize> {
    let ip = ipv6::Header::read(packet)?;
    let upper = packet.get(at..)?;
    let header = udp::Header::read(upper)?;
    let covered = match usize::from(header.len.get()) {
        0 => upper.len(),
        covered => covered,
    };
    let len = if number == proto::UDP_LITE { upper.len() } else { covered };
    // Without a checksum the addresses could be anybody's (RFC 8200 §8.1).
    let bytes = upper.get(..covered).filter(|_| covered >= udp::LEN && header.checksum.get() != 0)?;
    Sum::pseudo6(ip.src(), ip.dst(), number, len).bytes(bytes).is_valid().then_some(at + len)
}

/// True when the checksum of what stands at `at` is right.
pub(super) fn upper_is_valid(packet: &[u8], at: usize, number: u8) -> bool {
    let (Some(header), Some(upper)) = (ipv6::Header::read(packet), packet.get(at..)) else { return false };
    Sum::pseudo6(header.src(), header.dst(), number, upper.len()).bytes(upper).is_valid()
}

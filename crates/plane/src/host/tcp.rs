//! TCP to the router's addresses: nobody listens here, so a segment is answered by a reset (RFC 9293 §3.10.7.1).

use route::{DropReason, DstRef};
use wire::checksum::Sum;
use wire::{ipv4, ipv6, proto};
use zerocopy::IntoBytes;

use super::Host;
use super::answer4::{Head4, carried_back};
use crate::context::Context;
use crate::flow_hash;
use crate::packet::{Addressed, Packet, Version};
use crate::trace::Ledger;

/// Bytes of a header without options.
const HEADER: usize = 20;

/// The bits of a TOS or traffic class that congestion marks.
const ECN: u8 = 3;
/// Option kind of a keyed MD5 signature (RFC 2385): there is no key here to sign an answer with.
const SIGNATURE: u8 = 19;

mod flag {
    pub const FIN: u8 = 0x01;
    pub const SYN: u8 = 0x02;
    pub const RST: u8 = 0x04;
    pub const ACK: u8 = 0x10;
}

impl Host {
    pub(super) fn tcp4(&mut self, cx: &Context<'_, '_>, packet: Packet, ledger: &mut Ledger) {
        let Some(ip) = ipv4::Header::read(&packet.buf) else { return self.drop(packet, DropReason::HeaderTruncated, ledger) };
        let (src, dst, tos) = (ip.src(), ip.dst(), ip.tos);
        let segment = packet.buf.get(ip.header_len()..).unwrap_or_default();
        let valid = Sum::pseudo4(src, dst, proto::TCP, segment.len()).bytes(segment).is_valid();
        let Some(mut reset) = reset(segment).filter(|_| valid && packet.addressed == Addressed::Host) else {
            return self.drop(packet, if valid { DropReason::NoListener } else { DropReason::BadUpperChecksum }, ledger);
        };
        let Some(options) = carried_back(cx, &packet, dst) else { return self.drop(packet, DropReason::BadOption, ledger) };
        let sum = Sum::pseudo4(dst, src, proto::TCP, HEADER).bytes(&reset).finish();
        reset[16..18].copy_from_slice(&sum.to_be_bytes());
        let head = Head4 { proto: proto::TCP, source: dst, to: src, tos: tos & !ECN, options: &options };
        let mut buf = self.packet4(cx, &head, HEADER);
        buf[head.len()..].copy_from_slice(&reset);
        if let Some(header) = ipv4::Header::read_mut(&mut buf) {
            header.set_flags_offset(ipv4::DF);
        }
        self.originate4(cx, Packet::made(Version::V4, buf, packet.time, packet.number, packet.dev), packet.dev, ledger);
        self.delivered(packet, || "TCP segment answered by a reset".into(), ledger);
    }

    pub(super) fn tcp6(&mut self, cx: &Context<'_, '_>, packet: Packet, at: usize, dst: &DstRef<'_>, ledger: &mut Ledger) {
        let Some(ip) = ipv6::Header::read(&packet.buf) else { return self.drop(packet, DropReason::HeaderTruncated, ledger) };
        let (to, from, class) = (ip.src(), ip.dst(), ip.traffic_class());
        let valid = super::deliver6::upper_is_valid(&packet.buf, at, proto::TCP);
        let segment = packet.buf.get(at..).unwrap_or_default();
        let single = packet.addressed == Addressed::Host && !from.is_multicast() && !to.is_unspecified() && !to.is_multicast();
        let Some(mut reset) = reset(segment).filter(|_| valid && single && cx.is_own6(from, packet.dev)) else {
            return self.drop(packet, if valid { DropReason::NoListener } else { DropReason::BadUpperChecksum }, ledger);
        };
        let sum = Sum::pseudo6(from, to, proto::TCP, HEADER).bytes(&reset).finish();
        reset[16..18].copy_from_slice(&sum.to_be_bytes());
        let mut buf = self.pool.take(ipv6::LEN + HEADER);
        buf.append(ipv6::Header::new(from, to, proto::TCP, super::originate::HOP_LIMIT_OF_WAY, HEADER as u16).as_bytes());
        buf.append(&reset);
        let label = flow_hash::label(&buf);
        if let Some(header) = ipv6::Header::read_mut(&mut buf) {
            header.set_flow(class & !ECN, label);
        }
        let near = if cx.links.get(packet.dev).is_some_and(|link| link.is_vrf()) { dst.dev() } else { packet.dev };
        self.originate6(cx, Packet::made(Version::V6, buf, packet.time, packet.number, near), near, ledger);
        self.delivered(packet, || "TCP segment answered by a reset".into(), ledger);
    }
}

/// The reset that answers a segment, checksum zero; none for resets and malformed segments.
fn reset(segment: &[u8]) -> Option<[u8; HEADER]> {
    let header: &[u8; HEADER] = segment.get(..HEADER)?.try_into().ok()?;
    let [s0, s1, d0, d1, q0, q1, q2, q3, a0, a1, a2, a3, offset, flags, ..] = *header;
    let len = usize::from(offset >> 4) * 4;
    let options = segment.get(HEADER..len)?;
    if flags & flag::RST != 0 || is_signed(options) {
        return None;
    }
    let mut reset = [0; HEADER];
    reset[..4].copy_from_slice(&[d0, d1, s0, s1]);
    reset[12] = 5 << 4;
    if flags & flag::ACK != 0 {
        reset[4..8].copy_from_slice(&[a0, a1, a2, a3]);
        reset[13] = flag::RST;
    } else {
        let phantom = u32::from(flags & flag::SYN != 0) + u32::from(flags & flag::FIN != 0);
        let data = (segment.len() - len) as u32;
        let next = u32::from_be_bytes([q0, q1, q2, q3]).wrapping_add(data).wrapping_add(phantom);
        reset[8..12].copy_from_slice(&next.to_be_bytes());
        reset[13] = flag::RST | flag::ACK;
    }
    Some(reset)
}

/// True when a signature is among the options (Linux `tcp_parse_auth_options`).
fn is_signed(mut options: &[u8]) -> bool {
    loop {
        match *options {
            [] | [0, ..] => return false,
            [1, ref rest @ ..] => options = rest,
            [SIGNATURE, 18, ..] => return options.len() >= 18,
            [_, len, ..] if len >= 2 => match options.get(usize::from(len)..) {
                Some(rest) => options = rest,
                None => return false,
            },
            _ => return false,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_syn_is_refused_with_the_number_after_it() {
        let mut syn = [0; HEADER];
        syn[..8].copy_from_slice(&[0x12, 0x34, 0, 80, 0, 0, 0, 7]);
        syn[12..14].copy_from_slice(&[5 << 4, flag::SYN]);
        let reset = reset(&syn).unwrap();
        assert_eq!(reset[..4], [0, 80, 0x12, 0x34]);
        assert_eq!((reset[8..12].to_vec(), reset[13]), (vec![0, 0, 0, 8], flag::RST | flag::ACK));
    }

    #[test]
    fn a_signed_segment_is_not_answered_as_nobody_could_sign_the_answer() {
        let mut signed = [0; HEADER + 20];
        signed[12..14].copy_from_slice(&[10 << 4, flag::SYN]);
        signed[HEADER..HEADER + 4].copy_from_slice(&[1, 1, SIGNATURE, 18]);
        assert_eq!(reset(&signed), None);
        signed[HEADER + 2] = 253;
        assert!(reset(&signed).is_some());
    }

    #[test]
    fn a_reset_is_never_answered() {
        let mut rst = [0; HEADER];
        rst[12..14].copy_from_slice(&[5 << 4, flag::RST]);
        assert_eq!(reset(&rst), None);
    }
}

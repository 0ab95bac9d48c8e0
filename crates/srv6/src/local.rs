//! An SRH at one of the router's own addresses that is no SID: with `seg6_enabled` it acts as an End (kernel `ipv6_srh_rcv`, RFC 8754 §4.3).

use port::Buf;
use route::DropReason;
use wire::srh::Header;
use wire::{ipv6, proto};

use crate::advance::Srh;
use crate::{Env, Inner};

/// What happens next to the packet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LocalSrh {
    /// No segments left: go on with the header after the SRH, in local delivery.
    Deliver,
    /// No segments left and an IP packet inside: it is at the front now and is treated as if it had just come in at the same interface.
    Received(Inner),
    /// The next segment is the destination now; route the packet. When that is a local address too, count down the hop limit and call again.
    Route6,
}

/// Why the packet ends here.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LocalError {
    /// Silently.
    Drop(DropReason),
    /// With an ICMPv6 parameter problem, erroneous header field (RFC 4443 §3.4).
    ParameterProblem {
        /// Offset of the field at fault from the front of the IPv6 header, bytes.
        pointer: usize,
    },
}

impl From<DropReason> for LocalError {
    fn from(reason: DropReason) -> LocalError {
        LocalError::Drop(reason)
    }
}

/// Processes the SRH at `srh_offset` of a packet to a local address, on an interface that has `seg6_enabled`. Like Linux it looks at neither last
/// entry nor TLVs, but for the HMAC.
///
/// # Errors
/// An SRH that leaves the packet or does not satisfy, more segments left than there is room for.
pub fn local_address_srh(buf: &mut Buf, srh_offset: usize, env: &Env<'_>) -> Result<LocalSrh, LocalError> {
    let srh = Srh::at(buf, srh_offset).ok_or(DropReason::BadSrh)?;
    let header = *Header::read(srh.bytes(buf)).ok_or(DropReason::BadSrh)?;
    srh.verify(buf, env)?;
    if srh.segments_left > 0 {
        if srh.segments_left >= header.hdr_ext_len >> 1 {
            return Err(LocalError::ParameterProblem { pointer: srh_offset + 3 });
        }
        srh.advance(buf)?;
        return Ok(LocalSrh::Route6);
    }
    let (inner, least) = match header.next_header {
        proto::IPIP => (Inner::V4, wire::ipv4::LEN),
        proto::IPV6 => (Inner::V6, ipv6::LEN),
        _ => return Ok(LocalSrh::Deliver),
    };
    let front = srh.offset + srh.len;
    if buf.len() < front + least {
        return Err(DropReason::InnerTruncated.into());
    }
    buf.trim_front(front);
    Ok(LocalSrh::Received(inner))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::*;

    fn received(packet: &Buf) -> (Result<LocalSrh, LocalError>, Buf) {
        let mut buf = packet.clone();
        (local_address_srh(&mut buf, 40, &env()), buf)
    }

    #[test]
    fn it_goes_on_to_the_next_segment() {
        let (result, buf) = received(&Packet::to(SID).srh(1, &[LAST, SID, MIDDLE]).carrying(proto::UDP, b"eight by").build());
        assert_eq!(result, Ok(LocalSrh::Route6));
        assert_eq!(buf[..], Packet::to(LAST).srh(0, &[LAST, SID, MIDDLE]).carrying(proto::UDP, b"eight by").build()[..]);
    }

    #[test]
    fn too_many_segments_left_are_answered() {
        let (result, _) = received(&Packet::to(SID).srh(2, &[LAST, SID]).carrying(proto::UDP, b"eight by").build());
        assert_eq!(result, Err(LocalError::ParameterProblem { pointer: 43 }));
    }

    #[test]
    fn the_last_segment_delivers() {
        let packet = Packet::to(SID).srh(0, &[SID]).carrying(proto::UDP, b"eight by").build();
        let (result, buf) = received(&packet);
        assert_eq!((result, &buf[..]), (Ok(LocalSrh::Deliver), &packet[..]));
    }

    #[test]
    fn an_ip_packet_inside_is_received_again() {
        let inner = Packet::to(OTHER).carrying(proto::UDP, b"eight by").build();
        let (result, buf) = received(&Packet::to(SID).srh(0, &[SID]).carrying(proto::IPV6, &inner).build());
        assert_eq!((result, &buf[..]), (Ok(LocalSrh::Received(Inner::V6)), &inner[..]));
        let (result, _) = received(&Packet::to(SID).srh(0, &[SID]).carrying(proto::IPIP, &[0x45; 19]).build());
        assert_eq!(result, Err(LocalError::Drop(DropReason::InnerTruncated)));
    }

    #[test]
    fn an_srh_beyond_the_packet_is_dropped() {
        let mut packet = Packet::to(SID).srh(1, &[LAST, SID]).carrying(proto::UDP, b"").build();
        packet.truncate(packet.len() - 1);
        assert_eq!(received(&packet).0, Err(LocalError::Drop(DropReason::BadSrh)));
    }
}

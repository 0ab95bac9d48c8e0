//! Taking the outer headers off (RFC 8986 §4.4 to §4.8, the common part).

use port::Buf;
use route::DropReason;
use wire::ext::{self, NotFound, Target};
use wire::{ipv4, ipv6, proto};

use crate::Env;
use crate::advance::Srh;

/// Takes off everything in front of the first header of protocol `payload`, which must have at least `least` bytes.
///
/// An SRH with segments left forbids it. A malformed one counts as none, as in Linux. Other extension headers in front are skipped. Nothing of the
/// inner header is checked: neither version nor checksum (Linux does not either), nor are ECN and DSCP touched.
///
/// # Errors
/// [`DropReason::SegmentsLeft`], [`DropReason::WrongPayload`], [`DropReason::InnerTruncated`], and those of an HMAC that does not satisfy.
#[inline]
fn take_off(buf: &mut Buf, env: &Env<'_>, payload: u8, least: usize) -> Result<(), DropReason> {
    // Most have nothing between the two headers.
    let bare = ipv6::Header::read(buf).is_some_and(|header| header.next_header == payload);
    let offset = if bare { ipv6::LEN } else { behind_extensions(buf, env, payload)? };
    if buf.len() < offset + least {
        return Err(DropReason::InnerTruncated);
    }
    buf.trim_front(offset);
    Ok(())
}

/// Where the first header of protocol `payload` stands behind extension headers that allow it to be taken.
#[inline(never)]
fn behind_extensions(buf: &Buf, env: &Env<'_>, payload: u8) -> Result<usize, DropReason> {
    if let Ok(srh) = Srh::find(buf, Target::Proto(proto::ROUTING)) {
        if srh.segments_left > 0 {
            return Err(DropReason::SegmentsLeft);
        }
        srh.verify(buf, env)?;
    }
    let inner = ext::find(buf, Target::Proto(payload)).map_err(|not_found| match not_found {
        NotFound::Absent => DropReason::WrongPayload,
        NotFound::Truncated => DropReason::BadExtensionHeader,
    })?;
    Ok(inner.offset)
}

/// Takes the outer headers off an IPv4 packet.
///
/// # Errors
/// No IPv4 header of 20 bytes inside, segments left, or an HMAC that does not satisfy.
#[inline]
pub(crate) fn to_ipv4(buf: &mut Buf, env: &Env<'_>) -> Result<(), DropReason> {
    take_off(buf, env, proto::IPIP, ipv4::LEN)
}

/// Takes the outer headers off an IPv6 packet.
///
/// # Errors
/// No IPv6 header of 40 bytes inside, segments left, or an HMAC that does not satisfy.
#[inline]
pub(crate) fn to_ipv6(buf: &mut Buf, env: &Env<'_>) -> Result<(), DropReason> {
    take_off(buf, env, proto::IPV6, ipv6::LEN)
}

/// Takes the outer headers off an Ethernet frame.
///
/// # Errors
/// No Ethernet header of 14 bytes inside, segments left, or an HMAC that does not satisfy.
#[inline]
pub(crate) fn to_frame(buf: &mut Buf, env: &Env<'_>) -> Result<(), DropReason> {
    take_off(buf, env, proto::ETHERNET, wire::eth::LEN)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::*;

    fn inner() -> Buf {
        Packet::to(OTHER).carrying(proto::UDP, b"eight by").build()
    }

    fn decapsulated(packet: Packet) -> Result<Buf, DropReason> {
        let mut buf = packet.carrying(proto::IPV6, &inner()).build();
        to_ipv6(&mut buf, &env()).map(|()| buf)
    }

    #[test]
    fn with_or_without_an_srh_the_inner_packet_comes_out_whole() {
        let options = [0, 0, 1, 4, 0, 0, 0, 0];
        for packet in [
            Packet::to(SID),
            Packet::to(SID).srh(0, &[SID, MIDDLE]),
            Packet::to(SID).header(proto::HOP_BY_HOP, &options).srh(0, &[SID]),
            Packet::to(SID).srh(0, &[SID]).header(proto::DEST_OPTS, &options),
            Packet::to(SID).header(proto::AH, &[0, 4, 0, 0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 9, 9, 9, 8, 8, 8, 8, 7, 7, 7, 7]),
        ] {
            assert_eq!(decapsulated(packet).unwrap()[..], inner()[..]);
        }
    }

    #[test]
    fn segments_left_forbid_it() {
        assert_eq!(decapsulated(Packet::to(SID).srh(1, &[LAST, SID])).unwrap_err(), DropReason::SegmentsLeft);
    }

    #[test]
    fn a_malformed_srh_counts_as_none() {
        // last entry 9 in a header with room for one
        let malformed = [0, 2, 4, 1, 9, 0, 0, 0, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1];
        assert_eq!(decapsulated(Packet::to(SID).header(proto::ROUTING, &malformed)).unwrap()[..], inner()[..]);
    }

    #[test]
    fn what_the_sid_does_not_take_is_dropped() {
        let mut udp = Packet::to(SID).carrying(proto::UDP, &[0; 60]).build();
        assert_eq!(to_ipv6(&mut udp, &env()), Err(DropReason::WrongPayload));
        let mut v6 = Packet::to(SID).carrying(proto::IPV6, &inner()).build();
        assert_eq!(to_ipv4(&mut v6, &env()), Err(DropReason::WrongPayload));
    }

    #[test]
    fn an_inner_header_must_be_there_whole() {
        for (number, len, take) in [
            (proto::IPV6, 40, to_ipv6 as fn(&mut Buf, &Env<'_>) -> Result<(), DropReason>),
            (proto::IPIP, 20, to_ipv4),
            (proto::ETHERNET, 14, to_frame),
        ] {
            assert_eq!(take(&mut Packet::to(SID).carrying(number, &vec![0; len]).build(), &env()), Ok(()));
            assert_eq!(take(&mut Packet::to(SID).carrying(number, &vec![0; len - 1]).build(), &env()), Err(DropReason::InnerTruncated));
        }
    }

    #[test]
    fn fault_inner_header_not_validated_is_linux_behaviour() {
        let mut wrong_version = inner();
        wrong_version[0] = 0x45;
        let mut buf = Packet::to(SID).carrying(proto::IPV6, &wrong_version).build();
        assert_eq!(to_ipv6(&mut buf, &env()), Ok(()));
        assert_eq!(buf[..], wrong_version[..]);
    }
}

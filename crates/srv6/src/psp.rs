//! Penultimate segment pop (RFC 8986 §4.16.1): the SRH leaves the packet when its last segment becomes the destination.

use port::Buf;
use route::DropReason;
use wire::ext::{self, Target};
use wire::{ipv6, proto};

use crate::Env;
use crate::advance::Srh;

/// Goes on to the next segment, and removes the SRH when that is the last. Unlike End without flavours it looks at the first routing header only,
/// as Linux does.
///
/// # Errors
/// No SRH, a malformed one, one without segments left, or one whose HMAC does not satisfy.
pub(crate) fn to_next_segment(buf: &mut Buf, env: &Env<'_>) -> Result<(), DropReason> {
    let srh = Srh::find(buf, Target::Proto(proto::ROUTING))?;
    srh.verify(buf, env)?;
    srh.advance(buf)?;
    match srh.segments_left {
        1 => pop(buf, srh),
        _ => Ok(()),
    }
}

/// Cuts the SRH out; the header before it names what followed.
fn pop(buf: &mut Buf, srh: Srh) -> Result<(), DropReason> {
    let named_at = ext::find(buf, Target::Proto(proto::ROUTING)).map_err(|_| DropReason::BadSrh)?.named_at;
    let next_header = *buf.get(srh.offset).ok_or(DropReason::BadSrh)?;
    *buf.get_mut(named_at).ok_or(DropReason::BadSrh)? = next_header;
    if !buf.remove(srh.offset, srh.len) {
        return Err(DropReason::BadSrh);
    }
    let payload_len = buf.len().checked_sub(ipv6::LEN).and_then(|len| len.try_into().ok()).ok_or(DropReason::LengthMismatch)?;
    ipv6::Header::read_mut(buf).ok_or(DropReason::HeaderTruncated)?.set_payload_len(payload_len);
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::*;

    fn popped(packet: Packet) -> Result<Buf, DropReason> {
        let mut buf = packet.build();
        to_next_segment(&mut buf, &env()).map(|()| buf)
    }

    #[test]
    fn the_last_segment_takes_the_srh_away() {
        let before = Packet::to(SID).srh(1, &[LAST, SID]).carrying(proto::UDP, b"eight by");
        let after = Packet::to(LAST).carrying(proto::UDP, b"eight by");
        assert_eq!(popped(before).unwrap()[..], after.build()[..]);
    }

    #[test]
    fn an_earlier_segment_leaves_it() {
        let before = Packet::to(SID).srh(2, &[LAST, MIDDLE, SID]).carrying(proto::UDP, b"eight by");
        let after = Packet::to(MIDDLE).srh(1, &[LAST, MIDDLE, SID]).carrying(proto::UDP, b"eight by");
        assert_eq!(popped(before).unwrap()[..], after.build()[..]);
    }

    #[test]
    fn the_header_in_front_names_what_followed() {
        let options = [0, 0, 1, 4, 0, 0, 0, 0];
        let fragment = [0, 0, 0, 0, 0, 0, 0, 7];
        for (number, header) in [(proto::HOP_BY_HOP, options), (proto::DEST_OPTS, options), (proto::FRAGMENT, fragment)] {
            let before = Packet::to(SID).header(number, &header).srh(1, &[LAST, SID]).carrying(proto::UDP, b"eight by");
            let after = Packet::to(LAST).header(number, &header).carrying(proto::UDP, b"eight by");
            assert_eq!(popped(before).unwrap()[..], after.build()[..]);
        }
    }

    #[test]
    fn only_the_first_routing_header_counts() {
        let used = Packet::to(SID).srh(0, &[LAST, SID]).srh(1, &[LAST, SID]).carrying(proto::UDP, b"eight by");
        assert_eq!(popped(used).unwrap_err(), DropReason::NoSrh);
        assert_eq!(popped(Packet::to(SID).carrying(proto::UDP, b"eight by")).unwrap_err(), DropReason::NoSrh);
    }
}

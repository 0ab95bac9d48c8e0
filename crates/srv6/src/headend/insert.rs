//! H.Insert: an SRH put into an IPv6 packet (draft-filsfils-spring-srv6-net-pgm-insertion).

use std::net::Ipv6Addr;

use port::Buf;
use route::DropReason;
use wire::{ipv6, proto, srh as wire_srh};

use crate::{BuildError, Env, Inner, SegmentList, hmac, srh};

/// The SRH of a policy, made beforehand; the place of the last segment is for the packet's destination.
#[derive(Clone, Debug)]
pub(crate) struct Insert {
    srh: Box<[u8]>,
    first: Ipv6Addr,
    signed: bool,
}

impl Insert {
    /// An SRH with `segments` and one place more.
    ///
    /// # Errors
    /// No segments, or more than fit.
    pub fn build(segments: &SegmentList) -> Result<Insert, BuildError> {
        let mut entries = vec![Ipv6Addr::UNSPECIFIED];
        entries.extend(segments.segments.iter().rev());
        let srh = srh::build(&entries, entries.len() - 1, segments.hmac, 1)?;
        let first = segments.segments.first().copied().unwrap_or(Ipv6Addr::UNSPECIFIED);
        Ok(Insert { srh: srh.into(), first, signed: segments.hmac != 0 })
    }

    /// Bytes put into a packet.
    pub fn len(&self) -> usize {
        self.srh.len()
    }

    /// Puts the SRH right behind the IPv6 header, before any other extension header (Linux). The destination becomes the last segment.
    ///
    /// # Errors
    /// As [`crate::Policy::apply`].
    #[inline]
    pub fn apply(&self, buf: &mut Buf, inner: Inner, env: &Env<'_>) -> Result<(), DropReason> {
        if inner != Inner::V6 {
            return Err(DropReason::WrongPayload);
        }
        let header = ipv6::Header::read(buf).ok_or(DropReason::HeaderTruncated)?;
        let (source, last, next_header) = (header.src(), header.dst(), header.next_header);
        let payload_len = (buf.len() - ipv6::LEN + self.srh.len()).try_into().map_err(|_| DropReason::EncapsulatedTooLong)?;
        if !buf.insert(ipv6::LEN, self.srh.len()) {
            return Err(DropReason::NoHeadroom);
        }
        let header = ipv6::Header::read_mut(buf).ok_or(DropReason::NoHeadroom)?;
        header.set_dst(self.first);
        header.next_header = proto::ROUTING;
        header.set_payload_len(payload_len);
        let srh = buf.get_mut(ipv6::LEN..ipv6::LEN + self.srh.len()).ok_or(DropReason::NoHeadroom)?;
        srh.copy_from_slice(&self.srh);
        if let Some(place) = srh.get_mut(wire_srh::LEN..wire_srh::LEN + 16) {
            place.copy_from_slice(&last.octets());
        }
        if let Some(place) = srh.first_mut() {
            *place = next_header;
        }
        match self.signed {
            true => hmac::sign(env.hmac_keys, source, srh),
            false => Ok(()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::*;
    use crate::{HmacAlgorithm, HmacKeys, Mode, Policy};

    fn policy(hmac: u32) -> Policy {
        Policy::build(Mode::Inline, &SegmentList { segments: vec![SID, MIDDLE], hmac }, None).unwrap()
    }

    fn inserted(packet: Packet) -> Buf {
        let mut buf = packet.build();
        assert_eq!(policy(0).apply(&mut buf, Inner::V6, TUNSRC, &env()), Ok(()));
        buf
    }

    #[test]
    fn the_destination_becomes_the_last_segment() {
        let after = Packet::to(SID).srh(2, &[LAST, MIDDLE, SID]).carrying(proto::UDP, b"eight by");
        assert_eq!(inserted(Packet::to(LAST).carrying(proto::UDP, b"eight by"))[..], after.build()[..]);
    }

    #[test]
    fn headers_that_were_there_follow() {
        let options = [0, 0, 1, 4, 0, 0, 0, 0];
        let before = Packet::to(LAST).header(proto::HOP_BY_HOP, &options).srh(1, &[OTHER, LAST]).carrying(proto::UDP, b"eight by");
        let after = Packet::to(SID)
            .srh(2, &[LAST, MIDDLE, SID])
            .header(proto::HOP_BY_HOP, &options)
            .srh(1, &[OTHER, LAST])
            .carrying(proto::UDP, b"eight by");
        assert_eq!(inserted(before)[..], after.build()[..]);
    }

    #[test]
    fn the_hmac_covers_the_packets_own_source() {
        let mut keys = HmacKeys::default();
        keys.set(42, HmacAlgorithm::Sha1, b"a secret").unwrap();
        let mut buf = Packet::to(LAST).carrying(proto::UDP, b"eight by").build();
        assert_eq!(policy(42).apply(&mut buf, Inner::V6, TUNSRC, &env_with(&keys)), Ok(()));
        assert_eq!(hmac::verify(&keys, SOURCE, &buf[40..40 + 96]), Ok(()));
    }

    #[test]
    fn ipv4_and_what_does_not_fit_is_refused() {
        let apply = |mut buf: Buf, inner| policy(0).apply(&mut buf, inner, TUNSRC, &env());
        assert_eq!(apply(Buf::from_bytes(&[0x45; 60]), Inner::V4), Err(DropReason::WrongPayload));
        assert_eq!(apply(Buf::from_bytes(&[0x60; 39]), Inner::V6), Err(DropReason::HeaderTruncated));
        let mut buf = Buf::with_room(8 + 48 - 1, 100);
        buf.append(&Packet::to(LAST).carrying(proto::UDP, b"eight by").build());
        assert_eq!(apply(buf, Inner::V6), Err(DropReason::NoHeadroom));
        assert_eq!(apply(Buf::from_bytes(&[0x60; 65_535]), Inner::V6), Err(DropReason::EncapsulatedTooLong));
    }
}

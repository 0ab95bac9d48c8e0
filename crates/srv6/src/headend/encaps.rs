//! H.Encaps and H.Encaps.Red: an outer IPv6 header, with an SRH or without, around a packet (RFC 8986 §5.1, §5.2).

use std::net::Ipv6Addr;

use port::Buf;
use route::DropReason;
use wire::{ipv6, proto};

use crate::{BuildError, Env, FlowLabel, Inner, SegmentList, hmac, srh};

/// Hop limit of an outer header around anything but IPv6.
const HOP_LIMIT: u8 = 64;
/// Offset of the next header field in an IPv6 header.
const NEXT_HEADER: usize = 6;

/// The outer headers of a policy, made beforehand: what differs from packet to packet is zero.
#[derive(Clone, Debug)]
pub(crate) struct Outer {
    bytes: Box<[u8]>,
    /// Offset of the byte that names the inner packet's protocol.
    proto_at: usize,
    signed: bool,
}

impl Outer {
    /// With every segment in the SRH.
    ///
    /// # Errors
    /// No segments, or more than fit.
    pub fn full(segments: &SegmentList) -> Result<Outer, BuildError> {
        let entries: Vec<Ipv6Addr> = segments.segments.iter().rev().copied().collect();
        let srh = srh::build(&entries, entries.len().saturating_sub(1), segments.hmac, 0)?;
        Ok(Outer::new(segments, &srh))
    }

    /// Without the first segment, which stands in the destination anyway; without an SRH when nothing is left to say in it.
    ///
    /// # Errors
    /// No segments, or more than fit the full form: Linux is handed that.
    pub fn reduced(segments: &SegmentList) -> Result<Outer, BuildError> {
        let full = Outer::full(segments)?;
        match segments.segments.as_slice() {
            [_] if segments.hmac == 0 => Ok(Outer::new(segments, &[])),
            [] | [_] => Ok(full),
            [_, others @ ..] => {
                let entries: Vec<Ipv6Addr> = others.iter().rev().copied().collect();
                let srh = srh::build(&entries, entries.len(), segments.hmac, 0)?;
                Ok(Outer::new(segments, &srh))
            }
        }
    }

    fn new(segments: &SegmentList, srh: &[u8]) -> Outer {
        let first = segments.segments.first().copied().unwrap_or(Ipv6Addr::UNSPECIFIED);
        let header = ipv6::Header::new(Ipv6Addr::UNSPECIFIED, first, proto::ROUTING, 0, 0);
        let mut bytes = vec![0; ipv6::LEN];
        if let Some(place) = ipv6::Header::read_mut(&mut bytes) {
            *place = header;
        }
        bytes.extend_from_slice(srh);
        let proto_at = if srh.is_empty() { NEXT_HEADER } else { ipv6::LEN };
        Outer { bytes: bytes.into(), proto_at, signed: segments.hmac != 0 }
    }

    /// Bytes put in front of a packet.
    pub fn len(&self) -> usize {
        self.bytes.len()
    }

    /// Puts the headers in front of what `buf` holds, which is of protocol `payload`.
    ///
    /// # Errors
    /// No headroom, a payload beyond 65535 bytes, an HMAC key that is not set.
    #[inline]
    pub fn put(&self, buf: &mut Buf, inherited: Inherited, payload: u8, source: Ipv6Addr, env: &Env<'_>) -> Result<(), DropReason> {
        let payload_len = (buf.len() + self.bytes.len() - ipv6::LEN).try_into().map_err(|_| DropReason::EncapsulatedTooLong)?;
        if !buf.prepend(self.bytes.len()) {
            return Err(DropReason::NoHeadroom);
        }
        let front = buf.get_mut(..self.bytes.len()).ok_or(DropReason::NoHeadroom)?;
        front.copy_from_slice(&self.bytes);
        if let Some(place) = front.get_mut(self.proto_at) {
            *place = payload;
        }
        let header = ipv6::Header::read_mut(front).ok_or(DropReason::NoHeadroom)?;
        header.set_flow(inherited.traffic_class, inherited.flow_label);
        header.set_payload_len(payload_len);
        header.hop_limit = inherited.hop_limit;
        header.set_src(source);
        match (self.signed, front.get_mut(ipv6::LEN..)) {
            (true, Some(srh)) => hmac::sign(env.hmac_keys, source, srh),
            _ => Ok(()),
        }
    }
}

/// What an outer header takes from the packet inside.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Inherited {
    traffic_class: u8,
    flow_label: u32,
    hop_limit: u8,
}

impl Inherited {
    /// From the packet at the front of `packet`. IPv6 passes on its traffic class and hop limit, and its flow label unless the sysctl says
    /// otherwise; IPv4 passes on nothing, not even its TOS (Linux).
    ///
    /// # Errors
    /// [`DropReason::HeaderTruncated`].
    #[inline]
    pub fn from_inner(packet: &[u8], inner: Inner, env: &Env<'_>) -> Result<Inherited, DropReason> {
        let (traffic_class, label, hop_limit) = match inner {
            Inner::V4 => (0, 0, HOP_LIMIT),
            Inner::V6 => {
                let header = ipv6::Header::read(packet).ok_or(DropReason::HeaderTruncated)?;
                (header.traffic_class(), header.flow_label(), header.hop_limit)
            }
        };
        let flow_label = match env.flow_label {
            FlowLabel::Zero => 0,
            FlowLabel::Inherit => label,
            FlowLabel::Hash => (env.flow_hash)(packet),
        };
        Ok(Inherited { traffic_class, flow_label, hop_limit })
    }
}

/// Wraps the packet at the front of `buf`.
///
/// # Errors
/// As [`crate::Policy::apply`].
#[inline]
pub(crate) fn apply(outer: &Outer, buf: &mut Buf, inner: Inner, source: Ipv6Addr, env: &Env<'_>) -> Result<(), DropReason> {
    let inherited = Inherited::from_inner(buf, inner, env)?;
    let payload = match inner {
        Inner::V4 => proto::IPIP,
        Inner::V6 => proto::IPV6,
    };
    outer.put(buf, inherited, payload, source, env)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::*;
    use crate::{HmacAlgorithm, HmacKeys, Mode, Policy};
    use port::HEADROOM;

    fn policy(mode: Mode, segments: &[Ipv6Addr]) -> Policy {
        Policy::build(mode, &SegmentList { segments: segments.to_vec(), hmac: 0 }, None).unwrap()
    }

    fn inner() -> Buf {
        Packet::to(OTHER).hop_limit(17).flow(0xb9, 0x1_2345).carrying(proto::UDP, b"eight by").build()
    }

    fn around(policy: &Policy, packet: &Buf, inner: Inner, env: &Env<'_>) -> Result<Buf, DropReason> {
        let mut buf = packet.clone();
        policy.apply(&mut buf, inner, TUNSRC, env).map(|()| buf)
    }

    /// The outer packet that is right around [`inner`].
    fn outer(first: Ipv6Addr) -> Packet {
        Packet::to(first).from(TUNSRC).hop_limit(17).flow(0xb9, 0x1_2345)
    }

    #[test]
    fn fault_last_entry_or_stale_slot_with_three_segments() {
        for (mode, segments, right) in [
            (Mode::Encap, &[MIDDLE][..], outer(MIDDLE).srh(0, &[MIDDLE])),
            (Mode::Encap, &[MIDDLE, LAST], outer(MIDDLE).srh(1, &[LAST, MIDDLE])),
            (Mode::Encap, &[MIDDLE, SID, LAST], outer(MIDDLE).srh(2, &[LAST, SID, MIDDLE])),
            (Mode::EncapRed, &[MIDDLE], outer(MIDDLE)),
            (Mode::EncapRed, &[MIDDLE, LAST], outer(MIDDLE).srh(1, &[LAST])),
            (Mode::EncapRed, &[MIDDLE, SID, LAST], outer(MIDDLE).srh(2, &[LAST, SID])),
        ] {
            let policy = policy(mode, segments);
            let wrapped = around(&policy, &inner(), Inner::V6, &env()).unwrap();
            assert_eq!(wrapped[..], right.carrying(proto::IPV6, &inner()).build()[..], "{policy}");
            assert_eq!(wrapped.len(), inner().len() + policy.overhead());
        }
    }

    #[test]
    fn fault_outer_payload_length_without_the_inner_header() {
        let inner = Packet::to(OTHER).carrying(proto::TCP, &[7; 54]).build();
        assert_eq!(inner.len(), 94);
        let wrapped = around(&policy(Mode::Encap, &[LAST]), &inner, Inner::V6, &env()).unwrap();
        assert_eq!(ipv6::Header::read(&wrapped).unwrap().payload_len(), 24 + 94);
        let ipv4 = Buf::from_bytes(&[0x45; 94]);
        let wrapped = around(&policy(Mode::EncapRed, &[LAST]), &ipv4, Inner::V4, &env()).unwrap();
        assert_eq!(ipv6::Header::read(&wrapped).unwrap().payload_len(), 94);
    }

    #[test]
    fn ipv4_passes_nothing_on() {
        let ipv4 = Buf::from_bytes(&[0x45, 0xb8, 0, 20, 0, 0, 0, 0, 1, 17, 0, 0, 10, 0, 0, 2, 10, 9, 0, 9]);
        let wrapped = around(&policy(Mode::Encap, &[LAST]), &ipv4, Inner::V4, &env()).unwrap();
        let right = Packet::to(LAST).from(TUNSRC).hop_limit(64).srh(0, &[LAST]).carrying(proto::IPIP, &ipv4);
        assert_eq!(wrapped[..], right.build()[..]);
    }

    #[test]
    fn the_sysctl_chooses_the_flow_label() {
        let label = |flow_label| {
            let wrapped = around(&policy(Mode::EncapRed, &[LAST]), &inner(), Inner::V6, &Env { flow_label, ..env() }).unwrap();
            ipv6::Header::read(&wrapped).unwrap().flow_label()
        };
        assert_eq!([FlowLabel::Zero, FlowLabel::Inherit, FlowLabel::Hash].map(label), [0, 0x1_2345, 0xd_abcd]);
    }

    #[test]
    fn a_signed_policy_has_an_srh_even_when_reduced_to_one_segment() {
        let mut keys = HmacKeys::default();
        keys.set(42, HmacAlgorithm::Sha256, b"a secret").unwrap();
        let segments = SegmentList { segments: vec![LAST], hmac: 42 };
        let policy = Policy::build(Mode::EncapRed, &segments, None).unwrap();
        let wrapped = around(&policy, &inner(), Inner::V6, &env_with(&keys)).unwrap();
        assert_eq!(hmac::verify(&keys, TUNSRC, &wrapped[40..40 + 64]), Ok(()));
        assert_eq!(around(&policy, &inner(), Inner::V6, &env()).unwrap_err(), DropReason::HmacKeyMissing);
    }

    #[test]
    fn what_does_not_fit_is_refused() {
        let tight = |headroom: usize| {
            let mut buf = Buf::with_room(headroom, 100);
            buf.append(&inner());
            around(&policy(Mode::Encap, &[LAST]), &buf, Inner::V6, &env()).map(|_| ())
        };
        assert_eq!((tight(63), tight(64)), (Err(DropReason::NoHeadroom), Ok(())));
        let long = |len: usize| {
            let mut buf = Buf::with_room(HEADROOM, len);
            buf.append(&vec![0x45; len]);
            around(&policy(Mode::Encap, &[LAST]), &buf, Inner::V4, &env()).map(|_| ())
        };
        assert_eq!((long(65_511), long(65_512)), (Ok(()), Err(DropReason::EncapsulatedTooLong)));
        assert_eq!(
            around(&policy(Mode::Encap, &[LAST]), &Buf::from_bytes(&[0x60; 39]), Inner::V6, &env()).unwrap_err(),
            DropReason::HeaderTruncated
        );
    }
}

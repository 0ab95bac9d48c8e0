//! H.Encaps.L2 and H.Encaps.L2.Red: an outer IPv6 header around the frame that a packet came in (RFC 8986 §5.3, §5.4).

use std::net::Ipv6Addr;

use port::Buf;
use route::DropReason;
use wire::proto;

use super::encaps::{Inherited, Outer};
use crate::{Env, Inner};

/// Wraps the frame of the packet at the front of `buf`: its link header is taken back from the headroom, as it arrived. The outer header takes from
/// the packet what it would without the frame (Linux).
///
/// # Errors
/// As [`crate::Policy::apply`]; [`DropReason::FrameTooShort`] when the packet came without a link header.
#[inline]
pub(crate) fn apply(outer: &Outer, buf: &mut Buf, inner: Inner, source: Ipv6Addr, env: &Env<'_>) -> Result<(), DropReason> {
    let inherited = Inherited::from_inner(buf, inner, env)?;
    if env.l2_len == 0 || !buf.prepend(env.l2_len) {
        return Err(DropReason::FrameTooShort);
    }
    outer.put(buf, inherited, proto::ETHERNET, source, env)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::*;
    use crate::{Mode, Policy, SegmentList};

    const LINK: [u8; 14] = [2, 0, 0, 0, 0, 1, 2, 0, 0, 0, 0, 2, 0x86, 0xdd];

    fn packet() -> Packet {
        Packet::to(OTHER).hop_limit(17).flow(0xb9, 0x1_2345).carrying(proto::UDP, b"eight by")
    }

    fn wrapped(mode: Mode, l2_len: usize) -> Result<Buf, DropReason> {
        let segments = SegmentList { segments: vec![MIDDLE, LAST], hmac: 0 };
        let policy = Policy::build(mode, &segments, None).unwrap();
        let mut buf = Buf::from_bytes(&[&LINK[..], &packet().build()].concat());
        buf.trim_front(LINK.len());
        policy.apply(&mut buf, Inner::V6, TUNSRC, &Env { l2_len, ..env() }).map(|()| buf)
    }

    #[test]
    fn the_frame_is_wrapped_as_it_arrived() {
        let frame = [&LINK[..], &packet().build()].concat();
        let outer = Packet::to(MIDDLE).from(TUNSRC).hop_limit(17).flow(0xb9, 0x1_2345);
        let full = outer.clone().srh(1, &[LAST, MIDDLE]).carrying(proto::ETHERNET, &frame);
        assert_eq!(wrapped(Mode::L2Encap, 14).unwrap()[..], full.build()[..]);
        let reduced = outer.srh(1, &[LAST]).carrying(proto::ETHERNET, &frame);
        assert_eq!(wrapped(Mode::L2EncapRed, 14).unwrap()[..], reduced.build()[..]);
    }

    #[test]
    fn a_packet_without_a_frame_is_dropped() {
        assert_eq!(wrapped(Mode::L2Encap, 0).unwrap_err(), DropReason::FrameTooShort);
    }
}

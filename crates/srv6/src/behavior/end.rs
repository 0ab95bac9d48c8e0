//! End: go on to the next segment (RFC 8986 §4.1), with the flavours PSP (§4.16.1) and NEXT-C-SID (RFC 9800 §4.1.1).

use port::Buf;
use route::DropReason;

use crate::advance;
use crate::descriptor::{Behavior, Descriptor, Uniform};
use crate::next_csid::NextCsid;
use crate::{Attr, AttrSet, Attributes, BuildError, Env, Flavors, Next, psp};

/// The row of End.
pub static DESCRIPTOR: Descriptor = Descriptor {
    name: "End",
    number: 1,
    required: AttrSet::NONE,
    optional: AttrSet::of(&[Attr::Flavors, Attr::Lblen, Attr::Nflen, Attr::Count]),
    flavors: Flavors::PSP.union(Flavors::NEXT_CSID),
    summary: "Go on to the next segment (RFC 8986 section 4.1).",
    build,
};

fn build(attributes: &Attributes) -> Result<Box<dyn Behavior>, BuildError> {
    Ok(match NextCsid::build(attributes)? {
        Some(csid) => Box::new(Compressed { csid }),
        None if attributes.flavors.contains(Flavors::PSP) => Box::new(Popping),
        None => Box::new(End),
    })
}

/// Without flavours. A packet without SRH, or with no segments left, is dropped; Linux hands none to the upper layer either.
#[derive(Debug)]
struct End;

impl Uniform for End {
    fn wish(&self) -> Next {
        Next::Onward
    }

    #[inline]
    fn process(&self, buf: &mut Buf, env: &Env<'_>) -> Result<(), DropReason> {
        advance::to_next_segment(buf, env)
    }
}

/// With PSP.
#[derive(Debug)]
struct Popping;

impl Uniform for Popping {
    fn wish(&self) -> Next {
        Next::Onward
    }

    #[inline]
    fn process(&self, buf: &mut Buf, env: &Env<'_>) -> Result<(), DropReason> {
        psp::to_next_segment(buf, env)
    }
}

/// With NEXT-C-SID: a shift where there is an argument, whatever the SRH says; End without flavours where there is none, even when PSP was asked
/// for as well (Linux).
#[derive(Debug)]
struct Compressed {
    csid: NextCsid,
}

impl Uniform for Compressed {
    fn wish(&self) -> Next {
        Next::Onward
    }

    #[inline]
    fn process(&self, buf: &mut Buf, env: &Env<'_>) -> Result<(), DropReason> {
        if !self.csid.shift(buf)? {
            advance::to_next_segment(buf, env)?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Sid;
    use crate::testing::*;
    use wire::{ipv6, proto};

    fn end(flavors: Flavors) -> Sid {
        Sid::build(&DESCRIPTOR, &Attributes { flavors, ..Attributes::default() }).unwrap()
    }

    fn through(sid: &Sid, packet: Packet) -> Result<Buf, DropReason> {
        let mut buf = packet.build();
        let next = sid.input(&mut buf, &env())?;
        assert_eq!(next, Next::Onward);
        Ok(buf)
    }

    fn udp(packet: Packet) -> Packet {
        packet.carrying(proto::UDP, b"eight by")
    }

    #[test]
    fn the_next_segment_becomes_the_destination() {
        let after = through(&end(Flavors::NONE), udp(Packet::to(SID).srh(2, &[LAST, MIDDLE, SID]))).unwrap();
        assert_eq!(after[..], udp(Packet::to(MIDDLE).srh(1, &[LAST, MIDDLE, SID])).build()[..]);
    }

    #[test]
    fn the_reduced_form_has_one_segment_more_left_than_entries() {
        let after = through(&end(Flavors::NONE), udp(Packet::to(SID).srh(2, &[LAST, MIDDLE]))).unwrap();
        assert_eq!(after[..], udp(Packet::to(MIDDLE).srh(1, &[LAST, MIDDLE])).build()[..]);
    }

    #[test]
    fn a_first_srh_without_segments_left_is_skipped() {
        let after = through(&end(Flavors::NONE), udp(Packet::to(SID).srh(0, &[SID]).srh(1, &[LAST, SID]))).unwrap();
        assert_eq!(after[..], udp(Packet::to(LAST).srh(0, &[SID]).srh(0, &[LAST, SID])).build()[..]);
    }

    #[test]
    fn fault_no_segments_left_or_no_srh_is_dropped_as_in_linux() {
        assert_eq!(through(&end(Flavors::NONE), udp(Packet::to(SID).srh(0, &[LAST, SID]))).unwrap_err(), DropReason::NoSrh);
        assert_eq!(through(&end(Flavors::NONE), udp(Packet::to(SID))).unwrap_err(), DropReason::NoSrh);
    }

    #[test]
    fn fault_srh_longer_than_the_payload_does_not_underflow() {
        let whole = udp(Packet::to(SID).srh(1, &[LAST, SID])).build();
        for len in ipv6::LEN..whole.len() - 8 {
            let mut cut = whole.clone();
            cut.truncate(len);
            assert_eq!(end(Flavors::NONE).input(&mut cut, &env()), Err(DropReason::BadSrh), "{len} bytes");
        }
    }

    #[test]
    fn another_routing_header_is_not_an_srh() {
        let rpl = [0, 2, 3, 1, 0, 0, 0, 0, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1];
        assert_eq!(through(&end(Flavors::NONE), udp(Packet::to(SID).header(proto::ROUTING, &rpl))).unwrap_err(), DropReason::BadSrh);
    }

    #[test]
    fn with_psp_the_srh_goes_with_its_last_segment() {
        let after = through(&end(Flavors::PSP), udp(Packet::to(SID).srh(1, &[LAST, SID]))).unwrap();
        assert_eq!(after[..], udp(Packet::to(LAST)).build()[..]);
    }

    #[test]
    fn a_shift_wins_over_an_srh_and_an_empty_container_falls_back_to_it() {
        let sid = end(Flavors::NEXT_CSID.union(Flavors::PSP));
        let container = "fcbb:0:100:200:300::".parse().unwrap();
        let shifted = "fcbb:0:200:300::".parse().unwrap();
        let after = through(&sid, udp(Packet::to(container).srh(1, &[LAST, SID]))).unwrap();
        assert_eq!(after[..], udp(Packet::to(shifted).srh(1, &[LAST, SID])).build()[..]);
        let empty = "fcbb:0:100::".parse().unwrap();
        let after = through(&sid, udp(Packet::to(empty).srh(1, &[LAST, SID]))).unwrap();
        assert_eq!(after[..], udp(Packet::to(LAST).srh(0, &[LAST, SID])).build()[..]);
        assert_eq!(through(&sid, udp(Packet::to(empty))).unwrap_err(), DropReason::NoSrh);
    }

    #[test]
    fn flavors_that_linux_does_not_have_are_refused() {
        let error = Sid::build(&DESCRIPTOR, &Attributes { flavors: Flavors::USD, ..Attributes::default() }).unwrap_err();
        assert_eq!(error.to_string(), "End does not support flavor usd; it supports psp,next-csid");
        assert_eq!(error.attr(), Some(Attr::Flavors));
    }
}

//! End.B6: put an SRH of one's own in front and follow it (End.B6.Insert, once in the drafts of RFC 8986).

use std::net::Ipv6Addr;

use port::Buf;
use route::DropReason;

use crate::advance;
use crate::attributes::required;
use crate::descriptor::{Behavior, Descriptor, Uniform};
use crate::{Attr, AttrSet, Attributes, BuildError, Env, Flavors, Inner, Mode, Next, Policy};

/// The row of End.B6.
pub static DESCRIPTOR: Descriptor = Descriptor {
    name: "End.B6",
    number: 9,
    required: AttrSet::of(&[Attr::Srh]),
    optional: AttrSet::of(&[Attr::Count]),
    flavors: Flavors::NONE,
    summary: "Insert an SRH and follow it (End.B6.Insert in drafts of RFC 8986).",
    build,
};

fn build(attributes: &Attributes) -> Result<Box<dyn Behavior>, BuildError> {
    let segments = required(attributes.srh.as_ref(), DESCRIPTOR.name, Attr::Srh)?;
    Ok(Box::new(EndB6 { policy: Policy::build(Mode::Inline, segments, None)? }))
}

/// The SRH that the packet came with stays as it is: this SID becomes the last segment of the new one, so that the packet comes back for it
/// (Linux).
#[derive(Debug)]
struct EndB6 {
    policy: Policy,
}

impl Uniform for EndB6 {
    fn wish(&self) -> Next {
        Next::Onward
    }

    #[inline]
    fn process(&self, buf: &mut Buf, env: &Env<'_>) -> Result<(), DropReason> {
        advance::active(buf, env)?;
        self.policy.apply(buf, Inner::V6, Ipv6Addr::UNSPECIFIED, env)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::*;
    use crate::{SegmentList, Sid};
    use wire::proto;

    fn sid() -> Sid {
        let srh = SegmentList { segments: vec![OTHER, MIDDLE], hmac: 0 };
        Sid::build(&DESCRIPTOR, &Attributes { srh: Some(srh), ..Attributes::default() }).unwrap()
    }

    #[test]
    fn this_sid_becomes_the_last_segment_of_the_new_srh() {
        let mut buf = Packet::to(SID).srh(1, &[LAST, SID]).carrying(proto::UDP, b"eight by").build();
        assert_eq!(sid().input(&mut buf, &env()), Ok(Next::Onward));
        let after = Packet::to(OTHER).srh(2, &[SID, MIDDLE, OTHER]).srh(1, &[LAST, SID]).carrying(proto::UDP, b"eight by");
        assert_eq!(buf[..], after.build()[..]);
    }

    #[test]
    fn a_packet_without_segments_left_is_dropped() {
        let mut buf = Packet::to(SID).srh(0, &[LAST, SID]).carrying(proto::UDP, b"eight by").build();
        assert_eq!(sid().input(&mut buf, &env()), Err(DropReason::NoSrh));
    }
}

//! End.B6.Encaps: go on to the next segment, inside a packet that follows a policy (RFC 8986 §4.13).

use port::Buf;
use route::DropReason;

use crate::advance;
use crate::attributes::required;
use crate::descriptor::{Behavior, Descriptor, Uniform};
use crate::{Attr, AttrSet, Attributes, BuildError, Env, Flavors, Inner, Lookup6, Mode, Next, Policy};

/// The row of End.B6.Encaps.
pub static DESCRIPTOR: Descriptor = Descriptor {
    name: "End.B6.Encaps",
    number: 10,
    required: AttrSet::of(&[Attr::Srh]),
    optional: AttrSet::of(&[Attr::Count]),
    flavors: Flavors::NONE,
    summary: "Go on to the next segment inside a packet that follows a policy (RFC 8986 section 4.13).",
    build,
};

fn build(attributes: &Attributes) -> Result<Box<dyn Behavior>, BuildError> {
    let segments = required(attributes.srh.as_ref(), DESCRIPTOR.name, Attr::Srh)?;
    Ok(Box::new(EndB6Encaps { policy: Policy::build(Mode::Encap, segments, None)? }))
}

#[derive(Debug)]
struct EndB6Encaps {
    policy: Policy,
}

impl Uniform for EndB6Encaps {
    fn wish(&self) -> Next {
        Next::Route6(Lookup6 { configured: true, ..Lookup6::default() })
    }

    #[inline]
    fn process(&self, buf: &mut Buf, env: &Env<'_>) -> Result<(), DropReason> {
        advance::to_next_segment(buf, env)?;
        self.policy.apply(buf, Inner::V6, env.tunsrc, env)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::*;
    use crate::{SegmentList, Sid};
    use wire::proto;

    #[test]
    fn the_packet_advances_before_it_is_encapsulated() {
        let srh = SegmentList { segments: vec![OTHER, MIDDLE], hmac: 0 };
        let sid = Sid::build(&DESCRIPTOR, &Attributes { srh: Some(srh), ..Attributes::default() }).unwrap();
        let mut buf = Packet::to(SID).hop_limit(9).srh(1, &[LAST, SID]).carrying(proto::UDP, b"eight by").build();
        assert_eq!(sid.input(&mut buf, &env()), Ok(Next::Route6(Lookup6 { configured: true, ..Lookup6::default() })));
        let inner = Packet::to(LAST).hop_limit(9).srh(0, &[LAST, SID]).carrying(proto::UDP, b"eight by").build();
        let after = Packet::to(OTHER).from(TUNSRC).hop_limit(9).srh(1, &[MIDDLE, OTHER]).carrying(proto::IPV6, &inner);
        assert_eq!(buf[..], after.build()[..]);
        assert_eq!(sid.to_string(), "action End.B6.Encaps srh segs 2 [ fd03:51:52:53:54:55:56:57 fc01:31:32:33:34:35:36:37 ]");
    }

    #[test]
    fn segments_are_required() {
        let error = Sid::build(&DESCRIPTOR, &Attributes::default()).unwrap_err();
        assert_eq!(error, BuildError::Missing { action: "End.B6.Encaps", attr: Attr::Srh });
        let empty = Attributes { srh: Some(SegmentList::default()), ..Attributes::default() };
        assert_eq!(Sid::build(&DESCRIPTOR, &empty).unwrap_err(), BuildError::NoSegments);
    }
}

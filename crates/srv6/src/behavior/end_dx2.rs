//! End.DX2: decapsulate an Ethernet frame and send it out of a device (RFC 8986 §4.9).

use port::Buf;
use route::{DropReason, IfIndex};

use crate::attributes::required;
use crate::descriptor::{Behavior, Descriptor, Uniform};
use crate::{Attr, AttrSet, Attributes, BuildError, Env, Flavors, Next, decap};

/// The row of End.DX2.
pub static DESCRIPTOR: Descriptor = Descriptor {
    name: "End.DX2",
    number: 4,
    required: AttrSet::of(&[Attr::Oif]),
    optional: AttrSet::of(&[Attr::Count]),
    flavors: Flavors::NONE,
    summary: "Decapsulate an Ethernet frame and send it out of a device (RFC 8986 section 4.9).",
    build,
};

/// Smallest value of an Ethernet header's last field that is a type and no length (IEEE 802.3 §3.2.6).
const FIRST_TYPE: u16 = 0x600;

fn build(attributes: &Attributes) -> Result<Box<dyn Behavior>, BuildError> {
    Ok(Box::new(EndDx2 { port: required(attributes.oif, DESCRIPTOR.name, Attr::Oif)? }))
}

#[derive(Debug)]
struct EndDx2 {
    port: IfIndex,
}

impl Uniform for EndDx2 {
    fn wish(&self) -> Next {
        Next::Frame { port: self.port }
    }

    #[inline]
    fn process(&self, buf: &mut Buf, env: &Env<'_>) -> Result<(), DropReason> {
        decap::to_frame(buf, env)?;
        match buf.get(12..14) {
            Some(&[high, low]) if u16::from_be_bytes([high, low]) >= FIRST_TYPE => Ok(()),
            _ => Err(DropReason::UnknownEtherType),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Sid;
    use crate::testing::*;
    use wire::proto;

    fn input(frame: &[u8]) -> (Result<Next, DropReason>, Buf) {
        let sid = Sid::build(&DESCRIPTOR, &Attributes { oif: Some(IfIndex(4)), ..Attributes::default() }).unwrap();
        let mut buf = Packet::to(SID).srh(0, &[SID]).carrying(proto::ETHERNET, frame).build();
        (sid.input(&mut buf, &env()), buf)
    }

    #[test]
    fn the_frame_comes_out_as_it_was() {
        let frame = [2, 0, 0, 0, 0, 1, 2, 0, 0, 0, 0, 2, 0x08, 0x06, 9, 9];
        let (next, buf) = input(&frame);
        assert_eq!(next, Ok(Next::Frame { port: IfIndex(4) }));
        assert_eq!(buf[..], frame);
        assert_eq!(input(&frame[..13]).0, Err(DropReason::InnerTruncated));
    }

    #[test]
    fn a_length_instead_of_a_type_is_dropped() {
        let mut frame = [2, 0, 0, 0, 0, 1, 2, 0, 0, 0, 0, 2, 0x05, 0xff];
        assert_eq!(input(&frame).0, Err(DropReason::UnknownEtherType));
        (frame[12], frame[13]) = (0x06, 0x00);
        assert!(input(&frame).0.is_ok());
    }
}

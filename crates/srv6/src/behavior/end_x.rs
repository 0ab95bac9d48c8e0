//! End.X: go on to the next segment, by a given neighbour (RFC 8986 §4.2), with the flavour NEXT-C-SID.

use std::net::Ipv6Addr;

use port::Buf;
use route::{DropReason, IfIndex};

use crate::advance;
use crate::attributes::required;
use crate::descriptor::{Behavior, Descriptor, Uniform};
use crate::next_csid::NextCsid;
use crate::{Attr, AttrSet, Attributes, BuildError, Env, Flavors, Lookup6, Next};

/// The row of End.X.
pub static DESCRIPTOR: Descriptor = Descriptor {
    name: "End.X",
    number: 2,
    required: AttrSet::of(&[Attr::Nh6]),
    optional: AttrSet::of(&[Attr::Oif, Attr::Flavors, Attr::Lblen, Attr::Nflen, Attr::Count]),
    flavors: Flavors::NEXT_CSID,
    summary: "Go on to the next segment by a given IPv6 neighbour (RFC 8986 section 4.2).",
    build,
};

fn build(attributes: &Attributes) -> Result<Box<dyn Behavior>, BuildError> {
    let nexthop = required(attributes.nh6, DESCRIPTOR.name, Attr::Nh6)?;
    Ok(Box::new(EndX { nexthop, oif: attributes.oif, csid: NextCsid::build(attributes)? }))
}

/// The neighbour is looked up as if the packet went to it: a link-local one without `oif` is sought on the ingress interface (Linux).
#[derive(Debug)]
struct EndX {
    nexthop: Ipv6Addr,
    oif: Option<IfIndex>,
    csid: Option<NextCsid>,
}

impl Uniform for EndX {
    fn wish(&self) -> Next {
        Next::Route6(Lookup6 { nexthop: Some(self.nexthop), oif: self.oif, ..Lookup6::default() })
    }

    #[inline]
    fn process(&self, buf: &mut Buf, env: &Env<'_>) -> Result<(), DropReason> {
        let shifted = match self.csid {
            Some(csid) => csid.shift(buf)?,
            None => false,
        };
        if !shifted {
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
    use wire::proto;

    fn attributes() -> Attributes {
        Attributes { nh6: Some(OTHER), ..Attributes::default() }
    }

    #[test]
    fn the_packet_goes_to_the_neighbour_with_its_next_segment() {
        let sid = Sid::build(&DESCRIPTOR, &attributes()).unwrap();
        let mut buf = Packet::to(SID).srh(1, &[LAST, SID]).carrying(proto::UDP, b"eight by").build();
        let next = sid.input(&mut buf, &env());
        assert_eq!(next, Ok(Next::Route6(Lookup6 { nexthop: Some(OTHER), ..Lookup6::default() })));
        assert_eq!(buf[..], Packet::to(LAST).srh(0, &[LAST, SID]).carrying(proto::UDP, b"eight by").build()[..]);
    }

    #[test]
    fn fault_a_link_local_neighbour_is_sought_on_the_wrong_link() {
        let sid = Sid::build(&DESCRIPTOR, &Attributes { oif: Some(IfIndex(4)), ..attributes() }).unwrap();
        let mut buf = Packet::to(SID).srh(1, &[LAST, SID]).carrying(proto::UDP, b"eight by").build();
        let Ok(Next::Route6(lookup)) = sid.input(&mut buf, &env()) else { panic!("no lookup") };
        assert_eq!(lookup.oif, Some(IfIndex(4)));
        assert_eq!(sid.to_string(), "action End.X nh6 fd03:51:52:53:54:55:56:57 oif if4");
    }

    #[test]
    fn a_compressed_sid_is_shifted_in_place() {
        let sid =
            Sid::build(&DESCRIPTOR, &Attributes { flavors: Flavors::NEXT_CSID, lblen: Some(48), nflen: Some(16), ..attributes() }).unwrap();
        let mut buf = Packet::to("fcbb:1:2:3:4::".parse().unwrap()).carrying(proto::UDP, b"eight by").build();
        assert!(sid.input(&mut buf, &env()).is_ok());
        assert_eq!(buf[..], Packet::to("fcbb:1:2:4::".parse().unwrap()).carrying(proto::UDP, b"eight by").build()[..]);
        assert!(sid.to_string().ends_with(" flavors next-csid lblen 48 nflen 16"), "{sid}");
    }

    #[test]
    fn psp_and_a_missing_neighbour_are_refused() {
        let psp = Sid::build(&DESCRIPTOR, &Attributes { flavors: Flavors::PSP, ..attributes() }).unwrap_err();
        assert_eq!(psp.to_string(), "End.X does not support flavor psp; it supports next-csid");
        let missing = Sid::build(&DESCRIPTOR, &Attributes::default()).unwrap_err();
        assert!(missing.to_string().starts_with("End.X needs `nh6 ADDRESS`"), "{missing}");
    }
}

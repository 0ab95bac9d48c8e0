//! End.DT46: decapsulate an IPv4 or IPv6 packet into a VRF (RFC 8986 §4.8).

use port::Buf;
use route::{DropReason, TableId};
use wire::ext::{self, Target};
use wire::proto;

use crate::attributes::required;
use crate::descriptor::{Behavior, Descriptor};
use crate::{Attr, AttrSet, Attributes, BuildError, Env, Flavors, Lookup4, Lookup6, Next, decap};

/// The row of End.DT46.
pub static DESCRIPTOR: Descriptor = Descriptor {
    name: "End.DT46",
    number: 16,
    required: AttrSet::of(&[Attr::VrfTable]),
    optional: AttrSet::of(&[Attr::Count]),
    flavors: Flavors::NONE,
    summary: "Decapsulate an IPv4 or IPv6 packet into a VRF (RFC 8986 section 4.8).",
    build,
};

fn build(attributes: &Attributes) -> Result<Box<dyn Behavior>, BuildError> {
    Ok(Box::new(EndDt46 { vrf: required(attributes.vrftable, DESCRIPTOR.name, Attr::VrfTable)? }))
}

#[derive(Debug)]
struct EndDt46 {
    vrf: TableId,
}

impl Behavior for EndDt46 {
    fn input(&self, buf: &mut Buf, env: &Env<'_>) -> Result<Next, DropReason> {
        let upper = ext::find(buf, Target::Upper).map_err(|_| DropReason::BadExtensionHeader)?;
        match upper.proto {
            proto::IPIP => {
                decap::to_ipv4(buf, env)?;
                Ok(Next::Route4(Lookup4 { nexthop: None, vrf: Some(self.vrf) }))
            }
            proto::IPV6 => {
                decap::to_ipv6(buf, env)?;
                Ok(Next::Route6(Lookup6 { vrf: Some(self.vrf), local: true, ..Lookup6::default() }))
            }
            _ => Err(DropReason::WrongPayload),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Sid;
    use crate::testing::*;

    fn sid(flavors: Flavors) -> Sid {
        Sid::build(&DESCRIPTOR, &Attributes { vrftable: Some(TableId(20)), flavors, ..Attributes::default() }).unwrap()
    }

    #[test]
    fn either_version_enters_the_vrf() {
        let inner = Packet::to(LAST).carrying(proto::UDP, b"eight by").build();
        let mut buf = Packet::to(SID).srh(0, &[SID]).carrying(proto::IPV6, &inner).build();
        let next = sid(Flavors::NONE).input(&mut buf, &env());
        assert_eq!(next, Ok(Next::Route6(Lookup6 { vrf: Some(TableId(20)), local: true, ..Lookup6::default() })));
        let mut buf = Packet::to(SID).srh(0, &[SID]).carrying(proto::IPIP, &[0x45; 20]).build();
        assert_eq!(sid(Flavors::NONE).input(&mut buf, &env()), Ok(Next::Route4(Lookup4 { nexthop: None, vrf: Some(TableId(20)) })));
        let mut buf = Packet::to(SID).carrying(proto::UDP, &[0; 40]).build();
        assert_eq!(sid(Flavors::NONE).input(&mut buf, &env()), Err(DropReason::WrongPayload));
    }

    #[test]
    fn flavors_are_accepted_and_ignored_as_in_linux() {
        let sid = sid(Flavors::PSP.union(Flavors::NEXT_CSID));
        assert_eq!(sid.ignored(), AttrSet::of(&[Attr::Flavors]));
        assert_eq!(sid.to_string(), "action End.DT46 vrftable 20");
    }
}

//! End.DT4: decapsulate an IPv4 packet into a VRF (RFC 8986 §4.7).

use port::Buf;
use route::{DropReason, TableId};

use crate::attributes::required;
use crate::descriptor::{Behavior, Descriptor, Uniform};
use crate::{Attr, AttrSet, Attributes, BuildError, Env, Flavors, Lookup4, Next, decap};

/// The row of End.DT4.
pub static DESCRIPTOR: Descriptor = Descriptor {
    name: "End.DT4",
    number: 8,
    required: AttrSet::of(&[Attr::VrfTable]),
    optional: AttrSet::of(&[Attr::Count]),
    flavors: Flavors::NONE,
    summary: "Decapsulate an IPv4 packet into a VRF (RFC 8986 section 4.7).",
    build,
};

fn build(attributes: &Attributes) -> Result<Box<dyn Behavior>, BuildError> {
    Ok(Box::new(EndDt4 { vrf: required(attributes.vrftable, DESCRIPTOR.name, Attr::VrfTable)? }))
}

/// The packet enters the VRF of this table.
#[derive(Debug)]
pub(super) struct EndDt4 {
    pub(super) vrf: TableId,
}

impl Uniform for EndDt4 {
    fn wish(&self) -> Next {
        Next::Route4(Lookup4 { nexthop: None, vrf: Some(self.vrf) })
    }

    #[inline]
    fn process(&self, buf: &mut Buf, env: &Env<'_>) -> Result<(), DropReason> {
        decap::to_ipv4(buf, env)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Sid;
    use crate::testing::*;
    use wire::proto;

    #[test]
    fn the_inner_packet_enters_the_vrf() {
        let sid = Sid::build(&DESCRIPTOR, &Attributes { vrftable: Some(TableId(10)), ..Attributes::default() }).unwrap();
        let mut buf = Packet::to(SID).carrying(proto::IPIP, &[0x45; 28]).build();
        assert_eq!(sid.input(&mut buf, &env()), Ok(Next::Route4(Lookup4 { nexthop: None, vrf: Some(TableId(10)) })));
        assert_eq!(buf[..], [0x45; 28]);
        assert_eq!(sid.to_string(), "action End.DT4 vrftable 10");
    }

    #[test]
    fn a_table_is_not_enough() {
        let error = Sid::build(&DESCRIPTOR, &Attributes { table: Some(TableId(10)), ..Attributes::default() }).unwrap_err();
        assert_eq!(error.to_string(), "End.DT4 needs `vrftable N`, the table of the VRF that the inner packet enters");
    }
}

//! End.DT6: decapsulate an IPv6 packet into a VRF, or look it up in a table (RFC 8986 §4.6).

use port::Buf;
use route::{DropReason, TableId};

use crate::descriptor::{Behavior, Descriptor, Uniform};
use crate::{Attr, AttrSet, Attributes, BuildError, Env, Flavors, Lookup6, Next, decap};

/// The row of End.DT6.
pub static DESCRIPTOR: Descriptor = Descriptor {
    name: "End.DT6",
    number: 7,
    required: AttrSet::NONE,
    optional: AttrSet::of(&[Attr::Table, Attr::VrfTable, Attr::Count]),
    flavors: Flavors::NONE,
    summary: "Decapsulate an IPv6 packet into a VRF, or look it up in a table (RFC 8986 section 4.6).",
    build,
};

fn build(attributes: &Attributes) -> Result<Box<dyn Behavior>, BuildError> {
    if attributes.table.is_some() == attributes.vrftable.is_some() {
        return Err(BuildError::TableOrVrf { action: DESCRIPTOR.name });
    }
    Ok(Box::new(EndDt6::new(attributes.table, attributes.vrftable)))
}

/// `table` is a plain lookup there; `vrftable` puts the packet into the VRF, whose own addresses answer.
#[derive(Debug)]
pub(super) struct EndDt6 {
    lookup: Lookup6,
}

impl EndDt6 {
    /// With one of the two.
    pub(super) fn new(table: Option<TableId>, vrf: Option<TableId>) -> EndDt6 {
        EndDt6 { lookup: Lookup6 { table, vrf, local: true, ..Lookup6::default() } }
    }
}

impl Uniform for EndDt6 {
    fn wish(&self) -> Next {
        Next::Route6(self.lookup)
    }

    #[inline]
    fn process(&self, buf: &mut Buf, env: &Env<'_>) -> Result<(), DropReason> {
        decap::to_ipv6(buf, env)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Sid;
    use crate::testing::*;
    use route::TableId;
    use wire::proto;

    fn lookup(table: Option<u32>, vrftable: Option<u32>) -> Result<Lookup6, BuildError> {
        let attributes = Attributes { table: table.map(TableId), vrftable: vrftable.map(TableId), ..Attributes::default() };
        let sid = Sid::build(&DESCRIPTOR, &attributes)?;
        let inner = Packet::to(LAST).carrying(proto::UDP, b"eight by").build();
        let mut buf = Packet::to(SID).carrying(proto::IPV6, &inner).build();
        let Ok(Next::Route6(lookup)) = sid.input(&mut buf, &env()) else { panic!("not routed") };
        assert_eq!(buf[..], inner[..]);
        Ok(lookup)
    }

    #[test]
    fn fault_table_taken_for_vrftable() {
        assert_eq!(lookup(Some(10), None), Ok(Lookup6 { table: Some(TableId(10)), local: true, ..Lookup6::default() }));
        assert_eq!(lookup(None, Some(10)), Ok(Lookup6 { vrf: Some(TableId(10)), local: true, ..Lookup6::default() }));
    }

    #[test]
    fn exactly_one_of_table_and_vrftable_is_taken() {
        let error = BuildError::TableOrVrf { action: "End.DT6" };
        assert_eq!(lookup(None, None), Err(error.clone()));
        assert_eq!(lookup(Some(10), Some(10)), Err(error));
    }
}

//! End.T: go on to the next segment, by a given table (RFC 8986 §4.3).

use port::Buf;
use route::{DropReason, TableId};

use crate::advance;
use crate::attributes::required;
use crate::descriptor::{Behavior, Descriptor, Uniform};
use crate::{Attr, AttrSet, Attributes, BuildError, Env, Flavors, Lookup6, Next};

/// The row of End.T.
pub static DESCRIPTOR: Descriptor = Descriptor {
    name: "End.T",
    number: 3,
    required: AttrSet::of(&[Attr::Table]),
    optional: AttrSet::of(&[Attr::Count]),
    flavors: Flavors::NONE,
    summary: "Go on to the next segment by a given table (RFC 8986 section 4.3).",
    build,
};

fn build(attributes: &Attributes) -> Result<Box<dyn Behavior>, BuildError> {
    Ok(Box::new(EndT { table: required(attributes.table, DESCRIPTOR.name, Attr::Table)? }))
}

#[derive(Debug)]
struct EndT {
    table: TableId,
}

impl Uniform for EndT {
    fn wish(&self) -> Next {
        Next::Route6(Lookup6 { table: Some(self.table), ..Lookup6::default() })
    }

    #[inline]
    fn process(&self, buf: &mut Buf, env: &Env<'_>) -> Result<(), DropReason> {
        advance::to_next_segment(buf, env)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Sid;
    use crate::testing::*;
    use wire::proto;

    #[test]
    fn only_the_table_is_asked() {
        let sid = Sid::build(&DESCRIPTOR, &Attributes { table: Some(TableId(501)), ..Attributes::default() }).unwrap();
        let mut buf = Packet::to(SID).srh(1, &[LAST, SID]).carrying(proto::UDP, b"eight by").build();
        let next = sid.input(&mut buf, &env());
        assert_eq!(next, Ok(Next::Route6(Lookup6 { table: Some(TableId(501)), ..Lookup6::default() })));
        assert_eq!(buf[..], Packet::to(LAST).srh(0, &[LAST, SID]).carrying(proto::UDP, b"eight by").build()[..]);
        assert_eq!(sid.to_string(), "action End.T table 501");
    }
}

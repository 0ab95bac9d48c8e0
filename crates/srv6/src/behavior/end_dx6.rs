//! End.DX6: decapsulate an IPv6 packet and send it to a neighbour (RFC 8986 §4.4).

use std::net::Ipv6Addr;

use port::Buf;
use route::DropReason;

use crate::attributes::required;
use crate::descriptor::{Behavior, Descriptor, Uniform};
use crate::{Attr, AttrSet, Attributes, BuildError, Env, Flavors, Lookup6, Next, decap};

/// The row of End.DX6.
pub static DESCRIPTOR: Descriptor = Descriptor {
    name: "End.DX6",
    number: 5,
    required: AttrSet::of(&[Attr::Nh6]),
    optional: AttrSet::of(&[Attr::Count]),
    flavors: Flavors::NONE,
    summary: "Decapsulate an IPv6 packet and send it to a neighbour (RFC 8986 section 4.4).",
    build,
};

fn build(attributes: &Attributes) -> Result<Box<dyn Behavior>, BuildError> {
    let nexthop = required(attributes.nh6, DESCRIPTOR.name, Attr::Nh6)?;
    Ok(Box::new(EndDx6 { nexthop: Some(nexthop).filter(|nexthop| !nexthop.is_unspecified()) }))
}

/// Without a neighbour (`nh6 ::`) the inner destination decides.
#[derive(Debug)]
struct EndDx6 {
    nexthop: Option<Ipv6Addr>,
}

impl Uniform for EndDx6 {
    fn wish(&self) -> Next {
        Next::Route6(Lookup6 { nexthop: self.nexthop, ..Lookup6::default() })
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
    use wire::proto;

    fn next(nh6: Ipv6Addr) -> Result<Next, DropReason> {
        let sid = Sid::build(&DESCRIPTOR, &Attributes { nh6: Some(nh6), ..Attributes::default() }).unwrap();
        let inner = Packet::to(LAST).carrying(proto::UDP, b"eight by").build();
        let mut buf = Packet::to(SID).srh(0, &[SID]).carrying(proto::IPV6, &inner).build();
        let next = sid.input(&mut buf, &env());
        assert_eq!(buf[..], inner[..]);
        next
    }

    #[test]
    fn the_neighbour_is_looked_up_unless_it_is_zero() {
        assert_eq!(next(OTHER), Ok(Next::Route6(Lookup6 { nexthop: Some(OTHER), ..Lookup6::default() })));
        assert_eq!(next(Ipv6Addr::UNSPECIFIED), Ok(Next::Route6(Lookup6::default())));
    }
}

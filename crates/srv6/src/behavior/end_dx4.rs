//! End.DX4: decapsulate an IPv4 packet and send it to a neighbour (RFC 8986 §4.5).

use std::net::Ipv4Addr;

use port::Buf;
use route::DropReason;

use crate::attributes::required;
use crate::descriptor::{Behavior, Descriptor, Uniform};
use crate::{Attr, AttrSet, Attributes, BuildError, Env, Flavors, Lookup4, Next, decap};

/// The row of End.DX4.
pub static DESCRIPTOR: Descriptor = Descriptor {
    name: "End.DX4",
    number: 6,
    required: AttrSet::of(&[Attr::Nh4]),
    optional: AttrSet::of(&[Attr::Count]),
    flavors: Flavors::NONE,
    summary: "Decapsulate an IPv4 packet and send it to a neighbour (RFC 8986 section 4.5).",
    build,
};

fn build(attributes: &Attributes) -> Result<Box<dyn Behavior>, BuildError> {
    let nexthop = required(attributes.nh4, DESCRIPTOR.name, Attr::Nh4)?;
    Ok(Box::new(EndDx4 { nexthop: Some(nexthop).filter(|nexthop| !nexthop.is_unspecified()) }))
}

/// Without a neighbour (`nh4 0.0.0.0`) the inner destination decides.
#[derive(Debug)]
struct EndDx4 {
    nexthop: Option<Ipv4Addr>,
}

impl Uniform for EndDx4 {
    fn wish(&self) -> Next {
        Next::Route4(Lookup4 { nexthop: self.nexthop, vrf: None })
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

    fn next(nh4: [u8; 4]) -> Result<Next, DropReason> {
        let sid = Sid::build(&DESCRIPTOR, &Attributes { nh4: Some(nh4.into()), ..Attributes::default() }).unwrap();
        let mut buf = Packet::to(SID).carrying(proto::IPIP, &[0x45; 20]).build();
        let next = sid.input(&mut buf, &env());
        assert_eq!(buf[..], [0x45; 20]);
        next
    }

    #[test]
    fn the_neighbour_is_looked_up_unless_it_is_zero() {
        assert_eq!(next([10, 0, 3, 2]), Ok(Next::Route4(Lookup4 { nexthop: Some([10, 0, 3, 2].into()), vrf: None })));
        assert_eq!(next([0; 4]), Ok(Next::Route4(Lookup4::default())));
    }
}

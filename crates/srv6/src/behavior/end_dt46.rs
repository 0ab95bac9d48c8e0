//! End.DT46: decapsulate an IPv4 or IPv6 packet into a VRF (RFC 8986 §4.8).

use port::Buf;
use route::DropReason;
use wire::ext::{self, Target};
use wire::{ipv6, proto};

use super::end_dt4::EndDt4;
use super::end_dt6::EndDt6;
use crate::attributes::required;
use crate::descriptor::{Behavior, Descriptor};
use crate::{Attr, AttrSet, Attributes, Batch, BuildError, Env, Flavors, Next};

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
    let vrf = required(attributes.vrftable, DESCRIPTOR.name, Attr::VrfTable)?;
    Ok(Box::new(EndDt46 { v4: EndDt4 { vrf }, v6: EndDt6::new(None, Some(vrf)) }))
}

#[derive(Debug)]
struct EndDt46 {
    v4: EndDt4,
    v6: EndDt6,
}

impl EndDt46 {
    /// What is to be done with a packet that carries `payload`.
    fn of(&self, payload: Option<u8>) -> Result<&dyn Behavior, DropReason> {
        match payload {
            Some(proto::IPIP) => Ok(&self.v4),
            Some(proto::IPV6) => Ok(&self.v6),
            Some(_) => Err(DropReason::WrongPayload),
            None => Err(DropReason::BadExtensionHeader),
        }
    }
}

impl Behavior for EndDt46 {
    fn input(&self, bufs: &mut [Buf], env: &Env<'_>) -> Batch {
        let Some(first) = bufs.first().map(|buf| payload(buf)) else { return Batch::new(Next::Onward) };
        let alike = bufs.iter().take_while(|buf| payload(buf) == first).count();
        match self.of(first) {
            Ok(behavior) => behavior.input(&mut bufs[..alike], env),
            Err(reason) => Batch { failed: Some(reason), ..Batch::new(Next::Onward) },
        }
    }
}

/// The protocol of the first header that is no extension header; none when the packet ends before it.
#[inline]
fn payload(packet: &[u8]) -> Option<u8> {
    // Most have nothing between the two headers.
    match ipv6::Header::read(packet)?.next_header {
        inner @ (proto::IPIP | proto::IPV6) => Some(inner),
        _ => Some(ext::find(packet, Target::Upper).ok()?.proto),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::*;
    use crate::{Lookup4, Lookup6, Sid};
    use route::TableId;

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

    #[test]
    fn packets_are_taken_together_as_far_as_they_carry_the_same() {
        let carrying = |payload, bytes: &[u8]| Packet::to(SID).carrying(payload, bytes).build();
        let v4 = carrying(proto::IPIP, &[0x45; 20]);
        let mut bufs =
            [v4.clone(), v4, carrying(proto::IPV6, &[0x60; 40]), carrying(proto::UDP, &[0; 8]), carrying(proto::IPIP, &[0x45; 19])];
        let sid = sid(Flavors::NONE);
        let mut went = Vec::new();
        let mut at = 0;
        while at < bufs.len() {
            let batch = sid.input_all(&mut bufs[at..], &env());
            at += batch.packets + usize::from(batch.failed.is_some());
            went.push((batch.packets, batch.bytes, batch.failed));
        }
        let wrong = (0, 0, Some(DropReason::WrongPayload));
        assert_eq!(went, [(2, 120, None), (1, 80, None), wrong, (0, 0, Some(DropReason::InnerTruncated))]);
    }
}

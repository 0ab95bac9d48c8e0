//! `RTM_NEWNEXTHOP`, `RTM_DELNEXTHOP`, `RTM_NEWNEXTHOPBUCKET`: nexthop objects (`ip nexthop`), which routes name by number, and buckets of resilient groups.

use std::num::NonZeroU16;

use route::{IfIndex, ResilientSpec};

use super::encap::encap;
use super::route::Way;
use super::{AF_INET6, attribute, attributes, ip, u8_at, u16_at, u32_at, u32_of};
use crate::mirror::Reason;

/// `struct nhmsg`.
const HEADER_LEN: usize = 8;
const NHA_ID: u16 = 1;
const NHA_GROUP: u16 = 2;
const NHA_GROUP_TYPE: u16 = 3;
const NHA_BLACKHOLE: u16 = 4;
const NHA_OIF: u16 = 5;
const NHA_GATEWAY: u16 = 6;
const NHA_ENCAP_TYPE: u16 = 7;
const NHA_ENCAP: u16 = 8;
const NHA_FDB: u16 = 11;
const NHA_RES_GROUP: u16 = 12;
const NHA_RES_BUCKET: u16 = 13;
const NHA_RES_GROUP_BUCKETS: u16 = 1;
const NHA_RES_GROUP_IDLE_TIMER: u16 = 2;
const NHA_RES_GROUP_UNBALANCED_TIMER: u16 = 3;
const NHA_RES_BUCKET_INDEX: u16 = 1;
const NHA_RES_BUCKET_NH_ID: u16 = 3;
const RTNH_F_DEAD: u32 = 1;
const RTNH_F_ONLINK: u32 = 4;
/// `NEXTHOP_GRP_TYPE_MPATH`.
const GROUP_MULTIPATH: u16 = 0;
/// `NEXTHOP_GRP_TYPE_RES`.
const GROUP_RESILIENT: u16 = 1;

/// A nexthop object of the kernel.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct KernelNexthop {
    /// It is of family IPv6.
    pub v6: bool,
    /// Protocol number (`proto`).
    pub protocol: u8,
    /// What it is.
    pub is: Nexthop,
}

/// What a nexthop object is.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Nexthop {
    /// One way out.
    Way(Way),
    /// Several others, by number, each with its weight; what is said of a resilient group. Who has its buckets is told apart.
    Group(Vec<(u32, u16)>, Option<ResilientSpec>),
    /// Packets are dropped.
    Blackhole,
    /// Packets of its routes are left to the kernel.
    Unsupported(Reason),
}

/// Reads a nexthop object and its number.
pub fn nexthop(body: &[u8]) -> Option<(u32, KernelNexthop)> {
    let flags = u32_at(body, 4)?;
    let (mut id, mut group, mut group_type, mut blackhole, mut fdb) = (None, None, None, false, false);
    let mut resilient = ResilientSpec::default();
    let (mut oif, mut gateway, mut encap_type, mut encap_value) = (None, None, None, None);
    for (kind, value) in attributes(body.get(HEADER_LEN..)?) {
        match kind {
            NHA_ID => id = u32_of(value),
            NHA_GROUP => group = Some(value),
            NHA_GROUP_TYPE => group_type = u16_at(value, 0),
            NHA_BLACKHOLE => blackhole = true,
            NHA_FDB => fdb = true,
            NHA_OIF => oif = u32_of(value),
            NHA_GATEWAY => gateway = Some(ip(value)),
            NHA_ENCAP_TYPE => encap_type = u16_at(value, 0),
            NHA_ENCAP => encap_value = Some(value),
            NHA_RES_GROUP => resilient = resilient_spec(value),
            // The others (counters) change no packet's way.
            _ => {}
        }
    }
    let is = match (group, oif, gateway) {
        _ if fdb => Nexthop::Unsupported(Reason::Nexthop("it is one of a forwarding database (fdb)")),
        _ if blackhole => Nexthop::Blackhole,
        (Some(members), ..) => {
            let members = members.chunks_exact(8).filter_map(member).collect();
            match group_type.unwrap_or(GROUP_MULTIPATH) {
                GROUP_MULTIPATH => Nexthop::Group(members, None),
                GROUP_RESILIENT if resilient.buckets.is_some() => Nexthop::Group(members, Some(resilient)),
                GROUP_RESILIENT => Nexthop::Unsupported(Reason::Malformed("buckets of a nexthop group")),
                _ => Nexthop::Unsupported(Reason::Nexthop("it is a group that is neither of type mpath nor resilient")),
            }
        }
        (None, _, Some(None)) => Nexthop::Unsupported(Reason::Malformed("gateway of a nexthop")),
        (None, Some(dev), gateway) => {
            let encap = encap(encap_type, encap_value).map(Box::new);
            let (dead, onlink) = (flags & RTNH_F_DEAD != 0, flags & RTNH_F_ONLINK != 0);
            Nexthop::Way(Way { dev: IfIndex(dev), via: gateway.flatten(), weight: 1, dead, onlink, encap })
        }
        (None, None, _) => Nexthop::Unsupported(Reason::Nexthop("it has no device")),
    };
    Some((id?, KernelNexthop { v6: u8_at(body, 0)? == AF_INET6, protocol: u8_at(body, 2)?, is }))
}

/// What is said of a resilient group. How long it has been out of balance is not kept: it would differ each time that it is told.
fn resilient_spec(nested: &[u8]) -> ResilientSpec {
    let mut spec = ResilientSpec::default();
    for (kind, value) in attributes(nested) {
        match kind {
            NHA_RES_GROUP_BUCKETS => spec.buckets = u16_at(value, 0).and_then(NonZeroU16::new),
            NHA_RES_GROUP_IDLE_TIMER => spec.idle_timer = u32_of(value),
            NHA_RES_GROUP_UNBALANCED_TIMER => spec.unbalanced_timer = u32_of(value),
            _ => {}
        }
    }
    spec
}

/// Reads who has a bucket of a resilient group: the group, the bucket, the member.
pub fn bucket(body: &[u8]) -> Option<(u32, u16, u32)> {
    let body = body.get(HEADER_LEN..)?;
    let nested = attribute(body, NHA_RES_BUCKET)?;
    let index = u16_at(attribute(nested, NHA_RES_BUCKET_INDEX)?, 0)?;
    Some((u32_of(attribute(body, NHA_ID)?)?, index, u32_of(attribute(nested, NHA_RES_BUCKET_NH_ID)?)?))
}

/// `struct nexthop_grp`: number, weight less one, high byte of the weight (Linux 6.12).
fn member(bytes: &[u8]) -> Option<(u32, u16)> {
    let weight = u16::from_le_bytes([u8_at(bytes, 4)?, u8_at(bytes, 5)?]);
    Some((u32_at(bytes, 0)?, weight.saturating_add(1)))
}

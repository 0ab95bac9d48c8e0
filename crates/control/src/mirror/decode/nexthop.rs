//! `RTM_NEWNEXTHOP`, `RTM_DELNEXTHOP`: nexthop objects (`ip nexthop`), which routes name by number.

use route::IfIndex;

use super::encap::encap;
use super::route::Way;
use super::{AF_INET6, attributes, ip, u8_at, u16_at, u32_at, u32_of};
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
const RTNH_F_DEAD: u32 = 1;
const RTNH_F_ONLINK: u32 = 4;
/// `NEXTHOP_GRP_TYPE_MPATH`.
const GROUP_MULTIPATH: u16 = 0;

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
    /// Several others, by number, each with its weight.
    Group(Vec<(u32, u16)>),
    /// Packets are dropped.
    Blackhole,
    /// Packets of its routes are left to the kernel.
    Unsupported(Reason),
}

/// Reads a nexthop object and its number.
pub fn nexthop(body: &[u8]) -> Option<(u32, KernelNexthop)> {
    let flags = u32_at(body, 4)?;
    let (mut id, mut group, mut group_type, mut blackhole, mut fdb) = (None, None, None, false, false);
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
            // The others (members of resilient groups, counters) change no packet's way.
            _ => {}
        }
    }
    let is = match (group, oif, gateway) {
        _ if fdb => Nexthop::Unsupported(Reason::Nexthop("it is one of a forwarding database (fdb)")),
        _ if blackhole => Nexthop::Blackhole,
        (Some(_), ..) if group_type.is_some_and(|kind| kind != GROUP_MULTIPATH) => {
            Nexthop::Unsupported(Reason::Nexthop("it is a group that is not of type mpath (resilient)"))
        }
        (Some(members), ..) => Nexthop::Group(members.chunks_exact(8).filter_map(member).collect()),
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

/// `struct nexthop_grp`: number, weight less one, high byte of the weight (Linux 6.12).
fn member(bytes: &[u8]) -> Option<(u32, u16)> {
    let weight = u16::from_le_bytes([u8_at(bytes, 4)?, u8_at(bytes, 5)?]);
    Some((u32_at(bytes, 0)?, weight.saturating_add(1)))
}

//! `RTA_ENCAP`, `NHA_ENCAP`: what a way out does to a packet, one file a kind.

use std::net::Ipv6Addr;

use route::TableId;
use srv6::{Attributes, Mode, SegmentList};

use super::{seg6, seg6local};
use crate::mirror::Reason;

const LWTUNNEL_ENCAP_SEG6: u16 = 5;
const LWTUNNEL_ENCAP_SEG6_LOCAL: u16 = 7;

/// What a way out does to a packet.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Encap {
    /// `encap seg6`.
    Seg6 {
        /// How segments are put on.
        mode: Mode,
        /// The segments.
        segments: SegmentList,
        /// The route's own source of outer headers.
        tunsrc: Option<Ipv6Addr>,
        /// The table that the first segment is looked up in.
        table: Option<TableId>,
    },
    /// `encap seg6local`.
    Seg6Local {
        /// The kernel's number of the action.
        action: u32,
        /// Its attributes.
        attributes: Attributes,
    },
    /// Something that packets are left to the kernel for.
    Unsupported(Reason),
}

/// Reads what the attributes for kind and value say together. None when there is none.
pub fn encap(kind: Option<u16>, value: Option<&[u8]>) -> Option<Encap> {
    let read = match (kind?, value.unwrap_or_default()) {
        (0, _) => return None,
        (LWTUNNEL_ENCAP_SEG6, value) => seg6::seg6(value),
        (LWTUNNEL_ENCAP_SEG6_LOCAL, value) => seg6local::seg6local(value),
        (other, _) => Err(Reason::Encap(name(other))),
    };
    Some(read.unwrap_or_else(Encap::Unsupported))
}

/// The name that `ip route` has for a kind.
fn name(kind: u16) -> &'static str {
    const NAMES: [&str; 11] = ["none", "mpls", "ip", "ila", "ip6", "seg6", "bpf", "seg6local", "rpl", "ioam6", "xfrm"];
    NAMES.get(usize::from(kind)).copied().unwrap_or("of an unknown kind")
}

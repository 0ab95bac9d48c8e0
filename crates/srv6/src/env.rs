//! What behaviours and headends take from the router around them.

use std::net::Ipv6Addr;

use crate::HmacKeys;

/// What a packet's processing depends on beside the packet and the route.
#[derive(Clone, Copy, Debug)]
pub struct Env<'a> {
    /// Keys that sign and verify segment lists.
    pub hmac_keys: &'a HmacKeys,
    /// `seg6_require_hmac` of the ingress interface: -1 never looks, 0 checks an HMAC that is there, 1 requires one.
    pub require_hmac: i8,
    /// `net.ipv6.seg6_flowlabel`.
    pub flow_label: FlowLabel,
    /// Hash over the flow of the packet that starts with the given bytes (an IP header); its 20 low bits become a flow label.
    pub flow_hash: fn(&[u8]) -> u32,
    /// Source of the outer headers that End.B6.Encaps makes.
    pub tunsrc: Ipv6Addr,
    /// Bytes of link header just in front of the buffer, still in its headroom; 0 when the port has none.
    pub l2_len: usize,
}

/// Which flow label an outer header gets (`net.ipv6.seg6_flowlabel`).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum FlowLabel {
    /// -1: zero.
    Zero,
    /// 0: that of an inner IPv6 packet, zero around others.
    #[default]
    Inherit,
    /// 1: a hash over the inner flow.
    Hash,
}

impl FlowLabel {
    /// The meaning of the sysctl's value.
    pub fn from_sysctl(value: i32) -> FlowLabel {
        match value {
            ..0 => FlowLabel::Zero,
            0 => FlowLabel::Inherit,
            1.. => FlowLabel::Hash,
        }
    }

    /// The sysctl's value.
    pub fn sysctl(self) -> i32 {
        match self {
            FlowLabel::Zero => -1,
            FlowLabel::Inherit => 0,
            FlowLabel::Hash => 1,
        }
    }
}

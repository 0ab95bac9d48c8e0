//! What a lookup depends on.

use crate::{Address, IfIndex, TableId};

/// What a lookup depends on.
#[derive(Clone, Copy, Debug)]
pub struct Flow<A> {
    /// Destination.
    pub dst: A,
    /// Source, unspecified when not yet chosen.
    pub src: A,
    /// Interface the packet came in by; `lo` for packets that the router makes.
    pub iif: IfIndex,
    /// VRF device of the packet's interface, `IfIndex(0)` when it has none.
    pub vrf: IfIndex,
    /// Table of that VRF.
    pub vrf_table: Option<TableId>,
    /// The interface that a link-scoped destination lies on.
    pub link: IfIndex,
    /// The interface that a packet of the router's own is bound to, `IfIndex(0)` for all others.
    pub oif: IfIndex,
    /// Only a route that leaves by `oif` is one (Linux `RT6_LOOKUP_F_IFACE`).
    pub bound: bool,
    /// The packet's mark.
    pub mark: u32,
    /// DSCP and ECN as they stand in the header: TOS of IPv4, traffic class of IPv6.
    pub dsfield: u8,
    /// Rules may look at the source: IPv6 looks a packet's next segment up without.
    pub from_known: bool,
    /// The upper layer.
    pub upper: Upper,
}

/// Protocol and ports of a packet, as rules see them: 0 where it has none, or none that can be read.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Default)]
pub struct Upper {
    /// Protocol behind the extension headers.
    pub protocol: u8,
    /// Source port.
    pub sport: u16,
    /// Destination port.
    pub dport: u16,
}

impl<A: Address> Flow<A> {
    /// To `dst`, for a packet that came in by `iif`, outside of VRFs; nothing else is known of it.
    pub fn new(dst: A, iif: IfIndex) -> Flow<A> {
        Flow {
            dst,
            src: A::UNSPECIFIED,
            iif,
            vrf: IfIndex(0),
            vrf_table: None,
            link: iif,
            oif: IfIndex(0),
            bound: false,
            mark: 0,
            dsfield: 0,
            from_known: true,
            upper: Upper::default(),
        }
    }
}

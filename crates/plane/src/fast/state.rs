//! What is known of a packet on the short way, beside its bytes.

use route::IfIndex;

/// A packet's state between two lookups.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct State {
    /// The interface it came in by.
    pub(super) iif: IfIndex,
    /// The interface it is on: `iif`, or a VRF device.
    pub(super) dev: IfIndex,
    /// The address asked for is a SID's nexthop, not the packet's destination.
    pub(super) nexthop: bool,
    /// The answer may be the router itself.
    pub(super) local: bool,
    /// Its Ethernet header stands in front of it still.
    pub(super) framed: bool,
    /// A SID asks for it.
    pub(super) by_sid: bool,
}

impl State {
    /// That of a packet that came in by `iif` and is on `dev`.
    pub(super) fn new(iif: IfIndex, dev: IfIndex) -> State {
        State { iif, dev, nexthop: false, local: true, framed: true, by_sid: false }
    }

    /// That of a packet whose headers a SID or a policy changed.
    pub(super) fn changed(self, by_sid: bool) -> State {
        State { nexthop: false, framed: false, by_sid, ..self }
    }
}

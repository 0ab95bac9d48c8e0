//! What is known of a packet on the short way, beside its bytes.

use route::IfIndex;

/// A packet's state between two lookups.
#[derive(Clone, Copy, Debug)]
pub(super) struct State {
    /// The interface it came in by.
    pub(super) iif: IfIndex,
    /// The interface it is on: `iif`, or a VRF device.
    pub(super) dev: IfIndex,
    /// Lookups so far, the one under way counted.
    pub(super) lookups: u8,
    /// The address asked for is a SID's nexthop, not the packet's destination.
    pub(super) nexthop: bool,
    /// The answer may be the router itself.
    pub(super) local: bool,
    /// Its Ethernet header stands in front of it still.
    pub(super) framed: bool,
}

impl State {
    /// That of a packet that came in by `iif` and is on `dev`: it asks for the first time.
    pub(super) const fn new(iif: IfIndex, dev: IfIndex) -> State {
        State { iif, dev, lookups: 1, nexthop: false, local: true, framed: true }
    }

    /// Its headers were changed by a SID or a policy; `local` says whether the answer to its next question may be the router itself.
    #[inline]
    pub(super) fn changed(&mut self, local: bool) {
        (self.nexthop, self.local, self.framed) = (false, local, false);
    }
}

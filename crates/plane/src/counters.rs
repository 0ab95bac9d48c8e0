//! What a worker counts: its own numbers, which nobody else writes.

use route::{DropReason, IfIndex, Links, SidId};

/// Packets and bytes: those of an interface with the Ethernet header, those of a SID from the IP header on.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub struct PacketCount {
    /// Packets.
    pub packets: u64,
    /// Bytes.
    pub bytes: u64,
}

impl PacketCount {
    #[inline]
    pub(crate) fn add(&mut self, bytes: usize) {
        self.packets += 1;
        self.bytes += bytes as u64;
    }

    /// Adds what was counted apart.
    pub(crate) fn merge(&mut self, other: PacketCount) {
        self.packets += other.packets;
        self.bytes += other.bytes;
    }
}

/// Counters of an interface.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub struct LinkCount {
    /// Frames that came in. Those of a VLAN sub-interface count on its port too.
    pub received: PacketCount,
    /// Frames that went out, likewise.
    pub sent: PacketCount,
    /// Packets for the router itself.
    pub delivered: u64,
    /// Packets held back until their neighbour answers, at the moment.
    pub waiting: u64,
}

/// Counters of a SID, as the kernel's `count` attribute shows them.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub struct SidCount {
    /// Packets processed.
    pub processed: PacketCount,
    /// Packets that the behaviour refused.
    pub errors: u64,
}

/// All counters of a worker. Every packet has one end:
///
/// ```text
/// received + originated = sent + delivered + kernel + waiting + reassembled + dropped (without the messages that were rate limited: they were never made)
/// ```
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Counters {
    links: Vec<LinkCount>,
    drops: [u64; DropReason::ALL.len()],
    sids: Vec<SidCount>,
    /// Packets that came in and went out, by a route or (End.DX2) as frames.
    pub forwarded: u64,
    /// Packets that the router made: answers, errors, solicitations, all fragments of a packet but the first.
    pub originated: u64,
    /// Fragments that wait for the others of their datagram, or were swallowed into one that was completed.
    pub reassembled: u64,
    /// Packets left to the kernel, beside which the router runs.
    pub kernel: u64,
}

impl Default for Counters {
    fn default() -> Counters {
        Counters {
            links: Vec::new(),
            drops: [0; DropReason::ALL.len()],
            sids: Vec::new(),
            forwarded: 0,
            originated: 0,
            reassembled: 0,
            kernel: 0,
        }
    }
}

impl Counters {
    /// Makes room for as many interfaces and SIDs, so that counting never allocates.
    pub(crate) fn reserve(&mut self, links: usize, sids: usize) {
        self.links.resize(self.links.len().max(links), LinkCount::default());
        self.sids.resize(self.sids.len().max(sids), SidCount::default());
    }

    /// Counters of an interface.
    pub fn link(&self, index: IfIndex) -> LinkCount {
        self.links.get(index.0 as usize).copied().unwrap_or_default()
    }

    /// Counters of a port, with what was delivered and waits on the VLAN sub-interfaces on it. Their frames count as its own already.
    pub fn of_port(&self, links: &Links, place: usize) -> LinkCount {
        let Some(port) = links.of_port(place) else { return LinkCount::default() };
        let is_on_port = |index: IfIndex| index != port.index && links.below(index).is_some_and(|below| below.index == port.index);
        let mut count = self.link(port.index);
        for vlan in links.iter().filter(|link| is_on_port(link.index)).map(|link| self.link(link.index)) {
            count.delivered += vlan.delivered;
            count.waiting += vlan.waiting;
        }
        count
    }

    #[inline]
    pub(crate) fn link_mut(&mut self, index: IfIndex) -> &mut LinkCount {
        let at = index.0 as usize;
        if at >= self.links.len() {
            self.reserve(at + 1, 0);
        }
        &mut self.links[at]
    }

    /// Counters of a SID.
    pub fn sid(&self, id: SidId) -> SidCount {
        self.sids.get(id.0 as usize).copied().unwrap_or_default()
    }

    #[inline]
    pub(crate) fn sid_mut(&mut self, id: SidId) -> &mut SidCount {
        let at = id.0 as usize;
        if at >= self.sids.len() {
            self.reserve(0, at + 1);
        }
        &mut self.sids[at]
    }

    /// Packets dropped for this reason.
    pub fn drops(&self, reason: DropReason) -> u64 {
        self.drops[reason as usize]
    }

    /// Packets dropped, all reasons together.
    pub fn dropped(&self) -> u64 {
        self.drops.iter().sum()
    }

    #[inline]
    pub(crate) fn drop(&mut self, reason: DropReason) {
        self.drops[reason as usize] += 1;
    }
}

//! A packet on its way through the router.

use port::{Buf, Time};
use route::{IfIndex, Link};

use crate::options4::Options;

/// Whom the Ethernet frame was addressed to.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Addressed {
    /// The port's own address.
    Host,
    /// A group.
    Group,
    /// Another station.
    Other,
}

/// Which Internet protocol a packet is of, as the header before said: its own version field is not always checked (behind a SID it is not).
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Version {
    V4,
    V6,
}

/// How many lookups one packet may ask for: a chain of the router's own SIDs ends here.
pub(crate) const MAX_LOOKUPS: u8 = 16;

/// A packet. Once its frame was looked at, `buf` starts with the IP header and the Ethernet header stands in the headroom before it.
#[derive(Debug)]
pub(crate) struct Packet {
    pub(crate) buf: Buf,
    /// When it came in.
    pub(crate) time: Time,
    /// Its number among all frames of the run.
    pub(crate) number: u64,
    /// The interface it came in by.
    pub(crate) iif: IfIndex,
    /// The interface it is seen to be on: the VRF device of `iif`, or that of the VRF a SID moved it to.
    pub(crate) dev: IfIndex,
    pub(crate) addressed: Addressed,
    pub(crate) version: Version,
    /// `dev` belongs to a VRF.
    pub(crate) in_vrf: bool,
    /// Bytes of Ethernet header just in front of `buf`.
    pub(crate) l2_len: u8,
    pub(crate) lookups: u8,
    /// IPv4 options, when there are any.
    pub(crate) options: Option<Options>,
    /// The router made it.
    pub(crate) own: bool,
    /// What the router sends for it leaves by the interface that it is sent near, whatever rules and routes say.
    pub(crate) bound: bool,
    /// Its turn among the packets of its burst has come.
    pub(crate) in_turn: bool,
    /// Its priority, by which VLAN sub-interfaces mark frames (Linux `skb->priority`).
    pub(crate) priority: u32,
    /// Where it is not to be worked out from the packet: the hash by which it chooses among several ways, that of the packet an ICMP error is about.
    pub(crate) hash: Option<u32>,
    /// A route sent it to the VRF device `dev`, which sends it on: its hop is taken off, its source believed.
    pub(crate) passed_on: bool,
    /// What rules may select it by beside its headers.
    pub(crate) mark: u32,
    /// A SID has sent it to the lookup that comes next.
    pub(crate) by_sid: bool,
    /// A local routing header was processed: no redirect for it.
    pub(crate) source_routed: bool,
}

impl Packet {
    pub(crate) fn new(version: Version, buf: Buf, time: Time, number: u64, iif: IfIndex) -> Packet {
        Packet {
            buf,
            time,
            number,
            iif,
            dev: iif,
            addressed: Addressed::Host,
            version,
            in_vrf: false,
            l2_len: 0,
            lookups: 0,
            options: None,
            own: false,
            bound: false,
            in_turn: false,
            priority: 0,
            hash: None,
            passed_on: false,
            mark: 0,
            by_sid: false,
            source_routed: false,
        }
    }

    /// A packet of the router's own making, seen to come in by `near`.
    pub(crate) fn made(version: Version, buf: Buf, time: Time, number: u64, near: IfIndex) -> Packet {
        Packet { own: true, ..Packet::new(version, buf, time, number, near) }
    }

    /// The packet is on the VRF device `vrf` from here on.
    pub(crate) fn move_to(&mut self, vrf: &Link) {
        self.dev = vrf.index;
        self.in_vrf = true;
    }

    /// The packet leaves by the VRF device `vrf`, which asks its table where to (Linux `vrf_xmit`).
    pub(crate) fn pass_on(&mut self, vrf: &Link) {
        self.move_to(vrf);
        self.passed_on = true;
    }
}

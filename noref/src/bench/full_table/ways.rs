//! The ways through the router that are measured.

use std::net::Ipv6Addr;

use super::frames::{self, Frames};
use super::{ENCAPSULATED4, ENCAPSULATED6, Prefixes, TAGGED4, TAGGED6};

/// Different packets of a way with random destinations: what a router at work looks like.
pub const DESTINATIONS: usize = 1 << 16;

/// A way, and the packets that take it.
pub struct Way {
    /// As the field calls it.
    pub name: &'static str,
    /// Whether the packets go to random destinations in the full table, else to one.
    pub random: bool,
    /// What comes in, again and again.
    pub frames: Frames,
    /// Length of what goes out, bytes.
    pub sent: usize,
}

/// The ways of plain routing and of SRv6, so many packets where destinations are random. None where the prefixes have no destination for them.
pub fn ways(prefixes: &Prefixes, destinations: usize) -> Option<Vec<Way>> {
    let v4 = prefixes.destinations4(destinations);
    let v6 = prefixes.destinations6(destinations);
    let (one4, one6) = (*v4.first()?, *v6.first()?);
    let one = |name, sent, frame: Vec<u8>| Way { name, random: false, frames: [frame].into_iter().collect(), sent };
    let many = |name, sent, frames: Frames| Way { name, random: true, frames, sent };
    Some(vec![
        one("End", 94, frames::end(sid(1), one6)),
        many("End", 94, v6.iter().map(|&next| frames::end(sid(1), next)).collect()),
        one("End.X", 94, frames::end(sid(4), one6)),
        one("End.T", 94, frames::end(sid(5), one6)),
        one("End.DX4", 42, frames::decap4(sid(2), one4)),
        one("End.DT4", 42, frames::decap4(sid(6), one4)),
        one("End.DX6", 62, frames::decap6(sid(7), one6)),
        one("End.DT6", 62, frames::decap6(sid(3), one6)),
        many("End.DT6", 62, v6.iter().map(|&dst| frames::decap6(sid(3), dst)).collect()),
        one("End.DT46 of IPv4", 42, frames::decap4(sid(8), one4)),
        one("End.DT46 of IPv6", 62, frames::decap6(sid(8), one6)),
        // Another IPv6 header and an SRH of two segments.
        one("End.B6.Encaps", 94 + 40 + 40, frames::end(sid(9), one6)),
        // An IPv6 header and an SRH of one segment.
        one("H.Encaps of IPv4", 42 + 40 + 24, frames::ip4(ENCAPSULATED4)),
        one("H.Encaps of IPv6", 62 + 40 + 24, frames::ip6(ENCAPSULATED6)),
        one("IPv6", 62, frames::ip6(one6)),
        many("IPv6", 62, v6.iter().map(|&dst| frames::ip6(dst)).collect()),
        one("IPv4", 42, frames::ip4(one4)),
        many("IPv4", 42, v4.iter().map(|&dst| frames::ip4(dst)).collect()),
        one("IPv4 between VLANs", 46, frames::tagged(frames::ip4(TAGGED4))),
        one("IPv6 between VLANs", 66, frames::tagged(frames::ip6(TAGGED6))),
    ])
}

/// The router's SIDs.
fn sid(number: u16) -> Ipv6Addr {
    Ipv6Addr::new(0xfc00, 1, 0, 0, 0, 0, 0, number)
}

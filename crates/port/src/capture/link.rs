//! Link types: what the packets of a capture begin with.

use super::Cause;
use crate::Link;

/// How to make a received packet of a record.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct LinkType {
    /// What is left begins with this.
    pub(super) link: Link,
    /// Bytes of a pseudo-header in front that say nothing the IP version does not say.
    pub(super) skip: usize,
}

impl LinkType {
    /// The link type of a number in the registry of tcpdump.org, which is that of pcap and pcapng files alike.
    pub(super) fn of_number(number: u32) -> Result<LinkType, Cause> {
        let (link, skip) = match number {
            1 => (Link::Ethernet, 0),
            // Raw IP is 101; 12 and 14 are what DLT_RAW was on the machine that wrote the file.
            12 | 14 | 101 => (Link::Ip, 0),
            228 => (Link::Ip4, 0),
            229 => (Link::Ip6, 0),
            // BSD loopback: four bytes of address family, whose numbers differ from system to system.
            0 | 108 => (Link::Ip, 4),
            _ => return Err(Cause::LinkType(number)),
        };
        Ok(LinkType { link, skip })
    }
}

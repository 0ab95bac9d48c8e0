//! Input of an IPv4 packet: what is checked before a route is asked for (RFC 1812 §5.2, Linux `ip_rcv` and `ip_route_input`).

use std::net::Ipv4Addr;

use route::{DropReason, Link};
use srv6::Lookup4;
use wire::checksum::Sum;
use wire::ipv4;

use crate::context::Context;
use crate::packet::{Addressed, Packet, Version};
use crate::verdict::Verdict;

/// Checks the packet, cuts off what is beyond its length, and asks for a route.
pub(crate) fn input<'g>(cx: &Context<'_, 'g>, link: &Link, packet: &mut Packet) -> Verdict<'g> {
    packet.version = Version::V4;
    if packet.addressed == Addressed::Other {
        return Verdict::Drop(DropReason::OtherHost);
    }
    if let Err(reason) = check_header(packet) {
        return Verdict::Drop(reason);
    }
    if link.addrs4.is_empty() {
        return Verdict::Drop(DropReason::Ip4Disabled);
    }
    if let Some(vrf) = cx.links.vrf_of(packet.iif) {
        packet.move_to(vrf);
    }
    Verdict::Route4(Lookup4::default())
}

fn check_header(packet: &mut Packet) -> Result<(), DropReason> {
    let header = ipv4::Header::read(&packet.buf).ok_or(DropReason::HeaderTruncated)?;
    if header.version() != 4 {
        return Err(DropReason::BadVersion);
    }
    let (header_len, total_len) = (header.header_len(), header.total_len());
    if header_len < ipv4::LEN {
        return Err(DropReason::BadHeaderLength);
    }
    let bytes = packet.buf.get(..header_len).ok_or(DropReason::BadHeaderLength)?;
    if !Sum::default().bytes(bytes).is_valid() {
        return Err(DropReason::BadChecksum);
    }
    if total_len < header_len || total_len > packet.buf.len() {
        return Err(DropReason::LengthMismatch);
    }
    packet.buf.truncate(total_len);
    Ok(())
}

/// What an address pair says before any table is asked.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Addresses {
    /// Ask the tables.
    Route,
    /// Limited broadcast.
    Broadcast,
    /// A group.
    Multicast,
}

/// Sorts out addresses that no packet on the wire may have.
pub(crate) fn check_addresses(src: Ipv4Addr, dst: Ipv4Addr) -> Result<Addresses, DropReason> {
    if dst.is_multicast() {
        return Ok(Addresses::Multicast);
    }
    if src.is_multicast() || src.is_broadcast() {
        return Err(DropReason::MartianSource);
    }
    if dst.is_broadcast() || src.is_unspecified() && dst.is_unspecified() {
        return Ok(Addresses::Broadcast);
    }
    if src.is_unspecified() || src.is_loopback() && !dst.is_loopback() {
        return Err(DropReason::MartianSource);
    }
    if dst.is_unspecified() || dst.is_loopback() {
        return Err(DropReason::MartianDestination);
    }
    Ok(Addresses::Route)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn martians_are_told_from_what_the_tables_decide() {
        let check = |src: [u8; 4], dst: [u8; 4]| check_addresses(src.into(), dst.into());
        assert_eq!(check([10, 0, 0, 2], [10, 9, 0, 9]), Ok(Addresses::Route));
        assert_eq!(check([240, 0, 0, 1], [10, 9, 0, 9]), Ok(Addresses::Route));
        assert_eq!(check([0, 0, 0, 0], [255, 255, 255, 255]), Ok(Addresses::Broadcast));
        assert_eq!(check([10, 0, 0, 2], [224, 0, 0, 5]), Ok(Addresses::Multicast));
        assert_eq!(check([127, 0, 0, 1], [10, 9, 0, 9]), Err(DropReason::MartianSource));
        assert_eq!(check([0, 0, 0, 0], [10, 9, 0, 9]), Err(DropReason::MartianSource));
        assert_eq!(check([10, 0, 0, 2], [127, 0, 0, 1]), Err(DropReason::MartianDestination));
        assert_eq!(check([10, 0, 0, 2], [0, 0, 0, 0]), Err(DropReason::MartianDestination));
        // Linux routes the rest of 0.0.0.0/8 like any other addresses since 5.3.
        assert_eq!(check([0, 0, 0, 7], [0, 1, 2, 3]), Ok(Addresses::Route));
    }
}

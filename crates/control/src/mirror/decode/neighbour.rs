//! `RTM_NEWNEIGH`, `RTM_DELNEIGH`: neighbours.

use std::net::IpAddr;

use route::{IfIndex, NeighbourState};
use wire::Mac;

use super::message::{CREATE, NEW_NEIGHBOUR, REQUEST, build, push_attribute};
use super::{AF_INET, AF_INET6, attributes, ip, u8_at, u16_at, u32_at};

/// `struct ndmsg`.
const HEADER_LEN: usize = 12;
const NDA_DST: u16 = 1;
const NDA_LLADDR: u16 = 2;
const NTF_USE: u8 = 1;
const NTF_PROXY: u8 = 8;

/// What the kernel knows of a neighbour.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Neighbour {
    /// The device it is reached through.
    pub dev: IfIndex,
    /// Its address.
    pub addr: IpAddr,
    /// How sure its Ethernet address is.
    pub state: NeighbourState,
    /// Its Ethernet address, zero when it is not known.
    pub mac: Mac,
}

/// Reads a neighbour. None of entries of bridges; of proxy entries, which name no neighbour but an address answered for; of groups, whose
/// Ethernet addresses are not learnt.
pub fn neighbour(body: &[u8]) -> Option<Neighbour> {
    if !matches!(u8_at(body, 0)?, AF_INET | AF_INET6) || u8_at(body, 10)? & NTF_PROXY != 0 {
        return None;
    }
    let (mut addr, mut mac) = (None, None);
    for (kind, value) in attributes(body.get(HEADER_LEN..)?) {
        match kind {
            NDA_DST => addr = ip(value),
            NDA_LLADDR => mac = value.try_into().ok().map(Mac),
            _ => {}
        }
    }
    if addr.is_some_and(|addr| addr.is_multicast()) {
        return None;
    }
    let state = state(u16_at(body, 8)?);
    // What has no Ethernet address cannot be sent to, whatever its state.
    let state = if mac.is_none() && state.is_valid() { NeighbourState::Incomplete } else { state };
    Some(Neighbour { dev: IfIndex(u32_at(body, 4)?), addr: addr?, state, mac: mac.unwrap_or_default() })
}

/// The state of the kernel's bits (`NUD_…`).
fn state(bits: u16) -> NeighbourState {
    match bits {
        0x01 => NeighbourState::Incomplete,
        0x02 => NeighbourState::Reachable,
        0x04 => NeighbourState::Stale,
        0x08 => NeighbourState::Delay,
        0x10 => NeighbourState::Probe,
        0x20 => NeighbourState::Failed,
        // 0x40 is a device without neighbour discovery: the address is as good as a configured one.
        0x40 | 0x80 => NeighbourState::Permanent,
        _ => NeighbourState::None,
    }
}

/// A request that the kernel finds out, or checks, the Ethernet address of a neighbour that packets go to which it does not see (`NTF_USE`).
pub fn keep_alive(dev: IfIndex, addr: IpAddr) -> Vec<u8> {
    let mut body = vec![if addr.is_ipv4() { AF_INET } else { AF_INET6 }, 0, 0, 0];
    body.extend(dev.0.to_ne_bytes());
    body.extend([0, 0, NTF_USE, 0]);
    match addr {
        IpAddr::V4(addr) => push_attribute(&mut body, NDA_DST, &addr.octets()),
        IpAddr::V6(addr) => push_attribute(&mut body, NDA_DST, &addr.octets()),
    }
    build(NEW_NEIGHBOUR, REQUEST | CREATE, 0, &body)
}

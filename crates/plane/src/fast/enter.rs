//! Which frames are plain.

use port::Buf;
use route::{Address, IfIndex};
use wire::checksum::Sum;
use wire::{EtherType, Mac, eth, ipv4, ipv6, proto};
use zerocopy::{FromBytes, IntoBytes};

use super::frame::{Frame4, Frame6};
use super::lanes::{Lanes, PlaceInBurst, Scope};
use super::state::State;
use crate::context::Context;
use crate::counters::PacketCount;
use crate::ip4_input::{Addresses, check_addresses};
use crate::trace::Ledger;

/// A port's part in deciding which frames are plain, worked out once for frames that come together.
pub(super) struct Ingress {
    pub(super) index: IfIndex,
    pub(super) received: PacketCount,
    /// What is known of its packets at first.
    state: State,
    scope: Scope,
    mac: Mac,
    /// IPv6 packets may be plain.
    plain6: bool,
    /// IPv4 packets may be plain.
    plain4: bool,
}

impl Ingress {
    pub(super) fn new(cx: &Context<'_, '_>, port: usize, ledger: &Ledger) -> Ingress {
        let Some(link) = cx.links.of_port(port) else {
            let nowhere = IfIndex(0);
            let (received, mac, state) = (PacketCount::default(), Mac::default(), State::new(nowhere, nowhere));
            return Ingress { index: nowhere, received, state, scope: Scope::Main, mac, plain6: false, plain4: false };
        };
        let vrf = cx.links.vrf_of(link.index);
        // A master that is no VRF is left to the general way.
        let plain = link.up && !ledger.is_tracing() && vrf.is_some() == link.vrf_table.is_some();
        Ingress {
            index: link.index,
            received: PacketCount::default(),
            state: State::new(link.index, vrf.map_or(link.index, |vrf| vrf.index)),
            scope: link.vrf_table.map_or(Scope::Main, Scope::Vrf),
            mac: link.mac,
            plain6: plain && cx.plain6 && link.has_ipv6(),
            plain4: plain && cx.plain4,
        }
    }

    /// Counts the frames.
    pub(super) fn leave(self, ledger: &mut Ledger) {
        ledger.counters.link_mut(self.index).received.merge(self.received);
    }

    /// Takes the frame in a place on if it is plain: it starts with its IP header then, and asks in `next`. False, and nothing done, if it is not.
    #[inline]
    pub(super) fn enter(&self, place: PlaceInBurst, buf: &mut Buf, state: &mut State, next: &mut Lanes) -> bool {
        let Some(header) = eth::Header::read(buf) else { return false };
        if header.dst != self.mac {
            return false;
        }
        let ethertype = header.ethertype();
        let asks = if ethertype == EtherType::IPV6 && self.plain6 {
            plain6(buf).is_some_and(|key| next.v6.push(self.scope, place, key))
        } else if ethertype == EtherType::IPV4 && self.plain4 {
            plain4(buf).is_some_and(|key| next.v4.push(self.scope, place, key))
        } else {
            false
        };
        *state = self.state;
        asks
    }
}

/// Checks an IPv6 frame as `ip6_input` does and takes its Ethernet header off; none for what that must see.
#[inline]
fn plain6(buf: &mut Buf) -> Option<u128> {
    let (Frame6 { ip, .. }, behind) = Frame6::ref_from_prefix(buf).ok()?;
    let dst = ip.dst().key();
    let len = ip.payload_len();
    let odd = ip.version() != 6 || ip.next_header == proto::HOP_BY_HOP || len > behind.len();
    if odd || !is_plain6(ip.src().key()) || !is_plain6(dst) {
        return None;
    }
    buf.trim_front(eth::LEN);
    buf.truncate(ipv6::LEN + len);
    Some(dst)
}

/// As [`plain6`] for IPv4.
#[inline]
fn plain4(buf: &mut Buf) -> Option<u32> {
    let (Frame4 { ip, .. }, behind) = Frame4::ref_from_prefix(buf).ok()?;
    let dst = ip.dst();
    let len = ip.total_len();
    let odd = ip.version() != 4 || ip.header_len() != ipv4::LEN || len < ipv4::LEN || len > ipv4::LEN + behind.len();
    if odd || !Sum::default().bytes(ip.as_bytes()).is_valid() || check_addresses(ip.src(), dst) != Ok(Addresses::Route) {
        return None;
    }
    buf.trim_front(eth::LEN);
    buf.truncate(len);
    Some(dst.key())
}

/// An address that is neither unspecified, loopback, link-local nor a group: from 0:0:0:1:: to below fe80::. The others of ::/64 and of fec0::/10,
/// which nobody has, may go the general way.
#[inline]
pub(super) fn is_plain6(addr: u128) -> bool {
    (1..0xfe80 << 48).contains(&((addr >> 64) as u64))
}

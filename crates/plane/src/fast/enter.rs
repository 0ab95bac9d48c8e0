//! Which frames are plain.

use port::Buf;
use route::{Address, IfIndex};
use wire::checksum::Sum;
use wire::{EtherType, Mac, eth, ipv4, ipv6, proto};
use zerocopy::{FromBytes, IntoBytes};

use super::frame::{Frame4, Frame6};
use super::lanes::{Asker, Lanes, Scope};
use super::state::State;
use crate::context::Context;
use crate::ip4_input::{Addresses, check_addresses};
use crate::trace::Ledger;

/// A port's part in deciding which frames are plain, worked out once for frames that come together.
pub(super) struct Ingress {
    pub(super) index: IfIndex,
    /// What is known of its packets at first.
    pub(super) state: State,
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
            let state = State::new(nowhere, nowhere);
            return Ingress { index: nowhere, state, scope: Scope::Main, mac: Mac::default(), plain6: false, plain4: false };
        };
        let vrf = cx.links.vrf_of(link.index);
        // A master that is no VRF is left to the general way.
        let plain = link.up && !ledger.is_tracing() && vrf.is_some() == link.vrf_table.is_some();
        Ingress {
            index: link.index,
            state: State::new(link.index, vrf.map_or(link.index, |vrf| vrf.index)),
            scope: link.vrf_table.map_or(Scope::Main, Scope::Vrf),
            mac: link.mac,
            plain6: plain && cx.plain6 && link.has_ipv6(),
            plain4: plain && cx.plain4,
        }
    }

    /// Takes frames in places from `first` on, as far as they are plain: they start with their IP header then, and ask in `next`. How many they are.
    #[inline]
    pub(super) fn enter(&self, asker: &Asker, first: usize, frames: &mut [Buf], next: &mut Lanes) -> usize {
        let mut entered = 0;
        // Packets of one family mostly come together.
        while let Some(frames) = frames.get_mut(entered..).filter(|frames| !frames.is_empty()) {
            let first = first + entered;
            let v6 = if self.plain6 { next.v6.ask(self.scope, asker, first, frames, |frame| plain6(frame, self.mac)) } else { 0 };
            let v4 =
                if self.plain4 && v6 == 0 { next.v4.ask(self.scope, asker, first, frames, |frame| plain4(frame, self.mac)) } else { 0 };
            if v6 + v4 == 0 {
                break;
            }
            entered += v6 + v4;
        }
        entered
    }
}

/// Checks an IPv6 frame as `ip6_input` does and takes its Ethernet header off; none, and nothing done, for what that must see.
#[inline(always)]
fn plain6(frame: &mut Buf, mac: Mac) -> Option<u128> {
    let (Frame6 { eth, ip }, _) = Frame6::ref_from_prefix(frame).ok()?;
    let (dst, len) = (ip.dst().key(), ip.payload_len());
    let odd = eth.dst != mac || eth.ethertype() != EtherType::IPV6 || ip.version() != 6 || ip.next_header == proto::HOP_BY_HOP;
    if odd || !is_plain6(ip.src().key()) || !is_plain6(dst) {
        return None;
    }
    frame.narrow(eth::LEN, ipv6::LEN + len).then_some(dst)
}

/// As [`plain6`] for IPv4.
#[inline(always)]
fn plain4(frame: &mut Buf, mac: Mac) -> Option<u32> {
    let (Frame4 { eth, ip }, _) = Frame4::ref_from_prefix(frame).ok()?;
    let (dst, len) = (ip.dst(), ip.total_len());
    let odd = eth.dst != mac || eth.ethertype() != EtherType::IPV4 || ip.version() != 4 || ip.header_len() != ipv4::LEN || len < ipv4::LEN;
    if odd || !Sum::default().bytes(ip.as_bytes()).is_valid() || check_addresses(ip.src(), dst) != Ok(Addresses::Route) {
        return None;
    }
    frame.narrow(eth::LEN, len).then_some(dst.key())
}

/// An address that is neither unspecified, loopback, link-local nor a group: from 0:0:0:1:: to below fe80::. The others of ::/64 and of fec0::/10,
/// which nobody has, may go the general way.
#[inline]
pub(super) fn is_plain6(addr: u128) -> bool {
    (1..0xfe80 << 48).contains(&((addr >> 64) as u64))
}

//! The plainest packets, from the frame to the way out.
//!
//! Most packets need nothing but their destination to be routed, and find a neighbour whose address is known. They take this short way, all of a burst
//! together; whatever is out of the ordinary is left, untouched or at a point between two lookups, to the general way (`ethernet`, `decide`, `host`),
//! which gives the same answers. Traced packets take the general way, which writes everything down.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

use port::Buf;
use route::{Address, Answer, Dst, Encap, IfIndex, Kind, Leaf, Link, LinkKind, NeighbourState, Nexthop, Scratch};
use srv6::{Inner, Lookup4, Lookup6, Next};
use wire::checksum::Sum;
use wire::{EtherType, Mac, eth, ipv4, ipv6, proto};
use zerocopy::IntoBytes;

use crate::context::Context;
use crate::ip4_input::{Addresses, check_addresses};
use crate::packet::{MAX_LOOKUPS, Packet, Version};
use crate::trace::Ledger;
use crate::verdict::Verdict;
use crate::{decide, forward6, seg6, source4};

/// A packet whose next lookup depends on one address only.
#[derive(Clone, Copy)]
struct Asking {
    /// Its place in the burst.
    place: u32,
    /// The address asked for is a SID's nexthop, not the packet's destination.
    nexthop: bool,
}

/// What comes next for a packet on the short way.
enum Step<'g> {
    /// The Ethernet header is on.
    Out,
    /// Look this up.
    Ask6(u128, bool),
    /// Look this up.
    Ask4(u32, bool),
    /// The general way, from here.
    General(Verdict<'g>),
}

/// The packets under way of one family.
struct Lane<A: Address> {
    asking: Vec<Asking>,
    keys: Vec<A::Key>,
    leaves: Vec<Leaf>,
    scratch: Scratch<A>,
}

impl<A: Address> Default for Lane<A> {
    fn default() -> Lane<A> {
        Lane { asking: Vec::new(), keys: Vec::new(), leaves: Vec::new(), scratch: Scratch::default() }
    }
}

impl<A: Address> Lane<A> {
    fn push(&mut self, place: u32, nexthop: bool, key: A::Key) {
        self.asking.push(Asking { place, nexthop });
        self.keys.push(key);
    }

    fn clear(&mut self) {
        self.asking.clear();
        self.keys.clear();
    }
}

/// Working memory of the short way, kept from burst to burst: for each family the lane being answered and the one being filled.
#[derive(Default)]
pub(crate) struct Fast {
    now6: Lane<Ipv6Addr>,
    next6: Lane<Ipv6Addr>,
    now4: Lane<Ipv4Addr>,
    next4: Lane<Ipv4Addr>,
}

impl Fast {
    /// Takes the frame at `place` on if it is plain. False, and nothing done, if it is not.
    #[inline]
    pub(crate) fn enter(&mut self, cx: &Context<'_, '_>, link: &Link, place: u32, packet: &mut Packet) -> bool {
        let Some(header) = eth::Header::read(&packet.buf) else { return false };
        if header.dst != link.mac || !link.up || link.vrf_table.is_some() {
            return false;
        }
        match header.ethertype() {
            EtherType::IPV6 if cx.plain6 && link.has_ipv6() => match enter6(&mut packet.buf) {
                Some(key) => self.next6.push(place, false, key),
                None => return false,
            },
            EtherType::IPV4 if cx.plain4 && !link.addrs4.is_empty() => match enter4(&mut packet.buf) {
                Some(key) => self.next4.push(place, false, key),
                None => return false,
            },
            _ => return false,
        }
        packet.version = if header_is_4(&packet.buf) { Version::V4 } else { Version::V6 };
        packet.l2_len = eth::LEN as u8;
        packet.lookups = 1;
        true
    }

    /// Takes all packets that entered to their end, or to where the general way takes over: then its verdict stands in `verdicts`.
    pub(crate) fn run<'g>(&mut self, cx: &Context<'_, 'g>, burst: &mut [Packet], verdicts: &mut [Verdict<'g>], ledger: &mut Ledger) {
        while !(self.next6.asking.is_empty() && self.next4.asking.is_empty()) {
            std::mem::swap(&mut self.now6, &mut self.next6);
            std::mem::swap(&mut self.now4, &mut self.next4);
            self.next6.clear();
            self.next4.clear();
            let Fast { now6, now4, next6, next4 } = self;
            let network = &cx.tables.network;
            network.v6.lookup_batch(cx.guard, &now6.keys, &mut now6.scratch, &mut now6.leaves);
            for ((asking, &key), &leaf) in now6.asking.iter().zip(&now6.keys).zip(&now6.leaves) {
                let (packet, verdict) = (&mut burst[asking.place as usize], &mut verdicts[asking.place as usize]);
                let nexthop = asking.nexthop.then(|| Ipv6Addr::from_key(key));
                let lookup = Lookup6 { nexthop, local: packet.may_be_local, ..Lookup6::default() };
                let answer = network.v6.answer(cx.guard, leaf, cx.refs, || decide::flow6(cx, packet, &lookup));
                sort(step6(cx, packet, &lookup, answer, ledger), asking.place, verdict, next6, next4);
            }
            network.v4.lookup_batch(cx.guard, &now4.keys, &mut now4.scratch, &mut now4.leaves);
            for ((asking, &key), &leaf) in now4.asking.iter().zip(&now4.keys).zip(&now4.leaves) {
                let (packet, verdict) = (&mut burst[asking.place as usize], &mut verdicts[asking.place as usize]);
                let lookup = Lookup4 { nexthop: asking.nexthop.then(|| Ipv4Addr::from_key(key)), ..Lookup4::default() };
                let answer = network.v4.answer(cx.guard, leaf, cx.refs, || decide::flow4(cx, packet, &lookup));
                sort(step4(cx, packet, &lookup, answer, ledger), asking.place, verdict, next6, next4);
            }
        }
    }
}

#[inline]
fn sort<'g>(step: Step<'g>, place: u32, verdict: &mut Verdict<'g>, next6: &mut Lane<Ipv6Addr>, next4: &mut Lane<Ipv4Addr>) {
    match step {
        Step::Out => {}
        Step::Ask6(key, nexthop) => next6.push(place, nexthop, key),
        Step::Ask4(key, nexthop) => next4.push(place, nexthop, key),
        Step::General(general) => *verdict = general,
    }
}

/// Checks an IPv6 frame as `ip6_input` does and takes its Ethernet header off; none for what that must see.
#[inline]
fn enter6(buf: &mut Buf) -> Option<u128> {
    let header = ipv6::Header::read(buf.get(eth::LEN..)?)?;
    let (src, dst) = (u128::from(header.src()), u128::from(header.dst()));
    let len = ipv6::LEN + header.payload_len();
    let odd = header.version() != 6 || header.next_header == proto::HOP_BY_HOP || len > buf.len() - eth::LEN;
    if odd || !is_plain6(src) || !is_plain6(dst) {
        return None;
    }
    buf.trim_front(eth::LEN);
    buf.truncate(len);
    Some(dst)
}

/// As [`enter6`] for IPv4.
#[inline]
fn enter4(buf: &mut Buf) -> Option<u32> {
    let bytes = buf.get(eth::LEN..)?;
    let header = ipv4::Header::read(bytes)?;
    let len = header.total_len();
    let odd = header.version() != 4 || header.header_len() != ipv4::LEN || len < ipv4::LEN || len > bytes.len();
    if odd || !Sum::default().bytes(header.as_bytes()).is_valid() || check_addresses(header.src(), header.dst()) != Ok(Addresses::Route) {
        return None;
    }
    let dst = header.dst().key();
    buf.trim_front(eth::LEN);
    buf.truncate(len);
    Some(dst)
}

#[inline]
fn header_is_4(packet: &[u8]) -> bool {
    packet.first().is_some_and(|byte| byte >> 4 == 4)
}

/// An address that is neither unspecified, loopback, link-local nor a group.
#[inline]
fn is_plain6(addr: u128) -> bool {
    addr >> 1 != 0 && addr >> 120 != 0xff && addr >> 118 != 0x3fa
}

#[inline]
fn step6<'g>(cx: &Context<'_, 'g>, packet: &mut Packet, lookup: &Lookup6, answer: Answer<'g>, ledger: &mut Ledger) -> Step<'g> {
    let dst = answer.dst;
    let hop = match (dst.kind, &dst.nexthop, dst.more.is_empty()) {
        (Kind::Unicast, Some(hop), true) => hop,
        _ => {
            let answer = Answer { dst, ..answer };
            return Step::General(decide::route6(cx, packet, lookup, Some(answer), ledger));
        }
    };
    match hop.encap {
        Encap::None => {
            if forward6(cx, packet, &dst, hop, lookup.nexthop) {
                return Step::Out;
            }
            Step::General(forward6::decide(cx, packet, dst, 0, lookup.nexthop))
        }
        Encap::Seg6Local(id) => match seg6::behavior(cx, packet, id, ledger) {
            Ok(next) => again(cx, packet, next),
            Err(reason) => Step::General(Verdict::Drop(reason)),
        },
        Encap::Seg6(id) => headend(cx, packet, id, Inner::V6, hop.dev, ledger),
    }
}

fn step4<'g>(cx: &Context<'_, 'g>, packet: &mut Packet, lookup: &Lookup4, answer: Answer<'g>, ledger: &mut Ledger) -> Step<'g> {
    let hop = match (answer.dst.kind, &answer.dst.nexthop, answer.dst.more.is_empty()) {
        (Kind::Unicast, Some(hop), true) => hop,
        _ => return Step::General(decide::route4(cx, packet, lookup, answer, ledger)),
    };
    let src = ipv4::Header::read(&packet.buf).map_or(Ipv4Addr::UNSPECIFIED, ipv4::Header::src);
    let plain = cx.links.get(packet.dev).is_some_and(|link| link.conf4.forwarding) && source4::is_plain(cx, packet, src, hop.dev);
    match hop.encap {
        Encap::None if plain && forward4(cx, packet, &answer.dst, hop, lookup.nexthop) => Step::Out,
        Encap::Seg6(id) if plain => headend(cx, packet, id, Inner::V4, hop.dev, ledger),
        _ => Step::General(decide::route4(cx, packet, lookup, answer, ledger)),
    }
}

fn headend<'g>(
    cx: &Context<'_, 'g>,
    packet: &mut Packet,
    id: route::PolicyId,
    inner: Inner,
    dev: IfIndex,
    ledger: &mut Ledger,
) -> Step<'g> {
    match seg6::headend(cx, packet, id, inner, dev, ledger) {
        Ok(()) => again(cx, packet, Next::Route6(Lookup6 { local: true, ..Lookup6::default() })),
        Err(reason) => Step::General(Verdict::Drop(reason)),
    }
}

/// What a behaviour or headend wants next, on the short way if one address is all it takes.
#[inline]
fn again<'g>(cx: &Context<'_, 'g>, packet: &mut Packet, next: Next) -> Step<'g> {
    if packet.lookups < MAX_LOOKUPS && !packet.in_vrf {
        match next {
            Next::Route6(Lookup6 { nexthop, oif: None, table: None, vrf: None, local }) if cx.plain6 => {
                let dst = nexthop.or_else(|| Some(ipv6::Header::read(&packet.buf)?.dst()));
                if let Some(dst) = dst.filter(|dst| !dst.is_link_scoped()) {
                    packet.lookups += 1;
                    packet.may_be_local = local;
                    return Step::Ask6(dst.key(), nexthop.is_some());
                }
            }
            Next::Route4(Lookup4 { nexthop, vrf: None }) if cx.plain4 => {
                let header = ipv4::Header::read(&packet.buf).filter(|header| header.header_len() == ipv4::LEN);
                let addresses = header.map(|header| (header.src(), nexthop.unwrap_or(header.dst())));
                if let Some((src, dst)) = addresses
                    && check_addresses(src, dst) == Ok(Addresses::Route)
                {
                    packet.lookups += 1;
                    return Step::Ask4(dst.key(), nexthop.is_some());
                }
            }
            _ => {}
        }
    }
    Step::General(decide::then(next))
}

/// Sends the packet on as `forward6` decides and `host::output` does, in the case without an error, a redirect or a neighbour to be asked. False, and
/// nothing done, in the others.
#[inline]
fn forward6(cx: &Context<'_, '_>, packet: &mut Packet, dst: &Dst, hop: &Nexthop, nexthop: Option<Ipv6Addr>) -> bool {
    let Some((out, port)) = way_out(cx, packet, hop) else { return false };
    let mtu = if dst.mtu == 0 { out.mtu } else { dst.mtu.min(out.mtu) };
    if packet.buf.len() > mtu.max(ipv6::MIN_MTU as u32) as usize || !cx.settings.all6.forwarding {
        return false;
    }
    let Some(header) = ipv6::Header::read_mut(&mut packet.buf) else { return false };
    if header.hop_limit <= 1 || !is_plain6(header.src().key()) {
        return false;
    }
    let to = nexthop.unwrap_or_else(|| header.dst());
    let Some(mac) = neighbour(cx, hop, || IpAddr::V6(to)) else { return false };
    header.hop_limit -= 1;
    put_header(packet, mac, out, EtherType::IPV6, port);
    true
}

/// As [`forward6`] for IPv4.
#[inline]
fn forward4(cx: &Context<'_, '_>, packet: &mut Packet, dst: &Dst, hop: &Nexthop, nexthop: Option<Ipv4Addr>) -> bool {
    let Some((out, port)) = way_out(cx, packet, hop) else { return false };
    let mtu = if dst.mtu == 0 { out.mtu } else { dst.mtu };
    if packet.buf.len() > mtu.min(65535) as usize {
        return false;
    }
    let Some(header) = ipv4::Header::read_mut(&mut packet.buf) else { return false };
    if header.ttl <= 1 {
        return false;
    }
    let to = nexthop.unwrap_or_else(|| header.dst());
    let Some(mac) = neighbour(cx, hop, || IpAddr::V4(to)) else { return false };
    header.decrement_ttl();
    put_header(packet, mac, out, EtherType::IPV4, port);
    true
}

/// The port out, if it is another than the one in and there is room for its header.
#[inline]
fn way_out<'g>(cx: &Context<'_, 'g>, packet: &Packet, hop: &Nexthop) -> Option<(&'g Link, usize)> {
    let out = cx.links.get(hop.dev)?;
    match out.kind {
        LinkKind::Port(port) if out.up && hop.dev != packet.iif && packet.buf.headroom() >= eth::LEN => Some((out, port)),
        _ => None,
    }
}

/// The neighbour's Ethernet address, if it is known and need not be asked for again.
#[inline]
fn neighbour(cx: &Context<'_, '_>, hop: &Nexthop, to: impl FnOnce() -> IpAddr) -> Option<Mac> {
    let (state, mac) = match &hop.gateway {
        Some(gateway) => gateway.load(),
        None => cx.tables.network.neighbours.find(cx.guard, hop.dev, to())?.load(),
    };
    (state.is_valid() && state != NeighbourState::Stale).then_some(mac)
}

#[inline]
fn put_header(packet: &mut Packet, mac: Mac, out: &Link, ethertype: EtherType, port: usize) {
    let header = eth::Header::new(mac, out.mac, ethertype);
    if packet.buf.prepend(eth::LEN) {
        packet.buf[..eth::LEN].copy_from_slice(header.as_bytes());
        packet.out = Some((out.index, port as u32));
    }
}

//! The plainest packets, from the frame to the way out.
//!
//! Most packets need nothing but their destination to be routed, and find a neighbour whose address is known. They take this short way, all of a burst
//! together; whatever is out of the ordinary is left, untouched or at a point between two lookups, to the general way (`ethernet`, `decide`, `host`),
//! which gives the same answers. Traced packets take the general way, which writes everything down.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

use port::Buf;
use route::{Address, Answer, Dst, DstRef, Encap, IfIndex, Kind, LinkKind, NeighbourState, Nexthop, PolicyId};
use srv6::{Inner, Lookup4, Lookup6, Next};
use wire::checksum::Sum;
use wire::{EtherType, Mac, eth, ipv4, ipv6, proto};
use zerocopy::IntoBytes;

use crate::context::Context;
use crate::counters::PacketCount;
use crate::ip4_input::{Addresses, check_addresses};
use crate::packet::{MAX_LOOKUPS, Packet, Version};
use crate::trace::Ledger;
use crate::verdict::Verdict;
use crate::{decide, seg6, source4};

/// A packet whose next lookup depends on one address only.
#[derive(Clone, Copy)]
struct Asking {
    /// Its place in the burst.
    place: u32,
    /// The address asked for is a SID's nexthop, not the packet's destination.
    nexthop: bool,
}

/// A port's part in deciding which frames are plain, worked out once for frames that follow each other.
pub(crate) struct Ingress {
    pub(crate) port: usize,
    pub(crate) index: IfIndex,
    pub(crate) received: PacketCount,
    mac: Mac,
    /// IPv6 packets may be plain.
    plain6: bool,
    /// IPv4 packets may be plain.
    plain4: bool,
}

impl Ingress {
    pub(crate) fn new(cx: &Context<'_, '_>, port: usize, ledger: &Ledger) -> Ingress {
        let mut ingress =
            Ingress { port, index: IfIndex(0), received: PacketCount::default(), mac: Mac::default(), plain6: false, plain4: false };
        if let Some(link) = cx.links.of_port(port) {
            let plain = link.up && link.vrf_table.is_none() && !ledger.is_tracing();
            ingress.index = link.index;
            ingress.mac = link.mac;
            ingress.plain6 = plain && cx.plain6 && link.has_ipv6();
            ingress.plain4 = plain && cx.plain4 && !link.addrs4.is_empty();
        }
        ingress
    }

    /// Counts the frames.
    pub(crate) fn leave(self, ledger: &mut Ledger) {
        ledger.counters.link_mut(self.index).received.merge(self.received);
    }
}

/// What leaving by a route's only way takes, worked out once for packets that follow each other to one gateway.
struct Exit {
    /// Address of the route, what it is known again by; 0 when the neighbour is each packet's own destination.
    route: usize,
    dev: IfIndex,
    port: u32,
    /// The biggest packet, bytes.
    mtu: u32,
    /// The neighbour and the port, as they stand in the Ethernet header.
    macs: (Mac, Mac),
}

impl Exit {
    /// The way out of no route.
    const NONE: Exit = Exit { route: 0, dev: IfIndex(0), port: 0, mtu: 0, macs: (Mac([0; 6]), Mac([0; 6])) };

    /// The way out of `dst` by `hop`, to `to` if that has no gateway, when the neighbour's address is known and need not be asked for again.
    #[inline]
    fn of(cx: &Context<'_, '_>, dst: &Dst, hop: &Nexthop, to: impl FnOnce() -> IpAddr) -> Option<Exit> {
        let out = cx.links.get(hop.dev).filter(|link| link.up)?;
        let LinkKind::Port(port) = out.kind else { return None };
        let mtu = if dst.mtu == 0 { out.mtu } else { dst.mtu.min(out.mtu) };
        let mac = neighbour(cx, hop, to)?;
        let route = if hop.gateway.is_some() { std::ptr::from_ref(dst).addr() } else { 0 };
        Some(Exit { route, dev: hop.dev, port: port as u32, mtu, macs: (mac, out.mac) })
    }

    /// True when the packet fits, there is room for its header, and it leaves by another port than it came in by.
    #[inline]
    fn takes(&self, packet: &Packet) -> bool {
        packet.buf.len() <= self.mtu as usize && packet.iif != self.dev && packet.buf.headroom() >= eth::LEN
    }

    /// Sends an IPv6 packet on as `forward6` decides and `host::output` does, in the case without an error or a redirect. False, and nothing done,
    /// in the others.
    #[inline]
    fn forward6(&self, packet: &mut Packet) -> bool {
        if !self.takes(packet) {
            return false;
        }
        let Some(header) = ipv6::Header::read_mut(&mut packet.buf) else { return false };
        if header.hop_limit <= 1 || !is_plain6(header.src().key()) {
            return false;
        }
        header.hop_limit -= 1;
        self.put_header(packet, EtherType::IPV6);
        true
    }

    /// As [`Exit::forward6`] for IPv4.
    #[inline]
    fn forward4(&self, packet: &mut Packet) -> bool {
        if !self.takes(packet) {
            return false;
        }
        let Some(header) = ipv4::Header::read_mut(&mut packet.buf) else { return false };
        if header.ttl <= 1 {
            return false;
        }
        header.decrement_ttl();
        self.put_header(packet, EtherType::IPV4);
        true
    }

    #[inline]
    fn put_header(&self, packet: &mut Packet, ethertype: EtherType) {
        if packet.buf.prepend(eth::LEN)
            && let Some(header) = eth::Header::read_mut(&mut packet.buf)
        {
            *header = eth::Header::new(self.macs.0, self.macs.1, ethertype);
            packet.out = Some((self.dev, self.port));
        }
    }
}

/// The packets under way of one family.
struct Lane<A: Address> {
    asking: Vec<Asking>,
    keys: Vec<A::Key>,
    /// The numbers of the routes found.
    routes: Vec<u32>,
}

impl<A: Address> Default for Lane<A> {
    fn default() -> Lane<A> {
        Lane { asking: Vec::new(), keys: Vec::new(), routes: Vec::new() }
    }
}

impl<A: Address> Lane<A> {
    #[inline]
    fn push(&mut self, place: u32, nexthop: bool, key: A::Key) {
        self.asking.push(Asking { place, nexthop });
        self.keys.push(key);
    }

    fn clear(&mut self) {
        self.asking.clear();
        self.keys.clear();
    }

    /// Those that ask, each with its key and the route found for it.
    fn answers(&self) -> impl Iterator<Item = (Asking, A::Key, u32)> {
        let with_keys = self.asking.iter().zip(&self.keys);
        with_keys.zip(&self.routes).map(|((&asking, &key), &route)| (asking, key, route))
    }
}

/// Lookups to be made together: a lane for each family.
#[derive(Default)]
struct Lanes {
    v6: Lane<Ipv6Addr>,
    v4: Lane<Ipv4Addr>,
}

/// Working memory of the short way, kept from burst to burst: the lookups being answered and those to be made next.
#[derive(Default)]
pub(crate) struct Fast {
    now: Lanes,
    next: Lanes,
}

impl Fast {
    /// Takes the frame at `place` on if it is plain. False, and nothing done, if it is not.
    #[inline]
    pub(crate) fn enter(&mut self, ingress: &Ingress, place: u32, packet: &mut Packet) -> bool {
        let Some(header) = eth::Header::read(&packet.buf) else { return false };
        if header.dst != ingress.mac {
            return false;
        }
        match header.ethertype() {
            EtherType::IPV6 if ingress.plain6 => {
                let Some(key) = enter6(&mut packet.buf) else { return false };
                packet.version = Version::V6;
                self.next.v6.push(place, false, key);
            }
            EtherType::IPV4 if ingress.plain4 => {
                let Some(key) = enter4(&mut packet.buf) else { return false };
                packet.version = Version::V4;
                self.next.v4.push(place, false, key);
            }
            _ => return false,
        }
        packet.l2_len = eth::LEN as u8;
        packet.lookups = 1;
        true
    }

    /// Takes all packets that entered to their end, or to where the general way takes over: then its verdict stands in `verdicts`.
    pub(crate) fn run<'g>(&mut self, cx: &Context<'_, 'g>, burst: &mut [Packet], verdicts: &mut [Verdict<'g>], ledger: &mut Ledger) {
        let network = &cx.tables.network;
        let mut exit = Exit::NONE;
        while !(self.next.v6.asking.is_empty() && self.next.v4.asking.is_empty()) {
            std::mem::swap(&mut self.now, &mut self.next);
            let Fast { now, next } = self;
            next.v6.clear();
            next.v4.clear();
            network.v6.lookup_batch(cx.guard, &now.v6.keys, cx.refs, &mut now.v6.routes);
            for (asking, key, route) in now.v6.answers() {
                let place = asking.place as usize;
                if let Err(verdict) = step6(cx, &mut burst[place], asking, key, route, &mut exit, next, ledger) {
                    verdicts[place] = verdict;
                }
            }
            network.v4.lookup_batch(cx.guard, &now.v4.keys, cx.refs, &mut now.v4.routes);
            for (asking, key, route) in now.v4.answers() {
                let place = asking.place as usize;
                if let Err(verdict) = step4(cx, &mut burst[place], asking, key, route, next, ledger) {
                    verdicts[place] = verdict;
                }
            }
        }
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

/// An address that is neither unspecified, loopback, link-local nor a group: from 0:0:0:1:: to below fe80::. The others of ::/64 and of fec0::/10,
/// which nobody has, may go the general way.
#[inline]
fn is_plain6(addr: u128) -> bool {
    (1..0xfe80 << 48).contains(&((addr >> 64) as u64))
}

/// Does what the route found says: the packet is ready to leave, asks again in `next`, or has a verdict of the general way.
#[expect(clippy::too_many_arguments, reason = "what was asked and answered, and where the packet may go from here")]
#[inline]
fn step6<'g>(
    cx: &Context<'_, 'g>,
    packet: &mut Packet,
    asking: Asking,
    key: u128,
    route: u32,
    exit: &mut Exit,
    next: &mut Lanes,
    ledger: &mut Ledger,
) -> Result<(), Verdict<'g>> {
    let Some(dst) = cx.tables.network.v6.route(cx.guard, route, cx.refs) else {
        return Err(general6(cx, packet, asking, key, None, ledger));
    };
    if std::ptr::from_ref(&*dst).addr() == exit.route && exit.forward6(packet) {
        return Ok(());
    }
    match only_way(&dst) {
        // The wish is looked at where it stands: to move it costs more than all that most behaviours do.
        Some(Nexthop { encap: Encap::Seg6Local(id), .. }) => match &seg6::behavior(cx, packet, *id, ledger) {
            Ok(Next::Onward) => onward(cx, packet, asking.place, false, next),
            Ok(wish) => again(cx, packet, asking.place, wish, next),
            Err(reason) => Err(Verdict::Drop(*reason)),
        },
        Some(hop @ Nexthop { encap: Encap::None, .. }) if leave6(cx, packet, &dst, hop, key, exit) => Ok(()),
        Some(&Nexthop { encap: Encap::Seg6(id), dev, .. }) => headend(cx, packet, asking.place, id, Inner::V6, dev, next, ledger),
        _ => Err(general6(cx, packet, asking, key, Some(dst), ledger)),
    }
}

/// As [`step6`] for IPv4.
#[inline]
fn step4<'g>(
    cx: &Context<'_, 'g>,
    packet: &mut Packet,
    asking: Asking,
    key: u32,
    route: u32,
    next: &mut Lanes,
    ledger: &mut Ledger,
) -> Result<(), Verdict<'g>> {
    let Some(dst) = cx.tables.network.v4.route(cx.guard, route, cx.refs) else {
        return Err(general4(cx, packet, asking, key, None, ledger));
    };
    let way = only_way(&dst).filter(|hop| {
        let src = ipv4::Header::read(&packet.buf).map_or(Ipv4Addr::UNSPECIFIED, ipv4::Header::src);
        cx.links.get(packet.dev).is_some_and(|link| link.conf4.forwarding) && source4::is_plain(cx, packet, src, hop.dev)
    });
    match way {
        Some(hop @ Nexthop { encap: Encap::None, .. }) if leave4(cx, packet, &dst, hop, key) => Ok(()),
        Some(&Nexthop { encap: Encap::Seg6(id), dev, .. }) => headend(cx, packet, asking.place, id, Inner::V4, dev, next, ledger),
        _ => Err(general4(cx, packet, asking, key, Some(dst), ledger)),
    }
}

/// The way out of a route that sends all its packets on by one.
#[inline]
fn only_way(dst: &Dst) -> Option<&Nexthop> {
    dst.nexthop.as_ref().filter(|_| dst.kind == Kind::Unicast && dst.more.is_empty())
}

/// The general way from a route on, or from the lookup when the short one found none.
#[cold]
fn general6<'g>(
    cx: &Context<'_, 'g>,
    packet: &mut Packet,
    asking: Asking,
    key: u128,
    dst: Option<DstRef<'g>>,
    ledger: &mut Ledger,
) -> Verdict<'g> {
    let nexthop = asking.nexthop.then(|| Ipv6Addr::from_key(key));
    let lookup = Lookup6 { nexthop, local: packet.may_be_local, ..Lookup6::default() };
    let answer = match dst {
        Some(dst) => Answer::untraced(dst),
        None => cx.tables.network.v6.lookup(cx.guard, &decide::flow6(cx, packet, &lookup), cx.refs),
    };
    decide::route6(cx, packet, &lookup, Some(answer), ledger)
}

/// As [`general6`] for IPv4.
#[cold]
fn general4<'g>(
    cx: &Context<'_, 'g>,
    packet: &mut Packet,
    asking: Asking,
    key: u32,
    dst: Option<DstRef<'g>>,
    ledger: &mut Ledger,
) -> Verdict<'g> {
    let lookup = Lookup4 { nexthop: asking.nexthop.then(|| Ipv4Addr::from_key(key)), ..Lookup4::default() };
    let answer = match dst {
        Some(dst) => Answer::untraced(dst),
        None => cx.tables.network.v4.lookup(cx.guard, &decide::flow4(cx, packet, &lookup), cx.refs),
    };
    decide::route4(cx, packet, &lookup, answer, ledger)
}

#[allow(clippy::too_many_arguments, reason = "a step's arguments and the policy's")]
#[inline]
fn headend<'g>(
    cx: &Context<'_, 'g>,
    packet: &mut Packet,
    place: u32,
    id: PolicyId,
    inner: Inner,
    dev: IfIndex,
    next: &mut Lanes,
    ledger: &mut Ledger,
) -> Result<(), Verdict<'g>> {
    match seg6::headend(cx, packet, id, inner, dev, ledger) {
        Ok(()) => onward(cx, packet, place, true, next),
        Err(reason) => Err(Verdict::Drop(reason)),
    }
}

/// Asks for the destination that an IPv6 packet has now; `local` says that it may be the router itself.
#[inline]
fn onward<'g>(cx: &Context<'_, 'g>, packet: &mut Packet, place: u32, local: bool, next: &mut Lanes) -> Result<(), Verdict<'g>> {
    if cx.plain6
        && may_ask(packet)
        && let Some(header) = ipv6::Header::read(&packet.buf)
        && is_plain6(header.dst().key())
    {
        next.v6.push(place, false, header.dst().key());
        packet.lookups += 1;
        packet.may_be_local = local;
        return Ok(());
    }
    Err(Verdict::Route6(Lookup6 { local, ..Lookup6::default() }))
}

/// Asks for what a behaviour wants, if one address is all it takes.
#[inline]
fn again<'g>(cx: &Context<'_, 'g>, packet: &mut Packet, place: u32, wish: &Next, next: &mut Lanes) -> Result<(), Verdict<'g>> {
    match *wish {
        Next::Route6(Lookup6 { nexthop: Some(nexthop), oif: None, table: None, vrf: None, local })
            if cx.plain6 && may_ask(packet) && is_plain6(nexthop.key()) =>
        {
            next.v6.push(place, true, nexthop.key());
            packet.may_be_local = local;
        }
        Next::Route6(Lookup6 { nexthop: None, oif: None, table: None, vrf: None, local }) => return onward(cx, packet, place, local, next),
        Next::Route4(Lookup4 { nexthop, vrf: None }) if cx.plain4 && may_ask(packet) => {
            let Some(key) = plain4(&packet.buf, nexthop) else { return Err(decide::then(*wish)) };
            next.v4.push(place, nexthop.is_some(), key);
        }
        _ => return Err(decide::then(*wish)),
    }
    packet.lookups += 1;
    Ok(())
}

/// The packet may ask again on the short way.
#[inline]
fn may_ask(packet: &Packet) -> bool {
    packet.lookups < MAX_LOOKUPS && !packet.in_vrf
}

/// What to ask for an IPv4 packet out of a tunnel, unless it or its addresses are out of the ordinary.
#[inline]
fn plain4(packet: &[u8], nexthop: Option<Ipv4Addr>) -> Option<u32> {
    let header = ipv4::Header::read(packet).filter(|header| header.header_len() == ipv4::LEN)?;
    let dst = nexthop.unwrap_or(header.dst());
    (check_addresses(header.src(), dst) == Ok(Addresses::Route)).then_some(dst.key())
}

/// Sends an IPv6 packet on by a route's only way, and keeps what that took in `exit` for those that follow. False, and nothing done to the packet, when
/// it takes the general way.
#[inline]
fn leave6(cx: &Context<'_, '_>, packet: &mut Packet, dst: &Dst, hop: &Nexthop, to: u128, exit: &mut Exit) -> bool {
    if !cx.settings.all6.forwarding {
        return false;
    }
    *exit = Exit::of(cx, dst, hop, || Ipv6Addr::from_key(to).into()).unwrap_or(Exit::NONE);
    exit.forward6(packet)
}

/// As [`leave6`] for IPv4, whose ways out are not kept.
#[inline]
fn leave4(cx: &Context<'_, '_>, packet: &mut Packet, dst: &Dst, hop: &Nexthop, to: u32) -> bool {
    Exit::of(cx, dst, hop, || Ipv4Addr::from_key(to).into()).is_some_and(|exit| exit.forward4(packet))
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

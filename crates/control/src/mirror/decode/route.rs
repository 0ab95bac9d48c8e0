//! `RTM_NEWROUTE`, `RTM_DELROUTE`: routes of both families.

use std::net::{IpAddr, Ipv6Addr};

use route::{IfIndex, Kind, Metrics, Prefix, TableId};
use smallvec::SmallVec;

use super::encap::{Encap, encap};
use super::{Family, attribute, attributes, ip, u8_at, u16_at, u32_at, u32_of};
use crate::mirror::Reason;

/// `struct rtmsg`.
const HEADER_LEN: usize = 12;
const RTA_DST: u16 = 1;
const RTA_SRC: u16 = 2;
const RTA_OIF: u16 = 4;
const RTA_GATEWAY: u16 = 5;
const RTA_PRIORITY: u16 = 6;
const RTA_PREFSRC: u16 = 7;
const RTA_METRICS: u16 = 8;
const RTA_MULTIPATH: u16 = 9;
const RTA_TABLE: u16 = 15;
const RTA_VIA: u16 = 18;
const RTA_ENCAP_TYPE: u16 = 21;
const RTA_ENCAP: u16 = 22;
const RTA_NH_ID: u16 = 30;
const RTAX_LOCK: u16 = 1;
const RTAX_MTU: u16 = 2;
const RTAX_ADVMSS: u16 = 8;
const RTAX_HOPLIMIT: u16 = 10;
/// A copy that the kernel keeps of a route for one destination.
const RTM_F_CLONED: u32 = 0x200;
const RTNH_F_DEAD: u8 = 1;
const RTNH_F_ONLINK: u8 = 4;

/// Ways out; nearly always one.
pub type Ways = SmallVec<[Way; 1]>;

/// One way out of a route, or a nexthop object.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Way {
    /// The device.
    pub dev: IfIndex,
    /// The gateway, which may be of the other family.
    pub via: Option<IpAddr>,
    /// Share of the flows, 1 to 65535.
    pub weight: u16,
    /// The kernel does not use it: its device is down.
    pub dead: bool,
    /// Its gateway is on the link, whatever the addresses say.
    pub onlink: bool,
    /// What it does to the packet.
    pub encap: Option<Box<Encap>>,
}

impl Way {
    /// True of the same way, dead or not.
    pub fn is(&self, other: &Way) -> bool {
        (self.dev, self.via, self.weight, &self.encap) == (other.dev, other.via, other.weight, &other.encap)
    }
}

/// A route of the kernel, without its table and prefix.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct KernelRoute {
    /// Lower is better.
    pub metric: u32,
    /// Type of service that it is for, 0 for all.
    pub tos: u8,
    /// Protocol number (`proto`).
    pub protocol: u8,
    /// Scope number.
    pub scope: u8,
    /// Type.
    pub kind: Kind,
    /// Preferred source.
    pub src: Option<IpAddr>,
    /// MTU, bytes; 0: none given.
    pub mtu: u32,
    /// Sources that it is for, of IPv6; none: all.
    pub from: Option<Prefix<Ipv6Addr>>,
    /// Further metrics.
    pub metrics: Metrics,
    /// The nexthop object that says the ways out; 0: the route itself does.
    pub nexthop: u32,
    /// Ways out.
    pub ways: Ways,
    /// Why packets of the route are left to the kernel.
    pub unsupported: Option<Reason>,
}

impl KernelRoute {
    /// True of the same route, its ways dead or not.
    pub fn is(&self, other: &KernelRoute) -> bool {
        let head = |route: &KernelRoute| {
            (route.metric, route.tos, route.from, route.protocol, route.scope, route.kind, route.src, route.nexthop, route.metrics)
        };
        let ways = || self.ways.len() == other.ways.len() && self.ways.iter().zip(&other.ways).all(|(way, other)| way.is(other));
        head(self) == head(other) && self.mtu == other.mtu && (self.nexthop != 0 || ways())
    }
}

/// Where a route stands.
pub type Place<A> = (TableId, Prefix<A>);

/// Reads a route of family `A`; none of another family's and of the kernel's copies.
pub fn route<A: Family>(body: &[u8]) -> Option<(Place<A>, KernelRoute)> {
    if u8_at(body, 0)? != A::NUMBER || u32_at(body, 8)? & RTM_F_CLONED != 0 {
        return None;
    }
    let mut table = u32::from(u8_at(body, 4)?);
    let mut dst = A::UNSPECIFIED;
    let (kind, unsupported) = match kind(u8_at(body, 7)?) {
        Ok(kind) => (kind, None),
        Err(reason) => (Kind::Unicast, Some(reason)),
    };
    let mut route = KernelRoute {
        metric: 0,
        tos: u8_at(body, 3)?,
        protocol: u8_at(body, 5)?,
        scope: u8_at(body, 6)?,
        kind,
        src: None,
        mtu: 0,
        from: None,
        metrics: Metrics::default(),
        nexthop: 0,
        ways: Ways::new(),
        unsupported,
    };
    let source_len = u8_at(body, 2)?;
    let mut source = Ipv6Addr::UNSPECIFIED;
    let mut multipath = None;
    let mut only = WayAttributes::default();
    for (kind, value) in attributes(body.get(HEADER_LEN..)?) {
        match kind {
            RTA_DST => dst = A::read(value)?,
            RTA_SRC => source = Ipv6Addr::read(value)?,
            // A table beyond 255 is told here only.
            RTA_TABLE => table = u32_of(value)?,
            RTA_PRIORITY => route.metric = u32_of(value)?,
            RTA_PREFSRC => route.src = ip(value),
            RTA_METRICS => (route.mtu, route.metrics) = metrics(value),
            RTA_NH_ID => route.nexthop = u32_of(value)?,
            RTA_MULTIPATH => multipath = Some(value),
            _ => only.take(kind, value),
        }
    }
    if source_len != 0 {
        route.from = Some(Prefix::new(source, source_len)?);
    }
    let ways = match multipath {
        Some(value) => ways(value),
        None => only.way().map(|way| way.map(|way| with_flags(way, body)).into_iter().collect()),
    };
    match ways {
        // The ways of a nexthop object are the object's, and there they stay current.
        Ok(ways) if route.nexthop == 0 => route.ways = ways,
        Ok(_) => {}
        Err(reason) => route.unsupported = Some(reason),
    }
    let prefix = Prefix::new(dst, u8_at(body, 1)?)?;
    Some(((TableId(table), prefix), route))
}

/// The MTU of a route, and what else is in the attribute for it.
fn metrics(value: &[u8]) -> (u32, Metrics) {
    let metric = |kind| attribute(value, kind).and_then(u32_of).unwrap_or(0);
    let mtu_lock = metric(RTAX_LOCK) >> RTAX_MTU & 1 != 0;
    (metric(RTAX_MTU), Metrics { hop_limit: metric(RTAX_HOPLIMIT) as u8, adv_mss: metric(RTAX_ADVMSS), mtu_lock })
}

/// The only way of a route, of which the route's own flags tell more.
fn with_flags(way: Way, body: &[u8]) -> Way {
    let flags = u32_at(body, 8).unwrap_or(0);
    let (dead, onlink) = (flags & u32::from(RTNH_F_DEAD) != 0, flags & u32::from(RTNH_F_ONLINK) != 0);
    Way { dead, onlink, ..way }
}

/// `RTN_…`.
fn kind(number: u8) -> Result<Kind, Reason> {
    Ok(match number {
        1 => Kind::Unicast,
        2 => Kind::Local,
        3 => Kind::Broadcast,
        4 => Kind::Anycast,
        5 => Kind::Multicast,
        6 => Kind::Blackhole,
        7 => Kind::Unreachable,
        8 => Kind::Prohibit,
        9 => Kind::Throw,
        other => return Err(Reason::RouteType(other)),
    })
}

/// The attributes that describe a way.
#[derive(Default)]
struct WayAttributes<'a> {
    dev: Option<u32>,
    gateway: Option<&'a [u8]>,
    /// `struct rtvia`: family (2 bytes), address of the other family.
    via: Option<&'a [u8]>,
    encap_type: Option<u16>,
    encap: Option<&'a [u8]>,
}

impl<'a> WayAttributes<'a> {
    fn take(&mut self, kind: u16, value: &'a [u8]) {
        match kind {
            RTA_OIF => self.dev = u32_of(value),
            RTA_GATEWAY => self.gateway = Some(value),
            RTA_VIA => self.via = Some(value),
            RTA_ENCAP_TYPE => self.encap_type = u16_at(value, 0),
            RTA_ENCAP => self.encap = Some(value),
            _ => {}
        }
    }

    /// None when there is no device.
    fn way(&self) -> Result<Option<Way>, Reason> {
        let via = match (self.gateway, self.via) {
            (None, None) => None,
            (Some(gateway), _) => Some(ip(gateway).ok_or(Reason::Malformed("gateway"))?),
            (None, Some(via)) => Some(via.get(2..).and_then(ip).ok_or(Reason::Malformed("gateway of the other family"))?),
        };
        let encap = encap(self.encap_type, self.encap).map(Box::new);
        Ok(self.dev.map(|dev| Way { dev: IfIndex(dev), via, weight: 1, dead: false, onlink: false, encap }))
    }
}

/// `RTA_MULTIPATH`: one `struct rtnexthop` (length, flags, weight less one, device) a way, with attributes behind.
fn ways(mut bytes: &[u8]) -> Result<Ways, Reason> {
    const FIXED: usize = 8;
    let mut ways = Ways::new();
    while !bytes.is_empty() {
        let one = || {
            let length = usize::from(u16_at(bytes, 0)?);
            Some((length, u8_at(bytes, 2)?, u8_at(bytes, 3)?, u32_at(bytes, 4)?, bytes.get(FIXED..length)?))
        };
        let (length, flags, hops, dev, attributes) = one().ok_or(Reason::Malformed("multipath"))?;
        let mut found = WayAttributes { dev: Some(dev), ..WayAttributes::default() };
        super::attributes(attributes).for_each(|(kind, value)| found.take(kind, value));
        let way = found.way()?.ok_or(Reason::Malformed("multipath"))?;
        ways.push(Way { weight: u16::from(hops) + 1, dead: flags & RTNH_F_DEAD != 0, onlink: flags & RTNH_F_ONLINK != 0, ..way });
        bytes = bytes.get(length.next_multiple_of(4)..).unwrap_or_default();
    }
    Ok(ways)
}

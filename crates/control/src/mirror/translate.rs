//! What a route of the kernel is to this router: its ways resolved.

use std::collections::BTreeMap;

use route::{Address, Effect, Hop, IfIndex, Kind, SCOPE_HOST};

use super::decode::nexthop::{KernelNexthop, Nexthop};
use super::decode::route::{KernelRoute, Way};
use super::{Reason, decode::link::Device, decode::link::DeviceKind};

/// Numbers of devices are places in a table; one beyond is left to the kernel.
pub const MAX_IFINDEX: u32 = 1 << 16;

/// Ways out with their weights.
pub type Ways<'a> = Vec<(&'a Way, u16)>;

/// A resolved route: its kind, and its ways with their weights.
pub struct Resolved<'a> {
    /// What kind.
    pub kind: Kind,
    /// Ways out, of which one at least can be used.
    pub ways: Ways<'a>,
}

/// Resolves a route. None when none of its ways can be used: then it is as if it were not there.
///
/// # Errors
/// Why its packets are left to the kernel.
pub fn resolve<'a, A: Address>(
    route: &'a KernelRoute,
    link_scoped: bool,
    nexthops: &'a BTreeMap<u32, KernelNexthop>,
    devices: &BTreeMap<IfIndex, Device>,
) -> Result<Option<Resolved<'a>>, Reason> {
    if let Some(reason) = &route.unsupported {
        return Err(reason.clone());
    }
    let (mut kind, ways) = match route.nexthop {
        // Such routes stand once for each device, which an object can change.
        id if id != 0 && link_scoped => return Err(Reason::Nexthop("its route is to link-local addresses")),
        0 => (route.kind, route.ways.iter().map(|way| (way, way.weight)).collect()),
        id => object(id, route.kind, nexthops)?,
    };
    if matches!(kind, Kind::Blackhole | Kind::Unreachable | Kind::Prohibit | Kind::Throw | Kind::NoRoute) {
        return Ok(Some(Resolved { kind, ways: Vec::new() }));
    }
    let v4 = A::BITS == 32;
    // Routes to the router's own addresses stay when their device goes down.
    let stays = v4 && route.scope == SCOPE_HOST;
    let usable = |way: &Way| !way.dead && devices.get(&way.dev).is_some_and(|device| device.up || stays);
    // Ways beside those that can be used stay, to be shown; the tables know by the device that they are not used.
    let dead = |way: &Way| devices.get(&way.dev).is_some_and(|device| device.is_dead(v4));
    let any = ways.iter().any(|(way, _)| usable(way));
    let ways: Vec<_> = ways.into_iter().filter(|(way, _)| usable(way) || any && dead(way)).collect();
    if !v4 && kind == Kind::Unicast && route.nexthop == 0 && ways.first().is_some_and(|(way, _)| loopback(devices, way.dev)) {
        // A route to nowhere: Linux makes it a reject route.
        kind = Kind::Unreachable;
        return Ok(Some(Resolved { kind, ways: Vec::new() }));
    }
    Ok((!ways.is_empty()).then_some(Resolved { kind, ways }))
}

/// The ways of a nexthop object, and the kind that it makes its routes.
fn object(id: u32, kind: Kind, nexthops: &BTreeMap<u32, KernelNexthop>) -> Result<(Kind, Ways<'_>), Reason> {
    match nexthops.get(&id).map(|nexthop| &nexthop.is) {
        // Gone, and the route with it: that is not told.
        None => Ok((kind, Vec::new())),
        Some(Nexthop::Blackhole) => Ok((Kind::Blackhole, Vec::new())),
        Some(Nexthop::Unsupported(reason)) => Err(reason.clone()),
        Some(Nexthop::Way(way)) => Ok((kind, vec![(way, 1)])),
        Some(Nexthop::Group(members, Some(_))) if members.len() > 1 => {
            Err(Reason::Nexthop("it is a resilient group with members that noref has no place for in one"))
        }
        Some(Nexthop::Group(members, _)) => {
            let mut ways = Vec::with_capacity(members.len());
            for (member, weight) in members {
                match nexthops.get(member).map(|nexthop| &nexthop.is) {
                    None => {}
                    Some(Nexthop::Way(way)) => ways.push((way, *weight)),
                    // The only member of its group.
                    Some(Nexthop::Blackhole) => return Ok((Kind::Blackhole, Vec::new())),
                    Some(Nexthop::Unsupported(reason)) => return Err(reason.clone()),
                    Some(Nexthop::Group(..)) => return Err(Reason::NexthopUnresolved),
                }
            }
            Ok((kind, ways))
        }
    }
}

fn loopback(devices: &BTreeMap<IfIndex, Device>, dev: IfIndex) -> bool {
    devices.get(&dev).is_some_and(|device| device.kind == DeviceKind::Loopback)
}

/// The effect of a route whose packets are left to the kernel.
pub fn kernel() -> Effect {
    let hop = Hop { dev: IfIndex::KERNEL, via: None, onlink: false, encap: route::Encap::None, weight: 1 };
    Effect::new(Kind::Unicast, vec![hop])
}

/// True when the route leads through one of the devices, or names one of the nexthop objects.
pub fn concerns(route: &KernelRoute, device: impl Fn(IfIndex) -> bool, object: impl Fn(u32) -> bool) -> bool {
    match route.nexthop {
        0 => route.ways.iter().any(|way| device(way.dev)),
        id => object(id),
    }
}

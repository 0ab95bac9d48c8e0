//! What an event does to a snapshot.
//!
//! Messages about devices, neighbours and nexthop objects say all there is to say. Those about routes say what was asked for, and the order of routes
//! must be worked out as the kernel does; where a message leaves open what happened, the routes are to be dumped again. And some things
//! happen without a message: routes go with the device, the nexthop object or the source address that they need.

use std::collections::HashSet;
use std::net::Ipv4Addr;

use route::{Address, IfIndex, Kind};

use super::decode::link::{Device, index, link};
use super::decode::message::{
    APPEND, DEL_ADDRESS, DEL_LINK, DEL_NEIGHBOUR, DEL_NEXTHOP, DEL_ROUTE, DEL_RULE, Message, NEW_ADDRESS, NEW_BUCKET, NEW_LINK,
    NEW_NEIGHBOUR, NEW_NETCONF, NEW_NEXTHOP, NEW_ROUTE, NEW_RULE, REPLACE, messages,
};
use super::decode::neighbour::neighbour;
use super::decode::nexthop::{KernelNexthop, Nexthop, bucket, nexthop};
use super::decode::route::{KernelRoute, Place, Way, route};
use super::decode::{AF_INET, Family, u8_at};
use super::object::{Object, Objects};
use super::snapshot::{Dirty, Places, RouteList, Routes, Snapshot};

/// What is to be dumped again because of events.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Again {
    /// As soon as the events at hand are read: without it the tables are wrong.
    pub now: Objects,
    /// When the kernel is quiet: the tables should be right, and may not be.
    pub later: Objects,
}

impl Snapshot {
    /// Takes in an event. None when it cannot be read.
    pub fn event(&mut self, message: &Message<'_>, dirty: &mut Dirty, again: &mut Again) -> Option<()> {
        let body = message.body;
        match message.kind {
            NEW_LINK => {
                // Devices of other families than none are told of for reasons of their own.
                if let Some(device) = link(body) {
                    self.device(device, dirty, again);
                }
            }
            DEL_LINK => {
                if let Some(index) = index(body) {
                    dirty.devices |= self.devices.remove(&index).is_some();
                    self.read_what_goes_with(index, again);
                }
            }
            NEW_ADDRESS => again.now.add(Objects::of(&[Object::Addresses])),
            DEL_ADDRESS => {
                again.now.add(Objects::of(&[Object::Addresses]));
                // Routes with this source are gone, in IPv6 it is the source only.
                again.later.add(Objects::of(&[if u8_at(body, 0)? == AF_INET { Object::Routes4 } else { Object::Routes6 }]));
            }
            NEW_RULE | DEL_RULE => again.now.add(Objects::of(&[if u8_at(body, 0)? == AF_INET { Object::Rules4 } else { Object::Rules6 }])),
            NEW_NETCONF => {
                again.now.add(Objects::of(&[Object::Devices, Object::Settings]));
                // Whether routes by devices without a carrier are used is such a setting.
                if self.devices.values().any(|device| device.up && !device.carrier) {
                    again.now.add(Objects::OF_DEVICES);
                }
            }
            NEW_NEIGHBOUR | DEL_NEIGHBOUR => self.neighbour(message, dirty),
            NEW_NEXTHOP => {
                let (id, nexthop) = nexthop(body)?;
                self.nexthop_set(id, nexthop, dirty, again);
            }
            DEL_NEXTHOP => {
                let (id, _) = nexthop(body)?;
                self.nexthop_gone(id, dirty);
            }
            NEW_BUCKET => {
                let bucket = bucket(body)?;
                if self.set_bucket(bucket) {
                    dirty.nexthops.insert(bucket.0);
                }
            }
            NEW_ROUTE | DEL_ROUTE if u8_at(body, 0)? == AF_INET => {
                let Some((place, route)) = route(body) else { return Some(()) };
                self.before_route(&route, dirty);
                change(&mut self.routes4, place, route, message, &mut dirty.routes4, Object::Routes4, again);
            }
            NEW_ROUTE | DEL_ROUTE => {
                let Some((place, route)) = route(body) else { return Some(()) };
                self.before_route(&route, dirty);
                change(&mut self.routes6, place, route, message, &mut dirty.routes6, Object::Routes6, again);
            }
            _ => {}
        }
        Some(())
    }

    fn nexthop_set(&mut self, id: u32, nexthop: KernelNexthop, dirty: &mut Dirty, again: &mut Again) {
        self.forget_routes_of_gone_nexthops(dirty);
        // With the members of a resilient group its buckets changed, without a word.
        if matches!(nexthop.is, Nexthop::Group(_, Some(_))) {
            again.now.add(Objects::of(&[Object::Buckets]));
        }
        if self.nexthops.get(&id) != Some(&nexthop) {
            self.nexthops.insert(id, nexthop);
            dirty.nexthops.insert(id);
        }
    }

    fn device(&mut self, device: Device, dirty: &mut Dirty, again: &mut Again) {
        let before = self.devices.get(&device.index);
        if before == Some(&device) {
            return;
        }
        let state = |device: &Device| (device.up, device.carrier, device.master, device.conf6.disable_ipv6, device.mtu < 1280);
        if before.map(state) != Some(state(&device)) {
            self.read_what_goes_with(device.index, again);
        }
        dirty.devices = true;
        self.devices.insert(device.index, device);
    }

    /// What may have changed without a word because a device did is to be read. Routes can be very many, and those that come with a device are told of: they
    /// are read only if some lead through it.
    fn read_what_goes_with(&self, device: IfIndex, again: &mut Again) {
        let through = |way: &Way| way.dev == device;
        let nexthops = self.nexthops.values().any(|nexthop| matches!(&nexthop.is, Nexthop::Way(way) if through(way)));
        let v4 = || self.routes4.values().flatten().any(|route| route.ways.iter().any(through));
        let v6 = || self.routes6.values().flatten().any(|route| route.ways.iter().any(through));
        if nexthops || v4() || v6() {
            again.now.add(Objects::OF_DEVICES);
        } else {
            again.now.add(Objects::of(&[Object::Addresses, Object::Neighbours]));
        }
    }

    /// A neighbour changed.
    fn neighbour(&mut self, message: &Message<'_>, dirty: &mut Dirty) {
        let Some(n) = neighbour(message.body) else { return };
        let key = (n.dev, n.addr);
        let known = if message.kind == NEW_NEIGHBOUR {
            self.neighbours.insert(key, (n.state, n.mac)) == Some((n.state, n.mac))
        } else {
            self.neighbours.remove(&key).is_none()
        };
        if !known {
            dirty.neighbours.insert(key);
        }
    }

    /// Takes of events that wait, because something is being read that they may be about, what is urgent and can be about neighbours only. They are to be
    /// taken in whole later.
    pub fn urgent(&mut self, datagram: &[u8], dirty: &mut Dirty) {
        for message in messages(datagram).map_while(Result::ok).filter(|message| matches!(message.kind, NEW_NEIGHBOUR | DEL_NEIGHBOUR)) {
            self.neighbour(&message, dirty);
        }
    }

    /// A nexthop object is gone, and with it, without a word, its routes. Groups that it was in are told of.
    fn nexthop_gone(&mut self, id: u32, dirty: &mut Dirty) {
        if self.nexthops.remove(&id).is_none() {
            return;
        }
        dirty.nexthops.insert(id);
        self.gone_nexthops.insert(id);
        self.buckets.remove(&id);
        for (group, nexthop) in &mut self.nexthops {
            if let Nexthop::Group(members, _) = &mut nexthop.is
                && members.iter().any(|(member, _)| *member == id)
            {
                members.retain(|(member, _)| *member != id);
                dirty.nexthops.insert(*group);
            }
        }
    }

    fn before_route(&mut self, route: &KernelRoute, dirty: &mut Dirty) {
        if route.nexthop != 0 {
            self.forget_routes_of_gone_nexthops(dirty);
        }
    }

    /// Once for all that went together, and before one of their numbers may be used again.
    pub(super) fn forget_routes_of_gone_nexthops(&mut self, dirty: &mut Dirty) {
        if self.gone_nexthops.is_empty() {
            return;
        }
        let gone = std::mem::take(&mut self.gone_nexthops);
        forget(&mut self.routes4, &gone, &mut dirty.routes4);
        forget(&mut self.routes6, &gone, &mut dirty.routes6);
    }
}

fn forget<A: Address>(routes: &mut Routes<A>, gone: &HashSet<u32>, dirty: &mut Places<A>) {
    routes.retain(|place, list| {
        let before = list.len();
        list.retain(|route| !gone.contains(&route.nexthop));
        if list.len() != before {
            dirty.insert(*place);
        }
        !list.is_empty()
    });
}

fn change<A: Family>(
    routes: &mut Routes<A>,
    place: Place<A>,
    route: KernelRoute,
    message: &Message<'_>,
    dirty: &mut Places<A>,
    object: Object,
    again: &mut Again,
) {
    let list = routes.entry(place).or_default();
    let v4 = A::BITS == Ipv4Addr::BITS as u8;
    let sure = match (message.kind, v4) {
        (DEL_ROUTE, _) => remove(list, &route),
        (_, true) => put4(list, route, message.flags),
        (_, false) => put6(list, route, message.flags),
    };
    if !sure {
        again.later.add(Objects::of(&[object]));
    }
    if list.is_empty() {
        routes.remove(&place);
    }
    dirty.insert(place);
}

/// Linux `fib_table_insert`: sorted by type of service, then metric; of equal ones the new one stands first, or last when appended, or takes the place
/// of the first. False when it is not sure that this is what happened.
fn put4(list: &mut RouteList, route: KernelRoute, flags: u16) -> bool {
    let key = |route: &KernelRoute| (std::cmp::Reverse(route.tos), route.metric);
    let first = list.partition_point(|other| key(other) < key(&route));
    let end = list.partition_point(|other| key(other) <= key(&route));
    if flags & REPLACE != 0 && first < end {
        list[first] = route;
        return end - first == 1;
    }
    match list.iter().position(|other| other.is(&route)) {
        // Told before the dump that had it already, or again because of its ways.
        Some(known) => list[known] = route,
        None if flags & APPEND != 0 => list.insert(end, route),
        None => list.insert(first, route),
    }
    true
}

/// Linux `fib6_add_rt2node`: sorted by metric, the new one last of its metric. Routes of one metric through gateways are one of several ways, and told
/// of whole. A replacement takes the place of the first one that is alike in this, else of the first.
fn put6(list: &mut RouteList, route: KernelRoute, flags: u16) -> bool {
    // Routes by source stand apart from those for all; the tables put them in their order.
    let key = |route: &KernelRoute| (route.from.map(|from| (from.addr(), from.len())), route.metric);
    let first = list.partition_point(|other| key(other) < key(&route));
    let end = list.partition_point(|other| key(other) <= key(&route));
    let alike = (first..end).find(|at| joins(&list[*at]) == joins(&route));
    if flags & REPLACE != 0 && first < end {
        list[alike.unwrap_or(first)] = route;
        return end - first == 1;
    }
    if let Some(known) = list.iter().position(|other| other.is(&route)) {
        list[known] = route;
        return true;
    }
    match alike.filter(|_| joins(&route)) {
        Some(at) => {
            let known = &mut list[at];
            if known.ways.iter().all(|way| route.ways.iter().any(|other| other.is(way))) {
                *known = route;
            } else {
                known.ways.extend(route.ways);
            }
            false
        }
        None => {
            list.insert(end, route);
            true
        }
    }
}

/// True of IPv6 routes that become one route with others of their metric (Linux `rt6_qualify_for_ecmp`).
fn joins(route: &KernelRoute) -> bool {
    /// `RTPROT_RA`: from a router advertisement.
    const ADVERTISED: u8 = 9;
    route.nexthop == 0
        && route.protocol != ADVERTISED
        && route.kind == Kind::Unicast
        && !route.ways.is_empty()
        && route.ways.iter().all(|way| way.via.is_some())
}

/// False when it is not sure that this is what happened.
fn remove(list: &mut RouteList, route: &KernelRoute) -> bool {
    if let Some(at) = list.iter().position(|other| other.is(route)) {
        list.remove(at);
        return true;
    }
    let alike = |other: &&mut KernelRoute| (other.metric, other.from) == (route.metric, route.from) && joins(other) && joins(route);
    if let Some(known) = list.iter_mut().find(alike) {
        known.ways.retain(|way| !route.ways.iter().any(|gone| (gone.dev, gone.via) == (way.dev, way.via)));
    }
    list.retain(|route| !joins_nothing(route));
    list.is_empty()
}

/// A route of which every way was taken.
fn joins_nothing(route: &KernelRoute) -> bool {
    route.kind == Kind::Unicast && route.nexthop == 0 && route.ways.is_empty() && route.unsupported.is_none()
}

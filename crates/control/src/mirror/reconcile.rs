//! Tables that follow a snapshot: what is dirty in it is told to the editor.

use std::collections::{BTreeMap, BTreeSet, HashMap, HashSet};
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};
use std::sync::Arc;

use plane::Tables;
use route::{
    Action, Editor, Effect, FastHash, Hop, IfIndex, Kind, Link, LinkKind, MirroredRoute, NeighbourState, Prefix, Rule, Select, Selector,
    SidId, TableId, Tick, VLAN_MAX_TAGS,
};
use srv6::{Attributes, HmacKeys};

use super::decode::Family;
use super::decode::address::DeviceAddress;
use super::decode::link::{Device, DeviceKind};
use super::decode::nexthop::{KernelNexthop, Nexthop};
use super::decode::route::{KernelRoute, Place, Way};
use super::decode::rule::KernelRule;
use super::elsewhere::Elsewhere;
use super::here::Here;
use super::objects::{self, take_over};
use super::owned::{Making, Owned};
use super::snapshot::{Dirty, RouteList, Routes, Snapshot};
use super::translate::{MAX_IFINDEX, Resolved, concerns, kernel, resolve};
use super::{Reason, Unsupported};
use crate::apply::{Placed, placed_of_objects};

/// The table that leaves everything to the kernel: rules that noref does not have send there. The kernel has no table 0.
const KERNEL_TABLE: TableId = TableId(0);

/// A router's tables that follow a kernel's.
pub struct Mirror {
    editor: Editor,
    tables: Arc<Tables>,
    ports: Vec<PortIs>,
    devices: BTreeMap<IfIndex, Seen>,
    here: Here,
    elsewhere: Elsewhere,
    owned4: Owned<Place<Ipv4Addr>>,
    owned6: Owned<Place<Ipv6Addr>>,
    /// Of nexthop objects, by number.
    owned_objects: Owned<u32>,
    unsupported_routes4: HashMap<Place<Ipv4Addr>, Reason, FastHash>,
    unsupported_routes6: HashMap<Place<Ipv6Addr>, Reason, FastHash>,
    unsupported_rules: Vec<Unsupported>,
    unsupported_devices: Vec<Unsupported>,
}

/// Which device a port is.
enum PortIs {
    /// The one of this name, whatever its number.
    Named(Box<str>),
    /// The one of this number, whatever its name; none while it is not there.
    Numbered(Option<IfIndex>),
}

/// What of a device decides about its routes.
#[derive(Clone, PartialEq, Eq)]
struct Seen {
    /// Rules name devices.
    name: Box<str>,
    up: bool,
    /// As [`Device::is_dead`], of IPv4 and IPv6.
    dead: [bool; 2],
    kind: LinkKind,
}

impl Mirror {
    /// Empty tables. `ports` are the names of the devices that are the router's ports, in their places.
    pub fn new(ports: &[&str]) -> Mirror {
        let mut editor = Editor::mirror();
        everything_to_the_kernel::<Ipv4Addr>(&mut editor);
        everything_to_the_kernel::<Ipv6Addr>(&mut editor);
        let tables = Arc::new(Tables::beside_kernel(editor.network().clone()));
        Mirror {
            editor,
            tables,
            ports: ports.iter().map(|port| PortIs::Named((*port).into())).collect(),
            devices: BTreeMap::new(),
            here: Here::default(),
            elsewhere: Elsewhere::default(),
            owned4: Owned::default(),
            owned6: Owned::default(),
            owned_objects: Owned::default(),
            unsupported_routes4: HashMap::default(),
            unsupported_routes6: HashMap::default(),
            unsupported_rules: Vec::new(),
            unsupported_devices: Vec::new(),
        }
    }

    /// The port in place `place` is the device of this number from the next reconciliation of devices on, whatever its name is or will be; none: it is not
    /// there.
    pub(super) fn set_port(&mut self, place: usize, index: Option<IfIndex>) {
        while self.ports.len() <= place {
            self.ports.push(PortIs::Numbered(None));
        }
        self.ports[place] = PortIs::Numbered(index);
    }

    pub(super) fn set_time(&mut self, now: Tick) {
        self.editor.set_time(now);
    }

    /// The addresses that the kernel answers for.
    pub fn here(&self) -> &Here {
        &self.here
    }

    /// What workers read.
    pub fn tables(&self) -> &Arc<Tables> {
        &self.tables
    }

    /// The tables' writer, to be read. Nobody else writes while a mirror does.
    pub fn editor(&self) -> &Editor {
        &self.editor
    }

    /// Every SID: where its route stands, and its number.
    pub fn sids(&self) -> impl Iterator<Item = Placed> {
        let of_objects = if self.owned_objects.has_sids() { placed_of_objects(&self.editor) } else { Vec::new() };
        self.owned6.sids().chain(of_objects)
    }

    /// SIDs that no route has any more, since this was last asked: workers count nothing under their numbers from their next bursts on. The numbers are given
    /// out again after [`let_go`](super::let_go).
    pub fn take_gone(&mut self) -> Vec<SidId> {
        let mut gone = self.owned4.take_gone();
        gone.extend(self.owned6.take_gone());
        gone.extend(self.owned_objects.take_gone());
        gone
    }

    /// What is left to the kernel, and why.
    pub fn unsupported(&self) -> Vec<Unsupported> {
        let route = |table: TableId, prefix: String, reason: &Reason| Unsupported {
            what: format!("route {prefix} table {table}"),
            reason: reason.clone(),
        };
        let v4 = self.unsupported_routes4.iter().map(|((table, prefix), reason)| route(*table, prefix.to_string(), reason));
        let v6 = self.unsupported_routes6.iter().map(|((table, prefix), reason)| route(*table, prefix.to_string(), reason));
        let mut all: Vec<_> = self.unsupported_devices.iter().chain(&self.unsupported_rules).cloned().collect();
        let mut routes: Vec<_> = v4.chain(v6).collect();
        routes.sort_by(|a, b| a.what.cmp(&b.what));
        all.extend(routes);
        all
    }

    /// Makes the tables what the snapshot says, where it is dirty, and clean.
    pub fn reconcile(&mut self, snapshot: &mut Snapshot, dirty: &mut Dirty) {
        snapshot.forget_routes_of_gone_nexthops(dirty);
        if dirty.is_clean() {
            return;
        }
        let mut dirty = std::mem::take(dirty);
        if dirty.settings {
            self.editor.settings_mut().clone_from(&snapshot.settings);
            let mut keys = HmacKeys::new();
            for key in &snapshot.hmac_keys {
                // The kernel has no key that cannot be one.
                let _ = keys.set(key.id, key.algorithm, &key.secret);
            }
            self.tables.hmac_keys.publish(keys);
        }
        if dirty.devices {
            self.here.devices_changed();
        }
        let changed = if dirty.devices { self.devices(snapshot) } else { HashSet::new() };
        if !changed.is_empty() || !dirty.nexthops.is_empty() {
            let objects = through_groups(snapshot, &changed, &dirty.nexthops);
            let objects = take_over(&mut self.editor, &self.tables, &mut self.owned_objects, snapshot, &objects);
            if !changed.is_empty() || !objects.is_empty() {
                dirty.routes4.extend(concerned(&snapshot.routes4, &changed, &objects));
                dirty.routes6.extend(concerned(&snapshot.routes6, &changed, &objects));
            }
        }
        if dirty.rules || !changed.is_empty() {
            self.unsupported_rules.clear();
            self.absent(snapshot);
            self.rules(&snapshot.rules4, "");
            self.rules(&snapshot.rules6, "IPv6 ");
        }
        for place in dirty.routes4 {
            let list = snapshot.routes4.get(&place);
            self.here.look(place, list);
            let made = routes(&mut self.editor, &self.tables, &mut self.owned4, snapshot, place, list, false);
            self.elsewhere.look4(&self.editor, place);
            note(&mut self.unsupported_routes4, place, made.unsupported);
        }
        for place in dirty.routes6 {
            let list = snapshot.routes6.get(&place);
            self.here.look(place, list);
            self.routes6(snapshot, place);
        }
        // What SIDs lead to depends on all routes.
        for place in self.elsewhere.changed(&self.editor) {
            self.routes6(snapshot, place);
        }
        for key in dirty.neighbours {
            self.neighbour(key, snapshot.neighbours.get(&key).copied());
        }
        self.editor.commit();
        self.owned4.remove_retired(&self.tables);
        self.owned6.remove_retired(&self.tables);
        self.owned_objects.remove_retired(&self.tables);
        self.editor.network().domain().reclaim();
    }

    fn routes6(&mut self, snapshot: &Snapshot, place: Place<Ipv6Addr>) {
        let elsewhere = self.elsewhere.is(place);
        let made = routes(&mut self.editor, &self.tables, &mut self.owned6, snapshot, place, snapshot.routes6.get(&place), elsewhere);
        self.elsewhere.look6(&self.editor, place, made.sids);
        note(&mut self.unsupported_routes6, place, made.unsupported);
    }

    /// Makes the neighbours what the snapshot says, where they are dirty.
    pub fn reconcile_neighbours(&mut self, snapshot: &Snapshot, dirty: &mut Dirty) {
        for key in dirty.neighbours.drain() {
            self.neighbour(key, snapshot.neighbours.get(&key).copied());
        }
    }

    fn neighbour(&mut self, (dev, addr): (IfIndex, IpAddr), known: Option<(NeighbourState, wire::Mac)>) {
        let neighbours = &self.editor.network().neighbours;
        match known {
            None | Some((NeighbourState::None, _)) => _ = neighbours.remove(dev, addr),
            Some((state, mac)) => neighbours.entry(dev, addr).store(state, mac),
        }
    }

    /// Puts all devices; those are returned of which routes may be usable now, or not any more.
    fn devices(&mut self, snapshot: &Snapshot) -> HashSet<IfIndex> {
        let mut now = BTreeMap::new();
        self.unsupported_devices.clear();
        for (index, device) in &snapshot.devices {
            let kind = match self.kind(device, snapshot, VLAN_MAX_TAGS) {
                Ok(kind) => kind,
                Err(reason) => {
                    self.unsupported_devices.push(Unsupported { what: format!("device {}", device.name), reason });
                    LinkKind::Elsewhere
                }
            };
            if index.0 >= MAX_IFINDEX {
                continue;
            }
            let dead = [device.is_dead(true), device.is_dead(false)];
            self.editor.mirror_dead(*index, dead[0], dead[1]);
            now.insert(*index, Seen { name: device.name.clone(), up: device.up, dead, kind });
        }
        let mut changed: HashSet<_> = self.devices.keys().filter(|index| !now.contains_key(index)).copied().collect();
        for index in &changed {
            self.editor.mirror_link_del(*index);
            self.editor.mirror_dead(*index, false, false);
        }
        for (index, seen) in &now {
            if let Some(device) = snapshot.devices.get(index) {
                self.editor.mirror_link(made_link(device, seen.kind, snapshot));
            }
            if self.devices.get(index) != Some(seen) {
                changed.insert(*index);
            }
        }
        self.devices = now;
        changed
    }

    /// What a device is to the router. `deep`: so many VLANs below it are followed to what they stand on.
    fn kind(&self, device: &Device, snapshot: &Snapshot, deep: usize) -> Result<LinkKind, Reason> {
        if device.index.0 >= MAX_IFINDEX {
            return Err(Reason::IfIndex);
        }
        let place = self.ports.iter().position(|port| match port {
            PortIs::Named(name) => **name == *device.name,
            PortIs::Numbered(index) => *index == Some(device.index),
        });
        let kind = match (&device.kind, place) {
            (DeviceKind::Loopback, _) => return Ok(LinkKind::Loopback),
            (DeviceKind::Vrf(table), _) => return Ok(LinkKind::Vrf(*table)),
            (DeviceKind::Vlan(..), Some(_)) => return Err(Reason::Device("vlan".into())),
            (DeviceKind::Other(kind), Some(_)) => return Err(Reason::Device(kind.clone())),
            (DeviceKind::Ethernet | DeviceKind::Dummy, Some(place)) => LinkKind::Port(place),
            (DeviceKind::Dummy, None) => LinkKind::Dummy,
            (DeviceKind::Vlan(tag, _), None) if self.is_own(tag.parent, snapshot, deep) => LinkKind::Vlan(*tag),
            (DeviceKind::Vlan(..) | DeviceKind::Ethernet | DeviceKind::Other(_), None) => return Ok(LinkKind::Elsewhere),
        };
        match device.master.and_then(|master| snapshot.devices.get(&master)) {
            Some(master) if !matches!(master.kind, DeviceKind::Vrf(_)) => Err(Reason::Master(master.name.clone())),
            _ => Ok(kind),
        }
    }

    /// True of a device that is the router's own, so that a VLAN on it is.
    fn is_own(&self, dev: IfIndex, snapshot: &Snapshot, deep: usize) -> bool {
        let kind = snapshot.devices.get(&dev).filter(|_| deep > 0).map(|device| self.kind(device, snapshot, deep - 1));
        matches!(kind, Some(Ok(LinkKind::Port(_) | LinkKind::Vlan(_) | LinkKind::Dummy)))
    }

    /// Has numbers stand for the devices that rules name and that are not there.
    fn absent(&mut self, snapshot: &Snapshot) {
        let of4 = snapshot.rules4.iter().flat_map(|rule| [&rule.iif, &rule.oif]);
        let of6 = snapshot.rules6.iter().flat_map(|rule| [&rule.iif, &rule.oif]);
        let links = self.editor.links();
        let absent: BTreeSet<_> = of4.chain(of6).flatten().filter(|name| links.named(name).is_none()).cloned().collect();
        if !absent.iter().eq(links.absent()) {
            self.editor.mirror_absent(absent);
        }
    }

    fn rules<A: Family>(&mut self, rules: &[KernelRule<A>], family: &str) {
        let mut made = Vec::with_capacity(rules.len());
        for rule in rules {
            let device = |name: &Option<Box<str>>| match name {
                None => None,
                Some(name) => self.editor.links().number(name),
            };
            let select = Selector { iif: device(&rule.iif), oif: device(&rule.oif), ..rule.select.clone() };
            let action = match &rule.action {
                Ok(action) => *action,
                Err(reason) => {
                    self.unsupported_rules.push(Unsupported { what: format!("{family}rule {}", rule.pref), reason: reason.clone() });
                    Action::Lookup(KERNEL_TABLE)
                }
            };
            let KernelRule { pref, suppress_len, suppress_group, protocol, .. } = *rule;
            made.push(Rule { pref, select, action, suppress_len, suppress_group, protocol });
        }
        self.editor.mirror_rules(made);
    }
}

fn everything_to_the_kernel<A: Family>(editor: &mut Editor) {
    if let Some(all) = Prefix::new(A::UNSPECIFIED, 0) {
        editor.mirror_routes(KERNEL_TABLE, all, [(MirroredRoute::default(), kernel())]);
    }
}

fn made_link(device: &Device, kind: LinkKind, snapshot: &Snapshot) -> Link {
    let mut link = Link::new(device.index, &device.name, kind);
    (link.mac, link.mtu, link.up, link.group) = (device.mac, device.mtu, device.up, device.group);
    (link.conf4, link.conf6) = (device.conf4, device.conf6);
    if let DeviceKind::Vlan(_, settings) = &device.kind {
        link.vlan.clone_from(settings);
    }
    if let Some(master) = device.master.and_then(|master| snapshot.devices.get(&master))
        && let DeviceKind::Vrf(table) = master.kind
    {
        (link.master, link.vrf_table) = (Some(master.index), Some(table));
    }
    for (_, address) in snapshot.addresses.iter().filter(|(dev, _)| *dev == device.index) {
        match address {
            DeviceAddress::V4(address) => link.addrs4.push(*address),
            // The kernel has the newest first, a link has it last; among equals it is the source of what the router sends.
            DeviceAddress::V6(address) => link.addrs6.insert(0, *address),
        }
    }
    link
}

/// The nexthop objects that lead through the devices or are among `changed`, and groups of them.
fn through_groups(snapshot: &Snapshot, devices: &HashSet<IfIndex>, changed: &HashSet<u32>) -> HashSet<u32> {
    let mut all = changed.clone();
    let way = |nexthop: &KernelNexthop| matches!(&nexthop.is, Nexthop::Way(way) if devices.contains(&way.dev));
    all.extend(snapshot.nexthops.iter().filter(|(_, nexthop)| way(nexthop)).map(|(id, _)| *id));
    let group = |nexthop: &KernelNexthop| matches!(&nexthop.is, Nexthop::Group(members, _) if members.iter().any(|(member, _)| all.contains(member)));
    let groups: Vec<_> = snapshot.nexthops.iter().filter(|(_, nexthop)| group(nexthop)).map(|(id, _)| *id).collect();
    all.extend(groups);
    all
}

fn concerned<A: Family>(routes: &Routes<A>, devices: &HashSet<IfIndex>, objects: &HashSet<u32>) -> Vec<Place<A>> {
    let concerns = |route: &KernelRoute| concerns(route, |dev| devices.contains(&dev), |id| objects.contains(&id));
    routes.iter().filter(|(_, list)| list.iter().any(concerns)).map(|(place, _)| *place).collect()
}

/// What was made of a prefix's routes.
struct Made {
    /// The reason why some of its packets are left to the kernel.
    unsupported: Option<Reason>,
    /// The SIDs that are among them.
    sids: Vec<Attributes>,
}

/// Makes what the tables have for a prefix. `elsewhere`: the packets of its SIDs go on by devices of the kernel.
fn routes<A: Family>(
    editor: &mut Editor,
    tables: &Tables,
    owned: &mut Owned<Place<A>>,
    snapshot: &Snapshot,
    place: Place<A>,
    list: Option<&RouteList>,
    elsewhere: bool,
) -> Made {
    let mut making = owned.begin(place, tables);
    let mut unsupported = None;
    let mut sids = Vec::new();
    let mut made: Vec<(MirroredRoute, Effect)> = Vec::new();
    let (table, prefix) = place;
    let link_scoped = prefix.addr().is_link_scoped();
    for route in list.into_iter().flatten() {
        let select = Select { tos: route.tos, from: route.from };
        let head = MirroredRoute { select, metric: route.metric, protocol: route.protocol, scope: route.scope };
        let effect = if !link_scoped && names_object(editor, route) {
            let before = sids.len();
            sids.extend(objects::sids(snapshot, route.nexthop));
            if elsewhere && sids.len() > before {
                Err(Reason::Elsewhere)
            } else {
                Ok(Some(Effect { nexthop: route.nexthop, ..effect(route, Kind::Unicast, Vec::new()) }))
            }
        } else {
            let resolved = resolve::<A>(route, link_scoped, &snapshot.nexthops, &snapshot.devices);
            let own = |resolved: Resolved<'_>| {
                let before = sids.len();
                sids.extend(resolved.ways.iter().filter_map(|(way, _)| objects::sid(way)));
                if elsewhere && sids.len() > before {
                    return Err(Reason::Elsewhere);
                }
                Ok(effect(route, resolved.kind, hops(&resolved.ways, &mut making)?))
            };
            resolved.and_then(|resolved| resolved.map(own).transpose())
        };
        match effect {
            Ok(None) => {}
            // Behind one of its metric that it would be joined to, and is not in the kernel.
            Ok(Some(effect)) if shadowed::<A>(&made, head, &effect) => {}
            Ok(Some(effect)) => made.push((head, effect)),
            Err(reason) => {
                unsupported.get_or_insert(reason);
                made.push((head, kernel()));
            }
        }
    }
    editor.mirror_routes(table, prefix, made);
    owned.end(place, making);
    Made { unsupported, sids }
}

/// True of a route that the tables have like that: it names an object that they have.
fn names_object(editor: &Editor, route: &KernelRoute) -> bool {
    // Told of as a blackhole while its object is one.
    let plain = matches!(route.kind, Kind::Unicast | Kind::Blackhole) && route.unsupported.is_none();
    plain && route.nexthop != 0 && editor.nexthop(route.nexthop).is_some()
}

fn shadowed<A: Family>(made: &[(MirroredRoute, Effect)], head: MirroredRoute, effect: &Effect) -> bool {
    effect.joins::<A>()
        && made.iter().any(|(other, known)| (other.metric, other.select) == (head.metric, head.select) && known.joins::<A>())
}

fn hops(ways: &[(&Way, u16)], making: &mut Making<'_>) -> Result<Vec<Hop>, Reason> {
    let mut hops = Vec::with_capacity(ways.len());
    for (way, weight) in ways {
        let encap = making.number(way.encap.as_deref())?;
        let dev = if way.dev.0 < MAX_IFINDEX { way.dev } else { IfIndex::KERNEL };
        hops.push(Hop { dev, via: way.via, onlink: way.onlink, encap, weight: *weight });
    }
    Ok(hops)
}

fn effect(route: &KernelRoute, kind: Kind, hops: Vec<Hop>) -> Effect {
    Effect { mtu: route.mtu, src: route.src, metrics: route.metrics, ..Effect::new(kind, hops) }
}

fn note<A: Family>(unsupported: &mut HashMap<Place<A>, Reason, FastHash>, place: Place<A>, reason: Option<Reason>) {
    match reason {
        Some(reason) => _ = unsupported.insert(place, reason),
        None if unsupported.is_empty() => {}
        None => _ = unsupported.remove(&place),
    }
}

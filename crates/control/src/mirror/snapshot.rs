//! Everything of the kernel that a packet's way depends on, as plain values.

use std::collections::{BTreeMap, HashMap, HashSet};
use std::hash::{BuildHasher, Hash};
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

use route::{FastHash, IfIndex, NeighbourState, Settings};
use smallvec::SmallVec;
use wire::Mac;

use super::decode::address::{DeviceAddress, address};
use super::decode::link::{Device, link};
use super::decode::message::{Message, NEW_ADDRESS, NEW_BUCKET, NEW_LINK, NEW_NEIGHBOUR, NEW_NEXTHOP, NEW_ROUTE, NEW_RULE};
use super::decode::neighbour::neighbour;
use super::decode::nexthop::{KernelNexthop, Nexthop, bucket, nexthop};
use super::decode::route::{KernelRoute, Place, route};
use super::decode::rule::{KernelRule, rule};
use super::decode::shared::HmacKey;
use super::object::Object;

/// The routes of a prefix, in the kernel's order; nearly always one.
pub type RouteList = SmallVec<[KernelRoute; 1]>;
/// The routes of each prefix of each table.
pub type Routes<A> = HashMap<Place<A>, RouteList, FastHash>;
/// Prefixes of tables.
pub type Places<A> = HashSet<Place<A>, FastHash>;

/// What the kernel has, as far as it was told.
#[derive(Clone, PartialEq, Debug, Default)]
pub struct Snapshot {
    /// Devices.
    pub devices: BTreeMap<IfIndex, Device>,
    /// Addresses of devices, in the kernel's order.
    pub addresses: Vec<(IfIndex, DeviceAddress)>,
    /// Nexthop objects, by number.
    pub nexthops: BTreeMap<u32, KernelNexthop>,
    /// Whose the buckets of each resilient group are: nexthop objects, 0 of one that was not told.
    pub buckets: BTreeMap<u32, Vec<u32>>,
    /// IPv4 rules, in the kernel's order.
    pub rules4: Vec<KernelRule<Ipv4Addr>>,
    /// IPv6 rules, in the kernel's order.
    pub rules6: Vec<KernelRule<Ipv6Addr>>,
    /// Neighbours.
    pub neighbours: HashMap<(IfIndex, IpAddr), (NeighbourState, Mac)>,
    /// IPv4 routes.
    pub routes4: Routes<Ipv4Addr>,
    /// IPv6 routes.
    pub routes6: Routes<Ipv6Addr>,
    /// Settings of the router as a whole.
    pub settings: Settings,
    /// Keys of `ip sr hmac`.
    pub hmac_keys: Vec<HmacKey>,
    /// Nexthop objects that are gone while their routes, which went with them, still stand here.
    pub(super) gone_nexthops: HashSet<u32>,
}

/// What of a snapshot changed and is not in the tables yet.
#[derive(Clone, PartialEq, Debug, Default)]
pub struct Dirty {
    /// Devices, their addresses or settings.
    pub devices: bool,
    /// Rules of either family.
    pub rules: bool,
    /// Settings of the router as a whole, keys.
    pub settings: bool,
    /// Nexthop objects.
    pub nexthops: HashSet<u32>,
    /// Neighbours.
    pub neighbours: HashSet<(IfIndex, IpAddr)>,
    /// IPv4 prefixes.
    pub routes4: Places<Ipv4Addr>,
    /// IPv6 prefixes.
    pub routes6: Places<Ipv6Addr>,
}

impl Dirty {
    /// True when there is nothing to do.
    pub fn is_clean(&self) -> bool {
        *self == Dirty::default()
    }
}

impl Snapshot {
    /// Takes in a message of a dump; false when it cannot be read or tells nothing that counts.
    pub fn add(&mut self, message: &Message<'_>) -> bool {
        let body = message.body;
        let added = match message.kind {
            NEW_LINK => link(body).map(|device| _ = self.devices.insert(device.index, device)),
            NEW_ADDRESS => address(body).map(|address| self.addresses.push(address)),
            NEW_NEXTHOP => nexthop(body).map(|(id, nexthop)| _ = self.nexthops.insert(id, nexthop)),
            NEW_BUCKET => bucket(body).map(|bucket| _ = self.set_bucket(bucket)),
            NEW_RULE => {
                let v4 = rule(body).map(|rule| self.rules4.push(rule));
                v4.or_else(|| rule(body).map(|rule| self.rules6.push(rule)))
            }
            NEW_NEIGHBOUR => neighbour(body).map(|n| _ = self.neighbours.insert((n.dev, n.addr), (n.state, n.mac))),
            NEW_ROUTE => {
                let v4 = route(body).map(|(place, route)| self.routes4.entry(place).or_default().push(route));
                v4.or_else(|| route(body).map(|(place, route)| self.routes6.entry(place).or_default().push(route)))
            }
            _ => None,
        };
        added.is_some()
    }

    /// Puts what a dump told of `object` in place of what is there; what differed is dirty afterwards. The number of differences.
    pub fn replace(&mut self, object: Object, dump: Snapshot, dirty: &mut Dirty) -> usize {
        let count = |changed: bool, flag: &mut bool| {
            *flag |= changed;
            usize::from(changed)
        };
        match object {
            Object::Settings => {
                let changed = self.settings != dump.settings || self.hmac_keys != dump.hmac_keys;
                (self.settings, self.hmac_keys) = (dump.settings, dump.hmac_keys);
                count(changed, &mut dirty.settings)
            }
            Object::Devices => {
                let changed = differing(&self.devices, &dump.devices).count();
                self.devices = dump.devices;
                dirty.devices |= changed > 0;
                changed
            }
            Object::Addresses => {
                let changed = self.addresses != dump.addresses;
                self.addresses = dump.addresses;
                count(changed, &mut dirty.devices)
            }
            Object::Nexthops => replace_objects(&mut self.nexthops, dump.nexthops, &mut dirty.nexthops),
            Object::Buckets => replace_objects(&mut self.buckets, dump.buckets, &mut dirty.nexthops),
            Object::Rules4 => {
                let changed = self.rules4 != dump.rules4;
                self.rules4 = dump.rules4;
                count(changed, &mut dirty.rules)
            }
            Object::Rules6 => {
                let changed = self.rules6 != dump.rules6;
                self.rules6 = dump.rules6;
                count(changed, &mut dirty.rules)
            }
            Object::Neighbours => replace_map(&mut self.neighbours, dump.neighbours, &mut dirty.neighbours),
            Object::Routes4 => replace_map(&mut self.routes4, dump.routes4, &mut dirty.routes4),
            Object::Routes6 => replace_map(&mut self.routes6, dump.routes6, &mut dirty.routes6),
        }
    }

    /// A bucket is this member's; true when it was not before.
    pub(super) fn set_bucket(&mut self, (group, index, member): (u32, u16, u32)) -> bool {
        let buckets = self.buckets.entry(group).or_default();
        let at = usize::from(index);
        if buckets.len() <= at {
            buckets.resize(at + 1, 0);
        }
        std::mem::replace(&mut buckets[at], member) != member
    }

    /// True when there is a resilient group.
    pub(super) fn has_buckets(&self) -> bool {
        self.nexthops.values().any(|nexthop| matches!(nexthop.is, Nexthop::Group(_, Some(_))))
    }
}

/// The keys of which two maps do not say the same.
fn differing<'a, K: Ord, V: PartialEq>(old: &'a BTreeMap<K, V>, new: &'a BTreeMap<K, V>) -> impl Iterator<Item = &'a K> {
    let gone = old.keys().filter(|key| !new.contains_key(key));
    gone.chain(new.iter().filter(|(key, value)| old.get(key) != Some(value)).map(|(key, _)| key))
}

/// Of nexthop objects, by number: counts those that were not dirty before.
fn replace_objects<V: PartialEq>(old: &mut BTreeMap<u32, V>, new: BTreeMap<u32, V>, dirty: &mut HashSet<u32>) -> usize {
    let before = dirty.len();
    dirty.extend(differing(old, &new));
    *old = new;
    dirty.len() - before
}

fn replace_map<K: Copy + Eq + Hash, V: PartialEq, S: BuildHasher>(
    old: &mut HashMap<K, V, S>,
    new: HashMap<K, V, S>,
    dirty: &mut HashSet<K, S>,
) -> usize {
    let gone = old.keys().filter(|key| !new.contains_key(key));
    let differing: Vec<K> =
        gone.chain(new.iter().filter(|(key, value)| old.get(key) != Some(value)).map(|(key, _)| key)).copied().collect();
    dirty.extend(&differing);
    *old = new;
    differing.len()
}

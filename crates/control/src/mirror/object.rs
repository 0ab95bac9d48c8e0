//! The kinds of things that the kernel dumps, one dump each.

use super::decode::message::{DUMP, GET_ADDRESS, GET_BUCKET, GET_LINK, GET_NEIGHBOUR, GET_NEXTHOP, GET_ROUTE, GET_RULE, REQUEST, build};
use super::decode::{AF_INET, AF_INET6};

/// What one dump tells.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[repr(u8)]
pub enum Object {
    /// Settings of the router as a whole: sysctls, and what all SRv6 routes share. No dump: files, and generic netlink.
    Settings,
    /// Devices with their settings.
    Devices,
    /// Addresses of devices.
    Addresses,
    /// Nexthop objects.
    Nexthops,
    /// Buckets of resilient groups of nexthop objects.
    Buckets,
    /// IPv4 rules.
    Rules4,
    /// IPv6 rules.
    Rules6,
    /// Neighbours.
    Neighbours,
    /// IPv4 routes, all tables.
    Routes4,
    /// IPv6 routes, all tables.
    Routes6,
}

impl Object {
    /// Every object, in the order in which they are dumped: what others build on comes first.
    pub const ALL: [Object; 10] = [
        Object::Settings,
        Object::Devices,
        Object::Addresses,
        Object::Nexthops,
        Object::Buckets,
        Object::Rules4,
        Object::Rules6,
        Object::Neighbours,
        Object::Routes4,
        Object::Routes6,
    ];

    /// The request for a dump. Bodies have their full length, zero but for the family: the kernel checks them strictly.
    pub fn request(self, sequence: u32) -> Vec<u8> {
        let (kind, family, len) = match self {
            // Never sent; asking for devices does no harm.
            Object::Settings | Object::Devices => (GET_LINK, 0, 16),
            Object::Addresses => (GET_ADDRESS, 0, 8),
            Object::Nexthops => (GET_NEXTHOP, 0, 8),
            Object::Buckets => (GET_BUCKET, 0, 8),
            Object::Rules4 => (GET_RULE, AF_INET, 12),
            Object::Rules6 => (GET_RULE, AF_INET6, 12),
            Object::Neighbours => (GET_NEIGHBOUR, 0, 12),
            Object::Routes4 => (GET_ROUTE, AF_INET, 12),
            Object::Routes6 => (GET_ROUTE, AF_INET6, 12),
        };
        let mut body = vec![0; len];
        if let Some(first) = body.first_mut() {
            *first = family;
        }
        build(kind, REQUEST | DUMP, sequence, &body)
    }
}

/// A set of objects.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Objects(u16);

impl Objects {
    /// None.
    pub const NONE: Objects = Objects(0);
    /// Every one.
    pub const ALL: Objects = Objects((1 << Object::ALL.len()) - 1);
    /// What changes without a word when a device goes down, comes up or is removed.
    pub const OF_DEVICES: Objects =
        Objects::of(&[Object::Addresses, Object::Nexthops, Object::Buckets, Object::Neighbours, Object::Routes4, Object::Routes6]);

    /// These.
    pub const fn of(objects: &[Object]) -> Objects {
        let (mut set, mut at) = (0, 0);
        while at < objects.len() {
            set |= 1 << objects[at] as u8;
            at += 1;
        }
        Objects(set)
    }

    /// True of none.
    pub fn is_empty(self) -> bool {
        self.0 == 0
    }

    /// True when `object` is one of them.
    pub fn contains(self, object: Object) -> bool {
        self.0 & 1 << object as u8 != 0
    }

    /// Adds those of the other set.
    pub fn add(&mut self, other: Objects) {
        self.0 |= other.0;
    }

    /// Removes one.
    pub fn remove(&mut self, object: Object) {
        self.0 &= !(1 << object as u8);
    }

    /// The first of them, in the order of [`Object::ALL`].
    pub fn first(self) -> Option<Object> {
        Object::ALL.into_iter().find(|object| self.contains(*object))
    }
}

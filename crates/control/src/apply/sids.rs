//! The SIDs of a router, and where they stand.

use std::collections::BTreeMap;
use std::net::{IpAddr, Ipv6Addr};
use std::sync::Arc;

use ::route::{SidId, TableId};
use srv6::Sid;

use crate::address::Prefix;

/// A SID and where it stands.
#[derive(Clone, Debug)]
pub struct LocalSid {
    /// Destinations it is for.
    pub prefix: Prefix,
    /// The table its route stands in.
    pub table: TableId,
    /// Under which number it is counted, and found in [`plane::Tables::sids`].
    pub id: SidId,
    /// What it does.
    pub sid: Arc<Sid>,
}

impl LocalSid {
    /// Where its route stands, and its number; none of a prefix that is no IPv6 prefix, which the parser lets not be.
    pub fn place(&self) -> Option<(TableId, ::route::Prefix<Ipv6Addr>, SidId)> {
        let IpAddr::V6(addr) = self.prefix.addr else { return None };
        Some((self.table, ::route::Prefix::new(addr, self.prefix.len)?, self.id))
    }
}

/// The SIDs by number: of a network file, in its order.
#[derive(Clone, Debug, Default)]
pub struct LocalSids(BTreeMap<SidId, LocalSid>);

impl LocalSids {
    /// The SID of this number.
    pub fn get(&self, id: SidId) -> Option<&LocalSid> {
        self.0.get(&id)
    }

    /// All of them, by number.
    pub fn iter(&self) -> impl Iterator<Item = &LocalSid> {
        self.0.values()
    }

    /// How many there are.
    pub fn len(&self) -> usize {
        self.0.len()
    }

    /// True when there is none.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    pub(super) fn insert(&mut self, sid: LocalSid) {
        self.0.insert(sid.id, sid);
    }

    pub(super) fn remove(&mut self, id: SidId) {
        self.0.remove(&id);
    }
}

impl<'a> IntoIterator for &'a LocalSids {
    type Item = &'a LocalSid;
    type IntoIter = std::collections::btree_map::Values<'a, SidId, LocalSid>;

    fn into_iter(self) -> Self::IntoIter {
        self.0.values()
    }
}

//! The SIDs of a router, and where they stand.

use std::collections::BTreeMap;
use std::net::{IpAddr, Ipv6Addr};
use std::sync::Arc;

use ::route::{SidId, TableId};
use plane::SidCount;
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
    /// What workers had counted under its number before it came, for a SID that is gone.
    pub counted_before: SidCount,
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
pub struct LocalSids {
    sids: BTreeMap<SidId, LocalSid>,
    /// The highest number that there ever was.
    highest: u32,
}

impl LocalSids {
    /// The SID of this number.
    pub fn get(&self, id: SidId) -> Option<&LocalSid> {
        self.sids.get(&id)
    }

    /// All of them, by number.
    pub fn iter(&self) -> impl Iterator<Item = &LocalSid> {
        self.sids.values()
    }

    /// How many there are.
    pub fn len(&self) -> usize {
        self.sids.len()
    }

    /// True when there is none.
    pub fn is_empty(&self) -> bool {
        self.sids.is_empty()
    }

    /// Says what workers had counted under the number of a SID before it came. Of no use for one that is gone.
    pub fn count_from(&mut self, id: SidId, counted: SidCount) {
        if let Some(sid) = self.sids.get_mut(&id) {
            sid.counted_before = counted;
        }
    }

    /// True when the number was another's before.
    pub(super) fn insert(&mut self, sid: LocalSid) -> bool {
        let known = sid.id.0 <= self.highest;
        self.highest = self.highest.max(sid.id.0);
        self.sids.insert(sid.id, sid);
        known
    }

    pub(super) fn remove(&mut self, id: SidId) {
        self.sids.remove(&id);
    }
}

impl<'a> IntoIterator for &'a LocalSids {
    type Item = &'a LocalSid;
    type IntoIter = std::collections::btree_map::Values<'a, SidId, LocalSid>;

    fn into_iter(self) -> Self::IntoIter {
        self.sids.values()
    }
}

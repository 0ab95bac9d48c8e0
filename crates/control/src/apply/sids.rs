//! The SIDs of a router, and where they stand.

use std::collections::BTreeMap;
use std::net::{IpAddr, Ipv6Addr};
use std::sync::Arc;

use ::route::{Editor, Encap, SidId, TableId};
use plane::SidCount;
use srv6::Sid;

use super::Configuration;
use crate::address::Prefix;

/// A SID and where it stands.
#[derive(Clone, Debug)]
pub struct LocalSid {
    /// The table that its route stands in, and the destinations it is for; none of one that a nexthop object has: all its routes have it.
    pub place: Option<(TableId, Prefix)>,
    /// Under which number it is counted, and found in [`plane::Tables::sids`].
    pub id: SidId,
    /// What it does.
    pub sid: Arc<Sid>,
    /// What workers had counted under its number before it came, for a SID that is gone.
    pub counted_before: SidCount,
}

impl LocalSid {
    /// Where its route stands, and its number.
    fn placed(&self) -> Option<Placed> {
        let (table, Prefix { addr: IpAddr::V6(addr), len }) = self.place? else { return None };
        Some((table, ::route::Prefix::new(addr, len)?, self.id))
    }
}

/// The table and the prefix of a SID's route, and the SID's number.
pub type Placed = (TableId, ::route::Prefix<Ipv6Addr>, SidId);

impl Configuration {
    /// Where each SID stands, in no order. That of a nexthop object stands wherever a route names the object, or a group of it.
    pub fn placed_sids(&self) -> Vec<Placed> {
        let mut all: Vec<_> = self.sids.iter().filter_map(LocalSid::placed).collect();
        if self.sids.iter().any(|sid| sid.place.is_none()) {
            all.extend(placed_of_objects(&self.editor));
        }
        all
    }
}

/// Where the SIDs of nexthop objects stand. Looks at all IPv6 routes.
pub(crate) fn placed_of_objects(editor: &Editor) -> Vec<Placed> {
    let mut all = Vec::new();
    for (table, _) in editor.tables::<Ipv6Addr>() {
        for (prefix, entry) in editor.routes::<Ipv6Addr>(table).filter(|(_, entry)| entry.effect.nexthop != 0) {
            all.extend(editor.ways_of(&entry.effect).iter().filter_map(|hop| match hop.encap {
                Encap::Seg6Local(id) => Some((table, prefix, id)),
                Encap::Seg6(_) | Encap::None => None,
            }));
        }
    }
    all
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

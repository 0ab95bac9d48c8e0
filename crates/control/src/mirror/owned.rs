//! SIDs and policies that routes of the mirror refer to by number.

use std::collections::{BTreeSet, HashMap};
use std::hash::Hash;
use std::sync::Arc;

use plane::Tables;
use route::{Address, PolicyId, Prefix, SidId, TableId};
use srv6::{Policy, Sid, action_by_number};

use super::Reason;
use super::decode::encap::Encap;
use super::decode::route::Place;
use crate::apply::letting_go;

/// What was made of an encapsulation, for as long as its route says the same: a SID keeps its number, and with it its counters.
type Made = (Encap, route::Encap);

/// SIDs and policies by what they are of: the routes of a prefix, a nexthop object.
pub struct Owned<K> {
    of: HashMap<K, Vec<Made>>,
    /// Those that no route has any more, to be removed when workers do not find their routes any more.
    retired: Vec<route::Encap>,
    /// The highest number that a SID ever had.
    highest: u32,
    /// New SIDs whose number was another's before.
    numbered_again: BTreeSet<SidId>,
}

impl<K> Default for Owned<K> {
    fn default() -> Owned<K> {
        Owned { of: HashMap::new(), retired: Vec::new(), highest: 0, numbered_again: BTreeSet::new() }
    }
}

/// The encapsulations of one of them while it is made again.
pub struct Making<'a> {
    tables: &'a Tables,
    before: Vec<Made>,
    now: Vec<Made>,
    /// The numbers of new SIDs.
    fresh: Vec<SidId>,
}

impl Making<'_> {
    /// The number for what a way does.
    ///
    /// # Errors
    /// Why noref cannot do it.
    pub fn number(&mut self, encap: Option<&Encap>) -> Result<route::Encap, Reason> {
        let Some(encap) = encap else { return Ok(route::Encap::None) };
        let made = match self.before.iter().position(|(known, _)| known == encap) {
            Some(known) => self.before.swap_remove(known),
            None => (encap.clone(), self.make(encap)?),
        };
        let number = made.1;
        self.now.push(made);
        Ok(number)
    }

    fn make(&mut self, encap: &Encap) -> Result<route::Encap, Reason> {
        let refused = |error: srv6::BuildError| Reason::Refused(error.to_string());
        match encap {
            Encap::Unsupported(reason) => Err(reason.clone()),
            Encap::Seg6 { mode, segments, tunsrc, table } => {
                let policy = Policy::build(*mode, segments, *tunsrc).map_err(refused)?.looked_up_in(*table);
                Ok(route::Encap::Seg6(PolicyId(self.tables.policies.insert(Arc::new(policy)))))
            }
            Encap::Seg6Local { action, attributes } => {
                let descriptor = action_by_number(*action).ok_or(Reason::Action(*action))?;
                let sid = Sid::build(descriptor, attributes).map_err(refused)?;
                let id = SidId(self.tables.sids.insert(Arc::new(sid)));
                self.fresh.push(id);
                Ok(route::Encap::Seg6Local(id))
            }
        }
    }
}

impl<K: Copy + Eq + Hash> Owned<K> {
    /// Begins to make it again.
    pub fn begin<'a>(&mut self, place: K, tables: &'a Tables) -> Making<'a> {
        Making { tables, before: self.of.remove(&place).unwrap_or_default(), now: Vec::new(), fresh: Vec::new() }
    }

    /// Ends it: what was not asked for again goes.
    pub fn end(&mut self, place: K, making: Making<'_>) {
        for id in making.fresh {
            if id.0 <= self.highest {
                self.numbered_again.insert(id);
            }
            self.highest = self.highest.max(id.0);
        }
        self.retired.extend(making.before.into_iter().map(|(_, number)| number));
        if !making.now.is_empty() {
            self.of.insert(place, making.now);
        }
    }

    /// Removes what no route has any more, once no worker can have it in a burst. The routes must have been committed.
    pub fn remove_retired(&mut self, tables: &Arc<Tables>) {
        self.retired.drain(..).for_each(|number| letting_go::after_a_grace_period(tables, number));
    }

    /// New SIDs whose number was another's before, since this was last asked.
    pub fn take_numbered_again(&mut self) -> BTreeSet<SidId> {
        std::mem::take(&mut self.numbered_again)
    }
}

impl<A: Address> Owned<Place<A>> {
    /// Every SID: where its route stands, and its number.
    pub fn sids(&self) -> impl Iterator<Item = (TableId, Prefix<A>, SidId)> {
        self.of.iter().flat_map(|((table, prefix), made)| {
            made.iter().filter_map(|(_, number)| match number {
                route::Encap::Seg6Local(id) => Some((*table, *prefix, *id)),
                _ => None,
            })
        })
    }
}

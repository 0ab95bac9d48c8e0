//! SIDs and policies that routes of the mirror refer to by number.

use std::collections::HashMap;
use std::hash::Hash;
use std::sync::Arc;

use plane::Tables;
use route::{Address, FastHash, PolicyId, Prefix, SidId, TableId};
use srv6::{Policy, Sid, action_by_number};

use super::Reason;
use super::decode::encap::Encap;
use super::decode::route::Place;
use crate::apply::letting_go;

/// What was made of an encapsulation, for as long as its route says the same: a SID keeps its number, and with it its counters.
type Made = (Encap, route::Encap);

/// SIDs and policies by what they are of: the routes of a prefix, a nexthop object.
pub struct Owned<K> {
    of: HashMap<K, Vec<Made>, FastHash>,
    /// Those that no route has any more, to be removed when workers do not find their routes any more.
    retired: Vec<route::Encap>,
    /// SIDs among them that workers do not find any more, whose numbers are not given out again yet.
    gone: Vec<SidId>,
}

impl<K> Default for Owned<K> {
    fn default() -> Owned<K> {
        Owned { of: HashMap::default(), retired: Vec::new(), gone: Vec::new() }
    }
}

/// The encapsulations of one of them while it is made again.
pub struct Making<'a> {
    tables: &'a Tables,
    before: Vec<Made>,
    now: Vec<Made>,
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
                Ok(route::Encap::Seg6Local(SidId(self.tables.sids.insert(Arc::new(sid)))))
            }
        }
    }
}

impl<K: Copy + Eq + Hash> Owned<K> {
    /// Begins to make it again.
    pub fn begin<'a>(&mut self, place: K, tables: &'a Tables) -> Making<'a> {
        let before = if self.of.is_empty() { None } else { self.of.remove(&place) };
        Making { tables, before: before.unwrap_or_default(), now: Vec::new() }
    }

    /// Ends it: what was not asked for again goes.
    pub fn end(&mut self, place: K, making: Making<'_>) {
        self.retired.extend(making.before.into_iter().map(|(_, number)| number));
        if !making.now.is_empty() {
            self.of.insert(place, making.now);
        }
    }

    /// Removes policies that no route has any more, once no worker can have them in a burst. The routes must have been committed.
    pub fn remove_retired(&mut self, tables: &Arc<Tables>) {
        for number in self.retired.drain(..) {
            match number {
                route::Encap::Seg6Local(id) => self.gone.push(id),
                other => letting_go::after_a_grace_period(tables, other),
            }
        }
    }

    /// True when there is a SID.
    pub fn has_sids(&self) -> bool {
        self.of.values().flatten().any(|(_, number)| matches!(number, route::Encap::Seg6Local(_)))
    }

    /// SIDs that no route has any more, since this was last asked.
    pub fn take_gone(&mut self) -> Vec<SidId> {
        std::mem::take(&mut self.gone)
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

/// Has the numbers of SIDs that are gone be given out again, once no worker can have them in a burst.
pub fn let_go(tables: &Arc<Tables>, gone: impl IntoIterator<Item = SidId>) {
    gone.into_iter().for_each(|id| letting_go::after_a_grace_period(tables, route::Encap::Seg6Local(id)));
    tables.network.domain().reclaim();
}

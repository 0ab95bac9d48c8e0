//! SIDs and policies that no route names any more.

use std::sync::{Arc, Weak};

use ::route::Encap;
use plane::Tables;

/// Takes out of the tables what no worker can have found.
pub(crate) fn now(tables: &Tables, encap: Encap) {
    match encap {
        Encap::None => {}
        Encap::Seg6(id) => _ = tables.policies.remove(id.0),
        Encap::Seg6Local(id) => _ = tables.sids.remove(id.0),
    }
}

/// Takes out of the tables what a worker may have found in a burst that goes on: a packet that has its route already must find what the route
/// names, or it would be lost. The routes must have been committed.
pub(crate) fn after_a_grace_period(tables: &Arc<Tables>, encap: Encap) {
    tables.network.domain().retire(Box::new(LetGo { tables: Arc::downgrade(tables), encap }));
}

/// Dropped after a grace period.
struct LetGo {
    tables: Weak<Tables>,
    encap: Encap,
}

impl Drop for LetGo {
    fn drop(&mut self) {
        if let Some(tables) = self.tables.upgrade() {
            now(&tables, self.encap);
        }
    }
}

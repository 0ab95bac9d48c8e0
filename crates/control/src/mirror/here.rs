//! The addresses that the kernel answers for: packets to them are not forwarded.

use std::collections::{HashMap, HashSet};
use std::net::IpAddr;

use route::{Kind, TableId};

use super::decode::Family;
use super::decode::route::Place;
use super::snapshot::RouteList;

/// The router's own addresses, its broadcast and its anycast addresses, by table: those of a VRF stand in the VRF's.
#[derive(Default)]
pub struct Here {
    tables: HashMap<TableId, HashSet<IpAddr>>,
    changes: u64,
}

impl Here {
    /// The addresses in a table. What is sent to one in table `local` is for the host whatever VRF it comes in by, as the rule to that table comes first; to one
    /// in a VRF's table, in that VRF.
    pub fn addresses(&self, table: TableId) -> impl Iterator<Item = IpAddr> {
        self.tables.get(&table).into_iter().flatten().copied()
    }

    /// Counts up with every change, also of devices: which VRF one is in, and its MAC.
    pub fn changes(&self) -> u64 {
        self.changes
    }

    pub(super) fn devices_changed(&mut self) {
        self.changes += 1;
    }

    /// The routes of a prefix are these now.
    pub(super) fn look<A: Family>(&mut self, (table, prefix): Place<A>, routes: Option<&RouteList>) {
        if prefix.len() != A::BITS {
            return;
        }
        let addr: IpAddr = prefix.addr().into();
        let first = routes.and_then(|routes| routes.first());
        let here = first.is_some_and(|route| matches!(route.kind, Kind::Local | Kind::Broadcast | Kind::Anycast));
        let changed = match (here, self.tables.get_mut(&table)) {
            (true, _) => self.tables.entry(table).or_default().insert(addr),
            (false, Some(known)) => known.remove(&addr),
            (false, None) => false,
        };
        self.changes += u64::from(changed);
    }
}

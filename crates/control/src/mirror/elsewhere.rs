//! SIDs whose packets go on by devices of the kernel.
//!
//! A packet that a plain route sends to a device that is no port is left to the kernel as it is. Behind a SID that is not enough: the kernel would not know the
//! nexthop or the table that the SID names, the packet being no longer addressed to it. So all of the SID's packets are left to the kernel, as they came.

use std::collections::{HashMap, HashSet};
use std::net::{Ipv4Addr, Ipv6Addr};

use route::{Editor, Encap, Family, FastHash, IfIndex, Kind, Prefix, RouteEntry, TableId};
use srv6::Attributes;

use super::decode::route::Place;

/// Which SIDs there are, and which of them lead to devices of the kernel.
#[derive(Default)]
pub struct Elsewhere {
    /// The SIDs that name where their packets go, and whether that is elsewhere.
    sids: HashMap<Place<Ipv6Addr>, (Vec<Attributes>, bool), FastHash>,
    /// Of tables that only SIDs, rules and VRFs name: the prefixes that lead elsewhere.
    up4: HashMap<TableId, HashSet<Prefix<Ipv4Addr>>>,
    up6: HashMap<TableId, HashSet<Prefix<Ipv6Addr>>>,
    /// Routes changed since it was looked at what SIDs lead to.
    stale: bool,
}

impl Elsewhere {
    /// True when the packets of the SIDs of this prefix are to be left to the kernel.
    pub fn is(&self, place: Place<Ipv6Addr>) -> bool {
        self.sids.get(&place).is_some_and(|(_, elsewhere)| *elsewhere)
    }

    /// The IPv4 routes of a prefix are others now.
    pub fn look4(&mut self, editor: &Editor, place: Place<Ipv4Addr>) {
        self.stale = true;
        note(&mut self.up4, editor, place);
    }

    /// The IPv6 routes of a prefix are others now, and these SIDs among them.
    pub fn look6(&mut self, editor: &Editor, place: Place<Ipv6Addr>, sids: Vec<Attributes>) {
        self.stale = true;
        note(&mut self.up6, editor, place);
        let naming: Vec<_> = sids.into_iter().filter(names_a_way).collect();
        if !naming.is_empty() {
            self.sids.entry(place).or_default().0 = naming;
        } else if !self.sids.is_empty() {
            self.sids.remove(&place);
        }
    }

    /// The prefixes whose SIDs lead elsewhere now and did not, or the other way round.
    pub fn changed(&mut self, editor: &Editor) -> Vec<Place<Ipv6Addr>> {
        if !std::mem::take(&mut self.stale) {
            return Vec::new();
        }
        let Elsewhere { sids, up4, up6, .. } = self;
        let has_up = |table: TableId| up4.contains_key(&table) || up6.contains_key(&table);
        let mut changed = Vec::new();
        for (place, (attributes, elsewhere)) in sids {
            let now = attributes.iter().any(|attributes| leads_elsewhere(editor, attributes, has_up));
            if std::mem::replace(elsewhere, now) != now {
                changed.push(*place);
            }
        }
        changed
    }
}

fn names_a_way(sid: &Attributes) -> bool {
    sid.nh4.is_some() || sid.nh6.is_some() || sid.oif.is_some() || sid.table.is_some()
}

fn leads_elsewhere(editor: &Editor, sid: &Attributes, has_up: impl Fn(TableId) -> bool) -> bool {
    if let Some(oif) = sid.oif {
        return is_elsewhere(editor, oif);
    }
    // The unspecified address stands for the packet's own destination, a link-local one is on the link that the packet came by.
    let nh4 = sid.nh4.filter(|nh4| !nh4.is_unspecified());
    let nh6 = sid.nh6.filter(|nh6| !nh6.is_unspecified() && !nh6.is_unicast_link_local());
    // The kernel looks inner packets up in its own tables by itself.
    let table = sid.table.filter(|table| !matches!(*table, TableId::MAIN | TableId::LOCAL));
    nh4.is_some_and(|nh4| address_is_elsewhere(editor, nh4))
        || nh6.is_some_and(|nh6| address_is_elsewhere(editor, nh6))
        || table.is_some_and(has_up)
}

fn address_is_elsewhere<A: Family>(editor: &Editor, addr: A) -> bool {
    editor.longest(TableId::MAIN, addr).is_some_and(|(_, entry)| goes_up(editor, entry))
}

/// True of a route that leads to a device of the kernel.
fn goes_up(editor: &Editor, entry: &RouteEntry) -> bool {
    let effect = &entry.effect;
    effect.kind == Kind::Unicast && editor.ways_of(effect).iter().any(|hop| hop.encap == Encap::None && is_elsewhere(editor, hop.dev))
}

fn is_elsewhere(editor: &Editor, dev: IfIndex) -> bool {
    dev == IfIndex::KERNEL || editor.links().get(dev).is_some_and(|link| !link.sends())
}

fn note<A: Family>(up: &mut HashMap<TableId, HashSet<Prefix<A>>>, editor: &Editor, (table, prefix): Place<A>) {
    if matches!(table, TableId::MAIN | TableId::LOCAL) {
        return;
    }
    if editor.routes_of(table, prefix).iter().any(|entry| goes_up(editor, entry)) {
        up.entry(table).or_default().insert(prefix);
    } else if let Some(known) = up.get_mut(&table) {
        known.remove(&prefix);
        if known.is_empty() {
            up.remove(&table);
        }
    }
}

//! The route that a lookup comes to, as it was configured.

use std::sync::Arc;

use super::Rib;
use super::commit::best;
use crate::{Address, Dst, DstRef, Editor, Family, Flow, Hop, IfIndex, Neighbour, Prefix, RouteEntry, TableId};

impl<A: Address> Rib<A> {
    /// The routes of the prefix at which a lookup of this flow ends, and which of them it takes; with `by`, of the routes by that device.
    fn find(&self, table: TableId, flow: &Flow<A>, by: Option<IfIndex>) -> Option<(Prefix<A>, &[RouteEntry], usize)> {
        self.longest_with(table, flow.dst, |entries| {
            // See `choices`: where some of a prefix's IPv6 routes are for certain sources, the others are not looked at.
            let certain = A::BITS == 128 && entries.iter().any(|entry| entry.select.from.is_some());
            let takes = |entry: &RouteEntry| entry.select.takes(flow) && !(certain && entry.select.from.is_none());
            entries.iter().position(|entry| takes(entry) && by.is_none_or(|by| self.leads_by(entry, by)))
        })
    }

    /// True when one of a route's ways, its own or those of its nexthop object, leaves by the device. Where Linux looks at no way before it refuses a packet,
    /// the device does not count: in IPv4, and for a nexthop object that is a blackhole.
    fn leads_by(&self, entry: &RouteEntry, dev: IfIndex) -> bool {
        let by = |hops: &[Hop]| hops.iter().any(|hop| hop.dev == dev);
        match self.nexthops.resolve(entry.effect.nexthop) {
            Some((kind, hops)) => kind.is_some() || by(&hops),
            None => by(&entry.effect.hops) || A::BITS == 32 && entry.effect.hops.is_empty(),
        }
    }
}

impl Editor {
    /// The route of a table that packets of this flow take, as it was configured, with its prefix; with `by`, of the routes by that device alone.
    pub fn route_for<A: Family>(&self, table: TableId, flow: &Flow<A>, by: Option<IfIndex>) -> Option<(Prefix<A>, &RouteEntry)> {
        let (prefix, entries, at) = A::rib_ref(self).find(table, flow, by)?;
        Some((prefix, entries.get(at)?))
    }

    /// What [`Editor::route_for`] finds, as workers would have it; they may have a better one.
    pub fn dst_for<A: Family>(&self, table: TableId, flow: &Flow<A>, by: Option<IfIndex>) -> Option<DstRef<'static>> {
        let rib = A::rib_ref(self);
        let (prefix, entries, at) = rib.find(table, flow, by)?;
        // The ways of one route share its flows, those by other devices too.
        let entry = entries.get(at)?;
        let first = entries.iter().position(|other| other.is_beside(entry) && other.joins::<A>()).filter(|_| entry.joins::<A>());
        let entries = entries.get(first.unwrap_or(at)..)?;
        let gateway = |dev, via| self.network().neighbours.get(dev, via).unwrap_or_else(|| Arc::new(Neighbour::new(dev, via)));
        let dst: Dst = rib.dst(&best::<A>(entries, &rib.down), Some(prefix.len()), gateway)?;
        Some(Arc::new(dst).into())
    }
}

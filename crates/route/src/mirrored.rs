//! Tables that follow a kernel's: they are told what is there, and derive and refuse nothing.

use std::sync::atomic::Ordering;

use crate::addresses::PROTO_KERNEL;
use crate::rib::Entries;
use crate::{Editor, Effect, Family, IfIndex, Kind, Link, Prefix, RouteEntry, Rule, Select, TableId};

impl Editor {
    /// As [`Editor::new`], for the mirror of a kernel: there is no rule, and no address, route or interface is made because of another. The functions
    /// named `mirror_…` are for such an editor only.
    pub fn mirror() -> Editor {
        let mut editor = Editor::new();
        editor.mirrors = true;
        editor.mirror_rules::<std::net::Ipv4Addr>([]);
        editor.mirror_rules::<std::net::Ipv6Addr>([]);
        editor
    }

    /// Puts an interface with its addresses and settings under the number that the kernel gave it.
    pub fn mirror_link(&mut self, link: Link) {
        self.links.put(link);
    }

    /// Removes an interface. Its routes are told of apart.
    pub fn mirror_link_del(&mut self, index: IfIndex) {
        self.links.remove(index);
    }

    /// Says whether the kernel uses routes of each family by the interface. What of its routes is not used for that has to be told, and is not used here.
    pub fn mirror_dead(&mut self, index: IfIndex, v4: bool, v6: bool) {
        self.rib4.set_down(index, v4);
        self.rib6.set_down(index, v6);
    }

    /// What the kernel has for a prefix, in its order, in place of everything that is there; nothing removes the prefix. `effect` of the entries is
    /// shared with other routes of the same effect.
    pub fn mirror_routes<A: Family>(
        &mut self,
        table: TableId,
        prefix: Prefix<A>,
        routes: impl IntoIterator<Item = (MirroredRoute, Effect)>,
    ) {
        let mut entries = Entries::new();
        for (MirroredRoute { select, metric, protocol, scope }, effect) in routes {
            if effect.kind == Kind::Local && protocol != PROTO_KERNEL && A::BITS == 32 {
                self.network().v4.local_given.store(true, Ordering::Relaxed);
            }
            let rib = A::rib(self).0;
            let entry = RouteEntry { select, metric, protocol, scope, effect: rib.intern(effect) };
            // One that is there twice does nothing the second time.
            if !entries.contains(&entry) {
                entries.insert(entries.partition_point(|other| other.rank() <= entry.rank()), entry);
            }
        }
        A::rib(self).0.set(table, prefix, entries);
    }

    /// The names that the kernel's rules have of devices that are not there: see [`Links::number`](crate::Links::number).
    pub fn mirror_absent(&mut self, names: impl IntoIterator<Item = Box<str>>) {
        self.links.keep_only(names);
    }

    /// The kernel's rules, in its order, in place of all.
    pub fn mirror_rules<A: Family>(&mut self, rules: impl IntoIterator<Item = Rule<A>>) {
        let rib = A::rib(self).0;
        rib.rules_flush(|_| true);
        rules.into_iter().for_each(|rule| rib.rule_push(rule));
    }
}

/// A route without what it does: see [`RouteEntry`].
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct MirroredRoute {
    /// Which packets it is for.
    pub select: Select,
    /// Lower is better.
    pub metric: u32,
    /// Protocol number (`proto`).
    pub protocol: u8,
    /// Scope number.
    pub scope: u8,
}

#[cfg(test)]
mod tests {
    use std::net::Ipv4Addr;

    use super::*;
    use crate::{Action, Encap, Hop, Kind, LinkKind};

    fn to(dev: u32) -> Effect {
        let hop = Hop { dev: IfIndex(dev), via: None, onlink: false, encap: Encap::None, weight: 1 };
        Effect::new(Kind::Unicast, vec![hop])
    }

    #[test]
    fn what_is_told_takes_the_place_of_what_was_there() {
        let mut editor = Editor::mirror();
        let prefix = Prefix::new(Ipv4Addr::new(10, 9, 0, 0), 16).unwrap();
        let route = |metric| MirroredRoute { metric, protocol: 3, scope: 253, ..MirroredRoute::default() };
        editor.mirror_routes(TableId::MAIN, prefix, [(route(0), to(7)), (route(5), to(8))]);
        editor.mirror_routes(TableId::MAIN, prefix, [(route(5), to(9))]);
        editor.commit();
        let devices: Vec<_> = editor.routes(TableId::MAIN).map(|(_, entry): (Prefix<Ipv4Addr>, _)| entry.effect.hops[0].dev.0).collect();
        assert_eq!(devices, [9]);
        editor.mirror_routes(TableId::MAIN, prefix, []);
        editor.commit();
        assert_eq!(editor.routes::<Ipv4Addr>(TableId::MAIN).count(), 0);
    }

    #[test]
    fn interfaces_keep_the_kernels_numbers_and_nothing_is_derived() {
        let mut editor = Editor::mirror();
        let mut link = Link::new(IfIndex(41), "e0", LinkKind::Port(2));
        (link.up, link.mtu) = (true, 1500);
        editor.mirror_link(link.clone());
        editor.commit();
        assert_eq!(editor.links().of_port(2).map(|link| link.index), Some(IfIndex(41)));
        assert!(editor.links().get(IfIndex(41)).is_some_and(|link| link.addrs6.is_empty()));
        // The device comes back under another number.
        link.index = IfIndex(77);
        editor.mirror_link(link);
        editor.mirror_link_del(IfIndex(41));
        assert_eq!(editor.links().of_port(2).map(|link| link.index), Some(IfIndex(77)));
        editor.mirror_rules([Rule::<Ipv4Addr>::all(5, Action::Vrf)]);
        assert_eq!(editor.rules::<Ipv4Addr>().len(), 1);
        assert!(editor.rules::<std::net::Ipv6Addr>().is_empty());
    }
}

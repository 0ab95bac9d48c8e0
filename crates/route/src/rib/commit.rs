//! What was changed becomes what workers read, or is taken back.

use std::borrow::Cow;
use std::collections::HashSet;
use std::collections::hash_map::Entry;
use std::net::IpAddr;
use std::sync::Arc;

use super::choices::is_choice;
use super::{Made, Rib, RibTable};
use crate::TableId;
use crate::naming::Naming;
use crate::nexthops::Committed;
use crate::policy::Policy;
use crate::{Action, Address, Dst, Effect, Fib, IfIndex, Kind, Links, Marks, Neighbour, Neighbours, Nexthop, Prefix, RouteEntry, Rule};

/// Changes of a match table that are made at once. What they take out of it can be used for the next ones only once workers have left it: with too many it
/// grows, and is copied, again and again.
const AT_ONCE: usize = 4096;

impl<A: Address> Rib<A> {
    /// Makes readers see everything changed since the last commit.
    /// `links` are the interfaces as of this commit, and `regrouped` says that some of them may be in another group than before.
    pub(crate) fn commit(&mut self, fib: &Fib<A>, neighbours: &Neighbours, naming: &mut Naming, links: &Links, regrouped: bool) {
        self.commit_nexthops(fib, neighbours, naming);
        if self.rules.is_changed() || !self.new.is_empty() {
            self.tell_lengths();
        }
        for id in std::mem::take(&mut self.dirty) {
            let Some(mut table) = self.tables.remove(&id) else { continue };
            self.commit_table(&mut table, fib, neighbours, naming);
            self.tables.insert(id, table);
        }
        let new = !std::mem::take(&mut self.new).is_empty();
        self.down.commit();
        let regrouped = regrouped && self.rules.iter().any(|rule| rule.suppress_group.is_some());
        if self.rules.commit() || new || regrouped {
            let tables = self.tables.values().map(|table| table.published.clone()).collect();
            fib.policy.publish(Policy::compile(&self.rules, tables, links));
        }
        if self.marks.commit() {
            fib.marks.publish(Marks::compile(&self.marks));
        }
        self.domain.reclaim();
    }

    /// Makes the routes of nexthop objects that changed do what those say now: one store for all that differ in nothing else.
    fn commit_nexthops(&mut self, fib: &Fib<A>, neighbours: &Neighbours, naming: &mut Naming) {
        let Committed { changed, named, lost } = self.nexthops.commit();
        // Both families have the same objects.
        if A::BITS == 32 {
            naming.count(lost, named);
        }
        for made in changed.iter().filter_map(|id| self.made_of.get(id)).flatten() {
            // The routes of one that is gone go in the same commit.
            let gateway = |dev, via| neighbours.entry(dev, via);
            if let Some(dst) = self.made.get(made).and_then(|made| self.dst(&made.effect, made.told, gateway)) {
                fib.dsts.replace(*made, Arc::new(dst));
            }
        }
    }

    /// What an effect is to workers, for prefixes of the length `told` alone if there is one; none when it names a nexthop object that is not there.
    pub(super) fn dst(&self, effect: &Effect, told: Option<u8>, gateway: impl Fn(IfIndex, IpAddr) -> Arc<Neighbour>) -> Option<Dst> {
        let (kind, hops) = match effect.nexthop {
            0 => (None, Cow::Borrowed(&effect.hops)),
            id => self.nexthops.resolve(id).map(|(kind, hops)| (kind, Cow::Owned(hops)))?,
        };
        let ways = hops.iter().map(|hop| Nexthop {
            dev: hop.dev,
            gateway: hop.via.map(|via| gateway(hop.dev, via)),
            encap: hop.encap,
            weight: hop.weight,
            until: 0,
        });
        let sharing = self.nexthops.sharing(effect.nexthop, A::BITS == 128);
        let prefix_len = told.unwrap_or(Dst::ANY_LEN);
        Some(Dst {
            mtu: effect.mtu,
            src: effect.src,
            sharing,
            prefix_len,
            metrics: effect.metrics,
            ..Dst::through(kind.unwrap_or(effect.kind), ways)
        })
    }

    /// Takes back everything changed since the last commit.
    pub(crate) fn rollback(&mut self) {
        self.nexthops.rollback();
        for id in std::mem::take(&mut self.dirty) {
            let Some(RibTable { routes, dirty, lengths, .. }) = self.tables.get_mut(&id) else { continue };
            for (prefix, before) in dirty.drain(..) {
                let Some(slot) = routes.get_mut(&prefix) else { continue };
                let length = &mut lengths[usize::from(prefix.len())];
                match (slot.entries.is_empty(), before.is_empty()) {
                    (true, false) => *length += 1,
                    (false, true) => *length -= 1,
                    _ => {}
                }
                if before.is_empty() {
                    routes.remove(&prefix);
                } else {
                    (slot.entries, slot.dirty) = (before, false);
                }
            }
        }
        for id in std::mem::take(&mut self.new) {
            self.tables.remove(&id);
        }
        self.rules.rollback();
        self.marks.rollback();
        self.down.rollback();
        self.reachable.clear();
    }

    /// Has the routes of short prefixes know their length in the tables where a rule asks for it, and makes those anew of which that changes.
    fn tell_lengths(&mut self) {
        let told = |id: TableId, rule: &Rule<A>| match rule.action {
            Action::Lookup(table) if table != id => None,
            Action::Lookup(_) | Action::Vrf => rule.suppress_len,
            _ => None,
        };
        for (id, RibTable { routes, dirty, told_up_to, .. }) in &mut self.tables {
            let wanted = self.rules.iter().filter_map(|rule| told(*id, rule)).max();
            let before = std::mem::replace(told_up_to, wanted);
            if before == wanted {
                continue;
            }
            let clean = dirty.is_empty();
            let longest = before.max(wanted).unwrap_or(0);
            for (prefix, slot) in routes.iter_mut().filter(|(prefix, _)| prefix.len() <= longest) {
                slot.edit(*prefix, dirty);
            }
            if clean && !dirty.is_empty() {
                self.dirty.push(*id);
            }
        }
    }

    fn commit_table(&mut self, table: &mut RibTable<A>, fib: &Fib<A>, neighbours: &Neighbours, naming: &mut Naming) {
        let mut dirty = std::mem::take(&mut table.dirty);
        dirty.sort_unstable_by_key(|(prefix, _)| *prefix);
        let mut changes = Vec::with_capacity(dirty.len());
        let (mut gone, mut unchosen, mut scoped) = (Vec::new(), Vec::new(), Vec::new());
        let down: HashSet<IfIndex> = self.down.clone();
        let told = table.told();
        for (prefix, before) in dirty {
            let (Some(slot), Some(key)) = (table.routes.get_mut(&prefix), prefix.to_lpm()) else { continue };
            slot.dirty = false;
            naming.change(&before, &slot.entries);
            if prefix.addr().is_link_scoped() {
                scoped.push(prefix);
                continue;
            }
            let chosen = table.choices.remove(&prefix);
            let new = match slot.entries.as_slice() {
                [] => None,
                _ if is_choice(&slot.entries) => Some(self.choose(table, prefix, told(prefix), fib, neighbours)),
                entries => Some(self.make(best::<A>(entries, &down), told(prefix), fib, neighbours)),
            };
            let Entry::Occupied(mut slot) = table.routes.entry(prefix) else { continue };
            let old = std::mem::replace(&mut slot.get_mut().leaf, new.unwrap_or(0));
            match chosen {
                Some(chosen) => unchosen.push(chosen),
                None if old != 0 => gone.push(old),
                None => {}
            }
            if new.is_none() {
                slot.remove();
            }
            changes.push((key, new));
        }
        if !scoped.is_empty() {
            self.commit_scoped(table, &scoped, fib, neighbours);
        }
        // A choice leads on to others, and is found only when it does.
        self.link_choices(table, fib);
        self.change(table, &changes);
        // Not before the match table has stopped leading to them.
        gone.into_iter().for_each(|old| self.unmake(old, fib));
        unchosen.into_iter().for_each(|chosen| self.unchoose(chosen, fib));
    }

    /// Changes the match table of a table.
    fn change(&self, table: &RibTable<A>, changes: &[(lpm::Prefix<A::Key>, Option<u32>)]) {
        let lpm = &table.published.lpm;
        // So many beside what there is that the match table is made anew.
        let most = changes.len() >= 64 && changes.len() >= table.routes.len() / 4;
        if most && changes.iter().all(|(_, value)| value.is_some()) {
            return lpm.extend(changes.iter().filter_map(|(prefix, value)| Some((*prefix, (*value)?))));
        }
        for some in changes.chunks(AT_ONCE) {
            lpm.change(some);
            self.domain.reclaim();
        }
    }

    fn commit_scoped(&mut self, table: &mut RibTable<A>, changed: &[Prefix<A>], fib: &Fib<A>, neighbours: &Neighbours) {
        for prefix in changed {
            if table.routes.get(prefix).is_some_and(|slot| slot.entries.is_empty()) {
                table.routes.remove(prefix);
                table.link_scoped.remove(prefix);
            } else {
                table.link_scoped.insert(*prefix);
            }
        }
        let mut scoped = Vec::new();
        let told = table.told();
        for prefix in &table.link_scoped {
            for entry in table.routes.get(prefix).into_iter().flat_map(|slot| &slot.entries) {
                for hop in &entry.effect.hops {
                    let effect = Effect { hops: vec![*hop], ..(*entry.effect).clone() };
                    scoped.push((*prefix, hop.dev, self.make(Arc::new(effect), told(*prefix), fib, neighbours)));
                }
            }
        }
        scoped.sort_by_key(|(prefix, dev, _)| (std::cmp::Reverse(prefix.len()), *dev));
        let made = scoped.iter().map(|&(_, _, id)| id).collect();
        table.published.scoped.publish(scoped);
        for id in std::mem::replace(&mut table.scoped, made) {
            self.unmake(id, fib);
        }
    }

    /// The `Dst` of an effect, made when no other route has it; for prefixes of one length only if it is to be told.
    pub(super) fn make(&mut self, effect: Arc<Effect>, told: Option<u8>, fib: &Fib<A>, neighbours: &Neighbours) -> u32 {
        // Routes that come together mostly do the same.
        let is_same = |made: &Made| made.told == told && Arc::ptr_eq(&made.effect, &effect);
        let same = self.last_made.filter(|id| self.made.get(id).is_some_and(is_same));
        let known = same.or_else(|| self.ids.get(&told)?.get(&*effect).copied());
        let id = known.unwrap_or_else(|| {
            let dst = self.dst(&effect, told, |dev, via| neighbours.entry(dev, via)).unwrap_or_else(|| Dst::special(Kind::Blackhole));
            let id = fib.dsts.insert(Arc::new(dst));
            if effect.nexthop != 0 {
                self.made_of.entry(effect.nexthop).or_default().push(id);
            }
            self.ids.entry(told).or_default().insert(effect.clone(), id);
            id
        });
        self.made.entry(id).or_insert(Made { effect, told, users: 0 }).users += 1;
        self.last_made = Some(id);
        id
    }

    pub(super) fn unmake(&mut self, id: u32, fib: &Fib<A>) {
        let Entry::Occupied(mut made) = self.made.entry(id) else { return };
        made.get_mut().users -= 1;
        if made.get().users == 0 {
            fib.dsts.remove(id);
            let Made { effect, told, .. } = made.remove();
            if let Some(made) = self.made_of.get_mut(&effect.nexthop) {
                made.retain(|of| *of != id);
                if made.is_empty() {
                    self.made_of.remove(&effect.nexthop);
                }
            }
            if let Some(ids) = self.ids.get_mut(&told) {
                ids.remove(&effect);
            }
        }
    }
}

impl<A: Address> RibTable<A> {
    /// The length that the route of a prefix is to know; none where no rule asks for it.
    fn told(&self) -> impl Fn(Prefix<A>) -> Option<u8> + use<A> {
        let up_to = self.told_up_to;
        move |prefix| up_to.filter(|up_to| prefix.len() <= *up_to).map(|_| prefix.len())
    }
}

/// What the best routes of a prefix do together, by the ways that are not `down` if there are others.
pub(super) fn best<A: Address>(entries: &[RouteEntry], down: &HashSet<IfIndex>) -> Arc<Effect> {
    let first = &entries[0];
    let joined = entries.len() > 1 && first.joins::<A>();
    if !joined && (first.effect.hops.len() <= 1 || down.is_empty()) {
        return first.effect.clone();
    }
    let mut effect = (*first.effect).clone();
    let others = entries[1..].iter().filter(|entry| joined && entry.metric == first.metric && entry.joins::<A>());
    effect.hops.extend(others.flat_map(|entry| entry.effect.hops.iter().copied()));
    if effect.hops.iter().any(|hop| !down.contains(&hop.dev)) {
        effect.hops.retain(|hop| !down.contains(&hop.dev));
    }
    Arc::new(effect)
}

//! What was changed becomes what workers read, or is taken back.

use std::borrow::Cow;
use std::collections::HashSet;
use std::sync::Arc;

use super::choices::is_choice;
use super::{Entries, Made, Rib, RibTable};
use crate::TableId;
use crate::naming::Naming;
use crate::nexthops::Committed;
use crate::policy::Policy;
use crate::{Action, Address, Dst, Effect, Fib, IfIndex, Kind, Links, Marks, Neighbours, Nexthop, Prefix, RouteEntry, Rule, Sharing};

/// Changes of a match table, one by one, after which is looked what workers have left of it.
const RECLAIM_EVERY: u32 = 32;

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
            if let Some(dst) = self.made_by_id.get(made).and_then(|(told, effect)| self.dst(effect, *told, neighbours)) {
                fib.dsts.replace(*made, Arc::new(dst));
            }
        }
    }

    /// What an effect is to workers, for prefixes of the length `told` alone if there is one; none when it names a nexthop object that is not there.
    fn dst(&self, effect: &Effect, told: Option<u8>, neighbours: &Neighbours) -> Option<Dst> {
        let (kind, hops) = match effect.nexthop {
            0 => (None, Cow::Borrowed(&effect.hops)),
            id => self.nexthops.resolve(id).map(|(kind, hops)| (kind, Cow::Owned(hops)))?,
        };
        let ways = hops.iter().map(|hop| Nexthop {
            dev: hop.dev,
            gateway: hop.via.map(|via| neighbours.entry(hop.dev, via)),
            encap: hop.encap,
            weight: hop.weight,
            until: 0,
        });
        let sharing = if self.nexthops.is_group(effect.nexthop) { Sharing::Answering } else { Sharing::Plain };
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
        for (prefix, before) in &dirty {
            let Some(slot) = table.routes.get_mut(prefix) else { continue };
            slot.dirty = false;
            naming.change(before, &slot.entries);
        }
        if dirty.iter().any(|(prefix, _)| prefix.addr().is_link_scoped()) {
            self.commit_scoped(table, &dirty, fib, neighbours);
            dirty.retain(|(prefix, _)| !prefix.addr().is_link_scoped());
        }
        let mut changed = Vec::with_capacity(dirty.len());
        let (mut gone, mut unchosen) = (Vec::new(), Vec::new());
        let mut few = 0_u32;
        // What a change takes out of the match table can be used for the next ones only once workers have left it: without that, many changes one by one
        // make it grow and be copied again and again.
        let domain = &self.domain.clone();
        let mut one_more = || {
            few += 1;
            if few.is_multiple_of(RECLAIM_EVERY) {
                domain.reclaim();
            }
        };
        let down: HashSet<IfIndex> = self.down.clone();
        let told = table.told();
        for (prefix, _) in dirty {
            let (Some(slot), Some(key)) = (table.routes.get(&prefix), prefix.to_lpm()) else { continue };
            let chosen = table.choices.remove(&prefix);
            let new = match slot.entries.is_empty() {
                true => 0,
                false if is_choice(&slot.entries) => self.choose(table, prefix, told(prefix), fib, neighbours),
                false => self.make(best::<A>(&slot.entries, &down), told(prefix), fib, neighbours),
            };
            let Some(slot) = table.routes.get_mut(&prefix) else { continue };
            let old = std::mem::replace(&mut slot.leaf, new);
            match chosen {
                Some(chosen) => unchosen.push(chosen),
                None if old != 0 => gone.push(old),
                None => {}
            }
            if new == 0 {
                table.published.lpm.remove(key);
                table.routes.remove(&prefix);
                one_more();
            } else {
                changed.push((key, new));
            }
        }
        // A choice leads on to others, and is found only when it does.
        self.link_choices(table, fib);
        // So few beside what there is that the match table would not be made anew.
        if changed.len() < 64 || changed.len() < table.routes.len() / 64 {
            for (prefix, id) in changed {
                table.published.lpm.insert(prefix, id);
                one_more();
            }
        } else {
            table.published.lpm.extend(changed);
        }
        // Not before the match table has stopped leading to them.
        gone.into_iter().for_each(|old| self.unmake(old, fib));
        unchosen.into_iter().for_each(|chosen| self.unchoose(chosen, fib));
    }

    fn commit_scoped(&mut self, table: &mut RibTable<A>, dirty: &[(Prefix<A>, Entries)], fib: &Fib<A>, neighbours: &Neighbours) {
        for (prefix, _) in dirty.iter().filter(|(prefix, _)| prefix.addr().is_link_scoped()) {
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
                    scoped.push((*prefix, hop.dev, self.make(Cow::Owned(effect), told(*prefix), fib, neighbours)));
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
    pub(super) fn make(&mut self, effect: Cow<'_, Effect>, told: Option<u8>, fib: &Fib<A>, neighbours: &Neighbours) -> u32 {
        if let Some(made) = self.made.get_mut(&told).and_then(|made| made.get_mut(&*effect)) {
            made.users += 1;
            return made.id;
        }
        let dst = self.dst(&effect, told, neighbours).unwrap_or_else(|| Dst::special(Kind::Blackhole));
        let id = fib.dsts.insert(Arc::new(dst));
        let effect = Arc::new(effect.into_owned());
        if effect.nexthop != 0 {
            self.made_of.entry(effect.nexthop).or_default().push(id);
        }
        self.made.entry(told).or_default().insert(effect.clone(), Made { id, users: 1 });
        self.made_by_id.insert(id, (told, effect));
        id
    }

    pub(super) fn unmake(&mut self, id: u32, fib: &Fib<A>) {
        let Some((told, effect)) = self.made_by_id.get(&id) else { return };
        let Some(of_length) = self.made.get_mut(told) else { return };
        let Some(made) = of_length.get_mut(effect) else { return };
        made.users -= 1;
        if made.users == 0 {
            fib.dsts.remove(id);
            if let Some(made) = self.made_of.get_mut(&effect.nexthop) {
                made.retain(|of| *of != id);
                if made.is_empty() {
                    self.made_of.remove(&effect.nexthop);
                }
            }
            of_length.remove(effect);
            self.made_by_id.remove(&id);
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
pub(super) fn best<'e, A: Address>(entries: &'e [RouteEntry], down: &HashSet<IfIndex>) -> Cow<'e, Effect> {
    let first = &entries[0];
    let joined = entries.len() > 1 && first.joins::<A>();
    if !joined && (first.effect.hops.len() <= 1 || down.is_empty()) {
        return Cow::Borrowed(&first.effect);
    }
    let mut effect = (*first.effect).clone();
    let others = entries[1..].iter().filter(|entry| joined && entry.metric == first.metric && entry.joins::<A>());
    effect.hops.extend(others.flat_map(|entry| entry.effect.hops.iter().copied()));
    if effect.hops.iter().any(|hop| !down.contains(&hop.dev)) {
        effect.hops.retain(|hop| !down.contains(&hop.dev));
    }
    Cow::Owned(effect)
}

//! Nexthop objects (`ip nexthop`): ways out that routes name by number, so that all of them change when the object does.
//!
//! Routes of the same object that differ in nothing else share one `Dst`: to replace an object is to publish that `Dst` anew, whatever the number of prefixes.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use crate::{ConfigError, Editor, Encap, Family, Hop, HopSpec, IfIndex, Kind, Resilient, ResilientSpec, Sharing, TableId, Tick};

/// What a nexthop object is.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct NexthopObject {
    /// What its routes do.
    pub does: NexthopDoes,
    /// It is of family IPv6: IPv4 routes may name it too, while IPv6 ones name no other.
    pub v6: bool,
    /// Protocol number (`proto`), 0 when none was given.
    pub protocol: u8,
}

/// What the routes of a nexthop object do.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum NexthopDoes {
    /// They have this way out. Its weight says nothing.
    Way(Hop),
    /// They drop packets.
    Blackhole,
    /// They have the ways of these other objects, with these weights; flows take them by their hash, or by the buckets of a resilient group.
    Group(Vec<(u32, u16)>, Option<Resilient>),
}

/// A nexthop object, as an operator writes it.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum NexthopSpec {
    /// `via`, `dev`, `onlink`, `encap`.
    Way(HopSpec),
    /// `blackhole`.
    Blackhole,
    /// `group`, of type `mpath` or `resilient`.
    Group(Vec<(u32, u16)>, Option<ResilientSpec>),
}

/// All objects, and what those that changed were at the last commit. Each family's tables have them, changed together.
#[derive(Default)]
pub(crate) struct Nexthops {
    objects: BTreeMap<u32, NexthopObject>,
    before: BTreeMap<u32, Option<NexthopObject>>,
}

impl Nexthops {
    pub(crate) fn get(&self, id: u32) -> Option<&NexthopObject> {
        self.objects.get(&id)
    }

    /// All of them, by number.
    pub(crate) fn iter(&self) -> impl Iterator<Item = (u32, &NexthopObject)> {
        self.objects.iter().map(|(id, object)| (*id, object))
    }

    /// Puts an object under a number, or none.
    pub(crate) fn set(&mut self, id: u32, object: Option<NexthopObject>) {
        let old = match object {
            Some(object) => self.objects.insert(id, object),
            None => self.objects.remove(&id),
        };
        self.before.entry(id).or_insert(old);
    }

    /// What the routes of the object do: its kind, unless it is theirs, and its ways. None when there is no such object.
    pub(crate) fn resolve(&self, id: u32) -> Option<(Option<Kind>, Vec<Hop>)> {
        match &self.get(id)?.does {
            NexthopDoes::Way(hop) => Some((None, vec![*hop])),
            NexthopDoes::Blackhole => Some((Some(Kind::Blackhole), Vec::new())),
            NexthopDoes::Group(members, _) => {
                let mut hops = Vec::with_capacity(members.len());
                for (member, weight) in members {
                    match self.get(*member).map(|object| &object.does) {
                        Some(NexthopDoes::Way(hop)) => hops.push(Hop { weight: *weight, ..*hop }),
                        // The only one of its group.
                        Some(NexthopDoes::Blackhole) => return Some((Some(Kind::Blackhole), Vec::new())),
                        Some(NexthopDoes::Group(..)) | None => {}
                    }
                }
                Some((None, hops))
            }
        }
    }

    /// How flows choose among the ways of its routes, in IPv6 or not.
    pub(crate) fn sharing(&self, id: u32, v6: bool) -> Sharing {
        match self.get(id).map(|object| &object.does) {
            // In IPv4 Linux does not choose, and takes no note of the flow, where there is one member only.
            Some(NexthopDoes::Group(members, Some(resilient))) if v6 || members.len() > 1 => {
                let is_way = |id: &u32| matches!(self.get(*id), Some(NexthopObject { does: NexthopDoes::Way(_), .. }));
                let ways: Vec<_> = members.iter().map(|(member, _)| *member).filter(is_way).collect();
                Sharing::Resilient(Arc::new(resilient.compile(&ways)))
            }
            Some(NexthopDoes::Group(..)) => Sharing::Answering,
            Some(NexthopDoes::Way(_) | NexthopDoes::Blackhole) | None => Sharing::Plain,
        }
    }

    /// The groups that have it as a member.
    fn groups_of(&self, id: u32) -> impl Iterator<Item = u32> {
        let has = move |object: &NexthopObject| matches!(&object.does, NexthopDoes::Group(members, _) if members.iter().any(|(member, _)| *member == id));
        self.iter().filter(move |(_, object)| has(object)).map(|(group, _)| group)
    }

    /// What is left without the object: groups lose it, and the last member of a group takes the group with it.
    fn without(&self, id: u32, now: Tick) -> Vec<(u32, Option<NexthopObject>)> {
        let groups = self.groups_of(id).map(|group| {
            let mut object = self.get(group).cloned();
            if let Some(NexthopObject { does: NexthopDoes::Group(members, resilient), .. }) = &mut object {
                members.retain(|(member, _)| *member != id);
                if members.is_empty() {
                    return (group, None);
                }
                if let Some(resilient) = resilient {
                    resilient.keep_up(members, now);
                }
            }
            (group, object)
        });
        [(id, None)].into_iter().chain(groups).collect()
    }

    /// Keeps what there is. The objects whose routes do something else now, and what encapsulations came and went.
    pub(crate) fn commit(&mut self) -> Committed {
        let before = std::mem::take(&mut self.before);
        let mut committed = Committed::default();
        for (id, old) in before {
            let now = self.get(id);
            if now == old.as_ref() {
                continue;
            }
            committed.lost.extend(old.as_ref().and_then(encap));
            committed.named.extend(now.and_then(encap));
            committed.changed.insert(id);
            committed.changed.extend(self.groups_of(id));
        }
        committed
    }

    /// Takes back everything since the last commit.
    pub(crate) fn rollback(&mut self) {
        for (id, old) in std::mem::take(&mut self.before) {
            match old {
                Some(object) => _ = self.objects.insert(id, object),
                None => _ = self.objects.remove(&id),
            }
        }
    }
}

/// What a commit changed of nexthop objects.
#[derive(Default)]
pub(crate) struct Committed {
    pub(crate) changed: BTreeSet<u32>,
    pub(crate) named: Vec<Encap>,
    pub(crate) lost: Vec<Encap>,
}

fn encap(object: &NexthopObject) -> Option<Encap> {
    match &object.does {
        NexthopDoes::Way(hop) => Some(hop.encap).filter(|encap| *encap != Encap::None),
        _ => None,
    }
}

impl Editor {
    /// Every nexthop object, by number.
    pub fn nexthops(&self) -> impl Iterator<Item = (u32, &NexthopObject)> {
        self.rib4.nexthops().iter()
    }

    /// The nexthop object of this number.
    pub fn nexthop(&self, id: u32) -> Option<&NexthopObject> {
        self.rib4.nexthops().get(id)
    }

    /// The ways out of a route: its own, or those of the nexthop object that it names.
    pub fn ways_of(&self, effect: &crate::Effect) -> Vec<Hop> {
        match effect.nexthop {
            0 => effect.hops.clone(),
            id => self.rib4.nexthops().resolve(id).map_or_else(Vec::new, |(_, hops)| hops),
        }
    }

    /// The type of a route: its own, or `blackhole` when the nexthop object that it names is one.
    pub fn kind_of(&self, effect: &crate::Effect) -> Kind {
        match effect.nexthop {
            0 => effect.kind,
            id => self.rib4.nexthops().resolve(id).and_then(|(kind, _)| kind).unwrap_or(effect.kind),
        }
    }

    /// Adds a nexthop object, or puts it in place of the one of its number: then all routes of that do as it says. Without a number it gets one. Its number.
    ///
    /// # Errors
    /// What the kernel refuses: a number that exists, a group in place of a single one or the other way round, members that there are not or that may not be
    /// in a group, a way out without device or with a gateway that is not on the link.
    pub fn nexthop_put(&mut self, id: Option<u32>, spec: &NexthopSpec, v6: bool, protocol: u8, replace: bool) -> Result<u32, ConfigError> {
        let id = match id {
            Some(0) => return Err(ConfigError::Invalid("the number of a nexthop is not 0")),
            Some(id) => id,
            None => self.nexthops().last().map_or(1, |(last, _)| last.saturating_add(1)),
        };
        let group = matches!(spec, NexthopSpec::Group(..));
        match self.nexthop(id).map(|old| matches!(old.does, NexthopDoes::Group(..))) {
            Some(_) if !replace => return Err(ConfigError::Exists("nexthop")),
            Some(true) if !group => return Err(ConfigError::Invalid("a nexthop can not replace a nexthop group")),
            Some(false) if group => return Err(ConfigError::Invalid("a nexthop group can not replace a nexthop")),
            _ => {}
        }
        let (does, v6) = match spec {
            NexthopSpec::Group(members, kind) => {
                let v6 = self.check_group(members)?;
                (NexthopDoes::Group(members.clone(), self.resilient(id, members, kind.as_ref())?), v6)
            }
            NexthopSpec::Blackhole => (NexthopDoes::Blackhole, v6),
            NexthopSpec::Way(hop) => {
                if hop.dev.is_none() {
                    return Err(ConfigError::Invalid("a nexthop that is no blackhole needs a device (dev NAME)"));
                }
                let v6 = hop.via.map_or(v6, |via| via.is_ipv6());
                let table = hop.dev.and_then(|dev| self.links.get(dev)).and_then(|link| link.vrf_table).unwrap_or(TableId::MAIN);
                (NexthopDoes::Way(self.hop(table, hop, v6)?), v6)
            }
        };
        let users = |editor: &Editor, ids: &[u32]| ids.iter().any(|id| editor.rib6.names_nexthop(*id));
        let groups: Vec<_> = self.rib4.nexthops().groups_of(id).chain([id]).collect();
        if !v6 && users(self, &groups) {
            return Err(ConfigError::Invalid("IPv6 routes use this nexthop, and can not use an IPv4 one"));
        }
        if does == NexthopDoes::Blackhole && groups.iter().any(|group| self.is_shared_group(*group)) {
            return Err(ConfigError::Invalid("a blackhole can not be in a group with other nexthops"));
        }
        let object = NexthopObject { does, v6, protocol };
        self.nexthop_set(id, Some(object.clone()));
        // Groups are of family IPv6 as long as all their members are.
        for group in groups.into_iter().filter(|group| *group != id) {
            let Some(mut of) = self.nexthop(group).cloned() else { continue };
            if let NexthopDoes::Group(members, _) = &of.does {
                of.v6 = members.iter().all(|(member, _)| self.nexthop(*member).is_some_and(|object| object.v6));
                self.nexthop_set(group, Some(of));
            }
        }
        Ok(id)
    }

    /// The buckets of a group that is to be this: those of the one it replaces, if it does. None of a group that is not resilient.
    fn resilient(&self, id: u32, members: &[(u32, u16)], spec: Option<&ResilientSpec>) -> Result<Option<Resilient>, ConfigError> {
        let old = match self.nexthop(id).map(|old| &old.does) {
            Some(NexthopDoes::Group(_, old)) if old.is_some() != spec.is_some() => {
                return Err(ConfigError::Invalid("a nexthop group can not replace one of another type"));
            }
            Some(NexthopDoes::Group(_, old)) => old.clone(),
            _ => None,
        };
        let Some(spec) = spec else { return Ok(None) };
        let mut resilient = match (old, spec.buckets) {
            (Some(old), Some(buckets)) if old.len() != usize::from(buckets.get()) => {
                return Err(ConfigError::Invalid("the number of buckets of a resilient group can not change"));
            }
            (Some(old), _) => old,
            (None, Some(buckets)) => Resilient::new(buckets),
            (None, None) => return Err(ConfigError::Invalid("a new resilient group needs a number of buckets (buckets N)")),
        };
        resilient.set(spec);
        resilient.keep_up(members, self.now);
        Ok(Some(resilient))
    }

    fn is_shared_group(&self, id: u32) -> bool {
        matches!(self.nexthop(id), Some(NexthopObject { does: NexthopDoes::Group(members, _), .. }) if members.len() > 1)
    }

    /// Checks the members of a group. True when all are of family IPv6.
    fn check_group(&self, members: &[(u32, u16)]) -> Result<bool, ConfigError> {
        let mut seen = BTreeSet::new();
        let mut v6 = true;
        for (member, _) in members {
            let object = self.nexthop(*member).ok_or(ConfigError::Missing("nexthop"))?;
            if !seen.insert(member) {
                return Err(ConfigError::Invalid("a nexthop can not be twice in a group"));
            }
            match object.does {
                NexthopDoes::Group(..) => return Err(ConfigError::Invalid("a group can not be in a group")),
                NexthopDoes::Blackhole if members.len() > 1 => {
                    return Err(ConfigError::Invalid("a blackhole can not be in a group with other nexthops"));
                }
                _ => v6 &= object.v6,
            }
        }
        if members.is_empty() { Err(ConfigError::Invalid("a group needs members")) } else { Ok(v6) }
    }

    /// Removes a nexthop object, its routes, and those of groups that it leaves empty.
    ///
    /// # Errors
    /// [`ConfigError::Missing`] when there is none of this number.
    pub fn nexthop_del(&mut self, id: u32) -> Result<(), ConfigError> {
        self.nexthop(id).ok_or(ConfigError::Missing("nexthop"))?;
        self.nexthops_gone(&[id]);
        Ok(())
    }

    /// Removes objects and all that goes with them.
    fn nexthops_gone(&mut self, ids: &[u32]) {
        let mut gone = BTreeSet::new();
        for id in ids {
            for (id, left) in self.rib4.nexthops().without(*id, self.now) {
                if left.is_none() {
                    gone.insert(id);
                }
                self.nexthop_set(id, left);
            }
        }
        if gone.iter().any(|id| self.rib4.names_nexthop(*id)) {
            self.rib4.flush(|entry| gone.contains(&entry.effect.nexthop));
        }
        if gone.iter().any(|id| self.rib6.names_nexthop(*id)) {
            self.rib6.flush(|entry| gone.contains(&entry.effect.nexthop));
        }
    }

    /// Moves the buckets of resilient groups that are due by now. True when there were some.
    pub(crate) fn buckets_move(&mut self) -> bool {
        let now = self.now;
        let all: Vec<_> = self.nexthops().filter(|(_, object)| due(object).is_some_and(|due| due <= now)).map(|(id, _)| id).collect();
        for id in &all {
            let Some(mut object) = self.nexthop(*id).cloned() else { continue };
            if let NexthopDoes::Group(members, Some(resilient)) = &mut object.does {
                resilient.keep_up(members, now);
            }
            self.nexthop_set(*id, Some(object));
        }
        !all.is_empty()
    }

    /// When [`Editor::buckets_move`] has something to do next.
    pub(crate) fn buckets_due(&self) -> Option<Tick> {
        self.nexthops().filter_map(|(_, object)| due(object)).min()
    }

    /// A device went down or is gone: so are the nexthop objects on it that `goes` says.
    pub(crate) fn nexthops_flush(&mut self, dev: IfIndex, goes: impl Fn(&NexthopObject) -> bool) {
        let on = |object: &NexthopObject| matches!(&object.does, NexthopDoes::Way(hop) if hop.dev == dev);
        let ids: Vec<_> = self.nexthops().filter(|(_, object)| on(object) && goes(object)).map(|(id, _)| id).collect();
        if !ids.is_empty() {
            self.nexthops_gone(&ids);
        }
    }

    /// What a kernel has under the number, whatever it was before; for the mirror, which tells of routes apart.
    pub fn mirror_nexthop(&mut self, id: u32, object: Option<NexthopObject>) {
        self.nexthop_set(id, object);
    }

    fn nexthop_set(&mut self, id: u32, object: Option<NexthopObject>) {
        self.rib4.nexthops_mut().set(id, object.clone());
        self.rib6.nexthops_mut().set(id, object);
    }

    /// Checks that a route of family `A` may name the object.
    pub(crate) fn check_nexthop<A: Family>(&self, id: u32) -> Result<(), ConfigError> {
        let object = self.nexthop(id).ok_or(ConfigError::Missing("nexthop"))?;
        if A::BITS == 128 && !object.v6 {
            return Err(ConfigError::Invalid("an IPv6 route can not use an IPv4 nexthop"));
        }
        Ok(())
    }
}

/// When buckets of an object are to move.
fn due(object: &NexthopObject) -> Option<Tick> {
    match &object.does {
        NexthopDoes::Group(_, Some(resilient)) => resilient.due(),
        _ => None,
    }
}

//! Nexthop objects (`ip nexthop`): ways out that routes name by number, so that all of them change when the object does.
//!
//! Routes of the same object that differ in nothing else share one `Dst`: to replace an object is to publish that `Dst` anew, whatever the number of prefixes.

use std::collections::{BTreeMap, BTreeSet};

use crate::{ConfigError, Editor, Encap, Family, Hop, HopSpec, IfIndex, Kind, TableId};

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
    /// They have the ways of these other objects, with these weights.
    Group(Vec<(u32, u16)>),
}

/// A nexthop object, as an operator writes it.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum NexthopSpec {
    /// `via`, `dev`, `onlink`, `encap`.
    Way(HopSpec),
    /// `blackhole`.
    Blackhole,
    /// `group`.
    Group(Vec<(u32, u16)>),
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
            NexthopDoes::Group(members) => {
                let mut hops = Vec::with_capacity(members.len());
                for (member, weight) in members {
                    match self.get(*member).map(|object| &object.does) {
                        Some(NexthopDoes::Way(hop)) => hops.push(Hop { weight: *weight, ..*hop }),
                        // The only one of its group.
                        Some(NexthopDoes::Blackhole) => return Some((Some(Kind::Blackhole), Vec::new())),
                        Some(NexthopDoes::Group(_)) | None => {}
                    }
                }
                Some((None, hops))
            }
        }
    }

    /// True of a group.
    pub(crate) fn is_group(&self, id: u32) -> bool {
        self.get(id).is_some_and(|object| matches!(object.does, NexthopDoes::Group(_)))
    }

    /// The groups that have it as a member.
    fn groups_of(&self, id: u32) -> impl Iterator<Item = u32> {
        let has = move |object: &NexthopObject| matches!(&object.does, NexthopDoes::Group(members) if members.iter().any(|(member, _)| *member == id));
        self.iter().filter(move |(_, object)| has(object)).map(|(group, _)| group)
    }

    /// Takes the object away: groups lose it, and the last member of a group takes the group with it. All that are gone.
    pub(crate) fn remove(&mut self, id: u32) -> Vec<u32> {
        let mut gone = vec![id];
        let groups: Vec<_> = self.groups_of(id).collect();
        self.set(id, None);
        for group in groups {
            let Some(mut object) = self.get(group).cloned() else { continue };
            if let NexthopDoes::Group(members) = &mut object.does {
                members.retain(|(member, _)| *member != id);
                if members.is_empty() {
                    gone.push(group);
                    self.set(group, None);
                    continue;
                }
            }
            self.set(group, Some(object));
        }
        gone
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
        let group = matches!(spec, NexthopSpec::Group(_));
        match self.nexthop(id).map(|old| matches!(old.does, NexthopDoes::Group(_))) {
            Some(_) if !replace => return Err(ConfigError::Exists("nexthop")),
            Some(true) if !group => return Err(ConfigError::Invalid("a nexthop can not replace a nexthop group")),
            Some(false) if group => return Err(ConfigError::Invalid("a nexthop group can not replace a nexthop")),
            _ => {}
        }
        let (does, v6) = match spec {
            NexthopSpec::Group(members) => (NexthopDoes::Group(members.clone()), self.check_group(members)?),
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
            if let NexthopDoes::Group(members) = &of.does {
                of.v6 = members.iter().all(|(member, _)| self.nexthop(*member).is_some_and(|object| object.v6));
                self.nexthop_set(group, Some(of));
            }
        }
        Ok(id)
    }

    fn is_shared_group(&self, id: u32) -> bool {
        matches!(self.nexthop(id), Some(NexthopObject { does: NexthopDoes::Group(members), .. }) if members.len() > 1)
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
                NexthopDoes::Group(_) => return Err(ConfigError::Invalid("a group can not be in a group")),
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
            gone.extend(self.rib4.nexthops_mut().remove(*id));
            self.rib6.nexthops_mut().remove(*id);
        }
        if gone.iter().any(|id| self.rib4.names_nexthop(*id)) {
            self.rib4.flush(|entry| gone.contains(&entry.effect.nexthop));
        }
        if gone.iter().any(|id| self.rib6.names_nexthop(*id)) {
            self.rib6.flush(|entry| gone.contains(&entry.effect.nexthop));
        }
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

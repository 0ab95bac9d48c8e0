//! The control plane's copy of the tables: every route that was configured, best or not, and what was made of it.

mod choices;
mod commit;
mod entry;
mod find;
mod hash;

use std::collections::hash_map::Entry;
use std::collections::{BTreeMap, BTreeSet, HashMap, HashSet};
use std::net::IpAddr;
use std::sync::Arc;

use rcu::Domain;
use smallvec::SmallVec;

use self::choices::Chosen;
pub use self::entry::{Effect, Hop, Put, RouteEntry};
pub use self::hash::FastHash;
use crate::draft::Draft;
use crate::fib::Table;
use crate::nexthops::Nexthops;
use crate::{Action, Address, ConfigError, IfIndex, Kind, MarkRule, Prefix, Rule, TableId};

/// Routes of a prefix, best first; nearly always one.
pub(crate) type Entries = SmallVec<[RouteEntry; 1]>;

/// What there is for one prefix.
#[derive(Default)]
struct Slot {
    /// None when the last was removed since the last commit.
    entries: Entries,
    /// The `Dst` that stands in the match table for the prefix, 0 when none does.
    leaf: u32,
    /// Changed since the last commit: what they were then is in [`RibTable::dirty`].
    dirty: bool,
}

impl Slot {
    /// The routes, to be changed.
    fn edit<A: Address>(&mut self, prefix: Prefix<A>, dirty: &mut Vec<(Prefix<A>, Entries)>) -> &mut Entries {
        if !std::mem::replace(&mut self.dirty, true) {
            dirty.push((prefix, self.entries.clone()));
        }
        &mut self.entries
    }
}

struct RibTable<A: Address> {
    routes: HashMap<Prefix<A>, Slot, FastHash>,
    published: Arc<Table<A>>,
    /// Number of prefixes of each length, so that a search skips the lengths that do not occur.
    lengths: Box<[u32]>,
    /// Prefixes that changed since the last commit, each once, and their routes as they were then.
    dirty: Vec<(Prefix<A>, Entries)>,
    /// Prefixes that are link-scoped, as of the last commit.
    link_scoped: BTreeSet<Prefix<A>>,
    /// The `Dst`s of the link-scoped routes.
    scoped: Vec<u32>,
    /// Routes of prefixes up to this length know it, because a rule asks for it.
    told_up_to: Option<u8>,
    /// Prefixes whose routes are for some of their packets only.
    choices: BTreeMap<Prefix<A>, Chosen>,
}

/// What routes do, and the number of its `Dst`'s users.
struct Made {
    effect: Arc<Effect>,
    told: Option<u8>,
    users: usize,
}

/// All tables and rules of one family.
pub struct Rib<A: Address> {
    domain: Arc<Domain>,
    tables: HashMap<TableId, RibTable<A>>,
    /// Tables that changed since the last commit; one may stand here twice.
    dirty: Vec<TableId>,
    /// Tables made since the last commit.
    new: Vec<TableId>,
    rules: Draft<Vec<Rule<A>>>,
    /// What marks packets as they come in.
    pub(crate) marks: Draft<Vec<MarkRule<A>>>,
    /// Devices that went down: routes with other ways use those.
    down: Draft<HashSet<IfIndex>>,
    effects: HashSet<Arc<Effect>, FastHash>,
    /// At this number of effects those that no route has any more are forgotten.
    effects_limit: usize,
    /// The `Dst`s, by number, and their numbers, for prefixes of all lengths and for those that know theirs.
    made: HashMap<u32, Made, FastHash>,
    ids: HashMap<Option<u8>, HashMap<Arc<Effect>, u32, FastHash>>,
    last_made: Option<u32>,
    /// The `Dst`s of routes that name a nexthop object, by its number.
    made_of: HashMap<u32, Vec<u32>>,
    nexthops: Nexthops,
    /// Gateways found on a link since a connected route last changed.
    reachable: HashSet<(TableId, IfIndex, IpAddr), FastHash>,
}

impl<A: Address> Rib<A> {
    pub(crate) fn new(domain: &Arc<Domain>) -> Rib<A> {
        let mut rib = Rib {
            domain: domain.clone(),
            tables: HashMap::new(),
            dirty: Vec::new(),
            new: Vec::new(),
            rules: Draft::new(Vec::new()),
            marks: Draft::new(Vec::new()),
            down: Draft::new(HashSet::new()),
            effects: HashSet::default(),
            effects_limit: 1024,
            made: HashMap::default(),
            ids: HashMap::new(),
            last_made: None,
            made_of: HashMap::new(),
            nexthops: Nexthops::default(),
            reachable: HashSet::default(),
        };
        for (pref, table) in [(0, TableId::LOCAL), (32766, TableId::MAIN), (32767, TableId::DEFAULT)] {
            rib.table(table);
            rib.rules.push(Rule::all(pref, Action::Lookup(table)));
        }
        rib
    }

    /// True when a route, a rule or a VRF has named the table.
    pub(crate) fn table_exists(&self, id: TableId) -> bool {
        self.tables.contains_key(&id)
    }

    /// Makes the table if it does not exist.
    pub(crate) fn ensure_table(&mut self, id: TableId) {
        self.table(id);
    }

    /// True when a rule, or a line that marks packets, selects by the interface.
    pub(crate) fn rules_name(&self, dev: IfIndex) -> bool {
        let names = |select: &crate::Selector<A>| select.iif == Some(dev) || select.oif == Some(dev);
        self.rules.iter().any(|rule| names(&rule.select)) || self.marks.iter().any(|mark| names(&mark.select))
    }

    /// The nexthop objects.
    pub(crate) fn nexthops(&self) -> &Nexthops {
        &self.nexthops
    }

    /// The nexthop objects, to be changed.
    pub(crate) fn nexthops_mut(&mut self) -> &mut Nexthops {
        &mut self.nexthops
    }

    /// True when a route names the nexthop object, or did at the last commit.
    pub(crate) fn names_nexthop(&self, id: u32) -> bool {
        self.effects().any(|effect| effect.nexthop == id)
    }

    /// The table, made if need be.
    fn table(&mut self, id: TableId) -> &mut RibTable<A> {
        self.tables.entry(id).or_insert_with(|| {
            self.new.push(id);
            RibTable {
                routes: HashMap::default(),
                published: Arc::new(Table::new(&self.domain, id)),
                lengths: vec![0; usize::from(A::BITS) + 1].into_boxed_slice(),
                dirty: Vec::new(),
                link_scoped: BTreeSet::new(),
                scoped: Vec::new(),
                told_up_to: None,
                choices: BTreeMap::new(),
            }
        })
    }

    pub(crate) fn rules(&self) -> &[Rule<A>] {
        &self.rules
    }

    /// Adds a rule behind those of its preference.
    pub(crate) fn rule_add(&mut self, rule: Rule<A>) -> Result<(), ConfigError> {
        if self.rules.iter().any(|other| other.is_same(&rule)) {
            return Err(ConfigError::Exists("rule"));
        }
        self.rule_push(rule);
        Ok(())
    }

    /// Puts a rule behind all others of its preference, also one that is there already: a kernel that is followed has its own ideas of what is the same.
    pub(crate) fn rule_push(&mut self, rule: Rule<A>) {
        if let Action::Lookup(table) = rule.action {
            self.table(table);
        }
        let at = self.rules.partition_point(|other| other.pref <= rule.pref);
        self.rules.insert(at, rule);
    }

    /// Removes every rule that `matches`; how many.
    pub(crate) fn rules_flush(&mut self, matches: impl Fn(&Rule<A>) -> bool) -> usize {
        let before = self.rules.len();
        if self.rules.iter().any(&matches) {
            self.rules.retain(|rule| !matches(rule));
        }
        before - self.rules.len()
    }

    /// Removes the first rule that `matches`.
    pub(crate) fn rule_del(&mut self, matches: impl Fn(&Rule<A>) -> bool) -> Result<(), ConfigError> {
        let at = self.rules.iter().position(matches).ok_or(ConfigError::Missing("rule"))?;
        self.rules.remove(at);
        Ok(())
    }

    /// One copy of what routes have in common.
    pub(crate) fn intern(&mut self, effect: Effect) -> Arc<Effect> {
        if let Some(known) = self.effects.get(&effect) {
            return known.clone();
        }
        if self.effects.len() >= self.effects_limit {
            self.effects.retain(|effect| Arc::strong_count(effect) > 1);
            self.effects_limit = self.effects.len().saturating_mul(2).max(1024);
        }
        let effect = Arc::new(effect);
        self.effects.insert(effect.clone());
        effect
    }

    pub(crate) fn put(&mut self, id: TableId, prefix: Prefix<A>, route: RouteEntry, how: Put) -> Result<(), ConfigError> {
        let connected = route.effect.hops.iter().any(|hop| hop.via.is_none());
        let RibTable { routes, dirty, lengths, .. } = self.table(id);
        let clean = dirty.is_empty();
        let slot = routes.entry(prefix).or_default();
        let first = slot.entries.iter().position(|entry| entry.is_beside(&route));
        match (how, first) {
            (Put::Add, Some(_)) => return Err(ConfigError::Exists("route")),
            (Put::Append, Some(_)) if slot.entries.contains(&route) => return Err(ConfigError::Exists("route")),
            _ => {}
        }
        let entries = slot.edit(prefix, dirty);
        match (how, first) {
            (Put::Replace, Some(first)) => replace::<A>(entries, first, route),
            _ => {
                let at = entries.partition_point(|entry| entry.rank() <= route.rank());
                entries.insert(at, route);
            }
        }
        if entries.len() == 1 && first.is_none() {
            lengths[usize::from(prefix.len())] += 1;
        }
        if clean {
            self.dirty.push(id);
        }
        if connected {
            self.reachable.clear();
        }
        Ok(())
    }

    /// Puts these routes, best first, in place of all that a prefix has.
    pub(crate) fn set(&mut self, id: TableId, prefix: Prefix<A>, entries: Entries) {
        if entries.is_empty() && !self.table_exists(id) {
            return;
        }
        let RibTable { routes, dirty, lengths, .. } = self.table(id);
        let clean = dirty.is_empty();
        let slot = match routes.entry(prefix) {
            Entry::Occupied(slot) if slot.get().entries == entries => return,
            Entry::Occupied(slot) => slot.into_mut(),
            Entry::Vacant(_) if entries.is_empty() => return,
            Entry::Vacant(none) => none.insert(Slot::default()),
        };
        let length = &mut lengths[usize::from(prefix.len())];
        match (slot.entries.is_empty(), entries.is_empty()) {
            (true, false) => *length += 1,
            (false, true) => *length -= 1,
            _ => {}
        }
        let before = std::mem::replace(&mut slot.entries, entries);
        if !std::mem::replace(&mut slot.dirty, true) {
            dirty.push((prefix, before));
        }
        if clean && !dirty.is_empty() {
            self.dirty.push(id);
        }
        self.reachable.clear();
    }

    /// Removes the first route of the prefix that `matches`.
    pub(crate) fn remove(&mut self, id: TableId, prefix: Prefix<A>, matches: impl Fn(&RouteEntry) -> bool) -> Result<(), ConfigError> {
        let RibTable { routes, dirty, lengths, .. } = self.tables.get_mut(&id).ok_or(ConfigError::Missing("route"))?;
        let slot = routes.get_mut(&prefix).ok_or(ConfigError::Missing("route"))?;
        let at = slot.entries.iter().position(matches).ok_or(ConfigError::Missing("route"))?;
        if dirty.is_empty() {
            self.dirty.push(id);
        }
        let entries = slot.edit(prefix, dirty);
        entries.remove(at);
        if entries.is_empty() {
            lengths[usize::from(prefix.len())] -= 1;
        }
        self.reachable.clear();
        Ok(())
    }

    /// Edits the routes of each prefix of a table, or of every table, that has some that are `concerned`.
    fn edit_each(&mut self, table: Option<TableId>, concerned: impl Fn(&RouteEntry) -> bool, edit: impl Fn(&mut Entries)) {
        for (id, RibTable { routes, dirty, lengths, .. }) in &mut self.tables {
            if table.is_some_and(|table| *id != table) {
                continue;
            }
            let clean = dirty.is_empty();
            for (prefix, slot) in routes {
                if slot.entries.iter().any(&concerned) {
                    let entries = slot.edit(*prefix, dirty);
                    edit(entries);
                    lengths[usize::from(prefix.len())] -= u32::from(entries.is_empty());
                }
            }
            if clean && !dirty.is_empty() {
                self.dirty.push(*id);
            }
        }
        self.reachable.clear();
    }

    /// Removes every route that `matches`, in all tables.
    pub(crate) fn flush(&mut self, matches: impl Fn(&RouteEntry) -> bool) {
        self.edit_each(None, &matches, |entries| entries.retain(|entry| !matches(entry)));
    }

    /// Removes every route of a table that `matches`.
    pub(crate) fn flush_in(&mut self, table: TableId, matches: impl Fn(&RouteEntry) -> bool) {
        self.edit_each(Some(table), &matches, |entries| entries.retain(|entry| !matches(entry)));
    }

    /// Takes the preferred source from every route that has this one.
    pub(crate) fn forget_source(&mut self, src: IpAddr) {
        let has = |entry: &RouteEntry| entry.effect.src == Some(src);
        self.edit_each(None, has, |entries| {
            for entry in entries.iter_mut().filter(|entry| has(entry)) {
                entry.effect = Arc::new(Effect { src: None, ..(*entry.effect).clone() });
            }
        });
    }

    /// A device went down: the routes through it go, but for those that `stay`. A route with other ways stays too, and goes those.
    pub(crate) fn link_down(&mut self, dev: IfIndex, stay: impl Fn(&RouteEntry) -> bool) {
        self.down.insert(dev);
        let down: HashSet<IfIndex> = self.down.clone();
        let usable = |entry: &RouteEntry| entry.effect.hops.iter().any(|hop| !down.contains(&hop.dev));
        let goes = |entry: &RouteEntry| entry.leads_through(dev) && !stay(entry);
        self.edit_each(None, goes, |entries| {
            // In IPv6 each way of a route is an entry.
            let others: SmallVec<[u32; 4]> =
                entries.iter().filter(|entry| entry.joins::<A>() && usable(entry)).map(|entry| entry.metric).collect();
            let has_others = |entry: &RouteEntry| usable(entry) || entry.joins::<A>() && others.contains(&entry.metric);
            entries.retain(|entry| !goes(entry) || has_others(entry));
        });
    }

    /// A device came up: routes that had other ways meanwhile use it again.
    pub(crate) fn link_up(&mut self, dev: IfIndex) {
        if self.down.contains(&dev) {
            self.down.remove(&dev);
            self.edit_each(None, |entry| entry.leads_through(dev), |_| {});
        }
    }

    /// Says whether ways by the device are used where there are others; routes that have some are changed apart.
    pub(crate) fn set_down(&mut self, dev: IfIndex, down: bool) {
        if self.down.contains(&dev) != down {
            if down {
                self.down.insert(dev)
            } else {
                self.down.remove(&dev)
            };
        }
    }

    /// True of a device that went down.
    pub(crate) fn is_down(&self, dev: IfIndex) -> bool {
        self.down.contains(&dev)
    }

    /// The longest prefix of `table` that holds `addr` and has a route that is `good`.
    pub(crate) fn longest(&self, table: TableId, addr: A, good: impl Fn(&RouteEntry) -> bool) -> Option<(Prefix<A>, &RouteEntry)> {
        let (prefix, entries, at) = self.longest_with(table, addr, |entries| entries.iter().position(&good))?;
        Some((prefix, entries.get(at)?))
    }

    /// The longest prefix of `table` that holds `addr` and among whose routes `pick` has a choice: all of them, and the place of that.
    fn longest_with(
        &self,
        table: TableId,
        addr: A,
        pick: impl Fn(&[RouteEntry]) -> Option<usize>,
    ) -> Option<(Prefix<A>, &[RouteEntry], usize)> {
        let RibTable { routes, lengths, .. } = self.tables.get(&table)?;
        (0..=A::BITS).rev().filter(|len| lengths[usize::from(*len)] > 0).find_map(|len| {
            let prefix = Prefix::new(addr, len)?;
            let entries = routes.get(&prefix)?.entries.as_slice();
            Some((prefix, entries, pick(entries)?))
        })
    }

    /// As the kernel looks a nexthop up: local addresses first, then the table, then `main`.
    pub(crate) fn gateway_link(&mut self, table: TableId, dev: Option<IfIndex>, addr: A) -> Result<IfIndex, ConfigError> {
        let ip = addr.into();
        let key = (table, dev.unwrap_or(IfIndex(0)), ip);
        if let (Some(dev), true) = (dev, self.reachable.contains(&key)) {
            return Ok(dev);
        }
        let on_dev = |entry: &RouteEntry| dev.is_none_or(|dev| entry.leads_through(dev));
        if self.longest(TableId::LOCAL, addr, on_dev).is_some_and(|(_, entry)| entry.effect.kind == Kind::Local) {
            return Err(ConfigError::GatewayLocal(ip));
        }
        let route = self.longest(table, addr, on_dev).or_else(|| self.longest(TableId::MAIN, addr, on_dev));
        let hop = route
            .filter(|(_, entry)| entry.effect.kind == Kind::Unicast)
            .and_then(|(_, entry)| entry.effect.hops.iter().find(|hop| hop.via.is_none() && dev.is_none_or(|dev| dev == hop.dev)));
        let hop = hop.ok_or(ConfigError::GatewayUnreachable(ip))?;
        let found = hop.dev;
        if dev.is_some() {
            self.reachable.insert(key);
        }
        Ok(found)
    }

    /// Every route of a table, in no order.
    pub(crate) fn routes(&self, table: TableId) -> impl Iterator<Item = (Prefix<A>, &RouteEntry)> {
        let table = self.tables.get(&table);
        table.into_iter().flat_map(|t| t.routes.iter().flat_map(|(prefix, slot)| slot.entries.iter().map(|entry| (*prefix, entry))))
    }

    /// Every table and how many prefixes it has, by number.
    pub(crate) fn sizes(&self) -> Vec<(TableId, usize)> {
        let mut sizes: Vec<_> = self.tables.iter().map(|(id, table)| (*id, table.routes.len())).collect();
        sizes.sort_unstable();
        sizes
    }

    /// The routes of a prefix, best first.
    pub(crate) fn routes_of(&self, table: TableId, prefix: Prefix<A>) -> &[RouteEntry] {
        self.tables.get(&table).and_then(|table| table.routes.get(&prefix)).map_or(&[], |slot| &slot.entries)
    }

    /// What the routes do, each effect once.
    pub(crate) fn effects(&self) -> impl Iterator<Item = &Effect> {
        // What no route has any more is known to nobody else.
        self.effects.iter().filter(|effect| Arc::strong_count(effect) > 1).map(|effect| &**effect)
    }
}

/// Replaces the `first` route of the metric; in IPv6 rather the first that joins others as `route` does, and with it all that it is joined with (Linux
/// `fib6_add_rt2node`).
fn replace<A: Address>(entries: &mut SmallVec<[RouteEntry; 1]>, first: usize, route: RouteEntry) {
    let (beside, wanted) = (route.clone(), route.joins::<A>());
    let alike = entries.iter().position(|entry| entry.is_beside(&beside) && entry.joins::<A>() == wanted);
    let at = alike.filter(|_| A::BITS == 128).unwrap_or(first);
    let old = std::mem::replace(&mut entries[at], route);
    if old.joins::<A>() {
        let mut place = 0..;
        entries.retain(|entry| place.next() == Some(at) || !entry.is_beside(&beside) || !entry.joins::<A>());
    }
}

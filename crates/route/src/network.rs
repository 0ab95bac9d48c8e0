//! Everything that a packet's way depends on, as workers read it, and its one writer.

use std::collections::HashMap;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};
use std::sync::Arc;

use rcu::{Domain, Rcu};

use crate::draft::Draft;
use crate::generation::Generation;
use crate::naming::Naming;
use crate::rib::Rib;
use crate::{
    Address, ConfigError, Effect, Encap, Fib, IfIndex, LinkKind, Links, MarkRule, NeighbourState, Neighbours, Prefix, RouteEntry, Rule,
    Settings, TableId, Tick,
};

/// What workers read. Nothing in it is changed under them: a change publishes a new value.
pub struct Network {
    domain: Arc<Domain>,
    generation: Generation,
    /// Interfaces.
    pub links: Rcu<Links>,
    /// Settings of the router as a whole.
    pub settings: Rcu<Settings>,
    /// IPv4 tables and rules.
    pub v4: Fib<Ipv4Addr>,
    /// IPv6 tables and rules.
    pub v6: Fib<Ipv6Addr>,
    /// Neighbours of both families.
    pub neighbours: Neighbours,
}

impl Network {
    /// The RCU domain that everything here is published in.
    pub fn domain(&self) -> &Arc<Domain> {
        &self.domain
    }

    /// The number of the state of all this that was committed last, for a burst that begins: what was found in one state need not hold in another. None while a
    /// commit is under way.
    #[inline]
    pub fn generation(&self) -> Option<u64> {
        self.generation.now()
    }
}

/// The families' differences in editing.
pub trait Family: Address {
    /// The control plane's tables of this family.
    #[doc(hidden)]
    fn rib(editor: &mut Editor) -> (&mut Rib<Self>, &Links);
    /// As [`Family::rib`], to be read.
    #[doc(hidden)]
    fn rib_ref(editor: &Editor) -> &Rib<Self>;
}

impl Family for Ipv4Addr {
    fn rib(editor: &mut Editor) -> (&mut Rib<Ipv4Addr>, &Links) {
        (&mut editor.rib4, &editor.links)
    }

    fn rib_ref(editor: &Editor) -> &Rib<Ipv4Addr> {
        &editor.rib4
    }
}

impl Family for Ipv6Addr {
    fn rib(editor: &mut Editor) -> (&mut Rib<Ipv6Addr>, &Links) {
        (&mut editor.rib6, &editor.links)
    }

    fn rib_ref(editor: &Editor) -> &Rib<Ipv6Addr> {
        &editor.rib6
    }
}

/// The one writer of a [`Network`]. Changes are collected, and seen by workers after [`Editor::commit`] or by nobody after [`Editor::rollback`]; each
/// change is checked whole before anything is changed. Interfaces are edited in `interfaces`, their addresses in `addresses`, routes in `routes`.
///
/// What was changed since the last commit is remembered as it was: of routes the prefixes touched, of interfaces, rules and settings the whole. So a
/// commit, and a rollback, of a line that adds a route costs the same whatever the size of the tables.
pub struct Editor {
    network: Arc<Network>,
    pub(crate) links: Draft<Links>,
    pub(crate) settings: Draft<Settings>,
    pub(crate) rib4: Rib<Ipv4Addr>,
    pub(crate) rib6: Rib<Ipv6Addr>,
    /// What the commit makes of neighbours: known so, or no more.
    neighbours: HashMap<(IfIndex, IpAddr), Option<(NeighbourState, wire::Mac)>>,
    naming: Naming,
    pub(crate) now: Tick,
    /// The tables are those of a kernel that has derived what is to be derived.
    pub(crate) mirrors: bool,
}

impl Default for Editor {
    fn default() -> Editor {
        Editor::new()
    }
}

impl Editor {
    /// A network with `lo`, the default rules and nothing else.
    pub fn new() -> Editor {
        let domain = Domain::new();
        let mut links = Links::default();
        links.add("lo", LinkKind::Loopback);
        let settings = Settings::default();
        let network = Arc::new(Network {
            links: Rcu::new(&domain, links.clone()),
            settings: Rcu::new(&domain, settings.clone()),
            v4: Fib::new(&domain),
            v6: Fib::new(&domain),
            neighbours: Neighbours::new(&domain),
            domain: domain.clone(),
            generation: Generation::default(),
        });
        let mut editor = Editor {
            network,
            links: Draft::new(links),
            settings: Draft::new(settings),
            rib4: Rib::new(&domain),
            rib6: Rib::new(&domain),
            neighbours: HashMap::new(),
            naming: Naming::default(),
            now: Tick::default(),
            mirrors: false,
        };
        // IPv6 has no table `default` in its rules.
        let _ = editor.rib6.rule_del(|rule| rule.pref == 32767);
        editor.commit();
        editor
    }

    /// What workers read.
    pub fn network(&self) -> &Arc<Network> {
        &self.network
    }

    /// Makes all changes since the last commit visible to workers.
    pub fn commit(&mut self) {
        self.network.generation.step();
        if self.links.is_changed() {
            if !self.mirrors {
                self.add_missing_link_locals();
            }
            self.links.index();
        }
        let regrouped = self.links.commit();
        if regrouped {
            self.network.links.publish(self.links.clone());
        }
        if self.settings.commit() {
            self.network.settings.publish(self.settings.clone());
        }
        // Before the routes that lead to them, or away from them.
        let Network { v4, v6, neighbours, .. } = &*self.network;
        for ((dev, addr), known) in self.neighbours.drain() {
            match known {
                Some((state, mac)) => neighbours.entry(dev, addr).store(state, mac),
                None => _ = neighbours.remove(dev, addr),
            }
        }
        self.naming.begin();
        self.rib4.commit(v4, neighbours, &mut self.naming, &self.links, regrouped);
        self.rib6.commit(v6, neighbours, &mut self.naming, &self.links, regrouped);
        self.network.generation.step();
    }

    /// Takes back all changes since the last commit: no worker has seen any of them.
    pub fn rollback(&mut self) {
        self.links.rollback();
        self.settings.rollback();
        self.neighbours.clear();
        self.rib4.rollback();
        self.rib6.rollback();
    }

    /// The SIDs and policies that routes named before the last commit, and none does since.
    pub fn unnamed(&self) -> impl Iterator<Item = Encap> {
        self.naming.lost()
    }

    /// True of a SID or policy that a route of the last commit names.
    pub fn is_named(&self, encap: Encap) -> bool {
        self.naming.is_named(encap)
    }

    /// Interfaces as they will be after the commit.
    pub fn links(&self) -> &Links {
        &self.links
    }

    /// Settings as they will be after the commit.
    pub fn settings(&self) -> &Settings {
        &self.settings
    }

    /// Settings of the router as a whole, to be changed. What concerns interfaces has functions of its own.
    pub fn settings_mut(&mut self) -> &mut Settings {
        &mut self.settings
    }

    /// True when routes or rules have named the table (an empty table is another thing than none).
    pub fn table_exists<A: Family>(&self, table: TableId) -> bool {
        A::rib_ref(self).table_exists(table)
    }

    /// Every route of a table, in no order.
    pub fn routes<A: Family>(&self, table: TableId) -> impl Iterator<Item = (Prefix<A>, &RouteEntry)> {
        A::rib_ref(self).routes(table)
    }

    /// The tables of a family with the number of prefixes in each, by number.
    pub fn tables<A: Family>(&self) -> Vec<(TableId, usize)> {
        A::rib_ref(self).sizes()
    }

    /// The routes of a prefix, best first; none when there is none.
    pub fn routes_of<A: Family>(&self, table: TableId, prefix: Prefix<A>) -> &[RouteEntry] {
        A::rib_ref(self).routes_of(table, prefix)
    }

    /// What the routes of all tables do, both families: what many do alike comes once for each family.
    pub fn effects(&self) -> impl Iterator<Item = &Effect> {
        self.rib4.effects().chain(self.rib6.effects())
    }

    /// The rules, in the order in which they are asked.
    pub fn rules<A: Family>(&self) -> &[Rule<A>] {
        A::rib_ref(self).rules()
    }

    /// The longest prefix of `table` that holds `addr`: what a trace shows beside the route.
    pub fn longest<A: Family>(&self, table: TableId, addr: A) -> Option<(Prefix<A>, &RouteEntry)> {
        A::rib_ref(self).longest(table, addr, |_| true)
    }

    /// What will be known of a neighbour after the commit; none when nothing will.
    pub fn neighbour(&self, dev: IfIndex, addr: IpAddr) -> Option<(NeighbourState, wire::Mac)> {
        let known = match self.neighbours.get(&(dev, addr)) {
            Some(known) => *known,
            None => self.network.neighbours.get(dev, addr).map(|neighbour| neighbour.load()),
        };
        known.filter(|(state, _)| *state != NeighbourState::None)
    }

    /// Adds or replaces a neighbour that is never asked for.
    ///
    /// # Errors
    /// [`ConfigError::Exists`] when one of that address is known and `replace` is false.
    pub fn neighbour_put(
        &mut self,
        dev: IfIndex,
        addr: IpAddr,
        state: NeighbourState,
        mac: wire::Mac,
        replace: bool,
    ) -> Result<(), ConfigError> {
        if !replace && self.neighbour(dev, addr).is_some() {
            return Err(ConfigError::Exists("neighbour"));
        }
        self.neighbours.insert((dev, addr), Some((state, mac)));
        Ok(())
    }

    /// Removes a neighbour.
    ///
    /// # Errors
    /// [`ConfigError::Missing`] when it is not known.
    pub fn neighbour_del(&mut self, dev: IfIndex, addr: IpAddr) -> Result<(), ConfigError> {
        self.neighbour(dev, addr).ok_or(ConfigError::Missing("neighbour"))?;
        self.neighbours.insert((dev, addr), None);
        Ok(())
    }

    /// Removes all neighbours of an interface that are among `which`.
    pub(crate) fn neighbours_flush(&mut self, dev: IfIndex, which: impl Fn(&IpAddr) -> bool) {
        let known = self.network.neighbours.list();
        let known = known.iter().map(|neighbour| (neighbour.dev(), neighbour.addr()));
        let all: Vec<_> = known.chain(self.neighbours.keys().copied()).filter(|(on, addr)| *on == dev && which(addr)).collect();
        self.neighbours.extend(all.into_iter().map(|neighbour| (neighbour, None)));
    }

    /// Adds a rule.
    ///
    /// # Errors
    /// [`ConfigError::Exists`] for one equal in everything.
    pub fn rule_add<A: Family>(&mut self, rule: Rule<A>) -> Result<(), ConfigError> {
        A::rib(self).0.rule_add(rule)
    }

    /// Removes the first rule that `matches`.
    ///
    /// # Errors
    /// [`ConfigError::Missing`] when none does.
    pub fn rule_del<A: Family>(&mut self, matches: impl Fn(&Rule<A>) -> bool) -> Result<(), ConfigError> {
        A::rib(self).0.rule_del(matches)
    }

    /// What marks packets as they come in: the first line that one matches.
    pub fn marks<A: Family>(&self) -> &[MarkRule<A>] {
        &A::rib_ref(self).marks
    }

    /// Adds a line behind the others.
    ///
    /// # Errors
    /// [`ConfigError::Exists`] for one equal in everything.
    pub fn mark_add<A: Family>(&mut self, line: MarkRule<A>) -> Result<(), ConfigError> {
        let marks = &mut A::rib(self).0.marks;
        if marks.contains(&line) {
            return Err(ConfigError::Exists("mark"));
        }
        marks.push(line);
        Ok(())
    }

    /// Removes the lines that `matches`; how many.
    pub fn marks_flush<A: Family>(&mut self, matches: impl Fn(&MarkRule<A>) -> bool) -> usize {
        let marks = &mut A::rib(self).0.marks;
        let before = marks.len();
        marks.retain(|line| !matches(line));
        before - marks.len()
    }

    /// Removes every rule that `matches`; how many.
    pub fn rules_flush<A: Family>(&mut self, matches: impl Fn(&Rule<A>) -> bool) -> usize {
        A::rib(self).0.rules_flush(matches)
    }
}

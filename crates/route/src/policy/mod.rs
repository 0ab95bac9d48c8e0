//! Rules as workers read them: compiled when they change, so that a packet is compared with few of them, however many there are.

mod index;
mod intervals;

use std::sync::Arc;

use self::index::Candidates;
pub(crate) use self::index::Index;
use crate::fib::Table;
use crate::{Action, Address, Dst, Flow, IfIndex, Kind, Links, Rule, Selector, TableId};

/// What a rule does, its names resolved.
pub(crate) enum Step<A: Address> {
    /// Ask this table, if it exists.
    Lookup(Option<Arc<Table<A>>>),
    /// Ask the table of the packet's VRF.
    Vrf,
    /// Go on at the rule in this place.
    Goto(u32),
    /// Go on at the next rule.
    Nop,
    /// The packet ends here.
    Refuse(Kind),
}

/// A rule with what it does.
pub(crate) struct Compiled<A: Address> {
    pub(crate) rule: Rule<A>,
    pub(crate) step: Step<A>,
    /// It is for every packet.
    always: bool,
}

/// Rules and tables as of one moment.
pub(crate) struct Policy<A: Address> {
    /// In the order in which they are asked.
    pub(crate) rules: Vec<Compiled<A>>,
    /// All tables, by number.
    pub(crate) tables: Vec<Arc<Table<A>>>,
    /// The rules ask the same tables for every packet of one VRF.
    pub(crate) plain: bool,
    /// Some rule looks at protocol or ports.
    pub(crate) asks_upper: bool,
    index: Index<A>,
    /// The group of each interface, if a rule looks at it.
    groups: Box<[u32]>,
}

impl<A: Address> Policy<A> {
    /// Nothing.
    pub(crate) fn empty() -> Policy<A> {
        Policy::compile(&[], Vec::new(), &Links::default())
    }

    /// What `rules`, in the order in which they are asked, come to with these tables.
    pub(crate) fn compile(rules: &[Rule<A>], mut tables: Vec<Arc<Table<A>>>, links: &Links) -> Policy<A> {
        tables.sort_by_key(|table| table.id());
        let table = |id| tables.binary_search_by_key(&id, |table| table.id()).ok().map(|at| tables[at].clone());
        let step = |rule: &Rule<A>| match rule.action {
            Action::Lookup(id) => Step::Lookup(table(id)),
            Action::Vrf => Step::Vrf,
            Action::Goto(target) => {
                let at = rules.partition_point(|other| other.pref < target);
                // Only forward, as the kernel takes no other: a walk has an end.
                let there = rules.get(at).is_some_and(|other| other.pref == target) && target > rule.pref;
                if there { Step::Goto(at as u32) } else { Step::Nop }
            }
            Action::Nop => Step::Nop,
            Action::Blackhole => Step::Refuse(Kind::Blackhole),
            Action::Unreachable => Step::Refuse(Kind::Unreachable),
            Action::Prohibit => Step::Refuse(Kind::Prohibit),
        };
        let index = Index::build(rules.iter().map(|rule| &rule.select));
        let by_group = rules.iter().any(|rule| rule.suppress_group.is_some());
        let last = links.iter().map(|link| link.index.0 + 1).filter(|_| by_group).max().unwrap_or(0);
        let groups = (0..last).map(|index| links.get(IfIndex(index)).map_or(0, |link| link.group)).collect();
        Policy {
            plain: rules.iter().all(Rule::is_plain),
            asks_upper: rules.iter().any(|rule| rule.select.asks_upper()),
            index,
            groups,
            rules: rules
                .iter()
                .map(|rule| Compiled { rule: rule.clone(), step: step(rule), always: rule.select == Selector::default() })
                .collect(),
            tables,
        }
    }

    pub(crate) fn table(&self, id: TableId) -> Option<&Table<A>> {
        let at = self.tables.binary_search_by_key(&id, |table| table.id()).ok()?;
        Some(&self.tables[at])
    }

    /// The table that a step asks; none when it does not ask, or the table does not exist.
    #[inline]
    pub(crate) fn table_of<'p>(&'p self, step: &'p Step<A>, flow: &Flow<A>) -> Option<&'p Table<A>> {
        match step {
            Step::Lookup(table) => table.as_deref(),
            Step::Vrf => flow.vrf_table.and_then(|id| self.table(id)),
            Step::Goto(_) | Step::Nop | Step::Refuse(_) => None,
        }
    }

    /// The rules for packets of this flow, in their order.
    #[inline]
    pub(crate) fn walk<'p>(&'p self, flow: &'p Flow<A>) -> Walk<'p, A> {
        Walk { policy: self, flow, candidates: self.index.candidates(flow) }
    }

    /// True when a route counts as none for those whom the rule sent to it. One that refuses the packet itself always counts.
    #[inline]
    pub(crate) fn suppresses(&self, rule: &Rule<A>, dst: &Dst) -> bool {
        if rule.suppress_len.is_none() && rule.suppress_group.is_none() {
            return false;
        }
        if matches!(dst.kind, Kind::Blackhole | Kind::Unreachable | Kind::Prohibit) {
            return false;
        }
        let group = |dev: IfIndex| self.groups.get(dev.0 as usize).copied().unwrap_or(0);
        let by_group = || rule.suppress_group.is_some_and(|suppressed| dst.nexthop.is_some() && group(dst.dev()) == suppressed);
        rule.suppress_len.is_some_and(|len| dst.prefix_len <= len) || by_group()
    }
}

/// The rules that a flow meets.
pub(crate) struct Walk<'p, A: Address> {
    policy: &'p Policy<A>,
    flow: &'p Flow<A>,
    candidates: Candidates<'p>,
}

impl<'p, A: Address> Walk<'p, A> {
    /// Goes on at the rule in this place.
    pub(crate) fn jump(&mut self, place: u32) {
        self.candidates.skip_to(place);
    }
}

impl<'p, A: Address> Iterator for Walk<'p, A> {
    type Item = &'p Compiled<A>;

    #[inline]
    fn next(&mut self) -> Option<&'p Compiled<A>> {
        loop {
            let compiled = self.policy.rules.get(self.candidates.next()? as usize)?;
            if compiled.always || compiled.rule.select.matches(self.flow) {
                return Some(compiled);
            }
        }
    }
}

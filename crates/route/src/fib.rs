//! Forwarding tables and the rules that choose among them, as workers read them.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use rcu::{Domain, Guard, Rcu, Slots};

use crate::policy::{Compiled, Policy, Step};
use crate::{Address, Dst, DstRef, Flow, IfIndex, Kind, Marks, Prefix, TableId};

/// What a lookup found.
#[derive(Debug)]
pub struct Answer<'g> {
    /// The route; of kind [`Kind::NoRoute`] when no table had one.
    pub dst: DstRef<'g>,
    /// Its number, to be asked of [`Fib::route`]; 0 when no table had one, or where that is not told.
    pub number: u32,
    /// The table it stands in.
    pub table: TableId,
    /// Preference of the rule that led there.
    pub rule: u32,
    /// The rule itself refuses the packet: no table was asked.
    pub by_rule: bool,
}

impl<'g> Answer<'g> {
    /// An answer of which only the route is known: table and rule are for traces.
    pub fn untraced(dst: DstRef<'g>) -> Answer<'g> {
        Answer { dst, number: 0, table: TableId(0), rule: 0, by_rule: false }
    }
}

/// Whether lookups take references, a setting of each worker.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum RouteRefs {
    /// Routes are borrowed.
    #[default]
    Noref,
    /// A reference is taken for each hit and for each miss in a table (on the shared null entry).
    Counted,
}

/// How often a lookup is repeated whose answer was replaced before it was read: the table leads to the new one by then.
const RETRIES: u32 = 8;

/// What rules refuse packets by.
const REFUSALS: [Kind; 3] = [Kind::Blackhole, Kind::Unreachable, Kind::Prohibit];

/// The tables that a packet's lookup asks, where only its destination matters beyond them.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Scope {
    /// Those of the rules, for a packet in no VRF.
    Main,
    /// Those of the rules, for a packet in the VRF of this table.
    Vrf(TableId),
    /// This table alone.
    Table(TableId),
}

/// Routes to link-scoped prefixes, which stand once for each interface: longest first.
type Scoped<A> = Vec<(Prefix<A>, IfIndex, u32)>;

/// One forwarding table.
pub struct Table<A: Address> {
    pub(crate) id: TableId,
    pub(crate) lpm: lpm::Lpm<A::Key>,
    pub(crate) scoped: Rcu<Scoped<A>>,
}

impl<A: Address> Table<A> {
    pub(crate) fn new(domain: &Arc<Domain>, id: TableId) -> Table<A> {
        Table { id, lpm: lpm::Lpm::new(domain), scoped: Rcu::new(domain, Scoped::new()) }
    }

    /// Its number.
    pub fn id(&self) -> TableId {
        self.id
    }
}

/// Forwarding information of one address family.
pub struct Fib<A: Address> {
    pub(crate) dsts: Slots<Dst>,
    pub(crate) null: u32,
    /// What rules refuse by: blackhole, unreachable, prohibit.
    refusals: [u32; 3],
    pub(crate) policy: Rcu<Policy<A>>,
    /// What marks packets as they come in.
    pub marks: Rcu<Marks<A>>,
    /// See [`Fib::is_local_given`].
    pub(crate) local_given: AtomicBool,
}

impl<A: Address> Fib<A> {
    pub(crate) fn new(domain: &Arc<Domain>) -> Fib<A> {
        let dsts = Slots::new(domain);
        let null = dsts.insert(Arc::new(Dst::special(Kind::NoRoute)));
        let refusals = REFUSALS.map(|kind| dsts.insert(Arc::new(Dst::special(kind))));
        Fib {
            dsts,
            null,
            refusals,
            policy: Rcu::new(domain, Policy::empty()),
            marks: Rcu::new(domain, Marks::compile(&[])),
            local_given: AtomicBool::new(false),
        }
    }

    /// Asks the rules, in order, for a route.
    pub fn lookup<'g>(&self, guard: &Guard<'g>, flow: &Flow<A>, refs: RouteRefs) -> Answer<'g> {
        let policy = self.policy.load(guard);
        let found = if policy.plain {
            policy.rules.iter().find_map(|rule| self.obey(guard, policy, rule, flow, refs))
        } else {
            let mut walk = policy.walk(flow);
            loop {
                let Some(rule) = walk.next() else { break None };
                match rule.step {
                    Step::Goto(place) => walk.jump(place),
                    Step::Nop => {}
                    _ => {
                        if let Some(answer) = self.obey(guard, policy, rule, flow, refs) {
                            break Some(answer);
                        }
                    }
                }
            }
        };
        found.unwrap_or_else(|| Answer::untraced(self.null(guard, refs)))
    }

    /// What a rule that is for the packet answers; none when the next rule is to be asked.
    #[inline]
    pub(crate) fn obey<'g>(
        &self,
        guard: &Guard<'g>,
        policy: &Policy<A>,
        Compiled { rule, step, .. }: &Compiled<A>,
        flow: &Flow<A>,
        refs: RouteRefs,
    ) -> Option<Answer<'g>> {
        if let Step::Refuse(kind) = step {
            let dst = self.refusal(guard, *kind, refs)?;
            return Some(Answer { rule: rule.pref, by_rule: true, ..Answer::untraced(dst) });
        }
        let table = policy.table_of(step, flow)?;
        let (number, dst) = self.lookup_in(guard, table, flow, refs)?;
        let elsewhere = || flow.bound && dst.hops().all(|hop| hop.dev != flow.oif);
        if elsewhere() || policy.suppresses(rule, &dst) {
            return None;
        }
        Some(Answer { dst, number, table: table.id, rule: rule.pref, by_rule: false })
    }

    /// What a rule refuses by.
    #[inline]
    pub(crate) fn refusal<'g>(&self, guard: &Guard<'g>, kind: Kind, refs: RouteRefs) -> Option<DstRef<'g>> {
        let refusal = REFUSALS.iter().position(|refusal| *refusal == kind)?;
        self.route(guard, self.refusals[refusal], refs)
    }

    /// Asks one table only, for which there need be no rule. None when the table does not exist.
    pub fn lookup_table<'g>(&self, guard: &Guard<'g>, id: TableId, flow: &Flow<A>, refs: RouteRefs) -> Option<Answer<'g>> {
        let table = self.policy.load(guard).table(id)?;
        let (number, dst) = self.lookup_in(guard, table, flow, refs).unwrap_or_else(|| (0, self.null(guard, refs)));
        Some(Answer { dst, number, table: id, rule: 0, by_rule: false })
    }

    /// As [`Fib::lookup_table`] where a table is to be asked alone, as [`Fib::lookup`] where none is.
    pub fn lookup_named<'g>(&self, guard: &Guard<'g>, alone: Option<TableId>, flow: &Flow<A>, refs: RouteRefs) -> Option<Answer<'g>> {
        match alone {
            Some(table) => self.lookup_table(guard, table, flow, refs),
            None => Some(self.lookup(guard, flow, refs)),
        }
    }

    /// The route in `table` and its number; none when it has none or says `throw`.
    fn lookup_in<'g>(&self, guard: &Guard<'g>, table: &Table<A>, flow: &Flow<A>, refs: RouteRefs) -> Option<(u32, DstRef<'g>)> {
        self.found(guard, self.look(guard, table, flow), refs)
    }

    /// The route in `table` and its number, also one that says `throw`.
    #[inline]
    pub(crate) fn look<'g>(&self, guard: &Guard<'g>, table: &Table<A>, flow: &Flow<A>) -> Option<(u32, DstRef<'g>)> {
        let ask =
            || if flow.dst.is_link_scoped() { self.lookup_scoped(guard, table, flow) } else { table.lpm.lookup(guard, flow.dst.key()) };
        let mut id = ask();
        let mut dst = self.decided(guard, id, flow);
        for _ in 0..RETRIES {
            if id == 0 || dst.is_some() {
                break;
            }
            id = ask();
            dst = self.decided(guard, id, flow);
        }
        dst
    }

    /// The route of this number; where it says that it is for some packets only, the one that takes this. None when there is none, or was.
    fn decided<'g>(&self, guard: &Guard<'g>, mut id: u32, flow: &Flow<A>) -> Option<(u32, DstRef<'g>)> {
        let mut dst = self.dsts.get(guard, id)?;
        // Each step leads to a shorter prefix.
        for _ in 0..=A::BITS {
            let Some(choice) = &dst.choice else { break };
            let next = choice.of(flow);
            if next == 0 {
                break;
            }
            (id, dst) = (next, self.dsts.get(guard, next)?);
        }
        Some((id, dst))
    }

    /// On a link a longer prefix of another interface does not count.
    fn lookup_scoped(&self, guard: &Guard<'_>, table: &Table<A>, flow: &Flow<A>) -> u32 {
        let scoped = table.scoped.load(guard);
        if let Some(route) = scoped.iter().find(|(prefix, dev, _)| *dev == flow.link && prefix.contains(flow.dst)) {
            return route.2;
        }
        let id = table.lpm.lookup(guard, flow.dst.key());
        let on_link = self.dsts.get(guard, id).is_some_and(|dst| dst.hops().any(|hop| hop.dev == flow.link));
        if on_link { id } else { 0 }
    }

    /// The route of a leaf, counted if references are. None is a miss.
    #[inline]
    fn found<'g>(&self, guard: &Guard<'g>, found: Option<(u32, DstRef<'g>)>, refs: RouteRefs) -> Option<(u32, DstRef<'g>)> {
        match found {
            Some((id, dst)) if dst.kind != Kind::Throw => Some((id, if refs == RouteRefs::Counted { dst.hold() } else { dst })),
            _ => {
                if refs == RouteRefs::Counted {
                    drop(self.null(guard, refs));
                }
                None
            }
        }
    }

    /// The null entry that all misses share.
    pub(crate) fn null<'g>(&self, guard: &Guard<'g>, refs: RouteRefs) -> DstRef<'g> {
        // The entry is made with the Fib and never removed.
        let null = self.dsts.get(guard, self.null).unwrap_or_else(|| unreachable!("the null entry exists as long as the Fib"));
        if refs == RouteRefs::Counted { null.hold() } else { null }
    }

    /// The prefix of a table's route for `dst`: what a trace shows. Takes the table's lock, so it is not for the packet path.
    pub fn matched(&self, guard: &Guard<'_>, table: TableId, dst: A) -> Option<Prefix<A>> {
        let table = self.policy.load(guard).table(table)?;
        let scoped = table.scoped.load(guard).iter().find(|(prefix, ..)| prefix.contains(dst)).map(|(prefix, ..)| *prefix);
        scoped.or_else(|| {
            let (prefix, _) = table.lpm.longest_match(dst.key())?;
            Prefix::new(A::from_key(prefix.addr()), prefix.len())
        })
    }

    /// Bytes of what workers read: tries, not the routes they lead to.
    pub fn memory(&self, guard: &Guard<'_>) -> usize {
        self.policy.load(guard).tables.iter().map(|table| table.lpm.memory()).sum()
    }
}

/// Lookups of a batch in the common case: every rule is for every packet and names a table.
impl<A: Address> Fib<A> {
    /// True when the rules ask the same tables for every packet of a [`Scope`], as the default ones do, so that a batch can be looked up by
    /// destination alone.
    pub fn is_plain(&self, guard: &Guard<'_>) -> bool {
        self.policy.load(guard).plain
    }

    /// True when a route of type `local` was ever given, beside those of the router's addresses (Linux `fib_has_custom_local_routes`).
    pub fn is_local_given(&self) -> bool {
        self.local_given.load(Ordering::Relaxed)
    }

    /// True when some rule looks at protocol or ports, so that a [`Flow`] needs them.
    pub fn asks_upper(&self, guard: &Guard<'_>) -> bool {
        self.policy.load(guard).asks_upper
    }

    /// Looks up destinations that are not link-scoped, while [`Fib::is_plain`] holds: all of them in the first table, then those without a route in the
    /// next, so that their cache misses overlap. Leaves the number of each one's route in `routes`, 0 for none, to be asked of [`Fib::route`]. Misses are
    /// counted, if references are, of those only that have a route in the end: [`Fib::lookup`] is asked for the others and counts theirs.
    pub fn lookup_batch(&self, guard: &Guard<'_>, scope: Scope, keys: &[A::Key], refs: RouteRefs, routes: &mut Vec<u32>) {
        routes.clear();
        routes.resize(keys.len(), 0);
        let policy = self.policy.load(guard);
        let (mut asked, mut missed, mut left) = (0, 0, keys.len());
        let mut ask = |table: &Table<A>| {
            left = table.lpm.lookup_batch(guard, keys, routes);
            asked += 1;
            missed += left;
            left == 0
        };
        match scope {
            Scope::Table(id) => {
                policy.table(id).map(&mut ask);
            }
            Scope::Main => {
                let lookups = policy.rules.iter().filter_map(|rule| match &rule.step {
                    Step::Lookup(table) => table.as_deref(),
                    _ => None,
                });
                lookups.into_iter().any(&mut ask);
            }
            Scope::Vrf(id) => {
                let vrf = policy.table(id);
                let lookups = policy.rules.iter().filter_map(|rule| match &rule.step {
                    Step::Vrf => vrf,
                    Step::Lookup(table) => table.as_deref(),
                    _ => None,
                });
                lookups.into_iter().any(&mut ask);
            }
        }
        if refs == RouteRefs::Counted {
            // Who has no route has missed in every table.
            (0..missed - asked * left).for_each(|_| drop(self.null(guard, refs)));
        }
    }

    /// The route of this number, counted if references are. None when it takes [`Fib::lookup`] to tell: there is none, or it is a `throw`.
    #[inline]
    pub fn route<'g>(&self, guard: &Guard<'g>, number: u32, refs: RouteRefs) -> Option<DstRef<'g>> {
        let dst = self.dsts.get(guard, number)?;
        match dst.kind {
            Kind::Throw => None,
            _ if refs == RouteRefs::Counted => Some(dst.hold()),
            _ => Some(dst),
        }
    }
}

//! A lookup told rule by rule, for an operator who wants to know why: packets are looked up by [`Fib::lookup`].

use rcu::Guard;

use crate::policy::{Compiled, Policy, Step};
use crate::{Address, Answer, Dst, DstRef, Fib, Flow, Kind, RouteRefs, Rule, TableId};

/// What came of a rule that a lookup met.
#[derive(Clone, Debug)]
pub enum Outcome<'g> {
    /// It is not for the packet: this word of its does not fit, or `not` does.
    Unlike(&'static str),
    /// It does nothing, or leads to a rule that does not exist.
    Nop,
    /// It leads on to the rules of this preference.
    Goto(u32),
    /// Its table, if it has one, does not exist.
    NoTable,
    /// Its table has no route.
    NoRoute(TableId),
    /// The route in its table says `throw`.
    Throw(TableId),
    /// The route in its table is one of those that it suppresses.
    Suppressed(TableId, DstRef<'g>),
    /// It has the answer, in this table; 0 when it refuses the packet itself.
    Answers(TableId),
}

impl<A: Address> Fib<A> {
    /// Asks the rules, one after the other, and says of each what came of it. The answer is that of [`Fib::lookup`] as long as `ask`, which is asked for the
    /// route of a table in place of what workers read, says the same.
    pub fn follow<'g>(
        &self,
        guard: &Guard<'g>,
        flow: &Flow<A>,
        ask: impl Fn(TableId) -> Option<DstRef<'g>>,
        told: &mut dyn FnMut(&Rule<A>, &Outcome<'g>),
    ) -> Answer<'g> {
        let policy = self.policy.load(guard);
        let mut place = 0;
        while let Some(compiled) = policy.rules.get(place) {
            place += 1;
            let (outcome, answer) = self.meet(guard, policy, compiled, flow, &ask);
            told(&compiled.rule, &outcome);
            match (answer, &compiled.step, outcome) {
                (Some(answer), ..) => return answer,
                (None, Step::Goto(target), Outcome::Goto(_)) => place = *target as usize,
                _ => {}
            }
        }
        Answer::untraced(self.null(guard, RouteRefs::Noref))
    }

    /// The route of a table, as workers find it; also one that says `throw`.
    pub fn route_in<'g>(&self, guard: &Guard<'g>, table: TableId, flow: &Flow<A>) -> Option<DstRef<'g>> {
        self.look(guard, self.policy.load(guard).table(table)?, flow).map(|(_, dst)| dst)
    }

    fn meet<'g>(
        &self,
        guard: &Guard<'g>,
        policy: &Policy<A>,
        Compiled { rule, step, .. }: &Compiled<A>,
        flow: &Flow<A>,
        ask: impl Fn(TableId) -> Option<DstRef<'g>>,
    ) -> (Outcome<'g>, Option<Answer<'g>>) {
        if !rule.select.matches(flow) {
            return (Outcome::Unlike(rule.select.unlike(flow).unwrap_or("not")), None);
        }
        let answer =
            |dst, table, by_rule| (Outcome::Answers(table), Some(Answer { table, rule: rule.pref, by_rule, ..Answer::untraced(dst) }));
        let table = match step {
            Step::Nop => return (Outcome::Nop, None),
            Step::Goto(place) => return (policy.rules.get(*place as usize).map_or(Outcome::Nop, |to| Outcome::Goto(to.rule.pref)), None),
            Step::Refuse(kind) => {
                let refusal = self.refusal(guard, *kind, RouteRefs::Noref);
                return refusal.map_or((Outcome::Nop, None), |dst| answer(dst, TableId(0), true));
            }
            Step::Lookup(_) | Step::Vrf => policy.table_of(step, flow).map(|table| table.id()),
        };
        let Some(table) = table else { return (Outcome::NoTable, None) };
        match ask(table) {
            Some(dst) if is_throw(&dst) => (Outcome::Throw(table), None),
            Some(dst) if dst.kind != Kind::Throw && policy.suppresses(rule, &dst) => (Outcome::Suppressed(table, dst), None),
            Some(dst) if dst.kind != Kind::Throw => answer(dst, table, false),
            _ => (Outcome::NoRoute(table), None),
        }
    }
}

/// True of a route that says `throw`; one that is for other packets is of that kind too.
fn is_throw(dst: &Dst) -> bool {
    dst.kind == Kind::Throw && dst.choice.is_none()
}

//! Why: every rule that was met, what came of it, and how one of several ways was chosen. The form is noref's own.

use ::route::{Nexthop, Outcome, Prefix, RouteEntry, Rule, Sharing, TableId};
use plane::get::{Refusal, Reply};

use super::Inquiry;
use super::family::Gets;
use crate::show::route::Alone;
use crate::show::{Source, route, rule};

impl<S: Source, A: Gets> Inquiry<'_, S, A> {
    /// A rule, and what came of it.
    pub(super) fn step<'e>(
        &self,
        rule: &Rule<A>,
        outcome: &Outcome<'_>,
        found: impl Fn(TableId) -> Option<(Prefix<A>, &'e RouteEntry)>,
    ) -> String {
        let route = |table| match found(table) {
            Some(found) => {
                let text = route::one(self.source, self.editor, (self.options, Alone::default()), (table, table), found);
                text.split_whitespace().collect::<Vec<_>>().join(" ")
            }
            None => "a route".to_owned(),
        };
        let came = match outcome {
            Outcome::Unlike("not") => "not for this packet: it is for all but those like it".to_owned(),
            Outcome::Unlike(word) => format!("not for this packet: {word}"),
            Outcome::Nop => "nothing".to_owned(),
            Outcome::Goto(pref) => format!("on to rule {pref}"),
            Outcome::NoTable => "no such table".to_owned(),
            Outcome::NoRoute(table) => format!("no route in table {table}"),
            Outcome::Throw(table) => format!("on to the next rule: {}", route(*table)),
            Outcome::Suppressed(table, _) => format!("suppressed by {}: {}", self.suppressor(rule, found(*table)), route(*table)),
            Outcome::Answers(TableId(0)) => "the answer".to_owned(),
            Outcome::Answers(table) => format!("the answer: {}", route(*table)),
        };
        format!("rule {} ({}): {came}\n", rule.pref, rule::shown(self.editor, rule))
    }

    fn suppressor(&self, rule: &Rule<A>, found: Option<(Prefix<A>, &RouteEntry)>) -> String {
        match (rule.suppress_len, found) {
            (Some(len), Some((prefix, _))) if prefix.len() <= len => format!("suppress_prefixlength {len}"),
            _ => "suppress_ifgroup".to_owned(),
        }
    }

    /// All of it; `steps` are those of the rules.
    pub(super) fn explained(&self, reply: &Result<Reply<'_>, Refusal>, steps: &str) -> String {
        let mut text = if steps.is_empty() { "no rule is asked: addresses or interfaces decide\n".to_owned() } else { steps.to_owned() };
        if let Err(Refusal::Dropped(reason)) = reply {
            text.push_str(&format!("a packet is dropped, {}: {}\n", reason.word(), reason.meaning()));
        }
        let Ok(Reply { dst, chosen: Some((place, hash)), .. }) = reply else { return text };
        let (ways, number) = (dst.hops().count(), usize::from(*place) + 1);
        let until = |way: Option<&Nexthop>| way.map_or(0, |way| way.until);
        let from = place.checked_sub(1).map_or(0, |before| until(dst.hop(before)));
        let share = match dst.sharing {
            Sharing::Resilient(_) => "its bucket is that way's".to_owned(),
            _ => format!("its share from {from:#010x} to below {:#010x}", until(dst.hop(*place))),
        };
        text.push_str(&format!("way {number} of {ways}: the hash of the flow is {hash:#010x}, {share}\n"));
        text
    }
}

//! Policy rules.

use std::net::{Ipv4Addr, Ipv6Addr};

use ::route::{Action, ConfigError, Rule, TableId};

use super::{Applier, Narrow, at, narrow};
use crate::address::Family;
use crate::error::Error;
use crate::rule::{RuleCommand, RuleOperation};

impl Applier<'_> {
    pub(super) fn rule(&mut self, command: &RuleCommand<'_>) -> Result<(), Error> {
        match command.family {
            Family::V4 => self.rule_of::<Ipv4Addr>(command),
            Family::V6 => self.rule_of::<Ipv6Addr>(command),
        }
    }

    fn rule_of<A: Narrow>(&mut self, command: &RuleCommand<'_>) -> Result<(), Error> {
        let from = command.from.map(|from| narrow::<A>(from.value, from.span)).transpose()?;
        let to = command.to.map(|to| narrow::<A>(to.value, to.span)).transpose()?;
        let iif = command.iif.map(|iif| self.device(iif)).transpose()?;
        let table = command.table.map(|table| Action::Lookup(table.value));
        let pref = command.preference.map(|preference| preference.value);
        match command.operation {
            RuleOperation::Add => {
                let pref = pref.unwrap_or_else(|| self.free_preference::<A>());
                let rule = Rule { pref, from, to, iif, action: table.unwrap_or(Action::Lookup(TableId::MAIN)) };
                self.editor.rule_add(rule).map_err(|error| match error {
                    ConfigError::Exists(_) => Error::refused(command.verb.span, "the rule exists already (File exists)"),
                    other => at(command.verb.span)(other),
                })
            }
            RuleOperation::Delete => {
                let matches = |rule: &Rule<A>| {
                    pref.is_none_or(|pref| rule.pref == pref)
                        && table.is_none_or(|action| rule.action == action)
                        && (from.is_none() || rule.from == from)
                        && (to.is_none() || rule.to == to)
                        && (iif.is_none() || rule.iif == iif)
                };
                let missing = |_| Error::refused(command.verb.span, "there is no such rule (No such file or directory)");
                self.editor.rule_del(matches).map_err(missing)
            }
        }
    }

    /// The preference of a rule that names none: one before the second rule, so that it stands behind the first, which is that of table `local`.
    fn free_preference<A: Narrow>(&self) -> u32 {
        self.editor.rules::<A>().get(1).map_or(0, |second| second.pref.saturating_sub(1))
    }
}

//! Policy rules.

use std::net::{Ipv4Addr, Ipv6Addr};

use ::route::{Action, ConfigError, Editor, IfIndex, Rule, Selector, TableId};

use super::{Applier, Narrow, at, narrow};
use crate::address::{Family, Prefix};
use crate::error::Error;
use crate::link::new_name;
use crate::packets::{Packets, holds};
use crate::rule::{RuleCommand, RuleKind, RuleOperation, goes_forward};
use crate::span::{Spanned, Word};

impl Applier<'_> {
    pub(super) fn rule(&mut self, command: &RuleCommand<'_>) -> Result<(), Error> {
        match command.family {
            Family::V4 => self.rule_of::<Ipv4Addr>(command),
            Family::V6 => self.rule_of::<Ipv6Addr>(command),
        }
    }

    fn rule_of<A: Narrow>(&mut self, command: &RuleCommand<'_>) -> Result<(), Error> {
        let select = match command.operation {
            RuleOperation::Add => selector::<A>(&command.packets, |word| self.device_of_rule(word))?,
            RuleOperation::Delete | RuleOperation::Flush => wanted_selector::<A>(self.editor, &command.packets)?,
        };
        match command.operation {
            RuleOperation::Add => self.rule_add(command, select),
            RuleOperation::Delete => {
                let missing = |_| Error::refused(command.verb.span, "there is no such rule (No such file or directory)");
                self.editor.rule_del(|rule: &Rule<A>| is_meant(command, &select, rule)).map_err(missing)
            }
            RuleOperation::Flush => {
                // iproute2 asks for a rule to go by its preference, and does not see one of 0.
                self.editor.rules_flush(|rule: &Rule<A>| rule.pref != 0 && is_wanted(command, &select, rule));
                Ok(())
            }
        }
    }

    fn rule_add<A: Narrow>(&mut self, command: &RuleCommand<'_>, select: Selector<A>) -> Result<(), Error> {
        let pref = command.preference.map_or_else(|| self.free_preference::<A>(), |preference| preference.value);
        let action = match command.kind.map_or(RuleKind::Lookup, |kind| kind.value) {
            RuleKind::Lookup if select.l3mdev => Action::Vrf,
            RuleKind::Lookup => Action::Lookup(command.table.map_or(TableId::MAIN, |table| table.value)),
            kind => action(kind),
        };
        goes_forward(command.kind, pref)?;
        let rule = Rule {
            pref,
            select,
            action,
            suppress_len: command.suppress_len.map(|len| len.value),
            suppress_group: command.suppress_group.map(|group| group.value),
            protocol: command.protocol.map_or(0, |protocol| protocol.value),
        };
        self.editor.rule_add(rule).map_err(|error| match error {
            ConfigError::Exists(_) => Error::refused(command.verb.span, "the rule exists already (File exists)"),
            other => at(command.verb.span)(other),
        })
    }

    /// The device of a rule that is added, which need not be there yet.
    fn device_of_rule(&mut self, word: Word<'_>) -> Result<IfIndex, Error> {
        if self.editor.links().named(word.text).is_none() {
            new_name(word)?;
            let why = format!("there is no device \"{}\" yet: the rule is for no packet until there is", word.text);
            self.warnings.push(Error::refused(word.span, why));
        }
        Ok(self.editor.number_for_rule(word.text))
    }

    /// The preference of a rule that names none: one before the second rule, so that it stands behind the first, which is that of table `local`.
    fn free_preference<A: Narrow>(&self) -> u32 {
        self.editor.rules::<A>().get(1).map_or(0, |second| second.pref.saturating_sub(1))
    }
}

/// Selectors as the tables take them.
///
/// # Errors
/// Those of `device`, which finds a device; a prefix of the other family, a `tos` that the family has no rules for.
pub(crate) fn selector<A: Narrow>(
    packets: &Packets<'_>,
    mut device: impl FnMut(Word<'_>) -> Result<IfIndex, Error>,
) -> Result<Selector<A>, Error> {
    if let Some(tos) = packets.tos.filter(|tos| A::BITS == 32 && tos.value & !0x1c != 0) {
        let error = Error::refused(tos.span, format!("IPv4 rules compare the bits 0x1c of tos, and {:#x} has others", tos.value));
        return Err(error.hint("\"dscp\" compares all six bits of the DSCP"));
    }
    let prefix = |prefix: Spanned<Prefix>| narrow::<A>(prefix.value, prefix.span);
    Ok(Selector {
        not: packets.not.is_some(),
        from: packets.from.map(prefix).transpose()?,
        to: packets.to.map(prefix).transpose()?,
        iif: packets.iif.map(&mut device).transpose()?,
        oif: packets.oif.map(device).transpose()?,
        // Of a mark no bit of which counts nothing is asked, nor of TOS or protocol 0, which stand for none.
        mark: packets.mark.map(|mark| mark.value).filter(|mark| mark.mask != 0),
        tos: packets.tos.map(|tos| tos.value).filter(|tos| *tos != 0),
        dscp: packets.dscp.map(|dscp| dscp.value),
        protocol: packets.protocol.map(|protocol| protocol.value).filter(|protocol| *protocol != 0),
        sport: packets.sport.map(|ports| ports.value),
        dport: packets.dport.map(|ports| ports.value),
        l3mdev: packets.l3mdev.is_some(),
    })
}

/// As [`selector`], of rules that may be there: no rule has a device that none names.
pub(crate) fn wanted_selector<A: Narrow>(editor: &Editor, packets: &Packets<'_>) -> Result<Selector<A>, Error> {
    selector(packets, |word| Ok(editor.links().number(word.text).unwrap_or(IfIndex(0))))
}

fn action(kind: RuleKind) -> Action {
    match kind {
        RuleKind::Lookup => Action::Lookup(TableId::MAIN),
        RuleKind::Goto(target) => Action::Goto(target),
        RuleKind::Nop => Action::Nop,
        RuleKind::Blackhole => Action::Blackhole,
        RuleKind::Unreachable => Action::Unreachable,
        RuleKind::Prohibit => Action::Prohibit,
    }
}

/// True when a rule has all that is given to delete one (Linux `rule_find`): `not` and the target of a `goto` tell no rules apart.
fn is_meant<A: Narrow>(command: &RuleCommand<'_>, given: &Selector<A>, rule: &Rule<A>) -> bool {
    let has = &rule.select;
    (given.from.is_none() || given.from == has.from)
        && (given.to.is_none() || given.to == has.to)
        && (given.mark.is_none() || given.mark == has.mark)
        && has_others(given, has)
        && does(command, rule)
}

/// True when `ip rule show` and `flush` mean a rule: as `rule del`, but `not` counts, a prefix stands for those in it, and a mark without a mask for all of its
/// value.
pub(crate) fn is_wanted<A: Narrow>(command: &RuleCommand<'_>, given: &Selector<A>, rule: &Rule<A>) -> bool {
    let has = &rule.select;
    let within = |outer: Option<Spanned<Prefix>>, inner: Option<::route::Prefix<A>>| {
        outer.is_none_or(|outer| inner.is_some_and(|inner| holds(outer.value, inner.addr().into(), inner.len())))
    };
    let mark_fits = match (given.mark, has.mark) {
        (Some(given), Some(has)) => given.value == has.value && (given.mask == u32::MAX || given.mask == has.mask),
        (Some(_), None) => false,
        (None, _) => true,
    };
    (!given.not || has.not)
        && within(command.packets.from, has.from)
        && within(command.packets.to, has.to)
        && mark_fits
        && has_others(given, has)
        && does(command, rule)
}

/// True when `has` has all that is given beside prefixes and marks.
fn has_others<A: Narrow>(given: &Selector<A>, has: &Selector<A>) -> bool {
    (given.iif.is_none() || given.iif == has.iif)
        && (given.oif.is_none() || given.oif == has.oif)
        && (given.tos.is_none() || given.tos == has.tos)
        && (given.dscp.is_none() || given.dscp == has.dscp)
        && (given.protocol.is_none() || given.protocol == has.protocol)
        && (given.sport.is_none() || given.sport == has.sport)
        && (given.dport.is_none() || given.dport == has.dport)
        && (!given.l3mdev || has.l3mdev)
}

/// True when a rule has all that is given beside selectors.
fn does<A: Narrow>(command: &RuleCommand<'_>, rule: &Rule<A>) -> bool {
    let is_kind = |kind| match (kind, rule.action) {
        (RuleKind::Lookup, Action::Lookup(_) | Action::Vrf) | (RuleKind::Goto(_), Action::Goto(_)) => true,
        (RuleKind::Lookup | RuleKind::Goto(_), _) => false,
        (kind, is) => action(kind) == is,
    };
    command.preference.is_none_or(|preference| rule.pref == preference.value)
        && command.kind.is_none_or(|kind| is_kind(kind.value))
        && command.table.is_none_or(|table| rule.action == Action::Lookup(table.value))
        && command.suppress_len.is_none_or(|len| rule.suppress_len == Some(len.value))
        && command.suppress_group.is_none_or(|group| rule.suppress_group == Some(group.value))
        && command.protocol.is_none_or(|protocol| rule.protocol == protocol.value)
}

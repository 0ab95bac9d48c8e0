//! Rules, as `ip rule show` prints them.

use std::fmt::{self, Write};
use std::net::{Ipv4Addr, Ipv6Addr};

use ::route::{Action, Editor, IfIndex, Mark, MarkRule, Ports, Rule, Selector};

use super::name;
use crate::address::Family;
use crate::apply::Narrow;
use crate::apply::rules::{is_wanted, wanted_selector};
use crate::error::Error;
use crate::rule::RuleCommand;
use crate::{dsfield, ipproto, protocol};

/// Rules of a family.
#[derive(Debug)]
pub(super) struct Rules {
    family: Family,
    /// Places of those to be shown.
    places: Vec<usize>,
}

impl Rules {
    /// Those that are meant.
    pub(super) fn new(command: &RuleCommand<'_>, editor: &Editor) -> Result<Rules, Error> {
        let places = match command.family {
            Family::V4 => places::<Ipv4Addr>(command, editor)?,
            Family::V6 => places::<Ipv6Addr>(command, editor)?,
        };
        Ok(Rules { family: command.family, places })
    }

    pub(super) fn text(&self, editor: &Editor) -> String {
        match self.family {
            Family::V4 => self.text_of::<Ipv4Addr>(editor),
            Family::V6 => self.text_of::<Ipv6Addr>(editor),
        }
    }

    fn text_of<A: Narrow>(&self, editor: &Editor) -> String {
        let rules = editor.rules::<A>();
        let mut text = String::new();
        for rule in self.places.iter().filter_map(|place| rules.get(*place)) {
            // Writing to a string does not fail.
            let _ = write_rule(&mut text, editor, rule);
        }
        text
    }
}

fn places<A: Narrow>(command: &RuleCommand<'_>, editor: &Editor) -> Result<Vec<usize>, Error> {
    let select = wanted_selector::<A>(editor, &command.packets)?;
    let rules = editor.rules::<A>().iter().enumerate();
    Ok(rules.filter(|(_, rule)| is_wanted(command, &select, rule)).map(|(place, _)| place).collect())
}

fn write_rule<A: Narrow>(text: &mut String, editor: &Editor, rule: &Rule<A>) -> fmt::Result {
    writeln!(text, "{}:\t{}", rule.pref, shown(editor, rule))
}

/// A rule without its preference.
pub(super) fn shown<A: Narrow>(editor: &Editor, rule: &Rule<A>) -> String {
    let mut text = String::new();
    // Writing to a string does not fail.
    let _ = write_shown(&mut text, editor, rule);
    text
}

fn write_shown<A: Narrow>(text: &mut String, editor: &Editor, rule: &Rule<A>) -> fmt::Result {
    write_selector(text, editor, &rule.select)?;
    write_action(text, editor, rule)?;
    if rule.protocol != 0 && rule.protocol != protocol::KERNEL {
        write!(text, " proto {}", protocol::show(rule.protocol))?;
    }
    Ok(())
}

fn write_selector<A: Narrow>(text: &mut String, editor: &Editor, select: &Selector<A>) -> fmt::Result {
    write!(text, "{}from {}", if select.not { "not " } else { "" }, select.from.map_or_else(|| "all".to_owned(), |from| from.to_string()))?;
    if let Some(to) = select.to {
        write!(text, " to {to}")?;
    }
    write_others(text, editor, select, "lookup [l3mdev-table]")
}

/// What is selected by beside prefixes, a space before each; `l3mdev` is how that is said.
fn write_others<A: ::route::Family>(text: &mut String, editor: &Editor, select: &Selector<A>, l3mdev: &str) -> fmt::Result {
    if let Some(tos) = select.tos {
        write!(text, " tos {}", dsfield::shown(tos))?;
    }
    if let Some(mark) = select.mark {
        write!(text, " fwmark {}", shown_mark(mark))?;
    }
    for (word, dev) in [("iif", select.iif), ("oif", select.oif)] {
        if let Some(dev) = dev {
            write!(text, " {word} {}", device(editor, dev))?;
        }
    }
    if select.l3mdev {
        write!(text, " {l3mdev}")?;
    }
    if let Some(number) = select.protocol {
        write!(text, " ipproto {}", ipproto::shown(number))?;
    }
    for (word, ports) in [("sport", select.sport), ("dport", select.dport)] {
        match ports {
            Some(Ports { first, last }) if first == last => write!(text, " {word} {first}")?,
            Some(Ports { first, last }) => write!(text, " {word} {first}-{last}")?,
            None => {}
        }
    }
    if let Some(dscp) = select.dscp {
        write!(text, " dscp {}", dsfield::shown_dscp(dscp))?;
    }
    Ok(())
}

/// What a rule selects by beside prefixes and the interface in, as `ip rule` shows it; `not` first.
pub fn rule_others<A: ::route::Family>(editor: &Editor, rule: &Rule<A>) -> String {
    let mut text = String::from(if rule.select.not { " not" } else { "" });
    let select = Selector { iif: None, l3mdev: rule.select.l3mdev && rule.action != Action::Vrf, ..rule.select.clone() };
    // Writing to a string does not fail.
    let _ = write_others(&mut text, editor, &select, "l3mdev");
    text.trim_start().to_owned()
}

/// What a rule does, as `ip rule` shows it, and `l3mdev`.
pub fn rule_action<A: ::route::Family>(editor: &Editor, rule: &Rule<A>) -> String {
    let mut text = String::from(if rule.action == Action::Vrf { " l3mdev" } else { "" });
    // Writing to a string does not fail.
    let _ = write_action(&mut text, editor, rule);
    text.trim_start().to_owned()
}

/// The lines of the classifier of one family or both, as they are written.
pub(super) fn marks(editor: &Editor, family: Option<Family>) -> String {
    let mut text = String::new();
    // Writing to a string does not fail.
    if family != Some(Family::V6) {
        let _ = write_marks::<Ipv4Addr>(&mut text, editor, "-4");
    }
    if family != Some(Family::V4) {
        let _ = write_marks::<Ipv6Addr>(&mut text, editor, "-6");
    }
    text
}

fn write_marks<A: Narrow>(text: &mut String, editor: &Editor, family: &str) -> fmt::Result {
    for MarkRule { select, set } in editor.marks::<A>() {
        write!(text, "{family} mark add ")?;
        write_selector(text, editor, select)?;
        writeln!(text, " set {}", shown_mark(*set))?;
    }
    Ok(())
}

/// A mark as it is written.
fn shown_mark(Mark { value, mask }: Mark) -> String {
    if mask == u32::MAX { hex(value) } else { format!("{}/{}", hex(value), hex(mask)) }
}

fn write_action<A: ::route::Family>(text: &mut String, editor: &Editor, rule: &Rule<A>) -> fmt::Result {
    match rule.action {
        Action::Lookup(table) => write!(text, " lookup {table}")?,
        Action::Vrf => {}
        Action::Goto(target) => {
            let unresolved = if editor.rules::<A>().iter().any(|other| other.pref == target) { "" } else { " [unresolved]" };
            write!(text, " goto {target}{unresolved}")?;
        }
        Action::Nop => text.push_str(" nop"),
        Action::Blackhole => text.push_str(" blackhole"),
        Action::Unreachable => text.push_str(" unreachable"),
        Action::Prohibit => text.push_str(" prohibit"),
    }
    if let Action::Lookup(_) = rule.action {
        if let Some(len) = rule.suppress_len {
            write!(text, " suppress_prefixlength {len}")?;
        }
        match rule.suppress_group {
            Some(0) => text.push_str(" suppress_ifgroup default"),
            Some(group) => write!(text, " suppress_ifgroup {group}")?,
            None => {}
        }
    }
    Ok(())
}

fn device(editor: &Editor, dev: IfIndex) -> String {
    let detached = if editor.links().get(dev).is_none() { " [detached]" } else { "" };
    format!("{}{detached}", name(editor, dev))
}

/// A number as C's `%#x` prints it.
fn hex(number: u32) -> String {
    if number == 0 { "0".to_owned() } else { format!("{number:#x}") }
}

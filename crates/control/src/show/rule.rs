//! Rules, as `ip rule show` prints them.

use std::fmt::Write;
use std::net::{Ipv4Addr, Ipv6Addr};

use ::route::{Action, Editor, Prefix, Rule};

use super::name;
use crate::address::Family;

/// Rules of a family.
#[derive(Debug)]
pub(super) struct Rules {
    pub family: Family,
}

impl Rules {
    pub(super) fn text(&self, editor: &Editor) -> String {
        match self.family {
            Family::V4 => text(editor, editor.rules::<Ipv4Addr>()),
            Family::V6 => text(editor, editor.rules::<Ipv6Addr>()),
        }
    }
}

fn text<A: ::route::Family>(editor: &Editor, rules: &[Rule<A>]) -> String {
    let mut text = String::new();
    for Rule { pref, from, to, iif, action } in rules {
        // Writing to a string does not fail.
        let _ = write!(text, "{pref}:\tfrom {}", from.map_or_else(|| "all".to_owned(), prefix));
        if let Some(to) = to {
            let _ = write!(text, " to {}", prefix(*to));
        }
        if let Some(iif) = iif {
            let detached = if editor.links().get(*iif).is_none() { " [detached]" } else { "" };
            let _ = write!(text, " iif {}{detached}", name(editor, *iif));
        }
        let _ = match action {
            Action::Lookup(table) => writeln!(text, " lookup {table}"),
            Action::Vrf => writeln!(text, " lookup [l3mdev-table]"),
        };
    }
    text
}

fn prefix<A: ::route::Family>(prefix: Prefix<A>) -> String {
    if prefix.len() == A::BITS { prefix.addr().to_string() } else { format!("{}/{}", prefix.addr(), prefix.len()) }
}

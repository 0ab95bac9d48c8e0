//! Buckets of resilient groups of nexthop objects, as `ip nexthop bucket show` prints them.

use std::fmt::Write as _;

use ::route::{Editor, IfIndex, NexthopDoes, NexthopObject, Resilient};

use super::device;
use crate::error::Error;
use crate::nexthop_object::BucketSelector;
use crate::span::Spanned;

/// Which buckets.
#[derive(Debug)]
pub(super) struct Buckets {
    group: Option<u32>,
    index: Option<u16>,
    member: Option<u32>,
    device: Option<IfIndex>,
}

impl Buckets {
    pub(super) fn new(selector: &BucketSelector<'_>, editor: &Editor) -> Result<Buckets, Error> {
        if let Some(group) = selector.group {
            check(group, selector.index, editor)?;
        }
        Ok(Buckets {
            group: selector.group.map(|group| group.value),
            index: selector.index.map(|index| index.value),
            member: selector.member.map(|member| member.value),
            device: selector.device.map(|word| device(editor, word)).transpose()?,
        })
    }

    pub(super) fn text(&self, editor: &Editor) -> String {
        let mut text = String::new();
        for (id, object) in editor.nexthops().filter(|(id, _)| self.group.is_none_or(|group| group == *id)) {
            let Some(resilient) = resilient(object) else { continue };
            for (index, (member, idle)) in (0u16..).zip(resilient.buckets(editor.time())) {
                if self.index.is_none_or(|wanted| wanted == index) && self.is_of(member, editor) {
                    // Writing to a string does not fail.
                    let _ = writeln!(text, "id {id} index {index} idle_time {} nhid {member} ", seconds(idle));
                }
            }
        }
        text
    }

    fn is_of(&self, member: u32, editor: &Editor) -> bool {
        let dev = || match editor.nexthop(member).map(|object| &object.does) {
            Some(NexthopDoes::Way(hop)) => Some(hop.dev),
            _ => None,
        };
        self.member.is_none_or(|wanted| wanted == member) && self.device.is_none_or(|wanted| dev() == Some(wanted))
    }
}

fn resilient(object: &NexthopObject) -> Option<&Resilient> {
    match &object.does {
        NexthopDoes::Group(_, resilient) => resilient.as_ref(),
        NexthopDoes::Way(_) | NexthopDoes::Blackhole => None,
    }
}

fn check(group: Spanned<u32>, index: Option<Spanned<u16>>, editor: &Editor) -> Result<(), Error> {
    let refused = |why: String| Error::refused(group.span, why);
    let id = group.value;
    let object = editor.nexthop(id).ok_or_else(|| refused(format!("there is no nexthop {id} (No such file or directory)")))?;
    if !matches!(object.does, NexthopDoes::Group(..)) {
        return Err(refused(format!("nexthop {id} is not a group (Not a nexthop group)")));
    }
    let resilient = resilient(object).ok_or_else(|| refused(format!("group {id} has no buckets (Nexthop group not of type resilient)")))?;
    match index.filter(|index| usize::from(index.value) >= resilient.len()) {
        Some(index) => {
            let last = resilient.len() - 1;
            Err(Error::refused(index.span, format!("the buckets of group {id} are 0 to {last} (Bucket index out of bounds)")))
        }
        None => Ok(()),
    }
}

/// Hundredths of a second as seconds, with six digits that count (`%g` of C).
pub(super) fn seconds(ticks: u64) -> String {
    let value = ticks as f64 / 100.0;
    let rounded = format!("{value:.5e}");
    let (digits, exponent) = rounded.split_once('e').unwrap_or((&rounded, "0"));
    let short = |number: &str| match number.contains('.') {
        true => number.trim_end_matches('0').trim_end_matches('.').to_owned(),
        false => number.to_owned(),
    };
    match exponent.parse::<i32>() {
        Ok(exponent) if exponent >= 6 => format!("{}e+{exponent:02}", short(digits)),
        Ok(exponent) => short(&format!("{value:.*}", (5 - exponent) as usize)),
        Err(_) => short(&rounded),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_are_shown_as_iproute2_shows_them() {
        for (ticks, shown) in [
            (0, "0"),
            (1, "0.01"),
            (55, "0.55"),
            (760, "7.6"),
            (12_000, "120"),
            (1_234_500, "12345"),
            (1_234_567, "12345.7"),
            (10_000_000, "100000"),
            (123_456_700, "1.23457e+06"),
            (858_993_459, "8.58993e+06"),
        ] {
            assert_eq!(seconds(ticks), shown, "{ticks}");
        }
    }
}

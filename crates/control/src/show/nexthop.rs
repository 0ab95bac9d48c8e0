//! Nexthop objects, as `ip nexthop show` prints them.

use std::fmt::{self, Write as _};
use std::io::{self, Write};

use ::route::{Editor, Encap, NexthopDoes, NexthopObject};

use super::bucket::seconds;
use super::{Source, device, encap, name};
use crate::error::Error;
use crate::nexthop_object::{NexthopSelector, Selected};
use crate::protocol;

/// Which nexthop objects.
#[derive(Debug)]
pub(super) struct Nexthops(Selected);

impl Nexthops {
    pub(super) fn new(selector: &NexthopSelector<'_>, editor: &Editor) -> Result<Nexthops, Error> {
        if let Some(id) = selector.id.filter(|id| editor.nexthop(id.value).is_none()) {
            return Err(Error::refused(id.span, format!("there is no nexthop {} (No such file or directory)", id.value)));
        }
        selector.resolve(|word| device(editor, word)).map(Nexthops)
    }

    pub(super) fn print(&self, source: &impl Source, out: &mut impl Write) -> io::Result<()> {
        let text = source.editor(|editor| {
            let mut text = String::new();
            for (id, object) in editor.nexthops().filter(|(id, object)| self.0.has(*id, object)) {
                // Writing to a string does not fail.
                let _ = line(&mut text, source, editor, id, object);
            }
            text
        });
        out.write_all(text.as_bytes())
    }
}

fn line(text: &mut String, source: &impl Source, editor: &Editor, id: u32, object: &NexthopObject) -> fmt::Result {
    write!(text, "id {id} ")?;
    match &object.does {
        NexthopDoes::Group(members, resilient) => {
            text.push_str("group ");
            for (at, (member, weight)) in members.iter().enumerate() {
                text.push_str(if at > 0 { "/" } else { "" });
                write!(text, "{member}")?;
                if *weight != 1 {
                    write!(text, ",{weight}")?;
                }
            }
            text.push(' ');
            if let Some(resilient) = resilient {
                let times = [resilient.idle_timer().into(), resilient.unbalanced_timer().into(), resilient.unbalanced_time(editor.time())];
                let [idle, unbalanced, time] = times.map(seconds);
                let buckets = resilient.len();
                write!(text, "type resilient buckets {buckets} idle_timer {idle} unbalanced_timer {unbalanced} unbalanced_time {time} ")?;
            }
        }
        NexthopDoes::Blackhole => text.push_str("blackhole "),
        NexthopDoes::Way(hop) => {
            if hop.encap != Encap::None {
                encap::write(text, source, editor, hop.encap, false)?;
            }
            if let Some(via) = hop.via {
                write!(text, "via {via} ")?;
            }
            let scope = if hop.via.is_some() || object.v6 { "link" } else { "host" };
            write!(text, "dev {} scope {scope} ", name(editor, hop.dev))?;
        }
    }
    if object.protocol != 0 {
        write!(text, "proto {} ", protocol::show(object.protocol))?;
    }
    if let NexthopDoes::Way(hop) = &object.does
        && hop.onlink
    {
        text.push_str("onlink ");
    }
    text.push('\n');
    Ok(())
}

//! Nexthop objects, as `ip nexthop show` prints them.

use std::fmt::{self, Write as _};
use std::io::{self, Write};

use ::route::{Editor, Encap, IfIndex, NexthopDoes, NexthopObject};

use super::{Source, device, encap, name};
use crate::error::Error;
use crate::nexthop_object::NexthopSelector;
use crate::protocol;

/// Which nexthop objects.
#[derive(Debug)]
pub(super) struct Nexthops {
    id: Option<u32>,
    device: Option<IfIndex>,
    groups: bool,
    protocol: Option<u8>,
}

impl Nexthops {
    pub(super) fn new(selector: &NexthopSelector<'_>, editor: &Editor) -> Result<Nexthops, Error> {
        if let Some(id) = selector.id.filter(|id| editor.nexthop(id.value).is_none()) {
            return Err(Error::refused(id.span, format!("there is no nexthop {} (No such file or directory)", id.value)));
        }
        Ok(Nexthops {
            id: selector.id.map(|id| id.value),
            device: selector.device.map(|word| device(editor, word)).transpose()?,
            groups: selector.groups,
            protocol: selector.protocol.map(|protocol| protocol.value),
        })
    }

    pub(super) fn print(&self, source: &impl Source, out: &mut impl Write) -> io::Result<()> {
        let text = source.editor(|editor| {
            let mut text = String::new();
            for (id, object) in editor.nexthops().filter(|(id, object)| self.wants(*id, object)) {
                // Writing to a string does not fail.
                let _ = line(&mut text, source, editor, id, object);
            }
            text
        });
        out.write_all(text.as_bytes())
    }

    fn wants(&self, id: u32, object: &NexthopObject) -> bool {
        let on = |dev| matches!(&object.does, NexthopDoes::Way(hop) if hop.dev == dev);
        self.id.is_none_or(|wanted| id == wanted)
            && self.device.is_none_or(on)
            && (!self.groups || matches!(object.does, NexthopDoes::Group(_)))
            && self.protocol.is_none_or(|protocol| object.protocol == protocol)
    }
}

fn line(text: &mut String, source: &impl Source, editor: &Editor, id: u32, object: &NexthopObject) -> fmt::Result {
    write!(text, "id {id} ")?;
    match &object.does {
        NexthopDoes::Group(members) => {
            text.push_str("group ");
            for (at, (member, weight)) in members.iter().enumerate() {
                text.push_str(if at > 0 { "/" } else { "" });
                write!(text, "{member}")?;
                if *weight != 1 {
                    write!(text, ",{weight}")?;
                }
            }
            text.push(' ');
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

//! Nexthop objects.

use ::route::{ConfigError, HopSpec, NexthopSpec};

use super::Applier;
use crate::address::Family;
use crate::error::Error;
use crate::nexthop::Nexthop;
use crate::nexthop_object::{NexthopCommand, NexthopKind, NexthopPut, NexthopSelector};

impl Applier<'_> {
    pub(super) fn nexthop(&mut self, command: &NexthopCommand<'_>) -> Result<(), Error> {
        match command {
            NexthopCommand::Put(put) => self.nexthop_put(put),
            NexthopCommand::Delete(id) => {
                let missing = |_| Error::refused(id.span, format!("there is no nexthop {} (No such file or directory)", id.value));
                self.editor.nexthop_del(id.value).map_err(missing)
            }
            NexthopCommand::Flush(selector) => self.nexthop_flush(selector),
        }
    }

    fn nexthop_put(&mut self, put: &NexthopPut<'_>) -> Result<(), Error> {
        let spec = match &put.does {
            NexthopKind::Blackhole => NexthopSpec::Blackhole,
            NexthopKind::Group(members, resilient) => NexthopSpec::Group(members.value.clone(), *resilient),
            NexthopKind::Way(way) => NexthopSpec::Way(self.way(way)?),
        };
        let protocol = put.protocol.map_or(0, |protocol| protocol.value);
        let id = put.id.map(|id| id.value);
        let done = self.editor.nexthop_put(id, &spec, put.family == Family::V6, protocol, put.replace);
        done.map(|_| ()).map_err(|error| refused(put, &error))
    }

    fn way(&mut self, way: &Nexthop<'_>) -> Result<HopSpec, Error> {
        let dev = way.device.map(|device| self.device(device)).transpose()?;
        let encap = self.encap(way.encap.as_ref(), None)?;
        Ok(HopSpec { dev, via: way.via.map(|via| via.value), onlink: way.onlink, weight: way.weight, encap })
    }

    fn nexthop_flush(&mut self, selector: &NexthopSelector<'_>) -> Result<(), Error> {
        let selected = selector.resolve(|device| self.device(device))?;
        let ids: Vec<_> = self.editor.nexthops().filter(|(id, object)| selected.has(*id, object)).map(|(id, _)| id).collect();
        for id in ids {
            // One may have gone with another.
            let _ = self.editor.nexthop_del(id);
        }
        Ok(())
    }
}

/// The tables' refusal of an object, at the word it is about.
fn refused(put: &NexthopPut<'_>, error: &ConfigError) -> Error {
    let id = put.id.map_or(put.verb.span, |id| id.span);
    match (error, &put.does) {
        (ConfigError::Exists(_), _) => Error::refused(id, "a nexthop of this number exists already (File exists)")
            .hint("use \"ip nexthop replace\" to put this one in its place"),
        (ConfigError::Missing(_), NexthopKind::Group(members, _)) => {
            Error::refused(members.span, "a member of the group does not exist (Invalid nexthop id)")
        }
        (ConfigError::Invalid(_), NexthopKind::Group(members, _)) => Error::refused(members.span, error.to_string()),
        (_, NexthopKind::Way(way)) => Error::refused(way.span().unwrap_or(put.verb.span), error.to_string()),
        _ => Error::refused(put.verb.span, error.to_string()),
    }
}

//! Marks of packets as they come in, which rules may select by.

use std::net::{Ipv4Addr, Ipv6Addr};

use ::route::MarkRule;

use super::rules::selector;
use super::{Applier, Narrow};
use crate::address::Family;
use crate::error::Error;
use crate::mark::{MarkCommand, MarkOperation};

impl Applier<'_> {
    pub(super) fn mark(&mut self, command: &MarkCommand<'_>) -> Result<(), Error> {
        if command.family != Some(Family::V6) {
            self.mark_of::<Ipv4Addr>(command)?;
        }
        if command.family != Some(Family::V4) {
            self.mark_of::<Ipv6Addr>(command)?;
        }
        Ok(())
    }

    fn mark_of<A: Narrow>(&mut self, command: &MarkCommand<'_>) -> Result<(), Error> {
        let select = selector::<A>(&command.packets, |word| self.device(word))?;
        let line = command.set.map(|set| MarkRule { select, set: set.value });
        match (command.operation, line) {
            (MarkOperation::Add, Some(line)) => {
                self.editor.mark_add(line).map_err(|_| Error::refused(command.verb.span, "the mark exists already (File exists)"))
            }
            (MarkOperation::Delete, Some(line)) => match self.editor.marks_flush(|other: &MarkRule<A>| *other == line) {
                0 => Err(Error::refused(command.verb.span, "there is no such mark (No such file or directory)")),
                _ => Ok(()),
            },
            (MarkOperation::Flush, _) => {
                self.editor.marks_flush(|_: &MarkRule<A>| true);
                Ok(())
            }
            // The parser asks for what is to be set.
            (_, None) => Ok(()),
        }
    }
}

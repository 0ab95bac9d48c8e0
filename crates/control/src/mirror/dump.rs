//! One dump, from its request to its end.

use super::decode::message::{DONE, DUMP_INTERRUPTED, ERROR, messages};
use super::object::Object;
use super::snapshot::Snapshot;

/// How far a dump is.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Progress {
    /// More is to come.
    More,
    /// It is complete.
    Done,
    /// It is complete and does not fit together: what was dumped changed meanwhile, or a part of it was lost.
    Torn,
    /// The kernel refused it, with this error number.
    Refused(i32),
}

/// What a dump has told so far.
#[derive(Debug)]
pub struct Dump {
    sequence: u32,
    torn: bool,
    /// What it told, the other objects empty.
    pub told: Snapshot,
}

impl Dump {
    /// A dump of an object, and its request.
    pub fn begin(object: Object, sequence: u32) -> (Dump, Vec<u8>) {
        (Dump { sequence, torn: false, told: Snapshot::default() }, object.request(sequence))
    }

    /// Takes in a datagram; `truncated` when it was longer than what was read of it.
    pub fn datagram(&mut self, datagram: &[u8], truncated: bool) -> Progress {
        self.torn |= truncated;
        for message in messages(datagram) {
            let Ok(message) = message else {
                self.torn = true;
                break;
            };
            // What is left of a dump that was given up.
            if message.sequence != self.sequence {
                continue;
            }
            self.torn |= message.flags & DUMP_INTERRUPTED != 0;
            match message.kind {
                DONE | ERROR => {
                    return match message.refusal() {
                        Some(error) => Progress::Refused(error),
                        None if self.torn => Progress::Torn,
                        None => Progress::Done,
                    };
                }
                _ => _ = self.told.add(&message),
            }
        }
        Progress::More
    }
}

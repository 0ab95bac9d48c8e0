//! `mark`: what packets are marked with as they come in, for rules to select by. These lines are noref's own; a kernel's packet filter does this for it.

use route::Mark;

use crate::address::Family;
use crate::command::{self, Seen, Verb, verb};
use crate::error::Error;
use crate::keyword::{self, Keyword, full, short};
use crate::packets::{self, PacketKey, Packets};
use crate::span::{Spanned, Word};
use crate::words::{Words, no_value, once, unknown};

/// A `mark` command.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct MarkCommand<'t> {
    /// What to do.
    pub operation: MarkOperation,
    /// The family it is for; none: both.
    pub family: Option<Family>,
    /// The packets.
    pub packets: Packets<'t>,
    /// The mark they get; none only where lines go.
    pub set: Option<Spanned<Mark>>,
    /// Where the verb stands, for errors about the line as a whole.
    pub verb: Word<'t>,
}

/// What is done with lines of the classifier.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum MarkOperation {
    /// One more, behind the others. It must not exist.
    Add,
    /// The line that is just so goes.
    Delete,
    /// All lines of the family go.
    Flush,
}

const VERBS: &[Keyword<Verb<MarkOperation>>] = &[
    short("add", Verb::Do(MarkOperation::Add)),
    short("delete", Verb::Do(MarkOperation::Delete)),
    short("flush", Verb::Do(MarkOperation::Flush)),
    short("list", Verb::Show),
    short("show", Verb::Show),
];

#[derive(Clone, Copy, Debug)]
enum Key {
    Packets(PacketKey),
    Set,
}

const KEYS: &[Keyword<Key>] = &[
    full("not", Key::Packets(PacketKey::Not)),
    full("from", Key::Packets(PacketKey::From)),
    full("to", Key::Packets(PacketKey::To)),
    full("iif", Key::Packets(PacketKey::Iif)),
    full("dev", Key::Packets(PacketKey::Iif)),
    full("ipproto", Key::Packets(PacketKey::Protocol)),
    full("sport", Key::Packets(PacketKey::Sport)),
    full("dport", Key::Packets(PacketKey::Dport)),
    full("dscp", Key::Packets(PacketKey::Dscp)),
    full("set", Key::Set),
];

/// Whether a verb of `mark` shows something.
pub(crate) fn seen(word: &str) -> Seen {
    command::seen(VERBS, word)
}

/// Reads what follows `mark`.
pub(crate) fn parse<'t>(words: &mut Words<'_, 't>, mut family: Option<Family>) -> Result<MarkCommand<'t>, Error> {
    let (operation, verb) = verb(words, "mark", VERBS)?;
    let (mut packets, mut set) = (Packets::default(), None);
    while let Some(word) = words.next() {
        match keyword::find(KEYS, word.text).map(|keyword| keyword.key) {
            Some(Key::Packets(key)) => packets.read(key, word, words, &mut family)?,
            Some(Key::Set) => once(&mut set, value(words.value("a mark")?)?, word)?,
            None => return Err(unknown(word, "keyword", keyword::words(KEYS))),
        }
    }
    match operation {
        MarkOperation::Flush if packets.given || set.is_some() => {
            return Err(Error::refused(verb.span, "\"mark flush\" takes no more than the family: all its lines go"));
        }
        MarkOperation::Add | MarkOperation::Delete if set.is_none() => {
            return Err(words.incomplete(&format!("\"mark {}\"", verb.text), "what is to be set (\"set MARK\")"));
        }
        _ => {}
    }
    Ok(MarkCommand { operation, family, packets, set, verb })
}

/// The mark that is set: all of it, unless a mask says which bits.
fn value(word: Word<'_>) -> Result<Spanned<Mark>, Error> {
    let mark = packets::mark(word)?;
    match mark.value {
        // As a selector it would stand for none; to be set it is a mark like others.
        Mark { value: 0, .. } if !word.text.contains('/') => Ok(word.with(Mark { value: 0, mask: u32::MAX })),
        Mark { mask: 0, .. } => Err(no_value(word, "a mark to be set", "its mask sets no bit")),
        _ => Ok(mark),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Command;
    use crate::command::{fault, parsed};

    #[test]
    fn packets_are_described_and_marked() {
        let Ok(Command::Mark(mark)) = parsed("mark add iif e0 to 10.9.0.0/16 ipproto udp dport 53 dscp EF set 0x10/0xff") else { panic!() };
        assert_eq!(mark.set.map(|set| set.value), Some(Mark { value: 0x10, mask: 0xff }));
        assert_eq!((mark.family, mark.packets.iif.map(|iif| iif.text)), (Some(Family::V4), Some("e0")));
        let Ok(Command::Mark(mark)) = parsed("mark add ipproto tcp set 7") else { panic!() };
        assert_eq!(mark.family, None);
        assert_eq!(fault("mark add iif e0"), "\"mark add\" needs what is to be set (\"set MARK\")");
        assert_eq!(fault("mark add fwmark 1 set 2"), "unknown keyword \"fwmark\"");
        assert_eq!(fault("mark add iif e0 set 1/0"), "\"1/0\" is not a mark to be set: its mask sets no bit");
    }
}

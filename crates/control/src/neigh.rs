//! `ip neighbour`: link-layer addresses of neighbours.

use std::net::IpAddr;

use route::NeighbourState;
use wire::Mac;

use crate::address::{self, Family};
use crate::command::{self, Seen, Verb, verb};
use crate::error::Error;
use crate::keyword::{self, Keyword, full, short};
use crate::span::{Spanned, Word};
use crate::words::{Words, once, unknown};

/// An `ip neighbour` command.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct NeighbourCommand<'t> {
    /// What to do.
    pub operation: NeighbourOperation,
    /// The neighbour.
    pub address: Spanned<IpAddr>,
    /// Its Ethernet address.
    pub lladdr: Option<Spanned<Mac>>,
    /// The device it is reached by.
    pub device: Word<'t>,
    /// What is known of it (`nud`): without, it is known for ever.
    pub state: Spanned<NeighbourState>,
}

/// What is done with a neighbour.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum NeighbourOperation {
    /// It must not exist.
    Add,
    /// It must exist.
    Change,
    /// It may exist.
    Replace,
    /// It must exist and goes.
    Delete,
}

const VERBS: &[Keyword<Verb<NeighbourOperation>>] = &[
    short("add", Verb::Do(NeighbourOperation::Add)),
    short("change", Verb::Do(NeighbourOperation::Change)),
    full("chg", Verb::Do(NeighbourOperation::Change)),
    short("replace", Verb::Do(NeighbourOperation::Replace)),
    short("delete", Verb::Do(NeighbourOperation::Delete)),
    short("get", Verb::Show),
    short("show", Verb::Show),
    short("lst", Verb::Show),
    short("list", Verb::Show),
    short("flush", Verb::Later),
];

/// States; `None` is one that noref does not have yet.
const STATES: &[Keyword<Option<NeighbourState>>] = &[
    short("permanent", Some(NeighbourState::Permanent)),
    short("reachable", Some(NeighbourState::Reachable)),
    full("noarp", None),
    full("none", Some(NeighbourState::None)),
    full("stale", Some(NeighbourState::Stale)),
    full("incomplete", Some(NeighbourState::Incomplete)),
    full("delay", Some(NeighbourState::Delay)),
    full("probe", Some(NeighbourState::Probe)),
    short("failed", Some(NeighbourState::Failed)),
];

#[derive(Clone, Copy, Debug)]
enum Key {
    Lladdr,
    State,
    Device,
    Protocol,
    To,
    /// iproute2 knows it, noref not yet.
    Later,
}

const KEYS: &[Keyword<Key>] = &[
    short("lladdr", Key::Lladdr),
    full("nud", Key::State),
    short("proxy", Key::Later),
    full("router", Key::Later),
    full("use", Key::Later),
    full("managed", Key::Later),
    short("extern_learn", Key::Later),
    full("dev", Key::Device),
    short("protocol", Key::Protocol),
    full("to", Key::To),
];

/// Whether a verb of `ip neighbour` shows something.
pub(crate) fn seen(word: &str) -> Seen {
    command::seen(VERBS, word)
}

/// Reads what follows `ip neighbour`.
pub(crate) fn parse<'t>(words: &mut Words<'_, 't>, family: Option<Family>) -> Result<NeighbourCommand<'t>, Error> {
    let (operation, verb_word) = verb(words, "neighbour", VERBS)?;
    let (mut neighbour, mut lladdr, mut device, mut state) = (None, None, None, None);
    while let Some(word) = words.next() {
        match keyword::find(KEYS, word.text).map(|keyword| keyword.key) {
            Some(Key::Lladdr) => once(&mut lladdr, address::mac(words.value("an Ethernet address")?)?, word)?,
            Some(Key::State) => once(&mut state, self::state(words)?, word)?,
            Some(Key::Device) => once(&mut device, words.value("a device")?, word)?,
            // A note of who set the neighbour.
            Some(Key::Protocol) => drop(words.value("a protocol")?),
            Some(Key::To) => once(&mut neighbour, address::address(words.value("an address")?, family)?, word)?,
            Some(Key::Later) => return Err(Error::not_implemented(word.span, format!("\"{}\" of a neighbour", word.text))),
            None if neighbour.is_none() && (word.text.contains(['.', ':']) || word.text.starts_with(|c: char| c.is_ascii_digit())) => {
                neighbour = Some(address::address(word, family)?);
            }
            None => {
                let kept = keyword::words_of(KEYS, |key| !matches!(key, Key::Later));
                return Err(unknown(word, "keyword", ["ADDRESS".to_owned()].into_iter().chain(kept).collect()));
            }
        }
    }
    let command = "\"ip neighbour\"";
    let address = neighbour.ok_or_else(|| words.incomplete(command, "an address"))?;
    let device = device.ok_or_else(|| words.incomplete(command, "a device (\"dev NAME\")"))?;
    let state = state.unwrap_or(verb_word.with(NeighbourState::Permanent));
    if operation != NeighbourOperation::Delete && state.value.is_valid() && lladdr.is_none() {
        return Err(words.incomplete(command, "an Ethernet address (\"lladdr MAC\")"));
    }
    Ok(NeighbourCommand { operation, address, lladdr, device, state })
}

/// Reads what follows `nud`.
pub(crate) fn state(words: &mut Words<'_, '_>) -> Result<Spanned<NeighbourState>, Error> {
    let (keyword, value) = words.keyword(STATES, "state")?;
    let known = keyword.key.ok_or_else(|| Error::not_implemented(value.span, format!("\"nud {}\"", value.text)))?;
    Ok(value.with(known))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Command;
    use crate::command::{fault, parsed};

    fn neigh(line: &str) -> NeighbourCommand<'_> {
        match parsed(line) {
            Ok(Command::Neighbour(neighbour)) => neighbour,
            other => panic!("{line}: {other:?}"),
        }
    }

    #[test]
    fn a_neighbour_has_an_address_a_device_and_an_ethernet_address() {
        let read = neigh("ip -6 neigh replace fe80::20 lladdr 02:00:00:00:0f:00 dev e0 nud reachable");
        assert_eq!(
            (read.operation, read.address.value.to_string().as_str(), read.device.text),
            (NeighbourOperation::Replace, "fe80::20", "e0")
        );
        assert_eq!((read.lladdr.unwrap().value, read.state.value), (Mac([2, 0, 0, 0, 0xf, 0]), NeighbourState::Reachable));
        assert_eq!(neigh("n a to 10.0.0.2 dev e0 ll 2:0:0:0:f:0").state.value, NeighbourState::Permanent);
        assert_eq!(neigh("n d 10.0.0.2 dev e0").operation, NeighbourOperation::Delete);
    }

    #[test]
    fn what_is_wrong_is_named() {
        assert_eq!(fault("ip neigh add 10.0.0.2 dev e0"), "\"ip neighbour\" needs an Ethernet address (\"lladdr MAC\")");
        assert_eq!(fault("ip neigh add 10.0.0.2 lladdr 2:0:0:0:f:0"), "\"ip neighbour\" needs a device (\"dev NAME\")");
        assert_eq!(fault("ip neigh add proxy 10.0.0.2 dev e0"), "\"proxy\" of a neighbour is not implemented yet");
        assert_eq!(fault("ip neigh add 10.0.0.2 dev e0 nud noarp"), "\"nud noarp\" is not implemented yet");
        assert_eq!(fault("ip neigh add 10.0.0.2 dev e0 nud good"), "unknown state \"good\"");
        assert_eq!(fault("ip neigh flush dev e0"), "\"neighbour flush\" is not implemented yet");
    }
}

//! `ip link`: devices.

use route::VlanChange;
use wire::Mac;

use crate::address;
use crate::command::{self, Seen, Verb, verb};
use crate::device_type::{self, DeviceType};
use crate::error::Error;
use crate::keyword::{self, Keyword, full, short};
use crate::number;
use crate::span::{Spanned, Word};
use crate::words::{Words, no_value, once, unknown};

/// An `ip link` command.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum LinkCommand<'t> {
    /// `link add [link DEV] NAME type …`.
    Add {
        /// The new device.
        device: Word<'t>,
        /// The device that it stands on: a VLAN has one, others have none.
        below: Option<Word<'t>>,
        /// What it is.
        kind: DeviceType,
        /// What is set along with it.
        changes: LinkChanges<'t>,
    },
    /// `link set DEV …`.
    Set {
        /// The device.
        device: Word<'t>,
        /// What is set.
        changes: LinkChanges<'t>,
        /// What is set of a VLAN, `type vlan …`, and where that stands.
        vlan: Option<Spanned<VlanChange>>,
    },
    /// `link del DEV`.
    Delete {
        /// The device.
        device: Word<'t>,
    },
}

/// What `link set` changes; `None` stays as it is.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct LinkChanges<'t> {
    /// Ethernet address.
    pub address: Option<Spanned<Mac>>,
    /// Largest packet, bytes without the Ethernet header.
    pub mtu: Option<Spanned<u32>>,
    /// `up` or `down`.
    pub up: Option<bool>,
    /// Group of devices, a number.
    pub group: Option<Spanned<u32>>,
    /// VRF device to belong to, or none (`nomaster`).
    pub master: Option<Master<'t>>,
}

/// What a device belongs to.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Master<'t> {
    /// `master DEV`.
    Device(Word<'t>),
    /// `nomaster`.
    None,
}

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum LinkVerb {
    Add,
    Set,
    Delete,
}

const VERBS: &[Keyword<Verb<LinkVerb>>] = &[
    short("add", Verb::Do(LinkVerb::Add)),
    short("set", Verb::Do(LinkVerb::Set)),
    short("change", Verb::Do(LinkVerb::Set)),
    short("replace", Verb::Later),
    short("delete", Verb::Do(LinkVerb::Delete)),
    short("show", Verb::Show),
    short("lst", Verb::Show),
    short("list", Verb::Show),
    short("xstats", Verb::Show),
    short("afstats", Verb::Show),
    short("property", Verb::Later),
];

#[derive(Clone, Copy, Debug)]
enum Key {
    Up,
    Down,
    Name,
    Link,
    Address,
    Mtu,
    Master,
    NoMaster,
    Type,
    Device,
    Group,
    /// iproute2 knows it, noref not yet.
    Later,
}

const KEYS: &[Keyword<Key>] = &[
    full("up", Key::Up),
    full("down", Key::Down),
    full("name", Key::Name),
    short("index", Key::Later),
    short("link", Key::Link),
    short("address", Key::Address),
    short("broadcast", Key::Later),
    full("brd", Key::Later),
    short("txqueuelen", Key::Later),
    full("qlen", Key::Later),
    short("txqlen", Key::Later),
    full("mtu", Key::Mtu),
    full("netns", Key::Later),
    full("multicast", Key::Later),
    full("allmulticast", Key::Later),
    full("promisc", Key::Later),
    full("trailers", Key::Later),
    full("arp", Key::Later),
    full("carrier", Key::Later),
    full("vf", Key::Later),
    short("master", Key::Master),
    full("vrf", Key::Master),
    short("nomaster", Key::NoMaster),
    short("dynamic", Key::Later),
    short("type", Key::Type),
    short("alias", Key::Later),
    full("group", Key::Group),
    full("mode", Key::Later),
    full("state", Key::Later),
    short("numtxqueues", Key::Later),
    short("numrxqueues", Key::Later),
    short("addrgenmode", Key::Later),
    full("protodown", Key::Later),
    full("xdp", Key::Later),
    full("dev", Key::Device),
];

/// Whether a verb of `ip link` shows something.
pub(crate) fn seen(word: &str) -> Seen {
    command::seen(VERBS, word)
}

/// Reads what follows `ip link`.
pub(crate) fn parse<'t>(words: &mut Words<'_, 't>) -> Result<LinkCommand<'t>, Error> {
    let (verb, _) = verb(words, "link", VERBS)?;
    let mut device = None;
    let (mut name, mut below, mut vlan) = (None, None, None);
    let mut changes = LinkChanges::default();
    while let Some(word) = words.next() {
        match keyword::find(KEYS, word.text).map(|keyword| keyword.key) {
            Some(Key::Up) => changes.up = Some(true),
            Some(Key::Down) => changes.up = Some(false),
            Some(Key::Address) => once(&mut changes.address, address::mac(words.value("an Ethernet address")?)?, word)?,
            Some(Key::Mtu) => once(&mut changes.mtu, mtu(words.value("a number of bytes")?)?, word)?,
            Some(Key::Group) => once(&mut changes.group, crate::rule::group(words.value("a group")?)?, word)?,
            Some(Key::Master) => once(&mut changes.master, Master::Device(words.value("a device")?), word)?,
            Some(Key::NoMaster) => once(&mut changes.master, Master::None, word)?,
            Some(Key::Name) if verb == LinkVerb::Add => once(&mut name, new_name(words.value("a name")?)?, word)?,
            Some(Key::Name) => return Err(Error::not_implemented(word.span, "renaming a device")),
            Some(Key::Link) if verb == LinkVerb::Add => once(&mut below, words.value("a device")?, word)?,
            Some(Key::Type) if verb == LinkVerb::Add => {
                let kind = device_type::parse(words)?;
                let device = name.or(device).ok_or_else(|| words.incomplete("\"link add\"", "a name"))?;
                check_below(below, &kind, words)?;
                return Ok(LinkCommand::Add { device: new_name(device)?, below, kind, changes });
            }
            Some(Key::Type) if verb == LinkVerb::Set => vlan = Some(word.with(device_type::parse_change(words)?)),
            Some(Key::Later | Key::Link | Key::Type) => {
                return Err(later(word));
            }
            Some(Key::Device) => once(&mut device, words.value("a device")?, word)?,
            None if device.is_none() => device = Some(word),
            None => return Err(unknown(word, "keyword", accepted())),
        }
    }
    match verb {
        LinkVerb::Add => Err(words.incomplete("\"link add\"", "a type (\"type vlan id N\", \"type vrf table N\", \"type dummy\")")),
        LinkVerb::Set => {
            let device = device.ok_or_else(|| words.incomplete("\"link set\"", "a device"))?;
            Ok(LinkCommand::Set { device, changes, vlan })
        }
        LinkVerb::Delete => {
            let device = device.ok_or_else(|| words.incomplete("\"link del\"", "a device"))?;
            if changes != LinkChanges::default() {
                return Err(Error::refused(device.span, "\"link del\" takes a device and nothing else"));
            }
            Ok(LinkCommand::Delete { device })
        }
    }
}

/// The error for a keyword that noref does not have yet. Where it was cut short, a device of that name may have been meant.
fn later(word: Word<'_>) -> Error {
    let keyword = keyword::find(KEYS, word.text).map_or(word.text, |keyword| keyword.word);
    let error = Error::not_implemented(word.span, format!("\"{keyword}\" of a device"));
    if keyword == word.text {
        return error;
    }
    error.hint(format!("\"{0}\" is short for \"{keyword}\"; for a device of that name write \"dev {0}\"", word.text))
}

/// A VLAN stands on a device, and nothing else does.
fn check_below(below: Option<Word<'_>>, kind: &DeviceType, words: &Words<'_, '_>) -> Result<(), Error> {
    match (below, kind) {
        (None, DeviceType::Vlan(_)) => Err(words.incomplete("\"type vlan\"", "a device below it (\"link DEV\")")),
        (Some(_), DeviceType::Vlan(_)) | (None, _) => Ok(()),
        (Some(below), _) => Err(Error::refused(below.span, "only a VLAN stands on another device")),
    }
}

/// The kernel takes 68 bytes (RFC 791) and more for a device that carries IPv4; frames longer than 65535 bytes do not exist.
fn mtu(word: Word<'_>) -> Result<Spanned<u32>, Error> {
    let bytes = number::in_range(word, "an MTU", 68, 65536)?;
    Ok(word.with(bytes.value as u32))
}

/// A name that a device may get: at most 15 bytes, none of them a slash, a colon or white space.
pub(crate) fn new_name(word: Word<'_>) -> Result<Word<'_>, Error> {
    let wrong = if word.text.is_empty() || matches!(word.text, "." | ".." | "all" | "default") {
        "it has another meaning"
    } else if word.text.len() > 15 {
        "it is longer than 15 bytes"
    } else if word.text.contains(['/', ':']) || word.text.contains(char::is_whitespace) {
        "it must not contain slashes, colons or white space"
    } else {
        return Ok(word);
    };
    Err(no_value(word, "a name for a device", wrong))
}

fn accepted() -> Vec<String> {
    keyword::words_of(KEYS, |key| !matches!(key, Key::Later))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Command;
    use crate::command::{fault, parsed};

    fn link(line: &str) -> LinkCommand<'_> {
        match parsed(line) {
            Ok(Command::Link(link)) => link,
            other => panic!("{line}: {other:?}"),
        }
    }

    #[test]
    fn a_device_is_set_with_or_without_dev() {
        for line in ["ip link set e0 address 02:00:00:00:0e:00 mtu 9000 up", "l s up mtu 9000 dev e0 addr 2:0:0:0:e:0"] {
            let LinkCommand::Set { device, changes, .. } = link(line) else { panic!("{line}") };
            assert_eq!((device.text, changes.up, changes.mtu.unwrap().value), ("e0", Some(true), 9000));
            assert_eq!(changes.address.unwrap().value, Mac([2, 0, 0, 0, 0xe, 0]));
        }
        let LinkCommand::Set { changes, .. } = link("ip link set e2 master vrf10 down") else { panic!() };
        assert!(matches!(changes.master, Some(Master::Device(Word { text: "vrf10", .. }))));
        let LinkCommand::Set { changes, .. } = link("ip link set e2 nomaster") else { panic!() };
        assert_eq!(changes.master, Some(Master::None));
    }

    #[test]
    fn a_vrf_is_added_with_its_table() {
        for line in ["ip link add vrf10 type vrf table 10", "ip link add name vrf10 type vrf table 0xa", "l a dev vrf10 up type vrf t 10"] {
            let LinkCommand::Add { device, kind: DeviceType::Vrf(table), .. } = link(line) else { panic!("{line}") };
            assert_eq!((device.text, table.value), ("vrf10", route::TableId(10)));
        }
        assert_eq!(fault("ip link add vrf10 type vrf"), "\"type vrf\" needs a table (\"table N\")");
        assert_eq!(fault("ip link add vrf10 type vrf table 0"), "a VRF needs a table of its own, 1 to 4294967295");
        assert_eq!(fault("ip link add vrf10 type vrf table ten"), "unknown table \"ten\"");
    }

    #[test]
    fn what_is_not_there_yet_is_refused() {
        let error = parsed("ip link set in up").unwrap_err();
        assert_eq!(error.to_string(), "\"index\" of a device is not implemented yet");
        assert_eq!(error.hint.as_deref(), Some("\"in\" is short for \"index\"; for a device of that name write \"dev in\""));
        assert_eq!(fault("ip link set e0 arp off"), "\"arp\" of a device is not implemented yet");
        assert_eq!(fault("ip link set e0 name wan"), "renaming a device is not implemented yet");
        assert_eq!(fault("ip link set e0 mtu 67"), "\"67\" is not an MTU: it must be 68 to 65536");
        assert_eq!(fault("ip link set"), "\"link set\" needs a device");
        assert_eq!(
            fault("ip link add averyveryverylongname type vrf table 1"),
            "\"averyveryverylongname\" is not a name for a device: it is longer than 15 bytes"
        );
    }
}

//! `ip nexthop`: ways out that routes name by number (`nhid`).

use std::num::NonZeroU16;

use ::route::{IfIndex, NexthopDoes, NexthopObject, ResilientSpec};

use crate::address::Family;
use crate::command::{self, Seen, Verb, verb};
use crate::encap;
use crate::error::Error;
use crate::keyword::{self, Keyword, full, short};
use crate::nexthop::{Nexthop, gateway};
use crate::number;
use crate::protocol;
use crate::span::{Spanned, Word};
use crate::words::{Words, no_value, once, unknown};

/// An `ip nexthop` command.
#[derive(Clone, PartialEq, Debug)]
pub enum NexthopCommand<'t> {
    /// `add` or `replace`.
    Put(NexthopPut<'t>),
    /// `del id N`.
    Delete(Spanned<u32>),
    /// `flush`: all that the selector leaves.
    Flush(NexthopSelector<'t>),
}

/// A nexthop object to be made.
#[derive(Clone, PartialEq, Debug)]
pub struct NexthopPut<'t> {
    /// The command's verb, for what is wrong with it as a whole.
    pub verb: Word<'t>,
    /// It may take the place of another.
    pub replace: bool,
    /// Its number; without, it gets one.
    pub id: Option<Spanned<u32>>,
    /// IPv6, which matters for one without a gateway.
    pub family: Family,
    /// What it does.
    pub does: NexthopKind<'t>,
    /// Who set it, a number.
    pub protocol: Option<Spanned<u8>>,
}

/// What a nexthop object does.
#[derive(Clone, PartialEq, Debug)]
pub enum NexthopKind<'t> {
    /// A way out.
    Way(Nexthop<'t>),
    /// Packets are dropped.
    Blackhole,
    /// Others, by number, with their weights; and what is said of a resilient group.
    Group(Spanned<Vec<(u32, u16)>>, Option<ResilientSpec>),
}

/// Which nexthop objects.
#[derive(Clone, PartialEq, Debug, Default)]
pub struct NexthopSelector<'t> {
    /// Only this one.
    pub id: Option<Spanned<u32>>,
    /// Only those that leave by this device.
    pub device: Option<Word<'t>>,
    /// Only groups.
    pub groups: bool,
    /// Only those set by this one.
    pub protocol: Option<Spanned<u8>>,
}

impl<'t> NexthopSelector<'t> {
    /// With the device as the tables have it, which `device` finds.
    ///
    /// # Errors
    /// What `device` says.
    pub(crate) fn resolve(&self, device: impl FnOnce(Word<'t>) -> Result<IfIndex, Error>) -> Result<Selected, Error> {
        Ok(Selected {
            id: self.id.map(|id| id.value),
            device: self.device.map(device).transpose()?,
            groups: self.groups,
            protocol: self.protocol.map(|protocol| protocol.value),
        })
    }
}

/// Which buckets of resilient groups.
#[derive(Debug, Default)]
pub(crate) struct BucketSelector<'t> {
    /// Only those of this group.
    pub group: Option<Spanned<u32>>,
    /// Only this one of the group.
    pub index: Option<Spanned<u16>>,
    /// Only those of this member.
    pub member: Option<Spanned<u32>>,
    /// Only those of members that leave by this device.
    pub device: Option<Word<'t>>,
}

/// Which nexthop objects are meant.
#[derive(Debug)]
pub(crate) struct Selected {
    id: Option<u32>,
    device: Option<IfIndex>,
    groups: bool,
    protocol: Option<u8>,
}

impl Selected {
    /// True when this one is.
    pub(crate) fn has(&self, id: u32, object: &NexthopObject) -> bool {
        let on = |dev| matches!(&object.does, NexthopDoes::Way(hop) if hop.dev == dev);
        self.id.is_none_or(|wanted| id == wanted)
            && self.device.is_none_or(on)
            && (!self.groups || matches!(object.does, NexthopDoes::Group(..)))
            && self.protocol.is_none_or(|protocol| object.protocol == protocol)
    }
}

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Operation {
    Add,
    Replace,
    Delete,
    Flush,
}

const VERBS: &[Keyword<Verb<Operation>>] = &[
    short("add", Verb::Do(Operation::Add)),
    short("replace", Verb::Do(Operation::Replace)),
    short("delete", Verb::Do(Operation::Delete)),
    short("list", Verb::Show),
    short("show", Verb::Show),
    short("lst", Verb::Show),
    short("get", Verb::Show),
    short("flush", Verb::Do(Operation::Flush)),
    short("bucket", Verb::Show),
];

#[derive(Clone, Copy, Debug)]
enum Key {
    Id,
    Via,
    Device,
    Onlink,
    Encap,
    Blackhole,
    Group,
    Protocol,
    Type,
    Fdb,
    /// iproute2 knows it, noref not yet.
    Later,
}

const KEYS: &[Keyword<Key>] = &[
    full("id", Key::Id),
    full("via", Key::Via),
    full("dev", Key::Device),
    full("onlink", Key::Onlink),
    full("encap", Key::Encap),
    full("blackhole", Key::Blackhole),
    full("group", Key::Group),
    short("protocol", Key::Protocol),
    full("type", Key::Type),
    full("fdb", Key::Fdb),
    full("hw_stats", Key::Later),
];

/// Whether a verb of `ip nexthop` shows something.
pub(crate) fn seen(word: &str) -> Seen {
    command::seen(VERBS, word)
}

/// True of the verb that is about buckets.
pub(crate) fn is_bucket(word: &str) -> bool {
    keyword::find(VERBS, word).is_some_and(|verb| verb.word == "bucket")
}

/// Reads what follows `ip nexthop`.
pub(crate) fn parse<'t>(words: &mut Words<'_, 't>, family: Option<Family>) -> Result<NexthopCommand<'t>, Error> {
    let (operation, verb) = verb(words, "nexthop", VERBS)?;
    match operation {
        Operation::Add => put(words, family, verb, false).map(NexthopCommand::Put),
        Operation::Replace => put(words, family, verb, true).map(NexthopCommand::Put),
        Operation::Delete => {
            let word = words.value("\"id\"")?;
            if word.text != "id" {
                return Err(unknown(word, "keyword", vec!["id".to_owned()]));
            }
            id(words).map(NexthopCommand::Delete)
        }
        Operation::Flush => selector(words, "nexthops to flush").map(NexthopCommand::Flush),
    }
}

fn put<'t>(words: &mut Words<'_, 't>, mut family: Option<Family>, verb: Word<'t>, replace: bool) -> Result<NexthopPut<'t>, Error> {
    let (mut number, mut way, mut blackhole, mut group, mut resilient, mut protocol) = (None, Nexthop::EMPTY, None, None, None, None);
    while let Some(word) = words.next() {
        let Some(keyword) = keyword::find(KEYS, word.text) else {
            return Err(unknown(word, "keyword", keyword::words_of(KEYS, |key| !matches!(key, Key::Later | Key::Fdb))));
        };
        match keyword.key {
            Key::Id => once(&mut number, id(words)?, word)?,
            Key::Via => once(&mut way.via, gateway(words, &mut family)?, word)?,
            Key::Device => once(&mut way.device, words.value("a device")?, word)?,
            Key::Onlink => way.onlink = true,
            Key::Encap => once(&mut way.encap, encap::parse(word, words)?, word)?,
            Key::Blackhole => once(&mut blackhole, word, word)?,
            Key::Group => once(&mut group, members(words.value("members (ID[,WEIGHT]/ID[,WEIGHT]…)")?)?, word)?,
            Key::Protocol => once(&mut protocol, protocol::parse(words.value("a protocol")?)?, word)?,
            Key::Type => resilient = group_type(words)?,
            Key::Fdb => {
                let others = ["dev", "via", "encap", "blackhole", "group"].map(str::to_owned).to_vec();
                return Err(Error::not_implemented(word.span, "a nexthop of a forwarding database (\"fdb\")".to_owned())
                    .accepting(others)
                    .hint("noref has routes only; VXLAN and bridges, whose databases would name it, are not there"));
            }
            Key::Later => return Err(Error::not_implemented(word.span, format!("\"{}\" of a nexthop", word.text))),
        }
    }
    let family = family.unwrap_or(Family::V4);
    if let Some(encap) = way.encap.as_ref().filter(|_| family == Family::V4) {
        encap::takes_ipv4(encap)?;
    }
    let does = match (blackhole, group, way == Nexthop::EMPTY) {
        (None, Some(group), true) => NexthopKind::Group(group, resilient),
        (Some(_), None, true) => NexthopKind::Blackhole,
        (None, None, false) => NexthopKind::Way(way),
        (None, None, true) => return Err(words.incomplete("\"ip nexthop\"", "a device, \"blackhole\" or a group")),
        (Some(word), ..) => return Err(Error::refused(word.span, "a blackhole has neither members nor a way out")),
        (None, Some(group), false) => return Err(Error::refused(group.span, "a group has no way out of its own")),
    };
    Ok(NexthopPut { verb, replace, id: number, family, does, protocol })
}

/// Reads what follows `type`: `mpath`, or `resilient` with what belongs to it.
fn group_type(words: &mut Words<'_, '_>) -> Result<Option<ResilientSpec>, Error> {
    const TYPES: [&str; 2] = ["mpath", "resilient"];
    let kind = words.value("a type of group")?;
    match kind.text {
        "mpath" => Ok(None),
        "resilient" => resilient(words).map(Some),
        _ => Err(unknown(kind, "type of group", TYPES.map(str::to_owned).to_vec())),
    }
}

#[derive(Clone, Copy, Debug)]
enum ResilientKey {
    Buckets,
    IdleTimer,
    UnbalancedTimer,
}

const RESILIENT_KEYS: &[Keyword<ResilientKey>] = &[
    full("buckets", ResilientKey::Buckets),
    full("idle_timer", ResilientKey::IdleTimer),
    full("unbalanced_timer", ResilientKey::UnbalancedTimer),
];

/// Reads what may be said of a resilient group; seconds become hundredths of them.
fn resilient(words: &mut Words<'_, '_>) -> Result<ResilientSpec, Error> {
    /// The most whole seconds that netlink can tell in hundredths.
    const MOST: u64 = u32::MAX as u64 / 100 - 1;
    let mut spec = ResilientSpec::default();
    while let Some(word) = words.peek() {
        let Some(keyword) = keyword::find(RESILIENT_KEYS, word.text) else { break };
        words.next();
        let mut number = |what, least, most| Ok::<_, Error>(number::in_range(words.value(what)?, what, least, most)?.value);
        match keyword.key {
            ResilientKey::Buckets => {
                let buckets = number("a number of buckets", 1, u16::MAX.into())?;
                once(&mut spec.buckets, NonZeroU16::MIN.saturating_add(buckets as u16 - 1), word)?;
            }
            ResilientKey::IdleTimer => once(&mut spec.idle_timer, 100 * number("a number of seconds", 0, MOST)? as u32, word)?,
            ResilientKey::UnbalancedTimer => once(&mut spec.unbalanced_timer, 100 * number("a number of seconds", 0, MOST)? as u32, word)?,
        }
    }
    Ok(spec)
}

fn id(words: &mut Words<'_, '_>) -> Result<Spanned<u32>, Error> {
    let number = number::in_range(words.value("a number")?, "the number of a nexthop", 1, u64::from(u32::MAX))?;
    Ok(Spanned::new(number.value as u32, number.span))
}

/// Reads `ID[,WEIGHT]/ID[,WEIGHT]…`.
fn members(word: Word<'_>) -> Result<Spanned<Vec<(u32, u16)>>, Error> {
    let wrong = || no_value(word, "a group", "it is written ID[,WEIGHT]/ID[,WEIGHT]…, weights from 1 to 65535");
    let mut members = Vec::new();
    for part in word.text.split('/') {
        let (id, weight) = part.split_once(',').unwrap_or((part, "1"));
        let id = number::fitting::<u32>(id).filter(|id| *id != 0).ok_or_else(wrong)?;
        let weight = number::fitting::<u16>(weight).filter(|weight| *weight != 0).ok_or_else(wrong)?;
        members.push((id, weight));
    }
    Ok(word.with(members))
}

#[derive(Clone, Copy, Debug)]
enum SelectorKey {
    Id,
    Device,
    Groups,
    Protocol,
    Later,
}

const SELECTOR_KEYS: &[Keyword<SelectorKey>] = &[
    full("id", SelectorKey::Id),
    full("dev", SelectorKey::Device),
    full("vrf", SelectorKey::Later),
    full("master", SelectorKey::Later),
    full("groups", SelectorKey::Groups),
    full("all", SelectorKey::Later),
    short("protocol", SelectorKey::Protocol),
    full("fdb", SelectorKey::Later),
];

/// Reads which nexthop objects are meant; `what` is said of what is not there yet.
pub(crate) fn selector<'t>(words: &mut Words<'_, 't>, what: &str) -> Result<NexthopSelector<'t>, Error> {
    let mut selector = NexthopSelector::default();
    while let Some(word) = words.next() {
        match keyword::find(SELECTOR_KEYS, word.text).map(|keyword| keyword.key) {
            Some(SelectorKey::Id) => once(&mut selector.id, id(words)?, word)?,
            Some(SelectorKey::Device) => once(&mut selector.device, words.value("a device")?, word)?,
            Some(SelectorKey::Groups) => selector.groups = true,
            Some(SelectorKey::Protocol) => once(&mut selector.protocol, protocol::parse(words.value("a protocol")?)?, word)?,
            Some(SelectorKey::Later) => {
                return Err(Error::not_implemented(word.span, format!("\"{}\" of {}", word.text, what)));
            }
            None => return Err(unknown(word, "keyword", keyword::words_of(SELECTOR_KEYS, |key| !matches!(key, SelectorKey::Later)))),
        }
    }
    Ok(selector)
}

/// Reads which buckets are meant, behind `ip nexthop bucket`.
pub(crate) fn bucket<'t>(words: &mut Words<'_, 't>) -> Result<BucketSelector<'t>, Error> {
    const VERBS: &[Keyword<bool>] = &[short("list", false), short("show", false), short("lst", false), short("get", true)];
    let get = match words.next() {
        None => return Ok(BucketSelector::default()),
        Some(verb) => keyword::find(VERBS, verb.text).ok_or_else(|| unknown(verb, "command", keyword::words(VERBS)))?.key,
    };
    let mut selector = BucketSelector::default();
    while let Some(word) = words.next() {
        match word.text {
            "id" => once(&mut selector.group, id(words)?, word)?,
            "index" if get => {
                let index = number::in_range(words.value("a number")?, "the number of a bucket", 0, u16::MAX.into())?;
                once(&mut selector.index, Spanned::new(index.value as u16, index.span), word)?;
            }
            "nhid" if !get => once(&mut selector.member, id(words)?, word)?,
            "dev" if !get => once(&mut selector.device, words.value("a device")?, word)?,
            "vrf" | "master" if !get => return Err(Error::not_implemented(word.span, format!("\"{}\" of buckets to show", word.text))),
            _ => {
                let accepted: &[&str] = if get { &["id", "index"] } else { &["id", "nhid", "dev"] };
                return Err(unknown(word, "keyword", accepted.iter().map(|key| (*key).to_owned()).collect()));
            }
        }
    }
    if get && (selector.group.is_none() || selector.index.is_none()) {
        return Err(words.incomplete("\"ip nexthop bucket get\"", "a group and a bucket (id ID index INDEX)"));
    }
    Ok(selector)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Command;
    use crate::command::{fault, parsed};

    fn object(line: &str) -> NexthopPut<'_> {
        match parsed(line) {
            Ok(Command::Nexthop(NexthopCommand::Put(object))) => object,
            other => panic!("{line}: {other:?}"),
        }
    }

    #[test]
    fn an_object_is_a_way_a_blackhole_or_a_group() {
        let way = object("ip nexthop add id 7 via fd00:1::2 dev e1 onlink proto zebra");
        assert_eq!((way.id.unwrap().value, way.family, way.protocol.unwrap().value, way.replace), (7, Family::V6, 11, false));
        assert!(matches!(way.does, NexthopKind::Way(Nexthop { onlink: true, device: Some(_), .. })));
        assert_eq!(object("ip -6 nexthop replace id 8 blackhole").does, NexthopKind::Blackhole);
        let NexthopKind::Group(members, None) = object("ip nexthop add id 9 group 7/8,300 type mpath").does else { panic!() };
        assert_eq!(members.value, [(7, 1), (8, 300)]);
        let line = "ip nexthop replace id 9 type resilient idle_timer 42949671 buckets 65535 group 7/8 proto bgp";
        let NexthopKind::Group(_, Some(resilient)) = object(line).does else { panic!() };
        let expected = ResilientSpec { buckets: NonZeroU16::new(65535), idle_timer: Some(4_294_967_100), unbalanced_timer: None };
        assert_eq!(resilient, expected);
    }

    #[test]
    fn what_can_not_be_is_refused_where_it_stands() {
        assert_eq!(fault("ip nexthop add id 1"), "\"ip nexthop\" needs a device, \"blackhole\" or a group");
        assert_eq!(fault("ip nexthop add id 1 group 2 dev e1"), "a group has no way out of its own");
        assert_eq!(fault("ip nexthop add id 1 blackhole dev e1"), "a blackhole has neither members nor a way out");
        assert!(fault("ip nexthop add id 1 group 2,0").starts_with("\"2,0\" is not a group"));
        assert!(fault("ip nexthop add id 0 dev e1").starts_with("\"0\" is not the number of a nexthop"));
        assert_eq!(fault("ip nexthop add id 1 group 2 type weighted"), "unknown type of group \"weighted\"");
        assert_eq!(fault("ip nexthop add id 1 group 2 buckets 4"), "unknown keyword \"buckets\"");
        assert!(
            fault("ip nexthop add id 1 group 2 type resilient buckets 0").starts_with("\"0\" is not a number of buckets: it must be 1 to")
        );
        assert!(fault("ip nexthop add id 1 group 2 type resilient idle_timer 1.5").starts_with("\"1.5\" is not a number of seconds"));
        assert!(
            fault("ip nexthop add id 1 group 2 type resilient idle_timer 42949672").starts_with("\"42949672\" is not a number of seconds")
        );
        assert_eq!(fault("ip nexthop add id 1 via 10.0.0.2 fdb"), "a nexthop of a forwarding database (\"fdb\") is not implemented yet");
        let sid = "\"encap seg6local\" needs an IPv6 route or nexthop: a SID is an IPv6 address";
        assert_eq!(fault("ip nexthop add id 1 dev e1 encap seg6local action End"), sid);
        assert_eq!(fault("ip nexthop add id 1 via 10.0.0.2 dev e1 encap seg6local action End"), sid);
        assert_eq!(fault("ip nexthop del dev e1"), "unknown keyword \"dev\"");
        assert_eq!(fault("ip nexthop flush fdb"), "\"fdb\" of nexthops to flush is not implemented yet");
    }
}

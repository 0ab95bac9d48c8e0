//! `encap seg6` and `encap seg6local`: what a route does to a packet.
//!
//! Actions, their attributes and flavours are those of the `srv6` crate's tables: a new action needs no change here.

use std::net::Ipv6Addr;

use ::route::TableId;
use srv6::{ACTIONS, Attr, Attributes, BuildError, Descriptor, Flavors, Mode, SegmentList, Sid};

use crate::address;
use crate::error::{Error, Fault};
use crate::keyword::{self, Keyword, full};
use crate::number;
use crate::route;
use crate::span::{Span, Spanned, Word};
use crate::table;
use crate::words::{Words, no_value, once, unknown};

/// What a route does to a packet.
#[derive(Clone, PartialEq, Debug)]
pub enum Encap<'t> {
    /// `encap seg6`: a headend.
    Seg6(Seg6),
    /// `encap seg6local`: an endpoint behaviour.
    Seg6Local(Box<Seg6Local<'t>>),
}

/// A headend.
#[derive(Clone, PartialEq, Debug)]
pub struct Seg6 {
    /// How the segments are put on.
    pub mode: Spanned<Mode>,
    /// The segments, in the order of travel, and the key that signs them.
    pub segments: Spanned<SegmentList>,
    /// Source of the outer header; without: that of `ip sr tunsrc`.
    pub tunsrc: Option<Spanned<Ipv6Addr>>,
    /// The table that the first segment is looked up in (`lookup`); without: that of any packet that comes in as this one did.
    pub table: Option<Spanned<TableId>>,
}

/// An endpoint behaviour.
#[derive(Clone, PartialEq, Debug)]
pub struct Seg6Local<'t> {
    /// The action.
    pub action: Spanned<&'static Descriptor>,
    /// Its attributes, but for the devices, which are names still.
    pub attributes: Attributes,
    /// `oif`.
    pub oif: Option<Word<'t>>,
    /// `iif`.
    pub iif: Option<Word<'t>>,
    /// Where each attribute stands: its value, or the attribute itself if it has none.
    pub places: Vec<(Attr, Span)>,
}

impl Seg6Local<'_> {
    /// Where an attribute stands; the action if it was not given.
    #[must_use]
    pub fn place(&self, attr: Option<Attr>) -> Span {
        let given = self.places.iter().find(|(given, _)| Some(*given) == attr);
        given.map_or(self.action.span, |&(_, span)| span)
    }
}

#[derive(Clone, Copy, Debug)]
enum Type {
    Seg6,
    Seg6Local,
    /// iproute2 knows it, noref not yet.
    Later,
}

const TYPES: &[Keyword<Type>] = &[
    full("seg6", Type::Seg6),
    full("seg6local", Type::Seg6Local),
    full("mpls", Type::Later),
    full("ip", Type::Later),
    full("ip6", Type::Later),
    full("ila", Type::Later),
    full("bpf", Type::Later),
    full("rpl", Type::Later),
    full("ioam6", Type::Later),
    full("xfrm", Type::Later),
];

/// Reads what follows `encap`, which is `keyword`.
pub(crate) fn parse<'t>(keyword: Word<'t>, words: &mut Words<'_, 't>) -> Result<Spanned<Encap<'t>>, Error> {
    let known = || vec!["seg6".to_owned(), "seg6local".to_owned()];
    let word = words.value("a type").map_err(|error| error.accepting(known()))?;
    let encap = match keyword::find(TYPES, word.text).map(|keyword| keyword.key) {
        Some(Type::Seg6) => Encap::Seg6(seg6(words)?),
        Some(Type::Seg6Local) => Encap::Seg6Local(Box::new(seg6local(words)?)),
        Some(Type::Later) => return Err(Error::not_implemented(word.span, format!("\"encap {}\"", word.text)).accepting(known())),
        None => return Err(unknown(word, "type of encapsulation", known())),
    };
    Ok(keyword.with(encap))
}

/// Whether an IPv4 route or nexthop may have it: a SID is an IPv6 destination, and an SRH is inserted into an IPv6 packet.
pub(crate) fn takes_ipv4(encap: &Spanned<Encap<'_>>) -> Result<(), Error> {
    match &encap.value {
        Encap::Seg6Local(_) => {
            Err(Error::refused(encap.span, "\"encap seg6local\" needs an IPv6 route or nexthop: a SID is an IPv6 address"))
        }
        Encap::Seg6(Seg6 { mode: Spanned { value: Mode::Inline, span }, .. }) => {
            Err(Error::refused(*span, "mode inline needs an IPv6 route or nexthop: it inserts an SRH into the packet"))
        }
        Encap::Seg6(_) => Ok(()),
    }
}

fn seg6(words: &mut Words<'_, '_>) -> Result<Seg6, Error> {
    const WORDS: [&str; 5] = ["mode", "segs", "hmac", "tunsrc", "lookup"];
    let (mut mode, mut segments, mut hmac, mut tunsrc, mut table) = (None, None, None, None, None);
    while let Some(word) = words.peek() {
        match word.text {
            known if WORDS.contains(&known) => words.next(),
            other if route::may_follow_encap(other) => break,
            _ => return Err(unknown(word, "seg6 keyword", WORDS.map(str::to_owned).to_vec())),
        };
        match word.text {
            "mode" => {
                let value = words.value("a mode").map_err(|error| error.accepting(mode_words()))?;
                let named = Mode::from_word(value.text).ok_or_else(|| unknown(value, "mode", mode_words()))?;
                once(&mut mode, value.with(named), word)?;
            }
            "segs" => {
                if mode.is_none() {
                    return Err(Error::refused(word.span, "\"mode\" stands before \"segs\""));
                }
                let value = words.value("segments (SID[,SID…])")?;
                once(&mut segments, value.with(self::segments(value)?), word)?;
            }
            "hmac" => once(&mut hmac, number::u32(words.value("a key number")?, "a key number")?, word)?,
            "lookup" => once(&mut table, seg6_table(words.value("a table")?)?, word)?,
            _ => once(&mut tunsrc, address::address6(words.value("an IPv6 address")?)?, word)?,
        }
    }
    let mode = mode.ok_or_else(|| words.missing("a mode (\"mode MODE\")").accepting(mode_words()))?;
    let segments = segments.ok_or_else(|| words.missing("segments (\"segs SID[,SID…]\")"))?;
    let list = SegmentList { segments: segments.value, hmac: hmac.map_or(0, |key| key.value) };
    Ok(Seg6 { mode, segments: Spanned::new(list, segments.span), tunsrc, table })
}

/// A table to look the first segment up in.
fn seg6_table(word: Word<'_>) -> Result<Spanned<TableId>, Error> {
    let table = table::parse(word)?;
    if table.value.0 == 0 {
        return Err(Error::refused(table.span, "\"lookup\" needs a table, 1 to 4294967295"));
    }
    Ok(table)
}

fn mode_words() -> Vec<String> {
    Mode::ALL.map(|mode| mode.word().to_owned()).to_vec()
}

/// Reads segments with commas between them.
fn segments(word: Word<'_>) -> Result<Vec<Ipv6Addr>, Error> {
    let mut at = 0;
    let mut segments = Vec::new();
    for text in word.text.split(',') {
        let segment = word.part(at, at + text.len());
        if text.is_empty() {
            return Err(no_value(word, "a list of segments", "an address is missing beside a comma"));
        }
        segments.push(address::address6(segment)?.value);
        at += text.len() + 1;
    }
    Ok(segments)
}

fn seg6local<'t>(words: &mut Words<'_, 't>) -> Result<Seg6Local<'t>, Error> {
    let mut action = None;
    let (mut attributes, mut oif, mut iif) = (Attributes::default(), None, None);
    let mut places: Vec<(Attr, Span)> = Vec::new();
    while let Some(word) = words.peek() {
        if word.text == "action" {
            words.next();
            once(&mut action, named_action(words)?, word)?;
            continue;
        }
        let Some(attr) = Attr::ALL.into_iter().find(|attr| attr.word() == word.text) else {
            if route::may_follow_encap(word.text) {
                break;
            }
            return Err(match word.text {
                "endpoint" => Error::not_implemented(word.span, "\"endpoint\" of \"encap seg6local\""),
                _ => unknown(word, "seg6local attribute", attribute_words(action.map(|action: Spanned<&Descriptor>| action.value))),
            });
        };
        words.next();
        if places.iter().any(|&(given, _)| given == attr) {
            return Err(Error::new(word.span, Fault::Twice(word.text.to_owned())));
        }
        let place = match attr {
            Attr::Nh4 => set(&mut attributes.nh4, address::address4(words.value("an IPv4 address")?)?),
            Attr::Nh6 => set(&mut attributes.nh6, address::address6(words.value("an IPv6 address")?)?),
            Attr::Oif => device(&mut oif, words.value("a device")?),
            Attr::Iif => device(&mut iif, words.value("a device")?),
            Attr::Table => set(&mut attributes.table, table::parse(words.value("a table")?)?),
            Attr::VrfTable => set(&mut attributes.vrftable, table::parse(words.value("a table")?)?),
            Attr::Srh => set(&mut attributes.srh, srh(words)?),
            Attr::Flavors => {
                let flavors = flavors(words.value("flavors")?)?;
                attributes.flavors = flavors.value;
                flavors.span
            }
            Attr::Lblen | Attr::Nflen => {
                if attributes.flavors.is_empty() {
                    return Err(Error::refused(word.span, format!("\"{}\" stands behind \"flavors next-csid\"", word.text)));
                }
                let slot = if attr == Attr::Lblen { &mut attributes.lblen } else { &mut attributes.nflen };
                set(slot, number::u8(words.value("a number of bits")?, "a number of bits")?)
            }
            Attr::Count => {
                attributes.count = true;
                word.span
            }
        };
        places.push((attr, place));
    }
    let action = action.ok_or_else(|| words.missing("an action (\"action NAME\")").accepting(action_words()))?;
    Ok(Seg6Local { action, attributes, oif, iif, places })
}

fn set<T>(slot: &mut Option<T>, value: Spanned<T>) -> Span {
    *slot = Some(value.value);
    value.span
}

fn device<'t>(slot: &mut Option<Word<'t>>, word: Word<'t>) -> Span {
    *slot = Some(word);
    word.span
}

fn named_action(words: &mut Words<'_, '_>) -> Result<Spanned<&'static Descriptor>, Error> {
    let word = words.value("an action").map_err(|error| error.accepting(action_words()))?;
    let descriptor = srv6::action(word.text).ok_or_else(|| unknown(word, "action", action_words()))?;
    // Said at once, before attributes that are not known either.
    if !is_implemented(descriptor) {
        return Err(Error::not_implemented(word.span, descriptor.name));
    }
    Ok(word.with(descriptor))
}

/// Reads `segs SID[,SID…] [hmac KEYID]`.
fn srh(words: &mut Words<'_, '_>) -> Result<Spanned<SegmentList>, Error> {
    const SEGS: &[Keyword<()>] = &[full("segs", ())];
    words.keyword(SEGS, "srh keyword")?;
    let word = words.value("segments (SID[,SID…])")?;
    let segments = segments(word)?;
    let hmac = if words.take("hmac") { number::u32(words.value("a key number")?, "a key number")?.value } else { 0 };
    Ok(word.with(SegmentList { segments, hmac }))
}

/// Reads flavours with commas between them.
fn flavors(word: Word<'_>) -> Result<Spanned<Flavors>, Error> {
    let mut at = 0;
    let mut flavors = Flavors::NONE;
    for text in word.text.split(',') {
        let part = word.part(at, at + text.len());
        // All that any action has.
        let known = || ACTIONS.iter().fold(Flavors::NONE, |all, action| all.union(action.flavors)).to_string();
        let flavor = Flavors::from_word(text).ok_or_else(|| unknown(part, "flavor", known().split(',').map(str::to_owned).collect()))?;
        flavors = flavors.union(flavor);
        at += text.len() + 1;
    }
    Ok(word.with(flavors))
}

/// The actions that noref has.
fn action_words() -> Vec<String> {
    ACTIONS.iter().copied().filter(|action| is_implemented(action)).map(|action| action.name.to_owned()).collect()
}

/// Whether noref has an action that the kernel has.
fn is_implemented(action: &'static Descriptor) -> bool {
    !matches!(Sid::build(action, &Attributes::default()), Err(BuildError::NotImplemented { .. }))
}

/// The attributes that an action takes, or all if none is named yet.
fn attribute_words(action: Option<&Descriptor>) -> Vec<String> {
    let taken = |attr: &Attr| action.is_none_or(|action| action.required.union(action.optional).contains(*attr));
    let attributes = Attr::ALL.into_iter().filter(taken).map(|attr| attr.word().to_owned());
    if action.is_none() { ["action".to_owned()].into_iter().chain(attributes).collect() } else { attributes.collect() }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Command;
    use crate::command::{fault, parsed};

    fn encap(line: &str) -> Encap<'_> {
        match parsed(line) {
            Ok(Command::Route(mut route)) => route.hops.remove(0).encap.expect("an encapsulation").value,
            other => panic!("{line}: {other:?}"),
        }
    }

    fn local(line: &str) -> Seg6Local<'_> {
        match encap(line) {
            Encap::Seg6Local(local) => *local,
            other => panic!("{line}: {other:?}"),
        }
    }

    #[test]
    fn every_mode_of_a_headend_is_read() {
        for mode in Mode::ALL {
            let line = format!("ip -6 route add fd09::/64 encap seg6 mode {mode} segs fc00:2::1,fc00:2::2 hmac 0x2a tunsrc fd00::9 dev e1");
            let Encap::Seg6(headend) = encap(&line) else { panic!("{line}") };
            assert_eq!((headend.mode.value, headend.segments.value.hmac), (mode, 42));
            assert_eq!(headend.segments.value.segments, ["fc00:2::1".parse::<Ipv6Addr>().unwrap(), "fc00:2::2".parse().unwrap()]);
            assert_eq!(headend.tunsrc.unwrap().value, "fd00::9".parse::<Ipv6Addr>().unwrap());
        }
    }

    #[test]
    fn a_headend_may_name_the_table_of_its_segments() {
        let Encap::Seg6(headend) = encap("ip -6 route add fd09::/64 encap seg6 mode encap segs fc00:2::1 lookup main dev e1") else {
            panic!()
        };
        assert_eq!(headend.table.unwrap().value, TableId::MAIN);
        assert_eq!(
            fault("ip -6 route add fd09::/64 encap seg6 mode encap segs fc00:2::1 lookup 0 dev e1"),
            "\"lookup\" needs a table, 1 to 4294967295"
        );
    }

    #[test]
    fn every_action_of_the_table_is_read_by_its_name() {
        for action in ACTIONS.iter().filter(|action| action_words().contains(&action.name.to_owned())) {
            let line = format!("ip -6 route add fc00:1::e encap seg6local action {} dev e0", action.name);
            assert_eq!(local(&line).action.value.number, action.number);
        }
    }

    #[test]
    fn attributes_stand_in_any_order_and_end_where_the_route_goes_on() {
        let read = local(
            "ip -6 route add encap seg6local count oif e3 nh6 fe80::23 action End.X flavors next-csid lblen 48 nflen 8 dev e0 fc00:1::e",
        );
        assert_eq!(read.action.value.name, "End.X");
        assert_eq!((read.attributes.nh6, read.oif.map(|oif| oif.text)), (Some("fe80::23".parse().unwrap()), Some("e3")));
        assert_eq!((read.attributes.flavors, read.attributes.lblen, read.attributes.nflen), (Flavors::NEXT_CSID, Some(48), Some(8)));
        assert!(read.attributes.count);
        let read = local("ip -6 route add fc00:1::d encap seg6local action End.DX4 nh4 10.0.3.2 dev e0");
        assert_eq!(read.attributes.nh4, Some("10.0.3.2".parse().unwrap()));
        let read = local("ip -6 route add fc00:1::d encap seg6local action End.DT6 table main dev e0");
        assert_eq!(read.attributes.table, Some(::route::TableId::MAIN));
        let read = local("ip -6 route add fc00:1::d encap seg6local action End.B6 srh segs fc00:2::b,fc00:2::c hmac 7 dev e0");
        assert_eq!(read.attributes.srh.map(|srh| (srh.segments.len(), srh.hmac)), Some((2, 7)));
        let read = local("ip -6 route add fc00:1::d encap seg6local action End.DT46 vrftable 10 flavors psp,next-csid dev e0");
        assert_eq!((read.attributes.vrftable, read.attributes.flavors.to_string().as_str()), (Some(::route::TableId(10)), "psp,next-csid"));
    }

    #[test]
    fn what_is_wrong_is_named() {
        let local = |rest: &str| fault(&format!("ip -6 route add fc00:1::d encap seg6local {rest} dev e0"));
        assert_eq!(local("action End.DX7 nh6 ::"), "unknown action \"End.DX7\"");
        assert_eq!(local("action end"), "unknown action \"end\"");
        assert_eq!(local("action End.BPF endpoint obj x"), "End.BPF is not implemented yet");
        assert_eq!(local("nh6 ::"), "\"::\" needs an action (\"action NAME\")");
        assert_eq!(local("action End.X nh7 ::"), "unknown seg6local attribute \"nh7\"");
        assert_eq!(local("action End.X nh6 :: nh6 ::"), "\"nh6\" is given twice");
        assert_eq!(local("action End flavors psp,uss"), "unknown flavor \"uss\"");
        assert_eq!(local("action End lblen 32"), "\"lblen\" stands behind \"flavors next-csid\"");
        assert_eq!(local("action End.B6 srh seg ::1"), "unknown srh keyword \"seg\"");
        let headend = |rest: &str| fault(&format!("ip -6 route add fd09::/64 encap {rest} dev e0"));
        assert_eq!(headend("seg6 segs ::1 mode encap"), "\"mode\" stands before \"segs\"");
        assert_eq!(headend("seg6 mode encap"), "\"encap\" needs segments (\"segs SID[,SID…]\")");
        assert_eq!(headend("seg6 mode encap.rde segs ::1"), "unknown mode \"encap.rde\"");
        assert_eq!(headend("seg6 mode encap segs ::1,"), "\"::1,\" is not a list of segments: an address is missing beside a comma");
        assert_eq!(
            headend("seg6 mode encap segs ::1,::1ffff"),
            "\"::1ffff\" is not an IPv6 address: the group 1ffff is out of range: a group is at most ffff"
        );
        assert_eq!(headend("mpls 100"), "\"encap mpls\" is not implemented yet");
        assert_eq!(headend("sge6 mode"), "unknown type of encapsulation \"sge6\"");
        assert_eq!(
            fault("ip route add 10.0.0.0/8 encap seg6local action End dev e0"),
            "\"encap seg6local\" needs an IPv6 route or nexthop: a SID is an IPv6 address"
        );
        assert_eq!(
            fault("ip route add 10.0.0.0/8 encap seg6 mode inline segs ::1 dev e0"),
            "mode inline needs an IPv6 route or nexthop: it inserts an SRH into the packet"
        );
    }
}

//! What follows `type` in `ip link`: the kinds of devices that are added, and what is said of them.

use route::{LinkKind, TableId, VLAN_8021AD, VLAN_8021Q, VLAN_CODE_POINTS, VLAN_MAX_ID, VlanChange};

use crate::error::Error;
use crate::keyword::{self, Keyword, full, short};
use crate::number;
use crate::span::{Spanned, Word};
use crate::table;
use crate::words::{Words, no_value, once, unknown};

/// A kind of device, with what it cannot be without.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum DeviceType {
    /// `type vrf table N`.
    Vrf(Spanned<TableId>),
    /// `type vlan id N …`.
    Vlan(Vlan),
    /// `type dummy`.
    Dummy,
}

/// A VLAN sub-interface.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Vlan {
    /// `id`: VLAN number, 0 to 4094.
    pub id: Spanned<u16>,
    /// `protocol`: EtherType of the tag.
    pub protocol: u16,
    /// What else is said.
    pub change: VlanChange,
}

/// A kind of device, by its name alone.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Kind {
    Vrf,
    Vlan,
    Dummy,
}

const KINDS: &[Keyword<Kind>] = &[full("vrf", Kind::Vrf), full("vlan", Kind::Vlan), full("dummy", Kind::Dummy)];

impl Kind {
    pub(crate) fn is_of(self, kind: LinkKind) -> bool {
        match self {
            Kind::Vrf => matches!(kind, LinkKind::Vrf(_)),
            Kind::Vlan => matches!(kind, LinkKind::Vlan(_)),
            Kind::Dummy => kind == LinkKind::Dummy,
        }
    }
}

#[derive(Clone, Copy)]
enum Key {
    Protocol,
    Id,
    ReorderHdr,
    LooseBinding,
    Ingress,
    Egress,
    /// A flag that noref does not have: why not. It may be said that it is off.
    Never(&'static str),
}

const VLAN: &[Keyword<Key>] = &[
    short("protocol", Key::Protocol),
    short("id", Key::Id),
    short("reorder_hdr", Key::ReorderHdr),
    short("gvrp", Key::Never("noref registers no VLANs with switches")),
    short("mvrp", Key::Never("noref registers no VLANs with switches")),
    short("loose_binding", Key::LooseBinding),
    short("bridge_binding", Key::Never("noref has no bridges")),
    short("ingress-qos-map", Key::Ingress),
    short("egress-qos-map", Key::Egress),
];

/// Reads what follows `type` of a new device.
pub(crate) fn parse(words: &mut Words<'_, '_>) -> Result<DeviceType, Error> {
    Ok(match kind(words)?.value {
        Kind::Vrf => DeviceType::Vrf(vrf_table(words)?),
        Kind::Vlan => {
            let (id, protocol, change) = vlan(words)?;
            let id = id.ok_or_else(|| words.incomplete("\"type vlan\"", "a number (\"id N\")"))?;
            DeviceType::Vlan(Vlan { id, protocol: protocol.map_or(VLAN_8021Q, |protocol| protocol.value), change })
        }
        Kind::Dummy => DeviceType::Dummy,
    })
}

/// Reads what follows `type` of a device that there is.
pub(crate) fn parse_change(words: &mut Words<'_, '_>) -> Result<VlanChange, Error> {
    let kind = kind(words)?;
    if !matches!(kind.value, Kind::Vlan) {
        return Err(Error::not_implemented(kind.span, "changing a device of this type").accepting(vec!["vlan".to_owned()]));
    }
    let (id, protocol, change) = vlan(words)?;
    match id.map(|id| id.span).or(protocol.map(|protocol| protocol.span)) {
        Some(span) => Err(Error::refused(span, "number and protocol of a VLAN stay: add another and delete this one")),
        None => Ok(change),
    }
}

/// Reads the name of a kind of device.
pub(crate) fn kind(words: &mut Words<'_, '_>) -> Result<Spanned<Kind>, Error> {
    let kinds = || keyword::words(KINDS);
    let word = words.value("a type").map_err(|error| error.accepting(kinds()))?;
    match keyword::find(KINDS, word.text) {
        Some(kind) => Ok(word.with(kind.key)),
        None => Err(Error::not_implemented(word.span, format!("a device of type \"{}\"", word.text)).accepting(kinds())),
    }
}

fn vrf_table(words: &mut Words<'_, '_>) -> Result<Spanned<TableId>, Error> {
    let mut table = None;
    while let Some(word) = words.next() {
        if !(word.text.starts_with('t') && "table".starts_with(word.text)) {
            return Err(unknown(word, "keyword", vec!["table".to_owned()]));
        }
        let id = table::parse(words.value("a table")?)?;
        if id.value.0 == 0 {
            return Err(Error::refused(id.span, "a VRF needs a table of its own, 1 to 4294967295"));
        }
        once(&mut table, id, word)?;
    }
    table.ok_or_else(|| words.incomplete("\"type vrf\"", "a table (\"table N\")"))
}

type VlanWords = (Option<Spanned<u16>>, Option<Spanned<u16>>, VlanChange);

fn vlan(words: &mut Words<'_, '_>) -> Result<VlanWords, Error> {
    let (mut id, mut protocol, mut change) = (None, None, VlanChange::default());
    while let Some(word) = words.next() {
        match keyword::find(VLAN, word.text).map(|keyword| keyword.key) {
            Some(Key::Id) => {
                let number = number::in_range(words.value("a number")?, "a number of a VLAN", 0, VLAN_MAX_ID.into())?;
                once(&mut id, Spanned::new(number.value as u16, number.span), word)?;
            }
            Some(Key::Protocol) => once(&mut protocol, tag_protocol(words.value("a protocol")?)?, word)?,
            Some(Key::ReorderHdr) => once(&mut change.reorder_hdr, on_off(words)?.value, word)?,
            Some(Key::LooseBinding) => once(&mut change.loose_binding, on_off(words)?.value, word)?,
            Some(Key::Never(why)) => {
                let on = on_off(words)?;
                if on.value {
                    return Err(Error::not_implemented(on.span, format!("\"{} on\"", word.text)).hint(why));
                }
            }
            Some(Key::Ingress) => {
                for (code_point, priority) in map(words, [CODE_POINTS, PRIORITIES])? {
                    change.ingress.push((code_point as u8, priority));
                }
            }
            Some(Key::Egress) => {
                for (priority, code_point) in map(words, [PRIORITIES, CODE_POINTS])? {
                    change.egress.push((priority, code_point as u8));
                }
            }
            None => return Err(unknown(word, "keyword", keyword::words_of(VLAN, |key| !matches!(key, Key::Never(_))))),
        }
    }
    Ok((id, protocol, change))
}

/// The protocols of tags, by the names that iproute2 has for them.
pub(crate) const PROTOCOLS: [(&str, u16); 2] = [("802.1Q", VLAN_8021Q), ("802.1ad", VLAN_8021AD)];

fn tag_protocol(word: Word<'_>) -> Result<Spanned<u16>, Error> {
    let known = PROTOCOLS.iter().find(|(name, number)| name.eq_ignore_ascii_case(word.text) || number::fitting(word.text) == Some(*number));
    match known {
        Some((_, number)) => Ok(word.with(*number)),
        None => Err(unknown(word, "protocol of a tag", PROTOCOLS.map(|(name, _)| name.to_owned()).to_vec())),
    }
}

fn on_off(words: &mut Words<'_, '_>) -> Result<Spanned<bool>, Error> {
    let accepted = || vec!["on".to_owned(), "off".to_owned()];
    let word = words.value("\"on\" or \"off\"").map_err(|error| error.accepting(accepted()))?;
    match word.text {
        "on" => Ok(word.with(true)),
        "off" => Ok(word.with(false)),
        _ => Err(unknown(word, "value", accepted())),
    }
}

/// What a number of a map is, with its article, and the highest.
type Side = (&'static str, u32);
const CODE_POINTS: Side = ("a priority code point", VLAN_CODE_POINTS as u32 - 1);
const PRIORITIES: Side = ("a priority", u32::MAX);

/// Reads `FROM:TO …`, as far as it goes, once at least.
fn map(words: &mut Words<'_, '_>, [from, to]: [Side; 2]) -> Result<Vec<(u32, u32)>, Error> {
    let mut pairs = Vec::new();
    while let Some((word, colon)) = words.peek().and_then(|word| Some((word, word.text.find(':')?))) {
        words.next();
        let side = |word, (what, most): Side| number::in_range(word, what, 0, most.into()).map(|number| number.value as u32);
        pairs.push((side(word.part(0, colon), from)?, side(word.part(colon + 1, word.text.len()), to)?));
    }
    if !pairs.is_empty() {
        return Ok(pairs);
    }
    Err(words.peek().map_or_else(|| words.missing("a map (FROM:TO)"), |word| no_value(word, "a map", "FROM:TO is expected, two numbers")))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Command;
    use crate::command::{fault, parsed};
    use crate::link::LinkCommand;

    fn added(line: &str) -> (Option<String>, String, DeviceType) {
        match parsed(line) {
            Ok(Command::Link(LinkCommand::Add { device, below, kind, .. })) => {
                (below.map(|below| below.text.to_owned()), device.text.to_owned(), kind)
            }
            other => panic!("{line}: {other:?}"),
        }
    }

    #[test]
    fn a_vlan_is_added_on_a_device_with_its_number() {
        for line in [
            "ip link add link e0 name e0.10 type vlan id 10",
            "ip link add e0.10 link e0 type vlan protocol 802.1Q id 0xa reorder_hdr on gvrp off",
            "l a dev e0.10 li e0 up type vlan proto 0x8100 id 10",
        ] {
            let (below, name, kind) = added(line);
            let DeviceType::Vlan(vlan) = kind else { panic!("{line}") };
            assert_eq!((below.as_deref(), &*name, vlan.id.value, vlan.protocol), (Some("e0"), "e0.10", 10, VLAN_8021Q), "{line}");
        }
        let (_, _, kind) = added(
            "ip link add link e0 name s type vlan protocol 802.1AD id 5 loose_binding on egress-qos-map 0:1 6:7 ingress-qos-map 7:4000 reorder_hdr off",
        );
        let change =
            VlanChange { reorder_hdr: Some(false), loose_binding: Some(true), egress: vec![(0, 1), (6, 7)], ingress: vec![(7, 4000)] };
        let DeviceType::Vlan(vlan) = kind else { panic!() };
        assert_eq!((vlan.protocol, vlan.change), (VLAN_8021AD, change));
        assert_eq!(added("ip link add d0 type dummy").2, DeviceType::Dummy);
    }

    #[test]
    fn what_a_vlan_cannot_be_is_refused() {
        let vlan = |more: &str| fault(&format!("ip link add link e0 name e0.10 type vlan {more}"));
        assert_eq!(vlan(""), "\"type vlan\" needs a number (\"id N\")");
        assert_eq!(vlan("id 4095"), "\"4095\" is not a number of a VLAN: it must be 0 to 4094");
        assert_eq!(vlan("id 1 gvrp on"), "\"gvrp on\" is not implemented yet");
        assert_eq!(vlan("id 1 bridge_binding on"), "\"bridge_binding on\" is not implemented yet");
        assert_eq!(vlan("id 1 protocol 0x9100"), "unknown protocol of a tag \"0x9100\"");
        assert_eq!(vlan("id 1 reorder_hdr maybe"), "unknown value \"maybe\"");
        assert_eq!(vlan("id 1 egress-qos-map 0:8"), "\"8\" is not a priority code point: it must be 0 to 7");
        assert_eq!(vlan("id 1 egress-qos-map id 1"), "\"id\" is not a map: FROM:TO is expected, two numbers");
        assert_eq!(fault("ip link set e0.10 type vlan id 11"), "number and protocol of a VLAN stay: add another and delete this one");
        assert_eq!(fault("ip link add name e0.10 type vlan id 11"), "\"type vlan\" needs a device below it (\"link DEV\")");
        assert_eq!(fault("ip link add link e0 name d0 type dummy"), "only a VLAN stands on another device");
        assert_eq!(fault("ip link add d0 type bridge"), "a device of type \"bridge\" is not implemented yet");
    }
}

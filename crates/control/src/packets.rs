//! Which packets a rule or a mark is for: selectors as `ip rule` spells them.

use std::net::IpAddr;

use route::{Mark, Ports};

use crate::address::{self, Family, Prefix};
use crate::error::Error;
use crate::span::{Spanned, Word};
use crate::words::{Words, no_value, once};
use crate::{dsfield, ipproto, number};

/// Selectors, as they were written.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Packets<'t> {
    /// `not`.
    pub not: Option<Word<'t>>,
    /// Sources.
    pub from: Option<Spanned<Prefix>>,
    /// Destinations.
    pub to: Option<Spanned<Prefix>>,
    /// The interface in.
    pub iif: Option<Word<'t>>,
    /// The interface out.
    pub oif: Option<Word<'t>>,
    /// `fwmark`.
    pub mark: Option<Spanned<Mark>>,
    /// `tos`, `dsfield`.
    pub tos: Option<Spanned<u8>>,
    /// `dscp`.
    pub dscp: Option<Spanned<u8>>,
    /// `ipproto`.
    pub protocol: Option<Spanned<u8>>,
    /// `sport`.
    pub sport: Option<Spanned<Ports>>,
    /// `dport`.
    pub dport: Option<Spanned<Ports>>,
    /// `l3mdev`.
    pub l3mdev: Option<Word<'t>>,
    /// Something was given, if only `from all`.
    pub given: bool,
}

/// What a selector looks at.
#[derive(Clone, Copy, Debug)]
pub(crate) enum PacketKey {
    Not,
    From,
    To,
    Iif,
    Oif,
    Mark,
    Tos,
    Dscp,
    Protocol,
    Sport,
    Dport,
    L3mdev,
}

impl<'t> Packets<'t> {
    /// Reads what stands behind a selector's keyword. A prefix settles the family for what follows.
    pub(crate) fn read(
        &mut self,
        key: PacketKey,
        word: Word<'t>,
        words: &mut Words<'_, 't>,
        family: &mut Option<Family>,
    ) -> Result<(), Error> {
        self.given = true;
        match key {
            PacketKey::Not => once(&mut self.not, word, word),
            PacketKey::From => set(&mut self.from, prefix(words.value("a prefix")?, family)?, word),
            PacketKey::To => set(&mut self.to, prefix(words.value("a prefix")?, family)?, word),
            PacketKey::Iif => once(&mut self.iif, words.value("a device")?, word),
            PacketKey::Oif => once(&mut self.oif, words.value("a device")?, word),
            PacketKey::Mark => once(&mut self.mark, mark(words.value("a mark")?)?, word),
            PacketKey::Tos => once(&mut self.tos, tos(words.value("a DS field")?)?, word),
            PacketKey::Dscp => once(&mut self.dscp, dsfield::parse_dscp(words.value("a DSCP")?)?, word),
            PacketKey::Protocol => once(&mut self.protocol, ipproto::parse(words.value("a protocol")?)?, word),
            PacketKey::Sport => once(&mut self.sport, ports(words.value("a port")?)?, word),
            PacketKey::Dport => once(&mut self.dport, ports(words.value("a port")?)?, word),
            PacketKey::L3mdev => once(&mut self.l3mdev, word, word),
        }
    }
}

/// Sets a prefix that `all` does not set.
fn set(slot: &mut Option<Spanned<Prefix>>, prefix: Option<Spanned<Prefix>>, word: Word<'_>) -> Result<(), Error> {
    prefix.map_or(Ok(()), |prefix| once(slot, prefix, word))
}

/// A prefix that is selected by; `all` selects nothing.
fn prefix(word: Word<'_>, family: &mut Option<Family>) -> Result<Option<Spanned<Prefix>>, Error> {
    let prefix = address::prefix(word, *family)?;
    if let Some(prefix) = prefix.value {
        *family = Some(prefix.family());
    }
    Ok(prefix.value.filter(|prefix| prefix.len > 0).map(|prefix| word.with(prefix.masked())))
}

/// A mark, alone or with the bits that count: `0x10`, `0x10/0xff`.
pub(crate) fn mark(word: Word<'_>) -> Result<Spanned<Mark>, Error> {
    let (value, mask) = word.text.split_once('/').map_or((word.text, None), |(value, mask)| (value, Some(mask)));
    let mark = match (number::fitting(value), mask.map(number::fitting)) {
        // A mark of 0 that stands alone asks nothing.
        (Some(0), None) => Some(Mark { value: 0, mask: 0 }),
        (Some(value), None) => Some(Mark { value, mask: u32::MAX }),
        (Some(value), Some(Some(mask))) => Some(Mark { value, mask }),
        _ => None,
    };
    let wrong = || no_value(word, "a mark", "a number of 32 bits, or two as MARK/MASK, is expected (0x10, 0x10/0xff)");
    mark.map(|mark| word.with(mark)).ok_or_else(wrong)
}

fn tos(word: Word<'_>) -> Result<Spanned<u8>, Error> {
    let tos = dsfield::parse(word)?;
    if tos.value & 3 != 0 {
        return Err(no_value(word, "a DS field to select by", "its last two bits are ECN and must be 0"));
    }
    Ok(tos)
}

/// A port or a range of them; 0 and 65535 are none that a rule can name.
fn ports(word: Word<'_>) -> Result<Spanned<Ports>, Error> {
    let (first, last) = word.text.split_once('-').unwrap_or((word.text, word.text));
    let port = |text: &str| number::fitting(text).filter(|port| (1..=65534).contains(port));
    match (port(first), port(last)) {
        (Some(first), Some(last)) if first <= last => Ok(word.with(Ports { first, last })),
        (Some(_), Some(_)) => Err(no_value(word, "a range of ports", "its first port is above its last")),
        _ => Err(no_value(word, "a port", "a number from 1 to 65534, or two as FIRST-LAST, is expected")),
    }
}

/// Whether an address lies in a prefix of the same family: how `ip rule show` and `flush` understand a prefix.
pub(crate) fn holds(outer: Prefix, addr: IpAddr, len: u8) -> bool {
    outer.len <= len && Prefix { addr, len: outer.len }.masked().addr == outer.masked().addr && addr.is_ipv4() == outer.addr.is_ipv4()
}

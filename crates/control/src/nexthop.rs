//! Ways out of a route: gateway, device, weight, encapsulation.

use std::net::IpAddr;

use crate::address::{self, Family};
use crate::encap::{self, Encap};
use crate::error::Error;
use crate::keyword::{self, Keyword, full, short};
use crate::number;
use crate::span::{Span, Spanned, Word};
use crate::words::{Words, once};

/// A way out.
#[derive(Clone, PartialEq, Debug)]
pub struct Nexthop<'t> {
    /// The gateway, which may be of the other family (`via inet6 …`).
    pub via: Option<Spanned<IpAddr>>,
    /// The device.
    pub device: Option<Word<'t>>,
    /// The gateway is on the link, whatever the addresses say.
    pub onlink: bool,
    /// Share of the flows, 1 to 256.
    pub weight: u16,
    /// What is done to the packet.
    pub encap: Option<Spanned<Encap<'t>>>,
}

impl Nexthop<'_> {
    /// Nothing said yet.
    pub(crate) const EMPTY: Self = Nexthop { via: None, device: None, onlink: false, weight: 1, encap: None };

    /// The place an error about this way as a whole points to.
    pub(crate) fn span(&self) -> Option<Span> {
        self.via.map(|via| via.span).or(self.device.map(|device| device.span)).or(self.encap.as_ref().map(|encap| encap.span))
    }
}

#[derive(Clone, Copy, Debug)]
pub(crate) enum HopKey {
    Via,
    Device,
    Weight,
    Onlink,
    Encap,
    /// iproute2 knows it, noref not yet.
    Later,
}

/// What may be said of one of several ways out.
pub(crate) const HOP_KEYS: &[Keyword<HopKey>] = &[
    full("via", HopKey::Via),
    full("dev", HopKey::Device),
    full("weight", HopKey::Weight),
    full("onlink", HopKey::Onlink),
    short("realms", HopKey::Later),
    full("encap", HopKey::Encap),
    full("as", HopKey::Later),
];

/// Reads `[inet|inet6] ADDRESS`.
pub(crate) fn gateway(words: &mut Words<'_, '_>, family: &mut Option<Family>) -> Result<Spanned<IpAddr>, Error> {
    const FAMILIES: &[Keyword<Option<Family>>] =
        &[full("inet", Some(Family::V4)), full("inet6", Some(Family::V6)), full("mpls", None), full("bridge", None), full("link", None)];
    let word = words.value("an address")?;
    let Some(stated) = keyword::find(FAMILIES, word.text) else {
        let gateway = address::address(word, *family).map_err(|error| match *family {
            Some(Family::V4) if word.text.contains(':') => error.hint("an IPv4 route takes an IPv6 gateway as \"via inet6 ADDRESS\""),
            _ => error,
        })?;
        family.get_or_insert(Family::of(gateway.value));
        return Ok(gateway);
    };
    let stated = stated.key.ok_or_else(|| Error::not_implemented(word.span, format!("a gateway of family \"{}\"", word.text)))?;
    let gateway = address::address(words.value("an address")?, Some(stated))?;
    family.get_or_insert(stated);
    Ok(gateway)
}

/// Reads what follows `nexthop`, up to the next one.
pub(crate) fn nexthop<'t>(words: &mut Words<'_, 't>, family: &mut Option<Family>) -> Result<Nexthop<'t>, Error> {
    let mut hop = Nexthop::EMPTY;
    while let Some(word) = words.peek() {
        let Some(keyword) = keyword::find(HOP_KEYS, word.text) else { break };
        words.next();
        match keyword.key {
            HopKey::Via => once(&mut hop.via, gateway(words, family)?, word)?,
            HopKey::Device => once(&mut hop.device, words.value("a device")?, word)?,
            HopKey::Weight => hop.weight = number::in_range(words.value("a weight")?, "a weight", 1, 256)?.value as u16,
            HopKey::Onlink => hop.onlink = true,
            HopKey::Encap => once(&mut hop.encap, encap::parse(word, words)?, word)?,
            HopKey::Later => return Err(Error::not_implemented(word.span, format!("\"{}\" of a nexthop", word.text))),
        }
    }
    if hop.via.is_none() && hop.device.is_none() {
        return Err(words.missing("a gateway or a device"));
    }
    Ok(hop)
}

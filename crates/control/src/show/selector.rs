//! What is said of the entries to be shown.

use std::net::IpAddr;

use ::route::{Kind, NeighbourState};

use crate::address::{self, Family, Prefix};
use crate::device_type;
use crate::error::Error;
use crate::keyword::{self, Keyword, full, short};
use crate::route::RouteTable;
use crate::span::{Spanned, Word};
use crate::words::{Words, once, unknown};
use crate::{addr, neigh, protocol, route, table};

/// Which routes.
#[derive(Default)]
pub(super) struct RouteSelector<'t> {
    /// Of one family, which a prefix or an address names.
    pub family: Option<Family>,
    /// `table all`.
    pub all_tables: bool,
    /// Of one table.
    pub table: Option<RouteTable<'t>>,
    pub protocol: Option<Spanned<u8>>,
    pub scope: Option<Spanned<u8>>,
    pub kind: Option<Spanned<Kind>>,
    pub device: Option<Word<'t>>,
    pub via: Option<Spanned<IpAddr>>,
    pub source: Option<Spanned<IpAddr>>,
    /// Within this prefix; of length 0 in the family that is shown when none is named.
    pub root: Option<Option<Prefix>>,
    /// That hold this prefix.
    pub matching: Option<Option<Prefix>>,
}

#[derive(Clone, Copy)]
enum RouteKey {
    Table,
    Vrf,
    Protocol,
    Scope,
    Kind,
    Device,
    Via,
    Source,
    To,
    Later,
}

/// In iproute2's order.
const ROUTE_KEYS: &[Keyword<RouteKey>] = &[
    short("table", RouteKey::Table),
    short("vrf", RouteKey::Vrf),
    short("cached", RouteKey::Later),
    short("cloned", RouteKey::Later),
    full("tos", RouteKey::Later),
    short("dsfield", RouteKey::Later),
    short("protocol", RouteKey::Protocol),
    short("scope", RouteKey::Scope),
    short("type", RouteKey::Kind),
    full("dev", RouteKey::Device),
    full("oif", RouteKey::Device),
    full("iif", RouteKey::Later),
    full("mark", RouteKey::Later),
    full("nhid", RouteKey::Later),
    full("via", RouteKey::Via),
    full("src", RouteKey::Source),
    short("realms", RouteKey::Later),
    full("from", RouteKey::Later),
    full("to", RouteKey::To),
];

#[derive(Clone, Copy)]
enum Reach {
    Root,
    Match,
    Exact,
}

const REACHES: &[Keyword<Reach>] = &[short("root", Reach::Root), short("match", Reach::Match), short("exact", Reach::Exact)];

impl<'t> RouteSelector<'t> {
    pub(super) fn parse(words: &mut Words<'_, 't>, family: Option<Family>) -> Result<RouteSelector<'t>, Error> {
        let mut selector = RouteSelector { family, ..RouteSelector::default() };
        while let Some(word) = words.next() {
            match keyword::find(ROUTE_KEYS, word.text).map(|keyword| keyword.key) {
                Some(RouteKey::Table) => {
                    let value = words.value("a table or \"all\"")?;
                    match value.text {
                        "all" => selector.all_tables = true,
                        "cache" => return Err(Error::refused(value.span, "noref has no cache of routes")),
                        _ => once(&mut selector.table, RouteTable::Table(table::parse(value)?), word)?,
                    }
                }
                Some(RouteKey::Vrf) => once(&mut selector.table, RouteTable::Vrf(words.value("a VRF device")?), word)?,
                Some(RouteKey::Protocol) => once(&mut selector.protocol, protocol::parse(words.value("a protocol")?)?, word)?,
                Some(RouteKey::Scope) => once(&mut selector.scope, addr::scope(words.value("a scope")?)?, word)?,
                Some(RouteKey::Kind) => {
                    let (keyword, value) = words.keyword(route::KINDS, "type")?;
                    once(&mut selector.kind, route::kind(keyword, value)?, word)?;
                }
                Some(RouteKey::Device) => once(&mut selector.device, words.value("a device")?, word)?,
                Some(RouteKey::Via) => {
                    let via = crate::nexthop::gateway(words, &mut None)?;
                    selector.family.get_or_insert(Family::of(via.value));
                    once(&mut selector.via, via, word)?;
                }
                Some(RouteKey::Source) => {
                    let source = address::address(words.value("an address")?, selector.family)?;
                    selector.family = Some(Family::of(source.value));
                    once(&mut selector.source, source, word)?;
                }
                Some(RouteKey::Later) => return Err(Error::not_implemented(word.span, format!("\"{}\" of routes to show", word.text))),
                Some(RouteKey::To) => selector.reach(words, None)?,
                None => selector.reach(words, Some(word))?,
            }
        }
        Ok(selector)
    }

    /// Reads `[root|match|exact] PREFIX`, of which `word` is the first word if it is taken already.
    fn reach(&mut self, words: &mut Words<'_, 't>, word: Option<Word<'t>>) -> Result<(), Error> {
        let mut word = word.map_or_else(|| words.value("a prefix"), Ok)?;
        let mut reach = Reach::Exact;
        if let Some(keyword) = keyword::find(REACHES, word.text) {
            reach = keyword.key;
            word = words.value("a prefix")?;
        } else if !route::looks_like_prefix(word.text) {
            let reaches = keyword::words(REACHES).into_iter().chain(["PREFIX".to_owned()]);
            let keys = keyword::words_of(ROUTE_KEYS, |key| !matches!(key, RouteKey::Later));
            return Err(unknown(word, "keyword", reaches.chain(keys).collect()));
        }
        // `all` and `any` leave nothing out.
        if matches!(word.text, "all" | "any") {
            return Ok(());
        }
        let prefix = address::prefix(word, self.family)?.value.map(Prefix::masked);
        self.family = prefix.map(Prefix::family).or(self.family);
        if matches!(reach, Reach::Root | Reach::Exact) {
            once(&mut self.root, prefix, word)?;
        }
        if matches!(reach, Reach::Match | Reach::Exact) {
            once(&mut self.matching, prefix, word)?;
        }
        Ok(())
    }
}

/// Which neighbours.
#[derive(Default)]
pub(super) struct NeighbourSelector<'t> {
    pub device: Option<Word<'t>>,
    pub state: Option<NeighbourState>,
    /// Within this prefix.
    pub to: Option<Spanned<Prefix>>,
}

#[derive(Clone, Copy)]
enum NeighbourKey {
    Device,
    State,
    To,
    Later,
}

const NEIGHBOUR_KEYS: &[Keyword<NeighbourKey>] = &[
    full("dev", NeighbourKey::Device),
    full("master", NeighbourKey::Later),
    full("vrf", NeighbourKey::Later),
    full("nomaster", NeighbourKey::Later),
    full("unused", NeighbourKey::Later),
    full("nud", NeighbourKey::State),
    full("proxy", NeighbourKey::Later),
    short("protocol", NeighbourKey::Later),
    full("to", NeighbourKey::To),
];

impl<'t> NeighbourSelector<'t> {
    pub(super) fn parse(words: &mut Words<'_, 't>, family: Option<Family>) -> Result<NeighbourSelector<'t>, Error> {
        let mut selector = NeighbourSelector::default();
        while let Some(word) = words.next() {
            match keyword::find(NEIGHBOUR_KEYS, word.text).map(|keyword| keyword.key) {
                Some(NeighbourKey::Device) => once(&mut selector.device, words.value("a device")?, word)?,
                Some(NeighbourKey::State) => once(&mut selector.state, neigh::state(words)?.value, word)?,
                Some(NeighbourKey::Later) => {
                    return Err(Error::not_implemented(word.span, format!("\"{}\" of neighbours to show", word.text)));
                }
                Some(NeighbourKey::To) => selector.within(words.value("a prefix")?, family, word)?,
                None if route::looks_like_prefix(word.text) => selector.within(word, family, word)?,
                None => {
                    let keys = keyword::words_of(NEIGHBOUR_KEYS, |key| !matches!(key, NeighbourKey::Later));
                    return Err(unknown(word, "keyword", keys.into_iter().chain(["PREFIX".to_owned()]).collect()));
                }
            }
        }
        Ok(selector)
    }

    fn within(&mut self, value: Word<'t>, family: Option<Family>, word: Word<'t>) -> Result<(), Error> {
        match address::prefix(value, family)?.value {
            Some(prefix) => once(&mut self.to, value.with(prefix.masked()), word),
            None => Ok(()),
        }
    }
}

/// Which devices.
#[derive(Default)]
pub(super) struct LinkSelector<'t> {
    /// Their addresses are shown.
    pub addresses: bool,
    pub device: Option<Word<'t>>,
    pub up: bool,
    pub master: Option<Word<'t>>,
    /// `type`.
    pub kind: Option<device_type::Kind>,
}

#[derive(Clone, Copy)]
enum LinkKey {
    Device,
    Up,
    Master,
    Type,
    Later,
}

const LINK_KEYS: &[Keyword<LinkKey>] = &[
    full("to", LinkKey::Later),
    full("scope", LinkKey::Later),
    full("up", LinkKey::Up),
    full("label", LinkKey::Later),
    full("group", LinkKey::Later),
    full("master", LinkKey::Master),
    full("vrf", LinkKey::Master),
    full("nomaster", LinkKey::Later),
    full("type", LinkKey::Type),
    full("dev", LinkKey::Device),
];

impl<'t> LinkSelector<'t> {
    pub(super) fn parse(words: &mut Words<'_, 't>, addresses: bool) -> Result<LinkSelector<'t>, Error> {
        let mut selector = LinkSelector { addresses, ..LinkSelector::default() };
        while let Some(word) = words.next() {
            match keyword::find(LINK_KEYS, word.text).map(|keyword| keyword.key) {
                Some(LinkKey::Device) => once(&mut selector.device, words.value("a device")?, word)?,
                Some(LinkKey::Up) => selector.up = true,
                Some(LinkKey::Master) => once(&mut selector.master, words.value("a device")?, word)?,
                Some(LinkKey::Type) => once(&mut selector.kind, device_type::kind(words)?.value, word)?,
                Some(LinkKey::Later) => return Err(Error::not_implemented(word.span, format!("\"{}\" of devices to show", word.text))),
                None if selector.device.is_none() => selector.device = Some(word),
                None => {
                    return Err(unknown(word, "keyword", keyword::words_of(LINK_KEYS, |key| !matches!(key, LinkKey::Later))));
                }
            }
        }
        Ok(selector)
    }
}

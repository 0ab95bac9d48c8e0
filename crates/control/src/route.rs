//! `ip route`: routes.

use std::net::IpAddr;

use route::{Kind, Metrics, TableId};

use crate::addr;
use crate::address::{self, Family, Prefix};
use crate::command::{self, Seen, Verb, verb};
use crate::dsfield;
use crate::encap;
use crate::error::Error;
use crate::keyword::{self, Keyword, full, short};
use crate::nexthop::{HOP_KEYS, Nexthop, gateway, nexthop};
use crate::number;
use crate::protocol;
use crate::span::{Spanned, Word};
use crate::table;
use crate::words::{Words, no_value, once, unknown};

/// An `ip route` command.
#[derive(Clone, PartialEq, Debug)]
pub struct RouteCommand<'t> {
    /// What to do.
    pub operation: RouteOperation,
    /// IPv4 or IPv6.
    pub family: Family,
    /// Destinations, without bits behind the length.
    pub destination: Spanned<Prefix>,
    /// `from`: the sources whose packets it is for, in IPv6.
    pub from: Option<Spanned<Prefix>>,
    /// Ways out; none for types that lead nowhere.
    pub hops: Vec<Nexthop<'t>>,
    /// What else is said of it.
    pub said: Said<'t>,
}

/// What is said of a route beside its destinations and ways out.
#[derive(Clone, PartialEq, Debug)]
pub struct Said<'t> {
    /// Type; a new route without one is `unicast`.
    pub kind: Option<Spanned<Kind>>,
    /// Where it stands; without: `main`, or `local` for the types that stand there.
    pub table: Option<RouteTable<'t>>,
    /// Metric: lower is better.
    pub metric: Option<Spanned<u32>>,
    /// Who set it, a number.
    pub protocol: Option<Spanned<u8>>,
    /// Scope, a number.
    pub scope: Option<Spanned<u8>>,
    /// Largest packet, bytes.
    pub mtu: Option<Spanned<u32>>,
    /// `tos`: the packets that it is for.
    pub tos: Option<Spanned<u8>>,
    /// `hoplimit`, `advmss`, `mtu lock`: noref does not learn path MTUs for routes, and has no TCP, so that the last two are only kept to be shown.
    pub metrics: Metrics,
    /// `expires`: seconds until it goes by itself, in IPv6.
    pub expires: Option<Spanned<u32>>,
    /// Source of packets that the router makes.
    pub source: Option<Spanned<IpAddr>>,
    /// The nexthop object that says the ways out instead.
    pub nexthop: Option<Spanned<u32>>,
}

impl Said<'_> {
    const NOTHING: Self = Said {
        kind: None,
        table: None,
        metric: None,
        protocol: None,
        scope: None,
        mtu: None,
        tos: None,
        metrics: Metrics { hop_limit: 0, adv_mss: 0, mtu_lock: false },
        expires: None,
        source: None,
        nexthop: None,
    };
}

/// What is done with a route.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum RouteOperation {
    /// It must not exist.
    Add,
    /// It takes the place of the one that exists, if any does.
    Replace,
    /// It stands behind the one that exists; in IPv6 it becomes a further way of it.
    Append,
    /// The first route that has all that is given goes.
    Delete,
}

/// The table of a route.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum RouteTable<'t> {
    /// `table T`.
    Table(Spanned<TableId>),
    /// `vrf DEV`: the table of that device.
    Vrf(Word<'t>),
}

const VERBS: &[Keyword<Verb<RouteOperation>>] = &[
    short("list", Verb::Show),
    short("show", Verb::Show),
    short("lst", Verb::Show),
    short("add", Verb::Do(RouteOperation::Add)),
    short("change", Verb::Later),
    full("chg", Verb::Later),
    short("replace", Verb::Do(RouteOperation::Replace)),
    short("prepend", Verb::Later),
    short("append", Verb::Do(RouteOperation::Append)),
    short("test", Verb::Later),
    short("delete", Verb::Do(RouteOperation::Delete)),
    short("get", Verb::Show),
    short("flush", Verb::Later),
    short("save", Verb::Show),
    short("restore", Verb::Later),
    short("showdump", Verb::Show),
];

#[derive(Clone, Copy, Debug)]
enum Key {
    Source,
    Via,
    Metric,
    Scope,
    Mtu,
    Tos,
    From,
    HopLimit,
    AdvMss,
    TtlPropagate,
    Expires,
    Onlink,
    Nexthop,
    Protocol,
    Table,
    Vrf,
    Device,
    Encap,
    Object,
    To,
    /// iproute2 knows it, noref not yet.
    Later,
}

const KEYS: &[Keyword<Key>] = &[
    full("src", Key::Source),
    full("as", Key::Later),
    full("via", Key::Via),
    full("from", Key::From),
    full("tos", Key::Tos),
    short("dsfield", Key::Tos),
    full("expires", Key::Expires),
    short("metric", Key::Metric),
    short("priority", Key::Metric),
    full("preference", Key::Metric),
    full("scope", Key::Scope),
    full("mtu", Key::Mtu),
    full("hoplimit", Key::HopLimit),
    full("advmss", Key::AdvMss),
    short("reordering", Key::Later),
    full("rtt", Key::Later),
    full("rto_min", Key::Later),
    short("window", Key::Later),
    short("cwnd", Key::Later),
    short("initcwnd", Key::Later),
    short("initrwnd", Key::Later),
    short("features", Key::Later),
    short("quickack", Key::Later),
    short("congctl", Key::Later),
    short("rttvar", Key::Later),
    short("ssthresh", Key::Later),
    short("realms", Key::Later),
    full("onlink", Key::Onlink),
    full("nexthop", Key::Nexthop),
    full("nhid", Key::Object),
    short("protocol", Key::Protocol),
    short("table", Key::Table),
    short("vrf", Key::Vrf),
    full("dev", Key::Device),
    full("oif", Key::Device),
    short("pref", Key::Later),
    full("encap", Key::Encap),
    full("ttl-propagate", Key::TtlPropagate),
    short("fastopen_no_cookie", Key::Later),
    full("to", Key::To),
];

/// Types; `None` are those that noref does not have yet.
pub(crate) const KINDS: &[Keyword<Option<Kind>>] = &[
    full("unicast", Some(Kind::Unicast)),
    full("local", Some(Kind::Local)),
    full("broadcast", Some(Kind::Broadcast)),
    full("brd", Some(Kind::Broadcast)),
    full("anycast", Some(Kind::Anycast)),
    full("blackhole", Some(Kind::Blackhole)),
    full("unreachable", Some(Kind::Unreachable)),
    full("prohibit", Some(Kind::Prohibit)),
    full("throw", Some(Kind::Throw)),
    full("multicast", None),
    full("nat", None),
    full("xresolve", None),
];

/// Whether a verb of `ip route` shows something.
pub(crate) fn seen(word: &str) -> Seen {
    command::seen(VERBS, word)
}

/// True when a verb of `ip route` asks for the way of a packet.
pub(crate) fn asks(word: &str) -> bool {
    keyword::find(VERBS, word).is_some_and(|verb| verb.word == "get")
}

/// Reads what follows `ip route`.
pub(crate) fn parse<'t>(words: &mut Words<'_, 't>, family: Option<Family>) -> Result<RouteCommand<'t>, Error> {
    let (operation, _) = verb(words, "route", VERBS)?;
    let mut given = Given { family, ..Given::NOTHING };
    while let Some(word) = words.next() {
        given.take(word, words)?;
    }
    given.command(operation, words)
}

/// What is said of a route so far; the order is free.
struct Given<'t> {
    /// Settled by the command, or the first prefix or address that is of one.
    family: Option<Family>,
    /// Without a prefix: `default`, of either family.
    destination: Option<Spanned<Option<Prefix>>>,
    from: Option<Spanned<Option<Prefix>>>,
    /// The one way out, said of the route itself.
    single: Nexthop<'t>,
    /// Those that `nexthop` begins.
    hops: Vec<Nexthop<'t>>,
    said: Said<'t>,
}

impl<'t> Given<'t> {
    const NOTHING: Self =
        Given { family: None, destination: None, from: None, single: Nexthop::EMPTY, hops: Vec::new(), said: Said::NOTHING };

    /// Reads what `word` begins.
    fn take(&mut self, word: Word<'t>, words: &mut Words<'_, 't>) -> Result<(), Error> {
        match keyword::find(KEYS, word.text).map(|keyword| keyword.key) {
            Some(Key::Source) => once(&mut self.said.source, address::address(words.value("an address")?, self.family)?, word),
            Some(Key::Via) => once(&mut self.single.via, gateway(words, &mut self.family)?, word),
            Some(Key::Metric) => once(&mut self.said.metric, number::u32(words.value("a metric")?, "a metric")?, word),
            Some(Key::Scope) => once(&mut self.said.scope, addr::scope(words.value("a scope")?)?, word),
            Some(Key::Mtu) => {
                self.said.metrics.mtu_lock = words.take("lock");
                once(&mut self.said.mtu, number::u32(words.value("a number of bytes")?, "an MTU")?, word)
            }
            Some(Key::Tos) => {
                let value = words.value("a type of service")?;
                let tos = dsfield::parse(value)?;
                if tos.value & 3 != 0 {
                    return Err(no_value(value, "a type of service", "its two lowest bits are those of ECN and must be 0"));
                }
                once(&mut self.said.tos, tos, word)
            }
            Some(Key::From) => {
                let value = words.value("a prefix")?;
                let prefix = address::prefix(value, self.family)?;
                self.family = prefix.value.map(Prefix::family).or(self.family);
                once(&mut self.from, prefix, word)
            }
            Some(Key::HopLimit) => {
                words.take("lock");
                self.said.metrics.hop_limit = number::u8(words.value("a number of hops")?, "a hop limit")?.value;
                Ok(())
            }
            Some(Key::AdvMss) => {
                words.take("lock");
                self.said.metrics.adv_mss = number::u32(words.value("a number of bytes")?, "a segment size")?.value;
                Ok(())
            }
            Some(Key::Expires) => {
                once(&mut self.said.expires, number::u32(words.value("a number of seconds")?, "a number of seconds")?, word)
            }
            // It is about labels of MPLS.
            Some(Key::TtlPropagate) => words.keyword(SWITCH, "value").map(|_| ()),
            Some(Key::Onlink) => {
                self.single.onlink = true;
                Ok(())
            }
            Some(Key::Nexthop) => self.nexthops(words),
            Some(Key::Protocol) => once(&mut self.said.protocol, protocol::parse(words.value("a protocol")?)?, word),
            Some(Key::Table) => once(&mut self.said.table, RouteTable::Table(table::parse(words.value("a table")?)?), word),
            Some(Key::Vrf) => once(&mut self.said.table, RouteTable::Vrf(words.value("a VRF device")?), word),
            Some(Key::Device) => once(&mut self.single.device, words.value("a device")?, word),
            Some(Key::Encap) => once(&mut self.single.encap, encap::parse(word, words)?, word),
            Some(Key::Object) => once(&mut self.said.nexthop, number::u32(words.value("a number")?, "the number of a nexthop")?, word),
            Some(Key::Later) => Err(Error::not_implemented(word.span, format!("\"{}\" of a route", word.text))),
            Some(Key::To) => {
                let target = words.value("a prefix")?;
                self.destination(target, words)
            }
            None => self.destination(word, words),
        }
    }

    /// Reads what follows the first `nexthop`: a nexthop ends only where the next one begins.
    fn nexthops(&mut self, words: &mut Words<'_, 't>) -> Result<(), Error> {
        self.hops.push(nexthop(words, &mut self.family)?);
        while let Some(next) = words.next() {
            if next.text != "nexthop" {
                return Err(unknown(next, "keyword", keyword::words(HOP_KEYS))
                    .hint("what is said of the route as a whole stands before the first nexthop"));
            }
            self.hops.push(nexthop(words, &mut self.family)?);
        }
        Ok(())
    }

    /// Reads `[TYPE] PREFIX`, of which `target` is the first word.
    fn destination(&mut self, mut target: Word<'t>, words: &mut Words<'_, 't>) -> Result<(), Error> {
        if let Some(keyword) = keyword::find(KINDS, target.text) {
            once(&mut self.said.kind, kind(keyword, target)?, target)?;
            target = words.value("a prefix behind it")?;
        }
        if self.destination.is_some() || !looks_like_prefix(target.text) {
            return Err(unknown(target, "keyword", accepted(self.destination.is_none())));
        }
        let prefix = address::prefix(target, self.family)?;
        self.family = prefix.value.map(Prefix::family).or(self.family);
        self.destination = Some(target.with(prefix.value));
        Ok(())
    }

    /// The command, once all is said.
    fn command(self, operation: RouteOperation, words: &Words<'_, 't>) -> Result<RouteCommand<'t>, Error> {
        let Given { family, destination, from, single, mut hops, said } = self;
        let destination = destination.ok_or_else(|| words.incomplete("\"ip route\"", "a destination (a prefix or \"default\")"))?;
        let family = family.unwrap_or(Family::V4);
        let prefix = destination.value.unwrap_or(Prefix::all(family));
        let masked = prefix.masked();
        // The kernel refuses such an IPv4 route and cuts such an IPv6 route down.
        if family == Family::V4 && masked != prefix {
            let why = format!("{prefix} has bits set behind its length");
            return Err(
                Error::refused(destination.span, why).hint(format!("the network is {masked}, the address alone {}/32", prefix.addr))
            );
        }
        if let Some(wrong) = said.source.filter(|source| Family::of(source.value) != family) {
            return Err(Error::refused(wrong.span, format!("the source {} is not of the route's family", wrong.value)));
        }
        if hops.is_empty() {
            if single != Nexthop::EMPTY {
                hops.push(single);
            }
        } else if single != Nexthop::EMPTY {
            let span = single.span().unwrap_or(destination.span);
            return Err(Error::refused(span, "a route has either one way out or nexthops, not both"));
        }
        if let (Some(id), Some(_)) = (said.nexthop, hops.first()) {
            return Err(Error::refused(id.span, "a route names a nexthop object or its ways out, not both"));
        }
        leads_out(said.kind, family, &mut hops)?;
        if family == Family::V4 {
            hops.iter().filter_map(|hop| hop.encap.as_ref()).try_for_each(encap::takes_ipv4)?;
        }
        if let Some(tos) = said.tos.filter(|_| family == Family::V6) {
            return Err(Error::refused(tos.span, "an IPv6 route is for every traffic class"));
        }
        if let Some(expires) = said.expires.filter(|_| family == Family::V4) {
            return Err(Error::refused(expires.span, "an IPv4 route does not expire: Linux takes the word and keeps the route"));
        }
        // From everywhere is from nowhere in particular.
        let from = from.and_then(|from| Some(Spanned::new(from.value?.masked(), from.span))).filter(|from| from.value.len != 0);
        if let Some(from) = from.filter(|_| family == Family::V4) {
            return Err(Error::refused(from.span, "an IPv4 route is for every source; a rule can tell sources apart"));
        }
        Ok(RouteCommand { operation, family, destination: Spanned::new(masked, destination.span), from, hops, said })
    }
}

const SWITCH: &[Keyword<bool>] = &[full("enabled", true), full("disabled", false)];

/// The type that `word` names. One that noref does not have yet is refused.
pub(crate) fn kind(keyword: &Keyword<Option<Kind>>, word: Word<'_>) -> Result<Spanned<Kind>, Error> {
    let kind = keyword.key.ok_or_else(|| Error::not_implemented(word.span, format!("a route of type \"{}\"", word.text)))?;
    Ok(word.with(kind))
}

/// Whether a word can be meant as a prefix; anything else in its place is a misspelt keyword.
pub(crate) fn looks_like_prefix(text: &str) -> bool {
    matches!(text, "default" | "all" | "any") || text.contains([':', '.', '/']) || text.starts_with(|first: char| first.is_ascii_digit())
}

/// Whether a word behind an encapsulation belongs to the route again.
pub(crate) fn may_follow_encap(text: &str) -> bool {
    looks_like_prefix(text)
        || keyword::find(KEYS, text).is_some()
        || keyword::find(KINDS, text).is_some()
        || keyword::find(HOP_KEYS, text).is_some()
}

/// A type that leads nowhere has no way out. IPv6 takes the `dev lo` that `ip -6 route show` prints for it.
fn leads_out(kind: Option<Spanned<Kind>>, family: Family, hops: &mut Vec<Nexthop<'_>>) -> Result<(), Error> {
    let Some(kind) = kind.filter(|kind| matches!(kind.value, Kind::Blackhole | Kind::Unreachable | Kind::Prohibit | Kind::Throw)) else {
        return Ok(());
    };
    let tolerated = |hop: &Nexthop<'_>| family == Family::V6 && hop.via.is_none() && hop.encap.is_none();
    if let Some(hop) = hops.iter().find(|hop| !tolerated(hop)) {
        let span = hop.span().unwrap_or(kind.span);
        return Err(Error::refused(span, format!("a route of type {} has neither gateway nor device nor encap", kind.value.word())));
    }
    hops.clear();
    Ok(())
}

fn accepted(destination: bool) -> Vec<String> {
    let kept = keyword::words_of(KEYS, |key| !matches!(key, Key::Later | Key::To));
    if !destination {
        return kept;
    }
    let kinds = keyword::words_of(KINDS, Option::is_some);
    ["PREFIX".to_owned(), "default".to_owned()].into_iter().chain(kinds).chain(kept).collect()
}

#[cfg(test)]
mod tests;

//! Routes, as `ip route show` prints them.

use std::cmp::Reverse;
use std::fmt::Write as _;
use std::io::{self, Write};
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

use ::route::{Editor, Encap, Hop, IfIndex, Kind, Metrics, NexthopDoes, NexthopObject, RouteEntry, SCOPE_UNIVERSE, TableId, Tick};

use super::line::Options;
use super::selector::RouteSelector;
use super::{Source, device, encap, name};
use crate::address::{Family, Prefix};
use crate::apply;
use crate::error::Error;
use crate::route::RouteTable;
use crate::span::Spanned;
use crate::{addr, dsfield, keyword, protocol};

/// Prefixes of which the routes are looked up and written together.
const SLICE: usize = 512;

/// Which routes, all that is named resolved.
#[derive(Debug, Default)]
pub(super) struct Routes {
    options: Options,
    families: Vec<Family>,
    /// None: all tables.
    table: Option<TableId>,
    protocol: Option<u8>,
    scope: Option<u8>,
    kind: Option<Kind>,
    device: Option<IfIndex>,
    via: Option<IpAddr>,
    source: Option<IpAddr>,
    root: Option<Option<Prefix>>,
    matching: Option<Option<Prefix>>,
    /// What is said as well of a route that is shown alone.
    alone: Alone,
}

/// What is said of a route that is the answer to a question.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Alone {
    /// The interface that the packet comes in by.
    pub iif: Option<IfIndex>,
    /// What the packet is to the router, whatever the route says.
    pub kind: Option<Kind>,
    /// The place of the way that it takes, which comes first.
    pub taken: usize,
}

impl Routes {
    pub(super) fn new(selector: &RouteSelector<'_>, options: Options, editor: &Editor) -> Result<Routes, Error> {
        // As iproute2: of all tables both families are shown, of one table IPv4.
        let families = match options.family {
            Some(family) => vec![family],
            None if selector.all_tables => vec![Family::V4, Family::V6],
            None => vec![Family::V4],
        };
        let table = match selector.table {
            _ if selector.all_tables => None,
            None => Some(TableId::MAIN),
            Some(RouteTable::Vrf(vrf)) => Some(apply::vrf(editor, vrf)?),
            // Table 0 stands for none.
            Some(RouteTable::Table(Spanned { value: TableId(0), .. })) => Some(TableId::MAIN),
            Some(RouteTable::Table(Spanned { value: table, span })) => {
                let exists = match families.as_slice() {
                    [Family::V6] => editor.table_exists::<Ipv6Addr>(table),
                    _ => editor.table_exists::<Ipv4Addr>(table),
                };
                if !exists {
                    let family = if families == [Family::V6] { "IPv6" } else { "IPv4" };
                    return Err(Error::refused(span, format!("there is no {family} table {table} (FIB table does not exist)")));
                }
                Some(table)
            }
        };
        Ok(Routes {
            options,
            families,
            table,
            protocol: selector.protocol.map(|protocol| protocol.value),
            scope: selector.scope.map(|scope| scope.value),
            kind: selector.kind.map(|kind| kind.value),
            device: selector.device.map(|word| device(editor, word)).transpose()?,
            via: selector.via.map(|via| via.value),
            source: selector.source.map(|source| source.value),
            root: selector.root,
            matching: selector.matching,
            alone: Alone::default(),
        })
    }

    /// Whether what was counted is shown.
    pub(super) fn counts(&self) -> bool {
        self.options.statistics
    }

    pub(super) fn print(&self, source: &impl Source, out: &mut impl Write) -> io::Result<()> {
        for family in &self.families {
            match family {
                Family::V4 => self.family::<Ipv4Addr>(source, out)?,
                Family::V6 => self.family::<Ipv6Addr>(source, out)?,
            }
        }
        Ok(())
    }

    fn family<A: Shown>(&self, source: &impl Source, out: &mut impl Write) -> io::Result<()> {
        let mut tables = match self.table {
            Some(table) => vec![table],
            None => source.editor(|editor| editor.tables::<A>().into_iter().map(|(table, _)| table).collect()),
        };
        // A mirror's own, which leaves packets to the kernel; the kernel has none of this number.
        tables.retain(|table| *table != TableId(0));
        // The kernel goes through its buckets of tables, and has 256 of them.
        tables.sort_by_key(|table| (table.0 & 0xff, *table));
        let mut text = String::new();
        for table in tables {
            let mut prefixes: Vec<_> = source.editor(|editor| {
                let all = editor.routes::<A>(table).map(|(prefix, entry)| (prefix, entry.select.from.is_some()));
                all.filter(|(prefix, _)| self.reaches::<A>(*prefix)).collect()
            });
            prefixes.sort_unstable_by(|(a, a_from), (b, b_from)| A::order(a, b, [*a_from, *b_from]));
            prefixes.dedup();
            for slice in prefixes.chunks(SLICE) {
                text.clear();
                source.editor(|editor| {
                    for (prefix, from) in slice {
                        let entries = editor.routes_of::<A>(table, *prefix);
                        let first = entries.partition_point(|entry| entry.select.from.is_some());
                        let entries = if *from { &entries[..first] } else { &entries[first..] };
                        self.entries(&mut text, Place { source, editor, table, prefix: *prefix }, entries);
                    }
                });
                out.write_all(text.as_bytes())?;
            }
        }
        Ok(())
    }

    /// Whether routes of the prefix are asked for.
    fn reaches<A: Shown>(&self, prefix: ::route::Prefix<A>) -> bool {
        // Whatever is named is of the family shown.
        let named = |named: Option<Prefix>| match named {
            Some(named) => A::narrow(named.addr).and_then(|addr| ::route::Prefix::new(addr, named.len)),
            None => ::route::Prefix::new(A::UNSPECIFIED, 0),
        };
        let within = |outer: ::route::Prefix<A>, inner: ::route::Prefix<A>| outer.len() <= inner.len() && outer.contains(inner.addr());
        self.root.is_none_or(|root| named(root).is_some_and(|root| within(root, prefix)))
            && self.matching.is_none_or(|matching| named(matching).is_some_and(|matching| within(prefix, matching)))
    }

    /// The routes of a prefix. In IPv6, those that are ways of one route are one.
    fn entries<A: Shown, S: Source>(&self, text: &mut String, place: Place<'_, A, S>, entries: &[RouteEntry]) {
        for (at, entry) in entries.iter().enumerate() {
            if entries[..at].iter().any(|before| is_way_of::<A>(entry, before)) {
                continue;
            }
            let own = place.editor.ways_of(&entry.effect);
            let mut hops: Vec<&Hop> = own.iter().collect();
            hops.extend(entries[at + 1..].iter().filter(|other| is_way_of::<A>(other, entry)).flat_map(|other| &other.effect.hops));
            let ways = hops.len().max(1);
            hops.rotate_left(self.alone.taken % ways);
            if self.wants(A::BITS == 128, entry, &hops) {
                self.route(text, &place, entry, &hops);
            }
        }
    }

    fn wants(&self, v6: bool, entry: &RouteEntry, hops: &[&Hop]) -> bool {
        // Like iproute2, of the way of routes that have one.
        let hop = if let [only] = hops { Some(*only) } else { None };
        let dev = hop.map(|hop| hop.dev).or((v6 && hops.is_empty()).then_some(IfIndex::LO));
        let scope = if v6 { SCOPE_UNIVERSE } else { entry.scope };
        self.protocol.is_none_or(|protocol| entry.protocol == protocol)
            && self.scope.is_none_or(|wanted| scope == wanted)
            && self.kind.is_none_or(|kind| entry.effect.kind == kind)
            && self.device.is_none_or(|wanted| dev == Some(wanted))
            && self.via.is_none_or(|via| hop.is_some_and(|hop| hop.via == Some(via)))
            && self.source.is_none_or(|source| entry.effect.src == Some(source))
    }

    /// One route. What was asked for is not said again, as iproute2 does it.
    fn route<A: Shown, S: Source>(&self, text: &mut String, place: &Place<'_, A, S>, entry: &RouteEntry, hops: &[&Hop]) {
        // Writing to a string does not fail.
        let _ = self.try_route(text, place, entry, hops);
    }

    fn try_route<A: Shown, S: Source>(
        &self,
        text: &mut String,
        place: &Place<'_, A, S>,
        entry: &RouteEntry,
        hops: &[&Hop],
    ) -> std::fmt::Result {
        let (v6, effect) = (A::BITS == 128, &entry.effect);
        target(text, place, entry, self.alone.kind)?;
        if effect.nexthop != 0 {
            write!(text, "nhid {} ", effect.nexthop)?;
        }
        // A blackhole object is `dev lo`; in IPv6 the ways of a group stand by themselves, also an only one.
        let grouped = matches!(place.editor.nexthop(effect.nexthop), Some(NexthopObject { does: NexthopDoes::Group(..), .. }));
        let apart = hops.len() > 1 || v6 && grouped && !hops.is_empty();
        match hops {
            [only] if !apart => self.way(text, place, only)?,
            [] if (v6 && !grouped || !v6 && effect.nexthop != 0) && self.device.is_none() => text.push_str("dev lo "),
            _ => {}
        }
        if self.table.is_none() && place.table != TableId::MAIN {
            write!(text, "table {} ", place.table)?;
        }
        if entry.protocol != protocol::BOOT && self.protocol.is_none() {
            write!(text, "proto {} ", protocol::show(entry.protocol))?;
        }
        if !v6 && entry.scope != SCOPE_UNIVERSE && self.scope.is_none() {
            write!(text, "scope {} ", shown_scope(entry.scope))?;
        }
        if let (Some(src), None) = (effect.src, self.source) {
            write!(text, "src {src} ")?;
        }
        if v6 || entry.metric != 0 {
            write!(text, "metric {} ", entry.metric)?;
        }
        if !apart && let [Hop { onlink: true, .. }] = hops {
            text.push_str("onlink ");
        }
        if let Some(expires) = effect.expires {
            write!(text, "expires {}sec ", expires.since(place.editor.time()) / Tick::PER_SECOND)?;
        }
        metrics(text, effect.mtu, &effect.metrics)?;
        if let Some(iif) = self.alone.iif {
            write!(text, "iif {} ", name(place.editor, iif))?;
        }
        if v6 {
            text.push_str("pref medium");
        }
        if apart {
            hops.iter().try_for_each(|hop| self.nexthop(text, place, hop))?;
        } else if v6 && grouped && hops.is_empty() {
            text.push_str(if self.options.oneline { "\\" } else { "\n" });
            text.push_str("\tnexthop dev lo weight 1 ");
        }
        text.push('\n');
        Ok(())
    }

    /// One of several ways, on a line of its own.
    fn nexthop<A: Shown, S: Source>(&self, text: &mut String, place: &Place<'_, A, S>, hop: &Hop) -> std::fmt::Result {
        text.push_str(if self.options.oneline { "\\" } else { "\n" });
        text.push_str("\tnexthop ");
        self.way(text, place, hop)?;
        write!(text, "weight {} ", hop.weight)?;
        let dead = place.editor.is_dead::<A>(hop.dev);
        text.push_str(if dead { "dead " } else { "" });
        text.push_str(if hop.onlink { "onlink " } else { "" });
        text.push_str(if dead { "linkdown " } else { "" });
        Ok(())
    }

    fn way<A: Shown, S: Source>(&self, text: &mut String, place: &Place<'_, A, S>, hop: &Hop) -> std::fmt::Result {
        if hop.encap != Encap::None {
            encap::write(text, place.source, place.editor, hop.encap, self.options.statistics)?;
        }
        if let Some(via) = hop.via.filter(|_| self.via.is_none()) {
            gateway::<A>(text, via)?;
        }
        if self.device.is_none() {
            write!(text, "dev {} ", out(place.editor, hop.dev))?;
        }
        Ok(())
    }
}

/// Writes a gateway, a blank behind it.
pub(super) fn gateway<A: ::route::Address>(text: &mut String, via: IpAddr) -> std::fmt::Result {
    let other = if via.is_ipv6() == (A::BITS == 128) { "" } else { "inet6 " };
    write!(text, "via {other}{via} ")
}

/// The device of a way out; what the router cannot do itself leaves by the kernel.
pub(super) fn out(editor: &Editor, dev: IfIndex) -> std::borrow::Cow<'_, str> {
    if dev == IfIndex::KERNEL { "(kernel)".into() } else { name(editor, dev) }
}

/// Where a route stands, and where what it names is read.
#[derive(Clone, Copy)]
struct Place<'a, A: ::route::Address, S> {
    source: &'a S,
    editor: &'a Editor,
    table: TableId,
    prefix: ::route::Prefix<A>,
}

/// True of routes of one prefix that are ways of one route.
fn is_way_of<A: ::route::Address>(entry: &RouteEntry, other: &RouteEntry) -> bool {
    entry.joins::<A>() && (other.metric, other.select) == (entry.metric, entry.select) && other.joins::<A>()
}

/// A route as `ip route show table all` prints it, as one of the table `said`.
pub(super) fn one<A: Shown>(
    source: &impl Source,
    editor: &Editor,
    (options, alone): (Options, Alone),
    (table, said): (TableId, TableId),
    (prefix, entry): (::route::Prefix<A>, &RouteEntry),
) -> String {
    let all = Routes { options, alone, ..Routes::default() };
    let entries = editor.routes_of::<A>(table, prefix);
    let together: Vec<_> = entries.iter().filter(|other| std::ptr::eq(*other, entry) || is_way_of::<A>(other, entry)).cloned().collect();
    let mut text = String::new();
    all.entries(&mut text, Place { source, editor, table: said, prefix }, &together);
    text
}

/// A scope by its name if it has one.
pub(super) fn shown_scope(scope: u8) -> String {
    keyword::word_of(addr::SCOPES, |named| *named == scope).map_or_else(|| scope.to_string(), str::to_owned)
}

/// The order in which the kernel tells the prefixes of a table.
pub(super) trait Shown: apply::Narrow {
    /// `from` says of each whether its routes by source are meant.
    fn order(a: &::route::Prefix<Self>, b: &::route::Prefix<Self>, from: [bool; 2]) -> std::cmp::Ordering;
}

/// By address, of one address the longest first (`fib_table_dump`).
impl Shown for Ipv4Addr {
    fn order(a: &::route::Prefix<Self>, b: &::route::Prefix<Self>, _: [bool; 2]) -> std::cmp::Ordering {
        (a.addr(), Reverse(a.len())).cmp(&(b.addr(), Reverse(b.len())))
    }
}

/// A prefix behind all that it holds (`fib6_walk`), but its routes by source in front of that.
impl Shown for Ipv6Addr {
    fn order(a: &::route::Prefix<Self>, b: &::route::Prefix<Self>, [a_from, b_from]: [bool; 2]) -> std::cmp::Ordering {
        let in_front = |from: bool| if from { std::cmp::Ordering::Less } else { std::cmp::Ordering::Greater };
        match (a.contains(b.addr()), b.contains(a.addr())) {
            (true, true) if a.len() == b.len() => b_from.cmp(&a_from),
            (true, true) if a.len() < b.len() => in_front(a_from),
            (true, true) => in_front(b_from).reverse(),
            (true, false) => in_front(a_from),
            (false, true) => in_front(b_from).reverse(),
            (false, false) => a.addr().cmp(&b.addr()),
        }
    }
}

/// The type of a route, where it is none that is usual, and what it is for.
fn target<A: Shown, S: Source>(text: &mut String, place: &Place<'_, A, S>, entry: &RouteEntry, kind: Option<Kind>) -> std::fmt::Result {
    let kind = kind.unwrap_or_else(|| place.editor.kind_of(&entry.effect));
    if kind != Kind::Unicast {
        write!(text, "{} ", kind.word())?;
    }
    write!(text, "{} ", place.prefix)?;
    if let Some(from) = entry.select.from {
        write!(text, "from {from} ")?;
    }
    if entry.select.tos != 0 {
        write!(text, "tos {} ", dsfield::shown(entry.select.tos))?;
    }
    Ok(())
}

/// Metrics, a blank behind each.
pub(super) fn metrics(text: &mut String, mtu: u32, metrics: &Metrics) -> std::fmt::Result {
    if mtu != 0 {
        write!(text, "mtu {}{mtu} ", if metrics.mtu_lock { "lock " } else { "" })?;
    }
    if metrics.adv_mss != 0 {
        write!(text, "advmss {} ", metrics.adv_mss)?;
    }
    if metrics.hop_limit != 0 {
        write!(text, "hoplimit {} ", metrics.hop_limit)?;
    }
    Ok(())
}

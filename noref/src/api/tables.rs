//! Rows of the tables: routes, rules, neighbours. Their writer's lock is taken for a slice of them at a time.

use std::io;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

use control::show::{rule_action, rule_others};
use plane::Tables;
use route::{Editor, Encap, Family, Hop, IfIndex, Links, NeighbourState, Prefix, RouteEntry, Rule, TableId};

use super::answer::Answer;
use super::protocol::Body;
use super::rows::{NeighbourRow, RouteRow, RuleRow, WayRow};
use crate::run::Router;

/// Prefixes whose routes are read under one lock, and neighbours told in one line.
const SLICE: usize = 256;

/// Every route, by family, table and prefix: IPv4 first, a prefix's in the order in which they count.
///
/// # Errors
/// Those of `send`.
pub fn routes(router: &Router, send: &mut Answer<'_>) -> io::Result<()> {
    routes_of::<Ipv4Addr>(router, send)?;
    routes_of::<Ipv6Addr>(router, send)?;
    send.last(Body::Routes(Vec::new()))
}

fn routes_of<A: Family>(router: &Router, send: &mut Answer<'_>) -> io::Result<()> {
    let tables = router.editor(|editor| editor.tables::<A>());
    for (table, _) in tables {
        let mut prefixes: Vec<Prefix<A>> = router.editor(|editor| editor.routes::<A>(table).map(|(prefix, _)| prefix).collect());
        prefixes.sort_unstable();
        prefixes.dedup();
        for slice in prefixes.chunks(SLICE) {
            let rows = router.editor(|editor| {
                let row = |prefix: &Prefix<A>| {
                    let prefix = *prefix;
                    editor.routes_of(table, prefix).iter().map(move |entry| route(editor, router.tables(), table, prefix, entry))
                };
                slice.iter().flat_map(row).collect()
            });
            send.more(Body::Routes(rows))?;
        }
    }
    Ok(())
}

fn route<A: Family>(editor: &Editor, tables: &Tables, table: TableId, prefix: Prefix<A>, entry: &RouteEntry) -> RouteRow {
    let effect = &entry.effect;
    RouteRow {
        table: table.to_string(),
        prefix: with_length(prefix),
        kind: effect.kind.word().to_owned(),
        ways: editor.ways_of(effect).iter().map(|hop| way(editor.links(), tables, hop)).collect(),
        metric: entry.metric,
        protocol: entry.protocol,
        scope: entry.scope,
        src: effect.src.map(|src| src.to_string()),
        mtu: Some(effect.mtu).filter(|mtu| *mtu != 0),
    }
}

fn way(links: &Links, tables: &Tables, hop: &Hop) -> WayRow {
    let name = |dev: IfIndex| name(links, dev);
    let encap = match hop.encap {
        Encap::None => None,
        Encap::Seg6Local(id) => {
            let sid = tables.sids.snapshot(id.0);
            sid.map(|sid| format!("encap seg6local {}", sid.display_with(&|dev| Some(name(dev)))))
        }
        Encap::Seg6(id) => tables.policies.snapshot(id.0).map(|policy| policy.to_string()),
    };
    let dev = (hop.dev != IfIndex::KERNEL).then(|| name(hop.dev));
    WayRow { dev, via: hop.via.map(|via| via.to_string()), encap, weight: hop.weight }
}

/// A device's name; its number, as the kernel writes it, when it is gone.
pub fn name(links: &Links, dev: IfIndex) -> String {
    links.get(dev).map_or_else(|| format!("if{}", dev.0), |link| link.name.to_string())
}

fn with_length<A: Family>(prefix: Prefix<A>) -> String {
    format!("{}/{}", prefix.addr(), prefix.len())
}

/// The rules, in the order in which they are asked, IPv4 first.
pub fn rules(router: &Router) -> Vec<RuleRow> {
    router.editor(|editor| {
        let v4 = editor.rules::<Ipv4Addr>().iter().map(|rule| rule_row(editor, "inet", rule));
        v4.chain(editor.rules::<Ipv6Addr>().iter().map(|rule| rule_row(editor, "inet6", rule))).collect()
    })
}

fn rule_row<A: Family>(editor: &Editor, family: &str, rule: &Rule<A>) -> RuleRow {
    RuleRow {
        family: family.to_owned(),
        pref: rule.pref,
        from: rule.select.from.map(with_length),
        to: rule.select.to.map(with_length),
        iif: rule.select.iif.map(|iif| name(editor.links(), iif)),
        also: Some(rule_others(editor, rule)).filter(|also| !also.is_empty()),
        action: rule_action(editor, rule),
    }
}

/// Every neighbour of which something is known, by device and address.
///
/// # Errors
/// Those of `send`.
pub fn neighbours(router: &Router, send: &mut Answer<'_>) -> io::Result<()> {
    let mut all = router.tables().network.neighbours.list();
    all.sort_by_key(|neighbour| (neighbour.dev(), neighbour.addr()));
    for slice in all.chunks(SLICE) {
        let rows = router.editor(|editor| {
            let row = |neighbour: &std::sync::Arc<route::Neighbour>| {
                let (state, mac) = neighbour.load();
                let known = !matches!(state, NeighbourState::None | NeighbourState::Incomplete | NeighbourState::Failed);
                NeighbourRow {
                    address: neighbour.addr().to_string(),
                    dev: name(editor.links(), neighbour.dev()),
                    mac: known.then(|| mac.to_string()),
                    state: state_word(state).to_owned(),
                }
            };
            slice.iter().map(row).collect()
        });
        send.more(Body::Neighbours(rows))?;
    }
    send.last(Body::Neighbours(Vec::new()))
}

/// A neighbour's state, as `ip neigh` names it.
pub fn state_word(state: NeighbourState) -> &'static str {
    match state {
        NeighbourState::None => "none",
        NeighbourState::Incomplete => "incomplete",
        NeighbourState::Reachable => "reachable",
        NeighbourState::Stale => "stale",
        NeighbourState::Delay => "delay",
        NeighbourState::Probe => "probe",
        NeighbourState::Failed => "failed",
        NeighbourState::Permanent => "permanent",
    }
}

/// An interface's addresses with their lengths.
pub fn addresses(link: &route::Link) -> Vec<String> {
    let v4 = link.addrs4.iter().map(|a| (IpAddr::V4(a.addr), a.len));
    v4.chain(link.addrs6.iter().map(|a| (IpAddr::V6(a.addr), a.len))).map(|(addr, len)| format!("{addr}/{len}")).collect()
}

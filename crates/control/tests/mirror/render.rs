//! Tables as lines of text, devices by their names, so that tables made in different ways can be compared.

use std::collections::{BTreeMap, BTreeSet};

use control::mirror::Follower;
use plane::Tables;
use route::{Editor, Encap, Family, IfIndex, LinkKind, NexthopDoes, RouteEntry, Selector, TableId};

/// Everything that a packet's way depends on.
pub fn render(editor: &Editor, tables: &Tables, ids: &BTreeSet<TableId>) -> BTreeSet<String> {
    let mut lines = BTreeSet::new();
    links(editor, &mut lines);
    for id in ids {
        routes::<std::net::Ipv4Addr>(editor, tables, *id, &mut lines);
        routes::<std::net::Ipv6Addr>(editor, tables, *id, &mut lines);
    }
    rules::<std::net::Ipv4Addr>(editor, &mut lines);
    rules::<std::net::Ipv6Addr>(editor, &mut lines);
    for neighbour in editor.network().neighbours.list() {
        let (state, mac) = neighbour.load();
        if state.is_valid() {
            lines.insert(format!("neigh {} dev {} {mac}", neighbour.addr(), name(editor, neighbour.dev())));
        }
    }
    for (id, object) in editor.nexthops() {
        if let NexthopDoes::Group(_, Some(resilient)) = &object.does {
            let members: Vec<_> = resilient.buckets(editor.time()).map(|(member, _)| member).collect();
            lines.insert(format!("buckets of {id}: {members:?}"));
        }
    }
    lines.insert(format!("settings {:?}", editor.settings()));
    lines.insert(format!("keys {:?}", tables.hmac_keys.snapshot()));
    lines
}

/// The tables of a follower.
pub fn render_follower(follower: &Follower) -> BTreeSet<String> {
    render(follower.mirror().editor(), follower.mirror().tables(), &table_ids(follower))
}

/// The tables that have routes.
pub fn table_ids(follower: &Follower) -> BTreeSet<TableId> {
    let snapshot = &follower.follow().snapshot;
    snapshot.routes4.keys().map(|(table, _)| *table).chain(snapshot.routes6.keys().map(|(table, _)| *table)).collect()
}

/// What one has and the other has not.
pub fn differences(left: &BTreeSet<String>, right: &BTreeSet<String>) -> Vec<String> {
    let only_left = left.difference(right).map(|line| format!("- {line}"));
    only_left.chain(right.difference(left).map(|line| format!("+ {line}"))).collect()
}

fn name(editor: &Editor, index: IfIndex) -> String {
    if index == IfIndex::KERNEL {
        return "(kernel)".to_owned();
    }
    editor.links().get(index).map_or(format!("if{}", index.0), |link| link.name.to_string())
}

fn links(editor: &Editor, lines: &mut BTreeSet<String>) {
    for link in editor.links().iter() {
        let kind = match link.kind {
            LinkKind::Port(place) => format!("port {place}"),
            LinkKind::Loopback => "loopback".to_owned(),
            LinkKind::Vrf(table) => format!("vrf {table}"),
            LinkKind::Vlan(tag) => format!("vlan {:x}/{} on {}", tag.protocol, tag.id, tag.parent.0),
            LinkKind::Dummy => "dummy".to_owned(),
            LinkKind::Elsewhere => "elsewhere".to_owned(),
        };
        let master = link.master.map(|master| name(editor, master));
        lines.insert(format!("link {} {kind} {} mtu {} up {} master {master:?}", link.name, link.mac, link.mtu, link.up));
        lines.insert(format!("conf4 {} {:?}", link.name, link.conf4));
        // Without IPv6 the kernel has no such settings.
        if link.has_ipv6() {
            lines.insert(format!("conf6 {} {:?}", link.name, link.conf6));
        }
        for address in &link.addrs4 {
            lines.insert(format!("addr {} dev {} secondary {}", address.addr, link.name, address.secondary));
        }
        for address in &link.addrs6 {
            lines.insert(format!("addr {}/{} dev {}", address.addr, address.len, link.name));
        }
    }
}

fn routes<A: Family>(editor: &Editor, tables: &Tables, id: TableId, lines: &mut BTreeSet<String>) {
    let mut joined = BTreeMap::<_, BTreeSet<String>>::new();
    for (prefix, entry) in editor.routes::<A>(id) {
        let line = format!("route table {id} {prefix} {}", route::<A>(editor, tables, entry));
        match line.split_once(" | ") {
            // Ways of one route, told of as one or several.
            Some((head, ways)) if entry.joins::<A>() => {
                joined.entry(head.to_owned()).or_default().extend(ways.split(" | ").map(str::to_owned))
            }
            _ => _ = lines.insert(line),
        }
    }
    lines.extend(joined.into_iter().map(|(head, ways)| format!("{head} | {}", Vec::from_iter(ways).join(" | "))));
}

fn route<A: Family>(editor: &Editor, tables: &Tables, entry: &RouteEntry) -> String {
    let mut text = format!("{} metric {} proto {}", editor.kind_of(&entry.effect).word(), entry.metric, entry.protocol);
    // IPv6 routes have none, and noref's file says another one of headends.
    if A::BITS == 32 && editor.ways_of(&entry.effect).iter().all(|hop| hop.encap == Encap::None) {
        text += &format!(" scope {}", entry.scope);
    }
    text += &format!(" mtu {} src {:?}", entry.effect.mtu, entry.effect.src);
    // A mirror has not what the kernel does not use.
    let ways = editor.ways_of(&entry.effect);
    for hop in ways.iter().filter(|hop| ways.len() == 1 || !editor.is_dead::<A>(hop.dev)) {
        text += &format!(" | {:?} dev {} weight {}", hop.via, name(editor, hop.dev), hop.weight);
        match hop.encap {
            Encap::None => {}
            Encap::Seg6(id) => text += &format!(" {}", tables.policies.snapshot(id.0).expect("its policy")),
            Encap::Seg6Local(id) => {
                let sid = tables.sids.snapshot(id.0).expect("its SID");
                text += &format!(" {} count {}", sid.display_with(&|index| Some(name(editor, index))), sid.attributes().count);
            }
        }
    }
    text
}

fn rules<A: Family>(editor: &Editor, lines: &mut BTreeSet<String>) {
    for (place, rule) in editor.rules::<A>().iter().enumerate() {
        let devices = [rule.select.iif, rule.select.oif].map(|dev| dev.map(|dev| name(editor, dev)));
        let select = Selector { iif: None, oif: None, ..rule.select.clone() };
        let suppress = (rule.suppress_len, rule.suppress_group);
        lines.insert(format!("rule v{} {place}: {} {select:?} {devices:?} {:?} {suppress:?}", A::BITS, rule.pref, rule.action));
    }
}

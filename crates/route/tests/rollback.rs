//! Changes that are taken back before a worker has seen them.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

use route::{
    Action, AddrSpec, Editor, Encap, Flow, HopSpec, IfIndex, LinkChange, NeighbourState, PolicyId, Prefix, Put, RouteRefs, RouteSpec, Rule,
    TableId,
};

const UP: LinkChange = LinkChange { mac: None, mtu: None, up: Some(true), master: None, group: None };

fn route(editor: &mut Editor, net: u8, via: u8, encap: Encap, table: Option<TableId>, how: Put) {
    let dev = editor.links().named("e0").map(|link| link.index);
    let hop = HopSpec { dev, via: Some(Ipv4Addr::new(10, 0, 0, via).into()), onlink: false, weight: 1, encap };
    let prefix = Prefix::new(Ipv4Addr::new(10, net, 0, 0), 16).unwrap();
    let spec = RouteSpec { table, ..RouteSpec::new(prefix, vec![hop]) };
    editor.route_put(spec, how).unwrap();
}

fn router() -> (Editor, IfIndex) {
    let mut editor = Editor::new();
    let e0 = editor.port_add("e0", 0).unwrap();
    editor.link_set(e0, UP).unwrap();
    for addr in ["10.0.0.1", "fd00::1"] {
        editor.addr_add(e0, addr.parse().unwrap(), AddrSpec { len: 24, ..AddrSpec::default() }).unwrap();
    }
    route(&mut editor, 9, 2, Encap::Seg6(PolicyId(1)), None, Put::Add);
    editor.neighbour_put(e0, "10.0.0.2".parse().unwrap(), NeighbourState::Permanent, wire::Mac([2; 6]), false).unwrap();
    editor.commit();
    (editor, e0)
}

/// Everything that there is, as text.
fn state(editor: &Editor) -> String {
    let mut shown = Vec::new();
    for table in [TableId::MAIN, TableId::LOCAL, TableId(7)] {
        shown.push(format!("{table} {} {}", editor.table_exists::<Ipv4Addr>(table), editor.table_exists::<Ipv6Addr>(table)));
        shown.extend(editor.routes::<Ipv4Addr>(table).map(|(prefix, entry)| format!("{table} {prefix} {entry:?}")));
        shown.extend(editor.routes::<Ipv6Addr>(table).map(|(prefix, entry)| format!("{table} {prefix} {entry:?}")));
    }
    shown.extend(editor.links().iter().map(|link| format!("{link:?}")));
    shown.push(format!("{:?} {:?}", editor.rules::<Ipv4Addr>(), editor.rules::<Ipv6Addr>()));
    shown.push(format!("{:?}", editor.settings()));
    let neighbour = editor.neighbour(IfIndex(2), "10.0.0.2".parse().unwrap());
    shown.push(format!("{neighbour:?}"));
    shown.sort();
    shown.join("\n")
}

fn device(editor: &Editor, dst: [u8; 4]) -> Option<IpAddr> {
    let network = editor.network();
    let flow = Flow::new(dst.into(), IfIndex(2));
    network.domain().reader().burst(|guard| {
        let answer = network.v4.lookup(guard, &flow, RouteRefs::Noref);
        answer.dst.nexthop.as_ref().and_then(|hop| hop.gateway.as_ref()).map(|gateway| gateway.addr())
    })
}

#[test]
fn every_kind_of_change_is_taken_back() {
    let (mut editor, e0) = router();
    let before = state(&editor);
    route(&mut editor, 9, 3, Encap::None, None, Put::Replace);
    route(&mut editor, 8, 3, Encap::None, None, Put::Add);
    route(&mut editor, 8, 4, Encap::None, Some(TableId(7)), Put::Add);
    editor.rule_add(Rule { pref: 5, ..Rule::<Ipv4Addr>::all(5, Action::Lookup(TableId(7))) }).unwrap();
    editor.rule_del(|rule: &Rule<Ipv6Addr>| rule.pref == 0).unwrap();
    editor.vrf_add("red", TableId(7)).unwrap();
    editor.neighbour_del(e0, "10.0.0.2".parse().unwrap()).unwrap();
    editor.settings_mut().default_ttl = 7;
    editor.conf4(None, |conf| conf.forwarding = true).unwrap();
    editor.link_set(e0, LinkChange { up: Some(false), ..UP }).unwrap();
    assert_ne!(state(&editor), before);
    editor.rollback();
    assert_eq!(state(&editor), before);

    // It goes on from there as if nothing had been.
    route(&mut editor, 8, 3, Encap::None, None, Put::Add);
    editor.commit();
    assert_eq!(device(&editor, [10, 8, 0, 1]), Some("10.0.0.3".parse().unwrap()));
    assert_eq!(device(&editor, [10, 9, 0, 1]), Some("10.0.0.2".parse().unwrap()));
    editor.route_del(TableId::MAIN, Prefix::new(Ipv4Addr::new(10, 8, 0, 0), 16).unwrap(), |_| true).unwrap();
    editor.commit();
    assert_eq!(state(&editor), before);
}

#[test]
fn what_was_never_committed_was_never_there() {
    let mut editor = Editor::new();
    let before = state(&editor);
    editor.port_add("e0", 0).unwrap();
    editor.rollback();
    assert_eq!(state(&editor), before);
    assert_eq!(editor.rules::<Ipv4Addr>().len(), 3);
}

#[test]
fn no_worker_sees_a_change_before_its_commit() {
    let (mut editor, e0) = router();
    let neighbour = editor.network().neighbours.get(e0, "10.0.0.2".parse().unwrap()).unwrap();
    editor.neighbour_put(e0, "10.0.0.2".parse().unwrap(), NeighbourState::Permanent, wire::Mac([4; 6]), true).unwrap();
    route(&mut editor, 9, 3, Encap::None, None, Put::Replace);
    assert_eq!((neighbour.mac(), device(&editor, [10, 9, 0, 1])), (Some(wire::Mac([2; 6])), Some("10.0.0.2".parse().unwrap())));
    editor.commit();
    assert_eq!((neighbour.mac(), device(&editor, [10, 9, 0, 1])), (Some(wire::Mac([4; 6])), Some("10.0.0.3".parse().unwrap())));
}

#[test]
fn a_commit_tells_what_is_named_no_more() {
    let (mut editor, _) = router();
    let policy = Encap::Seg6(PolicyId(1));
    route(&mut editor, 9, 3, Encap::None, None, Put::Replace);
    editor.rollback();
    editor.commit();
    assert_eq!((editor.unnamed().count(), editor.is_named(policy)), (0, true));
    route(&mut editor, 9, 3, Encap::None, None, Put::Replace);
    editor.commit();
    assert_eq!((editor.unnamed().collect::<Vec<_>>(), editor.is_named(policy)), (vec![policy], false));
    editor.commit();
    assert_eq!(editor.unnamed().count(), 0);
}

#[test]
fn a_route_goes_its_other_ways_while_a_device_is_down() {
    let (mut editor, e0) = router();
    let e1 = editor.port_add("e1", 1).unwrap();
    editor.link_set(e1, UP).unwrap();
    editor.addr_add(e1, "10.1.0.1".parse().unwrap(), AddrSpec { len: 24, ..AddrSpec::default() }).unwrap();
    let hop = |dev, via: [u8; 4]| HopSpec::new(dev, Some(IpAddr::from(via)));
    let prefix = Prefix::new(Ipv4Addr::new(10, 7, 0, 0), 16).unwrap();
    let spec = RouteSpec::new(prefix, vec![hop(e0, [10, 0, 0, 2]), hop(e1, [10, 1, 0, 2])]);
    editor.route_put(spec, Put::Add).unwrap();
    editor.commit();
    let ways = |editor: &Editor| {
        let network = editor.network().clone();
        let dst = Ipv4Addr::new(10, 7, 0, 1);
        let flow = Flow::new(dst, e0);
        let mut reader = network.domain().reader();
        reader.burst(|guard| {
            let answer = network.v4.lookup(guard, &flow, RouteRefs::Noref);
            answer.dst.hops().map(|hop| hop.dev).collect::<Vec<_>>()
        })
    };
    assert_eq!(ways(&editor), [e0, e1]);
    editor.link_set(e0, LinkChange { up: Some(false), ..UP }).unwrap();
    editor.rollback();
    editor.commit();
    assert_eq!(ways(&editor), [e0, e1]);
    editor.link_set(e0, LinkChange { up: Some(false), ..UP }).unwrap();
    editor.commit();
    assert_eq!(ways(&editor), [e1]);
    assert!(editor.is_dead::<Ipv4Addr>(e0) && !editor.is_dead::<Ipv4Addr>(e1));
    editor.link_set(e0, UP).unwrap();
    editor.commit();
    assert_eq!(ways(&editor), [e0, e1]);
    editor.link_set(e0, LinkChange { up: Some(false), ..UP }).unwrap();
    editor.link_set(e1, LinkChange { up: Some(false), ..UP }).unwrap();
    editor.commit();
    assert!(ways(&editor).is_empty());
}

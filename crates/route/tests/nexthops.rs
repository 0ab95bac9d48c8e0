//! Nexthop objects: what their routes do, and how soon workers see a change of one.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use route::{
    AddrSpec, ConfigError, Editor, Flow, HopSpec, IfIndex, LinkChange, More, NexthopSpec, Prefix, Put, RouteRefs, RouteSpec, TableId,
};

fn lab() -> (Editor, [IfIndex; 2]) {
    let mut editor = Editor::new();
    let ports = ["e0", "e1"].map(|name| editor.port_add(name, usize::from(name == "e1")).unwrap());
    for (n, port) in (0..).zip(ports) {
        editor.link_set(port, LinkChange { up: Some(true), ..LinkChange::default() }).unwrap();
        editor.addr_add(port, IpAddr::V4(Ipv4Addr::new(10, 0, n, 1)), AddrSpec { len: 24, ..AddrSpec::default() }).unwrap();
    }
    (editor, ports)
}

fn via(dev: IfIndex, n: u8, host: u8) -> NexthopSpec {
    let via = Some(IpAddr::V4(Ipv4Addr::new(10, 0, n, host)));
    NexthopSpec::Way(HopSpec::new(dev, via))
}

fn by_object(prefix: Prefix<Ipv4Addr>, nexthop: u32) -> RouteSpec<Ipv4Addr> {
    RouteSpec { more: More { nexthop, ..More::default() }, ..RouteSpec::new(prefix, Vec::new()) }
}

fn flow(dst: Ipv4Addr) -> Flow<Ipv4Addr> {
    Flow::new(dst, IfIndex::LO)
}

/// Where packets to an address go: gateways, or the kind of a route without any.
fn gateways(editor: &Editor, dst: Ipv4Addr) -> Vec<String> {
    let network = editor.network();
    let mut reader = network.domain().reader();
    reader.burst(|guard| {
        let answer = network.v4.lookup(guard, &flow(dst), RouteRefs::Noref);
        let hops = answer.dst.hops().map(|hop| hop.gateway.as_ref().map_or("link".into(), |gateway| gateway.addr().to_string()));
        let hops: Vec<_> = hops.collect();
        if hops.is_empty() { vec![answer.dst.kind.word().to_owned()] } else { hops }
    })
}

#[test]
fn a_route_does_what_its_object_says_and_goes_with_it() {
    let (mut editor, [e0, e1]) = lab();
    let prefix = Prefix::new(Ipv4Addr::new(10, 9, 0, 0), 24).unwrap();
    let to = Ipv4Addr::new(10, 9, 0, 9);
    editor.nexthop_put(Some(1), &via(e0, 0, 2), false, 0, false).unwrap();
    editor.nexthop_put(Some(2), &via(e1, 1, 2), false, 0, false).unwrap();
    editor.nexthop_put(Some(9), &NexthopSpec::Group(vec![(1, 1), (2, 3)], None), false, 0, false).unwrap();
    editor.route_put(by_object(prefix, 9), Put::Add).unwrap();
    editor.commit();
    assert_eq!(gateways(&editor, to), ["10.0.0.2", "10.0.1.2"]);
    editor.nexthop_put(Some(1), &via(e0, 0, 7), false, 0, true).unwrap();
    editor.commit();
    assert_eq!(gateways(&editor, to), ["10.0.0.7", "10.0.1.2"], "a member's change is its groups'");
    editor.nexthop_put(Some(1), &via(e0, 0, 8), false, 0, true).unwrap();
    editor.nexthop_del(2).unwrap();
    editor.rollback();
    editor.commit();
    assert_eq!(gateways(&editor, to), ["10.0.0.7", "10.0.1.2"], "what was taken back did nothing");
    editor.link_set(e1, LinkChange { up: Some(false), ..LinkChange::default() }).unwrap();
    editor.commit();
    assert_eq!((gateways(&editor, to), editor.nexthop(2)), (vec!["10.0.0.7".to_owned()], None));
    editor.nexthop_put(Some(1), &NexthopSpec::Blackhole, false, 0, true).unwrap();
    editor.commit();
    assert_eq!(gateways(&editor, to), ["blackhole"]);
    editor.nexthop_del(1).unwrap();
    editor.commit();
    assert_eq!((gateways(&editor, to), editor.nexthops().count()), (vec!["no route".to_owned()], 0));
}

#[test]
fn what_can_not_be_is_refused_and_changes_nothing() {
    let (mut editor, [e0, e1]) = lab();
    editor.nexthop_put(Some(1), &via(e0, 0, 2), false, 0, false).unwrap();
    editor.nexthop_put(Some(9), &NexthopSpec::Group(vec![(1, 1)], None), false, 0, false).unwrap();
    editor.nexthop_put(Some(3), &NexthopSpec::Blackhole, false, 0, false).unwrap();
    let mut put = |id, spec, replace| editor.nexthop_put(Some(id), &spec, false, 0, replace).unwrap_err();
    assert_eq!(put(1, via(e1, 1, 2), false), ConfigError::Exists("nexthop"));
    assert_eq!(put(5, NexthopSpec::Group(vec![(7, 1)], None), false), ConfigError::Missing("nexthop"));
    for (id, spec) in [
        (9, via(e1, 1, 2)),
        (1, NexthopSpec::Group(vec![(3, 1)], None)),
        (5, NexthopSpec::Group(vec![(1, 1), (1, 1)], None)),
        (5, NexthopSpec::Group(vec![(9, 1)], None)),
        (5, NexthopSpec::Group(vec![(1, 1), (3, 1)], None)),
        (5, NexthopSpec::Group(vec![], None)),
        (0, NexthopSpec::Blackhole),
    ] {
        assert!(matches!(put(id, spec.clone(), true), ConfigError::Invalid(_)), "{id} {spec:?}");
    }
    assert!(matches!(put(5, via(e0, 1, 2), false), ConfigError::GatewayUnreachable(_)));
    let v6 = RouteSpec {
        table: Some(TableId::MAIN),
        more: More { nexthop: 1, ..More::default() },
        ..RouteSpec::new(Prefix::new(Ipv6Addr::new(0xfd09, 0, 0, 0, 0, 0, 0, 0), 64).unwrap(), Vec::new())
    };
    assert!(matches!(editor.route_put(v6, Put::Add), Err(ConfigError::Invalid(_))));
    assert_eq!(editor.nexthops().count(), 3);
}

#[test]
#[ignore = "a million routes take a while in a debug build: the figure is of `cargo test --release -p noref-route --test nexthops -- --ignored --nocapture`"]
fn a_million_prefixes_go_another_way_within_a_millisecond() {
    change_seen_within(1_000_000, Duration::from_millis(1));
}

#[test]
fn ten_thousand_prefixes_go_another_way_with_one_change() {
    // Much more than it takes, on a machine that does other things too; a change of each prefix would take longer still.
    change_seen_within(10_000, Duration::from_millis(50));
}

/// Puts prefixes behind one object and measures, a few times, how long it takes from the request to replace it until a reader sees it under the last of them.
fn change_seen_within(prefixes: u32, limit: Duration) {
    let (mut editor, [e0, e1]) = lab();
    editor.nexthop_put(Some(1), &via(e0, 0, 100), false, 0, false).unwrap();
    editor.nexthop_put(Some(9), &NexthopSpec::Group(vec![(1, 1)], None), false, 0, false).unwrap();
    let prefix = |n: u32| Prefix::new(Ipv4Addr::from(0x1400_0000 + (n << 8)), 24).unwrap();
    for n in 0..prefixes {
        editor.route_put(by_object(prefix(n), 9), Put::Add).unwrap();
    }
    editor.commit();
    let network = editor.network().clone();
    let (seen, stop) = (AtomicU32::new(0), AtomicBool::new(false));
    let mut times = thread::scope(|scope| {
        scope.spawn(|| {
            let mut reader = network.domain().reader();
            let last = flow(prefix(prefixes - 1).addr());
            while !stop.load(Ordering::Relaxed) {
                let host = reader.burst(|guard| {
                    let answer = network.v4.lookup(guard, &last, RouteRefs::Noref);
                    answer.dst.nexthop.as_ref().and_then(|hop| hop.gateway.as_ref()).map(|gateway| gateway.addr())
                });
                let Some(IpAddr::V4(host)) = host else { continue };
                seen.store(host.octets()[3].into(), Ordering::Release);
            }
        });
        let mut times = Vec::new();
        for host in 101..121 {
            let began = Instant::now();
            editor.nexthop_put(Some(1), &if host % 2 == 0 { via(e0, 0, host) } else { via(e1, 1, host) }, false, 0, true).unwrap();
            editor.commit();
            while seen.load(Ordering::Acquire) != u32::from(host) {
                std::hint::spin_loop();
            }
            times.push(began.elapsed());
        }
        stop.store(true, Ordering::Relaxed);
        times
    });
    times.sort_unstable();
    println!(
        "{prefixes} prefixes: a change of their nexthop seen after {:?} (median), {:?} (longest)",
        times[times.len() / 2],
        times[times.len() - 1]
    );
    assert!(times[times.len() / 2] < limit, "{times:?}");
}

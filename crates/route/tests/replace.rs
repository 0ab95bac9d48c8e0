//! Routes that are replaced while they are in use.

use std::net::{IpAddr, Ipv4Addr};
use std::sync::atomic::{AtomicBool, Ordering};

use route::{AddrSpec, Editor, Flow, HopSpec, IfIndex, Kind, LinkChange, Prefix, Put, RouteRefs, RouteSpec};

/// Prefixes replaced together: enough for the match table to be changed at once.
const PREFIXES: u8 = 200;

fn prefix(n: u8) -> Prefix<Ipv4Addr> {
    Prefix::new(Ipv4Addr::new(10, 9, n, 0), 24).unwrap()
}

fn put(editor: &mut Editor, dev: IfIndex, n: u8, via: u8, mtu: u32) {
    let hop = HopSpec::new(dev, Some(IpAddr::V4(Ipv4Addr::new(10, 0, 0, via))));
    let spec = RouteSpec { mtu, ..RouteSpec::new(prefix(n), vec![hop]) };
    editor.route_put(spec, Put::Replace).unwrap();
}

#[test]
fn a_prefix_is_never_without_a_route_while_its_route_is_replaced() {
    let mut editor = Editor::new();
    let e0 = editor.port_add("e0", 0).unwrap();
    editor.link_set(e0, LinkChange { up: Some(true), ..LinkChange::default() }).unwrap();
    editor.addr_add(e0, IpAddr::V4(Ipv4Addr::new(10, 0, 0, 1)), AddrSpec { len: 24, ..AddrSpec::default() }).unwrap();
    (0..PREFIXES).for_each(|n| put(&mut editor, e0, n, 2, 1400));
    editor.commit();

    let network = editor.network().clone();
    let done = AtomicBool::new(false);
    std::thread::scope(|scope| {
        scope.spawn(|| {
            let mut reader = network.domain().reader();
            let mut n = 0;
            while !done.load(Ordering::Relaxed) {
                n = (n + 1) % PREFIXES;
                let dst = Ipv4Addr::new(10, 9, n, 9);
                let flow = Flow::new(dst, e0);
                let kind = reader.burst(|guard| network.v4.lookup(guard, &flow, RouteRefs::Noref).dst.kind);
                assert_eq!(kind, Kind::Unicast, "{dst}");
            }
        });
        for round in 0..100_u32 {
            (0..PREFIXES).for_each(|n| put(&mut editor, e0, n, 2 + (round % 2) as u8, 1400 + u32::from(n) + round));
            editor.commit();
        }
        done.store(true, Ordering::Relaxed);
    });
}

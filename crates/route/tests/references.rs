//! Who counts references to a route, and when.

use std::net::{Ipv4Addr, Ipv6Addr};
use std::sync::Arc;

use route::{Address, DstRef, Editor, Flow, HopSpec, IfIndex, Kind, LinkChange, Prefix, Put, RouteRefs, RouteSpec, TableId};

/// A router with one port, up, and a default route that leads out of it.
fn router() -> (Editor, IfIndex) {
    let mut editor = Editor::new();
    let port = editor.port_add("e0", 0).unwrap();
    editor.link_set(port, LinkChange { up: Some(true), ..LinkChange::default() }).unwrap();
    editor.route_put(default::<Ipv4Addr>(port), Put::Add).unwrap();
    editor.route_put(default::<Ipv6Addr>(port), Put::Add).unwrap();
    editor.commit();
    (editor, port)
}

fn default<A: Address>(dev: IfIndex) -> RouteSpec<A> {
    RouteSpec::new(Prefix::new(A::UNSPECIFIED, 0).unwrap(), vec![HopSpec::new(dev, None)])
}

fn remove_default(editor: &mut Editor) {
    editor.route_del(TableId::MAIN, Prefix::new(Ipv4Addr::UNSPECIFIED, 0).unwrap(), |_| true).unwrap();
    editor.commit();
}

fn flow<A: Address>(dst: A, iif: IfIndex) -> Flow<A> {
    Flow::new(dst, iif)
}

/// Strong references to a route.
fn references(route: &DstRef<'_>) -> usize {
    Arc::strong_count(&route.to_arc()) - 1
}

#[test]
fn a_borrowed_route_is_not_counted_and_a_counted_one_is_for_as_long_as_it_is_in_hand() {
    let (editor, port) = router();
    let network = editor.network();
    let six = flow(Ipv6Addr::new(0x2001, 0xdb8, 1, 2, 3, 4, 5, 6), port);
    network.domain().reader().burst(|guard| {
        let first = network.v6.lookup(guard, &six, RouteRefs::Noref).dst;
        let at_rest = references(&first);
        let borrowed: Vec<_> = (0..10).map(|_| network.v6.lookup(guard, &six, RouteRefs::Noref).dst).collect();
        assert!(borrowed.iter().all(|route| !route.is_held() && route.ptr_eq(&first)));
        assert_eq!(references(&first), at_rest);

        let counted: Vec<_> = (0..10).map(|_| network.v6.lookup(guard, &six, RouteRefs::Counted).dst).collect();
        assert!(counted.iter().all(|route| route.is_held() && route.ptr_eq(&first)));
        assert_eq!(references(&first), at_rest + 10);
        drop(counted);
        assert_eq!(references(&first), at_rest);
    });
}

#[test]
fn all_misses_share_one_null_entry_which_is_counted_like_any_other() {
    let (mut editor, port) = router();
    remove_default(&mut editor);
    let network = editor.network();
    let miss = |n| flow(Ipv4Addr::new(192, 0, 2, n), port);
    network.domain().reader().burst(|guard| {
        let first = network.v4.lookup(guard, &miss(1), RouteRefs::Noref).dst;
        let at_rest = references(&first);
        let counted: Vec<_> = (2..5).map(|n| network.v4.lookup(guard, &miss(n), RouteRefs::Counted).dst).collect();
        assert!(first.kind == Kind::NoRoute && counted.iter().all(|route| route.ptr_eq(&first)));
        assert_eq!(references(&first), at_rest + 3);
    });
}

#[test]
fn a_held_route_outlives_its_burst_and_its_table() {
    let (mut editor, port) = router();
    let flow = flow(Ipv4Addr::new(192, 0, 2, 1), port);
    let network = editor.network().clone();
    let held = network.domain().reader().burst(|guard| network.v4.lookup(guard, &flow, RouteRefs::Noref).dst.hold());
    remove_default(&mut editor);
    network.domain().reader().burst(|guard| {
        assert_eq!(network.v4.lookup(guard, &flow, RouteRefs::Noref).dst.kind, Kind::NoRoute);
    });
    assert_eq!((held.kind, held.dev()), (Kind::Unicast, port));
}

//! Resilient groups of nexthop objects. The tables in the first tests are those that Linux 6.18 has after such a history.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};
use std::num::NonZeroU16;

use proptest::prelude::*;
use route::{
    Address, ConfigError, Editor, Fib, Flow, HopSpec, IfIndex, LinkChange, More, NexthopDoes, NexthopSpec, Prefix, Put, Resilient,
    ResilientSpec, RouteRefs, RouteSpec, TableId, Tick,
};

const DST4: Ipv4Addr = Ipv4Addr::new(10, 9, 0, 9);
const DST6: Ipv6Addr = Ipv6Addr::new(0xfd09, 0, 0, 0, 0, 0, 0, 9);
const GROUP: u32 = 100;

/// A router with the nexthop objects 1 to 9, IPv6 ones, that stands at one second.
fn lab() -> Editor {
    let mut editor = Editor::new();
    let port = editor.port_add("e0", 0).unwrap();
    editor.link_set(port, LinkChange { up: Some(true), ..LinkChange::default() }).unwrap();
    for n in 1..10 {
        let via = Some(IpAddr::V6(Ipv6Addr::new(0xfe80, 0, 0, 0, 0, 0, 0, n)));
        editor.nexthop_put(Some(n.into()), &NexthopSpec::Way(HopSpec::new(port, via)), true, 0, false).unwrap();
    }
    editor.set_time(Tick(Tick::PER_SECOND));
    editor
}

fn spec(buckets: u16, idle: u32, unbalanced: u32) -> ResilientSpec {
    ResilientSpec { buckets: NonZeroU16::new(buckets), idle_timer: Some(idle * 100), unbalanced_timer: Some(unbalanced * 100) }
}

fn put(editor: &mut Editor, members: &[(u32, u16)], spec: ResilientSpec, replace: bool) -> Result<(), ConfigError> {
    editor.nexthop_put(Some(GROUP), &NexthopSpec::Group(members.to_vec(), Some(spec)), false, 0, replace)?;
    editor.commit();
    Ok(())
}

fn route<A: route::Family>(editor: &mut Editor, dst: A) {
    let more = More { nexthop: GROUP, ..More::default() };
    let prefix = Prefix::new(dst, A::BITS).unwrap();
    editor.route_put(RouteSpec { table: Some(TableId::MAIN), more, ..RouteSpec::new(prefix, Vec::new()) }, Put::Add).unwrap();
    editor.commit();
}

/// Packets of flows with these hashes pass, at the editor's time; the gateways they take.
fn pass<A: Address>(editor: &Editor, fib: &Fib<A>, dst: A, hashes: impl IntoIterator<Item = u32>) -> Vec<u32> {
    let mut reader = editor.network().domain().reader();
    reader.burst(|guard| {
        let answer = fib.lookup(guard, &Flow::new(dst, IfIndex::LO), RouteRefs::Noref);
        let taken = |hash| match answer.dst.select(hash, false, editor.time())?.1.gateway.as_ref()?.addr() {
            IpAddr::V6(gateway) => Some(gateway.segments()[7].into()),
            IpAddr::V4(_) => None,
        };
        hashes.into_iter().filter_map(taken).collect()
    })
}

fn later(editor: &mut Editor, ticks: u64) {
    editor.set_time(Tick(editor.time().0 + ticks));
}

fn group(editor: &Editor) -> &Resilient {
    match editor.nexthop(GROUP).map(|object| &object.does) {
        Some(NexthopDoes::Group(_, Some(resilient))) => resilient,
        other => panic!("{other:?}"),
    }
}

fn table(editor: &Editor) -> Vec<u32> {
    group(editor).buckets(editor.time()).map(|(nexthop, _)| nexthop).collect()
}

#[test]
fn a_new_group_shares_its_buckets_by_weight() {
    for (members, buckets, expected) in [
        (&[(1, 1), (2, 1)][..], 8, &[2, 2, 2, 2, 1, 1, 1, 1][..]),
        (&[(1, 3), (2, 1), (3, 2)], 7, &[3, 3, 2, 1, 1, 1, 1]),
        (&[(1, 1), (2, 1), (3, 1)], 2, &[3, 1]),
        (&[(1, 2), (2, 3), (3, 5)], 13, &[3, 3, 3, 3, 3, 3, 2, 2, 2, 2, 1, 1, 1]),
    ] {
        let mut editor = lab();
        put(&mut editor, members, spec(buckets, 120, 0), false).unwrap();
        assert_eq!((table(&editor).as_slice(), group(&editor).due()), (expected, None), "{members:?}");
    }
}

#[test]
fn flows_keep_their_member_until_they_pause() {
    let mut editor = lab();
    put(&mut editor, &[(1, 1), (2, 1)], spec(6, 3, 0), false).unwrap();
    route(&mut editor, DST6);
    let network = editor.network().clone();
    later(&mut editor, 52);
    assert_eq!(pass(&editor, &network.v6, DST6, 0..12), [2, 2, 2, 1, 1, 1, 2, 2, 2, 1, 1, 1], "by the hash modulo the buckets");
    later(&mut editor, 5);
    put(&mut editor, &[(1, 1), (2, 1), (3, 1)], ResilientSpec::default(), true).unwrap();
    assert_eq!((table(&editor), editor.keep_up()), (vec![2, 2, 2, 1, 1, 1], Some(Tick(100 + 52 + 300))), "all in use");
    later(&mut editor, 120);
    assert_eq!(group(&editor).unbalanced_time(editor.time()), 120);
    pass(&editor, &network.v6, DST6, [0]);
    later(&mut editor, 175);
    editor.keep_up();
    assert_eq!(table(&editor), [2, 3, 2, 3, 1, 1], "two go, of the first that paused, and none that is in use");
    assert_eq!((group(&editor).unbalanced_time(editor.time()), group(&editor).due()), (0, None));
    assert_eq!(pass(&editor, &network.v6, DST6, 0..6), [2, 3, 2, 3, 1, 1], "and workers see it");
}

#[test]
fn buckets_in_use_go_when_a_group_was_out_of_balance_for_too_long() {
    let mut editor = lab();
    put(&mut editor, &[(1, 1), (2, 1), (3, 1)], spec(6, 100, 2), false).unwrap();
    route(&mut editor, DST6);
    let network = editor.network().clone();
    assert_eq!(table(&editor), [3, 3, 2, 2, 1, 1]);
    later(&mut editor, 1);
    pass(&editor, &network.v6, DST6, 0..6);
    put(&mut editor, &[(2, 3), (1, 1)], ResilientSpec::default(), true).unwrap();
    assert_eq!(table(&editor), [2, 2, 2, 2, 1, 1], "those of a member that is gone go at once");
    assert_eq!(editor.keep_up(), Some(Tick(101 + 200)));
    later(&mut editor, 200);
    pass(&editor, &network.v6, DST6, 0..6);
    editor.keep_up();
    assert_eq!(table(&editor), [2, 2, 2, 2, 1, 1]);
    // Linux asks for more than the time, and looks twice a second.
    later(&mut editor, 50);
    pass(&editor, &network.v6, DST6, 0..6);
    assert_eq!((editor.keep_up(), table(&editor)), (None, vec![2, 2, 2, 2, 2, 1]));
}

#[test]
fn the_buckets_of_a_member_that_goes_move_at_once_and_others_stay() {
    let mut editor = lab();
    put(&mut editor, &[(1, 1), (2, 5)], spec(6, 100, 0), false).unwrap();
    route(&mut editor, DST6);
    later(&mut editor, 1);
    pass(&editor, &editor.network().v6, DST6, 0..6);
    put(&mut editor, &[(2, 1), (1, 1), (3, 1)], ResilientSpec::default(), true).unwrap();
    assert_eq!(table(&editor), [2, 2, 2, 2, 2, 1]);
    editor.nexthop_del(2).unwrap();
    editor.rollback();
    assert_eq!(table(&editor), [2, 2, 2, 2, 2, 1], "what was taken back moved none");
    editor.nexthop_del(2).unwrap();
    editor.commit();
    assert_eq!((table(&editor), group(&editor).due()), (vec![3, 3, 3, 1, 1, 1], None));
}

#[test]
fn one_member_alone_has_its_flows_noted_in_ipv6_only() {
    for (v6, expected) in [(true, [1, 1, 1, 1]), (false, [3, 3, 1, 1])] {
        let mut editor = lab();
        put(&mut editor, &[(1, 1)], spec(4, 100, 0), false).unwrap();
        route(&mut editor, DST4);
        route(&mut editor, DST6);
        later(&mut editor, 1);
        let network = editor.network();
        let taken = if v6 { pass(&editor, &network.v6, DST6, 0..4) } else { pass(&editor, &network.v4, DST4, 0..4) };
        assert_eq!(taken, [1; 4]);
        put(&mut editor, &[(1, 1), (3, 1)], ResilientSpec::default(), true).unwrap();
        assert_eq!(table(&editor), expected);
    }
}

#[test]
fn what_a_resilient_group_can_not_be_is_refused_and_changes_nothing() {
    let mut editor = lab();
    let needs = put(&mut editor, &[(1, 1)], ResilientSpec::default(), false);
    assert_eq!(needs, Err(ConfigError::Invalid("a new resilient group needs a number of buckets (buckets N)")));
    put(&mut editor, &[(1, 1), (2, 1)], spec(4, 1, 1), false).unwrap();
    let other = put(&mut editor, &[(1, 1)], spec(5, 1, 1), true);
    assert_eq!(other, Err(ConfigError::Invalid("the number of buckets of a resilient group can not change")));
    let plain = editor.nexthop_put(Some(GROUP), &NexthopSpec::Group(vec![(1, 1)], None), false, 0, true);
    assert_eq!(plain, Err(ConfigError::Invalid("a nexthop group can not replace one of another type")));
    let nested = editor.nexthop_put(Some(7), &NexthopSpec::Group(vec![(GROUP, 1)], None), false, 0, false);
    assert_eq!(nested, Err(ConfigError::Exists("nexthop")));
    assert_eq!(table(&editor), [2, 2, 1, 1]);
}

/// Something that happens to a group of some of the objects 1 to 9.
#[derive(Clone, Debug)]
enum Event {
    Replace(Vec<(u32, u16)>),
    Pass(Vec<u32>),
    Wait(u64),
}

fn event() -> impl Strategy<Value = Event> {
    let members = prop::collection::btree_map(1u32..10, 1u16..300, 1..6).prop_map(|members| members.into_iter().collect());
    prop_oneof![
        members.prop_map(Event::Replace),
        prop::collection::vec(any::<u32>().prop_map(|hash| hash >> 1), 0..12).prop_map(Event::Pass),
        (0u64..700).prop_map(Event::Wait),
    ]
}

proptest! {
    #[test]
    fn buckets_in_use_stay_and_idle_ones_are_shared_in_the_end(count in 1u16..40, events in prop::collection::vec(event(), 1..30)) {
        let mut editor = lab();
        put(&mut editor, &[(1, 1)], spec(count, 5, 0), false).unwrap();
        route(&mut editor, DST6);
        let (network, mut members) = (editor.network().clone(), vec![(1, 1)]);
        // When each bucket went to its member, and until when it is in use.
        let mut known = vec![(editor.time(), Tick::default()); count.into()];
        for event in events {
            let before = table(&editor);
            match event {
                Event::Replace(new) => {
                    members = new;
                    put(&mut editor, &members, ResilientSpec::default(), true).unwrap();
                }
                Event::Pass(hashes) => {
                    let expected: Vec<_> = hashes.iter().map(|hash| before[*hash as usize % before.len()]).collect();
                    for hash in &hashes {
                        let (since, until) = &mut known[*hash as usize % before.len()];
                        if editor.time() > *since {
                            *until = Tick(editor.time().0 + 500);
                        }
                    }
                    prop_assert_eq!(pass(&editor, &network.v6, DST6, hashes), expected);
                }
                Event::Wait(ticks) => later(&mut editor, ticks),
            }
            editor.keep_up();
            let is_member = |nexthop: u32| members.iter().any(|(member, _)| *member == nexthop);
            for ((old, known), new) in before.into_iter().zip(&mut known).zip(table(&editor)) {
                prop_assert!(is_member(new));
                if old != new {
                    prop_assert!(editor.time() >= known.1 || !is_member(old), "one in use went");
                    *known = (editor.time(), Tick::default());
                }
            }
        }
        later(&mut editor, 1000);
        editor.keep_up();
        prop_assert_eq!(group(&editor).due(), None);
        let mut fresh = lab();
        put(&mut fresh, &members, spec(count, 5, 0), false).unwrap();
        let sorted = |editor: &Editor| { let mut table = table(editor); table.sort_unstable(); table };
        prop_assert_eq!(sorted(&editor), sorted(&fresh), "as many buckets each as in a new group");
    }
}

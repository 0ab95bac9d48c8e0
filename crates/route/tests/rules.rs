//! Compiled rules against the walk, rule by rule, that they stand for.

use std::net::Ipv4Addr;

use proptest::prelude::*;
use route::{
    Action, AddrSpec, Editor, Flow, HopSpec, IfIndex, Kind, LinkChange, Mark, MarkRule, Outcome, Ports, Prefix, Put, RouteRefs, RouteSpec,
    Rule, Selector, TableId, Upper,
};

/// Tables that rules lead to; the last has no route.
const TABLES: [u32; 4] = [100, 101, 102, 103];

/// Prefixes in which packets' addresses lie, nested and side by side.
const PREFIXES: [(u32, u8); 8] = [
    (0x0a00_0000, 8),
    (0x0a01_0000, 16),
    (0x0a01_0200, 24),
    (0x0a01_0280, 25),
    (0x0a01_0205, 32),
    (0x0a02_0000, 16),
    (0x0b00_0000, 7),
    (0xff00_0000, 8),
];

fn prefix((addr, len): (u32, u8)) -> Prefix<Ipv4Addr> {
    Prefix::new(addr.into(), len).unwrap()
}

fn some_prefix() -> impl Strategy<Value = Option<Prefix<Ipv4Addr>>> {
    prop_oneof![2 => Just(None), 3 => prop::sample::select(&PREFIXES[..]).prop_map(|of| Some(prefix(of)))]
}

fn some_dev() -> impl Strategy<Value = Option<IfIndex>> {
    prop_oneof![3 => Just(None), 2 => (1_u32..5).prop_map(|dev| Some(IfIndex(dev)))]
}

fn some_ports() -> impl Strategy<Value = Option<Ports>> {
    prop_oneof![4 => Just(None), 1 => (1_u16..5).prop_map(|port| Some(Ports { first: port, last: port })), 1 => Just(Some(Ports { first: 2, last: 3 }))]
}

fn selector() -> impl Strategy<Value = Selector<Ipv4Addr>> {
    let mark = prop_oneof![3 => Just(None), 2 => (0_u32..4, prop::sample::select(&[1_u32, 2, 3, 6, 7, u32::MAX][..]))
        .prop_map(|(value, mask)| Some(Mark { value, mask }))];
    let tos = prop_oneof![4 => Just(None), 1 => prop::sample::select(&[4_u8, 0x10][..]).prop_map(Some)];
    let protocol = prop_oneof![4 => Just(None), 1 => prop::sample::select(&[6_u8, 17][..]).prop_map(Some)];
    let prefixes = (some_prefix(), some_prefix(), some_dev(), some_dev());
    (prop::bool::weighted(0.1), prefixes, mark, tos, protocol, some_ports(), some_ports(), prop::bool::weighted(0.1)).prop_map(
        |(not, (from, to, iif, oif), mark, tos, protocol, sport, dport, l3mdev)| Selector {
            not,
            from,
            to,
            iif,
            oif,
            mark,
            tos,
            dscp: None,
            protocol,
            sport,
            dport,
            l3mdev,
        },
    )
}

fn rule() -> impl Strategy<Value = Rule<Ipv4Addr>> {
    let action = prop_oneof![
        6 => prop::sample::select(&TABLES[..]).prop_map(|table| Action::Lookup(TableId(table))),
        1 => Just(Action::Vrf),
        2 => (0_u32..40).prop_map(Action::Goto),
        1 => Just(Action::Nop),
        1 => Just(Action::Blackhole),
        1 => Just(Action::Unreachable),
        1 => Just(Action::Prohibit),
    ];
    let suppress = prop_oneof![3 => Just(None), 1 => prop::sample::select(&[0_u8, 8, 16, 24, 32][..]).prop_map(Some)];
    let group = prop_oneof![6 => Just(None), 1 => (0_u32..3).prop_map(Some)];
    (0_u32..40, selector(), action, suppress, group).prop_map(|(pref, select, action, suppress_len, suppress_group)| Rule {
        pref,
        select,
        action,
        suppress_len,
        suppress_group,
        protocol: 0,
    })
}

fn flow() -> impl Strategy<Value = Flow<Ipv4Addr>> {
    let address =
        || (prop::sample::select(&PREFIXES[..]), 0_u32..400).prop_map(|((addr, _), more)| Ipv4Addr::from(addr.wrapping_add(more)));
    let dsfield = prop::sample::select(&[0_u8, 4, 0x10, 0xb8][..]);
    let upper = (prop::sample::select(&[1_u8, 6, 17][..]), 0_u16..5, 0_u16..5);
    (address(), address(), 1_u32..5, any::<bool>(), 0_u32..8, dsfield, upper, 0_u32..4).prop_map(
        |(dst, src, iif, in_vrf, mark, dsfield, (protocol, sport, dport), oif)| Flow {
            src,
            vrf: IfIndex(if in_vrf { 4 } else { 0 }),
            vrf_table: in_vrf.then_some(TableId(102)),
            oif: IfIndex(oif),
            mark,
            dsfield,
            upper: Upper { protocol, sport, dport },
            ..Flow::new(dst, IfIndex(iif))
        },
    )
}

/// Three ports of different groups, and tables with routes of all lengths and kinds.
fn editor() -> Editor {
    let mut editor = Editor::new();
    for (place, name) in ["e0", "e1", "e2"].into_iter().enumerate() {
        let port = editor.port_add(name, place).unwrap();
        editor.link_set(port, LinkChange { up: Some(true), group: Some(place as u32), ..LinkChange::default() }).unwrap();
        let addr = Ipv4Addr::new(192, 168, place as u8, 1);
        editor.addr_add(port, addr.into(), AddrSpec { len: 24, ..AddrSpec::default() }).unwrap();
    }
    let kinds = [Kind::Unicast, Kind::Unicast, Kind::Unicast, Kind::Throw, Kind::Blackhole, Kind::Unreachable];
    for (n, table) in TABLES[..3].iter().enumerate() {
        for (m, of) in PREFIXES.into_iter().chain([(0, 0)]).enumerate().filter(|(m, _)| (m + n) % 3 != 0) {
            let kind = kinds[(m * 5 + n) % kinds.len()];
            let hop = HopSpec::new(IfIndex(2 + (m % 3) as u32), None);
            let hops = if kind == Kind::Unicast { vec![hop] } else { Vec::new() };
            let spec = RouteSpec { table: Some(TableId(*table)), kind, ..RouteSpec::new(prefix(of), hops) };
            editor.route_put(spec, Put::Add).unwrap();
        }
    }
    editor
}

/// What the rules say of a flow, asked one after the other as `fib_rules_lookup` asks them: preference, table, kind and device.
fn walk(editor: &Editor, flow: &Flow<Ipv4Addr>) -> (u32, u32, Kind, IfIndex) {
    let rules = editor.rules::<Ipv4Addr>();
    let mut place = 0;
    while let Some(rule) = rules.get(place) {
        place += 1;
        if !rule.select.matches(flow) {
            continue;
        }
        let refused = |kind| (rule.pref, 0, kind, IfIndex(0));
        let table = match rule.action {
            Action::Lookup(table) => table,
            Action::Vrf => match flow.vrf_table {
                Some(table) => table,
                None => continue,
            },
            Action::Goto(target) => {
                let there = rules.iter().position(|other| other.pref == target).filter(|_| target > rule.pref);
                place = there.unwrap_or(place);
                continue;
            }
            Action::Nop => continue,
            Action::Blackhole => return refused(Kind::Blackhole),
            Action::Unreachable => return refused(Kind::Unreachable),
            Action::Prohibit => return refused(Kind::Prohibit),
        };
        let Some((prefix, entry)) = editor.longest(table, flow.dst) else { continue };
        let dev = entry.effect.hops.first().map_or(IfIndex(0), |hop| hop.dev);
        let group = editor.links().get(dev).map(|link| link.group);
        let suppressed = rule.suppress_len.is_some_and(|len| prefix.len() <= len)
            || rule.suppress_group.is_some_and(|suppressed| group == Some(suppressed));
        match entry.effect.kind {
            Kind::Throw => {}
            Kind::Unicast | Kind::Local | Kind::Broadcast if suppressed => {}
            kind => return (rule.pref, table.0, kind, dev),
        }
    }
    (0, 0, Kind::NoRoute, IfIndex(0))
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 192, ..ProptestConfig::default() })]

    #[test]
    fn compiled_rules_answer_as_the_walk_does(rules in prop::collection::vec(rule(), 0..60), flows in prop::collection::vec(flow(), 200)) {
        let mut editor = editor();
        for rule in rules {
            // One that is there already is refused.
            let _ = editor.rule_add(rule);
        }
        editor.commit();
        let network = editor.network().clone();
        network.domain().reader().burst(|guard| {
            for flow in &flows {
                let answer = network.v4.lookup(guard, flow, RouteRefs::Noref);
                let found = (answer.rule, answer.table.0, answer.dst.kind, answer.dst.dev());
                assert_eq!(found, walk(&editor, flow), "{flow:?}");
                // Told rule by rule it is the same, by what workers read and by what was configured.
                let mut last = None;
                let by_workers = network.v4.follow(guard, flow, |table| network.v4.route_in(guard, table, flow), &mut |rule, outcome| {
                    assert_eq!(matches!(outcome, Outcome::Unlike(_)), !rule.select.matches(flow), "{rule:?}");
                    last = Some((rule.pref, matches!(outcome, Outcome::Answers(_))));
                });
                let configured = network.v4.follow(guard, flow, |table| editor.dst_for(table, flow, None), &mut |_, _| {});
                for followed in [by_workers, configured] {
                    assert_eq!((followed.rule, followed.table.0, followed.dst.kind, followed.dst.dev()), found, "{flow:?}");
                    assert_eq!(followed.by_rule, answer.by_rule);
                }
                assert_eq!(last.is_some_and(|(_, answers)| answers), answer.dst.kind != Kind::NoRoute);
            }
        });
    }

    #[test]
    fn a_rule_that_goes_is_asked_no_more(rules in prop::collection::vec(rule(), 1..20), flows in prop::collection::vec(flow(), 50)) {
        let mut editor = editor();
        for rule in &rules {
            let _ = editor.rule_add(rule.clone());
        }
        editor.commit();
        editor.rule_del(|rule| *rule == rules[0]).unwrap();
        editor.rules_flush(|rule: &Rule<Ipv4Addr>| rule.pref == 32766);
        editor.commit();
        let network = editor.network().clone();
        network.domain().reader().burst(|guard| {
            for flow in &flows {
                let answer = network.v4.lookup(guard, flow, RouteRefs::Noref);
                assert_eq!((answer.rule, answer.table.0, answer.dst.kind, answer.dst.dev()), walk(&editor, flow));
            }
        });
    }

    #[test]
    fn a_packet_gets_the_mark_of_the_first_line_it_matches(lines in prop::collection::vec(selector(), 0..30), flows in prop::collection::vec(flow(), 50)) {
        let mut editor = editor();
        for (value, select) in (1..).zip(lines) {
            editor.mark_add(MarkRule { select, set: Mark { value, mask: u32::MAX } }).unwrap();
        }
        editor.commit();
        let network = editor.network().clone();
        network.domain().reader().burst(|guard| {
            let marks = network.v4.marks.load(guard);
            for flow in &flows {
                let first = editor.marks::<Ipv4Addr>().iter().find(|line| line.select.matches(flow));
                assert_eq!(marks.mark(flow), first.map_or(0, |line| line.set.value));
            }
        });
    }
}

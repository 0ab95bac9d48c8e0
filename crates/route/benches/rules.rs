//! What a lookup costs behind rules: `cargo bench -p noref-route`. Nanoseconds a lookup of IPv4 flows drawn at random, best of five runs.

use std::hint::black_box;
use std::net::Ipv4Addr;
use std::time::Instant;

use route::{Action, Editor, Flow, HopSpec, IfIndex, LinkChange, Mark, Prefix, Put, RouteRefs, RouteSpec, Rule, Selector, TableId};

const LOOKUPS: u32 = 1 << 20;

fn main() {
    let all = |n: u32| Rule::all(10 + n, Action::Lookup(TableId(100 + n % 3)));
    let selecting = |n: u32, select| Rule { select, ..all(n) };
    let net = |of: u32, n: u32| Prefix::new(Ipv4Addr::from(of + (n << 8)), 24);
    let from = |n: u32| selecting(n, Selector { from: net(0x0b00_0000, n), ..Selector::default() });
    let to = |n: u32| selecting(n, Selector { to: net(0x8c00_0000, n), ..Selector::default() });
    let iif = |n: u32| selecting(n, Selector { iif: Some(IfIndex(10 + n)), ..Selector::default() });
    let mark = |n: u32| selecting(n, Selector { mark: Some(Mark { value: 10 + n, mask: u32::MAX }), ..Selector::default() });
    measure("no rule but the default ones", 0, all);
    measure("table without a route in front", 1, all);
    measure("tables without a route in front", 3, all);
    for count in [1, 10, 100, 1000, 10_000] {
        measure("rules by from, none for the packet", count, from);
        measure("rules by to, none for the packet", count, to);
        measure("rules by iif, none for the packet", count, iif);
        measure("rules by fwmark, none for the packet", count, mark);
    }
}

fn measure(what: &str, count: u32, rule: impl Fn(u32) -> Rule<Ipv4Addr>) {
    let mut editor = editor();
    (0..count).for_each(|n| editor.rule_add(rule(n)).expect("a new rule"));
    editor.commit();
    let network = editor.network().clone();
    let mut reader = network.domain().reader();
    let mut best = f64::MAX;
    for _ in 0..5 {
        let start = Instant::now();
        reader.burst(|guard| {
            let mut random = 1_u32;
            for _ in 0..LOOKUPS {
                random = random.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
                let to = Flow::new(Ipv4Addr::from(random & 0x7fff_ffff), IfIndex(2));
                let flow = Flow { src: Ipv4Addr::from(0x0a00_0000 | random >> 8), ..to };
                black_box(network.v4.lookup(guard, &flow, RouteRefs::Noref).dst.kind);
            }
        });
        best = best.min(start.elapsed().as_secs_f64() * 1e9 / f64::from(LOOKUPS));
    }
    println!("{count:>6} {what:40} {best:7.1} ns");
}

/// A port, a default route, and three tables with a route for nobody here.
fn editor() -> Editor {
    let mut editor = Editor::new();
    let port = editor.port_add("e0", 0).expect("a port");
    editor.link_set(port, LinkChange { up: Some(true), ..LinkChange::default() }).expect("a port that comes up");
    for (table, addr, len) in [(254, 0, 0), (100, 0xcb00_7100, 24), (101, 0xcb00_7100, 24), (102, 0xcb00_7100, 24)] {
        let hop = HopSpec::new(port, None);
        let spec = RouteSpec {
            table: Some(TableId(table)),
            ..RouteSpec::new(Prefix::new(Ipv4Addr::from(addr), len).expect("a prefix"), vec![hop])
        };
        editor.route_put(spec, Put::Add).expect("a new route");
    }
    editor
}

//! Configuring a network and asking it for routes.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

use route::{
    Action, AddrSpec, Address, ConfigError, Editor, Flow, HopSpec, IfIndex, Kind, LinkChange, Prefix, Put, RouteRefs, RouteSpec, Rule,
    Scope, Selector, TableId,
};

struct Lab {
    editor: Editor,
    e0: IfIndex,
    e1: IfIndex,
}

/// Two ports, up, with the subnets 10.0.N.0/24 and fd00:0:0:N::/64.
fn lab() -> Lab {
    let mut editor = Editor::new();
    let ports = ["e0", "e1"].map(|name| editor.port_add(name, usize::from(name == "e1")).unwrap());
    for (n, port) in ports.into_iter().enumerate() {
        editor.link_set(port, LinkChange { up: Some(true), ..LinkChange::default() }).unwrap();
        let v4 = Ipv4Addr::new(10, 0, n as u8, 1);
        editor.addr_add(port, IpAddr::V4(v4), AddrSpec { len: 24, ..AddrSpec::default() }).unwrap();
        let v6 = Ipv6Addr::new(0xfd00, 0, 0, n as u16, 0, 0, 0, 1);
        editor.addr_add(port, IpAddr::V6(v6), AddrSpec { len: 64, ..AddrSpec::default() }).unwrap();
    }
    editor.commit();
    Lab { editor, e0: ports[0], e1: ports[1] }
}

fn route<A>(prefix: &str, via: Option<&str>, dev: IfIndex) -> RouteSpec<A>
where
    A: Address + std::str::FromStr,
    A::Err: std::fmt::Debug,
{
    let (addr, len) = prefix.split_once('/').unwrap();
    let via = via.map(|via| via.parse().unwrap());
    RouteSpec::new(Prefix::new(addr.parse().unwrap(), len.parse().unwrap()).unwrap(), vec![HopSpec::new(dev, via)])
}

fn flow<A: Address>(dst: A, iif: IfIndex) -> Flow<A> {
    Flow::new(dst, iif)
}

/// Kind, interface and table of the route for `dst`, as in `unicast 3 main`.
fn ask(lab: &Lab, dst: &str, iif: IfIndex) -> String {
    let mut reader = lab.editor.network().domain().reader();
    let network = lab.editor.network();
    let refs = RouteRefs::Noref;
    reader.burst(|guard| {
        let answer = match dst.parse().unwrap() {
            IpAddr::V4(dst) => network.v4.lookup(guard, &flow(dst, iif), refs),
            IpAddr::V6(dst) => network.v6.lookup(guard, &flow(dst, iif), refs),
        };
        format!("{} {} {}", answer.dst.kind.word(), answer.dst.dev().0, answer.table)
    })
}

#[test]
fn addresses_bring_their_routes() {
    let lab = lab();
    assert_eq!(ask(&lab, "10.0.1.1", lab.e0), "local 3 local");
    assert_eq!(ask(&lab, "10.0.1.9", lab.e0), "unicast 3 main");
    assert_eq!(ask(&lab, "10.0.1.255", lab.e0), "broadcast 3 local");
    assert_eq!(ask(&lab, "fd00:0:0:1::9", lab.e0), "unicast 3 main");
    assert_eq!(ask(&lab, "192.0.2.1", lab.e0), "no route 0 0");
}

#[test]
fn a_link_local_destination_stays_on_its_link() {
    let lab = lab();
    assert_eq!(ask(&lab, "fe80::99", lab.e0), "unicast 2 main");
    assert_eq!(ask(&lab, "fe80::99", lab.e1), "unicast 3 main");
    assert_eq!(ask(&lab, "ff02::1", lab.e1), "multicast 3 local");
}

#[test]
fn rules_choose_the_table_and_throw_goes_on_to_the_next() {
    let mut lab = lab();
    let e1 = lab.e1;
    lab.editor.route_put::<Ipv4Addr>(RouteSpec { table: Some(TableId(100)), ..route("10.9.0.0/16", None, e1) }, Put::Add).unwrap();
    lab.editor
        .route_put::<Ipv4Addr>(RouteSpec { kind: Kind::Blackhole, hops: vec![], ..route("10.9.0.0/16", None, e1) }, Put::Add)
        .unwrap();
    lab.editor
        .rule_add(Rule {
            select: Selector { iif: Some(lab.e0), ..Selector::default() },
            ..Rule::<Ipv4Addr>::all(500, Action::Lookup(TableId(100)))
        })
        .unwrap();
    lab.editor.commit();
    assert_eq!(ask(&lab, "10.9.1.1", lab.e0), "unicast 3 100");
    assert_eq!(ask(&lab, "10.9.1.1", lab.e1), "blackhole 0 main");
    let throw = RouteSpec { table: Some(TableId(100)), kind: Kind::Throw, hops: vec![], ..route("10.9.1.0/24", None, e1) };
    lab.editor.route_put::<Ipv4Addr>(throw, Put::Add).unwrap();
    lab.editor.commit();
    assert_eq!(ask(&lab, "10.9.1.1", lab.e0), "blackhole 0 main");
}

#[test]
fn what_the_kernel_refuses_is_refused() {
    let mut lab = lab();
    let (e0, e1) = (lab.e0, lab.e1);
    let add = |lab: &mut Lab, spec: RouteSpec<Ipv4Addr>| lab.editor.route_put(spec, Put::Add);
    assert_eq!(add(&mut lab, route("10.9.0.0/16", Some("10.0.1.2"), e1)), Ok(()));
    assert_eq!(add(&mut lab, route("10.9.0.0/16", Some("10.0.1.3"), e1)), Err(ConfigError::Exists("route")));
    let far = "10.0.1.2".parse().unwrap();
    assert_eq!(add(&mut lab, route("10.8.0.0/16", Some("10.0.1.2"), e0)), Err(ConfigError::GatewayUnreachable(far)));
    let own = "10.0.1.1".parse().unwrap();
    assert_eq!(add(&mut lab, route("10.8.0.0/16", Some("10.0.1.1"), e1)), Err(ConfigError::GatewayLocal(own)));
    lab.editor.link_set(e1, LinkChange { up: Some(false), ..LinkChange::default() }).unwrap();
    assert_eq!(add(&mut lab, route("10.8.0.0/16", None, e1)), Err(ConfigError::DeviceDown("e1".into())));
    lab.editor.commit();
    assert_eq!(ask(&lab, "10.9.1.1", e0), "no route 0 0", "routes through a device go with it");
}

#[test]
fn a_batch_is_answered_as_each_packet_alone() {
    let mut lab = lab();
    let e1 = lab.e1;
    for n in 0..64_u8 {
        let prefix = Prefix::new(Ipv4Addr::new(10, 64 + n % 8, n, 0), 16 + n % 9).unwrap();
        let mut spec = route::<Ipv4Addr>("0.0.0.0/0", None, e1);
        spec.prefix = prefix;
        spec.kind = if n % 3 == 0 { Kind::Prohibit } else { Kind::Unicast };
        let _ = lab.editor.route_put(spec, Put::Add);
    }
    lab.editor.commit();
    let flows: Vec<_> = (0..200_u32).map(|n| flow(Ipv4Addr::from(0x0a40_0000 + n * 0x1_0305), lab.e0)).collect();
    for refs in [RouteRefs::Noref, RouteRefs::Counted] {
        let network = lab.editor.network();
        network.domain().reader().burst(|guard| {
            let mut routes = Vec::new();
            let keys: Vec<_> = flows.iter().map(|flow| flow.dst.key()).collect();
            assert!(network.v4.is_plain(guard));
            network.v4.lookup_batch(guard, Scope::Main, &keys, refs, &mut routes);
            for (flow, &number) in flows.iter().zip(&routes) {
                let alone = network.v4.lookup(guard, flow, refs);
                match network.v4.route(guard, number, refs) {
                    Some(route) => assert!(route.ptr_eq(&alone.dst) && route.is_held() == (refs == RouteRefs::Counted)),
                    None => assert!(matches!(alone.dst.kind, Kind::NoRoute | Kind::Throw)),
                }
            }
        });
    }
}

#[test]
fn a_member_of_a_vrf_uses_its_table_then_main() {
    let mut lab = lab();
    let vrf = lab.editor.vrf_add("red", TableId(10)).unwrap();
    lab.editor.link_set(vrf, LinkChange { up: Some(true), ..LinkChange::default() }).unwrap();
    lab.editor.link_set(lab.e1, LinkChange { master: Some(Some(vrf)), ..LinkChange::default() }).unwrap();
    lab.editor.commit();
    let network = lab.editor.network();
    let found = network.domain().reader().burst(|guard| {
        ["10.0.1.9", "10.0.0.9"].map(|dst| {
            let flow = Flow { vrf, vrf_table: Some(TableId(10)), ..flow(dst.parse::<Ipv4Addr>().unwrap(), lab.e1) };
            network.v4.lookup(guard, &flow, RouteRefs::Noref).table
        })
    });
    assert_eq!(found, [TableId(10), TableId::MAIN]);
    assert_eq!(ask(&lab, "10.0.1.9", lab.e0), "no route 0 0");
    assert!(lab.editor.rules::<Ipv4Addr>().iter().any(|rule| rule.action == Action::Vrf));
    assert!(lab.editor.table_exists::<Ipv6Addr>(TableId(10)));
}

/// The devices and gateways of the route for `dst`, in their order.
fn ways(lab: &Lab, dst: &str) -> Vec<String> {
    let network = lab.editor.network();
    network.domain().reader().burst(|guard| {
        let dst = match dst.parse().unwrap() {
            IpAddr::V4(dst) => network.v4.lookup(guard, &flow(dst, lab.e0), RouteRefs::Noref).dst,
            IpAddr::V6(dst) => network.v6.lookup(guard, &flow(dst, lab.e0), RouteRefs::Noref).dst,
        };
        dst.hops().map(|hop| format!("{} {:?}", hop.dev.0, hop.gateway.as_ref().map(|gateway| gateway.addr()))).collect()
    })
}

#[test]
fn a_replaced_ipv6_route_takes_its_appended_ways_with_it() {
    let mut lab = lab();
    let e1 = lab.e1;
    let put = |lab: &mut Lab, via, how| lab.editor.route_put::<Ipv6Addr>(route("fd00:9::/32", via, e1), how).unwrap();
    put(&mut lab, Some("fd00:0:0:1::2"), Put::Add);
    put(&mut lab, Some("fd00:0:0:1::3"), Put::Append);
    put(&mut lab, None, Put::Append);
    lab.editor.commit();
    assert_eq!(ways(&lab, "fd00:9::1"), ["3 Some(fd00:0:0:1::2)", "3 Some(fd00:0:0:1::3)"]);
    put(&mut lab, Some("fd00:0:0:1::4"), Put::Replace);
    lab.editor.commit();
    assert_eq!(ways(&lab, "fd00:9::1"), ["3 Some(fd00:0:0:1::4)"]);
    assert_eq!(
        lab.editor.routes::<Ipv6Addr>(TableId::MAIN).filter(|(prefix, _)| prefix.len() == 32).count(),
        2,
        "the one without a gateway stays"
    );
}

#[test]
fn an_appended_ipv4_route_waits_behind_the_first_even_through_an_ipv6_gateway() {
    let mut lab = lab();
    let e1 = lab.e1;
    for (via, how) in [("fd00:0:0:1::2", Put::Add), ("fd00:0:0:1::3", Put::Append)] {
        lab.editor.route_put::<Ipv4Addr>(route("10.9.0.0/16", Some(via), e1), how).unwrap();
    }
    lab.editor.commit();
    assert_eq!(ways(&lab, "10.9.0.1"), ["3 Some(fd00:0:0:1::2)"]);
}

#[test]
fn a_subnet_of_two_addresses_outlives_either() {
    let mut lab = lab();
    let (e0, e1) = (lab.e0, lab.e1);
    lab.editor.conf6(None, |conf| conf.forwarding = true).unwrap();
    let second: IpAddr = "fd00:0:0:1::2".parse().unwrap();
    lab.editor.addr_add(e1, second, AddrSpec { len: 64, ..AddrSpec::default() }).unwrap();
    lab.editor.addr_del(e1, "fd00:0:0:1::1".parse().unwrap(), None).unwrap();
    lab.editor.commit();
    assert_eq!(ask(&lab, "fd00:0:0:1::9", e0), "unicast 3 main");
    assert_eq!(ask(&lab, "fd00:0:0:1::", e0), "anycast 3 local");
    assert_eq!(ask(&lab, "fd00:0:0:1::1", e0), "unicast 3 main");
    lab.editor.addr_del(e1, second, Some(64)).unwrap();
    lab.editor.commit();
    assert_eq!(ask(&lab, "fd00:0:0:1::9", e0), "no route 0 0");
    assert_eq!(ask(&lab, "fd00:0:0:1::", e0), "no route 0 0");
}

#[test]
fn secondary_addresses_go_with_the_first_of_their_subnet() {
    let mut lab = lab();
    let (e0, e1) = (lab.e0, lab.e1);
    let second: IpAddr = "10.0.1.2".parse().unwrap();
    lab.editor.addr_add(e1, second, AddrSpec { len: 24, ..AddrSpec::default() }).unwrap();
    lab.editor.addr_del(e1, "10.0.1.1".parse().unwrap(), Some(24)).unwrap();
    lab.editor.commit();
    assert_eq!(ask(&lab, "10.0.1.2", e0), "no route 0 0");
    assert!(!lab.editor.links().get(e1).unwrap().has_addr(second));
}

#[test]
fn to_be_given_the_master_one_has_changes_nothing() {
    let mut lab = lab();
    let (e0, e1) = (lab.e0, lab.e1);
    let master = |master| LinkChange { master: Some(master), ..LinkChange::default() };
    lab.editor.link_set(e1, master(None)).unwrap();
    lab.editor.commit();
    assert_eq!(ask(&lab, "fd00:0:0:1::9", e0), "unicast 3 main");
    let vrf = lab.editor.vrf_add("red", TableId(10)).unwrap();
    lab.editor.link_set(e1, master(Some(vrf))).unwrap();
    lab.editor.addr_add(e1, "fd00:0:0:1::1".parse().unwrap(), AddrSpec { len: 64, ..AddrSpec::default() }).unwrap();
    lab.editor.link_set(e1, master(Some(vrf))).unwrap();
    lab.editor.commit();
    assert_eq!(lab.editor.longest::<Ipv6Addr>(TableId(10), "fd00:0:0:1::9".parse().unwrap()).unwrap().0.len(), 64);
}

#[test]
fn a_subnet_longer_than_its_address_is_refused() {
    let mut lab = lab();
    for (addr, len) in [("10.0.9.1", 33), ("fd00:9::1", 129)] {
        let added = lab.editor.addr_add(lab.e0, addr.parse().unwrap(), AddrSpec { len, ..AddrSpec::default() });
        assert!(matches!(added, Err(ConfigError::Invalid(_))), "{addr}/{len}");
    }
}

#[test]
fn a_bound_packet_passes_over_tables_whose_route_leaves_elsewhere() {
    let mut lab = lab();
    let dst = Ipv4Addr::new(10, 9, 0, 9);
    for (table, dev, via) in [(TableId::MAIN, lab.e0, "10.0.0.2"), (TableId(7), lab.e1, "10.0.1.2")] {
        let spec = RouteSpec { table: Some(table), ..route("10.9.0.0/16", Some(via), dev) };
        lab.editor.route_put::<Ipv4Addr>(spec, Put::Add).unwrap();
    }
    lab.editor.rule_add::<Ipv4Addr>(Rule::all(40_000, Action::Lookup(TableId(7)))).unwrap();
    lab.editor.commit();
    let mut reader = lab.editor.network().domain().reader();
    let mut by = |oif, bound| {
        let flow = Flow { oif, bound, ..flow(dst, IfIndex::LO) };
        reader.burst(|guard| lab.editor.network().v4.lookup(guard, &flow, RouteRefs::Noref).dst.dev())
    };
    assert_eq!((by(lab.e0, true), by(lab.e1, true), by(lab.e1, false)), (lab.e0, lab.e1, lab.e0));
    assert_eq!(by(IfIndex(9), true), IfIndex(0), "no table has one");
}

//! What a network file makes of the tables.

use std::net::{Ipv4Addr, Ipv6Addr};

use control::Configuration;
use route::{Action, Encap, Family, IfIndex, Prefix, RouteEntry, SidId, TableId};

const PORTS: [&str; 4] = ["e0", "e1", "e2", "e3"];

const BASE: &str = "\
link set lo up
link set e0 up
link set e1 up
addr add 10.0.0.1/24 dev e0
-6 addr add fd00:0::1/64 dev e0 nodad
addr add 10.0.1.1/24 dev e1
-6 addr add fd00:1::1/64 dev e1 nodad
";

fn configured(lines: &str) -> Configuration {
    control::network_file(&format!("{BASE}{lines}"), "net.ip", &PORTS).unwrap_or_else(|errors| panic!("{errors}"))
}

/// The routes of a prefix, as `metric kind gateway device`, best first.
fn routes<A: Family>(configuration: &Configuration, table: TableId, addr: A, len: u8) -> Vec<String> {
    let wanted = Prefix::new(addr, len).unwrap();
    let shown = |entry: &RouteEntry| {
        let hops = entry.effect.hops.iter().map(|hop| {
            let device = configuration.editor.links().get(hop.dev).map_or("?", |link| &link.name);
            hop.via.map_or(device.to_owned(), |via| format!("{via} {device}"))
        });
        format!("{} {} {}", entry.metric, entry.effect.kind.word(), hops.collect::<Vec<_>>().join(" + "))
    };
    configuration.editor.routes::<A>(table).filter(|(prefix, _)| *prefix == wanted).map(|(_, entry)| shown(entry)).collect()
}

fn v4(a: u8, b: u8, c: u8) -> Ipv4Addr {
    Ipv4Addr::new(10, a, b, c)
}

#[test]
fn routes_of_other_metrics_stand_side_by_side_and_replace_takes_the_place_of_its_own() {
    let configuration = configured(
        "route add 10.9/24 via 10.0.0.2 metric 100\nroute add 10.9/24 via 10.0.1.2 metric 50\nroute replace 10.9/24 via 10.0.1.3 metric 100",
    );
    assert_eq!(routes(&configuration, TableId::MAIN, v4(9, 0, 0), 24), ["50 unicast 10.0.1.2 e1", "100 unicast 10.0.1.3 e1"]);
}

#[test]
fn the_route_that_has_all_that_is_given_is_deleted() {
    let add = "route add 10.9/24 via 10.0.0.2 metric 100\nroute add 10.9/24 via 10.0.1.2 metric 50 proto static\n";
    let left = |line: &str| routes(&configured(&format!("{add}{line}")), TableId::MAIN, v4(9, 0, 0), 24);
    assert_eq!(left("route del 10.9/24"), ["100 unicast 10.0.0.2 e0"]);
    assert_eq!(left("route del 10.9/24 metric 100"), ["50 unicast 10.0.1.2 e1"]);
    assert_eq!(left("route del 10.9/24 dev e0"), ["50 unicast 10.0.1.2 e1"]);
    assert_eq!(left("route del 10.9/24 via 10.0.1.2 proto static"), ["100 unicast 10.0.0.2 e0"]);
    let wrong = control::network_file(&format!("{BASE}{add}route del 10.9/24 proto bgp"), "net.ip", &PORTS);
    assert!(wrong.is_err_and(|errors| errors.to_string().contains("there is no such route")));
}

#[test]
fn types_and_tables_are_where_they_are_meant() {
    let configuration = configured(
        "-6 route add table 500 throw fd09::/64\nroute add table 0xfffffffe default dev e0\nroute add local 10.7.0.1 dev lo\nroute add table unspec blackhole 10.8/16",
    );
    let fd09: Ipv6Addr = "fd09::".parse().unwrap();
    assert_eq!(routes(&configuration, TableId(500), fd09, 64), ["1024 throw "]);
    assert_eq!(routes(&configuration, TableId(0xffff_fffe), Ipv4Addr::UNSPECIFIED, 0), ["0 unicast e0"]);
    assert_eq!(routes(&configuration, TableId::LOCAL, v4(7, 0, 1), 32), ["0 local lo"]);
    assert_eq!(routes(&configuration, TableId::MAIN, v4(8, 0, 0), 16), ["0 blackhole "]);
}

#[test]
fn a_vrf_has_its_own_table_and_rule() {
    let configuration = configured(
        "sysctl -w net.vrf.strict_mode=1\nlink add vrf10 type vrf table 10\nlink set vrf10 up\nlink set e2 master vrf10 up\naddr add 10.0.2.1/24 dev e2\n\
         route add vrf vrf10 10.9/16 via 10.0.2.2 dev e2\n-6 route add fc00:1::46 encap seg6local action End.DT46 vrftable 10 dev vrf10",
    );
    assert_eq!(routes(&configuration, TableId(10), v4(9, 0, 0), 16), ["0 unicast 10.0.2.2 e2"]);
    assert_eq!(routes(&configuration, TableId(10), v4(0, 2, 0), 24), ["0 unicast e2"]);
    assert!(configuration.editor.rules::<Ipv4Addr>().iter().any(|rule| rule.pref == 1000 && rule.action == Action::Vrf));
    let sid = configuration.sids.iter().next().unwrap();
    assert_eq!(sid.sid.to_string(), "action End.DT46 vrftable 10");
    let place = Prefix::new("fc00:1::46".parse::<Ipv6Addr>().unwrap(), 128).unwrap();
    assert_eq!(configuration.placed_sids(), [(TableId::MAIN, place, sid.id)]);
}

#[test]
fn a_rule_without_a_preference_stands_behind_table_local() {
    let configuration =
        configured("rule add from 10.0.0.64/26 lookup 100\nrule add iif e0 lookup 101\n-6 rule add to fc00:2::/32 lookup main pref 900");
    let rules: Vec<_> = configuration.editor.rules::<Ipv4Addr>().iter().map(|rule| (rule.pref, rule.action)).collect();
    let to = |pref, table| (pref, Action::Lookup(TableId(table)));
    assert_eq!(rules, [to(0, 255), to(32764, 101), to(32765, 100), to(32766, 254), to(32767, 253)]);
    assert_eq!(configuration.editor.rules::<Ipv6Addr>().len(), 3);
    let moved = configured("rule add lookup local pref 300\nrule del lookup local pref 0");
    assert_eq!(moved.editor.rules::<Ipv4Addr>().first().map(|rule| rule.pref), Some(300));
}

#[test]
fn sids_and_headends_are_found_under_the_number_their_route_has() {
    let configuration = configured(
        "-6 route add fc00:1::e encap seg6local action End.X nh6 fe80::23 oif e1 dev e0\nroute add 10.9/24 encap seg6 mode encap.red segs fc00:2::1,fc00:2::2 dev e1",
    );
    let sid = configuration.sids.iter().next().unwrap();
    assert_eq!(
        (sid.sid.descriptor().name, sid.sid.attributes().oif),
        ("End.X", configuration.editor.links().named("e1").map(|link| link.index))
    );
    let entry = |table: TableId, addr: Ipv4Addr| configuration.editor.longest(table, addr).map(|(_, entry)| entry.effect.hops[0].encap);
    let Some(Encap::Seg6(policy)) = entry(TableId::MAIN, v4(9, 0, 1)) else { panic!("a headend") };
    let policy = configuration.tables.policies.snapshot(policy.0).unwrap();
    assert_eq!(policy.to_string(), "encap seg6 mode encap.red segs 2 [ fc00:2::1 fc00:2::2 ]");
    assert_eq!(configuration.tables.sids.snapshot(sid.id.0).map(|found| found.to_string()), Some(sid.sid.to_string()));
}

#[test]
fn settings_reach_the_router_all_interfaces_or_one() {
    let configuration = configured(
        "sysctl -w net.ipv4.ip_forward=1 net.ipv4.icmp_ratelimit=0 net.ipv6.seg6_flowlabel=-1\nsysctl net.ipv4.conf.e0.rp_filter=1\n\
         sysctl net.ipv6.conf.default.seg6_enabled=1\nip sr tunsrc set fd00:ffff::1\nsysctl net.ipv6.conf.all.seg6_enabled=1",
    );
    let settings = configuration.editor.settings();
    assert_eq!((settings.icmp4_ratelimit, settings.seg6_flowlabel, settings.seg6_tunsrc), (0, -1, "fd00:ffff::1".parse().unwrap()));
    assert!(settings.default6.seg6_enabled && settings.all6.seg6_enabled);
    let links = configuration.editor.links();
    let of = |name: &str| links.named(name).map(|link| (link.conf4.forwarding, link.conf4.rp_filter)).unwrap();
    assert_eq!((of("e0"), of("e1")), ((true, 1), (true, 0)));
}

#[test]
fn ports_keep_their_order_behind_lo() {
    let configuration = configured("link set e3 address 02:00:00:00:0e:03 mtu 9000");
    let links: Vec<_> = configuration.editor.links().iter().map(|link| (link.index, link.name.to_string(), link.mtu)).collect();
    let port = |number, name: &str, mtu| (IfIndex(number), name.to_owned(), mtu);
    assert_eq!(links, [port(1, "lo", 65536), port(2, "e0", 1500), port(3, "e1", 1500), port(4, "e2", 1500), port(5, "e3", 9000)]);
    assert_eq!(configuration.editor.links().named("e3").map(|link| link.mac.to_string()).as_deref(), Some("02:00:00:00:0e:03"));
}

#[test]
fn neighbours_are_known_from_the_file_on() {
    let configuration = configured(
        "neigh replace 10.0.0.2 lladdr 02:00:00:00:0f:00 dev e0 nud permanent\nneigh add 10.0.0.3 lladdr 2:0:0:0:f:1 dev e0\nneigh del 10.0.0.3 dev e0",
    );
    let known: Vec<_> =
        configuration.tables.network.neighbours.list().iter().map(|n| (n.addr().to_string(), n.mac().map(|mac| mac.to_string()))).collect();
    assert_eq!(known, [("10.0.0.2".to_owned(), Some("02:00:00:00:0f:00".to_owned()))]);
}

#[test]
fn broadcast_addresses_come_with_the_subnet() {
    let configuration = configured("addr add 10.5.0.1/16 brd + dev e1");
    assert_eq!(routes(&configuration, TableId::LOCAL, v4(5, 255, 255), 32).len(), 1);
    let link = configuration.editor.links().named("e1").unwrap();
    assert_eq!(link.addrs4.last().and_then(|address| address.broadcast), Some(v4(5, 255, 255)));
}

#[test]
fn routes_of_one_policy_share_it_and_what_follows_from_it() {
    let routes: String = (0..200).map(|n| format!("route add 10.9.{n}.0/24 encap seg6 mode encap segs fc00::1,fc00::2 dev e0\n")).collect();
    let other = "route add 10.8.0.0/24 encap seg6 mode encap segs fc00::1 dev e0\n";
    let configuration = configured(&format!("{routes}{other}"));
    assert_eq!(configuration.tables.policies.len(), 2);
    let encaps = configuration.editor.effects().flat_map(|effect| &effect.hops).filter(|hop| hop.encap != Encap::None);
    assert_eq!(encaps.count(), 2);
}

#[test]
fn what_no_route_names_any_more_is_gone() {
    let configuration = configured(
        "route add 10.9/24 encap seg6 mode encap segs fc00::1 dev e0\nroute replace 10.9/24 encap seg6 mode encap segs fc00::2 dev e0\n\
         route add 10.8/24 encap seg6 mode encap segs fc00::3 dev e0\nroute del 10.8/24\n\
         -6 route add fc00:1::1/128 encap seg6local action End dev e0\n-6 route replace fc00:1::1/128 encap seg6local action End dev e1\n\
         -6 route add fc00:1::2/128 encap seg6local action End dev e0\n-6 route del fc00:1::2/128\n",
    );
    assert_eq!((configuration.tables.policies.len(), configuration.tables.sids.len(), configuration.sids.len()), (1, 1, 1));
    let named =
        |id: u32| configuration.editor.effects().flat_map(|effect| &effect.hops).any(|hop| hop.encap == Encap::Seg6Local(SidId(id)));
    assert!(configuration.sids.iter().all(|sid| named(sid.id.0)));
}

#[test]
fn the_sid_of_a_nexthop_object_stands_wherever_a_route_names_it_and_goes_with_it() {
    let lines = "\
-6 nexthop add id 1 dev e0 encap seg6local action End
-6 nexthop add id 2 dev e0 encap seg6local action End.T table 7
nexthop add id 3 group 1/2
-6 route add fc00::1 nhid 1
-6 route add fc00::3 nhid 3 table 9
-6 route add fc00::4 encap seg6local action End dev e0
";
    let mut configuration = configured(lines);
    let placed = |configuration: &Configuration| {
        let sid = |id| configuration.sids.get(id).unwrap().sid.to_string();
        let all = configuration.placed_sids().into_iter().map(|(table, prefix, id)| format!("{table} {prefix} {}", sid(id)));
        let mut all: Vec<_> = all.collect();
        all.sort();
        (all, configuration.tables.sids.len())
    };
    let all = ["9 fc00::3 action End", "9 fc00::3 action End.T table 7", "main fc00::1 action End", "main fc00::4 action End"];
    assert_eq!(placed(&configuration), (all.map(str::to_owned).to_vec(), 3));
    configuration.apply("-6 nexthop replace id 1 dev e0 encap seg6local action End flavors psp\nnexthop del id 2", "request").unwrap();
    let left = ["9 fc00::3 action End flavors psp", "main fc00::1 action End flavors psp", "main fc00::4 action End"];
    assert_eq!(placed(&configuration), (left.map(str::to_owned).to_vec(), 2));
    configuration.apply("nexthop flush", "request").unwrap();
    assert_eq!(placed(&configuration), (vec!["main fc00::4 action End".to_owned()], 1));
}

#[test]
fn a_rule_waits_for_its_device_and_waits_again_when_that_is_gone() {
    let mut configuration = configured("ip rule add iif later lookup 7 pref 60");
    assert_eq!(configuration.warnings.len(), 1);
    let shown = |configuration: &Configuration| {
        let (mut text, line) = (Vec::new(), "ip rule show pref 60");
        control::show::listing(line, "ip", configuration).unwrap().unwrap().print(configuration, &mut text).unwrap();
        let link = configuration.editor.links().named("later").map(|link| link.index);
        let rule = configuration.editor.rules::<Ipv4Addr>().iter().find(|rule| rule.pref == 60).unwrap();
        (String::from_utf8(text).unwrap(), rule.select.iif == link)
    };
    let (there, waiting) = ("60:\tfrom all iif later lookup 7\n", "60:\tfrom all iif later [detached] lookup 7\n");
    assert_eq!(shown(&configuration), (waiting.to_owned(), false));
    for _ in 0..2 {
        configuration.apply("ip link add other type vrf table 8\nip link add later type vrf table 9", "request").unwrap();
        assert_eq!(shown(&configuration), (there.to_owned(), true));
        configuration.apply("ip link del later\nip link del other", "request").unwrap();
        assert_eq!(shown(&configuration), (waiting.to_owned(), false));
    }
    configuration.apply("ip rule del iif later", "request").unwrap();
    assert!(configuration.apply("ip rule del iif later", "request").is_err());
}

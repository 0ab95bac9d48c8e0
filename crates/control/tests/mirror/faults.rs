//! Faults that other mirrors had: none is one of ours. docs/known-faults.md lists them.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};
use std::time::Duration;

use control::mirror::{Asker, Follower, Mirror, let_go};
use route::{Encap, Family, IfIndex, NeighbourState, Prefix, TableId};

use crate::lab::{PORTS, batch, follower, in_namespace, ports_up, settle, shell};
use crate::render::{differences, render_follower};

/// The routes of a prefix of table main: kind, and gateway and device of each way that is used.
fn routes<A: Family>(follower: &Follower, prefix: &str) -> Vec<String> {
    let (addr, len) = prefix.split_once('/').unwrap();
    let addr: IpAddr = addr.parse().unwrap();
    let editor = follower.mirror().editor();
    let shown = |(at, _): &(Prefix<A>, _)| Into::<IpAddr>::into(at.addr()) == addr && at.len() == len.parse::<u8>().unwrap();
    let name = |index: IfIndex| match index {
        IfIndex::KERNEL => "(kernel)".to_owned(),
        index => editor.links().get(index).map_or("?".to_owned(), |link| link.name.to_string()),
    };
    let found = editor.routes::<A>(TableId::MAIN).filter(shown).map(|(_, entry)| {
        let ways = editor.ways_of(&entry.effect);
        let used = ways.iter().filter(|hop| ways.len() == 1 || !editor.is_dead::<A>(hop.dev));
        let hops = used.map(|hop| hop.via.map_or(name(hop.dev), |via| format!("{via} {}", name(hop.dev))));
        format!("{} {}", entry.effect.kind.word(), hops.collect::<Vec<_>>().join(" + ")).trim_end().to_owned()
    });
    found.collect()
}

fn v4(follower: &Follower, prefix: &str) -> Vec<String> {
    routes::<Ipv4Addr>(follower, prefix)
}

fn v6(follower: &Follower, prefix: &str) -> Vec<String> {
    routes::<Ipv6Addr>(follower, prefix)
}

fn as_a_fresh_one(follower: &Follower) {
    let fresh = crate::lab::follower();
    assert_eq!(differences(&render_follower(&fresh), &render_follower(follower)), Vec::<String>::new());
}

/// Events that a socket has no room for are lost: ENOBUFS. All is read again.
#[test]
fn a_flood_of_events_that_is_not_read_is_noticed_and_made_good() {
    in_namespace(|| {
        ports_up();
        let mut follower = follower();
        let flood = |verb: &str| -> String {
            (0..40_000).map(|n| format!("route {verb} 10.{}.{}.{}/32 via 10.0.0.2\n", 100 + n / 65536, n / 256 % 256, n % 256)).collect()
        };
        batch(&flood("add"));
        batch(
            &(0..2000)
                .map(|n| format!("neigh replace 10.0.1.{} lladdr 02:00:00:00:01:{:02x} dev e1\n", n % 250 + 3, n / 250))
                .collect::<String>(),
        );
        batch(&flood("del"));
        shell("ip route add 10.9.0.0/24 via 10.0.1.2");
        settle(&mut follower);
        let counters = follower.follow().counters;
        assert!(counters.lost > 0 || counters.events > 80_000, "{counters:?}");
        assert_eq!(v4(&follower, "10.9.0.0/24"), ["unicast 10.0.1.2 e1"]);
        as_a_fresh_one(&follower);
    });
}

/// Twelve thousand routes at once, and all of them are there.
#[test]
fn after_a_burst_of_routes_a_check_finds_none_missing() {
    in_namespace(|| {
        ports_up();
        let mut follower = follower();
        batch(&(0..12_002).map(|n| format!("route add 10.{}.{}.0/24 via 10.0.0.2\n", 100 + n / 256, n % 256)).collect::<String>());
        settle(&mut follower);
        as_a_fresh_one(&follower);
        std::thread::sleep(Duration::from_millis(150));
        follower.check();
        settle(&mut follower);
        follower.step(Duration::from_millis(10)).unwrap();
        let counters = follower.follow().counters;
        assert_eq!((counters.checks, counters.differences), (1, 0), "{counters:?}");
    });
}

/// The kernel removes IPv4 routes without a word when their device goes down, and revives ways when it comes up.
#[test]
fn a_link_that_goes_down_takes_its_routes_along() {
    in_namespace(|| {
        ports_up();
        shell(
            "ip route add 10.9.0.0/24 via 10.0.1.2; ip route add 10.8.0.0/24 nexthop via 10.0.1.2 nexthop via 10.0.2.2
             ip nexthop add id 12 via 10.0.1.2 dev e1; ip nexthop add id 13 via 10.0.2.2 dev e2; ip nexthop add id 20 group 12/13
             ip route add 10.7.0.0/24 nhid 20; ip route add 10.6.0.0/24 nhid 12",
        );
        let mut follower = follower();
        assert_eq!(v4(&follower, "10.7.0.0/24"), ["unicast 10.0.1.2 e1 + 10.0.2.2 e2"]);
        shell("ip link set e1 down");
        settle(&mut follower);
        assert_eq!(v4(&follower, "10.9.0.0/24"), Vec::<String>::new());
        assert_eq!(v4(&follower, "10.8.0.0/24"), ["unicast 10.0.2.2 e2"]);
        assert_eq!(v4(&follower, "10.7.0.0/24"), ["unicast 10.0.2.2 e2"]);
        assert_eq!(v4(&follower, "10.6.0.0/24"), Vec::<String>::new());
        as_a_fresh_one(&follower);
        shell("ip link set e1 up");
        settle(&mut follower);
        assert_eq!(v4(&follower, "10.8.0.0/24"), ["unicast 10.0.1.2 e1 + 10.0.2.2 e2"]);
        as_a_fresh_one(&follower);
    });
}

/// A nexthop object that is deleted takes its routes along, without a word of them.
#[test]
fn a_nexthop_object_that_is_deleted_takes_its_routes_along() {
    in_namespace(|| {
        ports_up();
        shell(
            "ip nexthop add id 12 via 10.0.1.2 dev e1; ip nexthop add id 16 via fd00:1::2 dev e1
             ip route add 10.9.0.0/24 nhid 12; ip -6 route add fd09::/64 nhid 16",
        );
        let mut follower = follower();
        assert_eq!((v4(&follower, "10.9.0.0/24").len(), v6(&follower, "fd09::/64").len()), (1, 1));
        // The numbers come back at once, the routes do not.
        shell(
            "ip nexthop del id 12; ip nexthop del id 16; ip nexthop add id 12 via 10.0.2.2 dev e2; ip nexthop add id 16 via fd00:2::2 dev e2",
        );
        settle(&mut follower);
        assert_eq!((v4(&follower, "10.9.0.0/24").len(), v6(&follower, "fd09::/64").len()), (0, 0));
        as_a_fresh_one(&follower);
    });
}

#[test]
fn a_nexthop_object_that_is_replaced_by_one_of_another_protocol_only_has_that() {
    in_namespace(|| {
        ports_up();
        shell("ip nexthop add id 12 via 10.0.1.2 dev e1 proto static");
        let mut follower = follower();
        let protocol = |follower: &Follower| follower.mirror().editor().nexthop(12).map(|object| object.protocol);
        assert_eq!(protocol(&follower), Some(4));
        shell("ip nexthop replace id 12 via 10.0.1.2 dev e1 proto zebra");
        settle(&mut follower);
        assert_eq!(protocol(&follower), Some(11));
    });
}

/// From a group to a single nexthop object: replaced, not merged. And an object that is replaced changes the routes that name it.
#[test]
fn another_nexthop_object_replaces_the_one_before() {
    in_namespace(|| {
        ports_up();
        shell(
            "ip nexthop add id 12 via fd00:1::2 dev e1; ip nexthop add id 13 via fd00:2::2 dev e2; ip nexthop add id 20 group 12,3/13
             ip -6 route add fd09::/64 nhid 20",
        );
        let mut follower = follower();
        assert_eq!(v6(&follower, "fd09::/64"), ["unicast fd00:1::2 e1 + fd00:2::2 e2"]);
        shell("ip -6 route replace fd09::/64 nhid 12");
        settle(&mut follower);
        assert_eq!(v6(&follower, "fd09::/64"), ["unicast fd00:1::2 e1"]);
        shell("ip nexthop replace id 12 via fd00:3::2 dev e3");
        settle(&mut follower);
        assert_eq!(v6(&follower, "fd09::/64"), ["unicast fd00:3::2 e3"]);
        as_a_fresh_one(&follower);
    });
}

/// Members of IPv6 routes of several ways are added, replaced and deleted one by one, in messages of parts.
#[test]
fn members_of_ipv6_routes_come_and_go_one_by_one() {
    in_namespace(|| {
        ports_up();
        let mut follower = follower();
        for (line, left) in [
            ("add fd09::/64 via fd00:0::2", vec!["unicast fd00::2 e0"]),
            ("append fd09::/64 via fd00:1::2", vec!["unicast fd00::2 e0 + fd00:1::2 e1"]),
            ("append fd09::/64 via fd00:2::2", vec!["unicast fd00::2 e0 + fd00:1::2 e1 + fd00:2::2 e2"]),
            ("del fd09::/64 via fd00:1::2", vec!["unicast fd00::2 e0 + fd00:2::2 e2"]),
            ("replace fd09::/64 via fd00:3::2", vec!["unicast fd00:3::2 e3"]),
            ("del fd09::/64 via fd00:3::2", vec![]),
        ] {
            shell(&format!("ip -6 route {line}"));
            settle(&mut follower);
            assert_eq!(v6(&follower, "fd09::/64"), left, "{line}");
            as_a_fresh_one(&follower);
        }
    });
}

/// A replacement takes the place of a route that is alike: with ways that join others, or without.
#[test]
fn a_replacement_takes_the_place_of_one_that_is_alike() {
    in_namespace(|| {
        ports_up();
        shell("ip -6 route add fd09::/64 dev e0 metric 5; ip -6 route append fd09::/64 via fd00:1::2 metric 5");
        let mut follower = follower();
        shell("ip -6 route replace fd09::/64 via fd00:2::2 metric 5");
        settle(&mut follower);
        as_a_fresh_one(&follower);
        shell("ip -6 route replace fd09::/64 dev e3 metric 5");
        settle(&mut follower);
        as_a_fresh_one(&follower);
        assert_eq!(v6(&follower, "fd09::/64"), ["unicast e3", "unicast fd00:2::2 e2"]);
    });
}

/// An IPv4 route through an IPv6 gateway keeps all of the gateway.
#[test]
fn an_ipv4_route_has_an_ipv6_gateway() {
    in_namespace(|| {
        ports_up();
        let mut follower = follower();
        shell(
            "ip route add 10.18.0.0/24 via inet6 fe80::1 dev e3; ip route add 10.19.0.0/24 nexthop via inet6 fe80::2 dev e2 nexthop via 10.0.1.2",
        );
        settle(&mut follower);
        assert_eq!(v4(&follower, "10.18.0.0/24"), ["unicast fe80::1 e3"]);
        assert_eq!(v4(&follower, "10.19.0.0/24"), ["unicast fe80::2 e2 + 10.0.1.2 e1"]);
        as_a_fresh_one(&follower);
    });
}

/// Everything that seg6 and seg6local routes say is read: modes, all segments, HMAC, flavours, counters, table.
#[test]
fn srv6_routes_are_read_whole() {
    const ROUTES: [(&str, &str); 9] = [
        ("seg6 mode inline segs fc00:2::1,fc00:2::2", "encap seg6 mode inline segs 3 [ fc00:2::1 fc00:2::2 :: ]"),
        ("seg6 mode encap segs fc00:2::1,fc00:2::2 hmac 42", "encap seg6 mode encap segs 2 [ fc00:2::1 fc00:2::2 ] hmac 0x2a"),
        ("seg6 mode l2encap.red segs fc00:2::1", "encap seg6 mode l2encap.red segs 1 [ fc00:2::1 ]"),
        ("seg6local action End flavors psp,next-csid lblen 48 nflen 8 count", "action End flavors psp,next-csid lblen 48 nflen 8"),
        ("seg6local action End.X nh6 fd00:1::2 flavors next-csid", "action End.X nh6 fd00:1::2 flavors next-csid lblen 32 nflen 16"),
        ("seg6local action End.T table 500", "action End.T table 500"),
        ("seg6local action End.DX2 oif e3", "action End.DX2 oif e3"),
        ("seg6local action End.B6 srh segs fc00:2::b,fc00:2::c", "action End.B6 srh segs 2 [ fc00:2::b fc00:2::c ]"),
        ("seg6local action End.B6.Encaps srh segs fc00:2::b,fc00:2::c", "action End.B6.Encaps srh segs 2 [ fc00:2::b fc00:2::c ]"),
    ];
    in_namespace(|| {
        ports_up();
        let mut follower = follower();
        let lines = ROUTES.iter().enumerate().map(|(n, (encap, _))| format!("route add fd09:{n}::/64 encap {encap} dev e0\n"));
        batch(&lines.collect::<String>());
        // And at each way of a route of several.
        shell(
            "ip -6 route add fd0a::/64 nexthop encap seg6 mode encap segs fc00:2::1 via fd00:1::2 nexthop encap seg6 mode encap segs fc00:2::2 via fd00:2::2",
        );
        settle(&mut follower);
        let (editor, tables) = (follower.mirror().editor(), follower.mirror().tables());
        let shown = |encap: Encap| match encap {
            Encap::None => String::new(),
            Encap::Seg6(id) => tables.policies.snapshot(id.0).unwrap().to_string(),
            Encap::Seg6Local(id) => tables
                .sids
                .snapshot(id.0)
                .unwrap()
                .display_with(&|dev| editor.links().get(dev).map(|link| link.name.to_string()))
                .to_string(),
        };
        let of = |addr: Ipv6Addr| {
            editor.longest(TableId::MAIN, addr).unwrap().1.effect.hops.iter().map(|hop| shown(hop.encap)).collect::<Vec<_>>()
        };
        for (n, (_, meant)) in ROUTES.iter().enumerate() {
            assert_eq!(of(Ipv6Addr::new(0xfd09, n as u16, 0, 0, 0, 0, 0, 1)), [*meant]);
        }
        assert_eq!(
            of(Ipv6Addr::new(0xfd0a, 0, 0, 0, 0, 0, 0, 1)),
            ["encap seg6 mode encap segs 1 [ fc00:2::1 ]", "encap seg6 mode encap segs 1 [ fc00:2::2 ]"]
        );
        assert_eq!(follower.mirror().sids().count(), 6);
        shell("ip -6 route flush table main proto boot");
        settle(&mut follower);
        let gone = follower.take_gone();
        let_go(follower.mirror().tables(), gone);
        assert_eq!(
            (follower.mirror().sids().count(), follower.mirror().tables().sids.len(), follower.mirror().tables().policies.len()),
            (0, 0, 0)
        );
    });
}

/// A neighbour that the kernel has no traffic with is resolved, and kept, when asked for.
#[test]
fn a_neighbour_is_resolved_when_asked_for() {
    in_namespace(|| {
        ports_up();
        let mut follower = follower();
        let e1 = follower.mirror().editor().links().named("e1").unwrap().index;
        let gateway: IpAddr = "10.0.1.2".parse().unwrap();
        Asker::new().unwrap().keep_alive(e1, gateway).unwrap();
        // Nobody answers; the kernel asks, and does not tell of it before it gives up.
        settle(&mut follower);
        let fresh = crate::lab::follower();
        let state = fresh.mirror().tables().network.neighbours.get(e1, gateway).map(|n| n.load().0);
        assert!(matches!(state, Some(NeighbourState::Incomplete | NeighbourState::Failed)), "{state:?}");
    });
}

/// What the tables cannot hold is not held wrongly: its packets are the kernel's, and it is listed.
#[test]
fn what_is_not_supported_is_left_to_the_kernel_and_listed() {
    in_namespace(|| {
        ports_up();
        let mut follower = follower();
        shell(
            "ip nexthop add id 1 encap ip id 7 dst 10.0.1.9 via 10.0.1.2 dev e1; ip nexthop add id 2 group 1 type resilient buckets 8
             ip route add 10.9.0.0/24 via 10.0.0.2; ip route add 10.9.0.0/25 nhid 2; ip route add 10.9.0.0/25 via 10.0.2.2 metric 9
             ip rule add fwmark 7 to 10.8.0.0/24 lookup 100 pref 99
             ip link add br0 type bridge; ip link set br0 up; ip link set e3 master br0",
        );
        settle(&mut follower);
        assert_eq!(v4(&follower, "10.9.0.0/24"), ["unicast 10.0.0.2 e0"]);
        assert_eq!(v4(&follower, "10.9.0.0/25"), ["unicast (kernel)", "unicast 10.0.2.2 e2"]);
        let listed: Vec<_> = follower.mirror().unsupported().iter().map(|it| format!("{}: {}", it.what, it.reason)).collect();
        assert_eq!(
            listed,
            [
                "device e3: it belongs to br0, which is no VRF device",
                "rule 99: marks are set by the kernel's packet filter, which noref does not see",
                "route 10.9.0.0/25 table main: encap ip is not implemented",
            ]
        );
        let rule = &follower.mirror().editor().rules::<Ipv4Addr>()[1];
        assert_eq!(
            (rule.pref, rule.action, rule.select.to.map(|to| to.to_string())),
            (99, route::Action::Lookup(TableId(0)), Some("10.8.0.0/24".into()))
        );
        shell("ip rule del pref 99; ip route del 10.9.0.0/25 nhid 2; ip link set e3 nomaster");
        settle(&mut follower);
        assert_eq!(v4(&follower, "10.9.0.0/25"), ["unicast 10.0.2.2 e2"]);
        assert_eq!(follower.mirror().unsupported(), []);
    });
}

/// What all SRv6 routes share, and sysctls, are not told of; they are read again every second.
#[test]
fn settings_that_are_not_told_of_are_followed() {
    in_namespace(|| {
        ports_up();
        let mut follower = follower();
        shell(
            "sysctl -qw net.ipv6.seg6_flowlabel=1 net.ipv6.conf.e2.seg6_enabled=1 net.ipv4.conf.e1.rp_filter=2; ip sr tunsrc set fd00:ffff::1",
        );
        let _ = crate::lab::try_shell("printf 'secret\\nsecret\\n' | script -qec 'ip sr hmac set 42 sha256' /dev/null");
        let end = std::time::Instant::now() + Duration::from_millis(1500);
        while std::time::Instant::now() < end {
            follower.step(Duration::from_millis(200)).unwrap();
        }
        let editor = follower.mirror().editor();
        let link = |name: &str| editor.links().named(name).unwrap();
        assert_eq!((editor.settings().seg6_flowlabel, editor.settings().seg6_tunsrc.to_string()), (1, "fd00:ffff::1".to_owned()));
        assert!(link("e2").conf6.seg6_enabled && !link("e1").conf6.seg6_enabled);
        assert_eq!((link("e1").conf4.rp_filter, link("e2").conf4.rp_filter), (2, 0));
        as_a_fresh_one(&follower);
    });
}

/// Followers are made of what they are given: no port, no place.
#[test]
fn devices_that_are_no_ports_are_elsewhere() {
    in_namespace(|| {
        ports_up();
        let mut follower = Follower::new(Mirror::new(&PORTS[..1])).unwrap();
        settle(&mut follower);
        let kind = |name: &str| follower.mirror().editor().links().named(name).unwrap().kind;
        assert_eq!((kind("e0"), kind("e1"), kind("lo")), (route::LinkKind::Port(0), route::LinkKind::Elsewhere, route::LinkKind::Loopback));
    });
}

//! Lines one by one, lines together, and lines that are taken back: whatever they are, the tables are the same.

use std::net::{Ipv4Addr, Ipv6Addr};

use control::Configuration;
use control::show::listing;
use proptest::prelude::*;
use route::{Encap, Flow, IfIndex, RouteRefs};

const BASE: &str = "\
link set e0 up
link set e1 up
addr add 10.0.0.1/24 dev e0
-6 addr add fd00:0::1/64 dev e0 nodad
addr add 10.0.1.1/24 dev e1
-6 addr add fd00:1::1/64 dev e1 nodad
sysctl net.vrf.strict_mode=1
route add 10.9.0.0/16 via 10.0.0.2
-6 route add fc00:1::1 encap seg6local action End dev e0
";

/// Of which some are refused, depending on what came before.
const LINES: &[&str] = &[
    "route add 10.9.0.0/16 via 10.0.0.3",
    "route add 10.9.0.0/16 via 10.0.0.3 metric 5",
    "route replace 10.9.0.0/16 via 10.0.1.2",
    "route append 10.9.0.0/16 via 10.0.1.3",
    "route del 10.9.0.0/16",
    "route del 10.9.0.0/16 metric 5",
    "route replace default encap seg6 mode encap segs fc00::1 dev e0",
    "route replace 10.8.0.0/16 encap seg6 mode encap segs fc00::1 dev e1",
    "route replace 10.8.0.0/16 encap seg6 mode encap.red segs fc00::2,fc00::3 dev e1",
    "route del default",
    "route add 10.7.0.0/16 table 7 nexthop via 10.0.0.2 nexthop via 10.0.1.2",
    "route del 10.7.0.0/16 table 7",
    "route add blackhole 10.6.0.0/16",
    "-6 route replace fc00:1::1 encap seg6local action End dev e1",
    "-6 route replace fc00:1::1 encap seg6local action End.X nh6 fd00:1::9 count dev e1",
    "-6 route add fc00:1::2 encap seg6local action End.T table 7 dev e0",
    "-6 route del fc00:1::2",
    "-6 route append fd09::/64 via fd00:0::2",
    "-6 route append fd09::/64 via fd00:1::2",
    "-6 route replace fd09::/64 via fd00:0::3",
    "-6 route del fd09::/64 via fd00:1::2",
    "-6 route add table 10 fd0a::/64 via fd00:1::2 src fd00:0::1",
    "addr add 10.0.0.9/24 dev e0",
    "addr del 10.0.0.1/24 dev e0",
    "addr add 10.0.0.1/24 dev e0",
    "-6 addr del fd00:0::1/64 dev e0",
    "link set e1 down",
    "link set e1 up",
    "link set e1 mtu 1200",
    "link set e1 mtu 1500",
    "link add red type vrf table 10",
    "link set red up",
    "link set e1 master red",
    "link set e1 nomaster",
    "link del red",
    "-6 route add fc00:1::46 encap seg6local action End.DT46 vrftable 10 dev e0",
    "rule add from 10.0.0.0/8 lookup 7 pref 50",
    "rule del pref 50",
    "-6 rule add iif e1 lookup 8 pref 60",
    "neigh add 10.0.0.2 lladdr 02:00:00:00:0f:00 dev e0",
    "neigh replace 10.0.1.2 lladdr 02:00:00:00:0f:01 dev e1",
    "neigh del 10.0.0.2 dev e0",
    "sysctl net.ipv6.conf.all.forwarding=1",
    "sysctl net.ipv6.conf.e1.disable_ipv6=1",
    "sysctl net.ipv6.conf.e1.disable_ipv6=0",
    "sr tunsrc set fd00::77",
    "sr hmac set 5 sha1 secret",
    "sr hmac set 5 sha1 ''",
];

fn router() -> Configuration {
    control::network_file(BASE, "net.ip", &["e0", "e1"]).unwrap_or_else(|errors| panic!("{errors}"))
}

/// Everything there is, as text.
fn state(configuration: &Configuration) -> String {
    let mut text = Vec::new();
    for line in ["-4 route show table all", "-6 route show table all", "rule", "-6 rule", "neigh", "addr", "sr tunsrc show", "sr hmac show"]
    {
        let listing = listing(line, "ip", configuration).unwrap().unwrap();
        listing.print(configuration, &mut text).unwrap();
    }
    let sid = |id| &configuration.sids.get(id).expect("a SID").sid;
    let sids: Vec<_> = configuration.placed_sids().into_iter().map(|(table, prefix, id)| format!("{prefix} {table} {}", sid(id))).collect();
    let (mut sorted, tables) = (sids.clone(), &configuration.tables);
    sorted.sort();
    assert_eq!(tables.sids.len(), sids.len());
    let workers = seen_by_workers(configuration);
    format!(
        "{}\n{sorted:?}\n{workers}\n{} policies\n{:?}",
        String::from_utf8(text).unwrap(),
        tables.policies.len(),
        configuration.editor.settings()
    )
}

/// Where workers send some packets.
fn seen_by_workers(configuration: &Configuration) -> String {
    let tables = &configuration.tables;
    let mut text = String::new();
    tables.network.domain().reader().burst(|guard| {
        let mut show = |dst: &str, found: &route::Dst| {
            text += &format!("{dst} {:?}", found.kind);
            for hop in found.hops() {
                let encap = match hop.encap {
                    Encap::None => String::new(),
                    Encap::Seg6(id) => tables.policies.get(guard, id.0).expect("the policy is there").to_string(),
                    Encap::Seg6Local(id) => tables.sids.get(guard, id.0).expect("the SID is there").to_string(),
                };
                let gateway = hop.gateway.as_ref().map(|gateway| (gateway.addr(), gateway.mac()));
                text += &format!(" {:?} {gateway:?} {encap}", hop.dev);
            }
            text += "\n";
        };
        for dst in ["10.9.0.1", "10.8.0.1", "10.7.0.1", "10.6.0.1", "192.0.2.1", "10.0.0.5", "10.0.1.1"] {
            let flow = flow(dst.parse::<Ipv4Addr>().unwrap(), Ipv4Addr::new(10, 0, 0, 7));
            show(dst, &tables.network.v4.lookup(guard, &flow, RouteRefs::Noref).dst);
        }
        for dst in ["fc00:1::1", "fc00:1::2", "fc00:1::46", "fd09::1", "fd00::1", "fd00:1::5"] {
            let flow = flow(dst.parse::<Ipv6Addr>().unwrap(), Ipv6Addr::UNSPECIFIED);
            show(dst, &tables.network.v6.lookup(guard, &flow, RouteRefs::Noref).dst);
        }
    });
    text
}

fn flow<A: route::Address>(dst: A, src: A) -> Flow<A> {
    Flow { src, ..Flow::new(dst, IfIndex(2)) }
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::with_cases(300) })]

    #[test]
    fn lines_together_do_what_they_do_one_by_one_and_nothing_when_one_is_wrong(places in prop::collection::vec(0..LINES.len(), 1..40)) {
        let lines: Vec<_> = places.into_iter().filter_map(|place| LINES.get(place)).copied().collect();
        let mut one_by_one = router();
        let taken: Vec<_> = lines.iter().filter(|line| one_by_one.apply(line, "line").is_ok()).copied().collect();
        let expected = state(&one_by_one);

        let mut each = router();
        let (_, errors) = each.apply_each(&lines.join("\n"), "lines");
        prop_assert_eq!(errors.is_none(), taken.len() == lines.len());
        prop_assert_eq!(state(&each), expected.clone());

        let mut together = router();
        let before = state(&together);
        let wrong = format!("{}\nlink set e7 up", taken.join("\n"));
        prop_assert!(together.apply(&wrong, "lines").is_err());
        prop_assert_eq!(state(&together), before);
        if let Err(errors) = together.apply(&taken.join("\n"), "lines") {
            prop_assert!(false, "{}", errors);
        }
        prop_assert_eq!(state(&together), expected);
    }

    #[test]
    fn no_text_makes_what_is_shown_or_changed_panic(text in "[ -~\n]{0,60}", verb in "(-[a-z46]{1,3} )?(route|rule|neigh|addr|link|sr|a|r|l|n|s) ?(show|list|sh|l|add|s)? ") {
        let mut router = router();
        for line in [text.clone(), format!("{verb}{text}")] {
            if let Ok(Some(listing)) = listing(&line, "ip", &router) {
                listing.print(&router, &mut std::io::sink()).unwrap();
            }
            let _ = router.apply_each(&line, "ip");
        }
    }
}

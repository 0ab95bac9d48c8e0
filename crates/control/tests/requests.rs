//! Lines applied to a router that runs: all of a request, or nothing.

use std::net::{Ipv4Addr, Ipv6Addr};
use std::sync::atomic::{AtomicBool, Ordering};

use control::Configuration;
use route::{Encap, Flow, IfIndex, Kind, Prefix, RouteRefs, TableId};

const BASE: &str = "\
link set e0 up
link set e1 up
addr add 10.0.0.1/24 dev e0
-6 addr add fd00:0::1/64 dev e0 nodad
addr add 10.0.1.1/24 dev e1
ip sr hmac set 5 sha1 old
";

fn router() -> Configuration {
    control::network_file(BASE, "net.ip", &["e0", "e1"]).unwrap_or_else(|errors| panic!("{errors}"))
}

fn apply(configuration: &mut Configuration, lines: &str) {
    configuration.apply(lines, "request").unwrap_or_else(|errors| panic!("{errors}"));
}

fn via(configuration: &Configuration, dst: [u8; 4]) -> Option<String> {
    let network = &configuration.tables.network;
    let flow = Flow::new(dst.into(), IfIndex(2));
    network.domain().reader().burst(|guard| {
        let answer = network.v4.lookup(guard, &flow, RouteRefs::Noref);
        answer.dst.nexthop.as_ref().and_then(|hop| hop.gateway.as_ref()).map(|gateway| gateway.addr().to_string())
    })
}

#[test]
fn lines_are_applied_to_what_is_there() {
    let mut configuration = router();
    apply(&mut configuration, "route add 10.9/16 via 10.0.0.2");
    assert_eq!(via(&configuration, [10, 9, 0, 1]).as_deref(), Some("10.0.0.2"));
    apply(&mut configuration, "route replace 10.9/16 via 10.0.1.2\nroute append 10.9/16 via 10.0.0.3");
    assert_eq!(via(&configuration, [10, 9, 0, 1]).as_deref(), Some("10.0.1.2"));
    apply(&mut configuration, "route del 10.9/16");
    assert_eq!(via(&configuration, [10, 9, 0, 1]).as_deref(), Some("10.0.0.3"));
    apply(&mut configuration, "route del 10.9/16");
    assert_eq!(via(&configuration, [10, 9, 0, 1]), None);
}

#[test]
fn a_request_with_a_wrong_line_changes_nothing() {
    let mut configuration = router();
    apply(&mut configuration, "-6 route add fc00:1::1 encap seg6local action End dev e0");
    let lines = "\
route add 10.9/16 via 10.0.0.2
route replace 10.0.1.0/24 dev e0
-6 route replace fc00:1::1 encap seg6local action End.T table 9 dev e0
route add 10.8/16 encap seg6 mode encap segs fc00::1 dev e0
neigh add 10.0.0.2 lladdr 02:00:00:00:0f:00 dev e0
sr hmac set 5 sha256 new
sr tunsrc set fd00::9
rule add from 10.0.0.0/8 lookup 77
addr add 10.5.0.1/24 dev e1
link set e1 mtu 9000
route add 10.0.77.0/24 via 10.77.0.1
";
    let errors = configuration.apply(lines, "request").unwrap_err().to_string();
    assert!(errors.starts_with("request:11:28: the gateway 10.77.0.1 is not on a directly connected network"), "{errors}");
    assert_eq!(via(&configuration, [10, 9, 0, 1]), None);
    assert!(!configuration.editor.table_exists::<Ipv4Addr>(TableId(77)));
    assert_eq!((configuration.sids.len(), configuration.tables.sids.len(), configuration.tables.policies.len()), (1, 1, 0));
    assert_eq!(configuration.sids.iter().map(|sid| sid.sid.descriptor().name).collect::<Vec<_>>(), ["End"]);
    assert!(configuration.tables.network.neighbours.is_empty());
    assert_eq!(configuration.editor.settings().seg6_tunsrc, Ipv6Addr::UNSPECIFIED);
    let e1 = configuration.editor.links().named("e1").unwrap();
    assert_eq!((e1.mtu, e1.addrs4.len()), (1500, 1));

    // Without its wrong line it is taken, as if it had never been refused.
    let (right, _) = lines.trim_end().rsplit_once('\n').unwrap();
    apply(&mut configuration, right);
    assert_eq!(via(&configuration, [10, 9, 0, 1]).as_deref(), Some("10.0.0.2"));
    assert_eq!(configuration.sids.iter().map(|sid| sid.sid.descriptor().name).collect::<Vec<_>>(), ["End.T"]);
}

#[test]
fn with_force_only_the_wrong_line_is_left_out() {
    let mut configuration = router();
    let (applied, errors) = configuration
        .apply_each("route add 10.8/16 via 10.0.0.2\nroute add 10.8/16 via 10.0.0.3\nroute add 10.9/16 via 10.0.0.4\n", "request");
    assert!(applied.numbered_again.is_empty());
    assert!(errors.unwrap().to_string().starts_with("request:2:11: the route to 10.8.0.0/16 exists already"));
    assert_eq!(via(&configuration, [10, 8, 0, 1]).as_deref(), Some("10.0.0.2"));
    assert_eq!(via(&configuration, [10, 9, 0, 1]).as_deref(), Some("10.0.0.4"));
    assert!(configuration.apply_each("route del 10.8/16", "request").1.is_none());
}

#[test]
fn policies_and_sids_come_and_go_with_their_routes() {
    let mut configuration = router();
    let counted =
        |configuration: &Configuration| (configuration.tables.policies.len(), configuration.tables.sids.len(), configuration.sids.len());
    apply(&mut configuration, "route add 10.8/16 encap seg6 mode encap segs fc00::1 dev e0");
    apply(&mut configuration, "route add 10.9/16 encap seg6 mode encap segs fc00::1 dev e0");
    assert_eq!(counted(&configuration), (1, 0, 0));
    apply(&mut configuration, "route del 10.8/16");
    assert_eq!(counted(&configuration), (1, 0, 0));
    apply(&mut configuration, "route del 10.9/16\n-6 route add fc00:1::1 encap seg6local action End dev e0");
    assert_eq!(counted(&configuration), (0, 1, 1));
    apply(&mut configuration, "route add 10.9/16 encap seg6 mode encap segs fc00::1 dev e0\nroute del 10.9/16");
    assert_eq!(counted(&configuration), (0, 1, 1));
    apply(&mut configuration, "link set e0 down");
    assert_eq!(counted(&configuration), (0, 0, 0));
    for _ in 0..1000 {
        let applied = configuration.apply("-6 route replace fc00:1::1 encap seg6local action End dev e1", "request").unwrap();
        assert!(applied.numbered_again.len() <= 1);
    }
    assert_eq!(counted(&configuration), (0, 1, 1));
    assert!(configuration.sids.iter().all(|sid| sid.id.0 < 10), "numbers are given out again");
}

#[test]
fn a_packet_finds_the_sid_of_its_route_however_often_it_is_replaced() {
    let mut configuration = router();
    apply(&mut configuration, "-6 route add fc00:1::1 encap seg6local action End dev e0");
    let tables = configuration.tables.clone();
    let done = AtomicBool::new(false);
    std::thread::scope(|scope| {
        let reader = scope.spawn(|| {
            let mut reader = tables.network.domain().reader();
            let (dst, src): (Ipv6Addr, Ipv6Addr) = ("fc00:1::1".parse().unwrap(), Ipv6Addr::UNSPECIFIED);
            let mut bursts = 0;
            while !done.load(Ordering::Relaxed) {
                let flow = Flow { src, ..Flow::new(dst, IfIndex(2)) };
                reader.burst(|guard| {
                    let answer = tables.network.v6.lookup(guard, &flow, RouteRefs::Noref);
                    assert_eq!(answer.dst.kind, Kind::Unicast);
                    let encap = answer.dst.nexthop.as_ref().map(|hop| hop.encap);
                    let Some(Encap::Seg6Local(id)) = encap else { panic!("a SID: {encap:?}") };
                    std::thread::yield_now();
                    assert!(tables.sids.get(guard, id.0).is_some(), "the SID went before its packet");
                });
                bursts += 1;
            }
            bursts
        });
        for round in 0..3000 {
            apply(&mut configuration, &format!("-6 route replace fc00:1::1 encap seg6local action End dev e{}", round % 2));
        }
        done.store(true, Ordering::Relaxed);
        assert!(reader.join().unwrap() > 0);
    });
}

#[test]
fn a_line_costs_the_same_whatever_the_size_of_the_tables() {
    let mut configuration = router();
    let many: String = (0..100_000_u32)
        .map(|n| format!("route add {}/32 encap seg6 mode encap segs fc00::{:x} dev e0\n", Ipv4Addr::from(0x0b00_0000 + n), n % 5000))
        .collect();
    apply(&mut configuration, &many);
    let begin = std::time::Instant::now();
    let lines = 2000;
    for n in 0..lines {
        apply(&mut configuration, &format!("route replace 10.9.0.{}/32 via 10.0.0.{}", n % 200, 2 + n % 100));
    }
    let each = begin.elapsed() / lines;
    eprintln!("{each:?} a line of its own");
    assert!(each < std::time::Duration::from_millis(1), "{each:?} a line: does it look at every route?");
    assert_eq!(configuration.editor.routes::<Ipv4Addr>(TableId::MAIN).filter(|(prefix, _)| within(prefix)).count(), 200);
}

fn within(prefix: &Prefix<Ipv4Addr>) -> bool {
    prefix.addr().octets()[..2] == [10, 9]
}

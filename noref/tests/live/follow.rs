//! Faults that other programs had in following the kernel: each change is made by `ip`, then noref's routes are held against the kernel's.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write as _;
use std::net::{Ipv4Addr, Ipv6Addr};
use std::time::{Duration, Instant};

use serde_json::Value;
use testkit::network;
use testkit::route_changes::Change;

use crate::bed::Bed;
use crate::churn::{self, By, Round};

/// How long a change may take to arrive.
const PATIENCE: Duration = Duration::from_secs(10);

/// Prefixes of a table with their ways: gateway and device. Those by the loopback device are left to the kernel, and left out here.
type Routes = BTreeMap<String, BTreeSet<(String, String)>>;

fn text<'a>(value: &'a Value, name: &str) -> &'a str {
    value.get(name).and_then(Value::as_str).unwrap_or_default()
}

/// Those of the kernel's main table, both families, but for multicast.
fn kernel(bed: &Bed) -> Routes {
    let mut routes = Routes::new();
    let rows = ["-4", "-6"].into_iter().flat_map(|family| churn::kernel_routes(&bed.lab, family));
    for (prefix, row) in rows.filter(|(_, row)| text(row, "type") != "multicast") {
        let way = |row: &Value| {
            let via = row.get("via").map_or("", |via| text(via, "host"));
            let gateway = if via.is_empty() { text(row, "gateway") } else { via };
            (gateway.to_owned(), text(row, "dev").to_owned())
        };
        let ways = row.get("nexthops").and_then(Value::as_array).map_or_else(|| vec![way(&row)], |ways| ways.iter().map(way).collect());
        routes.entry(prefix).or_default().extend(ways);
    }
    routes.retain(|_, ways| ways.iter().all(|(_, dev)| dev != "lo"));
    routes
}

/// Those of noref's main table.
fn mirrored(bed: &Bed) -> Routes {
    let mut routes = Routes::new();
    for row in bed.router.show("routes").iter().filter(|row| text(row, "table") == "main") {
        let ways = row.get("ways").and_then(Value::as_array).into_iter().flatten();
        let ways = ways.map(|way| (text(way, "via").to_owned(), text(way, "dev").to_owned()));
        routes.entry(text(row, "prefix").to_owned()).or_default().extend(ways);
    }
    routes.retain(|_, ways| !ways.is_empty());
    routes
}

/// Has `ip` do this, a line each, and waits until noref has the same routes.
fn change(bed: &Bed, lines: &str) {
    for line in lines.lines() {
        bed.lab.router.ip(line).unwrap();
    }
    let begin = Instant::now();
    loop {
        let (kernel, mirrored) = (kernel(bed), mirrored(bed));
        if kernel == mirrored {
            return;
        }
        let differ = |a: &Routes, b: &Routes| {
            a.iter().filter(|(prefix, ways)| b.get(*prefix) != Some(ways)).map(|row| format!("{row:?}")).collect::<Vec<_>>()
        };
        assert!(
            begin.elapsed() < PATIENCE,
            "after {lines:?}\n  the kernel has {:?}\n  noref has {:?}",
            differ(&kernel, &mirrored),
            differ(&mirrored, &kernel)
        );
        std::thread::sleep(Duration::from_millis(50));
    }
}

#[test]
fn routes_that_the_kernel_takes_away_without_a_message_go_when_their_link_does() {
    let Some(bed) = Bed::beside_the_kernel() else { return };
    change(&bed, "nexthop add id 7 via 10.0.1.2 dev e1\nroute add 10.200.0.0/16 nhid 7\nroute add 10.201.0.0/16 via 10.0.1.2");
    change(&bed, "link set e1 down");
    assert!(!mirrored(&bed).contains_key("10.200.0.0/16"));
    change(&bed, "link set e1 up");
}

#[test]
fn a_route_whose_nexthop_is_deleted_goes_with_it() {
    let Some(bed) = Bed::beside_the_kernel() else { return };
    change(
        &bed,
        "nexthop add id 7 via 10.0.1.2 dev e1\nroute add 10.200.0.0/16 nhid 7\n-6 nexthop add id 8 via fd00:1::2 dev e1\n-6 route add fd20::/16 nhid 8",
    );
    change(&bed, "nexthop del id 7\nnexthop del id 8");
    assert!(!mirrored(&bed).contains_key("10.200.0.0/16") && !mirrored(&bed).contains_key("fd20::/16"));
}

#[test]
fn a_single_nexthop_replaces_a_group_and_does_not_join_it() {
    let Some(bed) = Bed::beside_the_kernel() else { return };
    change(
        &bed,
        "nexthop add id 11 via 10.0.1.2 dev e1\nnexthop add id 12 via 10.0.2.2 dev e2\nnexthop add id 20 group 11/12\nroute add 10.200.0.0/16 nhid 20",
    );
    assert_eq!(mirrored(&bed)["10.200.0.0/16"].len(), 2);
    change(&bed, "route replace 10.200.0.0/16 nhid 12");
    assert_eq!(mirrored(&bed)["10.200.0.0/16"].len(), 1);
    change(&bed, "nexthop replace id 12 via 10.0.3.2 dev e3");
}

#[test]
fn members_of_an_ipv6_route_come_and_go_one_by_one() {
    let Some(bed) = Bed::beside_the_kernel() else { return };
    change(&bed, "-6 route add fd20::/16 via fd00:1::2 dev e1");
    change(&bed, "-6 route append fd20::/16 via fd00:2::2 dev e2");
    change(&bed, "-6 route replace fd20::/16 via fd00:3::2 dev e3");
    change(&bed, "-6 route append fd20::/16 via fd00:1::2 dev e1\n-6 route append fd20::/16 via fd00:2::2 dev e2");
    change(&bed, "-6 route del fd20::/16 via fd00:1::2 dev e1");
    assert_eq!(mirrored(&bed)["fd20::/16"].len(), 2);
    change(&bed, "-6 route del fd20::/16 via fd00:3::2 dev e3");
    change(&bed, "-6 route del fd20::/16 via fd00:2::2 dev e2");
}

#[test]
fn ipv6_routes_that_may_and_may_not_be_joined_are_replaced_as_the_kernel_does() {
    let Some(bed) = Bed::beside_the_kernel() else { return };
    // A route without a gateway is no member of one with.
    change(&bed, "-6 route add fd21::/16 dev e1 metric 1024\n-6 route append fd21::/16 via fd00:2::2 dev e2 metric 1024");
    change(&bed, "-6 route replace fd21::/16 via fd00:3::2 dev e3 metric 1024");
    change(&bed, "-6 route replace fd21::/16 dev e2 metric 1024");
}

#[test]
fn an_ipv4_route_by_an_ipv6_neighbour_is_forwarded_by_it() {
    let Some(bed) = Bed::beside_the_kernel() else { return };
    change(&bed, "route add 10.18.0.0/24 via inet6 fe80::23 dev e3");
    let before = bed.router.packets("e3", "sent");
    let told = bed.traffic_to(Ipv4Addr::new(10, 18, 0, 7), Duration::from_millis(300));
    assert_eq!(told.lost(), 0, "{told:?}");
    assert!(bed.router.packets("e3", "sent") - before >= told.sent, "the kernel forwarded it");
}

#[test]
fn messages_lost_while_noref_did_not_read_are_made_good() {
    let Some(bed) = Bed::beside_the_kernel() else { return };
    bed.router.signal("STOP");
    // More than there is room for at its socket.
    let count = 60_000;
    for (change, port) in [(Change::Add, 1), (Change::Replace, 2), (Change::Replace, 1)] {
        Round::new(&bed.lab, change, 0..count, port).make(&bed.lab, By::Messages);
    }
    Round::new(&bed.lab, Change::Del, (0..count).filter(|number| number % 10 > 0), 1).make(&bed.lab, By::Messages);
    let neighbours = (0..2_000_u32).fold(String::new(), |mut text, number| {
        let address = Ipv6Addr::from(0xfd00_0001_u128 << 96 | u128::from(number + 0x1_0000));
        let _ = writeln!(text, "neigh replace {address} lladdr 02:00:00:00:0f:01 dev e1 nud permanent");
        text
    });
    churn::batch(&bed.lab, &neighbours);
    bed.router.signal("CONT");
    churn::assert_equal_to_the_kernel(&bed);
    assert_eq!(mirrored(&bed), kernel(&bed));
    let lost = bed.router.show("mirror").iter().filter_map(|row| row.pointer("/counters/lost")?.as_u64()).sum::<u64>();
    assert!(lost > 0, "{:?}", bed.router.show("mirror"));
    let own = network::plain().lines().filter(|line| line.contains(" neigh ")).count();
    assert!(bed.router.show("neighbours").len() >= own + 2_000);
}

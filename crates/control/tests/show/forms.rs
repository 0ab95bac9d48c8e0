//! What is asked for, and what cannot be.

use control::Configuration;
use control::show::{Source, listing};
use plane::{PacketCount, SidCount, Tables};
use route::{Editor, SidId, Tick};

const BASE: &str = "\
link set e0 up
link set e1 mtu 9000
addr add 10.0.0.1/24 brd + dev e0
addr add 10.0.0.9/24 dev e0
-6 addr add fd00:0::1/64 dev e0 nodad
sysctl net.vrf.strict_mode=1
link add red type vrf table 10
link set red up
link set e1 master red
link set e1 up
addr add 10.0.1.1/24 dev e1
route add vrf red 10.9/16 via 10.0.1.2
-6 route add fc00:1::1 encap seg6local action End.DT46 vrftable 10 count dev red
-6 route add fc00:1::2 encap seg6local action End count flavors psp dev e0
sr hmac set 42 sha256 secret
";

fn router() -> Configuration {
    control::network_file(BASE, "net.ip", &["e0", "e1"]).unwrap_or_else(|errors| panic!("{errors}"))
}

pub fn shown(source: &impl Source, line: &str) -> String {
    let listing = listing(line, "ip", source).unwrap_or_else(|errors| panic!("{errors}"));
    let mut out = Vec::new();
    listing.unwrap_or_else(|| panic!("{line}: shows nothing")).print(source, &mut out).expect("memory");
    String::from_utf8(out).expect("text")
}

fn refused(line: &str) -> (String, bool) {
    let errors = listing(line, "ip", &router()).expect_err(line);
    (errors.shown[0].error.to_string(), errors.parsed)
}

/// A router that has counted.
struct Busy(Configuration);

impl Source for Busy {
    fn editor<R>(&self, read: impl FnOnce(&Editor) -> R) -> R {
        self.0.editor(read)
    }

    fn tables(&self) -> &Tables {
        self.0.tables()
    }

    fn counted(&self, _: SidId) -> SidCount {
        SidCount { processed: PacketCount { packets: 7, bytes: 700 }, errors: 1 }
    }
}

#[test]
fn vrf_devices_have_their_routes_rules_and_members() {
    let router = router();
    let routes = "\
10.0.1.0/24 dev e1 proto kernel scope link src 10.0.1.1 
local 10.0.1.1 dev e1 proto kernel scope host src 10.0.1.1 
broadcast 10.0.1.255 dev e1 proto kernel scope link src 10.0.1.1 
10.9.0.0/16 via 10.0.1.2 dev e1 
";
    assert_eq!(shown(&router, "ip route show vrf red"), routes);
    assert_eq!(shown(&router, "route list table 10"), routes);
    assert!(shown(&router, "ip rule").contains("1000:\tfrom all lookup [l3mdev-table]\n"));
    let members = shown(&router, "ip link show master red");
    assert!(members.starts_with("3: e1: <BROADCAST,MULTICAST,UP,LOWER_UP> mtu 9000 master red state UP\n    link/ether 02:"), "{members}");
    let vrf = shown(&router, "ip -o link ls type vrf");
    assert!(vrf.starts_with("4: red: <NOARP,MASTER,UP,LOWER_UP> mtu 65575 state UP\\    link/ether ") && vrf.lines().count() == 1, "{vrf}");
}

#[test]
fn questions_are_asked_in_a_vrf_by_its_device_or_a_member() {
    let router = router();
    let shown = |line| shown(&router, line);
    let to = "10.9.0.1 via 10.0.1.2 dev e1 table 10 src 10.0.1.1 uid 7 \n    cache \n";
    assert_eq!(shown("ip route get 10.9.0.1 vrf red uid 7"), to);
    assert_eq!(shown("ip -o route get 10.9.0.1 oif e1 uid 7"), to.replace("\n    ", "\\    "));
    let local = "local 10.0.1.1 dev red table 10 src 10.0.1.1 uid 7 \n    cache <local> \n";
    assert_eq!(shown("ip route get 10.0.1.1 vrf red uid 7"), local);
    let explained = shown("ip route get 10.0.1.1 vrf red uid 7 explain");
    let steps = "\
rule 0 (from all lookup local): no route in table local
rule 1000 (from all lookup [l3mdev-table]): the answer: local 10.0.1.1 dev e1 table 10 proto kernel scope host src 10.0.1.1
";
    assert_eq!(explained, format!("{local}{steps}"));
    assert!(listing("ip route get 10.9.0.1", "ip", &router).unwrap().unwrap().refusal().unwrap().ends_with("Network is unreachable"));
}

#[test]
fn addresses_are_those_of_their_device() {
    let text = "    inet 10.0.0.1/24 brd 10.0.0.255 scope global e0
       valid_lft forever preferred_lft forever
    inet 10.0.0.9/24 scope global secondary e0
       valid_lft forever preferred_lft forever
";
    let router = router();
    assert_eq!(shown(&router, "ip -4 a s dev e0"), format!("2: e0: <BROADCAST,MULTICAST,UP,LOWER_UP> mtu 1500 state UP\n{text}"));
    let line = "2: e0    inet6 fd00::1/64 scope global \\       valid_lft forever preferred_lft forever\n";
    assert!(shown(&router, "ip -o -6 addr show e0").starts_with(line));
    assert_eq!(shown(&router, "-4 addr show lo"), "");
}

#[test]
fn counters_of_sids_are_shown_when_asked_for() {
    let router = Busy(router());
    let end = "fc00:1::2  encap seg6local action End packets 7 bytes 700 errors 1 flavors psp dev e0 metric 1024 pref medium\n";
    assert_eq!(shown(&router, "ip -s -6 route show fc00:1::2"), end);
    assert_eq!(
        shown(&router, "ip -stats route show fc00:1::1"),
        end.replace("::2 ", "::1 ").replace("End packets", "End.DT46 vrftable 10 packets").replace("flavors psp dev e0", "dev red")
    );
    assert!(!shown(&router, "ip route show fc00:1::1").contains("packets"));
}

#[test]
fn secrets_are_not_shown() {
    assert_eq!(shown(&router(), "ip sr hmac show"), "hmac 42 algo sha256 secret (not shown)\n");
    assert_eq!(shown(&router(), "sr t sh"), "tunsrc addr ::\n");
}

#[test]
fn what_changes_something_shows_nothing() {
    for line in [
        "ip route add default via 10.0.0.2",
        "link set e0 up",
        "ip sr tunsrc set ::",
        "sysctl a=1",
        "",
        "ip rotue show",
        "a a",
        "neigh flush dev e0",
    ] {
        assert!(listing(line, "ip", &router()).unwrap().is_none(), "{line}");
    }
}

#[test]
fn rules_by_mark_and_marks_are_shown_as_they_are_written() {
    let mut router = router();
    let lines = "\
rule add fwmark 0x10 blackhole pref 403
rule add fwmark 0/0xff unreachable pref 404
rule add not fwmark 0x1ff/0xff lookup 7 pref 405
rule add fwmark 0 lookup 7 pref 406
mark add iif e0 to 10.9.0.0/16 ipproto udp dport 53 set 0x10/0xff
mark add sport 1000-2000 dscp EF set 7
";
    router.apply(lines, "request").unwrap_or_else(|errors| panic!("{errors}"));
    assert_eq!(shown(&router, "ip rule show fwmark 0x10"), "403:\tfrom all fwmark 0x10 blackhole\n");
    assert_eq!(shown(&router, "ip rule show pref 404"), "404:\tfrom all fwmark 0/0xff unreachable\n");
    assert_eq!(shown(&router, "ip rule show table 7"), "405:\tnot from all fwmark 0x1ff/0xff lookup 7\n406:\tfrom all lookup 7\n");
    let marks = "\
-4 mark add from all to 10.9.0.0/16 iif e0 ipproto udp dport 53 set 0x10/0xff
-4 mark add from all sport 1000-2000 dscp EF set 0x7
-6 mark add from all sport 1000-2000 dscp EF set 0x7
";
    assert_eq!(shown(&router, "mark show"), marks);
    let again = Configuration::apply(&mut router, &format!("mark flush\n{marks}"), "request");
    again.unwrap_or_else(|errors| panic!("{errors}"));
    assert_eq!(shown(&router, "mark"), marks);
}

#[test]
fn what_cannot_be_shown_is_refused_by_name() {
    let read = |line, why: &str| assert_eq!(refused(line), (why.to_owned(), false), "{line}");
    read("ip -j route", "\"-json\" is not implemented yet");
    read("ip -br link", "\"-brief\" is not implemented yet");
    read("ip -x link", "unknown option \"-x\"");
    read("ip -s link", "\"-statistics\" of \"ip link\" is not implemented yet");
    read("ip route get 10.0.0.1 connected", "\"connected\" of \"route get\" is not implemented yet");
    read("ip route get", "\"ip route get\" needs a destination (an address)");
    read("ip route get 10.0.0.0/24", "\"10.0.0.0/24\" is not an address: one address is asked about, not a network");
    read("ip route get 10.0.0.1 from fd00::1", "\"fd00::1\" is not an IPv4 address: it is an IPv6 address");
    read("ip route get 10.0.0.1 tos 3", "\"3\" is not a DS field to ask for: its last two bits are ECN and must be 0");
    read("ip route get 10.0.0.1 oif e0 vrf red", "a packet leaves by a device or is looked up in a VRF, not both");
    read("ip -s route get 10.0.0.1", "\"-statistics\" of \"ip route\" is not implemented yet");
    read("ip route show nosuch", "unknown keyword \"nosuch\"");
    read("ip route show table blue", "unknown table \"blue\"");
    read("ip route show table cache", "noref has no cache of routes");
    read("ip route show tos 4", "\"tos\" of routes to show is not implemented yet");
    read("ip -6 route show 10.0.0.0/8", "\"10.0.0.0\" is not an IPv6 address: it is an IPv4 address");
    read("ip rule show from nowhere", "\"nowhere\" is not an address: \"nowhere\" is not a number");
    read("ip link show type bridge", "a device of type \"bridge\" is not implemented yet");
    read("ip route\nip rule", "a line that shows something stands alone");
    let found = |line, why: &str| assert_eq!(refused(line), (why.to_owned(), true), "{line}");
    found("ip route show table 99", "there is no IPv4 table 99 (FIB table does not exist)");
    found("ip -6 route show table 99", "there is no IPv6 table 99 (FIB table does not exist)");
    found("ip link show e7", "there is no device \"e7\"");
    found("ip route get 10.0.0.1 vrf e0", "\"e0\" is not a VRF device");
    found("ip route show vrf e0", "\"e0\" is not a VRF device");
    let place = listing("ip link show dev e7", "ip", &router()).unwrap_err().to_string();
    assert!(place.contains("\n  ip link show dev e7\n                   ^^\n  accepted here: lo, e0, e1, red"), "{place}");
}

#[test]
fn a_large_table_is_written_in_pieces() {
    struct Pieces(usize, usize);
    impl std::io::Write for Pieces {
        fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
            self.0 += bytes.len();
            self.1 = self.1.max(bytes.len());
            Ok(bytes.len())
        }
        fn flush(&mut self) -> std::io::Result<()> {
            Ok(())
        }
    }
    let mut router = router();
    let many: String =
        (0..50_000_u32).map(|n| format!("route add {}/32 via 10.0.0.2\n", std::net::Ipv4Addr::from(0x0b00_0000 + n))).collect();
    router.apply(&many, "request").unwrap();
    let mut pieces = Pieces(0, 0);
    listing("ip route", "ip", &router).unwrap().unwrap().print(&router, &mut pieces).unwrap();
    assert!(pieces.0 > 1_000_000 && pieces.1 < 64 * 1024, "{} bytes, {} in one piece", pieces.0, pieces.1);
}

#[test]
fn vlans_show_what_they_stand_on_and_how_they_are_tagged() {
    let net = "\
link set e0 address 02:00:00:00:0e:00 up
link add link e0 name e0.10 type vlan id 10 egress-qos-map 6:7 0:1 ingress-qos-map 3:9
link add link e0.10 name in up type vlan protocol 802.1ad id 7 reorder_hdr off loose_binding on
link add link e1 name e1.20 address 02:00:00:00:0a:0b type vlan id 20
link add d0 up type dummy
link set e0.10 type vlan egress-qos-map 6:0 2:3
";
    let router = control::network_file(net, "net.ip", &["e0", "e1"]).unwrap_or_else(|errors| panic!("{errors}"));
    assert_eq!(
        shown(&router, "ip -d link show type vlan"),
        "\
4: e0.10@e0: <BROADCAST,MULTICAST> mtu 1500 state DOWN
    link/ether 02:00:00:00:0e:00 brd ff:ff:ff:ff:ff:ff
    vlan protocol 802.1Q id 10 <REORDER_HDR> 
      ingress-qos-map { 3:9 } 
      egress-qos-map { 0:1 2:3 } 
5: in@e0.10: <NO-CARRIER,BROADCAST,MULTICAST,UP,M-DOWN> mtu 1500 state LOWERLAYERDOWN
    link/ether 02:00:00:00:0e:00 brd ff:ff:ff:ff:ff:ff
    vlan protocol 802.1ad id 7 <LOOSE_BINDING> 
6: e1.20@e1: <BROADCAST,MULTICAST,M-DOWN> mtu 1500 state DOWN
    link/ether 02:00:00:00:0a:0b brd ff:ff:ff:ff:ff:ff
    vlan protocol 802.1Q id 20 <REORDER_HDR> 
"
    );
    let dummy = shown(&router, "ip -d -o link show type dummy");
    assert!(dummy.starts_with("7: d0: <BROADCAST,NOARP,UP,LOWER_UP> mtu 1500 state UNKNOWN\\    link/ether 06:"), "{dummy}");
    assert!(dummy.ends_with("brd ff:ff:ff:ff:ff:ff\\    dummy \n"), "{dummy}");
    assert!(shown(&router, "ip -d link show type vrf").is_empty());
    assert_eq!(refused("ip -d route").0, "\"-details\" of \"ip route\" is not implemented yet");
}

#[test]
fn routes_that_expire_say_when_and_are_gone_then() {
    let mut router = router();
    let mut at = |centiseconds: u64, lines: &str| {
        router.editor.set_time(Tick(centiseconds));
        let due = router.editor.keep_up();
        router.apply(lines, "net.ip").unwrap_or_else(|errors| panic!("{errors}"));
        let routes = shown(&router, "-6 route show root 2001::/16");
        (due.map(|Tick(due)| due), routes)
    };
    let added = "\
-6 route add 2001:db8:9::/64 via fd00::2 expires 100 mtu 1400 hoplimit 7
-6 route add 2001:db8:a::/64 dev e0 expires 3
-6 route add unreachable 2001:db8:e::/64 expires 3
-6 route add 2001:db8:f::/64 dev e0 expires 0
-6 route add 2001:db8:f:1::/64 dev e0 expires 4294967295
";
    let stay = "\
unreachable 2001:db8:e::/64 dev lo metric 1024 pref medium
2001:db8:f::/64 dev e0 metric 1024 pref medium
2001:db8:f:1::/64 dev e0 metric 1024 pref medium
";
    at(1_000, added);
    let long = |seconds| format!("2001:db8:9::/64 via fd00::2 dev e0 metric 1024 expires {seconds}sec mtu 1400 hoplimit 7 pref medium\n");
    let short = |seconds| format!("2001:db8:a::/64 dev e0 metric 1024 expires {seconds}sec pref medium\n");
    assert_eq!(at(1_001, ""), (Some(1_300), format!("{}{}{stay}", long(99), short(2))));
    assert_eq!(at(1_299, ""), (Some(1_300), format!("{}{}{stay}", long(97), short(0))));
    assert_eq!(at(1_300, ""), (Some(11_000), format!("{}{stay}", long(97))));
    assert_eq!(
        at(1_400, "-6 route replace 2001:db8:9::/64 via fd00::2\n").1,
        format!("2001:db8:9::/64 via fd00::2 dev e0 metric 1024 pref medium\n{stay}")
    );
    assert_eq!(at(20_000, "").0, None);
    let refused = router.apply("route add 10.9.0.0/24 dev e0 expires 5\n", "net.ip").expect_err("IPv4").to_string();
    assert!(refused.contains("net.ip:1:38") && refused.contains("an IPv4 route does not expire"), "{refused}");
}

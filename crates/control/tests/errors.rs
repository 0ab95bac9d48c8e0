//! What the operator reads when a network file is wrong.

const PORTS: [&str; 4] = ["e0", "e1", "e2", "e3"];

const BASE: &str = "\
link set e0 up
link set e1 up
addr add 10.0.0.1/24 dev e0
-6 addr add fd00:1::1/64 dev e1 nodad
";

fn errors(lines: &str) -> String {
    match control::network_file(&format!("{BASE}{lines}"), "net.ip", &PORTS) {
        Ok(_) => String::from("accepted"),
        Err(errors) => errors.to_string(),
    }
}

#[test]
fn a_misspelt_action() {
    assert_eq!(
        errors("ip -6 route add fc00:1::d encap seg6local action End.DX7 nh6 fd00:1::2 dev e1"),
        "net.ip:5:50: unknown action \"End.DX7\"; did you mean \"End.DX6\"?
  ip -6 route add fc00:1::d encap seg6local action End.DX7 nh6 fd00:1::2 dev e1
                                                   ^^^^^^^
  accepted here: End, End.X, End.T, End.DX2, End.DX6, End.DX4, End.DT6, End.DT4, End.B6, End.B6.Encaps, End.DT46"
    );
}

#[test]
fn a_sid_out_of_range() {
    assert_eq!(
        errors("ip -6 route add fd09::/64 encap seg6 mode encap segs fc00:2::1,fc00:2::10001 dev e1"),
        "net.ip:5:64: \"fc00:2::10001\" is not an IPv6 address: the group 10001 is out of range: a group is at most ffff
  ip -6 route add fd09::/64 encap seg6 mode encap segs fc00:2::1,fc00:2::10001 dev e1
                                                                 ^^^^^^^^^^^^^"
    );
    assert_eq!(
        errors("ip -6 route add fc00:1::e/129 encap seg6local action End dev e1"),
        "net.ip:5:27: \"129\" is not a prefix length: it must be 0 to 128
  ip -6 route add fc00:1::e/129 encap seg6local action End dev e1
                            ^^^"
    );
}

#[test]
fn an_unknown_device() {
    assert_eq!(
        errors("ip route add 10.9.0.0/24 via 10.0.0.2 dev e9"),
        "net.ip:5:43: there is no device \"e9\"
  ip route add 10.9.0.0/24 via 10.0.0.2 dev e9
                                            ^^
  accepted here: lo, e0, e1, e2, e3"
    );
    let oif = errors("ip -6 route add fc00:1::d encap seg6local action End.DX2 oif wan dev e1");
    assert!(oif.starts_with("net.ip:5:62: there is no device \"wan\"\n"), "{oif}");
    let iif = errors("mark add iif wan set 1");
    assert!(iif.starts_with("net.ip:5:14: there is no device \"wan\"\n"), "{iif}");
    let iif = errors("ip rule add iif averyveryverylongname lookup 100");
    assert!(iif.starts_with("net.ip:5:17: \"averyveryverylongname\" is not a name for a device"), "{iif}");
}

#[test]
fn a_duplicate_route() {
    assert_eq!(
        errors("ip route add 10.9.0.0/24 via 10.0.0.2 dev e0\nip route add 10.9.0.0/24 via 10.0.0.3 dev e0"),
        "net.ip:6:14: the route to 10.9.0.0/24 exists already in table main (File exists)
  ip route add 10.9.0.0/24 via 10.0.0.3 dev e0
               ^^^^^^^^^^^
  use \"ip route replace\" to put this one in its place, or \"ip route append\" to add it"
    );
}

#[test]
fn a_locator_block_of_17_bits() {
    assert_eq!(
        errors("ip -6 route add fcbb:0:100::/48 encap seg6local action End flavors next-csid lblen 17 nflen 16 dev e1"),
        "net.ip:5:84: lblen 17 is not a length of a compressed SID's part: a multiple of 8 from 8 to 120 is
  ip -6 route add fcbb:0:100::/48 encap seg6local action End flavors next-csid lblen 17 nflen 16 dev e1
                                                                                     ^^"
    );
}

#[test]
fn a_table_name_that_does_not_exist() {
    assert_eq!(
        errors("ip route add 10.8.0.0/16 via 10.0.0.2 table blue dev e0"),
        "net.ip:5:45: unknown table \"blue\"
  ip route add 10.8.0.0/16 via 10.0.0.2 table blue dev e0
                                              ^^^^
  accepted here: local, main, default, unspec, 0 to 4294967295
  names given in /etc/iproute2/rt_tables are not read; write the number"
    );
}

#[test]
fn what_the_kernel_refuses() {
    for (line, start) in [
        ("ip route add default via 10.77.0.2 dev e0", "net.ip:5:26: the gateway 10.77.0.2 is not on a directly connected network"),
        ("ip route add default via 10.0.0.1 dev e0", "net.ip:5:26: the gateway 10.0.0.1 is one of the router's own addresses"),
        ("ip route add 10.9.0.0/24 dev e2", "net.ip:5:30: the device e2 is down: set it up first"),
        ("ip route add 10.9.0.0/24", "net.ip:5:14: a route of this type needs a device or a gateway"),
        ("ip route add 10.9.0.0/24 dev e0 src 9.9.9.9", "net.ip:5:37: the source 9.9.9.9 is not one of the router's addresses"),
        ("ip route del 10.9.0.0/24", "net.ip:5:14: there is no such route to 10.9.0.0/24 in table main (No such process)"),
        ("ip route add vrf e0 10.9.0.0/24 dev e0", "net.ip:5:18: \"e0\" is not a VRF device"),
        ("ip addr add 10.0.0.1/24 dev e0", "net.ip:5:13: 10.0.0.1 is an address of e0 already (File exists)"),
        ("ip addr del 10.0.0.9/24 dev e0", "net.ip:5:13: 10.0.0.9/24 is not an address of e0"),
        (
            "ip rule add from 10.0.0.0/8 lookup 5 pref 9\nip rule add from 10.0.0.0/8 lookup 5 pref 9",
            "net.ip:6:9: the rule exists already (File exists)",
        ),
        ("ip rule del pref 77", "net.ip:5:9: there is no such rule (No such file or directory)"),
        ("ip neigh del 10.0.0.2 dev e0", "net.ip:5:14: 10.0.0.2 is not a neighbour on e0 (No such file or directory)"),
        ("ip link add e0 type vrf table 5", "net.ip:5:13: the device \"e0\" exists already (File exists)"),
        ("ip link set e0 master e1", "net.ip:5:23: \"e1\" is not a VRF device"),
        ("ip link del e0", "net.ip:5:13: only devices added with `link add` can be removed"),
        ("ip -6 route add fc00:1::d encap seg6local action End.DT4 vrftable 10 dev e1", "net.ip:5:67: vrftable needs strict mode"),
        (
            "sysctl -w net.vrf.strict_mode=1\nip -6 route add fc00:1::d encap seg6local action End.DT46 vrftable 30 dev e1",
            "net.ip:6:68: table 30 belongs to no VRF device",
        ),
        (
            "sysctl -w net.vrf.strict_mode=1\nlink add vrf10 type vrf table 10\nlink add vrf11 type vrf table 10",
            "net.ip:7:31: table 10 is used by another VRF",
        ),
        ("ip -6 route add fc00:1::d encap seg6local action End.DT4 table 10 dev e1", "net.ip:5:50: End.DT4 needs `vrftable N`"),
        (
            "ip -6 route add fc00:1::d encap seg6local action End.X nh6 fd00:1::2 flavors psp dev e1",
            "net.ip:5:78: End.X does not support flavor psp",
        ),
        ("ip -6 route add fc00:1::d encap seg6local action End.X dev e1", "net.ip:5:50: End.X needs `nh6 ADDRESS`"),
        ("ip sr hmac set 7 sha1 ''", "net.ip:5:16: there is no key 7 to take away (No such file or directory)"),
        ("sysctl -w net.ipv4.conf.e9.rp_filter=0", "net.ip:5:25: there is no device \"e9\""),
    ] {
        let errors = errors(line);
        assert!(errors.starts_with(start), "{line}\n{errors}");
        assert_eq!(errors.matches("net.ip:").count(), 1, "{errors}");
    }
}

#[test]
fn every_wrong_line_is_named_in_one_go() {
    let errors = errors(
        "ip route add default via 10.0.0.2 dev e9\nip neigh add x dev e0\n# fine\nip route add default via 10.0.0.2 dev e0\nip rule add lokup 5",
    );
    let places: Vec<&str> = errors.lines().filter(|line| line.starts_with("net.ip:")).collect();
    assert_eq!(
        places,
        [
            "net.ip:5:39: there is no device \"e9\"",
            "net.ip:6:14: unknown keyword \"x\"",
            "net.ip:9:13: unknown keyword \"lokup\"; did you mean \"lookup\"?"
        ]
    );
}

#[test]
fn what_follows_from_a_missing_device_is_not_reported_again() {
    let errors =
        errors("ip link add vrf10 type vrf table ten\nip link set e0 master vrf10\nip route add vrf vrf10 default dev e0\nip route add x");
    let places: Vec<&str> = errors.lines().filter(|line| line.starts_with("net.ip:")).collect();
    assert_eq!(places, ["net.ip:5:34: unknown table \"ten\"", "net.ip:8:14: unknown keyword \"x\""]);
}

#[test]
fn more_errors_than_fit_a_screen_are_counted() {
    let errors = errors(&"ip route add default dev e9\n".repeat(30));
    assert_eq!(errors.matches("there is no device").count(), 20);
    assert!(errors.ends_with("\nand 10 more"), "{errors}");
}

#[test]
fn an_attribute_without_use_is_accepted_with_a_warning() {
    let text = format!("{BASE}ip -6 route add fc00:1::e encap seg6local action End nh6 fd00:1::2 dev e1");
    let configuration = control::network_file(&text, "net.ip", &PORTS).unwrap_or_else(|errors| panic!("{errors}"));
    let [warning] = configuration.warnings.as_slice() else { panic!("one warning") };
    assert!(warning.to_string().starts_with("net.ip:5:58: End has no use for \"nh6\"; it is ignored, as Linux does\n"), "{warning}");
}

//! No text, however wrong, does harm.

use proptest::collection::vec;
use proptest::prelude::*;
use proptest::sample::select;

const PORTS: [&str; 2] = ["e0", "e1"];

/// Words that lead deep into the parsers.
const WORDS: &[&str] = &[
    "ip",
    "-6",
    "-4",
    "-family",
    "inet6",
    "route",
    "r",
    "add",
    "a",
    "replace",
    "append",
    "del",
    "addr",
    "link",
    "set",
    "neigh",
    "rule",
    "sr",
    "sysctl",
    "-w",
    "default",
    "10.9.0.0/16",
    "10.0.0.1/24",
    "10.0.0.2",
    "10/8",
    "fd00:1::1/64",
    "fd00:1::2",
    "fc00:1::e",
    "::",
    "0.0.0.0/0",
    "via",
    "inet",
    "dev",
    "e0",
    "e1",
    "lo",
    "vrf10",
    "table",
    "lookup",
    "100",
    "main",
    "local",
    "vrf",
    "metric",
    "5",
    "0",
    "4294967295",
    "0x",
    "mtu",
    "lock",
    "src",
    "proto",
    "boot",
    "scope",
    "onlink",
    "nexthop",
    "weight",
    "encap",
    "seg6",
    "mode",
    "inline",
    "encap.red",
    "l2encap",
    "segs",
    "::1,::2",
    ",",
    "hmac",
    "tunsrc",
    "seg6local",
    "action",
    "End",
    "End.X",
    "End.T",
    "End.DX2",
    "End.DX4",
    "End.DX6",
    "End.DT46",
    "End.B6",
    "End.B6.Encaps",
    "nh4",
    "nh6",
    "oif",
    "iif",
    "vrftable",
    "srh",
    "flavors",
    "psp,next-csid",
    "next-csid",
    "lblen",
    "nflen",
    "17",
    "16",
    "48",
    "128",
    "255",
    "count",
    "blackhole",
    "unreachable",
    "throw",
    "up",
    "down",
    "master",
    "nomaster",
    "address",
    "02:00:00:00:00:01",
    "type",
    "name",
    "brd",
    "+",
    "nodad",
    "lladdr",
    "nud",
    "stale",
    "from",
    "to",
    "all",
    "pref",
    "tunsrc",
    "sha1",
    "'a b'",
    "\"",
    "net.ipv4.ip_forward=1",
    "net.vrf.strict_mode=1",
    "net.ipv6.conf.e0.forwarding=0",
    "net.ipv4.conf.=",
    "=",
    "#",
    "\\\n",
    "\n",
    "\r\n",
    "\t",
    "ö",
    "\u{0}",
    "99999999999999999999",
];

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::with_cases(2000) })]

    #[test]
    fn any_text_is_read_or_refused(text in any::<String>()) {
        if let Err(errors) = control::network_file(&text, "net.ip", &PORTS) {
            prop_assert!(errors.to_string().starts_with("net.ip:"));
        }
    }

    #[test]
    fn any_row_of_known_words_is_read_or_refused(words in vec(select(WORDS), 0..40)) {
        let text = format!("link set e0 up\nlink set e1 up\nlink add vrf10 type vrf table 10\n{}", words.join(" "));
        if let Err(errors) = control::network_file(&text, "net.ip", &PORTS) {
            prop_assert!(errors.to_string().starts_with("net.ip:"));
        }
    }

    #[test]
    fn a_good_line_with_a_word_changed_is_read_or_refused(line in 0..LINES.len(), place in 0_usize..20, word in select(WORDS)) {
        let mut words: Vec<&str> = LINES[line].split(' ').collect();
        let place = place % words.len();
        words[place] = word;
        let text = format!("link set e0 up\nlink set e1 up\naddr add 10.0.0.1/24 dev e0\n{}", words.join(" "));
        if let Err(errors) = control::network_file(&text, "net.ip", &PORTS) {
            prop_assert!(errors.to_string().starts_with("net.ip:"));
        }
    }
}

const LINES: &[&str] = &[
    "ip route add 10.9.0.0/16 via 10.0.0.2 dev e0 metric 5 mtu 1400 table 100",
    "ip -6 route add fc00:1::e encap seg6local action End.X nh6 fe80::23 oif e1 flavors next-csid lblen 32 nflen 16 count dev e0",
    "ip -6 route add fc00:1::e encap seg6local action End.B6.Encaps srh segs fc00:2::1,fc00:2::2 hmac 5 dev e0",
    "ip route add 10.9.0.0/16 nexthop via 10.0.0.2 dev e0 weight 2 nexthop dev e1 encap seg6 mode encap segs fc00:2::1",
    "ip addr add 10.0.0.9/24 brd + scope link dev e0",
    "ip neigh replace 10.0.0.2 lladdr 02:00:00:00:0f:00 dev e0 nud permanent",
    "ip link set dev e0 address 02:00:00:00:0f:00 mtu 9000 master vrf10 up",
    "ip rule add from 10.0.0.0/8 to 10.9.0.0/16 iif e0 lookup 100 pref 5",
    "sysctl -w net.ipv4.conf.e0.rp_filter=1 net.ipv6.conf.all.forwarding=1",
    "ip sr hmac set 5 sha256 secret",
];

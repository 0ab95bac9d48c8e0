//! Questions of `ip route get`, at random, over several configurations: the kernel and noref answer alike, line for line.

use std::process::Command;

use control::show::{Source, listing};
use testkit::program::skipped;
use testkit::rng::Rng;

use crate::iproute2::Mirrored;
use crate::lab::{PORTS, configure, follower, in_namespace, ports};

/// Questions in all.
const QUESTIONS: usize = 2000;

const ADDRESSES: &str = "\
ip link set lo up
ip link set e0 address 02:00:00:00:0e:00 up
ip link set e1 address 02:00:00:00:0e:01 up
ip link set e2 address 02:00:00:00:0e:02 up
ip link set e3 address 02:00:00:00:0e:03 up
ip -6 addr add fe80::a0/64 dev e0 nodad
ip -6 addr add fe80::a1/64 dev e1 nodad
ip -6 addr add fe80::a2/64 dev e2 nodad
ip -6 addr add fe80::a3/64 dev e3 nodad
ip addr add 10.0.0.1/24 brd + dev e0
ip addr add 10.0.0.9/24 dev e0
ip addr add 10.0.1.1/24 brd + dev e1
ip addr add 10.0.2.1/24 dev e2
ip addr add 10.5.2.1/24 dev e2
ip addr add 10.0.3.1/30 dev e3
ip addr add 10.7.0.1/32 dev lo
ip -6 addr add fd00:0::1/64 dev e0 nodad
ip -6 addr add fd00:1::1/64 dev e1 nodad
ip -6 addr add fd00:2::1/64 dev e2 nodad
ip -6 addr add fd00:3::1/64 dev e3 nodad
ip -6 addr add fd00:ffff::1/128 dev lo nodad
";

const FORWARDING: &str = "\
sysctl -w net.ipv4.ip_forward=1
sysctl -w net.ipv6.conf.all.forwarding=1
";

/// Routes of every kind.
const ROUTES: &str = "\
ip route add default via 10.0.3.2
ip route add 10.9.0.0/16 via 10.0.0.2 mtu 1400
ip route add 10.9.0.0/16 via 10.0.1.2 metric 7
ip route add 10.9.1.0/24 via 10.0.0.3 src 10.0.0.9 advmss 1300 hoplimit 20
ip route add 10.9.2.0/24 via 10.0.1.3 mtu lock 1300 proto bgp
ip route add 10.9.3.0/24 dev e2
ip route add 10.9.3.9/32 dev e2 scope global
ip route add 10.9.4.0/24 via inet6 fd00:1::5 dev e1
ip route add 10.9.5.0/24 via 10.44.0.1 onlink dev e1
ip route add 10.9.6.0/24 encap seg6 mode encap segs fc00::1,fc00::2 dev e0
ip route add 10.9.7.0/24 encap seg6 mode encap.red segs fc00::1 via 10.0.0.2
ip route add 10.9.8.0/24 nexthop via 10.0.0.2 weight 3 nexthop via 10.0.1.2
ip route add 10.9.9.0/24 nexthop via 10.0.0.2 nexthop encap seg6 mode encap segs fc00::1 via 10.0.1.2 nexthop dev e2
ip route add blackhole 10.20.0.0/16
ip route add prohibit 10.21.0.0/16
ip route add unreachable 10.22.0.0/16
ip route add throw 10.23.0.0/16
ip route add local 10.7.0.5 dev lo
ip route add local 10.7.1.0/24 dev e1
ip route add broadcast 10.7.2.255 dev e1
ip route add 10.24.0.0/16 tos 0x10 via 10.0.0.2
ip route add 10.24.0.0/16 via 10.0.1.2
ip route add 10.24.1.0/24 tos 0x08 via 10.0.2.2
ip nexthop add id 1 via 10.0.0.2 dev e0
ip nexthop add id 2 via 10.0.1.2 dev e1
ip nexthop add id 3 group 1,2/2
ip nexthop add id 4 blackhole
ip -6 nexthop add id 9 blackhole
ip nexthop add id 5 via fd00:1::5 dev e1
ip nexthop add id 6 via fd00:0::5 dev e0
ip nexthop add id 15 via fd00:1::6 dev e1
ip nexthop add id 7 group 15/6,3
ip nexthop add id 17 group 1/2 type resilient buckets 8
ip nexthop add id 19 via fd00:1::7 dev e1
ip nexthop add id 20 via fd00:0::7 dev e0
ip nexthop add id 18 group 19/20,3 type resilient buckets 16
ip nexthop add id 8 encap seg6 mode encap segs fc00::1 via fd00:0::5 dev e0
ip route add 10.25.0.0/24 nhid 1
ip route add 10.25.1.0/24 nhid 3
ip route add 10.25.2.0/24 nhid 4
ip route add 10.25.3.0/24 nhid 5
ip route add 10.25.4.0/24 nhid 17
ip -6 route add default via fd00:3::2
ip -6 route add fd09::/48 via fd00:0::5 mtu 1400
ip -6 route add fd09::/48 via fd00:1::5 metric 7777
ip -6 route add fd09:0:0:1::/64 via fd00:0::6 src fd00:ffff::1 metric 7 proto static hoplimit 20
ip -6 route add fd09:0:0:2::/64 dev e2
ip -6 route add fd09:0:0:3::/64 via fe80::5 dev e0
ip -6 route add fd09:0:0:4::/64 nexthop via fd00:0::5 weight 5 nexthop via fd00:1::6
ip -6 route add fd09:0:0:5::/64 encap seg6 mode encap segs fc00::1,fc00::2 via fd00:0::5
ip -6 route add fd09:0:0:6::/64 encap seg6 mode inline segs fc00::1 dev e1
ip -6 route add fd09:0:0:7::/64 nhid 5
ip -6 route add fd09:0:0:8::/64 nhid 7
ip -6 route add fd09:0:0:9::/64 nhid 8
ip -6 route add fd09:0:0:e::/64 nhid 18
ip -6 route add fd09:0:0:a::/64 nhid 9
ip -6 route add fd09:0:0:b::/64 via fd00:0::5 metric 5
ip -6 route append fd09:0:0:b::/64 via fd00:1::5 metric 5
ip -6 route append fd09:0:0:b::/64 via fd00:1::6 metric 5
ip -6 route add fd09:0:0:c::/64 from fd00:0::/64 via fd00:2::5
ip -6 route add fd09:0:0:c::/64 via fd00:1::5
ip -6 route add fd09:0:0:d::/64 from fd00:1::/64 via fd00:2::5 metric 3
ip -6 route add fc00:1::1 encap seg6local action End count dev e0
ip -6 route add fc00:1::2 encap seg6local action End.X nh6 fd00:1::5 flavors next-csid dev e0
ip -6 route add fc00:1::3 encap seg6local action End.DT6 table main dev e1
ip -6 route add blackhole fd20::/64
ip -6 route add prohibit fd21::/64
ip -6 route add unreachable fd22::/64
ip -6 route add throw fd23::/64
ip -6 route add local fd07::5 dev lo
ip -6 route add anycast fd07::9 dev e1
ip route add 10.30.0.0/16 via 10.0.0.2 table 7
ip route add throw 10.9.0.0/16 table 7
ip route add 10.9.1.0/24 via 10.0.2.2 table 7
ip route add default via 10.0.2.3 table 7
ip route add prohibit 10.31.0.0/16 table 7
ip route add 10.9.0.0/16 via 10.0.3.2 table 1000
ip -6 route add fd30::/64 via fd00:0::5 table 7
ip -6 route add throw fd09::/48 table 7
ip -6 route add fd09:0:0:1::/64 via fd00:2::5 table 7
ip -6 route add default via fd00:2::6 table 7
ip -6 route add fd09::/48 via fd00:3::2 table 1000
";

/// Rules with every selector and action.
const RULES: &str = "\
ip link set e2 group 3
ip rule add fwmark 0x10 lookup 7 pref 100
ip rule add fwmark 0x20/0xf0 lookup 1000 pref 101
ip rule add from 10.0.1.0/24 lookup 7 pref 110
ip rule add from 10.4.0.0/16 prohibit pref 111
ip rule add to 10.9.5.0/24 blackhole pref 112
ip rule add to 10.9.6.0/24 unreachable pref 113
ip rule add iif e1 lookup 1000 pref 120
ip rule add iif lo dport 99 lookup 7 pref 121
ip rule add oif e2 lookup 7 pref 122
ip rule add tos 0x10 lookup 7 pref 130
ip rule add ipproto tcp dport 80 lookup 7 pref 140
ip rule add ipproto icmp lookup 1000 pref 141
ip rule add sport 1000-2000 lookup 7 pref 142
ip rule add to 10.24.0.0/16 goto 200 pref 150
ip rule add nop pref 151
ip rule add lookup 7 suppress_prefixlength 0 pref 160
ip rule add not to 10.0.0.0/8 lookup 1000 pref 170
ip rule add lookup 7 suppress_ifgroup 3 pref 180
ip rule add lookup main suppress_prefixlength 23 pref 200
ip -6 rule add fwmark 0x10 lookup 7 pref 100
ip -6 rule add fwmark 0x20/0xf0 lookup 1000 pref 101
ip -6 rule add from fd00:1::/64 lookup 7 pref 110
ip -6 rule add from fd04::/64 prohibit pref 111
ip -6 rule add to fd09:0:0:5::/64 blackhole pref 112
ip -6 rule add to fd09:0:0:6::/64 unreachable pref 113
ip -6 rule add iif e1 lookup 1000 pref 120
ip -6 rule add oif e2 lookup 7 pref 122
ip -6 rule add tos 0x10 lookup 7 pref 130
ip -6 rule add ipproto tcp dport 80 lookup 7 pref 140
ip -6 rule add to fd09:0:0:4::/64 goto 200 pref 150
ip -6 rule add lookup 7 suppress_prefixlength 0 pref 160
ip -6 rule add not to fd00::/8 lookup 1000 pref 170
ip -6 rule add lookup 7 suppress_ifgroup 3 pref 180
ip -6 rule add lookup main suppress_prefixlength 47 pref 200
";

/// Destinations and sources, of which the last numbers vary.
const PLACES4: &[&str] = &[
    "10.9.0.", "10.9.1.", "10.9.2.", "10.9.3.", "10.9.4.", "10.9.5.", "10.9.6.", "10.9.7.", "10.9.8.", "10.9.8.", "10.9.9.", "10.9.9.",
    "10.20.0.", "10.21.0.", "10.22.0.", "10.23.0.", "10.24.0.", "10.24.1.", "10.25.0.", "10.25.1.", "10.25.1.", "10.25.2.", "10.25.3.",
    "10.25.4.", "10.25.4.", "10.30.0.", "10.31.0.", "10.0.0.", "10.0.1.", "10.0.2.", "10.5.2.", "192.0.2.",
];
const SINGLE4: &[&str] = &[
    "10.0.0.1",
    "10.0.0.9",
    "10.0.1.1",
    "10.0.2.1",
    "10.5.2.1",
    "10.0.3.1",
    "10.0.3.2",
    "10.0.3.3",
    "10.0.0.255",
    "10.0.1.255",
    "10.0.0.0",
    "10.7.0.1",
    "10.7.0.5",
    "10.7.1.9",
    "10.7.2.255",
    "127.0.0.1",
    "127.1.2.3",
    "0.0.0.0",
    "255.255.255.255",
    "224.0.0.1",
    "224.0.0.5",
    "239.1.1.1",
    "240.0.0.1",
    "0.1.2.3",
    "10.9.3.9",
    "10.4.0.7",
    "172.16.0.1",
];
const PLACES6: &[&str] = &[
    "fd09::",
    "fd09:0:0:1::",
    "fd09:0:0:2::",
    "fd09:0:0:3::",
    "fd09:0:0:4::",
    "fd09:0:0:4::",
    "fd09:0:0:5::",
    "fd09:0:0:6::",
    "fd09:0:0:7::",
    "fd09:0:0:8::",
    "fd09:0:0:8::",
    "fd09:0:0:9::",
    "fd09:0:0:a::",
    "fd09:0:0:b::",
    "fd09:0:0:b::",
    "fd09:0:0:c::",
    "fd09:0:0:d::",
    "fd09:0:0:e::",
    "fd09:0:0:e::",
    "fd20::",
    "fd21::",
    "fd22::",
    "fd23::",
    "fd30::",
    "fd00:0::",
    "fd00:1::",
    "fd00:2::",
    "2001:db8::",
];
const SINGLE6: &[&str] = &[
    "fd00:0::1",
    "fd00:1::1",
    "fd00:2::1",
    "fd00:3::1",
    "fd00::",
    "fd00:1::",
    "fd00:ffff::1",
    "fd07::5",
    "fd07::9",
    "::1",
    "::",
    "fe80::5",
    "fe80::a0",
    "fe80::a1",
    "fe80::",
    "ff02::1",
    "ff02::5",
    "ff05::2",
    "ff0e::1",
    "fc00:1::1",
    "fc00:1::2",
    "fc00:1::3",
    "fc00:1::4",
    "fd04::7",
    "2001:db8::1",
];

fn address(rng: &mut Rng, v6: bool) -> String {
    let (places, single) = if v6 { (PLACES6, SINGLE6) } else { (PLACES4, SINGLE4) };
    if rng.below(3) == 0 {
        return (*rng.choose(single)).to_owned();
    }
    let place = rng.choose(places);
    if v6 { format!("{place}{:x}", 2 + rng.below(4000)) } else { format!("{place}{}", 2 + rng.below(250)) }
}

/// A source: mostly an address of the router's or of a neighbour's.
fn source(rng: &mut Rng, v6: bool) -> String {
    let own4 = ["10.0.0.1", "10.0.0.9", "10.0.1.1", "10.0.2.1", "10.7.0.1", "10.0.0.7", "10.0.1.7", "10.0.2.7", "10.4.0.7", "172.16.0.9"];
    let own6 = ["fd00:0::1", "fd00:1::1", "fd00:2::1", "fd00:0::7", "fd00:1::7", "fd00:ffff::1", "fe80::7", "fd04::7", "2001:db8::9"];
    match (rng.below(4), v6) {
        (0, _) => address(rng, v6),
        (_, true) => (*rng.choose(&own6)).to_owned(),
        (_, false) => (*rng.choose(&own4)).to_owned(),
    }
}

fn question(rng: &mut Rng) -> String {
    let v6 = rng.below(2) == 0;
    let mut line = format!("{} route get ", if v6 { "-6" } else { "-4" });
    if rng.below(6) == 0 {
        line += "fibmatch ";
    }
    line += &address(rng, v6);
    let comes_in = rng.below(5) < 2;
    if comes_in || rng.below(3) == 0 {
        line += &format!(" from {}", source(rng, v6));
    }
    if comes_in {
        line += &format!(" iif {}", rng.choose(&PORTS));
    } else if rng.below(4) == 0 {
        line += &format!(" oif {}", rng.choose(&PORTS));
    }
    if rng.below(5) == 0 {
        line += &format!(" mark {}", rng.choose(&["0x10", "0x20", "0x2f", "3", "77"]));
    }
    if rng.below(5) == 0 {
        line += &format!(" tos {}", rng.choose(&["0x10", "0x08", "CS1", "0x18"]));
    }
    if rng.below(3) == 0 {
        line += &format!(" ipproto {}", rng.choose(if v6 { &["tcp", "udp", "ipv6-icmp"] } else { &["tcp", "udp", "icmp"] }));
        line += &format!(" sport {} dport {}", 900 + rng.below(2000), rng.choose(&["80", "99", "443", "7"]));
    }
    if rng.below(20) == 0 {
        line += " uid 7";
    }
    line
}

/// What noref prints, what it says of why not, and its exit status.
fn ours(source: &impl Source, line: &str) -> (String, String, i32) {
    let listing = listing(line, "ip", source).unwrap_or_else(|errors| panic!("{errors}")).expect("something to show");
    let mut text = Vec::new();
    listing.print(source, &mut text).expect("memory");
    let said = listing.refusal().map_or_else(String::new, |why| format!("{why}\n"));
    let status = if said.is_empty() { 0 } else { 2 };
    (String::from_utf8(text).expect("text"), said, status)
}

fn kernels(line: &str) -> (String, String, i32) {
    let told = Command::new("ip").args(line.split(' ')).output().expect("ip");
    let text = |bytes| String::from_utf8(bytes).expect("text");
    (text(told.stdout), text(told.stderr), told.status.code().unwrap_or(-1))
}

/// Asks both `count` questions and says which answers differ; none when this kernel refuses the configuration.
fn differing(network: &str, seed: u64, count: usize) -> Option<Vec<String>> {
    let configuration = control::network_file(network, "network.ip", &PORTS).unwrap_or_else(|errors| panic!("{errors}"));
    let mut found = None;
    in_namespace(|| {
        ports();
        if let Err(why) = configure(network) {
            return eprintln!("{why}");
        }
        let mirrored = Mirrored(follower());
        let mut rng = Rng::new(seed);
        let mut wrong = Vec::new();
        for _ in 0..count {
            let line = question(&mut rng);
            let (ours, kernels) = (ours(&configuration, &line), kernels(&line));
            if ours != kernels {
                wrong.push(format!("ip {line}\n  noref:  {ours:?}\n  kernel: {kernels:?}"));
            }
            // Rules by mark are the kernel's affair, and what they may be for.
            let ours = self::ours(&mirrored, &line);
            if ours != kernels && !network.contains("fwmark") {
                wrong.push(format!("mirrored: ip {line}\n  noref:  {ours:?}\n  kernel: {kernels:?}"));
            }
        }
        found = Some(wrong);
    });
    found
}

#[test]
fn random_questions_have_the_kernel_s_answers() {
    let seeds = |policy| {
        format!(
            "sysctl -w net.ipv4.fib_multipath_hash_policy={policy} net.ipv6.fib_multipath_hash_policy={policy} net.ipv4.fib_multipath_hash_seed={}\n",
            77 + policy
        )
    };
    let fields = "sysctl -w net.ipv4.fib_multipath_hash_fields=0x33 net.ipv6.fib_multipath_hash_fields=0x33\n";
    let filter = "sysctl -w net.ipv4.conf.all.rp_filter=1\n";
    let configurations = [
        [FORWARDING, ADDRESSES, &seeds(0), ROUTES].concat(),
        [ADDRESSES, &seeds(0), ROUTES].concat(),
        [FORWARDING, ADDRESSES, &seeds(1), ROUTES, RULES].concat(),
        [FORWARDING, ADDRESSES, &seeds(2), ROUTES, filter].concat(),
        [FORWARDING, ADDRESSES, &seeds(3), fields, ROUTES, RULES, filter].concat(),
    ];
    let mut all = Vec::new();
    for (number, network) in configurations.iter().enumerate() {
        let Some(wrong) = differing(network, 1000 + number as u64, QUESTIONS / configurations.len()) else {
            return skipped("no namespace, or this kernel refuses a configuration");
        };
        all.extend(wrong.into_iter().map(|wrong| format!("configuration {number}: {wrong}")));
    }
    assert!(all.is_empty(), "{} answers differ\n{}", all.len(), all.join("\n"));
}

/// The questions of docs/route-get.md, each with its answer, and the network file that they are asked of.
fn documented() -> (String, Vec<(String, String)>) {
    let document = std::fs::read_to_string(testkit::root().join("docs/route-get.md")).expect("docs/route-get.md");
    let mut blocks = document.split("```").skip(1).step_by(2);
    let network = blocks.next().expect("the network file").to_owned();
    let questions = blocks.next().expect("the questions").split("$ noref ").skip(1);
    let question = |text: &str| {
        let (line, answer) = text.split_once('\n').expect("an answer");
        (line.replace(" --net network.ip", ""), answer.to_owned())
    };
    (network, questions.map(question).collect())
}

#[test]
fn the_kernel_gives_the_documented_answers() {
    let (network, questions) = documented();
    assert!(questions.len() >= 10);
    let mut asked = 0;
    in_namespace(|| {
        ports();
        if configure(&network).is_ok() {
            for (line, answer) in &questions {
                let (text, said, _) = kernels(line);
                assert_eq!(format!("{text}{said}"), *answer, "{line}");
                asked += 1;
            }
        }
    });
    if asked == 0 {
        skipped("no namespace, or this kernel refuses the configuration");
    }
}

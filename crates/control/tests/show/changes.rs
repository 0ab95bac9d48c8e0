//! Lines given one after the other to a running router and to the kernel leave both with the same tables.

use std::time::Duration;

use crate::iproute2::{asked, differences, eventually_none};
use crate::lab::{PORTS, configure, in_namespace, ports};

const BEGIN: &str = "\
ip link set lo up
ip link set e0 address 02:00:00:00:0e:00 up
ip link set e1 address 02:00:00:00:0e:01 up
ip link set e2 address 02:00:00:00:0e:02
ip link set e3 address 02:00:00:00:0e:03
ip -6 addr add fe80::a0/64 dev e0 nodad
ip -6 addr add fe80::a1/64 dev e1 nodad
ip addr add 10.0.0.1/24 dev e0
ip addr add 10.0.1.1/24 dev e1
ip -6 addr add fd00:0::1/64 dev e0 nodad
ip -6 addr add fd00:1::1/64 dev e1 nodad
";

/// One step after the other; those marked `!` both refuse. Where a device comes up it gets a link-local address at once: one is not made for it here.
const STEPS: &[&str] = &[
    "ip addr add 10.0.0.9/24 dev e0",
    "!ip addr add 10.0.0.9/24 dev e0",
    "ip addr add 10.0.0.10/24 dev e0",
    "ip addr add 10.5.0.1/24 brd + dev e0",
    "ip route add 10.9.0.0/16 via 10.0.0.2",
    "!ip route add 10.9.0.0/16 via 10.0.0.3",
    "ip route add 10.9.0.0/16 via 10.0.0.3 metric 5",
    "ip route append 10.9.0.0/16 via 10.0.1.2",
    "ip route replace 10.9.0.0/16 via 10.0.0.4",
    "ip route replace 10.9.0.0/16 via 10.0.0.5 metric 5 proto static",
    "ip route del 10.9.0.0/16 via 10.0.1.2",
    "ip route del 10.9.0.0/16 proto static",
    "!ip route del 10.9.0.0/16 proto static",
    "!ip route add 10.10.0.0/16 via 10.77.0.1",
    "ip route add 10.10.0.0/16 via 10.0.0.2 src 10.0.0.9",
    "ip route add 10.11.0.0/16 via 10.5.0.2",
    "ip route add 10.12.0.0/16 via 10.0.0.2 src 10.5.0.1 table 7",
    "ip route replace default nexthop via 10.0.0.2 nexthop via 10.0.1.2 weight 2",
    "ip route del default",
    "ip addr del 10.0.0.9/24 dev e0",
    "!ip addr del 10.0.0.9/24 dev e0",
    "ip addr replace 10.0.0.11/24 dev e0",
    "ip addr del 10.5.0.1/24 dev e0",
    "ip addr del 10.0.0.1/24 dev e0",
    "ip addr add 10.0.0.1/24 dev e0",
    "ip route add blackhole 10.20.0.0/16",
    "ip route replace unreachable 10.20.0.0/16 metric 0",
    "ip route del unreachable 10.20.0.0/16",
    "ip -6 route add fd09::/64 via fd00:0::2",
    "!ip -6 route add fd09::/64 via fd00:0::3",
    "ip -6 route append fd09::/64 via fd00:1::2",
    "ip -6 route append fd09::/64 via fd00:1::3",
    "ip -6 route del fd09::/64 via fd00:1::2",
    "ip -6 route replace fd09::/64 via fd00:1::4 metric 1024",
    "ip -6 route add fd09::/64 dev e1 metric 7",
    "ip -6 route replace fd09::/64 encap seg6 mode encap segs fc00::1,fc00::2 dev e0 metric 7",
    "ip -6 route add fc00:1::1 encap seg6local action End dev e0",
    "ip -6 route replace fc00:1::1 encap seg6local action End.X nh6 fd00:1::2 dev e0",
    "ip -6 route add fd0a::/64 via fe80::9 dev e1 src fd00:1::1",
    "ip -6 addr add fd00:1::9/64 dev e1 nodad",
    "ip -6 addr del fd00:1::9/64 dev e1",
    "ip -6 addr del fd00:1::1/64 dev e1",
    "ip rule add from 10.0.0.0/8 lookup 7",
    "ip rule add to 10.1.0.0/16 lookup 8 pref 50",
    "!ip rule add to 10.1.0.0/16 lookup 8 pref 50",
    "ip rule del from 10.0.0.0/8",
    "ip rule del pref 50",
    "!ip rule del pref 50",
    "ip -6 rule add iif e0 lookup 9",
    "ip neigh add 10.0.0.2 lladdr 02:00:00:00:0f:00 dev e0",
    "!ip neigh add 10.0.0.2 lladdr 02:00:00:00:0f:01 dev e0",
    "ip neigh change 10.0.0.2 lladdr 02:00:00:00:0f:02 dev e0",
    "ip neigh replace 10.0.0.3 lladdr 02:00:00:00:0f:03 dev e0 nud permanent",
    "ip -6 neigh add fd00:0::7 lladdr 02:00:00:00:0f:07 dev e0",
    "ip neigh del 10.0.0.2 dev e0",
    "!ip neigh del 10.0.0.2 dev e0",
    "ip link set e2 up\nip -6 addr add fe80::a2/64 dev e2 nodad",
    "ip addr add 10.0.2.1/24 dev e2",
    "ip route add 10.13.0.0/16 via 10.0.2.2",
    "ip link set e2 mtu 1400",
    "ip route add 10.15.0.0/16 nexthop via 10.0.2.2 nexthop via 10.0.1.2 weight 3",
    "ip route add 10.16.0.0/16 nexthop via 10.0.2.2 nexthop via 10.0.2.3",
    "ip -6 addr add fd00:2::1/64 dev e2 nodad",
    "ip -6 addr add fd00:1::1/64 dev e1 nodad",
    "ip -6 route add fd0b::/64 nexthop via fd00:2::2 nexthop via fd00:1::2",
    "ip -6 route add fd0c::/64 nexthop via fd00:2::2 nexthop via fd00:2::3",
    "ip link set e2 down",
    "ip addr add 10.6.0.1/24 dev e2",
    "ip link set e2 up\nip -6 addr add fe80::a2/64 dev e2 nodad",
    "sysctl -w net.ipv6.conf.e2.disable_ipv6=1",
    "ip addr del 10.6.0.1/24 dev e2",
    "ip route add 10.14.0.0/16 via 10.0.2.2",
    "ip addr del 10.0.2.1/24 dev e2",
    "ip addr add 10.0.2.9/24 dev e2",
    "sysctl -w net.ipv6.conf.e2.disable_ipv6=0\nip -6 addr add fe80::a2/64 dev e2 nodad",
    "sysctl -w net.ipv6.conf.all.forwarding=1",
    "sysctl -w net.ipv6.conf.all.forwarding=0",
    "ip addr add 10.7.0.1/32 dev lo",
    "ip addr del 10.7.0.1/32 dev lo",
    "ip rule add iif wan lookup 7 pref 60",
    "!ip rule add iif wan lookup 7 pref 60",
    "ip rule add oif later iif e0 lookup 7 pref 61",
    "ip -6 rule add iif later lookup 8 pref 62",
    "!ip rule del iif nowhere",
    "ip rule del iif wan",
    "ip nexthop add id 1 via 10.0.0.2 dev e0",
    "ip nexthop add id 2 via 10.0.1.2 dev e1",
    "ip nexthop add id 3 via fe80::9 dev e1",
    "ip nexthop add id 4 blackhole",
    "ip nexthop add id 10 group 1/2 type resilient buckets 12",
    "ip route add 10.17.0.0/16 nhid 10",
    "!ip nexthop add id 10 group 1/2 type resilient buckets 12",
    "!ip nexthop add id 11 group 1/2 type resilient",
    "!ip nexthop add id 11 group 1/4 type resilient buckets 4",
    "!ip nexthop add id 11 group 1/10 type resilient buckets 4",
    "!ip nexthop add id 11 group 1 type resilient buckets 4 fdb",
    "ip nexthop replace id 10 group 1,3/2/3,2 type resilient",
    "ip nexthop replace id 10 group 1/3,9 type resilient buckets 12 idle_timer 7 unbalanced_timer 9",
    "!ip nexthop replace id 10 group 1/3 type resilient buckets 13",
    "!ip nexthop replace id 10 group 1/3",
    "!ip nexthop replace id 10 via 10.0.0.2 dev e0",
    "ip nexthop replace id 10 group 2,5/1,2/3,7 type resilient",
    "ip nexthop replace id 2 via 10.0.1.3 dev e1",
    "ip nexthop replace id 11 group 1/3 type resilient buckets 2",
    "ip nexthop del id 3",
    "ip nexthop replace id 10 group 1/2 type resilient unbalanced_timer 0",
    "ip nexthop del id 1",
    "ip nexthop del id 2",
];

/// What is compared after each step.
const LINES: [&str; 8] =
    ["nexthop", "nexthop bucket", "-4 route show table all", "-6 route show table all", "rule", "-6 rule", "neigh", "addr"];

#[test]
fn each_change_leaves_what_it_leaves_in_the_kernel() {
    in_namespace(|| {
        ports();
        configure(BEGIN).expect("the kernel takes it");
        let mut configuration = control::network_file(BEGIN, "network.ip", &PORTS).unwrap_or_else(|errors| panic!("{errors}"));
        let (mut wrong, mut known) = (Vec::new(), Vec::new());
        for step in STEPS {
            let (line, refused) = step.strip_prefix('!').map_or((*step, false), |line| (line, true));
            let ours = configuration.apply(line, "request").map_err(|errors| errors.to_string());
            let kernels = configure(line);
            if (ours.is_err(), kernels.is_err()) != (refused, refused) {
                wrong.push(format!("{line}\n  noref: {ours:?}\n  kernel: {kernels:?}"));
            }
            for shown in LINES {
                let mut differing = eventually_none(20, Duration::from_millis(20), || differences(&configuration, shown));
                differing.retain(|difference| !known.contains(difference));
                if differing.len() > 1 {
                    wrong.push(format!("after {line}\n{}", differing.join("\n")));
                    known.extend(differing.into_iter().skip(1));
                }
            }
        }
        assert!(wrong.is_empty(), "{}", wrong.join("\n"));
        assert!(!asked("rule").is_empty());
    });
}

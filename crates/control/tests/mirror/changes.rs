//! Changes at random while the mirror follows: what it has in the end is what it would read afresh.

use std::net::{Ipv4Addr, UdpSocket};
use std::time::Duration;

use route::{NexthopDoes, Tick};
use testkit::rng::Rng;

use crate::lab::{batch, follower, in_namespace, ports_up, settle, shell};
use crate::render::{differences, render_follower};

/// One line of `ip -batch`. Many are refused, as they would be an operator's.
fn change(random: &mut Rng) -> String {
    let mut of = |n: usize| random.below(n);
    let (port, net, gateway, metric) = (of(4), of(6), of(3) + 2, of(3) * 10);
    let verb = ["add", "append", "replace", "del", "add", "prepend"][of(6)];
    let table = ["main", "100", "500"][of(3)];
    let v4 = format!("10.9.{net}.0/24");
    let v6 = format!("fd09:{net}::/64");
    match of(16) {
        0..=2 => format!("route {verb} {v4} via 10.0.{port}.{gateway} table {table} metric {metric}"),
        3 => format!("route {verb} {v4} dev e{port} table {table} metric {metric}"),
        4 => format!("route {verb} {v4} table {table} nexthop via 10.0.{port}.{gateway} weight 3 nexthop via 10.0.{}.7", (port + 1) % 4),
        5 => format!("route {verb} {} {v4} metric {metric}", ["blackhole", "unreachable", "throw"][net % 3]),
        6..=8 => format!("route {verb} {v6} via fd00:{port}::{gateway} table {table} metric {metric}"),
        9 => format!("route {verb} {v6} dev e{port} table {table} metric {metric}"),
        10 => format!("route {verb} {v6} table {table} nexthop via fd00:{port}::{gateway} nexthop via fd00:{}::7 weight 2", (port + 1) % 4),
        11 => format!("route {verb} {v6} encap seg6local action End.X nh6 fd00:{port}::{gateway} count dev e{port} metric 7"),
        12 => format!("route {verb} {v4} encap seg6 mode encap segs fc00:{net}::1,fc00:{net}::2 dev e{port}"),
        13 => match of(9) {
            0 => format!("nexthop del id {}", net + 1),
            1 => format!("nexthop replace id {} via 10.0.{port}.{gateway} dev e{port}", net + 1),
            2 => format!("nexthop replace id 10 group {}/{}", net + 1, (net + 1) % 6 + 1),
            3 => format!("route {verb} 10.8.{net}.0/24 nhid {}", net + 1),
            4 => format!("route {verb} 10.8.{net}.0/24 nhid {}", metric / 10 + 10),
            5 | 6 => format!("nexthop replace id 11 group {}/{},{} type resilient buckets 9", net + 1, (net + 1) % 6 + 1, gateway),
            7 => "nexthop del id 11".to_owned(),
            _ => "nexthop del id 10".to_owned(),
        },
        14 => match of(8) {
            0 if net < 2 => format!("link set e{port} down"),
            1 | 2 => format!("link set e{port} up"),
            3 => format!("link set e{port} mtu {}", 1400 + net * 20),
            4 => format!("addr add 10.7.{net}.1/24 dev e{port}"),
            5 => format!("addr del 10.7.{net}.1/24 dev e{port}"),
            6 => format!("addr add fd07:{net}::1/64 dev e{port} nodad"),
            _ => format!("addr del fd07:{net}::1/64 dev e{port}"),
        },
        _ => match of(4) {
            0 => format!("neigh {} 10.0.{port}.{gateway} lladdr 02:00:00:00:0f:0{port} dev e{port}", ["replace", "del"][net % 2]),
            1 => format!("rule {} from 10.9.{net}.0/24 lookup {table} pref {}", ["add", "del"][net % 2], metric + 100),
            2 => format!("rule {} to fd09:{net}::/64 iif e{port} lookup {table} pref {}", ["add", "del"][metric % 2], net + 100),
            _ => format!("rule {} fwmark 7 lookup {table} pref 99", ["add", "del"][net % 2]),
        },
    }
}

#[test]
fn after_random_changes_the_mirror_is_what_a_fresh_one_reads() {
    in_namespace(|| {
        ports_up();
        let mut random = Rng::new(7);
        let mut follower = follower();
        for round in 0..12 {
            let lines: String = (0..150).map(|_| change(&mut random) + "\n").collect();
            batch(&lines);
            settle(&mut follower);
            let fresh = crate::lab::follower();
            let differing = differences(&render_follower(&fresh), &render_follower(&follower));
            assert!(differing.is_empty(), "round {round}\n{}\nafter\n{lines}", differing.join("\n"));
        }
        let counters = follower.follow().counters;
        assert!(counters.events > 500 && counters.malformed == 0, "{counters:?}");
    });
}

#[test]
fn changes_that_come_while_the_mirror_reads_are_not_missed() {
    in_namespace(|| {
        ports_up();
        let mut follower = follower();
        std::thread::scope(|scope| {
            let busy = scope.spawn(|| {
                let mut random = Rng::new(11);
                for _ in 0..6 {
                    batch(&(0..200).map(|_| change(&mut random) + "\n").collect::<String>());
                }
            });
            while !busy.is_finished() {
                follower.step(Duration::from_millis(1)).expect("a step");
            }
        });
        settle(&mut follower);
        let fresh = crate::lab::follower();
        assert_eq!(differences(&render_follower(&fresh), &render_follower(&follower)), Vec::<String>::new());
    });
}

/// What the kernel does with a resilient group in its own time is followed too.
#[test]
fn buckets_that_a_kernel_moves_when_their_flows_pause_are_followed() {
    in_namespace(|| {
        ports_up();
        shell(
            "for host in 2 3 4; do ip neigh add 10.0.1.$host lladdr 02:00:00:00:0f:0$host dev e1; ip nexthop add id $host via 10.0.1.$host dev e1; done
             ip nexthop add id 10 group 2/3 type resilient buckets 8 idle_timer 1; ip route add 10.9.0.0/16 nhid 10",
        );
        let mut follower = follower();
        let mirrored = |follower: &control::mirror::Follower| match follower.mirror().editor().nexthop(10).map(|object| &object.does) {
            Some(NexthopDoes::Group(_, Some(resilient))) => resilient.buckets(Tick(0)).map(|(member, _)| member).collect::<Vec<_>>(),
            other => panic!("{other:?}"),
        };
        assert_eq!(mirrored(&follower), [3, 3, 3, 3, 2, 2, 2, 2]);
        let socket = UdpSocket::bind("10.0.0.1:0").expect("a socket");
        for host in 1..200 {
            socket.send_to(b"x", (Ipv4Addr::new(10, 9, 0, host), 9)).expect("a packet");
        }
        shell("ip nexthop replace id 10 group 2/3/4 type resilient");
        settle(&mut follower);
        assert_eq!(mirrored(&follower), [3, 3, 3, 3, 2, 2, 2, 2], "all in use");
        std::thread::sleep(Duration::from_millis(1600));
        settle(&mut follower);
        assert_eq!(mirrored(&follower), [4, 4, 3, 3, 4, 2, 2, 2]);
        shell("ip nexthop del id 4");
        settle(&mut follower);
        let fresh = crate::lab::follower();
        assert_eq!(mirrored(&follower), mirrored(&fresh));
    });
}

#[test]
fn ports_that_are_renamed_deleted_and_made_again_keep_their_place() {
    in_namespace(|| {
        ports_up();
        let mut follower = follower();
        let ports = |follower: &control::mirror::Follower| {
            let links = follower.mirror().editor().links();
            (0..4).map(|place| links.of_port(place).map(|link| (link.name.to_string(), link.index.0))).collect::<Vec<_>>()
        };
        let before = ports(&follower);
        shell("ip link set e1 down; ip link set e1 name other; ip link del e3");
        settle(&mut follower);
        assert_eq!(ports(&follower), [before[0].clone(), None, before[2].clone(), None]);
        shell("ip link set other name e1; ip link set e1 up; ip link add e3 type veth peer name e3-far; ip link set e3 up");
        settle(&mut follower);
        let after = ports(&follower);
        assert_eq!(after[..3], before[..3]);
        assert!(after[3].as_ref().is_some_and(|(name, index)| name == "e3" && Some(*index) != before[3].as_ref().map(|(_, index)| *index)));
        let fresh = crate::lab::follower();
        assert_eq!(differences(&render_follower(&fresh), &render_follower(&follower)), Vec::<String>::new());
    });
}

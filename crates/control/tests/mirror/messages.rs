//! Messages recorded from a kernel (Linux 6.18), read without one; and the same with damage, which must do no harm.
//!
//! `cargo test -p noref-control --test mirror record -- --ignored` records them again, as root.

use std::fs;
use std::io;
use std::net::{Ipv4Addr, Ipv6Addr};
use std::num::NonZeroU16;
use std::path::PathBuf;
use std::time::Duration;

use control::mirror::{Dirty, Dump, Encap, Follow, KernelRoute, Mirror, Nexthop, Object, Progress, Reason, Snapshot};
use netlink_sys::{Socket, SocketAddr, protocols::NETLINK_ROUTE};
use route::{Action, IfIndex, Prefix, ResilientSpec, TableId};
use testkit::rng::Rng;

use crate::lab::{PORTS, in_namespace, ports_up, shell};

/// What is recorded: something of everything that is decoded.
const CONFIGURATION: &str = "
    ip link add br0 type bridge; ip link set e3 master br0; ip link set e2 mtu 1400
    ip addr add 10.7.0.1/24 brd + dev e0; ip addr add 10.7.0.2/24 dev e0; ip addr add 10.6.0.1 peer 10.6.0.2/32 dev e0
    ip -6 addr add fd07::1/64 dev e0 nodad noprefixroute
    ip neigh add 10.0.0.2 lladdr 02:00:00:00:0f:00 dev e0; ip -6 neigh add fd00:0::2 lladdr 02:00:00:00:0f:06 dev e0
    ip neigh add proxy 10.0.0.99 dev e0
    ip route add 10.9.0.0/24 via 10.0.0.2 mtu 1300 metric 7 src 10.0.0.1 table 500
    ip route add 10.9.1.0/24 nexthop via 10.0.1.2 weight 3 nexthop via inet6 fe80::2 dev e2
    ip route add 10.9.2.0/24 encap seg6 mode encap.red segs fc00:2::1,fc00:2::2 dev e1
    ip route add 10.9.3.0/24 tos 0x10 via 10.0.0.2
    ip route add unreachable 10.9.4.0/24 metric 9; ip route add throw 10.9.5.0/24; ip route add prohibit 10.9.6.0/24
    ip nexthop add id 1 via 10.0.1.2 dev e1; ip nexthop add id 2 via fd00:1::2 dev e1; ip nexthop add id 3 blackhole
    ip nexthop add id 4 via fd00:2::2 dev e2; ip nexthop add id 5 group 2,7/4; ip nexthop add id 6 group 2/4 type resilient buckets 8
    ip nexthop add id 7 encap seg6 mode encap segs fc00:3::1 via fd00:2::2 dev e2; ip nexthop add id 8 via fd00:2::2 fdb
    ip route add 10.9.7.0/24 nhid 1; ip -6 route add fd09:7::/64 nhid 5; ip -6 route add fd09:8::/64 nhid 6
    ip -6 route add fd09:1::/64 encap seg6 mode inline segs fc00:2::1,fc00:2::2 hmac 42 dev e0
    ip -6 route add fd09:2::/64 encap seg6local action End flavors psp,next-csid lblen 48 nflen 8 count dev e0
    ip -6 route add fd09:3::/64 encap seg6local action End.X nh6 fd00:1::2 dev e0
    ip -6 route add fd09:4::/64 encap seg6local action End.B6 srh segs fc00:2::b,fc00:2::c dev e0
    ip -6 route add fd09:5::/64 encap seg6local action End.DX4 nh4 10.0.1.2 dev e0
    ip -6 route add fd09:6::/64 nexthop via fd00:1::2 weight 2 nexthop via fd00:2::2
    ip -6 route add fd09:9::/64 encap ip6 id 7 dst fd00:1::9 dev e1
    ip rule add from 10.9.0.0/16 to 10.8.0.0/16 iif e1 lookup 500 pref 100; ip rule add fwmark 7 lookup 100 pref 101
    ip rule add not from 10.0.0.0/8 lookup 100 pref 102; ip rule add prohibit pref 103; ip rule add iif lo lookup main suppress_prefixlength 0 pref 104
    ip -6 rule add to fd09::/16 lookup 4294967294 pref 100";

/// Everything that the kernel dumps: settings are read otherwise.
fn dumped() -> impl Iterator<Item = Object> {
    Object::ALL.into_iter().filter(|object| *object != Object::Settings)
}

fn file(object: Object) -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR")).join(format!("tests/messages/{}.bin", format!("{object:?}").to_lowercase()))
}

#[test]
#[ignore = "records the messages that the other tests read"]
fn record() {
    in_namespace(|| {
        ports_up();
        shell(CONFIGURATION);
        for object in dumped() {
            let mut socket = Socket::new(NETLINK_ROUTE).unwrap();
            socket.bind_auto().unwrap();
            socket.connect(&SocketAddr::new(0, 0)).unwrap();
            let (mut dump, request) = Dump::begin(object, 1);
            socket.send(&request, 0).unwrap();
            let mut all = Vec::new();
            loop {
                let (datagram, _) = socket.recv_from_full().unwrap();
                all.extend(&datagram);
                if dump.datagram(&datagram, false) != Progress::More {
                    break;
                }
            }
            fs::create_dir_all(file(object).parent().unwrap()).unwrap();
            fs::write(file(object), all).unwrap();
        }
    });
}

fn recorded(object: Object) -> io::Result<Vec<u8>> {
    fs::read(file(object))
}

/// What the recorded dump of an object tells.
fn told(object: Object) -> Snapshot {
    let (mut dump, _) = Dump::begin(object, 1);
    assert_eq!(dump.datagram(&recorded(object).unwrap(), false), Progress::Done, "{object:?}");
    dump.told
}

/// Everything that was recorded, and the number of each port by its place.
fn snapshot() -> (Snapshot, [IfIndex; 4]) {
    let mut snapshot = Snapshot::default();
    for object in dumped() {
        snapshot.replace(object, told(object), &mut Dirty::default());
    }
    let of = |name: &str| snapshot.devices.values().find(|device| &*device.name == name).unwrap().index;
    let ports = PORTS.map(of);
    (snapshot, ports)
}

fn v4(snapshot: &Snapshot, table: u32, net: u8) -> &KernelRoute {
    &snapshot.routes4[&(TableId(table), Prefix::new(Ipv4Addr::new(10, 9, net, 0), 24).unwrap())][0]
}

fn v6(snapshot: &Snapshot, net: u16) -> &KernelRoute {
    &snapshot.routes6[&(TableId::MAIN, Prefix::new(Ipv6Addr::new(0xfd09, net, 0, 0, 0, 0, 0, 0), 64).unwrap())][0]
}

#[test]
fn devices_and_addresses_are_read() {
    let (snapshot, [e0, _, e2, e3]) = snapshot();
    let master = snapshot.devices[&e3].master.and_then(|master| snapshot.devices.get(&master)).unwrap();
    assert_eq!((&*master.name, format!("{:?}", master.kind)), ("br0", "Other(\"bridge\")".to_owned()));
    assert_eq!((snapshot.devices[&e2].mtu, snapshot.devices[&e2].up, snapshot.devices[&e2].carrier), (1400, true, true));
    assert!(!snapshot.devices[&e0].conf6.disable_ipv6 && snapshot.devices[&e0].conf6.hop_limit == 64);
    let of_e0 = snapshot.addresses.iter().filter(|(dev, _)| *dev == e0).map(|(_, address)| format!("{address:?}")).collect::<Vec<_>>();
    assert!(of_e0.iter().any(|a| a.contains("10.7.0.1, len: 24") && a.contains("Some(10.7.0.255)") && a.contains("secondary: false")));
    assert!(of_e0.iter().any(|a| a.contains("10.7.0.2, len: 24") && a.contains("secondary: true")));
    // The peer is no address of the router.
    assert!(of_e0.iter().any(|a| a.contains("10.6.0.1, len: 32")) && !of_e0.iter().any(|a| a.contains("10.6.0.2")));
    assert!(of_e0.iter().any(|a| a.contains("fd07::1, len: 64, no_prefix_route: true")));
}

#[test]
fn neighbours_are_read_and_proxies_are_none() {
    let (snapshot, [e0, ..]) = snapshot();
    let known = |addr: &str| snapshot.neighbours.get(&(e0, addr.parse().unwrap())).map(|(state, mac)| format!("{state:?} {mac}"));
    assert_eq!(known("10.0.0.2").as_deref(), Some("Permanent 02:00:00:00:0f:00"));
    assert_eq!(known("fd00::2").as_deref(), Some("Permanent 02:00:00:00:0f:06"));
    assert_eq!(known("10.0.0.99"), None);
}

#[test]
fn routes_are_read() {
    let (snapshot, [e0, e1, e2, _]) = snapshot();
    let route = v4(&snapshot, 500, 0);
    assert_eq!((route.metric, route.mtu, route.src, route.protocol), (7, 1300, Some("10.0.0.1".parse().unwrap()), 3));
    assert_eq!((route.ways[0].dev, route.ways[0].via), (e0, Some("10.0.0.2".parse().unwrap())));
    let ways: Vec<_> = v4(&snapshot, 254, 1).ways.iter().map(|way| (way.dev, way.via.unwrap().to_string(), way.weight)).collect();
    assert_eq!(ways, [(e1, "10.0.1.2".to_owned(), 3), (e2, "fe80::2".to_owned(), 1)]);
    let ways: Vec<_> = v6(&snapshot, 6).ways.iter().map(|way| (way.dev, way.via.unwrap().to_string(), way.weight)).collect();
    assert_eq!(ways, [(e1, "fd00:1::2".to_owned(), 2), (e2, "fd00:2::2".to_owned(), 1)]);
    assert_eq!(v4(&snapshot, 254, 3).tos, 0x10);
    let kinds = [4, 5, 6].map(|net| v4(&snapshot, 254, net).kind.word());
    assert_eq!(kinds, ["unreachable", "throw", "prohibit"]);
    assert_eq!((v4(&snapshot, 254, 7).nexthop, v6(&snapshot, 7).nexthop, v6(&snapshot, 7).ways.len()), (1, 5, 0));
}

#[test]
fn encapsulations_are_read() {
    let (snapshot, _) = snapshot();
    let encap = |route: &KernelRoute| route.ways[0].encap.as_deref().cloned().unwrap();
    let Encap::Seg6 { mode, segments, tunsrc: None, table: None } = encap(v4(&snapshot, 254, 2)) else { panic!() };
    assert_eq!(format!("{mode} {segments}"), "encap.red segs 2 [ fc00:2::1 fc00:2::2 ]");
    let Encap::Seg6 { mode, segments, .. } = encap(v6(&snapshot, 1)) else { panic!() };
    assert_eq!(format!("{mode} {segments}"), "inline segs 2 [ fc00:2::1 fc00:2::2 ] hmac 0x2a");
    let local = |net| match encap(v6(&snapshot, net)) {
        Encap::Seg6Local { action, attributes } => (action, attributes),
        other => panic!("{other:?}"),
    };
    let (action, end) = local(2);
    assert_eq!((action, end.flavors.to_string().as_str(), end.lblen, end.nflen, end.count), (1, "psp,next-csid", Some(48), Some(8), true));
    assert_eq!((local(3).0, local(3).1.nh6, local(3).1.count), (2, Some("fd00:1::2".parse().unwrap()), false));
    assert_eq!((local(4).0, local(4).1.srh.map(|srh| srh.to_string())), (9, Some("segs 2 [ fc00:2::b fc00:2::c ]".to_owned())));
    assert_eq!((local(5).0, local(5).1.nh4), (6, Some("10.0.1.2".parse().unwrap())));
    assert_eq!(encap(v6(&snapshot, 9)), Encap::Unsupported(Reason::Encap("ip6")));
}

#[test]
fn nexthop_objects_are_read() {
    let (snapshot, [_, e1, ..]) = snapshot();
    let Nexthop::Way(way) = &snapshot.nexthops[&2].is else { panic!() };
    assert_eq!((way.dev, way.via), (e1, Some("fd00:1::2".parse().unwrap())));
    assert_eq!(snapshot.nexthops[&3].is, Nexthop::Blackhole);
    assert_eq!(snapshot.nexthops[&5].is, Nexthop::Group(vec![(2, 7), (4, 1)], None));
    let resilient = ResilientSpec { buckets: NonZeroU16::new(8), idle_timer: Some(12_000), unbalanced_timer: Some(0) };
    assert_eq!(snapshot.nexthops[&6].is, Nexthop::Group(vec![(2, 1), (4, 1)], Some(resilient)));
    assert_eq!(snapshot.buckets[&6], [4, 4, 4, 4, 2, 2, 2, 2]);
    assert!(matches!(snapshot.nexthops[&8].is, Nexthop::Unsupported(Reason::Nexthop(_))));
    let Nexthop::Way(way) = &snapshot.nexthops[&7].is else { panic!() };
    assert!(matches!(way.encap.as_deref(), Some(Encap::Seg6 { .. })));
}

#[test]
fn rules_are_read() {
    let (snapshot, _) = snapshot();
    let rule = |pref: u32| snapshot.rules4.iter().find(|rule| rule.pref == pref).unwrap();
    let plain = rule(100);
    let prefix = |prefix: Option<Prefix<Ipv4Addr>>| prefix.unwrap().to_string();
    assert_eq!(
        (prefix(plain.select.from), prefix(plain.select.to), plain.iif.as_deref()),
        ("10.9.0.0/16".into(), "10.8.0.0/16".into(), Some("e1"))
    );
    assert_eq!(plain.action, Ok(Action::Lookup(TableId(500))));
    assert_eq!(rule(101).action, Err(Reason::Mark));
    assert_eq!((prefix(rule(102).select.from), rule(102).select.not), ("10.0.0.0/8".into(), true));
    assert_eq!(rule(102).action, Ok(Action::Lookup(TableId(100))));
    assert_eq!(rule(103).action, Ok(Action::Prohibit));
    assert_eq!((&rule(104).action, rule(104).suppress_len), (&Ok(Action::Lookup(TableId::MAIN)), Some(0)));
    let v6 = snapshot.rules6.iter().find(|rule| rule.pref == 100).unwrap();
    assert_eq!(v6.action, Ok(Action::Lookup(TableId(4_294_967_294))));
}

/// A SID whose gateway is cut to 4 bytes is refused by itself, and what else there is read on.
#[test]
fn a_gateway_of_the_wrong_length_spoils_its_route_only() {
    let mut bytes = recorded(Object::Routes6).unwrap();
    // SEG6_LOCAL_NH6, 20 bytes: fd00:1::2. The rest of it becomes an attribute that nobody knows.
    let nh6: [u8; 8] = [20, 0, 5, 0, 0xfd, 0, 0, 1];
    let at = bytes.windows(8).position(|window| window == nh6).unwrap();
    bytes[at] = 8;
    bytes[at + 8..at + 12].copy_from_slice(&[12, 0, 200, 0]);
    let (mut dump, _) = Dump::begin(Object::Routes6, 1);
    assert_eq!(dump.datagram(&bytes, false), Progress::Done);
    assert_eq!(v6(&dump.told, 3).ways[0].encap.as_deref(), Some(&Encap::Unsupported(Reason::Malformed("seg6local nh6"))));
    assert!(matches!(v6(&dump.told, 5).ways[0].encap.as_deref(), Some(Encap::Seg6Local { .. })));
}

/// A route whose message never came is found by the next check, counted, and put into the tables.
#[test]
fn a_check_counts_and_mends_what_was_missed() {
    let mut follow = Follow::new();
    // Settings are not recorded.
    let of = |object| if object == Object::Settings { Snapshot::default() } else { told(object) };
    let missed = (TableId::MAIN, Prefix::new(Ipv4Addr::new(10, 9, 1, 0), 24).unwrap());
    while let Some(object) = follow.due(Duration::ZERO) {
        let mut told = of(object);
        told.routes4.remove(&missed);
        follow.dumped(Duration::ZERO, object, told, Progress::Done);
    }
    let mut mirror = Mirror::new(&PORTS);
    mirror.reconcile(&mut follow.snapshot, &mut follow.dirty);
    let ways =
        |mirror: &Mirror| mirror.editor().longest(missed.0, missed.1.addr()).map(|(_, entry)| mirror.editor().ways_of(&entry.effect).len());
    assert_eq!((ways(&mirror), follow.counters.differences), (None, 0));
    follow.check();
    let later = Duration::from_millis(500);
    while let Some(object) = follow.due(later) {
        follow.dumped(later, object, of(object), Progress::Done);
    }
    mirror.reconcile(&mut follow.snapshot, &mut follow.dirty);
    assert_eq!((ways(&mirror), follow.counters.checks, follow.counters.differences), (Some(2), 1, 1));
}

#[test]
fn the_recorded_kernel_is_mirrored_but_for_what_is_listed() {
    let (snapshot, _) = snapshot();
    let mut mirror = Mirror::new(&PORTS);
    let mut whole = Snapshot::default();
    let mut dirty = Dirty::default();
    for object in dumped() {
        whole.replace(object, snapshot.clone(), &mut dirty);
    }
    mirror.reconcile(&mut whole, &mut dirty);
    assert!(dirty.is_clean());
    let listed: Vec<_> = mirror.unsupported().into_iter().map(|unsupported| unsupported.what).collect();
    assert_eq!(listed, ["device e3", "rule 101", "route fd09:9::/64 table main"]);
}

#[test]
fn no_message_does_harm_whatever_is_in_it() {
    let mut random = Rng::new(3);
    let whole: Vec<_> = dumped().map(|object| recorded(object).unwrap()).collect();
    for round in 0..400 {
        let mut follow = Follow::new();
        let mut mirror = Mirror::new(&PORTS);
        for (object, bytes) in dumped().zip(&whole) {
            let mut bytes = bytes.clone();
            for _ in 0..random.below(12) {
                let at = random.below(bytes.len());
                bytes[at] = random.byte();
            }
            if random.below(4) == 0 {
                bytes.truncate(random.below(bytes.len()));
            }
            let (mut dump, _) = Dump::begin(object, 1);
            dump.datagram(&bytes, random.below(8) == 0);
            let now = Duration::from_millis(round);
            follow.dumped(now, object, dump.told, Progress::Done);
            // The same as events, some of them of the opposite kind.
            if random.below(2) == 0 {
                bytes.iter_mut().skip(4).step_by(64).for_each(|byte| *byte ^= 1);
            }
            follow.datagram(now, &bytes, false);
            follow.drained();
        }
        mirror.reconcile(&mut follow.snapshot, &mut follow.dirty);
        assert!(follow.dirty.is_clean());
    }
}

//! The kernel configured with the network file of each golden case, and shown by `ip`, is what noref shows of the file itself.

use std::process::Command;
use std::time::Duration;

use control::Configuration;
use control::mirror::Follower;
use control::show::Source;
use plane::{SidCount, Tables};
use route::{Editor, SidId};

use crate::forms::shown;
use crate::lab::{PORTS, able, compare_golden_cases, compare_thrice, configure, follower, in_namespace, ports, settle};

/// What is asked, of both.
const LINES: [&str; 19] = [
    "nexthop",
    "nexthop show groups",
    "nexthop bucket",
    "-4 route show table all",
    "-6 route show table all",
    "route",
    "-6 route list",
    "route show table local",
    "route show dev e1",
    "-6 route show dev e1",
    "-o -4 route show root 10.0.0.0/8",
    "route show match 10.9.0.1",
    "-6 route show proto kernel",
    "rule",
    "-6 rule list",
    "neigh",
    "-4 neigh show dev e0",
    "addr",
    "link",
];

/// Every form that the golden cases do not have.
const FORMS: &str = "\
ip link set lo up
ip link set e0 address 02:00:00:00:0e:00 up
ip link set e1 address 02:00:00:00:0e:01 up
ip link set e2 address 02:00:00:00:0e:02 up
ip link set e3 address 02:00:00:00:0e:03
ip -6 addr add fe80::a0/64 dev e0 nodad
ip -6 addr add fe80::a1/64 dev e1 nodad
ip -6 addr add fe80::a2/64 dev e2 nodad
ip addr add 10.0.0.1/24 dev e0
ip addr add 10.0.0.9/24 dev e0
ip addr add 10.0.1.1/24 brd + dev e1
ip addr add 10.7.0.1/32 dev lo
ip addr add 10.8.0.1/24 dev e2 scope link noprefixroute
ip -6 addr add fd00:0::1/64 dev e0 nodad
ip -6 addr add fd00:1::1/64 dev e1 nodad noprefixroute
ip route add 10.9.0.0/16 via 10.0.0.2
ip route add 10.9.0.0/16 via 10.0.0.3 metric 5 proto bgp mtu 1400
ip route add 10.9.0.0/16 via 10.0.0.3 metric 6 proto 77 src 10.0.0.1
ip route add 10.0.0.0/8 via 10.0.0.3 onlink dev e0
ip route add default via 10.0.0.4
ip route add blackhole 10.20.0.0/16
ip route add prohibit 10.21.0.0/16
ip route add unreachable 10.22.0.0/16 table 7
ip route add throw 10.23.0.0/16 metric 9
ip route add 10.24.0.0/16 nexthop via 10.0.0.2 weight 3 nexthop via 10.0.1.2 dev e1
ip route add 10.25.0.0/16 nexthop dev e0 weight 3 nexthop encap seg6 mode encap segs fc00::1 dev e1
ip route add 10.26.0.0/16 via inet6 fd00::5 dev e0
ip route add 10.27.0.0/16 encap seg6 mode encap segs fc00::1,fc00::2 dev e0
ip route add 10.27.1.0/24 dev e0 scope global
ip route add local 10.7.0.5 dev lo
ip route add 10.57.0.0/16 dev e0 proto 99
ip route add 10.58.0.0/16 dev e0 proto unspec scope host
ip -6 route add fc00:1::2 encap seg6local action End.X nh6 fd00::5 flavors next-csid lblen 48 nflen 8 count dev e0
ip -6 route add fc00:1::3 encap seg6local action End.T table 7 dev e0
ip -6 route add fc00:1::4 encap seg6local action End.DX2 oif e1 dev e0
ip -6 route add fc00:1::5 encap seg6local action End.DX4 nh4 10.0.0.4 dev e0
ip -6 route add fc00:1::7 encap seg6local action End.DT6 table main dev e0
ip -6 route add fc00:1::8 encap seg6local action End.B6.Encaps srh segs fc00::1,fc00::2 dev e0
ip -6 route add fc00:1::9 encap seg6local action End.B6 srh segs fc00::1,fc00::2 dev e0
ip -6 route add fc00:1::a encap seg6local action End flavors psp,next-csid dev e0
ip -6 route add fd09::/64 encap seg6 mode inline segs fc00::1,fc00::2 dev e0
ip -6 route add fd0a::/64 encap seg6 mode encap.red segs fc00::1,fc00::2 via fd00::5 metric 7
ip -6 route add fd0b::/64 via fd00::5
ip -6 route append fd0b::/64 via fd00::6
ip -6 route add fd0b::/32 via fd00::6
ip -6 route add fd0c::/64 nexthop via fd00::5 weight 5 nexthop via fd00::6
ip -6 route add blackhole fd0d::/64
ip -6 route add unreachable default metric 9999
ip -6 route add prohibit fd0e::/64 table 7 mtu 1300
ip -6 route add fd0f::/64 via fe80::5 dev e0 src fd00::1 proto static
ip -6 route add local fd10::1 dev lo
ip nexthop add id 1 via 10.0.0.2 dev e0
ip nexthop add id 2 via 10.0.1.2 dev e1
ip nexthop add id 3 via fd00::6 dev e0
ip nexthop add id 10 group 1,3/2,2/3 type resilient buckets 11 idle_timer 12345 unbalanced_timer 1234567
ip nexthop add id 11 group 3 type resilient buckets 3 proto bgp
ip -6 nexthop add id 4 dev e0 encap seg6local action End.T table 7 count
ip nexthop add id 5 via fd00::6 dev e0 encap seg6local action End.DX4 nh4 10.0.0.4
ip nexthop add id 12 group 4/5,2
ip -6 route add fc00:1::b nhid 4
ip -6 route add fc00:1::c nhid 12
ip route add 10.30.0.0/16 nhid 10
ip -6 route add fd11::/64 nhid 11
ip rule add from 10.0.0.0/8 lookup 7
ip rule add to 10.0.0.1 iif e0 lookup 7 pref 5
ip -6 rule add from fd00::/8 to fd01::/64 iif e3 lookup main pref 77
ip neigh add 10.0.0.2 lladdr 02:00:00:00:0f:00 dev e0
ip neigh add 10.0.0.3 lladdr 02:00:00:00:0f:01 dev e0 nud stale
ip neigh add 10.0.0.4 dev e0 nud failed
ip -6 neigh add fd00::5 lladdr 02:00:00:00:0f:02 dev e0 nud permanent
ip sr tunsrc set fd00::77
ip rule add not from 10.1.0.0/16 to 10.9.0.0/16 lookup 7 pref 400
ip rule add goto 402 pref 401
ip rule add goto 999 pref 401 iif e1
ip rule add iif e0 oif e1 nop pref 402
ip rule add blackhole pref 403
ip rule add from 10.4.0.0/16 unreachable pref 404
ip rule add dport 1-2 prohibit pref 405 proto static
ip rule add tos 0x10 lookup 7 pref 406
ip rule add ipproto udp sport 100-200 dport 53 lookup 7 pref 407
ip rule add ipproto 253 lookup main suppress_prefixlength 0 pref 408
ip rule add lookup 7 suppress_ifgroup default pref 409
ip rule add lookup 7 suppress_prefixlength 8 suppress_ifgroup 3 pref 410
ip rule add l3mdev pref 411
ip rule add l3mdev unreachable pref 412
ip rule add lookup 7
ip rule add from 10.3.3.3 lookup local pref 413
ip rule add lookup 8 pref 414
ip rule add lookup 8 pref 415
ip rule del lookup 8
ip rule add lookup 9 pref 416
ip rule flush lookup 9
ip rule add iif wan lookup 9 pref 417
ip rule add iif e0 oif later lookup 9 pref 418
ip -6 rule add tos CS1 lookup 7 pref 400
ip -6 rule add iif later lookup 9 pref 402
ip -6 rule add from fd00:1::/64 ipproto ipv6-icmp lookup 7 pref 401
";

/// What is asked of them beside.
const MORE: [&str; 20] = [
    "nexthop bucket show id 10",
    "nexthop bucket list nhid 3",
    "nexthop bucket show dev e0",
    "nexthop bucket get id 10 index 7",
    "-6 route show table 7",
    "route show exact 10.9.0.0/16",
    "route show 10.9/16 proto bgp",
    "route list root default",
    "route ls match 10.9.0.0/16",
    "-6 route show root fd0b::/32",
    "-6 route show match fd0b::1",
    "-6 route show default",
    "route show type blackhole",
    "route show via 10.0.0.2",
    "route show scope host",
    "-o route show 10.24.0.0/16",
    "-s -6 route show fc00:1::2",
    "neigh show nud permanent",
    "neigh show 10.0.0.2",
    "sr tunsrc show",
];

#[test]
fn every_form_looks_as_iproute2_shows_it() {
    let differing = compare_thrice(|| compare(FORMS, &[&LINES[..], &MORE[..]].concat()));
    assert!(differing.as_ref().is_none_or(Vec::is_empty), "{}", differing.unwrap_or_default().join("\n"));
    assert!(!able() || std::env::var_os("CI").is_none() || differing.is_some(), "this kernel refuses the file");
}

#[test]
fn the_golden_cases_look_as_iproute2_shows_them() {
    compare_golden_cases(|text| compare(text, &LINES));
}

/// What differs; none when noref or this kernel refuses the file.
fn compare(text: &str, lines: &[&str]) -> Option<Vec<String>> {
    let configuration = control::network_file(text, "network.ip", &PORTS).inspect_err(|errors| eprintln!("{errors}")).ok()?;
    let mut compared = None;
    in_namespace(|| {
        ports();
        if let Err(error) = configure(text) {
            return eprintln!("{error}");
        }
        let of_line = |line: &&str| eventually_none(40, Duration::from_millis(50), || differences(&configuration, line));
        let mut differing: Vec<_> = lines.iter().flat_map(of_line).collect();
        let mut mirrored = Mirrored(follower());
        differing.extend(eventually_none(20, Duration::from_millis(50), || {
            settle(&mut mirrored.0);
            mirrored.differences(lines)
        }));
        compared = Some(differing);
    });
    compared
}

/// What still differs when it was looked `tries` times more, with pauses: the kernel does some things a little later than it is told to.
pub fn eventually_none(tries: u32, pause: Duration, mut differing: impl FnMut() -> Vec<String>) -> Vec<String> {
    let mut left = differing();
    for _ in 0..tries {
        if left.is_empty() {
            break;
        }
        std::thread::sleep(pause);
        left = differing();
    }
    left
}

/// What noref and the kernel of this namespace show differently.
pub fn differences(configuration: &Configuration, line: &str) -> Vec<String> {
    compared_entries(&format!("ip {line}"), &ours(line, &shown(configuration, line)), &asked(line))
}

fn compared_entries(what: &str, ours: &[String], kernels: &[String]) -> Vec<String> {
    if ours == kernels {
        return Vec::new();
    }
    let mut differing = vec![what.to_owned()];
    differing.extend(ours.iter().filter(|entry| !kernels.contains(entry)).map(|entry| format!("  noref:    {entry}")));
    differing.extend(kernels.iter().filter(|entry| !ours.contains(entry)).map(|entry| format!("  iproute2: {entry}")));
    if differing.len() == 1 {
        differing.push(format!("  in another order: {ours:?}, iproute2: {kernels:?}"));
    }
    differing
}

/// What the kernel has.
pub fn asked(line: &str) -> Vec<String> {
    theirs(line, &told(line))
}

fn told(line: &str) -> String {
    let told = Command::new("ip").args(line.split(' ')).output().expect("ip");
    String::from_utf8_lossy(&told.stdout).into_owned()
}

/// A router that follows the kernel.
pub struct Mirrored(pub Follower);

impl Mirrored {
    fn differences(&self, lines: &[&str]) -> Vec<String> {
        let differing = lines.iter().flat_map(|line| {
            // A mirror knows the kernel's other devices by name, and routes to the addresses of `lo` as ones that lead nowhere.
            let known = |entry: &String| !(is_of_devices(line) && entry.contains("-far:") || is_behind_local(line, entry));
            let of = |text: &str| entries_of(line, text).into_iter().filter(known).collect::<Vec<_>>();
            let (ours, kernels) = (of(&shown(self, line)), of(&told(line)));
            compared_entries(&format!("mirrored: ip {line}"), &ours, &kernels)
        });
        differing.collect()
    }
}

impl Source for Mirrored {
    fn editor<R>(&self, read: impl FnOnce(&Editor) -> R) -> R {
        read(self.0.mirror().editor())
    }

    fn tables(&self) -> &Tables {
        self.0.mirror().tables()
    }

    fn counted(&self, _: SidId) -> SidCount {
        SidCount::default()
    }
}

/// Entries, each with the lines that belong to it.
fn entries(text: &str) -> Vec<String> {
    let mut entries: Vec<String> = Vec::new();
    for line in text.lines() {
        match entries.last_mut() {
            Some(entry) if line.starts_with([' ', '\t']) => {
                entry.push('\n');
                entry.push_str(line.trim_end());
            }
            _ => entries.push(line.trim_end().to_owned()),
        }
    }
    entries
}

/// What iproute2 shows, without what only the kernel has: the far ends of the ports, routes to the addresses of `lo` behind the local ones, queueing
/// disciplines and the like, flags that noref does not keep.
fn theirs(line: &str, text: &str) -> Vec<String> {
    let kernels_own = |entry: &String| {
        ["0-far", "1-far", "2-far", "3-far"]
            .iter()
            .any(|far| entry.contains(&format!("e{far}@")) || entry.contains(&format!("dev e{far} ")))
            || is_behind_local(line, entry)
    };
    let entries: Vec<_> = entries(text).into_iter().filter(|entry| !kernels_own(entry)).collect();
    entries_of(line, &entries.join("\n"))
}

/// A route to an address of `lo` in table `main`.
fn is_behind_local(line: &str, entry: &str) -> bool {
    (entry.contains(" dev lo ") || line.contains("dev lo")) && entry.ends_with(" metric 256 pref medium")
}

fn ours(line: &str, text: &str) -> Vec<String> {
    entries_of(line, text)
}

fn entries_of(line: &str, text: &str) -> Vec<String> {
    let mut entries = entries(text);
    if is_of_devices(line) {
        entries.iter_mut().for_each(|entry| *entry = device(entry));
    } else if line.contains("bucket") {
        entries.iter_mut().for_each(|entry| *entry = without_idle_time(entry));
    } else if line.contains("neigh") {
        entries.sort();
    }
    entries
}

/// A bucket without how long it was not used, which grows while one looks.
fn without_idle_time(bucket: &str) -> String {
    let words: Vec<_> = bucket.split(' ').collect();
    words.chunks(2).filter(|pair| pair[0] != "idle_time").flatten().copied().collect::<Vec<_>>().join(" ")
}

fn is_of_devices(line: &str) -> bool {
    line.ends_with("addr") || line.ends_with("link")
}

/// A device without its number, the name of its other end and the words of the kernel's alone; its addresses in no order.
fn device(entry: &str) -> String {
    let entry = entry.split_once(": ").map_or(entry, |(_, entry)| entry);
    let (head, rest) = entry.split_once('\n').unwrap_or((entry, ""));
    let mut words: Vec<_> = head.split(' ').collect();
    for kernels in ["qdisc", "mode", "group", "qlen"] {
        if let Some(at) = words.iter().position(|word| *word == kernels) {
            words.drain(at..at + 2);
        }
    }
    let head = words.join(" ");
    let head =
        head.split_once('@').map_or(head.clone(), |(name, rest)| format!("{name}:{}", rest.split_once(':').map_or("", |rest| rest.1)));
    let rest = rest.replace(" nodad", "").replace(" tentative", "");
    let mut addresses: Vec<_> = rest.lines().filter(|line| !line.contains("valid_lft")).collect();
    addresses.sort_unstable();
    format!("{head}\n{}", addresses.join("\n"))
}

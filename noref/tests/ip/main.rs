//! `noref ip` against a router that runs, between two hosts.

#[path = "../run/echo.rs"]
mod echo;
#[path = "../run/lab.rs"]
#[allow(dead_code, reason = "of the tests of `noref run`")]
mod lab;

use std::io::{BufRead, BufReader, Write};
use std::net::IpAddr;
use std::os::unix::net::UnixStream;
use std::path::Path;
use std::process::{Command, Stdio};
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};
use std::time::{Duration, Instant};

use echo::ping;
use lab::{Lab, Router, between_hosts};

/// What came of `noref ip`: its exit status, what it printed and what it said.
fn noref_ip(socket: &Path, words: &[&str], input: &str) -> (i32, String, String) {
    let mut command = Command::new(env!("CARGO_BIN_EXE_noref"));
    command.arg("ip").arg("--socket").arg(socket).args(words);
    let mut child = command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    // One that does not read it has its reasons.
    let _ = child.stdin.take().unwrap().write_all(input.as_bytes());
    let output = child.wait_with_output().unwrap();
    let text = |bytes| String::from_utf8(bytes).unwrap();
    (output.status.code().unwrap_or(-1), text(output.stdout), text(output.stderr))
}

/// As [`noref_ip`] of `noref route get`.
fn noref_route_get(socket: &Path, words: &[&str]) -> (i32, String, String) {
    let output = Command::new(env!("CARGO_BIN_EXE_noref")).args(["route", "get", "--socket"]).arg(socket).args(words).output().unwrap();
    let text = |bytes| String::from_utf8(bytes).unwrap();
    (output.status.code().unwrap_or(-1), text(output.stdout), text(output.stderr))
}

fn started() -> Option<(Lab, Router)> {
    let lab = Lab::new()?;
    let router = Router::start(&lab, &between_hosts(""), &["--driver", "af-packet", "--json"])?;
    Some((lab, router))
}

#[test]
fn no_router_is_no_answer() {
    let (status, _, said) = noref_ip(Path::new("/nonexistent/noref.sock"), &["route"], "");
    assert_eq!(status, 3);
    assert!(said.starts_with("noref: no router runs at /nonexistent/noref.sock"), "{said}");
}

#[test]
fn a_running_router_is_asked_and_changed_as_ip_does_it() {
    let Some((lab, router)) = started() else { return };
    let socket = router.socket();
    let ip = |line: &str| noref_ip(&socket, &line.split(' ').collect::<Vec<_>>(), "");
    let done = (0, String::new(), String::new());

    let connected = "10.1.0.0/24 dev e0 proto kernel scope link src 10.1.0.1 \n10.2.0.0/24 dev e1 proto kernel scope link src 10.2.0.1 \n";
    assert_eq!(ip("route"), (0, connected.to_owned(), String::new()));
    assert_eq!(ip("route add 10.9.9.0/24 via 10.2.0.2 metric 5"), done);
    assert_eq!(ip("-4 route show match 10.9.9.1").1, "10.9.9.0/24 via 10.2.0.2 dev e1 metric 5 \n");
    assert!(lab.left.inside(|| ping("10.2.0.2".parse().unwrap(), 1)));

    assert_eq!(ip("route get 10.9.9.1 uid 0").1, "10.9.9.1 via 10.2.0.2 dev e1 src 10.2.0.1 uid 0 \n    cache \n");
    let explained = noref_route_get(&socket, &["10.9.9.1", "--explain"]);
    assert!(
        explained.1.ends_with("rule 32766 (from all lookup main): the answer: 10.9.9.0/24 via 10.2.0.2 dev e1 metric 5\n"),
        "{explained:?}"
    );
    assert_eq!(noref_route_get(&socket, &["172.16.0.1"]), (2, String::new(), "RTNETLINK answers: Network is unreachable\n".to_owned()));

    // Counted at the SID.
    assert!((1..4).all(|number| lab.left.inside(|| ping("10.9.0.9".parse().unwrap(), number))));
    let sid = "fc00::d4  encap seg6local action End.DX4 nh4 10.2.0.2 packets 3 bytes ";
    let shown = ip("-s -6 route show fc00::d4").1;
    assert!(shown.starts_with(sid), "{shown}");
    // Another, under the number of one that went, begins at zero.
    assert_eq!(ip("-6 route replace fc00::d4 encap seg6local action End.DX4 nh4 10.2.0.2 count dev e1"), done);
    assert_eq!(ip("-6 route replace fc00::d4 encap seg6local action End.DX4 nh4 10.2.0.2 count dev e1"), done);
    let shown = ip("-s -6 route show fc00::d4").1;
    assert!(shown.contains(" packets 0 bytes 0 errors 0 "), "{shown}");

    // Refused by the router, and not understood.
    let (status, _, said) = ip("route add 10.8.0.0/16 via 172.16.0.1");
    assert_eq!(status, 2, "{said}");
    assert!(
        said.starts_with("noref: ip:1:27: the gateway 172.16.0.1 is not on a directly connected network")
            && said.contains("\n  route add 10.8.0.0/16 via 172.16.0.1\n                            ^^^^^^^^^^\n"),
        "{said}"
    );
    let (status, _, said) = ip("route ad3 10.8.0.0/16 dev e0");
    assert_eq!((status, said.contains("unknown command \"ad3\"")), (1, true), "{said}");
    assert_eq!(ip("route show table 99").0, 2);
    assert_eq!(ip("-j route").0, 1);
    assert_eq!(ip("-6 route add fc00::9 encap seg6local action End nh4 10.2.0.2 dev e1").0, 0);
}

#[test]
fn a_flow_of_a_resilient_group_keeps_its_member_until_it_pauses() {
    let Some((lab, router)) = started() else { return };
    let socket = router.socket();
    let ip = |line: &str| noref_ip(&socket, &line.split(' ').collect::<Vec<_>>(), "");
    let done = (0, String::new(), String::new());
    // The neighbour is known from here on.
    assert!(lab.left.inside(|| ping("10.2.0.2".parse().unwrap(), 0)));
    for id in 1..4 {
        assert_eq!(ip(&format!("nexthop add id {id} via 10.2.0.2 dev e1")), done);
    }
    assert_eq!(ip("nexthop add id 10 group 1/2 type resilient buckets 4 idle_timer 2"), done);
    assert_eq!(ip("route add 10.2.0.2/32 nhid 10"), done);
    std::thread::sleep(Duration::from_millis(50));
    assert!(lab.left.inside(|| ping("10.2.0.2".parse().unwrap(), 1)));
    let idle = |bucket: &str| bucket.split(' ').nth(5).and_then(|time| time.parse::<f64>().ok()).unwrap();
    let members =
        || ip("nexthop bucket show id 10").1.lines().map(|bucket| bucket.split(' ').nth(7).unwrap().to_owned()).collect::<Vec<_>>();
    assert_eq!(members(), ["2", "2", "1", "1"]);
    let buckets = ip("nexthop bucket").1;
    let used = buckets.lines().min_by(|a, b| idle(a).total_cmp(&idle(b))).unwrap();
    assert!(buckets.lines().all(|bucket| idle(bucket) < 60.0), "the clocks agree: {buckets}");
    let keeps = used.split(' ').nth(7).unwrap();
    assert_eq!(ip(&format!("nexthop replace id 10 group {keeps}/3,255 type resilient")), done);
    let kept: Vec<_> = members().into_iter().filter(|member| member != "3").collect();
    assert_eq!(kept, [keeps]);
    let begin = Instant::now();
    while members().iter().any(|member| member != "3") {
        assert!(begin.elapsed() < Duration::from_secs(20), "{}", ip("nexthop bucket").1);
        std::thread::sleep(Duration::from_millis(50));
    }
    assert!(begin.elapsed() > Duration::from_secs(1));
    assert!(ip("nexthop show id 10").1.ends_with(" unbalanced_time 0 \n"));
    assert!(lab.left.inside(|| ping("10.2.0.2".parse().unwrap(), 2)));
}

#[test]
fn a_batch_is_done_whole_or_not_at_all() {
    let Some((_lab, router)) = started() else { return };
    let socket = router.socket();
    let count = || noref_ip(&socket, &["route", "show", "proto", "static"], "").1.lines().count();
    // More than one request carries.
    let mut many: String = (0..20_000_u32)
        .map(|n| format!("route add {}/32 via 10.2.0.2 proto static\n", std::net::Ipv4Addr::from(0x0b00_0000 + n)))
        .collect();
    let begin = Instant::now();
    let (status, _, said) = noref_ip(&socket, &["-batch", "-"], &format!("{many}route add 10.8.0.0/16 via 172.16.0.1\n"));
    assert_eq!((status, count()), (2, 0));
    assert!(said.starts_with("noref: -:20001:27: the gateway"), "{said}");
    assert_eq!(noref_ip(&socket, &["-batch", "-"], &many), (0, String::new(), String::new()));
    eprintln!("20,000 routes refused and taken: {:?}", begin.elapsed());
    assert_eq!(count(), 20_000);

    many.truncate(many.find('\n').unwrap() + 1);
    let forced = format!("{many}route add 10.7.0.0/16 via 10.2.0.2 proto static\n");
    let (status, _, said) = noref_ip(&socket, &["-force", "-batch", "-"], &forced);
    assert_eq!((status, count()), (2, 20_001), "{said}");
    assert!(said.contains("-:1:11: the route to 11.0.0.0/32 exists already"), "{said}");
}

/// A connection to the router that asks for one line after the other.
struct Lines(BufReader<UnixStream>);

impl Lines {
    fn connect(socket: &Path) -> Lines {
        Lines(BufReader::new(UnixStream::connect(socket).unwrap()))
    }

    fn ask(&mut self, line: &str) {
        self.0.get_mut().write_all(format!("{{\"v\":1,\"ip\":{{\"lines\":\"{line}\"}}}}\n").as_bytes()).unwrap();
        let mut reply = String::new();
        self.0.read_line(&mut reply).unwrap();
        assert_eq!(reply, "{\"v\":1,\"ip\":{}}\n", "{line}");
    }
}

#[test]
fn changes_under_traffic_lose_no_packet() {
    let Some((lab, router)) = started() else { return };
    let socket = router.socket();
    let targets: [IpAddr; 3] = ["10.2.0.2".parse().unwrap(), "10.9.0.9".parse().unwrap(), "fd02::2".parse().unwrap()];
    // The neighbours are known from here on.
    targets.iter().for_each(|to| assert!(lab.left.inside(|| ping(*to, 0)), "{to}"));
    let (done, sent) = (AtomicBool::new(false), AtomicU32::new(0));
    let begin = Instant::now();
    let lines = std::thread::scope(|scope| {
        let pings = targets.map(|to| {
            let (lab, done, sent) = (&lab, &done, &sent);
            scope.spawn(move || {
                lab.left.inside(|| {
                    for number in (1..60_000_u16).cycle().take_while(|_| !done.load(Ordering::Relaxed)) {
                        assert!(ping(to, number), "{to}: the answer to {number} is missing");
                        sent.fetch_add(1, Ordering::Relaxed);
                    }
                });
            })
        });
        let mut router = Lines::connect(&socket);
        let mut lines = 0_u32;
        while begin.elapsed() < Duration::from_secs(4) {
            for line in [
                "route replace 10.2.0.2/32 dev e1",
                "route replace 10.2.0.0/24 dev e1 src 10.2.0.1",
                "-6 route replace fc00::d4 encap seg6local action End.DX4 nh4 10.2.0.2 count dev e1",
                "route replace 10.9.0.0/16 encap seg6 mode encap segs fc00::d4 dev e1",
                "-6 route replace fd02::2 dev e1",
                "route del 10.2.0.2/32",
                "-6 route del fd02::2",
                "rule add from 10.77.0.0/16 lookup 77 pref 77",
                "rule del pref 77",
            ] {
                router.ask(line);
                lines += 1;
            }
        }
        done.store(true, Ordering::Relaxed);
        for ping in pings {
            ping.join().unwrap();
        }
        lines
    });
    let sent = sent.into_inner();
    eprintln!("{lines} lines, {sent} packets there and back, none lost");
    assert!(lines > 500 && sent > 100);
    let drops = Command::new(env!("CARGO_BIN_EXE_noref")).args(["show", "drops", "--json", "--socket"]).arg(&socket).output().unwrap();
    let drops = String::from_utf8(drops.stdout).unwrap();
    assert!(!drops.contains("no_route") && !drops.contains("sid"), "{drops}");
}

#[test]
fn a_router_that_follows_the_kernel_shows_what_ip_shows_and_is_changed_by_it() {
    let Some(lab) = Lab::new() else { return };
    lab.router.ip("link set lo up").unwrap();
    lab.router.ip("addr add 10.1.0.1/24 dev e0").unwrap();
    lab.router.ip("addr add 10.2.0.1/24 dev e1").unwrap();
    lab.router.ip("route add 10.9.0.0/16 nexthop via 10.2.0.2 weight 3 nexthop via 10.1.0.2").unwrap();
    lab.router.ip("rule add from 10.0.0.0/8 lookup 7").unwrap();
    lab.router.ip("neigh add 10.2.0.9 lladdr 02:00:00:00:0f:09 dev e1").unwrap();
    let Some(router) = Router::mirror(&lab, &[]) else { return };
    let socket = router.socket();
    let noref = |line: &str| noref_ip(&socket, &line.split(' ').collect::<Vec<_>>(), "");
    let kernel = |line: &str| {
        let output = lab.router.inside(|| Command::new("ip").args(line.split(' ')).output().unwrap());
        String::from_utf8(output.stdout).unwrap()
    };
    let same = |line: &str| {
        let begin = Instant::now();
        let text =
            |text: String| text.lines().map(|line| line.trim_end().to_owned()).filter(|line| !line.contains("noref")).collect::<Vec<_>>();
        while text(noref(line).1) != text(kernel(line)) {
            assert!(begin.elapsed() < Duration::from_secs(10), "{line}\n{}\n{}", noref(line).1, kernel(line));
            std::thread::sleep(Duration::from_millis(20));
        }
    };
    for line in ["-4 route show table all", "route", "rule", "neigh show nud permanent", "route show dev e1"] {
        same(line);
    }
    lab.router.ip("route replace 10.9.0.0/16 via 10.2.0.2 onlink dev e1 metric 9").unwrap();
    same("route");
    let (status, _, said) = noref("route add 10.8.0.0/16 via 10.2.0.2");
    assert_eq!((status, said.as_str()), (2, "noref: the kernel keeps the tables of this router: use ip\n"));
}

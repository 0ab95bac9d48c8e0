//! `noref run --mirror`: beside a kernel that is configured as operators do.

use std::fs;
use std::net::IpAddr;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use serde_json::Value;
use testkit::namespace::Namespace;
use testkit::replay::Scratch;

use crate::echo::ping;
use crate::lab::{Lab, Router};
use crate::transfer;

/// What the kernel is between the hosts.
pub const KERNEL: &str = "\
addr add 10.1.0.1/24 dev e0
addr add 10.2.0.1/24 dev e1
addr add 10.3.0.1/24 dev e2
-6 addr add fd01::1/64 dev e0 nodad
-6 addr add fd02::1/64 dev e1 nodad
-6 addr add fd03::1/64 dev e2 nodad
-6 route add fc00::d4 encap seg6local action End.DX4 nh4 10.2.0.2 count dev e1
-6 route add fc00::e encap seg6local action End count dev e1
-6 route add fc01::/32 via fd02::2 dev e1
";

/// How long settings may take to be read again.
const PATIENCE: Duration = Duration::from_secs(30);

fn answers(host: &Namespace, to: &str, requests: u16) -> u16 {
    let to: IpAddr = to.parse().unwrap();
    host.inside(|| (0..requests).filter(|&number| ping(to, number)).count() as u16)
}

/// Waits until an address answers: what is on its way while a port is opened may be lost.
fn wait_for_an_answer(host: &Namespace, to: &str) {
    assert!((0..5).any(|_| answers(host, to, 1) == 1), "{to} does not answer");
}

/// True when a route to what begins so leads there.
fn leads(routes: &str, to: &str, over: &str) -> bool {
    routes.lines().any(|line| line.contains(to) && line.contains(over))
}

fn number(report: &Value, at: &str) -> u64 {
    report.pointer(at).and_then(Value::as_u64).unwrap_or_else(|| panic!("{at} in {report}"))
}

#[test]
fn beside_the_kernel_packets_pass_by_noref_and_the_host_answers_for_itself() {
    let Some(lab) = Lab::with_kernel(KERNEL) else { return };
    let Some(router) = Router::mirror(&lab, &["--json"]) else { return };
    for to in ["10.1.0.1", "10.2.0.1", "fd01::1", "fd02::1", "10.2.0.2", "fd02::2", "10.9.0.9", "fd09::9"] {
        assert_eq!(answers(&lab.left, to, 5), 5, "echo requests to {to} that were answered");
    }
    for to in ["10.2.0.2", "fd02::2", "10.9.0.9"] {
        transfer(&lab, to.parse().unwrap());
    }
    let (report, _) = router.report();
    let segments = 3 * crate::TRANSFER as u64 / 1500;
    assert!(number(&report, "/ports/0/received/packets") > segments && number(&report, "/ports/1/sent/packets") > segments, "{report}");
    assert_eq!(
        (number(&report, "/kernel"), number(&report, "/ports/0/delivered")),
        (0, 0),
        "packets for the host stay in the kernel: {report}"
    );
    assert!(number(&report, "/sids/0/packets") >= 5 && number(&report, "/sids/1/packets") >= 5, "{report}");
}

#[test]
fn what_leads_to_an_interface_that_is_no_port_goes_up_to_the_kernel() {
    let Some(lab) = Lab::with_kernel(KERNEL) else { return };
    let Some(router) = Router::mirror(&lab, &["--json"]) else { return };
    assert_eq!((answers(&lab.left, "10.3.0.2", 5), answers(&lab.left, "fd03::2", 5)), (5, 5));
    let (report, _) = router.report();
    assert_eq!(number(&report, "/kernel"), 10, "{report}");
    assert_eq!(report.pointer("/drops").and_then(Value::as_array).map(Vec::len), Some(0), "{report}");
}

#[test]
fn a_sid_whose_nexthop_is_behind_another_interface_is_the_kernels_until_it_is_not() {
    let sid = "-6 route add fc00::d4 encap seg6local action End.DX4 nh4 10.8.0.2 dev e1\nroute add 10.8.0.2 via 10.3.0.2\n";
    let Some(lab) = Lab::with_kernel(&format!("{}{sid}", KERNEL.replace("fc00::d4", "fc00::d5"))) else { return };
    lab.side.ip("addr add 10.9.0.9/32 dev lo").unwrap();
    let Some(router) = Router::mirror(&lab, &["--json"]) else { return };
    // Linux sends by the route to the inner destination, but for the nexthop it would be forwarded by noref.
    lab.router.ip("route add 10.9.0.9 via 10.3.0.2").unwrap();
    router.wait_until("unsupported", |left| left.contains("fc00::d4"));
    router.wait_until("routes", |routes| leads(routes, "10.9.0.9", "10.3.0.2"));
    assert_eq!(answers(&lab.left, "10.9.0.9", 3), 3, "decapsulated by the kernel");
    lab.router.ip("route replace 10.8.0.2 via 10.2.0.2").unwrap();
    lab.router.ip("route replace 10.9.0.9 via 10.2.0.2").unwrap();
    router.wait_until("unsupported", |left| !left.contains("fc00::d4"));
    router.wait_until("routes", |routes| leads(routes, "10.9.0.9", "10.2.0.2") && leads(routes, "10.8.0.2", "10.2.0.2"));
    assert_eq!(answers(&lab.left, "10.9.0.9", 3), 3, "decapsulated by noref");
    let (report, _) = router.report();
    assert_eq!(number(&report, "/kernel"), 3, "{report}");
    let sids = report.pointer("/sids").and_then(Value::as_array).unwrap();
    let packets = sids.iter().find(|sid| sid["sid"] == "fc00::d4/128").and_then(|sid| sid["packets"].as_u64());
    assert_eq!(packets, Some(3), "{report}");
}

#[test]
fn a_packet_waits_until_the_kernel_has_found_its_neighbour() {
    let Some(lab) = Lab::with_kernel(KERNEL) else { return };
    let Some(router) = Router::mirror(&lab, &["--json"]) else { return };
    lab.router.ip("neigh flush dev e1").unwrap();
    lab.router.ip("-6 neigh flush dev e1").unwrap();
    assert_eq!((answers(&lab.left, "10.2.0.2", 1), answers(&lab.left, "fd02::2", 1)), (1, 1));
    // Nobody is there: the kernel asks in vain, and the source is told.
    assert_eq!(answers(&lab.left, "10.2.0.77", 1), 0);
    let (report, _) = router.report();
    let failed =
        report.pointer("/drops").and_then(Value::as_array).and_then(|drops| drops.iter().find(|drop| drop["reason"] == "neighbour_failed"));
    assert_eq!(failed.and_then(|drop| drop["packets"].as_u64()), Some(1), "{report}");
}

#[test]
fn the_kernel_goes_on_when_noref_is_killed_and_noref_takes_over_again() {
    let Some(lab) = Lab::with_kernel(KERNEL) else { return };
    let Some(router) = Router::mirror(&lab, &[]) else { return };
    assert_eq!(answers(&lab.left, "10.2.0.2", 3), 3);
    router.signal("KILL");
    router.wait();
    assert_eq!((answers(&lab.left, "10.2.0.2", 3), answers(&lab.left, "fd09::9", 3)), (3, 3), "by the kernel alone");
    let Some(router) = Router::mirror(&lab, &["--json"]) else { return };
    assert_eq!(answers(&lab.left, "10.2.0.2", 3), 3);
    assert!(number(&router.report().0, "/ports/0/received/packets") >= 3);
}

#[test]
fn an_interface_that_goes_and_comes_back_is_a_port_again() {
    let Some(lab) = Lab::with_kernel(KERNEL) else { return };
    let Some(mut router) = Router::mirror(&lab, &["--json"]) else { return };
    assert_eq!(answers(&lab.left, "10.2.0.2", 3), 3);

    lab.router.ip("link set e1 down").unwrap();
    lab.router.ip("link set e1 name was1").unwrap();
    lab.router.ip("link set was1 up").unwrap();
    router.wait_until_it_says(&["e1 is called was1 now"]);
    router.wait_until("routes", |routes| leads(routes, "10.2.0.0/24", "dev was1"));
    assert_eq!(answers(&lab.left, "10.2.0.2", 3), 3, "down, up, and by another name");

    lab.router.ip("link del was1").unwrap();
    router.wait_until_it_says(&["its interface is gone"]);
    lab.connect_right().unwrap();
    lab.configure_kernel("addr add 10.2.0.1/24 dev e1\n-6 addr add fd02::1/64 dev e1 nodad\n-6 route add fc01::/32 via fd02::2 dev e1\n")
        .unwrap();
    router.wait_until_it_says(&["e1: it is a port again"]);
    router.wait_until("routes", |routes| leads(routes, "10.2.0.0/24", "dev e1") && leads(routes, "fd02::/64", "dev e1"));
    router.wait_until("ports", |ports| ports.lines().any(|line| line.starts_with("e1 ") && line.contains(" AF_XDP ")));
    wait_for_an_answer(&lab.left, "10.2.0.2");
    assert_eq!((answers(&lab.left, "10.2.0.2", 3), answers(&lab.left, "fd02::2", 3)), (3, 3));
    let (report, _) = router.report();
    assert!(number(&report, "/ports/1/sent/packets") >= 12, "all of its time counts: {report}");
}

#[test]
fn packets_of_a_vrf_go_up_in_their_vrf() {
    let vrf = "link add blue type vrf table 100\nlink set blue up\nlink set e0 master blue\nlink set e2 master blue\n";
    let addresses = "addr add 10.1.0.1/24 dev e0\naddr add 10.3.0.1/24 dev e2\n-6 addr add fd01::1/64 dev e0 nodad\n-6 addr add fd03::1/64 dev e2 nodad\n";
    let Some(lab) = Lab::with_kernel(&format!("{vrf}{addresses}")) else { return };
    let Some(router) = Router::mirror(&lab, &["--json"]) else { return };
    assert_eq!((answers(&lab.left, "10.3.0.2", 3), answers(&lab.left, "fd03::2", 3)), (3, 3));
    assert_eq!((answers(&lab.left, "10.1.0.1", 3), answers(&lab.left, "fd01::1", 3)), (3, 3));
    assert_eq!(number(&router.report().0, "/kernel"), 6);
}

#[test]
fn settings_are_read_again_on_sighup() {
    let Some(lab) = Lab::with_kernel(KERNEL) else { return };
    let directory = Scratch::new();
    let file = directory.path().join("noref.toml");
    let settings = |rest: &str| format!("mode = \"mirror\"\n{rest}\n[control]\nsocket = \"noref.sock\"\n[port.e0]\n");
    fs::write(&file, settings("")).unwrap();
    let Some(mut router) = Router::with_settings(&lab, directory.path()) else { return };
    let mut again = |text: String, says: &[&str]| {
        fs::write(&file, text).unwrap();
        router.signal("HUP");
        router.wait_until_it_says(says);
    };
    // A device that is busy yet is opened a while after the rest is done.
    let opened = ["reload: done", "e1: it is a port again"];
    again(settings("workers = 2") + "[port.e1]\n", &opened);
    wait_for_an_answer(&lab.left, "10.2.0.2");
    assert_eq!(answers(&lab.left, "10.2.0.2", 3), 3);
    again(settings("workers = ") + "[port.e1]\n", &["everything stays as it is"]);
    let (running, begin) = (AtomicBool::new(true), Instant::now());
    let lost = thread::scope(|scope| {
        let asking = scope.spawn(|| {
            let asked = std::iter::repeat(()).take_while(|()| running.load(Ordering::Relaxed) && begin.elapsed() < PATIENCE);
            asked.filter(|()| answers(&lab.left, "10.2.0.2", 1) == 0).count()
        });
        again(settings("") + "[port.e1]\ncopies = \"copy\"\n", &opened);
        running.store(false, Ordering::Relaxed);
        asking.join().unwrap()
    });
    assert_eq!(lost, 0, "the kernel forwards while a port is opened again");
    wait_for_an_answer(&lab.left, "10.2.0.2");
    assert_eq!(answers(&lab.left, "10.2.0.2", 3), 3);
    again(settings(""), &["reload: done"]);
    wait_for_an_answer(&lab.left, "10.2.0.2");
    assert_eq!(answers(&lab.left, "10.2.0.2", 3), 3);
    let (_, said) = router.report();
    let mut rest = said.as_str();
    for word in [
        "workers changed, which takes a restart",
        "e1: it is a port again",
        "noref.toml:2:",
        "e1: its settings changed",
        "e1: it is in the settings no longer",
    ] {
        let at = rest.find(word).unwrap_or_else(|| panic!("{word} in {said}"));
        rest = &rest[at..];
    }
}

#[test]
fn beside_the_kernel_a_packet_port_is_refused() {
    let Some(lab) = Lab::with_kernel(KERNEL) else { return };
    let output = Router::run_mirror(&lab, &["--driver", "af-packet"]);
    assert_eq!(output.status.code(), Some(2));
    let said = String::from_utf8_lossy(&output.stderr);
    assert!(said.contains("each would leave twice"), "{said}");
}

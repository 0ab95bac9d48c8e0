//! `noref run` between the stacks of two hosts: the kernel's, in namespaces of their own, so that nothing of it stays behind.

mod echo;
#[allow(dead_code, reason = "other tests use more of it")]
mod lab;
mod mirror;
mod programs;

use std::io::{Read, Write};
use std::net::{IpAddr, Shutdown, TcpListener, TcpStream};
use std::process::Command;
use std::time::{Duration, Instant};

use serde_json::Value;

use echo::ping;
use lab::{Lab, Router, between_hosts};

/// What noref is between the hosts, with a SID to pass through.
fn network() -> String {
    between_hosts("ip -6 route add fc00::e encap seg6local action End count dev e1\nip -6 route add fc01::/32 via fd02::2 dev e1\n")
}

/// Beyond what fits into buffers on the way, not a multiple of anything.
pub const TRANSFER: usize = 10_000_019;

#[test]
fn hosts_on_both_sides_reach_each_other_with_af_packet() {
    hosts_reach_each_other("af-packet", 1);
}

#[test]
fn hosts_on_both_sides_reach_each_other_with_af_xdp() {
    hosts_reach_each_other("af-xdp", 1);
}

#[test]
fn two_workers_send_for_each_others_ports() {
    hosts_reach_each_other("af-xdp", 2);
}

#[test]
fn two_workers_share_a_packet_ports_frames() {
    hosts_reach_each_other("af-packet", 2);
}

fn hosts_reach_each_other(driver: &str, workers: usize) {
    let Some(lab) = Lab::new() else { return };
    let arguments = ["--driver", driver, "--json", "--workers", &workers.to_string()];
    let Some(router) = Router::start(&lab, &network(), &arguments) else { return };

    for (what, to) in [
        ("the router", "10.1.0.1"),
        ("the router, IPv6", "fd01::1"),
        ("the router's other side", "10.2.0.1"),
        ("the other host", "10.2.0.2"),
        ("the other host, IPv6", "fd02::2"),
        ("the other host, by H.Encaps and End.DX4", "10.9.0.9"),
        ("the other host, IPv6, by H.Encaps, End and End.DT6", "fd09::9"),
    ] {
        let to: IpAddr = to.parse().unwrap();
        let answered = lab.left.inside(|| (0..5).filter(|&number| ping(to, number)).count());
        assert_eq!(answered, 5, "{driver}: echo requests to {what} ({to}) that were answered");
    }
    for to in ["10.2.0.2", "fd02::2", "10.9.0.9"] {
        let took = transfer(&lab, to.parse().unwrap());
        println!("{driver}: {TRANSFER} bytes by TCP to {to} in {took:?}");
    }

    let (report, _) = router.report();
    println!("{driver}: {report}");
    let number = |at: &str| report.pointer(at).and_then(Value::as_u64).unwrap_or_else(|| panic!("{at} in {report}"));
    let segments = 3 * TRANSFER as u64 / 1500;
    assert!(number("/ports/0/received/packets") > segments && number("/ports/1/sent/packets") > segments);
    assert!(number("/ports/0/delivered") >= 15, "echo requests, and ARP and neighbour discovery");
    assert!(number("/sids/0/packets") >= 5 && number("/sids/1/packets") >= 5);
    assert_eq!((number("/sids/0/errors"), number("/sids/1/errors")), (0, 0));
}

/// Sends bytes from the left host to the right one, looks whether they are the same there, and says how long it took.
pub fn transfer(lab: &Lab, to: IpAddr) -> Duration {
    let bytes: Vec<u8> = (0..TRANSFER).map(|n| (n % 251) as u8).collect();
    let listener = lab.right.inside(|| TcpListener::bind((to, 0)).unwrap());
    let address = listener.local_addr().unwrap();
    let begin = Instant::now();
    let received = std::thread::scope(|scope| {
        let receiver = scope.spawn(|| {
            let mut received = Vec::new();
            let (mut stream, _) = listener.accept().unwrap();
            stream.set_read_timeout(Some(Duration::from_secs(10))).unwrap();
            stream.read_to_end(&mut received).unwrap();
            received
        });
        lab.left.inside(|| {
            let mut stream = TcpStream::connect_timeout(&address, Duration::from_secs(10)).unwrap();
            stream.set_write_timeout(Some(Duration::from_secs(10))).unwrap();
            stream.write_all(&bytes).unwrap();
            stream.shutdown(Shutdown::Write).unwrap();
        });
        receiver.join().unwrap()
    });
    assert!(received == bytes, "{} of {} bytes came to {to}, or others", received.len(), bytes.len());
    begin.elapsed()
}

#[test]
fn the_time_ends_it_with_a_report() {
    let Some(lab) = Lab::new() else { return };
    let Some(router) = Router::start(&lab, &network(), &["--seconds", "1"]) else { return };
    let output = router.wait();
    assert_eq!(output.status.code(), Some(0), "{output:?}");
    assert!(String::from_utf8_lossy(&output.stdout).contains("port  received"), "{output:?}");
}

#[test]
fn a_worker_that_never_sleeps_forwards_and_ends() {
    let Some(lab) = Lab::new() else { return };
    let Some(router) = Router::start(&lab, &network(), &["--busy-poll"]) else { return };
    assert!(lab.left.inside(|| ping("10.2.0.2".parse().unwrap(), 1)));
    assert_eq!(router.stop().status.code(), Some(0));
}

#[test]
fn an_interface_that_a_driver_does_not_go_with_is_refused() {
    let Some(lab) = Lab::new() else { return };
    let Some(_first) = Router::start(&lab, &network(), &["--driver", "af-xdp"]) else { return };
    let output = Router::command(&lab, &network(), &["--driver", "af-xdp", "--seconds", "1"]);
    let message = String::from_utf8_lossy(&output.stderr).into_owned();
    assert_eq!(output.status.code(), Some(2), "{message}");
    assert!(message.contains("e0") && message.contains("another XDP program is there already"), "{message}");
}

#[test]
fn an_interface_that_is_not_there_is_named() {
    let output = Command::new(env!("CARGO_BIN_EXE_noref")).args(["run", "--port", "noref-none", "--net", "none.ip"]).output().unwrap();
    assert_eq!(output.status.code(), Some(2));
    let message = String::from_utf8_lossy(&output.stderr).into_owned();
    assert!(message.starts_with("noref: device noref-none: No such device"), "{message}");
    assert!(output.stdout.is_empty());
}

#[test]
fn the_kernel_at_the_other_end_of_a_tap_port_is_reached() {
    let Some(lab) = Lab::new() else { return };
    let lines = "ip link set t0 up\nip addr add 10.4.0.1/24 dev t0\nip -6 addr add fd04::1/64 dev t0 nodad\n";
    let arguments = ["--port", "t0=tap", "--workers", "2", "--driver", "af-xdp", "--json"];
    let Some(router) = Router::start(&lab, &(network() + lines), &arguments) else { return };
    for words in ["link set t0 up", "addr add 10.4.0.2/24 dev t0", "route add default via 10.4.0.1"] {
        lab.router.ip(words).unwrap();
    }
    for to in ["10.4.0.1", "10.4.0.2"] {
        let to: IpAddr = to.parse().unwrap();
        let answered = lab.left.inside(|| (0..5).filter(|&number| ping(to, number)).count());
        assert_eq!(answered, 5, "echo requests to {to} that were answered");
    }
    assert!(lab.router.inside(|| ping("10.2.0.2".parse().unwrap(), 9)), "from the kernel through noref");
    assert!(router.show("ports").lines().any(|line| line.starts_with("t0 ") && line.contains(" TAP ")), "{}", router.show("ports"));
    let (report, _) = router.report();
    assert!(report.pointer("/ports/2/sent/packets").and_then(Value::as_u64) >= Some(5), "{report}");
    assert!(lab.router.ip("link show t0").is_err(), "it is gone with noref");
}

#[test]
fn beside_the_kernel_a_tap_port_is_refused() {
    let Some(lab) = Lab::with_kernel(mirror::KERNEL) else { return };
    let output = Router::run_mirror(&lab, &["--port", "t0=tap"]);
    assert_eq!(output.status.code(), Some(2), "{output:?}");
    assert!(String::from_utf8_lossy(&output.stderr).contains("t0 is a TAP port"), "{output:?}");
}

//! A running router as its operator sees it: `noref show`, `noref trace`, metrics and the socket itself, with packets between two hosts.

#[path = "../run/echo.rs"]
mod echo;
#[allow(dead_code, reason = "shared with the tests of noref run")]
#[path = "../run/lab.rs"]
mod lab;
mod mirror;
mod program;
mod trace;

use std::fs;
use std::io::{Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::os::unix::fs::PermissionsExt;
use std::os::unix::net::UnixStream;
use std::process::Command;
use std::thread;
use std::time::{Duration, Instant};

use serde_json::Value;
use testkit::replay::Scratch;

use echo::ping;
use lab::{Lab, Router, between_hosts};
use program::{PATIENCE, asked, client, ended, noref, printed};

/// Routes between both hosts, a SID, and a destination that goes nowhere.
fn network() -> String {
    between_hosts("ip route add blackhole 10.66.0.0/16\n")
}

/// The lab with a router that runs; none where it cannot be made.
fn start() -> Option<(Lab, Router)> {
    let lab = Lab::new()?;
    let router = Router::start(&lab, &network(), &[])?;
    Some((lab, router))
}

#[test]
fn what_a_router_has_and_counted_is_shown() {
    let Some((lab, router)) = start() else { return };
    let socket = router.socket();
    for to in ["10.2.0.2", "10.2.0.2", "10.9.0.9"] {
        assert!(lab.left.inside(|| ping(to.parse().unwrap(), 1)), "{to}");
    }
    assert!(!lab.left.inside(|| ping("10.66.0.1".parse().unwrap(), 1)));

    let ports = asked(&socket, "ports");
    assert_eq!((&ports["v"], &ports["ports"][0]["port"], &ports["ports"][1]["port"]), (&1.into(), &"e0".into(), &"e1".into()));
    assert!(ports["ports"][0]["received"]["packets"].as_u64() >= Some(4), "{ports}");
    assert_eq!(ports["ports"][0]["addresses"][0], "10.1.0.1/24");
    let sids = asked(&socket, "sids");
    assert_eq!((&sids["sids"][0]["sid"], &sids["sids"][0]["packets"]), (&"fc00::d4/128".into(), &1.into()), "{sids}");
    let drops = asked(&socket, "drops");
    assert!(drops["drops"].as_array().unwrap().iter().any(|row| row["reason"] == "route_blackhole" && row["packets"] == 1), "{drops}");
    assert_eq!(asked(&socket, "mirror")["mirror"], Value::Null);
    let worker = &asked(&socket, "workers")["workers"][0];
    let (busy, each) = (worker["busy"].as_f64().unwrap(), worker["packet_ns"].as_f64().unwrap());
    assert!((f64::MIN_POSITIVE..1.0).contains(&busy) && (10.0..1e9).contains(&each), "{worker}");

    for (what, line) in [
        ("ports", "port  state  driver"),
        ("workers", "worker  core"),
        ("routes", "main   blackhole  10.66.0.0/16"),
        ("rules", "inet6   32766  all   all  all        lookup main"),
        ("neighbours", "10.2.0.2 "),
        ("sids", "fc00::d4/128  main "),
        ("drops", "route_blackhole "),
        ("counters", "-     forwarded"),
        ("unsupported", "none"),
        ("mirror", "the router mirrors nobody"),
    ] {
        let text = printed(&socket, &["show", what]);
        assert!(text.lines().any(|known| known.starts_with(line)), "{what}: {line:?} in\n{text}");
    }
    assert_eq!(router.stop().status.code(), Some(0));
    assert!(!socket.exists(), "the socket goes with its router");
}

#[test]
fn a_table_is_shown_again_each_second() {
    let Some((_lab, router)) = start() else { return };
    let begin = Instant::now();
    let mut watch = client(&router.socket(), &["show", "rules", "--watch", "--json"]);
    let mut stdout = watch.stdout.take().unwrap();
    let (mut text, mut bytes) = (String::new(), [0; 4096]);
    while text.matches('\n').count() < 3 {
        assert!(begin.elapsed() < PATIENCE, "{text}");
        let len = stdout.read(&mut bytes).unwrap();
        text.push_str(&String::from_utf8_lossy(&bytes[..len]));
    }
    assert!(begin.elapsed() >= Duration::from_millis(1900));
    // It ends with the router, and says so.
    drop(router);
    assert_eq!(ended(watch).status.code(), Some(3));
}

#[test]
fn metrics_are_served_in_the_router_s_namespace() {
    let Some(lab) = Lab::new() else { return };
    lab.router.ip("link set lo up").unwrap();
    let Some(router) = Router::start(&lab, &network(), &["--metrics", "127.0.0.1:9101"]) else { return };
    assert!(lab.left.inside(|| ping("10.2.0.2".parse().unwrap(), 1)));
    let text = lab.router.inside(|| {
        let mut stream = TcpStream::connect(SocketAddr::from(([127, 0, 0, 1], 9101))).unwrap();
        stream.set_read_timeout(Some(PATIENCE)).unwrap();
        stream.write_all(b"GET /metrics HTTP/1.1\r\nHost: localhost\r\n\r\n").unwrap();
        let mut text = String::new();
        stream.read_to_string(&mut text).unwrap();
        text
    });
    let value = |name: &str| text.lines().find_map(|line| line.strip_prefix(name)?.trim().parse::<f64>().ok());
    assert!(value("noref_port_received_packets_total{port=\"e0\"}") >= Some(1.0), "{text}");
    assert!(value("noref_forwarded_packets_total") >= Some(2.0), "{text}");
    assert!(value("noref_worker_rounds_total{worker=\"0\"}") >= Some(1.0), "{text}");
    assert_eq!(router.stop().status.code(), Some(0));
}

#[test]
fn the_socket_is_its_owner_s_and_one_router_s() {
    let Some((lab, router)) = start() else { return };
    let socket = router.socket();
    assert_eq!(fs::metadata(&socket).unwrap().permissions().mode() & 0o777, 0o600);
    // The killed router takes its scratch directory with it.
    let scratch = Scratch::new();
    let (net, place) = (scratch.path().join("network.ip"), scratch.path().join("noref.sock"));
    fs::write(&net, network()).unwrap();
    let run = |socket| {
        let mut command = Command::new(env!("CARGO_BIN_EXE_noref"));
        command.args(["run", "--seconds", "1", "--port", "e0", "e1", "--net"]).arg(&net).arg("--socket").arg(socket);
        lab.router.inside(|| command.output().unwrap())
    };
    let refused = run(&socket);
    assert_eq!(refused.status.code(), Some(2), "{refused:?}");
    assert!(String::from_utf8_lossy(&refused.stderr).contains("listens at"), "{refused:?}");

    // Killed, it leaves its socket, which says nothing any more and is in nobody's way.
    router.signal("KILL");
    let begin = Instant::now();
    while UnixStream::connect(&socket).is_ok() && begin.elapsed() < PATIENCE {
        thread::sleep(Duration::from_millis(5));
    }
    fs::rename(&socket, &place).unwrap();
    let absent = noref(&place, &["show", "ports"]);
    assert_eq!(absent.status.code(), Some(3), "{absent:?}");
    drop(router);
    let next = run(&place);
    assert_eq!(next.status.code(), Some(0), "{next:?}");
    assert!(!place.exists());
}

#[test]
fn where_no_router_runs_that_is_said() {
    let scratch = Scratch::new();
    let socket = scratch.path().join("noref.sock");
    for arguments in [&["show", "ports"][..], &["trace"]] {
        let output = noref(&socket, arguments);
        assert_eq!(output.status.code(), Some(3), "{output:?}");
        let message = String::from_utf8_lossy(&output.stderr).into_owned();
        assert!(message.starts_with("noref: no router runs at ") && message.contains("noref run"), "{message}");
        assert!(output.stdout.is_empty());
    }
    let wrong = noref(&socket, &["trace", "from", "nowhere"]);
    assert_eq!(wrong.status.code(), Some(2), "{wrong:?}");
}

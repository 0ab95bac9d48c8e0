//! A namespace with the ports of the golden cases, and the cases compared there.

use std::fs;
use std::io::Write as _;
use std::process::{Command, Stdio};
use std::sync::Mutex;
use std::time::Duration;

use control::mirror::{Follower, Mirror};
use testkit::golden::Case;
use testkit::namespace::Namespace;

pub const PORTS: [&str; 4] = ["e0", "e1", "e2", "e3"];

/// Settings so that devices have the addresses that they are given and no others, and noref's defaults where kernels have others.
const QUIET: &str = "sysctl -qw net.ipv6.conf.default.addr_gen_mode=1 net.ipv6.conf.default.router_solicitations=0 \
                     net.ipv6.conf.default.accept_dad=0 net.ipv6.conf.default.dad_transmits=0 net.ipv4.icmp_msgs_burst=10000 net.ipv4.icmp_msgs_per_sec=10000 \
                     net.ipv4.conf.default.accept_source_route=0 net.ipv4.conf.lo.accept_source_route=0";

/// Runs a test in a thread with a network namespace of its own; without the right to make one it says so and does nothing.
pub fn in_namespace(test: impl FnOnce() + Send) {
    match Namespace::new() {
        Err(error) => eprintln!("skipped: {error} (this needs root)"),
        Ok(_) if Command::new("ip").arg("-V").stdout(Stdio::null()).status().is_err() => {
            eprintln!("skipped: there is no \"ip\" (install iproute2)");
        }
        Ok(namespace) => namespace.inside(test),
    }
}

/// Whether [`in_namespace`] runs anything.
pub fn able() -> bool {
    let mut able = false;
    in_namespace(|| able = true);
    able
}

/// Compares noref with the kernel for every golden case. `compare` is given the case's network file; it tells what differs, or none when noref or this
/// kernel refuses the file.
pub fn compare_golden_cases(compare: impl Fn(&str) -> Option<Vec<String>> + Sync) {
    // As in the golden tests: `GOLDEN=ecmp/policy` leaves the others out.
    let only = std::env::var("GOLDEN").unwrap_or_default();
    let cases: Vec<_> = Case::all(&testkit::root().join("tests/golden")).into_iter().filter(|case| case.name.starts_with(&only)).collect();
    let results = Mutex::new(Vec::new());
    std::thread::scope(|scope| {
        // Two at a time: much of it is waiting.
        for half in cases.chunks(cases.len().div_ceil(2)) {
            let (compare, results) = (&compare, &results);
            scope.spawn(move || {
                for case in half {
                    let text = fs::read_to_string(case.network()).expect("a network file");
                    let Some(differing) = compare_thrice(|| compare(&text)) else { continue };
                    results.lock().unwrap().push((&case.name, differing));
                }
            });
        }
    });
    let results = results.into_inner().unwrap();
    let compared = results.len();
    eprintln!("{compared} cases compared");
    assert!(!able() || compared > 20 || !only.is_empty(), "this kernel takes few of the cases");
    let wrong = results.iter().filter(|(_, differing)| !differing.is_empty());
    let wrong: Vec<_> = wrong.map(|(case, differing)| format!("{case}\n{}", differing.join("\n"))).collect();
    assert!(wrong.is_empty(), "{} of {compared} differ\n{}", wrong.len(), wrong.join("\n"));
}

/// What differs each time. The kernel does some things in the background, and what they come to depends on when: it sets routes up a little later than it
/// is told to, and leaves anycast addresses only of addresses that are not tentative any more.
pub fn compare_thrice(compare: impl Fn() -> Option<Vec<String>>) -> Option<Vec<String>> {
    let mut tries = (0..3).map(|_| compare());
    let first = tries.next()??;
    if first.is_empty() { Some(first) } else { tries.flatten().find(Vec::is_empty).or(Some(first)) }
}

/// Runs lines of shell; what was complained about otherwise.
pub fn try_shell(script: &str) -> Result<(), String> {
    let out = Command::new("sh").args(["-ec", script]).output().map_err(|error| error.to_string())?;
    if out.status.success() { Ok(()) } else { Err(String::from_utf8_lossy(&out.stderr).into_owned()) }
}

/// Runs lines of shell that must work.
pub fn shell(script: &str) {
    try_shell(script).unwrap_or_else(|error| panic!("{script}: {error}"));
}

/// Gives lines to `ip -batch`, which goes on after a refusal.
pub fn batch(lines: &str) {
    let _ = ip(&["-force", "-batch", "-"], lines);
}

fn ip(arguments: &[&str], lines: &str) -> Result<(), String> {
    let piped = |error: std::io::Error| format!("ip {arguments:?}: {error}");
    let mut ip =
        Command::new("ip").args(arguments).stdin(Stdio::piped()).stdout(Stdio::null()).stderr(Stdio::piped()).spawn().map_err(piped)?;
    // What it complains about fits into a pipe, or is of no interest.
    let written = ip.stdin.take().map(|mut pipe| pipe.write_all(lines.as_bytes()));
    let out = ip.wait_with_output().map_err(piped)?;
    match (out.status.success(), written) {
        (true, Some(Ok(()))) => Ok(()),
        _ => Err(String::from_utf8_lossy(&out.stderr).into_owned()),
    }
}

/// Makes the ports. Their far ends have no IPv6, and so no routes.
pub fn ports() {
    let (mut links, mut settings) = (String::new(), "sysctl -qw".to_owned());
    for port in PORTS {
        links += &format!("link add {port} type veth peer name {port}-far\nlink set {port}-far mtu 65535 up\n");
        settings += &format!(" net.ipv6.conf.{port}.disable_ipv6=0");
    }
    shell(&format!("{QUIET} net.ipv6.conf.default.disable_ipv6=1"));
    configure(&links).expect("veth pairs");
    shell(&format!("{settings} net.ipv6.conf.default.disable_ipv6=0"));
}

/// Does the lines of a network file, in their order and few processes.
pub fn configure(text: &str) -> Result<(), String> {
    let lines: Vec<_> = text.lines().map(str::trim).filter(|line| !line.is_empty() && !line.starts_with('#')).collect();
    let form = |line: &str| match line {
        _ if line.starts_with("sysctl") => None,
        _ => Some(line.starts_with("ip -6 ") || line.starts_with("-6 ")),
    };
    for run in lines.chunk_by(|line, next| form(line) == form(next)) {
        let of = |line: &&str| line.trim_start_matches("ip ").trim_start_matches("-6 ").to_owned() + "\n";
        match run.first().and_then(|line| form(line)) {
            None => {
                if run.iter().any(|line| line.contains("forwarding")) {
                    until_addresses_are_used();
                }
                let setting = |line: &&str| line.trim_start_matches("sysctl").trim_start().trim_start_matches("-w").to_owned();
                try_shell(&format!("sysctl -qw{}", run.iter().map(setting).collect::<String>()))?;
            }
            Some(true) => ip(&["-6", "-batch", "-"], &run.iter().map(of).collect::<String>())?,
            Some(false) => ip(&["-batch", "-"], &run.iter().map(of).collect::<String>())?,
        }
    }
    Ok(())
}

/// Waits, not for ever, until no IPv6 address is tentative: when forwarding is switched off, Linux leaves the anycast addresses of the others alone.
fn until_addresses_are_used() {
    for _ in 0..50 {
        let tentative = Command::new("ip").args(["-6", "-o", "addr", "show", "tentative"]).output();
        if tentative.is_ok_and(|told| told.stdout.is_empty()) {
            return;
        }
        std::thread::sleep(Duration::from_millis(10));
    }
}

/// Ports that are up, with an address of each family on each.
pub fn ports_up() {
    ports();
    let mut lines = "link set lo up\n".to_owned();
    for (number, port) in PORTS.iter().enumerate() {
        lines += &format!("link set {port} up\naddr add 10.0.{number}.1/24 dev {port}\naddr add fd00:{number}::1/64 dev {port} nodad\n");
    }
    configure(&lines).expect("addresses");
}

/// A follower that has read everything.
pub fn follower() -> Follower {
    let mut follower = Follower::new(Mirror::new(&PORTS)).expect("sockets");
    settle(&mut follower);
    follower
}

/// Follows until the kernel is quiet; it does some things a little later than it is told to.
pub fn settle(follower: &mut Follower) {
    loop {
        follower.settle(Duration::from_secs(20)).expect("the kernel becomes quiet");
        let before = follower.follow().counters.events;
        follower.step(Duration::from_millis(30)).expect("a step");
        if follower.follow().counters.events == before && follower.follow().is_settled() {
            return;
        }
    }
}

//! Programs that people use, through a router: ssh and iperf3, as they come.

use std::fs;
use std::io::Write as _;
use std::net::TcpStream;
use std::path::Path;
use std::process::{Child, Command, Output, Stdio};
use std::thread;
use std::time::{Duration, Instant};

use serde_json::Value;
use testkit::program::{self, skipped};
use testkit::replay::Scratch;

use crate::lab::{Lab, Router};
use crate::mirror::KERNEL;
use crate::network;

/// The right host, directly and behind SRv6.
const RIGHT: [&str; 3] = ["10.2.0.2", "fd02::2", "10.9.0.9"];
/// Bytes that go there and back by ssh.
const TRANSFER: usize = 1_000_003;
const SSH_PORT: u16 = 2222;
const IPERF_PORT: u16 = 5201;
/// How long a server may take to listen, and a client to end.
const PATIENCE: Duration = Duration::from_secs(30);

/// A server in the lab; killed with this value.
struct Server(Child);

impl Server {
    /// Starts it at the right host, and waits until the router's other side can connect.
    fn start(lab: &Lab, mut command: Command, port: u16) -> Server {
        command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
        let server = Server(lab.right.inside(|| command.spawn()).expect("the program is there"));
        let begin = Instant::now();
        while lab.right.inside(|| TcpStream::connect(("10.2.0.2", port))).is_err() {
            assert!(begin.elapsed() < PATIENCE, "the server does not listen: {command:?}");
            thread::sleep(Duration::from_millis(20));
        }
        server
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// True when all of these programs are there; else a word that one is not.
fn are_there(programs: &[&str]) -> bool {
    let path = std::env::var_os("PATH").unwrap_or_default();
    let directories: Vec<_> = std::env::split_paths(&path).chain([Path::new("/usr/sbin").to_owned()]).collect();
    let missing = programs.iter().find(|program| !directories.iter().any(|directory| directory.join(program).is_file()));
    missing.inspect(|program| skipped(&format!("there is no {program}"))).is_none()
}

/// Runs a client at the left host, with these bytes to read, to its end.
fn run(lab: &Lab, mut command: Command, input: &[u8]) -> Output {
    command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
    let mut child = lab.left.inside(|| command.spawn()).expect("the program is there");
    let mut stdin = child.stdin.take().expect("it is piped");
    thread::scope(|scope| {
        // One that ends early says why.
        scope.spawn(move || _ = stdin.write_all(input));
        let id = child.id();
        let (done, ended) = std::sync::mpsc::channel::<()>();
        scope.spawn(move || {
            if ended.recv_timeout(PATIENCE) == Err(std::sync::mpsc::RecvTimeoutError::Timeout) {
                program::signal(id, "KILL");
            }
        });
        let output = child.wait_with_output().expect("it ends");
        drop(done);
        output
    })
}

/// An sshd at the right host with keys of its own, and how to reach it: `ssh` without its last words.
fn sshd(lab: &Lab, directory: &Path) -> (Server, impl Fn(&str) -> Command) {
    let at = |name: &str| directory.join(name).display().to_string();
    for name in ["host", "client"] {
        let made = Command::new("ssh-keygen").args(["-q", "-t", "ed25519", "-N", "", "-f", &at(name)]).status();
        assert!(made.is_ok_and(|status| status.success()), "a key can be made");
    }
    let host = fs::read_to_string(at("host.pub")).unwrap();
    let known: String = RIGHT.iter().map(|address| format!("[{address}]:{SSH_PORT} {host}")).collect();
    fs::write(at("known"), known).unwrap();
    let config = format!(
        "Port {SSH_PORT}\nListenAddress 0.0.0.0\nListenAddress ::\nHostKey {}\nAuthorizedKeysFile {}\nPidFile none\nUsePAM no\nStrictModes no\n\
         PermitRootLogin prohibit-password\n",
        at("host"),
        at("client.pub"),
    );
    fs::write(at("config"), config).unwrap();
    // Where it goes for the part of a connection that no one has logged in on; a system that boots makes it.
    fs::create_dir_all("/run/sshd").unwrap();
    let mut command = Command::new("/usr/sbin/sshd");
    command.args(["-D", "-e", "-f", &at("config")]);
    let (key, known) = (at("client"), at("known"));
    let ssh = move |to: &str| {
        let mut ssh = Command::new("ssh");
        ssh.args(["-F", "none", "-i", &key, "-p", &SSH_PORT.to_string(), "-l", "root"]);
        ssh.args(["-o", &format!("UserKnownHostsFile={known}"), "-o", "StrictHostKeyChecking=yes"]);
        ssh.args(["-o", "BatchMode=yes", "-o", "ConnectTimeout=10", to]);
        ssh
    };
    (Server::start(lab, command, SSH_PORT), ssh)
}

fn ssh_goes_there_and_back(lab: &Lab) {
    let directory = Scratch::new();
    let (_server, ssh) = sshd(lab, directory.path());
    let bytes: Vec<u8> = (0..TRANSFER).map(|n| (n % 251) as u8).collect();
    for to in RIGHT {
        let mut command = ssh(to);
        command.arg("cat");
        let output = run(lab, command, &bytes);
        assert!(output.status.success(), "ssh to {to}: {}", String::from_utf8_lossy(&output.stderr));
        assert!(output.stdout == bytes, "{} of {TRANSFER} bytes came back by ssh from {to}, or others", output.stdout.len());
    }
}

/// What iperf3 says of one second.
fn iperf(lab: &Lab, to: &str, arguments: &[&str]) -> Value {
    let begin = Instant::now();
    loop {
        let mut command = Command::new("iperf3");
        command.args(["-J", "-t", "1", "-p", &IPERF_PORT.to_string(), "-c", to]).args(arguments);
        let output = run(lab, command, &[]);
        let said: Value = serde_json::from_slice(&output.stdout).unwrap_or_default();
        let error = said.get("error").and_then(Value::as_str).unwrap_or_default();
        // The server takes a moment from one client to the next, and lets those go meanwhile before anything is measured.
        let began = said.pointer("/start/connected/0").is_some();
        if !error.is_empty() && !began && begin.elapsed() < PATIENCE {
            thread::sleep(Duration::from_millis(100));
            continue;
        }
        assert!(output.status.success() && error.is_empty(), "iperf3 to {to}: {error} {}", String::from_utf8_lossy(&output.stderr));
        return said;
    }
}

fn iperf_measures(lab: &Lab) {
    let mut command = Command::new("iperf3");
    command.args(["-s", "-p", &IPERF_PORT.to_string()]);
    let _server = Server::start(lab, command, IPERF_PORT);
    for to in RIGHT {
        for way in [&[][..], &["-R"]] {
            let said = iperf(lab, to, way);
            let rate = said.pointer("/end/sum_received/bits_per_second").and_then(Value::as_f64).unwrap_or(0.0);
            println!("iperf3 {to} {way:?}: {:.0} Mbit/s", rate / 1e6);
            // Any machine does this, also a busy one with a build for debugging.
            assert!(rate > 1e6, "{to} {way:?}: {rate} bits a second");
        }
    }
    // Datagrams of a rate that leaves no excuse.
    let said = iperf(lab, "10.2.0.2", &["-u", "-b", "2M", "-l", "1000"]);
    let number = |at: &str| said.pointer(at).and_then(Value::as_f64).unwrap_or(f64::NAN);
    assert!(number("/end/sum/packets") > 100.0 && number("/end/sum/lost_percent") < 5.0, "{said}");
}

#[test]
fn ssh_and_iperf3_pass_through_a_router_that_is_alone() {
    if !are_there(&["sshd", "ssh", "ssh-keygen", "iperf3"]) {
        return;
    }
    let Some(lab) = Lab::new() else { return };
    let Some(router) = Router::start(&lab, &network(), &["--driver", "af-xdp", "--json"]) else { return };
    ssh_goes_there_and_back(&lab);
    iperf_measures(&lab);
    let (report, _) = router.report();
    let packets = |at: &str| report.pointer(at).and_then(Value::as_u64).unwrap_or(0);
    assert!(packets("/ports/1/sent/packets") > 3 * TRANSFER as u64 / 1500, "{report}");
    assert!(packets("/sids/0/packets") > TRANSFER as u64 / 1500, "by SRv6: {report}");
}

#[test]
fn ssh_and_iperf3_pass_through_a_router_beside_the_kernel() {
    if !are_there(&["sshd", "ssh", "ssh-keygen", "iperf3"]) {
        return;
    }
    let Some(lab) = Lab::with_kernel(KERNEL) else { return };
    let Some(router) = Router::mirror(&lab, &["--json"]) else { return };
    ssh_goes_there_and_back(&lab);
    iperf_measures(&lab);
    let (report, _) = router.report();
    let packets = |at: &str| report.pointer(at).and_then(Value::as_u64).unwrap_or(0);
    assert!(packets("/ports/1/sent/packets") > 3 * TRANSFER as u64 / 1500, "by noref, and not by the kernel: {report}");
}

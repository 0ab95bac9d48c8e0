//! Two hosts and a router between them, each a namespace without a name: gone with the test, however it ends.

use std::fs::{self, File};
use std::io::{BufRead, BufReader, Read};
use std::os::fd::AsRawFd;
use std::path::PathBuf;
use std::process::{Child, Command, Output, Stdio};
use std::thread;
use std::time::{Duration, Instant};

use nix::sched::{CloneFlags, setns, unshare};
use testkit::replay::Scratch;

/// The left host: addresses, the way to everything, and what goes by SRv6.
const LEFT: &str = "\
addr add 10.1.0.2/24 dev h0
-6 addr add fd01::2/64 dev h0 nodad
route add default via 10.1.0.1
-6 route add default via fd01::1
route add 10.9.0.9 encap seg6 mode encap segs fc00::d4 dev h0
-6 route add fd09::9 encap seg6 mode encap segs fc00::e,fc01::d6 dev h0
";

/// The right host: addresses, more of them behind SRv6, and the end of it for IPv6.
const RIGHT: &str = "\
addr add 10.2.0.2/24 dev h1
-6 addr add fd02::2/64 dev h1 nodad
addr add 10.9.0.9/32 dev lo
-6 addr add fd09::9/128 dev lo nodad
route add default via 10.2.0.1
-6 route add default via fd02::1
-6 route add fc01::d6 encap seg6local action End.DT6 table 255 dev h1
";

/// How long the program may take to start or to end.
const PATIENCE: Duration = Duration::from_secs(10);

/// A network namespace, kept by this value.
pub struct Namespace(File);

impl Namespace {
    fn new() -> Result<Namespace, String> {
        let make = || {
            unshare(CloneFlags::CLONE_NEWNET).map_err(|error| format!("a network namespace: {error}"))?;
            File::open("/proc/thread-self/ns/net").map(Namespace).map_err(|error| error.to_string())
        };
        thread::scope(|scope| scope.spawn(make).join().expect("no panic"))
    }

    /// Runs `f` in a thread that is in the namespace.
    pub fn inside<T: Send>(&self, f: impl FnOnce() -> T + Send) -> T {
        let enter = || {
            setns(&self.0, CloneFlags::CLONE_NEWNET).expect("one may enter it again");
            f()
        };
        match thread::scope(|scope| scope.spawn(enter).join()) {
            Ok(value) => value,
            Err(panic) => std::panic::resume_unwind(panic),
        }
    }

    /// Runs `ip` with these words.
    pub fn ip(&self, words: &str) {
        self.run("ip", words).unwrap();
    }

    fn run(&self, program: &str, words: &str) -> Result<(), String> {
        let output =
            self.inside(|| Command::new(program).args(words.split_whitespace()).output()).map_err(|e| format!("{program}: {e}"))?;
        let complaint = String::from_utf8_lossy(&output.stderr);
        if output.status.success() { Ok(()) } else { Err(format!("{program} {words}: {}", complaint.trim_end())) }
    }

    /// Sets a sysctl of the namespace.
    fn set(&self, name: &str, value: &str) -> Result<(), String> {
        self.inside(|| fs::write(format!("/proc/sys/net/{name}"), value)).map_err(|error| format!("sysctl {name}: {error}"))
    }
}

/// `left (h0) ── (e0) router (e1) ── (h1) right`
pub struct Lab {
    pub left: Namespace,
    pub router: Namespace,
    pub right: Namespace,
}

impl Lab {
    /// The lab, its hosts configured, its router bare. None, with a word why, where it cannot be made.
    pub fn new() -> Option<Lab> {
        Lab::make().map_err(|why| eprintln!("skipped: {why} (this needs root, iproute2, ethtool, and a kernel with veth and SRv6)")).ok()
    }

    fn make() -> Result<Lab, String> {
        let lab = Lab { left: Namespace::new()?, router: Namespace::new()?, right: Namespace::new()? };
        // The router's kernel has no part in it.
        lab.router.set("ipv6/conf/default/disable_ipv6", "1")?;
        for (host, near, far, configuration) in [(&lab.left, "e0", "h0", LEFT), (&lab.right, "e1", "h1", RIGHT)] {
            host.set("ipv6/conf/default/accept_dad", "0")?;
            let there = format!("/proc/{}/fd/{}", std::process::id(), host.0.as_raw_fd());
            lab.router.run("ip", &format!("link add {near} type veth peer name {far} netns {there}"))?;
            lab.router.run("ip", &format!("link set {near} up"))?;
            // Segments put together and checksums not finished are for cards that do it; a veth pair only passes them on.
            host.run("ethtool", &format!("-K {far} tx off tso off gso off"))?;
            host.run("ip", "link set lo up")?;
            host.run("ip", &format!("link set {far} up"))?;
            host.set("ipv6/conf/all/seg6_enabled", "1")?;
            host.set(&format!("ipv6/conf/{far}/seg6_enabled"), "1")?;
            for line in configuration.lines() {
                match host.run("ip", line) {
                    // A kernel without SRv6 is no fault of ours, a line that is wrong is.
                    Err(why) if !why.contains("not supported") => panic!("{why}"),
                    outcome => outcome?,
                }
            }
        }
        Ok(lab)
    }
}

/// `noref run` in the lab's router; killed with this value.
pub struct Router {
    child: Child,
    /// What it said until it ran.
    said: String,
    scratch: Scratch,
}

impl Router {
    /// Starts it and waits until it runs. None, with a word why, where the kernel lets us not.
    pub fn start(lab: &Lab, network: &str, arguments: &[&str]) -> Option<Router> {
        let scratch = Scratch::new();
        let mut child = spawn(lab, network, arguments, &scratch);
        let mut stderr = BufReader::new(child.stderr.take().unwrap());
        let mut router = Router { child, said: String::new(), scratch };
        let mut line = String::new();
        while stderr.read_line(&mut line).unwrap() > 0 {
            router.said.push_str(&line);
            if line.starts_with("noref: running: ") {
                router.child.stderr = Some(stderr.into_inner());
                return Some(router);
            }
            line.clear();
        }
        let refused = ["Operation not permitted", "Permission denied", "not supported", "not implemented"];
        assert!(refused.iter().any(|why| router.said.contains(why)), "{}", router.said);
        eprintln!("skipped: {}", router.said);
        None
    }

    /// Where its control socket is.
    pub fn socket(&self) -> PathBuf {
        self.scratch.path().join("noref.sock")
    }

    /// The number of its process.
    pub fn id(&self) -> u32 {
        self.child.id()
    }

    /// Runs it to its end.
    pub fn command(lab: &Lab, network: &str, arguments: &[&str]) -> Output {
        let scratch = Scratch::new();
        spawn(lab, network, arguments, &scratch).wait_with_output().unwrap()
    }

    /// Tells it to end, and waits for that.
    pub fn stop(self) -> Output {
        let told = Command::new("sh").args(["-c", &format!("kill -TERM {}", self.child.id())]).status().unwrap();
        assert!(told.success());
        self.wait()
    }

    /// Waits for its end.
    pub fn wait(mut self) -> Output {
        let begin = Instant::now();
        let status = loop {
            if let Some(status) = self.child.try_wait().unwrap() {
                break status;
            }
            assert!(begin.elapsed() < PATIENCE, "it does not end; it said: {}", self.said);
            thread::sleep(Duration::from_millis(5));
        };
        let (mut stdout, mut stderr) = (Vec::new(), std::mem::take(&mut self.said).into_bytes());
        self.child.stdout.take().unwrap().read_to_end(&mut stdout).unwrap();
        self.child.stderr.take().unwrap().read_to_end(&mut stderr).unwrap();
        Output { status, stdout, stderr }
    }
}

impl Drop for Router {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// Starts the program; should nobody end it, it ends itself.
fn spawn(lab: &Lab, network: &str, arguments: &[&str], scratch: &Scratch) -> Child {
    let net = scratch.path().join("network.ip");
    fs::write(&net, network).unwrap();
    let mut command = Command::new(env!("CARGO_BIN_EXE_noref"));
    command
        .args(["run", "--port", "e0", "--port", "e1", "--net"])
        .arg(net)
        .arg("--socket")
        .arg(scratch.path().join("noref.sock"))
        .args(arguments);
    if !arguments.contains(&"--seconds") {
        command.args(["--seconds", "60"]);
    }
    command.stdout(Stdio::piped()).stderr(Stdio::piped());
    lab.router.inside(|| command.spawn().unwrap())
}

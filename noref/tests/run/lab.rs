//! Two hosts and a router between them, each a namespace without a name: gone with the test, however it ends.

use std::fs;
use std::io::{BufRead, BufReader, Read};
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStderr, Command, Output, Stdio};
use std::sync::MutexGuard;
use std::thread;
use std::time::{Duration, Instant};

use serde_json::Value;
use testkit::namespace::Namespace;
use testkit::program::{self, skipped};
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

/// What noref is between the hosts, for which their addresses, gateways and encapsulations are made.
const BETWEEN: &str = "\
sysctl -w net.ipv4.ip_forward=1
sysctl -w net.ipv6.conf.all.forwarding=1
sysctl -w net.ipv6.conf.all.seg6_enabled=1
sysctl -w net.ipv6.conf.e0.seg6_enabled=1
ip link set e0 up
ip link set e1 up
ip addr add 10.1.0.1/24 dev e0
ip addr add 10.2.0.1/24 dev e1
ip -6 addr add fd01::1/64 dev e0 nodad
ip -6 addr add fd02::1/64 dev e1 nodad
ip -6 route add fc00::d4 encap seg6local action End.DX4 nh4 10.2.0.2 count dev e1
";

/// A network file of a router of both families between the hosts, with a SID that takes the outer header off, and with these lines.
pub fn between_hosts(lines: &str) -> String {
    format!("{BETWEEN}{lines}")
}

/// How long the program may take to start, to end, or to do what it is told.
const PATIENCE: Duration = Duration::from_secs(10);

/// Seconds after which a router ends that nobody ended: more than a test takes on a slow machine.
const LONGEST: &str = "300";

/// A host behind an interface of the router that is no port.
const SIDE: &str = "\
addr add 10.3.0.2/24 dev h2
-6 addr add fd03::2/64 dev h2 nodad
route add default via 10.3.0.1
-6 route add default via fd03::1
";

/// `left (h0) ── (e0) router (e1) ── (h1) right`, and beside a kernel `(e2) ── (h2) side`.
pub struct Lab {
    pub left: Namespace,
    pub router: Namespace,
    pub right: Namespace,
    pub side: Namespace,
    _alone: MutexGuard<'static, ()>,
}

impl Lab {
    /// The lab, its hosts configured, its router bare. None, with a word why, where it cannot be made.
    pub fn new() -> Option<Lab> {
        let make = || {
            let lab = Lab::unconnected()?;
            // The router's kernel has no part in it.
            lab.router.set("ipv6/conf/default/disable_ipv6", "1")?;
            lab.connect_left_and_right()?;
            Ok(lab)
        };
        possible(make())
    }

    /// The lab with a kernel that routes as these lines of `ip` say, a host on the side, and VRFs made before its interfaces are up.
    pub fn with_kernel(configuration: &str) -> Option<Lab> {
        let make = || {
            let lab = Lab::unconnected()?;
            for (name, value) in [
                ("ipv4/ip_forward", "1"),
                ("ipv6/conf/all/forwarding", "1"),
                ("ipv6/conf/all/seg6_enabled", "1"),
                ("ipv6/conf/default/seg6_enabled", "1"),
                ("ipv6/conf/default/accept_dad", "0"),
            ] {
                lab.router.set(name, value)?;
            }
            lab.router.ip("link set lo up")?;
            lab.connect_left_and_right()?;
            lab.connect(&lab.side, "e2", "h2", SIDE)?;
            lab.configure_kernel(configuration)?;
            Ok(lab)
        };
        possible(make())
    }

    fn unconnected() -> Result<Lab, String> {
        // The first worker of each router is on the same core.
        let _alone = program::alone();
        Ok(Lab { left: Namespace::new()?, router: Namespace::new()?, right: Namespace::new()?, side: Namespace::new()?, _alone })
    }

    /// Has the router's kernel do what lines of `ip` say.
    pub fn configure_kernel(&self, lines: &str) -> Result<(), String> {
        lines.lines().try_for_each(|line| self.router.ip(line).map(|_| ()))
    }

    fn connect_left_and_right(&self) -> Result<(), String> {
        self.connect(&self.left, "e0", "h0", LEFT)?;
        self.connect_right()
    }

    /// Connects the right host, also again.
    pub fn connect_right(&self) -> Result<(), String> {
        self.connect(&self.right, "e1", "h1", RIGHT)
    }

    fn connect(&self, host: &Namespace, near: &str, far: &str, configuration: &str) -> Result<(), String> {
        host.set("ipv6/conf/default/accept_dad", "0")?;
        self.router.ip(&format!("link add {near} type veth peer name {far} netns {}", host.path().display()))?;
        self.router.ip(&format!("link set {near} up"))?;
        // Segments put together and checksums not finished are for cards that do it; a veth pair only passes them on.
        host.run("ethtool", &format!("-K {far} tx off tso off gso off"))?;
        host.ip("link set lo up")?;
        host.ip(&format!("link set {far} up"))?;
        host.set("ipv6/conf/all/seg6_enabled", "1")?;
        host.set(&format!("ipv6/conf/{far}/seg6_enabled"), "1")?;
        for line in configuration.lines() {
            match host.ip(line) {
                // A kernel without SRv6 is no fault of ours, a line that is wrong is. What is on `lo` stays when the other interface goes.
                Err(why) if !why.contains("not supported") && !why.contains("already assigned") => panic!("{why}"),
                Err(why) if why.contains("not supported") => return Err(why),
                _ => {}
            }
        }
        Ok(())
    }
}

fn possible(lab: Result<Lab, String>) -> Option<Lab> {
    if let Err(why) = &lab
        && why.contains("Unknown device type")
    {
        // No package changes that.
        eprintln!("not run: this kernel has no such device: {why}");
        return None;
    }
    lab.map_err(|why| skipped(&format!("{why} (this needs root, iproute2, ethtool, and a kernel with veth and SRv6)"))).ok()
}

/// `noref run` in the lab's router; killed with this value.
pub struct Router {
    child: Child,
    /// What it says, after what is in `said`.
    stderr: BufReader<ChildStderr>,
    /// What it said, as far as it was listened to.
    said: String,
    scratch: Scratch,
}

impl Router {
    /// Starts it with a network file and waits until it runs. None, with a word why, where the kernel lets us not.
    pub fn start(lab: &Lab, network: &str, arguments: &[&str]) -> Option<Router> {
        let scratch = Scratch::new();
        let command = standalone(network, arguments, &scratch);
        Router::wait_for(lab, command, scratch)
    }

    /// Starts it beside the kernel.
    pub fn mirror(lab: &Lab, arguments: &[&str]) -> Option<Router> {
        let scratch = Scratch::new();
        let command = beside_kernel(arguments, &scratch);
        Router::wait_for(lab, command, scratch)
    }

    /// Starts it with a settings file, which stands in `directory`.
    pub fn with_settings(lab: &Lab, directory: &Path) -> Option<Router> {
        let mut command = noref();
        command.args(["--json", "--config"]).arg(directory.join("noref.toml"));
        Router::wait_for(lab, command, Scratch::new())
    }

    fn wait_for(lab: &Lab, command: Command, scratch: Scratch) -> Option<Router> {
        let mut child = spawn(lab, command);
        let stderr = BufReader::new(child.stderr.take().unwrap());
        let mut router = Router { child, stderr, said: String::new(), scratch };
        if router.says(&["noref: running: "]) {
            return Some(router);
        }
        assert!(program::is_refused(&router.said), "{}", router.said);
        skipped(&router.said);
        None
    }

    /// Listens until it has said all of these from now on, in any order; false when it ends before.
    fn says(&mut self, words: &[&str]) -> bool {
        let from = self.said.len();
        while !words.iter().all(|word| self.said[from..].contains(word)) {
            if self.stderr.read_line(&mut self.said).unwrap() == 0 {
                return false;
            }
        }
        true
    }

    /// Waits until it has said all of these from now on, in any order.
    pub fn wait_until_it_says(&mut self, words: &[&str]) {
        assert!(self.says(words), "{words:?} in {}", self.said);
    }

    /// What `noref show` prints of it.
    pub fn show(&self, what: &str) -> String {
        let mut command = Command::new(env!("CARGO_BIN_EXE_noref"));
        command.args(["show", what]).arg("--socket").arg(self.socket());
        let output = command.output().unwrap();
        assert!(output.status.success(), "show {what}: {output:?}");
        String::from_utf8(output.stdout).expect("text")
    }

    /// Waits until a table of `noref show` is as it should be.
    pub fn wait_until(&self, what: &str, is: impl Fn(&str) -> bool) {
        let begin = Instant::now();
        loop {
            let shown = self.show(what);
            if is(&shown) {
                return;
            }
            assert!(begin.elapsed() < PATIENCE, "show {what} stays\n{shown}");
            thread::sleep(Duration::from_millis(20));
        }
    }

    /// Where its control socket is.
    pub fn socket(&self) -> PathBuf {
        self.scratch.path().join("noref.sock")
    }

    /// Runs it to its end.
    pub fn command(lab: &Lab, network: &str, arguments: &[&str]) -> Output {
        let scratch = Scratch::new();
        spawn(lab, standalone(network, arguments, &scratch)).wait_with_output().unwrap()
    }

    /// Runs it beside the kernel, to its end.
    pub fn run_mirror(lab: &Lab, arguments: &[&str]) -> Output {
        let scratch = Scratch::new();
        spawn(lab, beside_kernel(arguments, &scratch)).wait_with_output().unwrap()
    }

    /// Sends it a signal, by name.
    pub fn signal(&self, name: &str) {
        program::signal(self.child.id(), name);
    }

    /// Tells it to end, and waits for that.
    pub fn stop(self) -> Output {
        self.signal("TERM");
        self.wait()
    }

    /// Its report as JSON and what else it said, after it ended as it was told.
    pub fn report(self) -> (Value, String) {
        let output = self.stop();
        assert_eq!(output.status.code(), Some(0), "{output:?}");
        let said = String::from_utf8_lossy(&output.stderr).into_owned();
        (serde_json::from_slice(&output.stdout).expect("a JSON document"), said)
    }

    /// Waits for its end.
    pub fn wait(mut self) -> Output {
        let status = program::wait(&mut self.child, PATIENCE).unwrap_or_else(|| panic!("it does not end; it said: {}", self.said));
        let (mut stdout, mut stderr) = (Vec::new(), std::mem::take(&mut self.said).into_bytes());
        self.child.stdout.take().unwrap().read_to_end(&mut stdout).unwrap();
        self.stderr.read_to_end(&mut stderr).unwrap();
        Output { status, stdout, stderr }
    }
}

impl Drop for Router {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// `noref run`; should nobody end it, it ends itself.
fn noref() -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_noref"));
    command.arg("run");
    command
}

fn standalone(network: &str, arguments: &[&str], scratch: &Scratch) -> Command {
    let net = scratch.path().join("network.ip");
    fs::write(&net, network).unwrap();
    let mut command = noref();
    command.args(["--port", "e0", "--port", "e1", "--net"]).arg(net).arg("--socket").arg(scratch.path().join("noref.sock")).args(arguments);
    command
}

fn beside_kernel(arguments: &[&str], scratch: &Scratch) -> Command {
    let mut command = noref();
    command.args(["--port", "e0", "e1", "--mirror", "--socket"]).arg(scratch.path().join("noref.sock")).args(arguments);
    command
}

fn spawn(lab: &Lab, mut command: Command) -> Child {
    if !command.get_args().any(|argument| argument == "--seconds") {
        command.args(["--seconds", LONGEST]);
    }
    command.stdout(Stdio::piped()).stderr(Stdio::piped());
    lab.router.inside(|| command.spawn().unwrap())
}

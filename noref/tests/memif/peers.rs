//! The programs at both ends: testpmd and noref.

use std::fs::{self, File};
use std::io::{BufRead, BufReader, Read, Write};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::thread;
use std::time::Duration;

use port::live::memif::Role;
use testkit::program;

/// How long a program may take to start or to end.
const PATIENCE: Duration = Duration::from_secs(20);
/// Slots of the rings, as a power of two: the most there are, for processors that are busy otherwise too.
pub const LOG2_SLOTS: u32 = 14;
/// testpmd's interfaces in the order of its ports, of which it connects the first two and the last two: (socket, whose other end is noref's).
const INTERFACES: [(&str, bool); 4] = [("in", false), ("m0", true), ("m1", true), ("out", false)];

/// The socket of an interface.
pub fn socket(directory: &Path, name: &str) -> PathBuf {
    directory.join(format!("{name}.sock"))
}

/// A name of a role, as both programs spell it.
fn word(role: Role) -> &'static str {
    match role {
        Role::Client => "client",
        Role::Server => "server",
    }
}

/// The role of the other end.
pub fn other(role: Role) -> Role {
    match role {
        Role::Client => Role::Server,
        Role::Server => Role::Client,
    }
}

/// A program that has its turn before others, where we may say so: whoever is kept waiting for longer than a ring lasts loses frames.
fn preferred(program: &str) -> Command {
    let mut command = Command::new("nice");
    command.args(["-n", "-15", program]);
    command
}

/// A program that is killed with its value.
struct Running(Child);

impl Running {
    /// Waits for its end.
    fn wait(&mut self, what: &str) {
        assert!(program::wait(&mut self.0, PATIENCE).is_some(), "{what} does not end");
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// testpmd, passing frames on.
pub struct TestPmd {
    program: Running,
    output: PathBuf,
    /// Sockets that it leaves behind.
    sockets: Vec<PathBuf>,
}

impl TestPmd {
    /// False, with a word why, where it is not installed.
    pub fn is_there() -> bool {
        let there = Command::new("dpdk-testpmd").arg("--help").stdout(Stdio::null()).stderr(Stdio::null()).status().is_ok();
        assert!(there || std::env::var_os("CI").is_none(), "dpdk-testpmd is not installed: apt-get install dpdk");
        if !there {
            eprintln!("skipped: dpdk-testpmd is not installed (apt-get install dpdk)");
        }
        there
    }

    /// Starts it against noref in this role, and interfaces of this test in the same.
    pub fn start(directory: &Path, role: Role) -> TestPmd {
        let output = directory.join("testpmd.txt");
        let file = File::create(&output).unwrap();
        let last = thread::available_parallelism().map_or(1, usize::from) - 1;
        let mut command = preferred("dpdk-testpmd");
        // Its threads on any processor, the one that passes frames on on the last: noref's worker is on the first.
        command.arg(format!("--lcores=0@(0-{last}),1@{last}"));
        command.args(["--no-huge", "-m", "256", "--no-pci", "--no-telemetry", "--no-shconf"]);
        command.arg(format!("--file-prefix=noref-{}", std::process::id()));
        for (number, (name, _)) in INTERFACES.iter().enumerate() {
            let (socket, role) = (socket(directory, name), word(other(role)));
            command.arg(format!("--vdev=net_memif{number},role={role},socket={},socket-abstract=no,rsize={LOG2_SLOTS}", socket.display()));
        }
        command.args(["--", "-i", "--nb-cores=1", "--total-num-mbufs=8192", "--no-numa"]);
        let mut child = command.stdin(Stdio::piped()).stdout(file.try_clone().unwrap()).stderr(file).spawn().unwrap();
        // It waits where a ring is full, a second at most: then what is lost was lost by noref.
        let commands = b"set fwd io retry\nset burst tx delay 10 retry 100000\nstart\n";
        child.stdin.as_mut().unwrap().write_all(commands).unwrap();
        let sockets = match role {
            Role::Server => Vec::new(),
            Role::Client => INTERFACES.iter().map(|(name, _)| socket(directory, name)).collect(),
        };
        TestPmd { program: Running(child), output, sockets }
    }

    /// What it said so far.
    pub fn said(&self) -> String {
        String::from_utf8_lossy(&fs::read(&self.output).unwrap()).into_owned()
    }

    /// Kills it, and takes its sockets away: one that is started next would stumble over them.
    pub fn kill(self) {
        let TestPmd { program, sockets, .. } = self;
        drop(program);
        sockets.iter().for_each(|socket| fs::remove_file(socket).unwrap());
    }

    /// Tells it to end. What it said, with its counters.
    pub fn quit(mut self) -> String {
        let mut stdin = self.program.0.stdin.take().unwrap();
        // One that ended before has said why.
        let _ = stdin.write_all(b"stop\nshow port stats all\nquit\n");
        self.program.wait("testpmd");
        self.said()
    }
}

/// `noref run` with two memif ports.
pub struct Router {
    program: Running,
}

impl Router {
    /// Starts it and waits until it runs.
    pub fn start(directory: &Path, network: &str, role: Role) -> Router {
        let file = directory.join("network.ip");
        fs::write(&file, network).unwrap();
        let mut command = preferred(env!("CARGO_BIN_EXE_noref"));
        command.args(["run", "--json", "--net"]).arg(file).arg("--socket").arg(directory.join("noref.sock"));
        for (name, _) in INTERFACES.iter().filter(|(_, noref)| *noref) {
            let socket = socket(directory, name);
            let mac = if *name == "m0" { ",mac=02:00:00:00:0e:01" } else { "" };
            command.args(["--port", &format!("{name}=memif:{},role={},slots={}{mac}", socket.display(), word(role), 1 << LOG2_SLOTS)]);
        }
        let child = command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
        let mut router = Router { program: Running(child) };
        let mut stderr = BufReader::new(router.program.0.stderr.take().unwrap());
        let (mut line, mut said) = (String::new(), String::new());
        while stderr.read_line(&mut line).unwrap() > 0 {
            said.push_str(&line);
            if line.starts_with("noref: running: ") {
                // What it says later is read by nobody, and must have somewhere to go.
                thread::spawn(move || std::io::copy(&mut stderr, &mut std::io::sink()));
                return router;
            }
            line.clear();
        }
        panic!("noref does not run: {said}");
    }

    /// Tells it to end. Its report.
    pub fn stop(mut self) -> String {
        program::signal(self.program.0.id(), "TERM");
        self.program.wait("noref");
        let mut report = String::new();
        self.program.0.stdout.take().unwrap().read_to_string(&mut report).unwrap();
        report
    }
}

//! `noref run` as a process in a namespace.

use std::fs;
use std::io::{BufRead, BufReader, Read, Write};
use std::os::unix::net::UnixStream;
use std::process::{Child, Command, Output, Stdio};
use std::time::Duration;

use serde_json::Value;
use testkit::namespace::Namespace;
use testkit::program;
use testkit::replay::Scratch;

/// How long it may take to end.
const PATIENCE: Duration = Duration::from_secs(10);
/// Name of its control socket.
const SOCKET: &str = "noref.sock";
/// What it says once it forwards.
const RUNNING: &str = "noref: running: ";

/// A running router; killed with this value.
pub struct Router {
    child: Child,
    /// What it said until it ran.
    said: String,
    scratch: Scratch,
}

/// Why there is none.
#[derive(Debug)]
pub enum Failed {
    /// The kernel lets us not.
    NotHere(String),
    /// It refused, and said this.
    Refused(String),
}

impl Router {
    /// Starts it beside the kernel.
    pub fn mirror(namespace: &Namespace, ports: &[&str], arguments: &[&str]) -> Result<Router, Failed> {
        let scratch = Scratch::new();
        let mut command = Command::new(env!("CARGO_BIN_EXE_noref"));
        command.arg("run").args(ports.iter().flat_map(|port| ["--port", port])).arg("--mirror");
        command.arg("--socket").arg(scratch.path().join(SOCKET)).args(arguments);
        Router::spawn(namespace, command, scratch)
    }

    /// Starts it standalone, with the text of a network file.
    pub fn standalone(namespace: &Namespace, ports: &[&str], network: &str, arguments: &[&str]) -> Result<Router, Failed> {
        let scratch = Scratch::new();
        let net = scratch.path().join("network.ip");
        fs::write(&net, network).expect("a temporary file can be written");
        let mut command = Command::new(env!("CARGO_BIN_EXE_noref"));
        command.arg("run").args(ports.iter().flat_map(|port| ["--port", port])).arg("--net").arg(net);
        command.arg("--socket").arg(scratch.path().join(SOCKET)).args(arguments);
        Router::spawn(namespace, command, scratch)
    }

    fn spawn(namespace: &Namespace, mut command: Command, scratch: Scratch) -> Result<Router, Failed> {
        command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
        let mut child = namespace.inside(|| command.spawn()).expect("the program is built");
        let mut stderr = BufReader::new(child.stderr.take().expect("it is piped"));
        let mut router = Router { child, said: String::new(), scratch };
        let mut line = String::new();
        while stderr.read_line(&mut line).is_ok_and(|len| len > 0) {
            router.said.push_str(&line);
            if line.starts_with(RUNNING) {
                router.child.stderr = Some(stderr.into_inner());
                return Ok(router);
            }
            line.clear();
        }
        let said = std::mem::take(&mut router.said);
        Err(if program::is_refused(&said) { Failed::NotHere(said) } else { Failed::Refused(said) })
    }

    /// Asks it at its control socket, as `noref show` does; the rows of all lines of the answer.
    pub fn show(&self, what: &str) -> Vec<Value> {
        let mut socket = UnixStream::connect(self.scratch.path().join(SOCKET)).expect("it listens");
        let request = format!("{{\"v\":1,\"show\":{{\"what\":\"{what}\"}}}}\n");
        socket.write_all(request.as_bytes()).expect("it reads");
        let mut rows = Vec::new();
        for line in BufReader::new(socket).lines() {
            let reply: Value = serde_json::from_str(&line.expect("it answers")).expect("a line of JSON");
            match reply.get(what) {
                Some(Value::Array(more)) => rows.extend(more.iter().cloned()),
                Some(row) => rows.push(row.clone()),
                None => panic!("show {what}: {reply}"),
            }
            if reply.get("more") != Some(&Value::Bool(true)) {
                break;
            }
        }
        rows
    }

    /// What a port received or sent so far, in packets.
    pub fn packets(&self, port: &str, way: &str) -> u64 {
        let ports = self.show("ports");
        let row =
            ports.iter().find(|row| row.get("port").and_then(Value::as_str) == Some(port)).unwrap_or_else(|| panic!("{port}: {ports:?}"));
        row.pointer(&format!("/{way}/packets")).and_then(Value::as_u64).unwrap_or_else(|| panic!("{way}: {row}"))
    }

    /// Sends it a signal by name: `TERM`, `STOP`.
    pub fn signal(&self, name: &str) {
        program::signal(self.child.id(), name);
    }

    /// Memory that it has now, in bytes.
    pub fn memory(&self) -> u64 {
        program::memory(self.child.id())
    }

    /// Kills it, so that it can do nothing any more, and waits until it is gone.
    pub fn kill(mut self) {
        self.child.kill().expect("it runs");
        self.child.wait().expect("it ends");
    }

    /// Tells it to end and waits for that.
    pub fn stop(self) -> Output {
        self.signal("TERM");
        self.wait()
    }

    /// Waits for its end.
    pub fn wait(mut self) -> Output {
        let status = program::wait(&mut self.child, PATIENCE).unwrap_or_else(|| panic!("it does not end; it said: {}", self.said));
        let (mut stdout, mut stderr) = (Vec::new(), std::mem::take(&mut self.said).into_bytes());
        self.child.stdout.take().map(|mut pipe| pipe.read_to_end(&mut stdout));
        self.child.stderr.take().map(|mut pipe| pipe.read_to_end(&mut stderr));
        Output { status, stdout, stderr }
    }
}

impl Drop for Router {
    fn drop(&mut self) {
        let ended = self.child.try_wait().ok().flatten();
        let _ = self.child.kill();
        let _ = self.child.wait();
        if std::thread::panicking() {
            let mut said = String::new();
            let _ = self.child.stderr.take().map(|mut stderr| stderr.read_to_string(&mut said));
            eprintln!("the router ({ended:?}) said:\n{}{said}", self.said);
        }
    }
}

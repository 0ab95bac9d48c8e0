//! noref in a namespace of a lab: a child of this process, as an operator would start it.

use std::fs::{self, File};
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::thread;
use std::time::{Duration, Instant};

use super::namespace::Namespace;
use crate::api::Client;
use crate::api::protocol::{Body, Request, Show, What};
use crate::api::rows::WorkerRow;
use crate::failure::Failure;

/// How long it may take to start.
const PATIENCE: Duration = Duration::from_secs(10);

/// `noref run`; killed with this value, unless it was left.
pub struct Router {
    child: Option<Child>,
    socket: PathBuf,
}

impl Router {
    /// Starts the router `name` with these arguments and waits until it forwards. Its socket and what it says are `files` with an ending. It ends by itself after
    /// `longest`.
    ///
    /// # Errors
    /// Why it did not start, in its own words.
    pub fn start(name: &str, namespace: &Namespace, files: &Path, arguments: &[&str], longest: Option<Duration>) -> Result<Router, String> {
        let (socket, log) = (files.with_extension("sock"), files.with_extension("log"));
        let failed = |error: std::io::Error| format!("noref at {name}: {error}");
        let program = std::env::current_exe().map_err(failed)?;
        let said = File::create(&log).map_err(failed)?;
        let mut command = Command::new(program);
        // A group of its own: Ctrl-C at the terminal is for the program that made the lab, which then ends it.
        command.arg("run").args(arguments).arg("--socket").arg(&socket).process_group(0);
        if let Some(longest) = longest {
            command.args(["--seconds", &longest.as_secs().to_string()]);
        }
        command.stdin(Stdio::null()).stdout(said.try_clone().map_err(failed)?).stderr(said);
        let child = namespace.inside(|| command.spawn().map_err(failed))?;
        let mut router = Router { child: Some(child), socket };
        router.wait().map_err(|why| format!("noref at {name} {why}:\n{}", indented(&log)))?;
        Ok(router)
    }

    /// Its control socket is there early; it answers when it forwards.
    fn wait(&mut self) -> Result<(), String> {
        let begin = Instant::now();
        while self.forwarded().is_err() {
            if let Some(status) = self.child.as_mut().and_then(|child| child.try_wait().ok().flatten()) {
                return Err(format!("did not start ({status}). It said"));
            }
            if begin.elapsed() > PATIENCE {
                return Err(format!("did not start within {} s. It said", PATIENCE.as_secs()));
            }
            thread::sleep(Duration::from_millis(10));
        }
        Ok(())
    }

    /// Its control socket.
    pub fn socket(&self) -> &Path {
        &self.socket
    }

    /// How many packets it has forwarded so far, as `noref show counters` has it.
    ///
    /// # Errors
    /// When it is gone.
    pub fn forwarded(&self) -> Result<u64, Failure> {
        let mut packets = 0;
        self.show(What::Counters, |body| {
            if let Body::Counters(rows) = body {
                packets += rows.iter().filter(|row| row.port.is_none() && row.counter == "forwarded").map(|row| row.value).sum::<u64>();
            }
        })?;
        Ok(packets)
    }

    /// Its workers, as `noref show workers` has them.
    ///
    /// # Errors
    /// When it is gone.
    pub fn workers(&self) -> Result<Vec<WorkerRow>, Failure> {
        let mut workers = Vec::new();
        self.show(What::Workers, |body| {
            if let Body::Workers(rows) = body {
                workers.extend(rows);
            }
        })?;
        Ok(workers)
    }

    /// Asks for a table; `take` gets its parts.
    fn show(&self, what: What, mut take: impl FnMut(Body)) -> Result<(), Failure> {
        let mut client = Client::connect(&self.socket)?;
        client.wait_for(Some(PATIENCE))?;
        client.ask(&Request::Show(Show { what }))?;
        loop {
            let (_, reply) = client.next()?;
            take(reply.body);
            if !reply.more {
                return Ok(());
            }
        }
    }

    /// Kills it, as nothing can be caught or tidied up by.
    pub fn kill(&mut self) {
        if let Some(child) = &mut self.child {
            // One that ended already need not be killed.
            let _ = child.kill();
        }
    }

    /// Lets it run on.
    pub fn leave(mut self) {
        self.child = None;
    }
}

impl Drop for Router {
    fn drop(&mut self) {
        self.kill();
        if let Some(child) = &mut self.child {
            let _ = child.wait();
        }
    }
}

fn indented(log: &Path) -> String {
    let text = fs::read_to_string(log).unwrap_or_default();
    text.lines().map(|line| format!("  {line}\n")).collect()
}

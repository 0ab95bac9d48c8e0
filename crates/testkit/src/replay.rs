//! Runs `noref replay` as an operator does, with a limit on its time.

use serde_json::Value;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::atomic::{AtomicU32, Ordering};
use std::thread;
use std::time::{Duration, Instant};

/// One run: arguments before it starts.
#[derive(Debug)]
pub struct Replay {
    program: PathBuf,
    arguments: Vec<String>,
    limit: Duration,
}

/// How a run ended.
#[derive(Debug)]
pub struct Outcome {
    /// The exit status; none when a signal or the limit ended it.
    pub status: Option<i32>,
    /// True when the run took longer than it may and was ended.
    pub timed_out: bool,
    /// What it printed.
    pub stdout: String,
    /// What it complained about.
    pub stderr: String,
}

impl Replay {
    /// A run of `program` with a network file, writing to the directory `tx`.
    pub fn new(program: &Path, net: &Path, tx: &Path) -> Replay {
        let arguments = ["replay", "--net", &net.to_string_lossy(), "--tx", &tx.to_string_lossy()].map(String::from).to_vec();
        Replay { program: program.to_owned(), arguments, limit: Duration::from_secs(120) }
    }

    /// Feeds a capture to a port.
    pub fn rx(mut self, port: &str, file: &Path) -> Replay {
        self.arguments.extend(["--rx".into(), format!("{port}={}", file.display())]);
        self
    }

    /// Declares ports; those with input may be among them.
    pub fn ports(mut self, ports: &[&str]) -> Replay {
        for port in ports {
            self.arguments.extend(["--port".into(), (*port).to_owned()]);
        }
        self
    }

    /// Adds one more argument.
    pub fn argument(mut self, argument: &str) -> Replay {
        self.arguments.push(argument.to_owned());
        self
    }

    /// Ends the run after `limit`; 120 s unless told.
    pub fn limit(mut self, limit: Duration) -> Replay {
        self.limit = limit;
        self
    }

    /// Runs it to its end or to the limit.
    ///
    /// # Panics
    /// When the program cannot be started.
    pub fn run(&self) -> Outcome {
        let scratch = Scratch::new();
        let (stdout, stderr) = (scratch.path().join("stdout"), scratch.path().join("stderr"));
        let create = |path: &Path| Stdio::from(fs::File::create(path).unwrap_or_else(|e| panic!("{}: {e}", path.display())));
        let mut child = Command::new(&self.program)
            .args(&self.arguments)
            .stdin(Stdio::null())
            .stdout(create(&stdout))
            .stderr(create(&stderr))
            .spawn()
            .unwrap_or_else(|e| panic!("{}: {e}", self.program.display()));
        let begin = Instant::now();
        let mut pause = Duration::from_millis(1);
        let (status, timed_out) = loop {
            match child.try_wait() {
                Ok(Some(status)) => break (status.code(), false),
                Ok(None) if begin.elapsed() < self.limit => thread::sleep(pause),
                // The limit is reached or the child cannot be asked: either way it has to go.
                Ok(None) | Err(_) => {
                    let _ = child.kill();
                    let _ = child.wait();
                    break (None, true);
                }
            }
            pause = (pause * 2).min(Duration::from_millis(20));
        };
        let text = |path: &Path| String::from_utf8_lossy(&fs::read(path).unwrap_or_default()).into_owned();
        Outcome { status, timed_out, stdout: text(&stdout), stderr: text(&stderr) }
    }
}

impl Outcome {
    /// True when the run completed.
    pub fn completed(&self) -> bool {
        self.status == Some(0)
    }

    /// What `--json` printed; none when it is not one JSON document.
    pub fn json(&self) -> Option<Value> {
        serde_json::from_str(&self.stdout).ok()
    }
}

/// A directory that is removed when it goes out of scope.
#[derive(Debug)]
pub struct Scratch(PathBuf);

impl Scratch {
    /// A new empty directory for temporary files.
    ///
    /// # Panics
    /// When it cannot be made.
    #[expect(clippy::new_without_default, reason = "making a directory is no default value")]
    pub fn new() -> Scratch {
        static NUMBER: AtomicU32 = AtomicU32::new(0);
        let name = format!("noref-test-{}-{}", std::process::id(), NUMBER.fetch_add(1, Ordering::Relaxed));
        let path = std::env::temp_dir().join(name);
        fs::create_dir_all(&path).unwrap_or_else(|e| panic!("{}: {e}", path.display()));
        Scratch(path)
    }

    /// Where it is.
    pub fn path(&self) -> &Path {
        &self.0
    }
}

impl Drop for Scratch {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.0);
    }
}

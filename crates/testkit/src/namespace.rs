//! Network namespaces without a name: gone with the values, processes and sockets that keep them, however a test ends.

use nix::sched::{CloneFlags, setns, unshare};
use std::fs::{self, File};
use std::os::fd::AsRawFd;
use std::path::PathBuf;
use std::process::{Command, Stdio};
use std::thread;

/// A network namespace, kept by this value.
#[derive(Debug)]
pub struct Namespace(File);

impl Namespace {
    /// A new one, with nothing in it but a loopback device that is down.
    ///
    /// # Errors
    /// What the kernel complained about: without root, that one may not.
    pub fn new() -> Result<Namespace, String> {
        let make = || {
            unshare(CloneFlags::CLONE_NEWNET).map_err(|error| format!("a network namespace: {error}"))?;
            File::open("/proc/thread-self/ns/net").map(Namespace).map_err(|error| error.to_string())
        };
        thread::scope(|scope| scope.spawn(make).join().expect("no panic"))
    }

    /// Runs `f` in a thread that is in the namespace. Programs started there, and sockets opened, are in it too.
    ///
    /// # Panics
    /// When `f` does.
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

    /// What iproute2 takes for `netns` where a device is to be in the namespace, as long as this process lives.
    pub fn path(&self) -> PathBuf {
        PathBuf::from(format!("/proc/{}/fd/{}", std::process::id(), self.0.as_raw_fd()))
    }

    /// Runs `ip` with these words.
    ///
    /// # Errors
    /// What it complained about.
    pub fn ip(&self, words: &str) -> Result<String, String> {
        self.run("ip", words)
    }

    /// Runs a program with these words; what it printed.
    ///
    /// # Errors
    /// What it complained about.
    pub fn run(&self, program: &str, words: &str) -> Result<String, String> {
        self.run_with(program, &words.split_whitespace().collect::<Vec<_>>())
    }

    /// Runs a program with these arguments; what it printed.
    ///
    /// # Errors
    /// What it complained about.
    pub fn run_with(&self, program: &str, arguments: &[&str]) -> Result<String, String> {
        let output = self
            .inside(|| Command::new(program).args(arguments).stdin(Stdio::null()).output())
            .map_err(|error| format!("{program}: {error}"))?;
        match output.status.success() {
            true => Ok(String::from_utf8_lossy(&output.stdout).into_owned()),
            false => Err(format!("{program} {}: {}", arguments.join(" "), String::from_utf8_lossy(&output.stderr).trim_end())),
        }
    }

    /// Sets a sysctl under `net`, named as a path: `ipv4/ip_forward`.
    ///
    /// # Errors
    /// What the kernel complained about.
    pub fn set(&self, name: &str, value: &str) -> Result<(), String> {
        self.inside(|| fs::write(format!("/proc/sys/net/{name}"), value)).map_err(|error| format!("sysctl {name}: {error}"))
    }
}

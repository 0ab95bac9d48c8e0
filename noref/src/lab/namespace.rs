//! Network namespaces with names, so that an operator can look into them with `ip netns exec`.

use std::fs::{self, File};
use std::io;
use std::process::{Command, Stdio};
use std::thread;

use nix::sched::{CloneFlags, setns, unshare};

use crate::threads::join;

/// Whether this process may make namespaces.
///
/// # Errors
/// Why not.
pub fn possible() -> Result<(), String> {
    // A thread of its own goes into the namespace, and the namespace goes with it.
    let outcome = thread::spawn(|| unshare(CloneFlags::CLONE_NEWNET)).join();
    match outcome {
        Ok(Ok(())) => Ok(()),
        Ok(Err(error)) => Err(error.desc().to_owned()),
        Err(_) => Err("no thread could be started".to_owned()),
    }
}

/// A network namespace; gone with this value, unless it was left.
pub struct Namespace {
    name: String,
    file: File,
    left: bool,
}

impl Namespace {
    /// A new one of this name.
    ///
    /// # Errors
    /// What iproute2 or the kernel complained about.
    pub fn new(name: String) -> Result<Namespace, String> {
        command("ip", &["netns", "add", &name])?;
        match open(&name) {
            Ok(file) => Ok(Namespace { name, file, left: false }),
            Err(error) => {
                let _ = command("ip", &["netns", "del", &name]);
                Err(format!("network namespace {name}: {error}"))
            }
        }
    }

    /// Its name.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// Leaves it there.
    pub fn leave(mut self) {
        self.left = true;
    }

    /// Runs `f` in a thread that is in the namespace. Programs started there, and sockets opened, are in it too.
    ///
    /// # Errors
    /// Those of `f`, or that it may not be entered.
    pub fn inside<T: Send>(&self, f: impl FnOnce() -> Result<T, String> + Send) -> Result<T, String> {
        let enter = || {
            setns(&self.file, CloneFlags::CLONE_NEWNET).map_err(|error| format!("network namespace {}: {error}", self.name))?;
            f()
        };
        thread::scope(|scope| join(scope.spawn(enter)))
    }

    /// Does lines as an operator types them: `ip …`, `sysctl -w NAME=VALUE`.
    ///
    /// # Errors
    /// The first line that could not be done, and why.
    pub fn configure(&self, lines: &str) -> Result<(), String> {
        self.inside(|| {
            let lines = lines.lines().map(str::trim).filter(|line| !line.is_empty() && !line.starts_with('#'));
            lines.map(|line| line.split_whitespace().collect::<Vec<_>>()).try_for_each(|words| match words.as_slice() {
                ["ip", arguments @ ..] => command("ip", arguments).map(drop),
                ["sysctl", "-w", setting] => set(setting),
                _ => Err(format!("neither ip nor sysctl -w: {}", words.join(" "))),
            })
        })
        .map_err(|why| format!("{}: {why}", self.name))
    }
}

impl Drop for Namespace {
    fn drop(&mut self) {
        if !self.left {
            // One that somebody removed meanwhile needs no removing.
            let _ = command("ip", &["netns", "del", &self.name]);
        }
    }
}

/// The namespace that iproute2 calls so.
fn open(name: &str) -> io::Result<File> {
    File::open(format!("/run/netns/{name}")).or_else(|_| File::open(format!("/var/run/netns/{name}")))
}

/// Sets `net.ipv4.ip_forward=1`.
fn set(setting: &str) -> Result<(), String> {
    let Some((name, value)) = setting.split_once('=') else { return Err(format!("sysctl -w {setting}: write NAME=VALUE")) };
    fs::write(format!("/proc/sys/{}", name.replace('.', "/")), value).map_err(|error| format!("sysctl -w {setting}: {error}"))
}

/// Runs a program; what it printed.
///
/// # Errors
/// What it complained about.
pub fn command(program: &str, arguments: &[&str]) -> Result<String, String> {
    let output = Command::new(program).args(arguments).stdin(Stdio::null()).output().map_err(|error| match error.kind() {
        io::ErrorKind::NotFound => format!("{program}: not found; install iproute2 (the package iproute2 or iproute)"),
        _ => format!("{program}: {error}"),
    })?;
    match output.status.success() {
        true => Ok(String::from_utf8_lossy(&output.stdout).into_owned()),
        false => Err(format!("{program} {}: {}", arguments.join(" "), String::from_utf8_lossy(&output.stderr).trim())),
    }
}

//! Programs that a test starts, and tests that cannot be run here.

use std::process::{Child, ExitStatus};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::thread;
use std::time::{Duration, Instant};

use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;

/// Sends a process a signal by name: `TERM`, `STOP`.
///
/// # Panics
/// When there is no such signal or no such process.
pub fn signal(process: u32, name: &str) {
    let signal: Signal = format!("SIG{name}").parse().unwrap_or_else(|_| panic!("there is no signal {name}"));
    kill(Pid::from_raw(process as i32), signal).unwrap_or_else(|error| panic!("kill -{name} {process}: {error}"));
}

/// Memory that a process has now, in bytes.
///
/// # Panics
/// When there is no such process.
pub fn memory(process: u32) -> u64 {
    let status = std::fs::read_to_string(format!("/proc/{process}/status")).expect("it runs");
    let line = status.lines().find(|line| line.starts_with("VmRSS:")).unwrap_or_default();
    line.split_whitespace().nth(1).and_then(|kib| kib.parse::<u64>().ok()).expect("a number of KiB") * 1024
}

/// Waits for a program's end; none when it goes on for longer than this.
///
/// # Panics
/// When it cannot be waited for.
pub fn wait(child: &mut Child, patience: Duration) -> Option<ExitStatus> {
    let begin = Instant::now();
    loop {
        let status = child.try_wait().expect("it can be asked");
        if status.is_some() || begin.elapsed() > patience {
            return status;
        }
        thread::sleep(Duration::from_millis(5));
    }
}

/// True when a program said that the kernel does not let it, or cannot do what it takes: no fault of the program's.
pub fn is_refused(said: &str) -> bool {
    ["Operation not permitted", "Permission denied", "not supported", "not implemented"].iter().any(|why| said.contains(why))
}

/// Says that a test cannot be run here.
///
/// # Panics
/// Where it must be run: in the continuous integration.
pub fn skipped(why: &str) {
    assert!(std::env::var_os("CI").is_none_or(|ci| ci.is_empty()), "{why}");
    eprintln!("skipped: {why}");
}

/// Held by a test that is not to run beside others of its binary: they would disturb each other.
pub fn alone() -> MutexGuard<'static, ()> {
    static ALONE: Mutex<()> = Mutex::new(());
    // One that failed leaves nothing behind that matters.
    ALONE.lock().unwrap_or_else(PoisonError::into_inner)
}

//! `noref demo --down`: takes down labs that were kept, or left by a demo that was killed.

use std::collections::BTreeSet;
use std::fs;
use std::path::Path;
use std::thread;
use std::time::{Duration, Instant};

use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;

use super::lab::PREFIX;
use crate::failure::Failure;
use crate::lab::namespace::command;
use crate::stdout::Stdout;

/// How long a router may take to end when it is told to.
const PATIENCE: Duration = Duration::from_secs(3);

/// Takes down every lab whose demo is over.
///
/// # Errors
/// When namespaces cannot be looked at or removed.
pub fn run() -> Result<(), Failure> {
    let mut stdout = Stdout::new();
    let namespaces = namespaces().map_err(Failure::unusable)?;
    let labs: BTreeSet<i32> = namespaces.iter().filter_map(|name| maker(name)).chain(directories()).collect();
    if labs.is_empty() {
        stdout.line("there is no lab to be taken down")?;
    }
    for lab in labs {
        if is_noref(lab) {
            stdout.line(format_args!("{PREFIX}{lab} is a demo that runs: Ctrl-C there takes its lab down"))?;
            continue;
        }
        let own: Vec<&String> = namespaces.iter().filter(|name| maker(name) == Some(lab)).collect();
        end_routers(&own).map_err(Failure::incomplete)?;
        own.iter().try_for_each(|name| command("ip", &["netns", "del", name]).map(drop)).map_err(Failure::incomplete)?;
        let directory = format!("/run/{PREFIX}{lab}");
        if Path::new(&directory).exists() {
            fs::remove_dir_all(&directory).map_err(|error| Failure::incomplete(format!("{directory}: {error}")))?;
        }
        stdout.line(format_args!("{PREFIX}{lab} is taken down"))?;
    }
    stdout.flush()
}

/// All namespaces of labs.
fn namespaces() -> Result<Vec<String>, String> {
    let list = command("ip", &["netns", "list"])?;
    let names = list.lines().filter_map(|line| line.split_whitespace().next());
    Ok(names.filter(|name| name.starts_with(PREFIX)).map(String::from).collect())
}

/// The labs that have a directory for their sockets.
fn directories() -> impl Iterator<Item = i32> {
    let entries = fs::read_dir("/run").into_iter().flatten();
    entries.filter_map(|entry| maker(entry.ok()?.file_name().to_str()?))
}

/// The process that made what is called so.
fn maker(name: &str) -> Option<i32> {
    let rest = name.strip_prefix(PREFIX)?;
    rest.split('-').next()?.parse().ok()
}

/// Ends the routers in these namespaces. What else an operator runs there is left alone.
fn end_routers(namespaces: &[&String]) -> Result<(), String> {
    let mut routers = Vec::new();
    for name in namespaces {
        let list = command("ip", &["netns", "pids", name])?;
        routers.extend(list.split_whitespace().filter_map(|pid| pid.parse().ok()).filter(|pid| is_noref(*pid)));
    }
    let tell = |routers: &[i32], signal| {
        for router in routers {
            // It may have ended by itself.
            let _ = kill(Pid::from_raw(*router), signal);
        }
    };
    tell(&routers, Signal::SIGTERM);
    let begin = Instant::now();
    while begin.elapsed() < PATIENCE && !routers.is_empty() {
        thread::sleep(Duration::from_millis(20));
        routers.retain(|router| is_noref(*router));
    }
    tell(&routers, Signal::SIGKILL);
    Ok(())
}

/// Whether this program is what runs under this number.
fn is_noref(process: i32) -> bool {
    let name = fs::read_to_string(format!("/proc/{process}/comm"));
    // One that ended and was not waited for has no files any more.
    name.is_ok_and(|name| name.trim_end() == env!("CARGO_BIN_NAME")) && fs::read_link(format!("/proc/{process}/exe")).is_ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_lab_is_known_by_the_process_that_made_it() {
        assert_eq!(maker("noref-demo-4711-red-west"), Some(4711));
        assert_eq!(maker("noref-demo-4711"), Some(4711));
        assert_eq!((maker("noref-demo-x-west"), maker("other-4711"), maker("noref-demo-")), (None, None, None));
    }
}

//! `noref demo`: what it prints, what it leaves, and what it does where it may not make a lab. And what is shipped for service managers.

mod packaging;

use std::fs;
use std::io::{BufRead, BufReader, Read};
use std::os::unix::fs::PermissionsExt;
use std::os::unix::process::CommandExt;
use std::path::Path;
use std::process::{Command, Output, Stdio};

use testkit::program;
use testkit::replay::Scratch;

fn demo(arguments: &[&str]) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_noref"));
    command.arg("demo").args(arguments).stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
    command
}

/// Runs it to its end; its number, and what it printed. None, with a word why, where no lab can be made.
fn run(arguments: &[&str]) -> Option<(u32, Output)> {
    let child = demo(arguments).spawn().unwrap();
    let (id, output) = (child.id(), child.wait_with_output().unwrap());
    let (stdout, stderr) = (text(&output.stdout), text(&output.stderr));
    let refused = ["not supported", "not permitted", "Permission denied", "not found; the demo needs iproute2", "Unknown device type"];
    match stdout.starts_with("noref demo makes a lab") || refused.iter().any(|why| stderr.contains(why)) {
        false => Some((id, output)),
        true => skip(&format!("{stdout}{stderr}")),
    }
}

fn skip<T>(why: &str) -> Option<T> {
    program::skipped(&format!("{why} (this needs root, iproute2, and a kernel with veth, AF_XDP and SRv6)"));
    None
}

fn text(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}

/// What is there of the lab that process `id` made.
fn remains(id: u32) -> Vec<String> {
    let lab = format!("noref-demo-{id}");
    let names = |directory: &str| -> Vec<String> {
        let entries = fs::read_dir(directory).into_iter().flatten();
        entries.filter_map(|entry| entry.ok()?.file_name().into_string().ok()).filter(|name| name.starts_with(&lab)).collect()
    };
    [names("/run/netns"), names("/run"), names("/tmp")].concat()
}

/// Numbers and widths of columns differ from run to run.
fn masked(text: &str) -> Vec<String> {
    let mask = |word: &str| {
        let mut masked = String::new();
        for letter in word.chars() {
            match letter.is_ascii_digit() {
                true if masked.ends_with('#') => {}
                true => masked.push('#'),
                false => masked.push(letter),
            }
        }
        masked
    };
    text.trim_end().lines().map(|line| line.split_whitespace().map(mask).collect::<Vec<_>>().join(" ")).collect()
}

#[test]
fn the_first_command_of_the_readme_prints_what_the_readme_shows_but_for_numbers() {
    let readme = fs::read_to_string(testkit::root().join("README.md")).unwrap();
    let (_, block) = readme.split_once("```console\n").expect("a console block");
    let shown = block.strip_prefix("$ cargo run --release -- demo\n").expect("the first command is the demo");
    let (shown, _) = shown.split_once("```").expect("the end of the block");

    // One lab at a time: each has two cores' worth of work in it.
    let _alone = program::alone();
    let Some((id, output)) = run(&[]) else { return };
    assert_eq!(output.status.code(), Some(0), "{}{}", text(&output.stdout), text(&output.stderr));
    assert_eq!(masked(&text(&output.stdout)), masked(shown), "paste the real output into README.md:\n{}", text(&output.stdout));
    assert_eq!(remains(id), [""; 0]);
}

#[test]
fn interrupted_it_takes_the_lab_down_and_says_so() {
    let _alone = program::alone();
    let mut child = demo(&[]).spawn().unwrap();
    let mut stdout = BufReader::new(child.stdout.take().unwrap());
    if !read_until(&mut stdout, "noref routes beside the kernel") {
        let output = child.wait_with_output().unwrap();
        return skip(&text(&output.stderr)).unwrap_or_default();
    }
    program::signal(child.id(), "INT");
    let mut rest = String::new();
    stdout.read_to_string(&mut rest).unwrap();
    let id = child.id();
    let output = child.wait_with_output().unwrap();
    assert_eq!(output.status.code(), Some(1), "{rest}");
    assert!(text(&output.stderr).contains("interrupted: the lab is taken down"), "{}", text(&output.stderr));
    assert_eq!(remains(id), [""; 0]);
}

#[test]
fn a_lab_that_is_kept_forwards_until_it_is_taken_down() {
    let _alone = program::alone();
    let Some((id, output)) = run(&["--keep"]) else { return };
    let said = text(&output.stdout);
    assert_eq!(output.status.code(), Some(0), "{said}{}", text(&output.stderr));
    let (_, command) = said.split_once("noref show ").expect(&said);
    let words = command.lines().next().unwrap().split_whitespace();
    let shown = Command::new(env!("CARGO_BIN_EXE_noref")).arg("show").args(words).output().unwrap();
    assert!(text(&shown.stdout).contains("End.DX4"), "{shown:?}");

    let down = demo(&["--down"]).output().unwrap();
    assert_eq!(down.status.code(), Some(0), "{down:?}");
    assert!(text(&down.stdout).contains(&format!("noref-demo-{id} is taken down")), "{down:?}");
    assert_eq!(remains(id), [""; 0]);
}

#[test]
fn without_privileges_it_says_so_and_replays_the_example() {
    // Nobody else's program may stand where others cannot read.
    let scratch = Scratch::new();
    let program = scratch.path().join("noref");
    fs::copy(env!("CARGO_BIN_EXE_noref"), &program).unwrap();
    fs::set_permissions(scratch.path(), fs::Permissions::from_mode(0o755)).unwrap();
    let mut command = Command::new(program);
    command.arg("demo").current_dir("/").stdin(Stdio::null());
    if fs::metadata("/proc/self").is_ok_and(|me| std::os::unix::fs::MetadataExt::uid(&me) == 0) {
        command.uid(65534).gid(65534);
    }
    let child = command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    let (id, output) = (child.id(), child.wait_with_output().unwrap());
    let said = text(&output.stdout);
    assert_eq!(output.status.code(), Some(0), "{said}{}", text(&output.stderr));
    assert!(said.starts_with("noref demo makes a lab of network namespaces, which takes root, and here it may not: "), "{said}");
    assert!(said.contains("58 packets received, 55 sent, 2 delivered to the host, 6 dropped"), "{said}");
    assert_eq!(remains(id), [""; 0]);
    assert!(!Path::new(&format!("/tmp/noref-demo-{id}")).exists());
}

/// Reads lines up to one that begins so; false when there is none.
fn read_until(stdout: &mut impl BufRead, word: &str) -> bool {
    stdout.lines().map_while(Result::ok).any(|line| line.starts_with(word))
}

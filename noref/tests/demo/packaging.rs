//! The service unit and the settings that are shipped with it fit the program.

use std::fs;
use std::process::{Command, Stdio};

use testkit::namespace::Namespace;
use testkit::replay::Scratch;

use crate::{skip, text};

fn unit() -> String {
    fs::read_to_string(testkit::root().join("packaging/noref.service")).unwrap()
}

/// The value of a setting of the unit.
fn setting(name: &str) -> String {
    let unit = unit();
    let mut values = unit.lines().filter_map(|line| line.strip_prefix(name)?.strip_prefix('='));
    values.next().unwrap_or_else(|| panic!("{name} in the unit")).to_owned()
}

#[test]
fn the_shipped_settings_are_understood_up_to_their_interfaces() {
    let settings = testkit::root().join("packaging/noref.toml");
    let mut command = Command::new(env!("CARGO_BIN_EXE_noref"));
    command.args(["run", "--seconds", "1", "--config"]).arg(settings);
    // Where there is no eth0, and without root no harm is done either.
    let output = match Namespace::new() {
        Ok(namespace) => namespace.inside(|| command.output().unwrap()),
        Err(_) => command.output().unwrap(),
    };
    let said = text(&output.stderr);
    assert_eq!(output.status.code(), Some(2), "{said}");
    assert!(said.contains("eth0") && !said.contains("noref.toml"), "{said}");
}

#[test]
fn the_capabilities_of_the_unit_are_enough() {
    let make = || {
        let namespace = Namespace::new()?;
        namespace.ip("link add e0 type veth peer name e1")?;
        namespace.ip("link set e0 up")?;
        namespace.ip("link set e1 up")?;
        Ok(namespace)
    };
    let namespace: Namespace = match make() {
        Ok(namespace) => namespace,
        Err(why) => {
            let why: String = why;
            return skip(&why).unwrap_or_default();
        }
    };
    let scratch = Scratch::new();
    let capabilities: String =
        setting("CapabilityBoundingSet").split_whitespace().map(|name| format!(",+{}", &name["CAP_".len()..])).collect();
    let limit = format!("--memlock={}", setting("LimitMEMLOCK").replace("infinity", "unlimited"));
    let lifted = Command::new("prlimit").args([&limit, "true"]).output().is_ok_and(|output| output.status.success());
    // Where the limit may not be lifted, as in some containers, the capability to ignore it stands in for that.
    let (program, instead): (&[&str], _) = if lifted { (&["prlimit", &limit, "setpriv"], "") } else { (&["setpriv"], ",+ipc_lock") };
    let mut command = Command::new(program[0]);
    command.args(&program[1..]);
    command.args(["--no-new-privs", &format!("--bounding-set=-all{}{instead}", capabilities.to_lowercase())]);
    command.arg(env!("CARGO_BIN_EXE_noref")).args(["run", "--mirror", "--port", "e0", "e1", "--seconds", "1", "--group", "0", "--socket"]);
    command.arg(scratch.path().join("noref.sock")).stdin(Stdio::null());
    let output = namespace.inside(|| command.output().expect("prlimit and setpriv are in util-linux"));
    let said = text(&output.stderr);
    assert!(output.status.success() && said.contains("noref: running: "), "{said}");
    assert!(!said.contains("could not be given up"), "{said}");
}

#[test]
fn the_unit_says_what_the_program_does() {
    assert_eq!(setting("Type"), "notify");
    assert!(setting("ExecStart").ends_with(" run --config /etc/noref/noref.toml"));
    assert!(setting("ExecReload").contains("-HUP"));
    // The control socket's directory.
    assert_eq!(setting("RuntimeDirectory"), "noref");
    match Command::new("systemd-analyze").arg("--version").output() {
        Ok(version) if version.status.success() => verify(),
        _ => eprintln!("skipped: systemd-analyze is not here"),
    }
}

/// systemd itself reads the unit, with a program that is there.
fn verify() {
    let scratch = Scratch::new();
    let file = scratch.path().join("noref.service");
    fs::write(&file, unit().replace("/usr/local/bin/noref", env!("CARGO_BIN_EXE_noref"))).unwrap();
    let output = Command::new("systemd-analyze").arg("verify").arg(&file).output().unwrap();
    let complaints: Vec<_> = text(&output.stderr).lines().filter(|line| line.contains("noref")).map(String::from).collect();
    assert!(output.status.success() && complaints.is_empty(), "{complaints:?}");
}

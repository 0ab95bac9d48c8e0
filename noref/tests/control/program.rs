//! The program as a client.

use std::path::Path;
use std::process::{Child, Command, Output, Stdio};
use std::time::Duration;

use serde_json::Value;
use testkit::program;

/// How long a test waits for what is to come.
pub const PATIENCE: Duration = Duration::from_secs(10);

/// Runs a command to its end.
pub fn noref(socket: &Path, arguments: &[&str]) -> Output {
    client(socket, arguments).wait_with_output().unwrap()
}

/// What a command prints that succeeds.
pub fn printed(socket: &Path, arguments: &[&str]) -> String {
    let output = noref(socket, arguments);
    assert!(output.status.success(), "{arguments:?}: {}", String::from_utf8_lossy(&output.stderr));
    String::from_utf8(output.stdout).expect("text")
}

/// What the socket answers to `show`, its first line.
pub fn asked(socket: &Path, what: &str) -> Value {
    serde_json::from_str(printed(socket, &["show", what, "--json"]).lines().next().expect("a line")).expect("JSON")
}

/// Starts a command that goes on.
pub fn client(socket: &Path, arguments: &[&str]) -> Child {
    let mut command = Command::new(env!("CARGO_BIN_EXE_noref"));
    command.args(arguments).arg("--socket").arg(socket).stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
    command.spawn().expect("the program is built")
}

/// Waits for its end.
pub fn ended(mut child: Child) -> Output {
    if program::wait(&mut child, PATIENCE).is_none() {
        child.kill().unwrap();
        panic!("it does not end: {:?}", child.wait_with_output());
    }
    child.wait_with_output().unwrap()
}

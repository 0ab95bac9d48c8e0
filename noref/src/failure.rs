//! Why a command did not complete, and the exit status that says so.

use std::fmt;
use std::process::ExitCode;

/// A message for the operator and an exit status.
#[derive(Debug, PartialEq, Eq)]
pub struct Failure {
    status: u8,
    message: String,
}

impl Failure {
    /// Arguments, the network file or a capture could not be used, and nothing was written: exit status 2.
    pub fn unusable(why: impl fmt::Display) -> Failure {
        Failure { status: 2, message: why.to_string() }
    }

    /// The run began and could not be completed: exit status 1.
    pub fn incomplete(why: impl fmt::Display) -> Failure {
        Failure { status: 1, message: why.to_string() }
    }

    /// No router answers at the control socket: exit status 3.
    pub fn absent(why: impl fmt::Display) -> Failure {
        Failure { status: 3, message: why.to_string() }
    }

    pub fn status(&self) -> ExitCode {
        ExitCode::from(self.status)
    }
}

impl fmt::Display for Failure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.message)
    }
}

//! Why a command did not complete, and the exit status that says so.

use std::fmt;
use std::process::ExitCode;

use crate::stderr;

/// A message for the operator and an exit status.
#[derive(Debug, PartialEq, Eq)]
pub struct Failure {
    status: u8,
    message: String,
    /// Said without the program's name in front.
    plain: bool,
}

impl Failure {
    /// Arguments, the network file or a capture could not be used, and nothing was written: exit status 2.
    pub fn unusable(why: impl fmt::Display) -> Failure {
        Failure { status: 2, message: why.to_string(), plain: false }
    }

    /// The run began and could not be completed: exit status 1.
    pub fn incomplete(why: impl fmt::Display) -> Failure {
        Failure { status: 1, message: why.to_string(), plain: false }
    }

    /// No router answers at the control socket: exit status 3.
    pub fn absent(why: impl fmt::Display) -> Failure {
        Failure { status: 3, message: why.to_string(), plain: false }
    }

    /// A question has no answer, as iproute2 says and does it: exit status 2.
    pub fn no_answer(why: impl fmt::Display) -> Failure {
        Failure { plain: true, ..Failure::unusable(why) }
    }

    /// Tells the operator.
    pub fn say(&self) {
        if self.plain { stderr::tell(self) } else { stderr::say(self) }
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

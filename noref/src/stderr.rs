//! Standard error, which may be a pipe whose reader is gone.

use std::fmt::Display;
use std::io::{self, Write};

/// Tells the operator something. Where nobody can be told, the exit status still says how it went, so an error here is none (`eprintln!` panics).
pub fn say(message: impl Display) {
    tell(format_args!("noref: {message}"));
}

/// As [`say`], without the program's name.
pub fn tell(message: impl Display) {
    let _ = writeln!(io::stderr(), "{message}");
}

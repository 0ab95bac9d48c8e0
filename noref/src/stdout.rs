//! Standard output, which may be a pipe whose reader has seen enough.

use std::fmt::Display;
use std::io::{self, BufWriter, ErrorKind, StdoutLock, Write};

use crate::failure::Failure;
use crate::report::Report;

/// Standard output, buffered. When its reader goes (`| head`), the rest is not printed and the run goes on.
pub struct Stdout {
    output: Option<BufWriter<StdoutLock<'static>>>,
}

impl Stdout {
    pub fn new() -> Stdout {
        Stdout { output: Some(BufWriter::new(io::stdout().lock())) }
    }

    /// Prints a line.
    ///
    /// # Errors
    /// Those of the output, but for a reader that is gone.
    pub fn line(&mut self, line: impl Display) -> Result<(), Failure> {
        self.print(|output| writeln!(output, "{line}"))
    }

    /// Prints the result and everything before it.
    ///
    /// # Errors
    /// As [`Stdout::line`].
    pub fn finish(mut self, json: bool, report: &Report) -> Result<(), Failure> {
        self.print(|output| {
            match json {
                true => {
                    serde_json::to_writer_pretty(&mut *output, report)?;
                    writeln!(output)?;
                }
                false => write!(output, "{report}")?,
            }
            output.flush()
        })
    }

    /// Hands over what was printed so far.
    ///
    /// # Errors
    /// As [`Stdout::line`].
    pub fn flush(&mut self) -> Result<(), Failure> {
        self.print(|output| output.flush())
    }

    /// True when its reader is gone.
    pub fn is_closed(&self) -> bool {
        self.output.is_none()
    }

    /// Prints what `write` writes.
    ///
    /// # Errors
    /// As [`Stdout::line`].
    pub fn print(&mut self, write: impl FnOnce(&mut BufWriter<StdoutLock<'static>>) -> io::Result<()>) -> Result<(), Failure> {
        let Some(output) = &mut self.output else { return Ok(()) };
        match write(output) {
            Ok(()) => Ok(()),
            Err(error) if error.kind() == ErrorKind::BrokenPipe => {
                self.output = None;
                Ok(())
            }
            Err(error) => Err(Failure::incomplete(format!("standard output: {error}"))),
        }
    }
}

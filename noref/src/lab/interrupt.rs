//! Signals that end a lab early.

use port::live::{Signal, Signals};

use crate::failure::Failure;

/// From here on signals wait until they are looked for, so that a lab is taken down first.
pub struct Interrupt(Signals);

impl Interrupt {
    /// Begins to keep them.
    ///
    /// # Errors
    /// When the kernel refuses.
    pub fn new() -> Result<Interrupt, Failure> {
        Signals::new().map(Interrupt).map_err(Failure::unusable)
    }

    /// Whether one has come.
    ///
    /// # Errors
    /// That one has.
    pub fn look(&self) -> Result<(), Failure> {
        match self.0.take() {
            Ok(Some(Signal::End)) => Err(Failure::incomplete("interrupted: the lab is taken down")),
            // A hangup of the terminal that it prints to.
            Ok(Some(Signal::Reload)) => Err(Failure::incomplete("the terminal is gone: the lab is taken down")),
            Ok(None) => Ok(()),
            Err(error) => Err(Failure::incomplete(format!("waiting for signals: {error}"))),
        }
    }
}

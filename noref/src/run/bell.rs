//! What wakes a thread that waits in `poll(2)`: a bell, rung as often as one likes and heard once.

use std::io::{self, Read, Write};
use std::os::fd::{AsFd, BorrowedFd};
use std::os::unix::net::UnixStream;

/// The end that rings.
pub struct Bell(UnixStream);

/// The end that can be read when it was rung.
pub struct Ear(UnixStream);

/// Both ends.
///
/// # Errors
/// When there are no descriptors left.
pub fn bell() -> io::Result<(Bell, Ear)> {
    let (here, there) = UnixStream::pair()?;
    here.set_nonblocking(true)?;
    there.set_nonblocking(true)?;
    Ok((Bell(here), Ear(there)))
}

impl Bell {
    /// Wakes whoever waits, or is going to.
    pub fn ring(&self) {
        // When there is no room, it has been rung often enough.
        let _ = (&self.0).write(&[0]);
    }
}

impl Ear {
    /// Takes in all rings so far: it can be read again after the next one.
    pub fn hear(&mut self) {
        let mut rings = [0; 64];
        while matches!(self.0.read(&mut rings), Ok(1..)) {}
    }
}

impl AsFd for Ear {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.0.as_fd()
    }
}

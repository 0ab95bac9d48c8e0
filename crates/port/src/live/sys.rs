//! System calls as safe functions.

use std::ffi::c_int;
use std::io;

/// The result of a call that returns −1 and sets `errno` when it fails.
pub(super) fn check(result: c_int) -> io::Result<c_int> {
    if result < 0 { Err(io::Error::last_os_error()) } else { Ok(result) }
}

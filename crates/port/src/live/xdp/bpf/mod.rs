//! bpf(2): maps, programs, and the link that holds a program at a device for as long as the process lives.
//!
//! The structures handed to the kernel have no padding, which it would want to be zero.

mod attachment;
mod map;
mod program;

use std::ffi::c_int;
use std::io;
use std::os::fd::{FromRawFd, OwnedFd};

pub use attachment::{Attach, Attachment};
pub use map::{Map, MapKind};
pub use program::Program;

use crate::live::sys;
use crate::live::xdp::AsmError;

/// `BPF_XDP`: where a program is attached.
const ATTACH_XDP: u32 = 37;

/// What the kernel refused, and why.
#[derive(Debug, thiserror::Error)]
pub enum BpfError {
    /// A call failed. Without CAP_BPF and CAP_NET_ADMIN each does.
    #[error("{what}: {source}")]
    Call {
        /// What was to be done.
        what: String,
        /// The kernel's answer.
        source: io::Error,
    },
    /// The kernel did not find the program safe.
    #[error("the kernel refused the program {name}: {source}\n{log}")]
    Verifier {
        /// Name of the program.
        name: String,
        /// The kernel's answer.
        source: io::Error,
        /// The verifier's account, an instruction a line.
        log: String,
    },
}

impl BpfError {
    pub(super) fn call(what: impl Into<String>) -> impl FnOnce(io::Error) -> BpfError {
        let what = what.into();
        |source| BpfError::Call { what, source }
    }

    /// The instructions of `what` are no program.
    pub(in crate::live::xdp) fn assembling(what: &'static str) -> impl FnOnce(AsmError) -> BpfError {
        move |error| BpfError::Call { what: format!("assembling {what}"), source: io::Error::new(io::ErrorKind::InvalidInput, error) }
    }

    /// The kernel's answer.
    pub fn io(&self) -> &io::Error {
        match self {
            BpfError::Call { source, .. } | BpfError::Verifier { source, .. } => source,
        }
    }
}

/// A name as the kernel takes it: letters, digits, `_` and `.`, cut to 15 bytes.
fn short(name: &str) -> [u8; 16] {
    let mut out = [0; 16];
    for (to, from) in out[..15].iter_mut().zip(name.bytes()) {
        *to = if from.is_ascii_alphanumeric() { from } else { b'_' };
    }
    out
}

/// The call, for commands that make a descriptor.
///
/// # Safety
/// As [`bpf`]; and the command's result is a new descriptor.
unsafe fn bpf_new<T>(command: c_int, attributes: &mut T) -> io::Result<OwnedFd> {
    // SAFETY: as the caller promises.
    unsafe { bpf(command, attributes).map(|fd| OwnedFd::from_raw_fd(fd)) }
}

/// The call.
///
/// # Safety
/// `attributes` is the structure of the command, and what its pointers point to has the length that stands beside them (or that the map's keys and
/// values have) and lives through the call.
unsafe fn bpf<T>(command: c_int, attributes: &mut T) -> io::Result<c_int> {
    // SAFETY: the structure has the length given; the rest is the caller's promise.
    let result = unsafe { libc::syscall(libc::SYS_bpf, command, std::ptr::from_mut(attributes), size_of::<T>()) };
    sys::check(result as c_int)
}

/// For tests: none, with a word why, where the kernel lets us not.
#[cfg(test)]
pub(super) fn allowed<T>(result: Result<T, BpfError>) -> Option<T> {
    match result {
        Err(error) if matches!(error.io().raw_os_error(), Some(libc::EPERM | libc::ENOSYS | libc::EOPNOTSUPP)) => {
            eprintln!("skipped: {error} (this needs root and a kernel with BPF)");
            None
        }
        other => Some(other.unwrap()),
    }
}

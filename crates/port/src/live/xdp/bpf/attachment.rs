//! A program at a device.

use std::ffi::c_int;
use std::io;
use std::os::fd::{AsFd, AsRawFd, OwnedFd};

use super::{ATTACH_XDP, BpfError, Program, bpf_new};

// Commands of linux/bpf.h and flags of linux/if_link.h.
const LINK_CREATE: c_int = 28;
const XDP_GENERIC: u32 = 1 << 1;
const XDP_NATIVE: u32 = 1 << 2;

/// Where in the way of a frame a program runs.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum Attach {
    /// In the driver, before the kernel makes a packet of the frame.
    #[default]
    Native,
    /// In the stack, for drivers that cannot: slower, and the MTU does not matter.
    Generic,
    /// In the driver where it can, else in the stack.
    NativeOrGeneric,
}

/// A program at a device. It is taken off when this value is dropped, and when the process dies, however it dies.
#[derive(Debug)]
pub struct Attachment {
    _link: OwnedFd,
    generic: bool,
}

#[repr(C)]
#[derive(Default)]
struct LinkCreate {
    program: u32,
    device: u32,
    attach: u32,
    flags: u32,
    rest: [u32; 8],
}

impl Attachment {
    /// Puts a program at the device with this index of the thread's network namespace.
    ///
    /// # Errors
    /// When another program is there, or the driver refuses; then often because of the MTU, or of offloads that XDP excludes.
    pub fn new(program: &Program, device: u32, how: Attach) -> Result<Attachment, BpfError> {
        let create = |flags| {
            let mut link =
                LinkCreate { program: program.as_fd().as_raw_fd() as u32, device, attach: ATTACH_XDP, flags, ..LinkCreate::default() };
            // SAFETY: the command's structure, without pointers.
            unsafe { bpf_new(LINK_CREATE, &mut link) }
        };
        let native = || create(XDP_NATIVE).map(|link| (link, false));
        let generic = || create(XDP_GENERIC).map(|link| (link, true));
        let created = match how {
            Attach::Native => native(),
            Attach::Generic => generic(),
            Attach::NativeOrGeneric => native().or_else(|error| if is_taken(&error) { Err(error) } else { generic() }),
        };
        let (link, generic) = created.map_err(|error| {
            let hint = match error.raw_os_error() {
                Some(libc::EBUSY | libc::EEXIST) => "another XDP program is there already (`ip link` shows it)",
                Some(libc::EINVAL | libc::ERANGE | libc::EOPNOTSUPP) => {
                    "the driver refuses; lower the MTU (about 3500 on most drivers), switch off LRO, or ask for a generic program"
                }
                Some(libc::ENOSPC) => {
                    "the driver has too few queues (a veth device needs as many to receive on as the other end has to send: ethtool -L), or ask for a \
                     generic program"
                }
                _ => "attaching the XDP program",
            };
            BpfError::call(hint)(error)
        })?;
        Ok(Attachment { _link: link, generic })
    }

    /// True when the program runs in the stack.
    pub fn is_generic(&self) -> bool {
        self.generic
    }
}

fn is_taken(error: &io::Error) -> bool {
    matches!(error.raw_os_error(), Some(libc::EBUSY | libc::EEXIST))
}

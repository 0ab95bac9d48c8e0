//! What a router may do, once it is set up.

use std::io;

use super::sys::check;

/// Capabilities that a running router goes on to need, by their numbers in linux/capability.h: to send and to open ports that come later (CAP_NET_RAW), to
/// ask the kernel for neighbours, to set up devices and to change maps of programs (CAP_NET_ADMIN, CAP_BPF).
const KEPT: [u32; 3] = [12, 13, 39];
/// CAP_IPC_LOCK: to lock memory beyond the limit.
const IPC_LOCK: u32 = 14;
/// `_LINUX_CAPABILITY_VERSION_3`: sets of 64 bits, in two halves.
const VERSION: u32 = 0x2008_0522;

/// Gives up all capabilities of the calling thread, and of those it starts later, but CAP_NET_ADMIN, CAP_NET_RAW, CAP_BPF and, where memory that may be locked
/// is limited, CAP_IPC_LOCK; and the possibility to get others by starting a program. To be called before others run. Those that the thread has not got it is not given.
///
/// # Errors
/// What the kernel says.
pub fn drop_privileges() -> io::Result<()> {
    /// `struct __user_cap_header_struct`.
    #[repr(C)]
    struct Header {
        version: u32,
        thread: i32,
    }
    /// `struct __user_cap_data_struct`: one half of the three sets.
    #[repr(C)]
    #[derive(Clone, Copy, Default)]
    struct Half {
        effective: u32,
        permitted: u32,
        inheritable: u32,
    }
    let header = Header { version: VERSION, thread: 0 };
    let mut halves = [Half::default(); 2];
    let also = (!lock_memory_freely()).then_some(IPC_LOCK);
    // SAFETY: thread 0 is the calling one; the kernel writes two halves, which version 3 has.
    check(unsafe { libc::syscall(libc::SYS_capget, &raw const header, halves.as_mut_ptr()) } as _)?;
    for (number, half) in (0..).zip(&mut halves) {
        let kept = KEPT
            .into_iter()
            .chain(also)
            .filter(|capability| capability / 32 == number)
            .fold(0, |bits, capability| bits | 1 << (capability % 32));
        *half = Half { effective: half.permitted & kept, permitted: half.permitted & kept, inheritable: 0 };
    }
    // SAFETY: no memory is involved.
    check(unsafe { libc::prctl(libc::PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) })?;
    // SAFETY: as above; the kernel reads two halves.
    check(unsafe { libc::syscall(libc::SYS_capset, &raw const header, halves.as_ptr()) } as _).map(|_| ())
}

/// Lifts the limit of memory that may be locked, which the frames' memory of AF_XDP counts towards. False when we may not.
fn lock_memory_freely() -> bool {
    let limit = libc::rlimit { rlim_cur: libc::RLIM_INFINITY, rlim_max: libc::RLIM_INFINITY };
    // SAFETY: the kernel reads one structure.
    unsafe { libc::setrlimit(libc::RLIMIT_MEMLOCK, &raw const limit) == 0 }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_thread_keeps_no_capability_but_those_of_a_running_router() {
        std::thread::spawn(|| {
            drop_privileges().unwrap();
            let status = std::fs::read_to_string("/proc/thread-self/status").unwrap();
            let field = |name| status.lines().find_map(|line| line.strip_prefix(name)).unwrap().trim();
            let kept = KEPT.into_iter().chain([IPC_LOCK]).fold(0_u64, |bits, capability| bits | 1 << capability);
            for name in ["CapEff:", "CapPrm:"] {
                assert_eq!(u64::from_str_radix(field(name), 16).unwrap() & !kept, 0, "{name}");
            }
            assert_eq!(field("NoNewPrivs:"), "1");
        })
        .join()
        .unwrap();
    }
}

//! Ports on the devices of the running kernel.
//!
//! What each can do is told in `docs/ports.md`. All need privileges (CAP_NET_ADMIN, CAP_NET_RAW, CAP_BPF) to be opened and none afterwards.

#[allow(unsafe_code, reason = "system calls")]
mod sys;
pub mod xdp;

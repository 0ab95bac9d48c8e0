//! Packet buffers, and ports that receive and send them: frames in memory, captures, devices of the running kernel, and wrappers that record or spoil
//! what passes through another port.
#![deny(unsafe_code)]

#[allow(unsafe_code, reason = "reads a packet's bytes without checking bounds; its head says why it may")]
mod buf;
pub mod capture;
mod fault;
#[cfg(target_os = "linux")]
pub mod live;
mod memory;
mod port;
mod record;
mod time;

pub use buf::{Buf, HEADROOM, Pool};
pub use fault::{FaultInjector, Faults};
pub use memory::{MemoryPort, Sent};
pub use port::{Counters, Link, Port, Received};
pub use record::Recorder;
pub use time::Time;

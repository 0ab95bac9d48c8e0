//! Ports on the devices of the running kernel.
//!
//! [`LiveDevice`] opens a device the best way there is; [`XdpDevice`], [`PacketPort`] and [`TapPort`] are the ways. [`memif`] shares
//! memory with another program instead. What each can do is told in `docs/ports.md`. Opening devices takes privileges (CAP_NET_ADMIN, CAP_NET_RAW, CAP_BPF), receiving and sending none.

mod af_packet;
mod af_xdp;
mod checksum;
#[allow(unsafe_code, reason = "an instruction without a safe form")]
mod clocks;
mod device;
pub mod memif;
mod open;
#[allow(unsafe_code, reason = "system calls")]
mod privileges;
#[allow(unsafe_code, reason = "system calls")]
mod signals;
#[allow(unsafe_code, reason = "system calls")]
mod sys;
mod tap;
#[allow(unsafe_code, reason = "system calls")]
mod worker;
pub mod xdp;

pub use af_packet::{PacketPort, PacketSender, PacketSettings};
pub use af_xdp::{Copies, XdpDevice, XdpError, XdpPort, XdpSettings};
pub use clocks::{clocks, clocks_are_steady};
pub use device::Device;
pub use open::{Driver, LiveDevice};
pub use privileges::drop_privileges;
pub use signals::{Signal, Signals};
pub use tap::{TapKind, TapPort, TunSender};
pub use worker::{pin_to_core, wait_any, wait_readable};

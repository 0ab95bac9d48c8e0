//! Ports on the devices of the running kernel.
//!
//! [`LiveDevice`] opens a device the best way there is; [`XdpDevice`], [`PacketPort`] and [`TapPort`] are the ways. What each can do is told in `docs/ports.md`. All need privileges (CAP_NET_ADMIN, CAP_NET_RAW, CAP_BPF) to be opened and none afterwards.

mod af_packet;
mod af_xdp;
mod checksum;
mod device;
mod open;
#[allow(unsafe_code, reason = "system calls")]
mod sys;
mod tap;
pub mod xdp;

pub use af_packet::{PacketPort, PacketSettings};
pub use af_xdp::{Copies, XdpDevice, XdpError, XdpPort, XdpSettings};
pub use device::Device;
pub use open::{Driver, LiveDevice};
pub use sys::wait_readable;
pub use tap::{TapKind, TapPort};

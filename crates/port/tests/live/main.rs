//! Live ports on pairs of virtual devices, each test in a network namespace of its own. Without root, or where the kernel lacks something, a test
//! says so and passes.
#![cfg(target_os = "linux")]

mod af_packet;
mod af_xdp;
mod faults;
mod lab;
mod open;
mod signals;
mod tap;

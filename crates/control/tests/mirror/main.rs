//! The mirror beside a kernel: each test has a network namespace of its own, which goes with its thread. Needs root and iproute2; says so where
//! they are missing.
#![cfg(target_os = "linux")]

mod changes;
mod faults;
mod follow;
mod golden;
mod lab;
mod messages;
mod render;
mod vlans;

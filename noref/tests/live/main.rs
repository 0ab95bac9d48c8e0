//! `noref run` on devices of the running kernel: as Linux answers, under load, and while things around it change.
//!
//! Needs root, iproute2, ethtool, and a kernel with veth, AF_XDP and SRv6. Where they are not there each test says so and is skipped; with `CI` set
//! it fails. `NOREF_LONG=1` gives the tests under load the time that docs/ports.md names.

mod bed;
mod churn;
mod endurance;
mod follow;
mod golden;
mod interfaces;
mod lab;
mod router;
mod signals;
mod traffic;

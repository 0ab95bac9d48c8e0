//! Faults that other routers had, each as a test that says what must not happen here. Every router below is [`testkit::network::plain`] with a few
//! lines of its own.

mod decapsulation;
mod endpoint;
mod forwarding;
mod headend;
mod multipath;
mod router;
mod rules;
mod vrf;

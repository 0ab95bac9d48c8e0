//! What is shown is what iproute2 shows.

mod changes;
mod forms;
mod get;
mod iproute2;
#[path = "../mirror/lab.rs"]
#[allow(dead_code, reason = "of the mirror's tests")]
mod lab;

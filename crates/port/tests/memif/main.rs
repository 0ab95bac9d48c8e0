//! memif interfaces of our own against each other. Takes no privileges.
#![cfg(target_os = "linux")]

mod pair;
mod pairs;

//! What tests share: frames built layer by layer, captures, the comparison with Linux's own answers, and seeded damage.
//!
//! This crate is for tests only. What it cannot do (a file that is missing, a capture that is cut) it says by panicking with the path,
//! which is what a test wants.
#![forbid(unsafe_code)]

pub mod addr;
pub mod capture;
pub mod differences;
pub mod frame;
pub mod golden;
#[cfg(target_os = "linux")]
pub mod kernel;
pub mod l3vpn;
pub mod mask;
pub mod mutate;
#[cfg(target_os = "linux")]
pub mod namespace;
pub mod network;
pub mod program;
pub mod questions;
pub mod replay;
pub mod rng;
#[cfg(target_os = "linux")]
pub mod route_changes;
mod tags;

use std::path::PathBuf;

/// The repository's root.
pub fn root() -> PathBuf {
    let here = PathBuf::from(env!("CARGO_MANIFEST_DIR"));
    here.ancestors().nth(2).map(PathBuf::from).unwrap_or(here)
}

/// True when tests are to take the time and the size that they should have (`NOREF_LONG=1`), and not only what shows that they can.
pub fn is_long() -> bool {
    std::env::var_os("NOREF_LONG").is_some_and(|long| !long.is_empty())
}

/// The directory of data that stands beside the repository: `NOREF_SHARED`, else `../shared`. None when it is missing and this is no run of
/// the continuous integration, where it must be there.
///
/// # Panics
/// When it is missing and `CI` is set.
pub fn shared() -> Option<PathBuf> {
    let dir = std::env::var_os("NOREF_SHARED").map_or_else(|| root().join("../shared"), PathBuf::from);
    if dir.is_dir() {
        return Some(dir);
    }
    assert!(std::env::var_os("CI").is_none(), "{} is missing: set NOREF_SHARED to the directory that holds captures/", dir.display());
    None
}

//! The network file, from the disk to tables.

use std::fs;
use std::path::Path;

use control::{Configuration, PortDevice};
use port::Time;
use route::Tick;

use crate::args::PortName;
use crate::failure::Failure;

/// Reads the network file `net` for a router with these ports, at the time `now`.
///
/// # Errors
/// When the file can not be read or something in it is wrong.
pub fn read(net: &Path, ports: &[PortDevice], now: Time) -> Result<Configuration, Failure> {
    apply(&read_text(net)?, net, ports, now)
}

/// As [`read`], of a file whose text is known.
///
/// # Errors
/// When something in it is wrong.
pub fn apply(text: &str, net: &Path, ports: &[PortDevice], now: Time) -> Result<Configuration, Failure> {
    control::network_file_on(text, &net.display().to_string(), ports, Tick::from_nanos(now.0)).map_err(Failure::unusable)
}

/// Ports that have no device, by their names.
pub fn without_devices(ports: &[PortName]) -> Vec<PortDevice> {
    ports.iter().map(|port| PortDevice { name: port.to_string(), hardware: None }).collect()
}

/// The text of the network file `net`.
///
/// # Errors
/// When it can not be read.
pub fn read_text(net: &Path) -> Result<String, Failure> {
    let name = &net.display().to_string();
    let bytes = fs::read(net).map_err(|error| Failure::unusable(format!("{name}: {error}")))?;
    text(bytes, name).map_err(Failure::unusable)
}

/// The text of a file of this name.
///
/// # Errors
/// Where it is no text.
pub fn text(bytes: Vec<u8>, name: &str) -> Result<String, String> {
    String::from_utf8(bytes).map_err(|error| {
        let good = error.as_bytes().get(..error.utf8_error().valid_up_to()).unwrap_or_default();
        let line = 1 + good.iter().filter(|byte| **byte == b'\n').count();
        format!("{name}:{line}: the network file is to be text in UTF-8, and here it is not")
    })
}

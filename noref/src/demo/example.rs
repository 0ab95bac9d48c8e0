//! What is shown where no namespaces can be made: the example of `examples/l3vpn`, replayed. It is part of the program, which need not stand in its repository.

use std::fs;
use std::path::Path;

use super::lab::PREFIX;
use crate::args::{PortCapture, Refs, ReplayArgs};
use crate::failure::Failure;
use crate::lab::directory::Directory;
use crate::replay;
use crate::stdout::Stdout;

/// The network file.
const NETWORK: &[u8] = include_bytes!("../../../examples/l3vpn/network.ip");

/// Each port and what arrives there.
const CAPTURES: [(&str, &[u8]); 3] = [
    ("core", include_bytes!("../../../examples/l3vpn/in-core.pcap")),
    ("red0", include_bytes!("../../../examples/l3vpn/in-red0.pcap")),
    ("blue0", include_bytes!("../../../examples/l3vpn/in-blue0.pcap")),
];

/// Says why there is no lab and replays the example. With `keep` its files stay.
///
/// # Errors
/// When files cannot be written, or those of the replay.
pub fn run(why: &str, keep: bool) -> Result<(), Failure> {
    let path = std::env::temp_dir().join(format!("{PREFIX}{}", std::process::id()));
    let directory = Directory::new(path.clone(), 0o777).map_err(|error| failed(&path, &error))?;
    if keep {
        directory.leave();
    }
    let mut stdout = Stdout::new();
    stdout.line(format_args!(
        "noref demo makes a lab of network namespaces, which takes root, and here it may not: {why}.\n\
         Instead the edge router of an SRv6 L3VPN of two tenants is run offline on captures, which takes no privileges:\n"
    ))?;
    let captures = CAPTURES.map(|(port, _)| format!("{port}=in-{port}.pcap")).join(" ");
    stdout.line(format_args!("$ noref replay --net network.ip --rx {captures} --tx out"))?;
    stdout.flush()?;
    drop(stdout);
    replay::run(&arguments(&path)?)?;
    let mut stdout = Stdout::new();
    match keep {
        true => stdout.line(format_args!("\nnetwork.ip, the captures and out are in {}", path.display()))?,
        false => stdout.line("\nIts files are gone again: noref demo --keep leaves them. As root noref demo makes the lab.")?,
    }
    stdout.flush()
}

/// Writes the files into a directory, and says how they are replayed.
fn arguments(directory: &Path) -> Result<ReplayArgs, Failure> {
    let write = |name: String, bytes: &[u8]| {
        let file = directory.join(name);
        fs::write(&file, bytes).map(|()| file.clone()).map_err(|error| failed(&file, &error))
    };
    let net = write("network.ip".into(), NETWORK)?;
    let rx = CAPTURES
        .iter()
        .map(|(port, bytes)| {
            let capture = write(format!("in-{port}.pcap"), bytes)?;
            Ok(PortCapture { port: port.parse().map_err(Failure::unusable)?, capture })
        })
        .collect::<Result<_, _>>()?;
    Ok(ReplayArgs { net, rx, port: Vec::new(), tx: directory.join("out"), trace: false, refs: Refs::Noref, json: false })
}

fn failed(path: &Path, error: &std::io::Error) -> Failure {
    Failure::unusable(format!("{}: {error}", path.display()))
}

//! A router that follows the kernel, as its operator sees it.

use std::io::{BufRead, BufReader};
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::thread;
use std::time::Instant;

use testkit::replay::Scratch;

use super::lab::{Lab, skipped};
use super::program::{PATIENCE, asked, printed};

/// `noref run --mirror` in the lab's router; killed with this value.
struct Mirroring(Child);

impl Mirroring {
    /// Starts it and waits until it runs. None, with a word why, where the kernel lets us not.
    fn start(lab: &Lab, socket: &Path) -> Option<Mirroring> {
        let mut command = Command::new(env!("CARGO_BIN_EXE_noref"));
        command.args(["run", "--mirror", "--driver", "af-xdp", "--port", "e0", "e1", "--seconds", "300", "--socket"]).arg(socket);
        command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::piped());
        let mut child = lab.router.inside(|| command.spawn().unwrap());
        let mut stderr = BufReader::new(child.stderr.take().unwrap());
        let (router, mut said, mut line) = (Mirroring(child), String::new(), String::new());
        while stderr.read_line(&mut line).unwrap() > 0 {
            if line.starts_with("noref: running: ") {
                // Whatever else it has to say is read and thrown away.
                thread::spawn(move || std::io::copy(&mut stderr, &mut std::io::sink()));
                return Some(router);
            }
            said.push_str(&std::mem::take(&mut line));
        }
        let refused = ["Operation not permitted", "Permission denied", "not supported", "not implemented"];
        assert!(refused.iter().any(|why| said.contains(why)), "{said}");
        skipped(&said);
        None
    }
}

impl Drop for Mirroring {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

#[test]
fn what_it_has_of_the_kernel_and_what_not_is_shown() {
    let Some(lab) = Lab::new() else { return };
    for line in ["addr add 10.1.0.1/24 dev e0", "addr add 10.2.0.1/24 dev e1", "route add 10.50.0.0/16 tos 0x10 via 10.2.0.2"] {
        lab.router.ip(line).unwrap();
    }
    let scratch = Scratch::new();
    let socket = scratch.path().join("noref.sock");
    let Some(_router) = Mirroring::start(&lab, &socket) else { return };

    let left = printed(&socket, &["show", "unsupported"]);
    assert!(left.contains("route 10.50.0.0/16 table main") && left.contains("tos 0x10"), "{left}");
    assert_eq!(asked(&socket, "mirror")["mirror"]["unsupported"], 1);
    let ports = printed(&socket, &["show", "ports"]);
    assert!(ports.contains("10.1.0.1/24") && ports.contains("10.2.0.1/24"), "{ports}");

    // What the kernel is told is there soon after.
    lab.router.ip("route add 10.60.0.0/16 via 10.2.0.2 metric 7").unwrap();
    let begin = Instant::now();
    while !printed(&socket, &["show", "routes"]).lines().any(|line| line.contains("10.60.0.0/16") && line.contains("via 10.2.0.2 dev e1")) {
        assert!(begin.elapsed() < PATIENCE, "{}", printed(&socket, &["show", "routes"]));
    }
    while asked(&socket, "mirror")["mirror"]["settled"] != true {
        assert!(begin.elapsed() < PATIENCE, "{}", asked(&socket, "mirror"));
    }
    let standing = printed(&socket, &["show", "mirror"]);
    assert!(standing.starts_with("the tables are the kernel's") && standing.contains("events"), "{standing}");
}

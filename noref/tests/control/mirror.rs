//! A router that follows the kernel, as its operator sees it.

use std::time::Instant;

use super::lab::{Lab, Router};
use super::program::{PATIENCE, asked, printed};

#[test]
fn what_it_has_of_the_kernel_and_what_not_is_shown() {
    let Some(lab) = Lab::new() else { return };
    for line in ["addr add 10.1.0.1/24 dev e0", "addr add 10.2.0.1/24 dev e1", "route add 10.50.0.0/16 encap ip id 7 dst 10.9.9.9 dev e1"] {
        lab.router.ip(line).unwrap();
    }
    let Some(router) = Router::mirror(&lab, &["--driver", "af-xdp"]) else { return };
    let socket = router.socket();

    let left = printed(&socket, &["show", "unsupported"]);
    assert!(left.contains("route 10.50.0.0/16 table main") && left.contains("encap"), "{left}");
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

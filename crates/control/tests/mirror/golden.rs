//! The kernel configured with the network file of each golden case, and mirrored, is what noref makes of the file itself.

use std::collections::BTreeSet;

use route::TableId;

use crate::lab::{PORTS, compare_golden_cases, configure, follower, in_namespace, ports};
use crate::render::{differences, render, render_follower, table_ids};

#[test]
fn a_mirrored_kernel_is_what_noref_makes_of_the_same_file() {
    compare_golden_cases(compare);
}

/// What differs; none when noref or this kernel refuses the file.
fn compare(text: &str) -> Option<Vec<String>> {
    let configuration = control::network_file(text, "network.ip", &PORTS).ok()?;
    let mut compared = None;
    in_namespace(|| {
        ports();
        if configure(text).is_err() {
            return;
        }
        let follower = follower();
        let ids: BTreeSet<TableId> = table_ids(&follower);
        let file = render(&configuration.editor, &configuration.tables, &ids);
        let mut differing = differences(&file, &render_follower(&follower));
        differing.retain(|line| !of_the_kernel_only(line));
        differing.extend(follower.mirror().unsupported().iter().map(|unsupported| format!("{}: {}", unsupported.what, unsupported.reason)));
        compared = Some(differing);
    });
    compared
}

/// The far ends of the ports; anycast addresses that Linux keeps when forwarding is switched off before it is done with the addresses; and Linux's routes to the addresses of `lo`, behind the local ones.
fn of_the_kernel_only(line: &str) -> bool {
    line.contains("-far ")
        || line.starts_with("+ route table local ") && line.contains(" anycast ")
        || line.starts_with("+ route table main ") && line.ends_with(" unreachable metric 256 proto 2 mtu 0 src None")
}

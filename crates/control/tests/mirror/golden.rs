//! The kernel configured with the network file of each golden case, and mirrored, is what noref makes of the file itself.

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};
use std::sync::Mutex;

use route::TableId;

use crate::lab::{PORTS, configure, follower, in_namespace, ports};
use crate::render::{differences, render, render_follower, table_ids};

fn cases() -> Vec<PathBuf> {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../tests/golden");
    let directories = |path: &Path| -> Vec<PathBuf> {
        let entries = fs::read_dir(path).unwrap_or_else(|error| panic!("{}: {error}", path.display()));
        entries.map(|entry| entry.expect("an entry").path()).filter(|path| path.is_dir()).collect()
    };
    let mut cases: Vec<_> = directories(&root).iter().flat_map(|group| directories(group)).map(|case| case.join("network.ip")).collect();
    cases.sort();
    cases
}

#[test]
fn a_mirrored_kernel_is_what_noref_makes_of_the_same_file() {
    let (compared, wrong) = (Mutex::new(0), Mutex::new(Vec::new()));
    let cases = cases();
    let mut able = false;
    in_namespace(|| able = true);
    std::thread::scope(|scope| {
        // Two at a time: much of it is waiting.
        for half in cases.chunks(cases.len().div_ceil(2).max(1)) {
            let (compared, wrong) = (&compared, &wrong);
            scope.spawn(move || {
                for case in half {
                    let Some(differing) = compare_thrice(case) else { continue };
                    *compared.lock().unwrap() += 1;
                    if !differing.is_empty() {
                        wrong.lock().unwrap().push(format!("{}\n{}", case.display(), differing.join("\n")));
                    }
                }
            });
        }
    });
    let (compared, wrong) = (compared.into_inner().unwrap(), wrong.into_inner().unwrap());
    eprintln!("{compared} cases compared");
    assert!(!able || compared > 20, "this kernel takes few of the cases");
    assert!(wrong.is_empty(), "{} of {compared} differ\n{}", wrong.len(), wrong.join("\n"));
}

/// What differs each time: the kernel sets routes up in the background too, and what stands in its tables right after a line is not always the same.
fn compare_thrice(case: &Path) -> Option<Vec<String>> {
    let mut tries = (0..3).map(|_| compare(case));
    let first = tries.next()??;
    if first.is_empty() { Some(first) } else { tries.flatten().find(Vec::is_empty).or(Some(first)) }
}

/// What differs; none when noref or this kernel refuses the file.
fn compare(case: &Path) -> Option<Vec<String>> {
    let text = fs::read_to_string(case).expect("a network file");
    let configuration = control::network_file(&text, "network.ip", &PORTS).ok()?;
    let mut compared = None;
    in_namespace(|| {
        ports();
        if configure(&text).is_err() {
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

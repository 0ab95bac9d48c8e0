//! Every network file that Linux was given is read, or refused where it says something that noref does not have yet.

use std::fs;
use std::path::{Path, PathBuf};

const PORTS: [&str; 4] = ["e0", "e1", "e2", "e3"];

fn network_files(group: &str) -> Vec<PathBuf> {
    let directory = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../tests/golden").join(group);
    let mut files: Vec<_> = fs::read_dir(&directory).unwrap().map(|case| case.unwrap().path().join("network.ip")).collect();
    files.sort();
    assert!(!files.is_empty(), "no cases in {}", directory.display());
    files
}

fn errors(file: &Path) -> Option<control::Errors> {
    control::network_file(&fs::read_to_string(file).unwrap(), "network.ip", &PORTS).err()
}

#[test]
fn files_of_the_groups_that_noref_does_are_accepted() {
    for group in [
        "srv6_end",
        "srv6_headend",
        "srv6_csid",
        "srv6_vrf",
        "ip4_forward",
        "ip6_forward",
        "frag",
        "ecmp",
        "ecmp_more",
        "vlan",
        "vlan_more",
    ] {
        for file in network_files(group) {
            if let Some(errors) = errors(&file) {
                panic!("{}:\n{errors}", file.display());
            }
        }
    }
}

/// A file of a later issue is accepted only if every line of it is something that noref has.
#[test]
fn what_is_not_there_yet_is_refused_and_never_ignored() {
    let later = ["type vxlan", "bridge fdb"];
    let mut refused = 0;
    for group in ["rules", "vrf", "vxlan"] {
        for file in network_files(group) {
            let text = fs::read_to_string(&file).unwrap();
            let expected = text.lines().filter(|line| !line.starts_with('#')).any(|line| later.iter().any(|word| line.contains(word)));
            let errors = errors(&file);
            assert_eq!(errors.is_some(), expected, "{}: {}", file.display(), errors.map(|errors| errors.to_string()).unwrap_or_default());
            if let Some(errors) = errors {
                refused += 1;
                let text = errors.to_string();
                assert!(text.contains(" is not implemented yet\n"), "{}: {text}", file.display());
            }
        }
    }
    assert!(refused > 0);
}

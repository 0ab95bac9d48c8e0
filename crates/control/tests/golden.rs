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

/// What noref says to a configuration of `rejected.tsv`.
enum Says {
    /// It refuses it, at this word and with these.
    No(&'static str, &'static str),
    /// It has no such thing, and says so.
    NotYet,
    /// It takes it: the refusal was the program's, not the kernel's.
    Yes,
}

/// The configurations of `rejected.tsv`, in its order, as lines.
const REJECTED: [(&str, &str, Says); 9] = [
    (
        "End.DT46 vrftable 10 while net.vrf.strict_mode=0",
        "ip link add vrf10 type vrf table 10\nip -6 route add fc00:1::46 encap seg6local action End.DT46 vrftable 10 dev e1",
        Says::No("10 dev e1", "vrftable needs strict mode: set net.vrf.strict_mode=1 first"),
    ),
    (
        "strict_mode=1; vrf10 type vrf table 10; vrf11 type vrf table 10",
        "sysctl net.vrf.strict_mode=1\nip link add vrf10 type vrf table 10\nip link add vrf11 type vrf table 10",
        Says::No("10", "table 10 is used by another VRF"),
    ),
    (
        "End.DT46 vrftable 30 (no VRF has table 30)",
        "sysctl net.vrf.strict_mode=1\nip -6 route add fc00:1::46 encap seg6local action End.DT46 vrftable 30 dev e1",
        Says::No("30 dev e1", "table 30 belongs to no VRF device"),
    ),
    (
        "End.DT4 table 10",
        "ip -6 route add fc00:1::4 encap seg6local action End.DT4 table 10 dev e1",
        Says::No("End.DT4 table 10 dev e1", "End.DT4 needs `vrftable N`"),
    ),
    (
        "encap seg6 … tunsrc fd00:abcd::1",
        "ip -6 route add fd09::/64 encap seg6 mode encap segs fc00:2::1 tunsrc fd00:abcd::1 dev e1",
        Says::Yes,
    ),
    ("ip -f mpls route add 100 as 3 via …", "ip -f mpls route add 100 as 3 via inet 10.0.0.2", Says::NotYet),
    ("ip -f mpls route add 0 dev lo", "ip -f mpls route add 0 dev lo", Says::NotYet),
    (
        "ip6tnl remote ::, route via an on-link global far end",
        "ip link add t0 type ip6tnl mode any local fd00:1::1 remote ::",
        Says::NotYet,
    ),
    ("gtp-tunnel with an IPv6 MS address whose lower 64 bits are not zero", "ip link add gtp0 type gtp role sgsn", Says::NotYet),
];

#[test]
fn what_linux_refuses_is_refused_where_it_stands_and_why() {
    let file = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../tests/golden/rejected.tsv");
    let text = fs::read_to_string(file).unwrap();
    let listed: Vec<_> = text.lines().skip(1).filter_map(|line| line.split('\t').next()).collect();
    assert_eq!(listed, REJECTED.map(|(configuration, ..)| configuration), "each needs its lines here");
    for (configuration, lines, says) in REJECTED {
        let text = format!("ip link set lo up\nip link set e1 up\nip -6 addr add fd00:1::1/64 dev e1 nodad\n{lines}\n");
        let said = control::network_file(&text, "net.ip", &PORTS).map_err(|errors| errors.to_string()).map(|_| ());
        let (number, last) = text.lines().enumerate().last().unwrap();
        match (says, said) {
            (Says::No(from, why), Err(said)) => {
                let column = last.len() - from.len() + 1;
                assert!(said.starts_with(&format!("net.ip:{}:{column}: {why}", number + 1)), "{configuration}: {said}");
            }
            (Says::NotYet, Err(said)) => assert!(said.contains(" is not implemented yet\n"), "{configuration}: {said}"),
            (Says::Yes, Ok(())) => {}
            (_, said) => panic!("{configuration}: {said:?}"),
        }
    }
}

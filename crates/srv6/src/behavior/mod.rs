//! What SIDs do, one file an action. A new one is a file with a `DESCRIPTOR`, a `mod` line and a line in [`ACTIONS`].

mod end;
mod end_b6;
mod end_b6_encaps;
mod end_bpf;
mod end_dt4;
mod end_dt46;
mod end_dt6;
mod end_dx2;
mod end_dx4;
mod end_dx6;
mod end_t;
mod end_x;

use crate::Descriptor;

/// Every action, in the order of the kernel's numbers.
pub static ACTIONS: &[&Descriptor] = &[
    &end::DESCRIPTOR,
    &end_x::DESCRIPTOR,
    &end_t::DESCRIPTOR,
    &end_dx2::DESCRIPTOR,
    &end_dx6::DESCRIPTOR,
    &end_dx4::DESCRIPTOR,
    &end_dt6::DESCRIPTOR,
    &end_dt4::DESCRIPTOR,
    &end_b6::DESCRIPTOR,
    &end_b6_encaps::DESCRIPTOR,
    &end_bpf::DESCRIPTOR,
    &end_dt46::DESCRIPTOR,
];

/// The action that iproute2 calls `name`: `End.X`.
pub fn action(name: &str) -> Option<&'static Descriptor> {
    ACTIONS.iter().copied().find(|descriptor| descriptor.name == name)
}

/// The action with the kernel's `number`.
pub fn action_by_number(number: u32) -> Option<&'static Descriptor> {
    ACTIONS.iter().copied().find(|descriptor| descriptor.number == number)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeSet;

    #[test]
    fn every_file_here_is_an_action() {
        let directory = concat!(env!("CARGO_MANIFEST_DIR"), "/src/behavior");
        let files: BTreeSet<String> = std::fs::read_dir(directory)
            .unwrap()
            .map(|entry| entry.unwrap().file_name().into_string().unwrap())
            .filter(|name| name != "mod.rs")
            .collect();
        let actions: BTreeSet<String> = ACTIONS.iter().map(|action| action.name.to_lowercase().replace('.', "_") + ".rs").collect();
        assert_eq!(files, actions);
    }

    #[test]
    fn the_kernels_numbers_tell_the_actions_apart() {
        assert!(ACTIONS.is_sorted_by(|a, b| a.number < b.number));
        assert_eq!(action("End.DT46").map(|action| action.number), Some(16));
        assert_eq!(action_by_number(10).map(|action| action.name), Some("End.B6.Encaps"));
        assert_eq!((action("end"), action_by_number(11)), (None, None));
    }

    #[test]
    fn summaries_are_a_line_with_an_rfc_section() {
        for action in ACTIONS {
            assert!(action.summary.contains("RFC ") || action.name == "End.BPF", "{}", action.name);
            assert!(!action.summary.contains('\n') && action.summary.ends_with('.'), "{}", action.name);
        }
    }
}

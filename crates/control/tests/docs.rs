//! `docs/configuration.md` names every action and setting, and only with what the language takes.

use srv6::{ACTIONS, Attr, Attributes, Sid};

const DOCUMENT: &str = include_str!("../../../docs/configuration.md");

#[test]
fn every_setting_is_listed_with_its_values() {
    for sysctl in control::SYSCTLS {
        let values = if sysctl.least == sysctl.most { sysctl.least.to_string() } else { format!("{} to {}", sysctl.least, sysctl.most) };
        let row = format!("| `{}` | {values} |\n", sysctl.name);
        assert!(DOCUMENT.contains(&row), "missing: {row}");
    }
}

#[test]
fn every_action_is_listed_with_what_it_needs() {
    for action in ACTIONS.iter().copied() {
        if matches!(Sid::build(action, &Attributes::default()), Err(srv6::BuildError::NotImplemented { .. })) {
            assert!(DOCUMENT.contains(&format!("`{}`", action.name)), "missing: {}", action.name);
            continue;
        }
        let start = format!("| `{}` |", action.name);
        let row = DOCUMENT.lines().find(|line| line.starts_with(&start)).unwrap_or_else(|| panic!("missing: {start}"));
        for attr in action.required.union(action.optional).iter().filter(|attr| !matches!(attr, Attr::Count | Attr::Lblen | Attr::Nflen)) {
            if attr == Attr::Flavors && action.flavors.is_empty() {
                continue;
            }
            assert!(row.contains(&format!("`{attr} ")), "{attr} is missing in: {row}");
        }
        if !action.flavors.is_empty() {
            assert!(row.contains(&format!("`flavors {}`", action.flavors)), "{row}");
        }
    }
}

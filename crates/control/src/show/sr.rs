//! What all SRv6 routes share, as `ip sr` prints it.

use std::fmt::Write;

use super::Source;

/// `ip sr tunsrc show`.
pub(super) fn tunnel_source(source: &impl Source) -> String {
    format!("tunsrc addr {}\n", source.editor(|editor| editor.settings().seg6_tunsrc))
}

/// `ip sr hmac show`. A secret does not come out again.
pub(super) fn hmac_keys(source: &impl Source) -> String {
    let mut text = String::new();
    for (id, algorithm) in source.tables().hmac_keys.snapshot().iter() {
        // Writing to a string does not fail.
        let _ = writeln!(text, "hmac {id} algo {} secret (not shown)", algorithm.word());
    }
    text
}

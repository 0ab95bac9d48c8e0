//! The packets of the cases in tests/golden, for the tests of this crate.

use testkit::{capture, golden};

/// The IP packets in `file` of `case`, each behind the number of the frame that is it or caused it. They may be longer than they say.
pub(crate) fn packets(case: &str, file: &str) -> Vec<(u64, Vec<u8>)> {
    let path = testkit::root().join("tests/golden").join(case).join(file);
    let numbered = |record: capture::Record| (record.time.0 / golden::SPACING, record.bytes[14..].to_vec());
    capture::read(&path).into_iter().map(numbered).collect()
}

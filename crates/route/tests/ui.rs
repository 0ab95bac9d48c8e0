//! What must not compile: each file under `ui/` is one way to let a borrowed route out of its burst. What holds its route, under `ui/pass/`, may.
//!
//! The messages are those of the compiler in `rust-version`; `TRYBUILD=overwrite cargo test -p noref-route --test ui` renews them.

#[test]
fn a_route_leaves_its_burst_only_when_held() {
    let cases = trybuild::TestCases::new();
    cases.compile_fail("tests/ui/*.rs");
    cases.pass("tests/ui/pass/*.rs");
}

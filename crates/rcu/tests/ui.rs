//! What must not compile: each file under `ui/` is one way to let a borrow out of its burst.
//!
//! The messages are those of the compiler in `rust-version`; `TRYBUILD=overwrite cargo test -p noref-rcu --test ui` renews them.
#![cfg(not(loom))]

#[test]
fn a_borrow_cannot_leave_its_burst() {
    trybuild::TestCases::new().compile_fail("tests/ui/*.rs");
}

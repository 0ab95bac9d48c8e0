//! noref: the program.
fn main() {}

//! Headends: what is put on a packet that enters a segment routing policy, one file a kind.

pub(crate) mod encaps;
mod insert;
pub(crate) mod l2encaps;

pub(crate) use encaps::Outer;
pub(crate) use insert::Insert;

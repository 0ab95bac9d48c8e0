//! What an XDP program is given and what it answers.

use std::os::fd::{AsFd, AsRawFd};

use super::bpf::Map;
use super::{Alu, Asm, Cond, Label, Reg};

// Offsets in `struct xdp_md`.
pub(super) const DATA: i16 = 0;
pub(super) const DATA_END: i16 = 4;
pub(super) const QUEUE: i16 = 16;

/// `XDP_DROP`.
pub(super) const DROP: i32 = 1;
/// `XDP_PASS`.
pub(super) const PASS: i32 = 2;

/// To `short` unless the frame, whose first byte is R7 and the one behind its last R8, has `bytes`; R1 is lost. The verifier accepts loads and stores below
/// them from here on.
pub(super) fn need(asm: &mut Asm, bytes: i32, short: Label) {
    asm.alu64(Alu::Move, Reg::R1, Reg::R7);
    asm.alu64(Alu::Add, Reg::R1, bytes);
    asm.jump_if(Cond::Gt, Reg::R1, Reg::R8, short);
}

/// The number by which a program that is loaded names a map.
pub(super) fn number(map: &Map) -> i32 {
    map.as_fd().as_raw_fd()
}

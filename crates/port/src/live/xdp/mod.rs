//! The program that runs in the kernel for each received frame, and how it gets there: instructions are put together ([`Asm`]), loaded and
//! attached ([`bpf`]). [`filter`] is the program.

mod asm;
mod insn;

pub use asm::{Asm, AsmError, Label};
pub use insn::{Alu, Base, Cond, Frame, Helper, Insn, Operand, Reg, Size};

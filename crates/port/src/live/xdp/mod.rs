//! The program that runs in the kernel for each received frame, and how it gets there: instructions are put together ([`Asm`]), loaded
//! ([`Program`], [`Map`]) and attached to a device ([`Attachment`]). [`Filter`] is the program that noref uses, [`Source`] and [`Sink`]
//! are those that it is measured with.

mod asm;
#[allow(unsafe_code, reason = "system calls")]
mod bpf;
mod context;
mod filter;
mod filter_code;
mod insn;
mod switch;
mod traffic;

pub use asm::{Asm, AsmError, Label};
pub use bpf::{Attach, Attachment, BpfError, Map, MapKind, Program};
pub use filter::{Filter, NO_TAG, Tags, Takes};
pub use insn::{Alu, Base, Cond, Frame, Helper, Insn, Operand, Reg, Size};
pub use traffic::{Sink, Source, Varied};

//! An assembler of eBPF: instructions in order, jumps by label. Needs no kernel.
//!
//! ```
//! use port::live::xdp::{Alu, Asm, Cond, Reg};
//!
//! let mut asm = Asm::default();
//! let small = asm.label();
//! asm.alu64(Alu::Move, Reg::R0, 1);
//! asm.jump_if(Cond::Lt, Reg::R1, 10, small);
//! asm.alu64(Alu::Move, Reg::R0, 2);
//! asm.bind(small);
//! asm.exit();
//! assert_eq!(asm.finish().unwrap().len(), 4);
//! ```

use super::insn::{Alu, Base, Cond, Helper, Insn, Operand, Reg, Size};

/// A place in the program that jumps go to, known when it is bound. It belongs to the assembler that made it.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Label(usize);

/// Why the instructions are no program. Numbers are places of instructions, from 0.
#[derive(Clone, Copy, PartialEq, Eq, Debug, thiserror::Error)]
pub enum AsmError {
    /// A jump to a label that was never bound.
    #[error("instruction {0} jumps to a label that is bound nowhere")]
    Unbound(usize),
    /// A label with two places.
    #[error("a label is bound at instruction {0} and again at {1}")]
    BoundTwice(usize, usize),
    /// A jump over more instructions than its offset can hold.
    #[error("instruction {0} jumps to {1}: farther than 32767 instructions")]
    TooFar(usize, usize),
    /// A jump back. The programs put together here have no loops.
    #[error("instruction {0} jumps back to {1}")]
    Backward(usize, usize),
    /// The last instruction is neither an exit nor a jump.
    #[error("the program runs off its end")]
    NoEnd,
}

/// A program in the making.
#[derive(Debug, Default)]
pub struct Asm {
    code: Vec<Insn>,
    labels: Vec<Option<usize>>,
    jumps: Vec<(usize, Label)>,
    error: Option<AsmError>,
}

impl Asm {
    /// A label to jump to; [`Asm::bind`] gives it its place.
    pub fn label(&mut self) -> Label {
        self.labels.push(None);
        Label(self.labels.len() - 1)
    }

    /// The label's place is that of the next instruction.
    pub fn bind(&mut self, label: Label) {
        let here = self.code.len();
        if let Some(before) = self.labels[label.0].replace(here) {
            self.error.get_or_insert(AsmError::BoundTwice(before, here));
        }
    }

    /// `destination = destination op operand` on 64 bits.
    pub fn alu64(&mut self, op: Alu, destination: Reg, operand: impl Into<Operand>) {
        self.code.push(Insn::alu64(op, destination, operand.into()));
    }

    /// `destination = destination op operand` on 32 bits; the upper half becomes zero.
    pub fn alu32(&mut self, op: Alu, destination: Reg, operand: impl Into<Operand>) {
        self.code.push(Insn::alu32(op, destination, operand.into()));
    }

    /// `destination = *(base + offset)`, upper bits zero.
    pub fn load(&mut self, size: Size, destination: Reg, base: impl Into<Base>, offset: i16) {
        self.code.push(Insn::load(size, destination, base.into(), offset));
    }

    /// `*(base + offset) = operand`.
    pub fn store(&mut self, size: Size, base: impl Into<Base>, offset: i16, operand: impl Into<Operand>) {
        self.code.push(Insn::store(size, base.into(), offset, operand.into()));
    }

    /// Turns the low 16 bits from network to machine order (or back), upper bits zero.
    pub fn network16(&mut self, destination: Reg) {
        self.code.push(Insn::to_big_endian(destination, 16));
    }

    /// Turns the low 32 bits from network to machine order (or back), upper bits zero.
    pub fn network32(&mut self, destination: Reg) {
        self.code.push(Insn::to_big_endian(destination, 32));
    }

    /// `destination = number`.
    pub fn wide(&mut self, destination: Reg, number: u64) {
        self.code.extend(Insn::wide(destination, number));
    }

    /// `destination = ` the map behind a file descriptor, for [`Helper`]s.
    pub fn map(&mut self, destination: Reg, descriptor: i32) {
        self.code.extend(Insn::map(destination, descriptor));
    }

    /// `destination = ` the address of byte `offset` of the only value of an array map.
    pub fn map_value(&mut self, destination: Reg, descriptor: i32, offset: i32) {
        self.code.extend(Insn::map_value(destination, descriptor, offset));
    }

    /// Goes on at the label.
    pub fn jump(&mut self, to: Label) {
        self.jumps.push((self.code.len(), to));
        self.code.push(Insn::jump());
    }

    /// Goes on at the label when `left cond right` on 64 bits.
    pub fn jump_if(&mut self, cond: Cond, left: Reg, right: impl Into<Operand>, to: Label) {
        self.jumps.push((self.code.len(), to));
        self.code.push(Insn::jump_if(true, cond, left, right.into()));
    }

    /// Goes on at the label when `left cond right` on 32 bits. The kernel knows it since 5.1.
    pub fn jump_if32(&mut self, cond: Cond, left: Reg, right: impl Into<Operand>, to: Label) {
        self.jumps.push((self.code.len(), to));
        self.code.push(Insn::jump_if(false, cond, left, right.into()));
    }

    /// Calls a function of the kernel: arguments in R1–R5, which are lost, the answer in R0.
    pub fn call(&mut self, helper: Helper) {
        self.code.push(Insn::call(helper));
    }

    /// Returns R0.
    pub fn exit(&mut self) {
        self.code.push(Insn::exit());
    }

    /// The program, jumps resolved.
    ///
    /// # Errors
    /// When a label or a jump has no meaning, see [`AsmError`].
    pub fn finish(mut self) -> Result<Vec<Insn>, AsmError> {
        if let Some(error) = self.error {
            return Err(error);
        }
        if !self.code.last().is_some_and(|last| last.ends()) {
            return Err(AsmError::NoEnd);
        }
        for &(from, label) in &self.jumps {
            let to = self.labels[label.0].ok_or(AsmError::Unbound(from))?;
            if to == self.code.len() {
                return Err(AsmError::NoEnd);
            }
            let distance = to.checked_sub(from + 1).ok_or(AsmError::Backward(from, to))?;
            let offset = i16::try_from(distance).map_err(|_| AsmError::TooFar(from, to))?;
            self.code[from] = self.code[from].with_offset(offset);
        }
        Ok(self.code)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::live::xdp::Frame;
    use Reg::*;

    /// The bytes of the instructions, of which the last (an exit) is left out.
    fn bytes(write: impl FnOnce(&mut Asm)) -> Vec<[u8; 8]> {
        let mut asm = Asm::default();
        write(&mut asm);
        asm.exit();
        let mut code = asm.finish().unwrap();
        assert_eq!(code.pop().map(Insn::bytes), Some([0x95, 0, 0, 0, 0, 0, 0, 0]));
        code.into_iter().map(Insn::bytes).collect()
    }

    /// Checked with `llvm-mc --disassemble -triple bpfel`; the store of a number, which needs a later one, with RFC 9669 §5.1.
    #[cfg(target_endian = "little")]
    #[test]
    fn instructions_have_the_bytes_of_the_standard() {
        type Case = (fn(&mut Asm), [u8; 8]);
        let cases: [Case; 18] = [
            (|a| a.alu64(Alu::Move, R0, 2), [0xb7, 0x00, 0, 0, 2, 0, 0, 0]),
            (|a| a.alu64(Alu::Move, R6, R1), [0xbf, 0x16, 0, 0, 0, 0, 0, 0]),
            (|a| a.alu64(Alu::Move, R2, Frame), [0xbf, 0xa2, 0, 0, 0, 0, 0, 0]),
            (|a| a.alu64(Alu::Add, R2, -4), [0x07, 0x02, 0, 0, 0xfc, 0xff, 0xff, 0xff]),
            (|a| a.alu64(Alu::Add, R3, R4), [0x0f, 0x43, 0, 0, 0, 0, 0, 0]),
            (|a| a.alu32(Alu::And, R5, 0xf0), [0x54, 0x05, 0, 0, 0xf0, 0, 0, 0]),
            (|a| a.alu64(Alu::ShiftRight, R1, 32), [0x77, 0x01, 0, 0, 32, 0, 0, 0]),
            (|a| a.alu64(Alu::ShiftRightSigned, R1, 32), [0xc7, 0x01, 0, 0, 32, 0, 0, 0]),
            (|a| a.load(Size::Word, R2, R1, 4), [0x61, 0x12, 4, 0, 0, 0, 0, 0]),
            (|a| a.load(Size::Half, R3, R2, 12), [0x69, 0x23, 12, 0, 0, 0, 0, 0]),
            (|a| a.load(Size::Byte, R3, R2, -1), [0x71, 0x23, 0xff, 0xff, 0, 0, 0, 0]),
            (|a| a.load(Size::Double, R3, R2, 8), [0x79, 0x23, 8, 0, 0, 0, 0, 0]),
            (|a| a.store(Size::Word, Frame, -4, R3), [0x63, 0x3a, 0xfc, 0xff, 0, 0, 0, 0]),
            (|a| a.store(Size::Double, Frame, -8, 7), [0x7a, 0x0a, 0xf8, 0xff, 7, 0, 0, 0]),
            (|a| a.network16(R4), [0xdc, 0x04, 0, 0, 16, 0, 0, 0]),
            (|a| a.network32(R4), [0xdc, 0x04, 0, 0, 32, 0, 0, 0]),
            (|a| a.call(Helper::MapLookup), [0x85, 0x00, 0, 0, 1, 0, 0, 0]),
            (|a| a.call(Helper::RedirectMap), [0x85, 0x00, 0, 0, 51, 0, 0, 0]),
        ];
        for (place, (write, expected)) in cases.into_iter().enumerate() {
            assert_eq!(bytes(write), [expected], "case {place}");
        }
    }

    #[cfg(target_endian = "little")]
    #[test]
    fn wide_loads_are_two_instructions() {
        assert_eq!(
            bytes(|a| a.wide(R1, 0x1122_3344_5566_7788)),
            [[0x18, 0x01, 0, 0, 0x88, 0x77, 0x66, 0x55], [0, 0, 0, 0, 0x44, 0x33, 0x22, 0x11]]
        );
        assert_eq!(bytes(|a| a.map(R1, 9)), [[0x18, 0x11, 0, 0, 9, 0, 0, 0], [0; 8]]);
        assert_eq!(bytes(|a| a.map_value(R1, 9, 6)), [[0x18, 0x21, 0, 0, 9, 0, 0, 0], [0, 0, 0, 0, 6, 0, 0, 0]]);
    }

    #[cfg(target_endian = "little")]
    #[test]
    fn jumps_count_the_instructions_they_leave_out() {
        let code = bytes(|a| {
            let (near, far) = (a.label(), a.label());
            a.jump_if(Cond::Ne, R1, 5, near);
            a.jump_if32(Cond::Gt, R1, R2, far);
            a.wide(R3, 1);
            a.bind(near);
            a.jump(far);
            a.alu64(Alu::Move, R0, 0);
            a.bind(far);
        });
        assert_eq!(code[0], [0x55, 0x01, 3, 0, 5, 0, 0, 0]);
        assert_eq!(code[1], [0x2e, 0x21, 4, 0, 0, 0, 0, 0]);
        assert_eq!(code[4], [0x05, 0x00, 1, 0, 0, 0, 0, 0]);
    }

    #[test]
    fn what_is_no_program_is_refused() {
        let refused = |write: fn(&mut Asm)| {
            let mut asm = Asm::default();
            write(&mut asm);
            asm.finish().unwrap_err()
        };
        assert_eq!(refused(|_| ()), AsmError::NoEnd);
        assert_eq!(refused(|a| a.alu64(Alu::Move, R0, 0)), AsmError::NoEnd);
        let unbound = refused(|a| {
            let label = a.label();
            a.jump(label);
        });
        assert_eq!(unbound, AsmError::Unbound(0));
        let at_the_end = refused(|a| {
            let label = a.label();
            a.jump(label);
            a.bind(label);
        });
        assert_eq!(at_the_end, AsmError::NoEnd);
        let back = refused(|a| {
            let label = a.label();
            a.bind(label);
            a.alu64(Alu::Move, R0, 0);
            a.jump(label);
        });
        assert_eq!(back, AsmError::Backward(1, 0));
        let twice = refused(|a| {
            let label = a.label();
            a.bind(label);
            a.exit();
            a.bind(label);
        });
        assert_eq!(twice, AsmError::BoundTwice(0, 1));
        let far = refused(|a| {
            let label = a.label();
            a.jump(label);
            (0..=i16::MAX).for_each(|_| a.alu64(Alu::Move, R0, 0));
            a.bind(label);
            a.exit();
        });
        assert_eq!(far, AsmError::TooFar(0, 32769));
    }
}

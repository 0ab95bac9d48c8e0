//! One eBPF instruction (RFC 9669): its parts as types, its eight bytes.

/// A register that can be written. R0 is what a call or the program returns, R1–R5 the arguments of a call (lost by it), R6–R9 are kept.
#[allow(missing_docs, reason = "they are numbers")]
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[repr(u8)]
pub enum Reg {
    R0,
    R1,
    R2,
    R3,
    R4,
    R5,
    R6,
    R7,
    R8,
    R9,
}

/// The frame pointer, R10: the end of 512 bytes of stack. It can be read and not written, so it is no [`Reg`].
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Frame;

/// Number of the frame pointer.
const FRAME: u8 = 10;

/// What a computation or comparison takes as its second operand.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Operand {
    /// A register.
    Reg(Reg),
    /// The frame pointer.
    Frame,
    /// A number, sign-extended to 64 bits.
    Imm(i32),
}

impl From<Reg> for Operand {
    fn from(reg: Reg) -> Operand {
        Operand::Reg(reg)
    }
}

impl From<Frame> for Operand {
    fn from(_: Frame) -> Operand {
        Operand::Frame
    }
}

impl From<i32> for Operand {
    fn from(number: i32) -> Operand {
        Operand::Imm(number)
    }
}

/// What an address is relative to.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Base(u8);

impl From<Reg> for Base {
    fn from(reg: Reg) -> Base {
        Base(reg as u8)
    }
}

impl From<Frame> for Base {
    fn from(_: Frame) -> Base {
        Base(FRAME)
    }
}

/// Width of a load or store.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[repr(u8)]
pub enum Size {
    /// Four bytes.
    Word = 0x00,
    /// Two bytes.
    Half = 0x08,
    /// One byte.
    Byte = 0x10,
    /// Eight bytes.
    Double = 0x18,
}

/// A computation, `destination = destination op source`.
#[allow(missing_docs, reason = "their names say it")]
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[repr(u8)]
pub enum Alu {
    Add = 0x00,
    Sub = 0x10,
    Mul = 0x20,
    Div = 0x30,
    Or = 0x40,
    And = 0x50,
    ShiftLeft = 0x60,
    ShiftRight = 0x70,
    Mod = 0x90,
    Xor = 0xa0,
    Move = 0xb0,
    ShiftRightSigned = 0xc0,
}

/// When a jump is taken. Comparisons are unsigned unless their name says otherwise.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[repr(u8)]
pub enum Cond {
    /// Equal.
    Eq = 0x10,
    /// Greater.
    Gt = 0x20,
    /// Greater or equal.
    Ge = 0x30,
    /// A bit in common.
    AnyBit = 0x40,
    /// Not equal.
    Ne = 0x50,
    /// Greater, signed.
    GtSigned = 0x60,
    /// Greater or equal, signed.
    GeSigned = 0x70,
    /// Less.
    Lt = 0xa0,
    /// Less or equal.
    Le = 0xb0,
    /// Less, signed.
    LtSigned = 0xc0,
    /// Less or equal, signed.
    LeSigned = 0xd0,
}

/// A function of the kernel, by its number in `linux/bpf.h`.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[repr(i32)]
pub enum Helper {
    /// `(map, key) → value or null`.
    MapLookup = 1,
    /// `(context, table of programs, slot)`: goes on there and does not come back, unless the slot is empty.
    TailCall = 12,
    /// `(device, flags) → action`: out by the device with this index.
    Redirect = 23,
    /// `(map, key, flags) → action`; the low two bits of `flags` are the action when the map has no entry.
    RedirectMap = 51,
}

/// One instruction, or half of one that is sixteen bytes long.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Insn {
    code: u8,
    destination: u8,
    source: u8,
    offset: i16,
    immediate: i32,
}

// Classes and modes of RFC 9669 §3 to §5.
const LOAD_WIDE: u8 = 0x18;
const LOAD: u8 = 0x61;
const STORE: u8 = 0x63;
const STORE_IMMEDIATE: u8 = 0x62;
const ALU32: u8 = 0x04;
const ALU64: u8 = 0x07;
const JUMP: u8 = 0x05;
const JUMP32: u8 = 0x06;
const FROM_REGISTER: u8 = 0x08;
const TO_BIG_ENDIAN: u8 = 0xdc;
const CALL: u8 = 0x85;
const EXIT: u8 = 0x95;
/// A wide load whose number is the descriptor of a map.
const MAP: u8 = 1;
/// A wide load whose number is the descriptor of an array map; the second half is an offset into its value.
const MAP_VALUE: u8 = 2;

impl Insn {
    /// The eight bytes as the kernel wants them, in the byte order of the machine.
    pub const fn bytes(self) -> [u8; 8] {
        let [o0, o1] = self.offset.to_ne_bytes();
        let [i0, i1, i2, i3] = self.immediate.to_ne_bytes();
        let registers =
            if cfg!(target_endian = "little") { self.source << 4 | self.destination } else { self.destination << 4 | self.source };
        [self.code, registers, o0, o1, i0, i1, i2, i3]
    }

    fn with_operand(code: u8, operand: Operand) -> Insn {
        match operand {
            Operand::Imm(immediate) => Insn { code, immediate, ..Insn::default() },
            Operand::Reg(reg) => Insn { code: code | FROM_REGISTER, source: reg as u8, ..Insn::default() },
            Operand::Frame => Insn { code: code | FROM_REGISTER, source: FRAME, ..Insn::default() },
        }
    }

    pub(super) fn alu64(op: Alu, destination: Reg, operand: Operand) -> Insn {
        Insn { destination: destination as u8, ..Insn::with_operand(ALU64 | op as u8, operand) }
    }

    pub(super) fn alu32(op: Alu, destination: Reg, operand: Operand) -> Insn {
        Insn { destination: destination as u8, ..Insn::with_operand(ALU32 | op as u8, operand) }
    }

    pub(super) fn load(size: Size, destination: Reg, base: Base, offset: i16) -> Insn {
        Insn { code: LOAD | size as u8, destination: destination as u8, source: base.0, offset, immediate: 0 }
    }

    pub(super) fn store(size: Size, base: Base, offset: i16, operand: Operand) -> Insn {
        let (code, source, immediate) = match operand {
            Operand::Imm(number) => (STORE_IMMEDIATE, 0, number),
            Operand::Reg(reg) => (STORE, reg as u8, 0),
            Operand::Frame => (STORE, FRAME, 0),
        };
        Insn { code: code | size as u8, destination: base.0, source, offset, immediate }
    }

    pub(super) fn to_big_endian(destination: Reg, bits: i32) -> Insn {
        Insn { code: TO_BIG_ENDIAN, destination: destination as u8, immediate: bits, ..Insn::default() }
    }

    pub(super) fn jump() -> Insn {
        Insn { code: JUMP, ..Insn::default() }
    }

    pub(super) fn jump_if(wide: bool, cond: Cond, left: Reg, right: Operand) -> Insn {
        let class = if wide { JUMP } else { JUMP32 };
        Insn { destination: left as u8, ..Insn::with_operand(class | cond as u8, right) }
    }

    pub(super) fn wide(destination: Reg, number: u64) -> [Insn; 2] {
        let first = Insn { code: LOAD_WIDE, destination: destination as u8, immediate: number as u32 as i32, ..Insn::default() };
        [first, Insn { immediate: (number >> 32) as u32 as i32, ..Insn::default() }]
    }

    pub(super) fn map(destination: Reg, descriptor: i32) -> [Insn; 2] {
        let first = Insn { code: LOAD_WIDE, destination: destination as u8, source: MAP, immediate: descriptor, ..Insn::default() };
        [first, Insn::default()]
    }

    pub(super) fn map_value(destination: Reg, descriptor: i32, offset: i32) -> [Insn; 2] {
        let first = Insn { code: LOAD_WIDE, destination: destination as u8, source: MAP_VALUE, immediate: descriptor, ..Insn::default() };
        [first, Insn { immediate: offset, ..Insn::default() }]
    }

    pub(super) fn call(helper: Helper) -> Insn {
        Insn { code: CALL, immediate: helper as i32, ..Insn::default() }
    }

    pub(super) fn exit() -> Insn {
        Insn { code: EXIT, ..Insn::default() }
    }

    /// True when the next instruction is not reached from this one.
    pub(super) fn ends(self) -> bool {
        self.code == EXIT || self.code == JUMP
    }

    pub(super) fn with_offset(self, offset: i16) -> Insn {
        Insn { offset, ..self }
    }
}

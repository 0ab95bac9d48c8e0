//! Traffic made and counted in the kernel, for measuring what lies between: a source that needs no process to copy frames, and a sink that only counts.
//!
//! ```text
//! Source: BPF_PROG_TEST_RUN with live frames ──► program writes the frame ──► redirected to a device ──► … ──► device of the Sink: counted, dropped
//! ```

use super::bpf::{Attach, Attachment, BpfError, Map, MapKind, Program};
use super::context::{DATA, DATA_END, DROP, QUEUE, need, number};
use super::{Alu, Asm, AsmError, Cond, Helper, Insn, Reg, Size};

/// Frames that the kernel makes before it hands them on, at most.
const BATCH: u32 = 64;
/// Queues of a sink, each counted by itself: two of them may be at work at once.
const QUEUES: i32 = 256;

/// Which 16 bits of a frame change from frame to frame.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Varied {
    /// Where they are, bytes from the frame's beginning.
    pub at: usize,
    /// Where other 16 bits are that balance them, so that a checksum over both (RFC 1071) stays what it is.
    pub balance: Option<usize>,
}

/// Sends one frame again and again by a device, on the processor of the calling thread: several may send at once. Frames are made anew each time: buffers come back
/// as whoever had them left them.
#[derive(Debug)]
pub struct Source {
    _parked: Option<Attachment>,
    program: Program,
    frame: Vec<u8>,
    // Read by the program.
    _count: Map,
}

impl Source {
    /// Sends `frame` by the device with this index. The program is attached to the device `parked`, which nothing comes in by: the kernel knows it then, and does not make
    /// it known each time that frames are sent, which takes a grace period (25 ms).
    ///
    /// # Errors
    /// When the kernel refuses: it takes CAP_BPF, CAP_NET_ADMIN and CAP_SYS_ADMIN.
    ///
    /// # Panics
    /// When `varied` lies outside the frame.
    pub fn new(frame: &[u8], device: u32, parked: Option<u32>, varied: Option<Varied>) -> Result<Source, BpfError> {
        let (program, count) = load_source(frame, device, varied)?;
        let parked = parked.map(|device| Attachment::new(&program, device, Attach::Native)).transpose()?;
        Ok(Source { _parked: parked, program, frame: frame.to_vec(), _count: count })
    }

    /// Sends so many, as fast as the device takes them. What it does not take is lost.
    ///
    /// # Errors
    /// When the kernel refuses; live frames are known since Linux 5.18.
    pub fn send(&self, frames: u32) -> Result<(), BpfError> {
        self.program.run_live(&self.frame, frames, BATCH)
    }
}

/// Counts and drops what comes in by a device.
#[derive(Debug)]
pub struct Sink {
    _attachment: Attachment,
    counts: Map,
}

impl Sink {
    /// Counts frames of `len` bytes at the device with this index; others are dropped uncounted.
    ///
    /// # Errors
    /// When the kernel refuses, or another program is there.
    pub fn new(device: u32, len: usize) -> Result<Sink, BpfError> {
        let counts = Map::new(MapKind::Array, "noref_sink", 4, 8 * QUEUES as usize, 1)?;
        let code = assemble_sink(len, &counts).map_err(BpfError::assembling("the sink"))?;
        let program = Program::load("noref_sink", &code)?;
        Ok(Sink { _attachment: Attachment::new(&program, device, Attach::Native)?, counts })
    }

    /// How many came so far.
    ///
    /// # Errors
    /// When the kernel refuses.
    pub fn count(&self) -> Result<u64, BpfError> {
        let counts = self.counts.get(&[0; 4])?.unwrap_or_default();
        Ok(counts.chunks_exact(8).filter_map(|count| count.try_into().ok().map(u64::from_ne_bytes)).sum())
    }
}

fn load_source(frame: &[u8], device: u32, varied: Option<Varied>) -> Result<(Program, Map), BpfError> {
    let count = Map::new(MapKind::Array, "noref_source", 4, 8, 1)?;
    let code = assemble_source(frame, device, varied, &count).map_err(BpfError::assembling("the source"))?;
    Ok((Program::load("noref_source", &code)?, count))
}

/// R7 is the frame's first byte, R8 the one behind its last, R6 how many frames were made before.
fn assemble_source(frame: &[u8], device: u32, varied: Option<Varied>, count: &Map) -> Result<Vec<Insn>, AsmError> {
    use Reg::*;
    let mut asm = Asm::default();
    let short = asm.label();
    asm.load(Size::Word, R7, R1, DATA);
    asm.load(Size::Word, R8, R1, DATA_END);
    need(&mut asm, frame.len() as i32, short);
    for (n, bytes) in frame.chunks(2).enumerate() {
        let at = 2 * n as i16;
        match *bytes {
            [a, b] => asm.store(Size::Half, R7, at, i32::from(u16::from_ne_bytes([a, b]))),
            _ => asm.store(Size::Byte, R7, at, i32::from(bytes[0])),
        }
    }
    if let Some(Varied { at, balance }) = varied {
        asm.map_value(R2, number(count), 0);
        asm.load(Size::Double, R6, R2, 0);
        asm.alu64(Alu::Add, R6, 1);
        asm.store(Size::Double, R2, 0, R6);
        // Steps that are no neighbours, and come by all of them.
        asm.alu64(Alu::Mul, R6, 40_503);
        asm.alu64(Alu::And, R6, 0xffff);
        let half = |at: usize| i32::from(u16::from_ne_bytes([frame[at], frame[at + 1]]));
        let before = half(at);
        asm.store(Size::Half, R7, at as i16, R6);
        if let Some(balance) = balance {
            // What both were together, less the one as it is now.
            asm.alu64(Alu::Xor, R6, 0xffff);
            asm.alu64(Alu::Add, R6, before + half(balance));
            for _ in 0..2 {
                asm.alu64(Alu::Move, R2, R6);
                asm.alu64(Alu::ShiftRight, R2, 16);
                asm.alu64(Alu::And, R6, 0xffff);
                asm.alu64(Alu::Add, R6, R2);
            }
            asm.store(Size::Half, R7, balance as i16, R6);
        }
    }
    asm.alu64(Alu::Move, R1, device as i32);
    asm.alu64(Alu::Move, R2, 0);
    asm.call(Helper::Redirect);
    asm.exit();
    asm.bind(short);
    drop_it(&mut asm);
    asm.finish()
}

fn assemble_sink(len: usize, counts: &Map) -> Result<Vec<Insn>, AsmError> {
    use Reg::*;
    let mut asm = Asm::default();
    let other = asm.label();
    asm.load(Size::Word, R2, R1, DATA_END);
    asm.load(Size::Word, R3, R1, DATA);
    asm.alu64(Alu::Sub, R2, R3);
    asm.jump_if(Cond::Ne, R2, len as i32, other);
    asm.load(Size::Word, R4, R1, QUEUE);
    asm.jump_if(Cond::Ge, R4, QUEUES, other);
    asm.alu64(Alu::ShiftLeft, R4, 3);
    asm.map_value(R5, number(counts), 0);
    asm.alu64(Alu::Add, R5, R4);
    asm.load(Size::Double, R2, R5, 0);
    asm.alu64(Alu::Add, R2, 1);
    asm.store(Size::Double, R5, 0, R2);
    asm.bind(other);
    drop_it(&mut asm);
    asm.finish()
}

fn drop_it(asm: &mut Asm) {
    asm.alu64(Alu::Move, Reg::R0, DROP);
    asm.exit();
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::super::bpf::allowed;
    use super::*;

    #[test]
    fn a_source_writes_its_frame_and_varies_what_it_should() {
        let frame: Vec<u8> = (1..=61).collect();
        for varied in [None, Some(Varied { at: 36, balance: None }), Some(Varied { at: 36, balance: Some(18) })] {
            let Some((program, _count)) = allowed(load_source(&frame, 1, varied)) else { return };
            let mut seen = BTreeSet::new();
            for _ in 0..1000 {
                let (answer, written) = program.run(&[0; 61]).unwrap();
                assert_eq!(answer, 4, "XDP_REDIRECT");
                if varied.is_none_or(|varied| varied.balance.is_some()) {
                    assert_eq!(sum(&written), sum(&frame), "{varied:?}");
                }
                seen.insert(written[36..38].to_vec());
                let differ: Vec<usize> = (0..61).filter(|&at| written[at] != frame[at]).collect();
                assert!(differ.iter().all(|at| matches!(at, 36 | 37 | 18 | 19)), "{differ:?}");
            }
            assert_eq!(seen.len(), if varied.is_some() { 1000 } else { 1 }, "{varied:?}");
            // Less than it writes.
            assert_eq!(program.answer(&[0; 60]).unwrap(), DROP as u32);
        }
    }

    /// What a checksum is the complement of.
    fn sum(bytes: &[u8]) -> u64 {
        bytes.chunks_exact(2).map(|half| u64::from(u16::from_ne_bytes([half[0], half[1]]))).sum::<u64>() % 0xffff
    }

    #[test]
    fn a_sink_counts_frames_of_its_length() {
        let Some(counts) = allowed(Map::new(MapKind::Array, "noref_sink", 4, 8 * QUEUES as usize, 1)) else { return };
        let program = Program::load("noref_sink", &assemble_sink(60, &counts).unwrap()).unwrap();
        for len in [60, 61, 60, 14, 60] {
            assert_eq!(program.answer(&vec![0; len]).unwrap(), DROP as u32);
        }
        assert_eq!(counts.get(&[0; 4]).unwrap().unwrap()[..16], [3_u64.to_ne_bytes(), [0; 8]].concat());
    }
}

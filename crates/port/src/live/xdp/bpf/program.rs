//! Programs that the kernel has verified.

use std::ffi::c_int;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, OwnedFd};

use super::{ATTACH_XDP, BpfError, bpf, bpf_new, short};
use crate::live::xdp::Insn;

// Commands and types of linux/bpf.h.
const PROG_LOAD: c_int = 5;
const PROG_TEST_RUN: c_int = 10;
const PROG_TYPE_XDP: u32 = 6;
/// Frames are made that go where the program sends them (Linux 5.18).
const LIVE_FRAMES: u32 = 1 << 1;
/// The program may be at devices whose frames stand in several pieces (Linux 5.18). It sees the first.
const XDP_HAS_FRAGS: u32 = 1 << 5;
/// Bytes of the verifier's account that are kept.
const LOG: usize = 1 << 16;

/// An XDP program that the kernel found safe.
#[derive(Debug)]
pub struct Program {
    fd: OwnedFd,
}

#[repr(C)]
#[derive(Default)]
struct Load {
    kind: u32,
    count: u32,
    code: u64,
    license: u64,
    log_level: u32,
    log_size: u32,
    log: u64,
    version: u32,
    flags: u32,
    name: [u8; 16],
    device: u32,
    attach: u32,
}

#[repr(C)]
#[derive(Default)]
struct TestRun {
    program: u32,
    returned: u32,
    input_len: u32,
    output_len: u32,
    input: u64,
    output: u64,
    repeat: u32,
    duration: u32,
    context_input_len: u32,
    context_output_len: u32,
    context_input: u64,
    context_output: u64,
    flags: u32,
    cpu: u32,
    batch: u32,
    hole: u32,
}

impl Program {
    /// Loads an XDP program. `name` is what `bpftool prog` and `ip link` show, at most 15 bytes.
    ///
    /// # Errors
    /// With the verifier's account when it finds the program unsafe.
    pub fn load(name: &str, code: &[Insn]) -> Result<Program, BpfError> {
        let bytes: Vec<[u8; 8]> = code.iter().map(|insn| insn.bytes()).collect();
        let mut load = Load {
            kind: PROG_TYPE_XDP,
            count: bytes.len() as u32,
            code: bytes.as_ptr() as u64,
            license: c"Dual MIT/GPL".as_ptr() as u64,
            name: short(name),
            attach: ATTACH_XDP,
            ..Load::default()
        };
        for flags in [XDP_HAS_FRAGS, 0] {
            load.flags = flags;
            // SAFETY: the command's structure; code and licence outlive the call, and the code is as long as it says.
            if let Ok(fd) = unsafe { bpf_new(PROG_LOAD, &mut load) } {
                return Ok(Program { fd });
            }
        }
        // Once more for the account, which costs time and memory that a sound program need not spend.
        let mut log = vec![0_u8; LOG];
        (load.log_level, load.log_size, load.log) = (1, LOG as u32, log.as_mut_ptr() as u64);
        // SAFETY: as before, and so is the log.
        match unsafe { bpf_new(PROG_LOAD, &mut load) } {
            Ok(fd) => Ok(Program { fd }),
            Err(source) => {
                let len = log.iter().position(|&byte| byte == 0).unwrap_or(log.len());
                let log = String::from_utf8_lossy(&log[..len]).into_owned();
                Err(BpfError::Verifier { name: name.to_owned(), source, log })
            }
        }
    }

    /// What the program answers to a frame (`XDP_PASS` is 2, `XDP_REDIRECT` 4), without a device. For tests. The kernel wants 14 bytes at least.
    ///
    /// # Errors
    /// When the kernel refuses.
    pub fn answer(&self, frame: &[u8]) -> Result<u32, BpfError> {
        self.run(frame).map(|(answer, _)| answer)
    }

    /// As [`Program::answer`], and the frame as the program leaves it.
    pub(in crate::live::xdp) fn run(&self, frame: &[u8]) -> Result<(u32, Vec<u8>), BpfError> {
        // A program could put something in front.
        let mut output = vec![0; frame.len() + 256];
        let mut run = TestRun { output: output.as_mut_ptr() as u64, output_len: output.len() as u32, ..self.test_run(frame, 1) };
        // SAFETY: the command's structure; the frame and the room for the answer are as long as it says and outlive the call.
        unsafe { bpf(PROG_TEST_RUN, &mut run) }.map_err(BpfError::call("trying a program"))?;
        output.truncate(run.output_len as usize);
        Ok((run.returned, output))
    }

    /// Runs the program on so many frames, each a buffer of the kernel's own that goes where the program sends it: by `batch` of them, on the thread's processor. A
    /// buffer has the bytes of `frame` when it is new, and what was done to it when it comes again.
    pub(in crate::live::xdp) fn run_live(&self, frame: &[u8], frames: u32, batch: u32) -> Result<(), BpfError> {
        let mut run = TestRun { flags: LIVE_FRAMES, batch, ..self.test_run(frame, frames) };
        // SAFETY: the command's structure; the frame is as long as it says and outlives the call.
        unsafe { bpf(PROG_TEST_RUN, &mut run) }.map_err(BpfError::call("running a program on live frames")).map(drop)
    }

    fn test_run(&self, frame: &[u8], repeat: u32) -> TestRun {
        TestRun {
            program: self.fd.as_raw_fd() as u32,
            input: frame.as_ptr() as u64,
            input_len: frame.len() as u32,
            repeat,
            ..TestRun::default()
        }
    }
}

impl AsFd for Program {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.fd.as_fd()
    }
}

#[cfg(test)]
mod tests {
    use super::super::allowed;
    use super::*;
    use crate::live::xdp::{Alu, Asm, Reg, Size};

    #[test]
    fn an_unsafe_program_is_refused_with_the_verifiers_account() {
        let mut asm = Asm::default();
        asm.load(Size::Word, Reg::R0, Reg::R3, 0);
        asm.exit();
        let error = Program::load("noref_test", &asm.finish().unwrap()).unwrap_err();
        if error.io().raw_os_error() != Some(libc::EACCES) {
            return assert!(allowed::<()>(Err(error)).is_none());
        }
        assert!(error.to_string().contains("R3 !read_ok"), "{error}");
    }

    #[test]
    fn a_program_answers() {
        let mut asm = Asm::default();
        asm.alu64(Alu::Move, Reg::R0, 1);
        asm.exit();
        let Some(program) = allowed(Program::load("noref_test", &asm.finish().unwrap())) else { return };
        assert_eq!(program.answer(&[0; 64]).unwrap(), 1);
    }
}

//! bpf(2): maps, programs, and the link that holds a program at a device for as long as the process lives.
//!
//! Invariant: every pointer handed to the kernel is to memory that lives through the call and has the length that the kernel was told. The structures
//! have no padding, which the kernel would want to be zero.

use std::ffi::c_int;
use std::io;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, FromRawFd, OwnedFd};

use super::Insn;
use crate::live::sys;

// Commands, types and flags of linux/bpf.h and linux/if_link.h.
const MAP_CREATE: c_int = 0;
const MAP_LOOKUP: c_int = 1;
const MAP_UPDATE: c_int = 2;
const MAP_DELETE: c_int = 3;
const PROG_LOAD: c_int = 5;
const PROG_TEST_RUN: c_int = 10;
const LINK_CREATE: c_int = 28;
const PROG_TYPE_XDP: u32 = 6;
const ATTACH_XDP: u32 = 37;
const NO_PREALLOC: u32 = 1;
const XDP_GENERIC: u32 = 1 << 1;
const XDP_NATIVE: u32 = 1 << 2;
/// Bytes of the verifier's account that are kept.
const LOG: usize = 1 << 16;

/// What the kernel refused, and why.
#[derive(Debug, thiserror::Error)]
pub enum BpfError {
    /// A call failed. Without CAP_BPF and CAP_NET_ADMIN each does.
    #[error("{what}: {source}")]
    Call {
        /// What was to be done.
        what: String,
        /// The kernel's answer.
        source: io::Error,
    },
    /// The kernel did not find the program safe.
    #[error("the kernel refused the program {name}: {source}\n{log}")]
    Verifier {
        /// Name of the program.
        name: String,
        /// The kernel's answer.
        source: io::Error,
        /// The verifier's account, an instruction a line.
        log: String,
    },
}

impl BpfError {
    fn call(what: impl Into<String>) -> impl FnOnce(io::Error) -> BpfError {
        let what = what.into();
        |source| BpfError::Call { what, source }
    }

    /// The kernel's answer.
    pub fn io(&self) -> &io::Error {
        match self {
            BpfError::Call { source, .. } | BpfError::Verifier { source, .. } => source,
        }
    }
}

/// What a map is.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[repr(u32)]
pub enum MapKind {
    /// Any keys.
    Hash = 1,
    /// Keys are u32 from 0 on, all there from the start.
    Array = 2,
    /// Keys are a length in bits (u32) and a prefix; the longest that matches is found.
    LpmTrie = 11,
    /// Keys are queue numbers (u32), values AF_XDP sockets.
    Sockets = 17,
}

/// A map, shared by programs and us.
#[derive(Debug)]
pub struct Map {
    fd: OwnedFd,
    name: &'static str,
    key: usize,
    value: usize,
}

#[repr(C)]
#[derive(Default)]
struct MapCreate {
    kind: u32,
    key: u32,
    value: u32,
    entries: u32,
    flags: u32,
    inner: u32,
    node: u32,
    name: [u8; 16],
    device: u32,
}

#[repr(C)]
struct Element {
    map: u32,
    hole: u32,
    key: u64,
    value: u64,
    flags: u64,
}

impl Map {
    /// A new, empty map of up to `entries` entries; keys and values have these many bytes. `name` is what `bpftool map` shows, at most 15 bytes.
    ///
    /// # Errors
    /// When the kernel knows no such map, has no memory, or the process no CAP_BPF.
    pub fn new(kind: MapKind, name: &'static str, key: usize, value: usize, entries: u32) -> Result<Map, BpfError> {
        let flags = if kind == MapKind::LpmTrie { NO_PREALLOC } else { 0 };
        let mut create = MapCreate {
            kind: kind as u32,
            key: key as u32,
            value: value as u32,
            entries,
            flags,
            name: short(name),
            ..MapCreate::default()
        };
        let fd = bpf(MAP_CREATE, &mut create).and_then(owned).map_err(BpfError::call(format!("creating the map {name}")))?;
        Ok(Map { fd, name, key, value })
    }

    /// Puts an entry in, over one with the same key.
    ///
    /// # Errors
    /// When the map is full, or the value is none that it can hold.
    ///
    /// # Panics
    /// When key or value have another length than the map's.
    pub fn insert(&self, key: &[u8], value: &[u8]) -> Result<(), BpfError> {
        assert_eq!((key.len(), value.len()), (self.key, self.value), "the map {} has other keys or values", self.name);
        let mut element = self.element(key, value.as_ptr() as u64);
        bpf(MAP_UPDATE, &mut element).map(|_| ()).map_err(BpfError::call(format!("an entry of the map {}", self.name)))
    }

    /// Takes an entry out; false when there is none.
    ///
    /// # Errors
    /// When the kernel refuses.
    ///
    /// # Panics
    /// When the key has another length than the map's.
    pub fn remove(&self, key: &[u8]) -> Result<bool, BpfError> {
        assert_eq!(key.len(), self.key, "the map {} has other keys", self.name);
        found(bpf(MAP_DELETE, &mut self.element(key, 0))).map_err(BpfError::call(format!("an entry of the map {}", self.name)))
    }

    /// The value of a key.
    ///
    /// # Errors
    /// When the kernel refuses. A map of sockets cannot be read.
    ///
    /// # Panics
    /// When the key has another length than the map's.
    pub fn get(&self, key: &[u8]) -> Result<Option<Vec<u8>>, BpfError> {
        assert_eq!(key.len(), self.key, "the map {} has other keys", self.name);
        let mut value = vec![0; self.value];
        let there = found(bpf(MAP_LOOKUP, &mut self.element(key, value.as_mut_ptr() as u64)));
        there.map(|there| there.then_some(value)).map_err(BpfError::call(format!("an entry of the map {}", self.name)))
    }

    fn element(&self, key: &[u8], value: u64) -> Element {
        Element { map: self.fd.as_raw_fd() as u32, hole: 0, key: key.as_ptr() as u64, value, flags: 0 }
    }
}

impl AsFd for Map {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.fd.as_fd()
    }
}

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
        if let Ok(fd) = bpf(PROG_LOAD, &mut load).and_then(owned) {
            return Ok(Program { fd });
        }
        // Once more for the account, which costs time and memory that a sound program need not spend.
        let mut log = vec![0_u8; LOG];
        (load.log_level, load.log_size, load.log) = (1, LOG as u32, log.as_mut_ptr() as u64);
        match bpf(PROG_LOAD, &mut load).and_then(owned) {
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
        let mut run = TestRun {
            program: self.fd.as_raw_fd() as u32,
            input: frame.as_ptr() as u64,
            input_len: frame.len() as u32,
            repeat: 1,
            ..TestRun::default()
        };
        bpf(PROG_TEST_RUN, &mut run).map_err(BpfError::call("trying a program"))?;
        Ok(run.returned)
    }
}

/// Where in the way of a frame a program runs.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum Attach {
    /// In the driver, before the kernel makes a packet of the frame.
    #[default]
    Native,
    /// In the stack, for drivers that cannot: slower, and the MTU does not matter.
    Generic,
    /// In the driver where it can, else in the stack.
    NativeOrGeneric,
}

/// A program at a device. It is taken off when this value is dropped, and when the process dies, however it dies.
#[derive(Debug)]
pub struct Attachment {
    _link: OwnedFd,
    generic: bool,
}

#[repr(C)]
#[derive(Default)]
struct LinkCreate {
    program: u32,
    device: u32,
    attach: u32,
    flags: u32,
    rest: [u32; 8],
}

impl Attachment {
    /// Puts a program at the device with this index of the thread's network namespace.
    ///
    /// # Errors
    /// When another program is there, or the driver refuses; then often because of the MTU, or of offloads that XDP excludes.
    pub fn new(program: &Program, device: u32, how: Attach) -> Result<Attachment, BpfError> {
        let create = |flags| {
            let mut link =
                LinkCreate { program: program.fd.as_raw_fd() as u32, device, attach: ATTACH_XDP, flags, ..LinkCreate::default() };
            bpf(LINK_CREATE, &mut link).and_then(owned)
        };
        let native = || create(XDP_NATIVE).map(|link| (link, false));
        let generic = || create(XDP_GENERIC).map(|link| (link, true));
        let created = match how {
            Attach::Native => native(),
            Attach::Generic => generic(),
            Attach::NativeOrGeneric => native().or_else(|error| if is_taken(&error) { Err(error) } else { generic() }),
        };
        let (link, generic) = created.map_err(|error| {
            let hint = match error.raw_os_error() {
                Some(libc::EBUSY | libc::EEXIST) => "another XDP program is there already (`ip link` shows it)",
                Some(libc::EINVAL | libc::ERANGE | libc::EOPNOTSUPP) => {
                    "the driver refuses; lower the MTU (about 3500 on most drivers), switch off LRO, or ask for a generic program"
                }
                _ => "attaching the XDP program",
            };
            BpfError::call(hint)(error)
        })?;
        Ok(Attachment { _link: link, generic })
    }

    /// True when the program runs in the stack.
    pub fn is_generic(&self) -> bool {
        self.generic
    }
}

fn is_taken(error: &io::Error) -> bool {
    matches!(error.raw_os_error(), Some(libc::EBUSY | libc::EEXIST))
}

/// A name as the kernel takes it: letters, digits, `_` and `.`, cut to 15 bytes.
fn short(name: &str) -> [u8; 16] {
    let mut out = [0; 16];
    for (to, from) in out[..15].iter_mut().zip(name.bytes()) {
        *to = if from.is_ascii_alphanumeric() { from } else { b'_' };
    }
    out
}

/// True when an entry was found, false when there is none.
fn found(result: io::Result<c_int>) -> io::Result<bool> {
    match result {
        Ok(_) => Ok(true),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(false),
        Err(error) => Err(error),
    }
}

fn owned(fd: c_int) -> io::Result<OwnedFd> {
    // SAFETY: called with descriptors that a call has just made and nobody else knows.
    Ok(unsafe { OwnedFd::from_raw_fd(fd) })
}

/// The call. `attributes` is the structure of the command.
fn bpf<T>(command: c_int, attributes: &mut T) -> io::Result<c_int> {
    // SAFETY: the structure has the length given, and the pointers in it are to memory that its maker keeps through the call and whose length stands
    // beside them or is that of the map's keys and values.
    let result = unsafe { libc::syscall(libc::SYS_bpf, command, std::ptr::from_mut(attributes), size_of::<T>()) };
    sys::check(result as c_int)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::live::xdp::{Alu, Asm, Reg, Size};

    /// None, with a word why, where the kernel lets us not.
    fn allowed<T>(result: Result<T, BpfError>) -> Option<T> {
        match result {
            Err(error) if matches!(error.io().raw_os_error(), Some(libc::EPERM | libc::ENOSYS | libc::EOPNOTSUPP)) => {
                eprintln!("skipped: {error} (this needs root and a kernel with BPF)");
                None
            }
            other => Some(other.unwrap()),
        }
    }

    #[test]
    fn a_map_keeps_what_is_put_in() {
        let Some(map) = allowed(Map::new(MapKind::Hash, "noref_test", 4, 8, 2)) else { return };
        assert_eq!(map.get(&[1; 4]).unwrap(), None);
        map.insert(&[1; 4], &[7; 8]).unwrap();
        map.insert(&[2; 4], &[8; 8]).unwrap();
        assert_eq!(map.get(&[1; 4]).unwrap(), Some(vec![7; 8]));
        assert!(map.insert(&[3; 4], &[9; 8]).is_err(), "full");
        assert!(map.remove(&[1; 4]).unwrap());
        assert!(!map.remove(&[1; 4]).unwrap());
        let Some(trie) = allowed(Map::new(MapKind::LpmTrie, "noref_test", 8, 4, 2)) else { return };
        trie.insert(&[8, 0, 0, 0, 10, 0, 0, 0], &[1; 4]).unwrap();
        assert_eq!(trie.get(&[32, 0, 0, 0, 10, 9, 8, 7]).unwrap(), Some(vec![1; 4]));
    }

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

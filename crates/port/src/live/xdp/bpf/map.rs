//! Memory that programs in the kernel and the process share, entry by entry.

use std::ffi::c_int;
use std::io;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, OwnedFd};

use super::{BpfError, bpf, bpf_new, short};

// Commands and flags of linux/bpf.h.
const MAP_CREATE: c_int = 0;
const MAP_LOOKUP: c_int = 1;
const MAP_UPDATE: c_int = 2;
const MAP_DELETE: c_int = 3;
const MAP_BY_ID: c_int = 14;
const OBJECT_INFO: c_int = 15;
const NO_PREALLOC: u32 = 1;

/// What a map is.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[repr(u32)]
pub enum MapKind {
    /// Any keys.
    Hash = 1,
    /// Keys are u32 from 0 on, all there from the start.
    Array = 2,
    /// Keys are slots (u32), values programs to go on with. Emptied when its last descriptor is closed.
    Programs = 3,
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

/// The beginning of what the kernel tells of a map.
#[repr(C)]
#[derive(Default)]
struct MapInfo {
    kind: u32,
    id: u32,
}

#[repr(C)]
#[derive(Default)]
struct InfoByDescriptor {
    descriptor: u32,
    info_len: u32,
    info: u64,
}

#[repr(C)]
#[derive(Default)]
struct ById {
    id: u32,
    next: u32,
    flags: u32,
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
        // SAFETY: the command's structure, without pointers.
        let fd = unsafe { bpf_new(MAP_CREATE, &mut create) }.map_err(BpfError::call(format!("creating the map {name}")))?;
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
        // SAFETY: the command's structure; key and value have the map's lengths and outlive the call.
        unsafe { bpf(MAP_UPDATE, &mut element) }.map(|_| ()).map_err(BpfError::call(format!("an entry of the map {}", self.name)))
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
        // SAFETY: the command's structure; the key has the map's length and outlives the call.
        found(unsafe { bpf(MAP_DELETE, &mut self.element(key, 0)) }).map_err(BpfError::call(format!("an entry of the map {}", self.name)))
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
        // SAFETY: the command's structure; key and value have the map's lengths and outlive the call.
        let there = found(unsafe { bpf(MAP_LOOKUP, &mut self.element(key, value.as_mut_ptr() as u64)) });
        there.map(|there| there.then_some(value)).map_err(BpfError::call(format!("an entry of the map {}", self.name)))
    }

    /// Gives the map a descriptor that is younger than any other the process has.
    ///
    /// # Errors
    /// Without CAP_SYS_ADMIN; it then keeps the one it has.
    pub(in crate::live::xdp) fn reopen(&mut self) -> Result<(), BpfError> {
        let failed = || BpfError::call(format!("opening the map {} again", self.name));
        let mut info = MapInfo::default();
        let mut ask = InfoByDescriptor {
            descriptor: self.fd.as_raw_fd() as u32,
            info_len: size_of::<MapInfo>() as u32,
            info: (&raw mut info) as u64,
        };
        // SAFETY: the command's structure; the kernel writes as many bytes as the information has, which outlives the call.
        unsafe { bpf(OBJECT_INFO, &mut ask) }.map_err(failed())?;
        // SAFETY: the command's structure, without pointers.
        self.fd = unsafe { bpf_new(MAP_BY_ID, &mut ById { id: info.id, ..ById::default() }) }.map_err(failed())?;
        Ok(())
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

/// True when an entry was found, false when there is none.
fn found(result: io::Result<c_int>) -> io::Result<bool> {
    match result {
        Ok(_) => Ok(true),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(false),
        Err(error) => Err(error),
    }
}

#[cfg(test)]
mod tests {
    use super::super::allowed;
    use super::*;

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
}

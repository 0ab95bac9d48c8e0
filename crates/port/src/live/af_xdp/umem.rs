//! The memory of frames that an AF_XDP socket shares with the kernel, cut into chunks of one size.
//!
//! Invariant: at any time a chunk is either the kernel's (in the fill or the send ring, or on its way) or ours (taken from the receive or the
//! completion ring, or never given away). We look at ours only; [`super::socket`] keeps count.

use std::io;

use crate::live::sys::Mapping;

/// Bytes that the kernel keeps in front of each received frame (`XDP_PACKET_HEADROOM`).
const HEADROOM: usize = 256;
/// The largest chunk: a page.
const LARGEST: usize = 4096;
/// The longest frame of which the part behind the kernel's bytes fits the largest chunk.
pub(super) const WHOLE: usize = LARGEST - HEADROOM;

/// The memory.
#[derive(Debug)]
pub(super) struct Umem {
    memory: Mapping,
    chunk: usize,
}

impl Umem {
    /// So many chunks for frames of up to `frame_len` bytes. A frame longer than [`WHOLE`] takes several.
    ///
    /// # Errors
    /// When there is no memory.
    pub(super) fn new(frames: u32, frame_len: usize) -> io::Result<Umem> {
        let chunk = if frame_len + HEADROOM <= LARGEST / 2 { LARGEST / 2 } else { LARGEST };
        Ok(Umem { memory: Mapping::anonymous(frames as usize * chunk)?, chunk })
    }

    /// What is told to the kernel.
    pub(super) fn registration(&self) -> io::Result<libc::xdp_umem_reg> {
        let start = self.memory.at::<u8>(0, self.memory.len())?;
        Ok(libc::xdp_umem_reg {
            addr: start.as_ptr() as usize as u64,
            len: self.memory.len() as u64,
            chunk_size: self.chunk as u32,
            headroom: 0,
            flags: 0,
            tx_metadata_len: 0,
        })
    }

    /// Bytes of a chunk: what of a frame to be sent goes into one.
    pub(super) fn chunk(&self) -> usize {
        self.chunk
    }

    /// Where the chunk of this number begins.
    pub(super) fn address(&self, number: u32) -> u64 {
        number as u64 * self.chunk as u64
    }

    /// Where the chunk begins that has this place in it.
    pub(super) fn chunk_of(&self, place: u64) -> u64 {
        place & !(self.chunk as u64 - 1)
    }

    /// The bytes of a received frame, which is ours. None when it does not lie in one chunk.
    #[inline]
    pub(super) fn frame(&self, place: u64, len: u32) -> Option<&[u8]> {
        let within = place as usize & (self.chunk - 1);
        if within + len as usize > self.chunk {
            return None;
        }
        let start = self.memory.find::<u8>(usize::try_from(place).ok()?, len as usize)?;
        // SAFETY: within the mapping, in one chunk, and the chunk is ours, so that the kernel does not write to it.
        Some(unsafe { std::slice::from_raw_parts(start.as_ptr(), len as usize) })
    }

    /// Copies a frame to the beginning of a chunk that is ours. False, and nothing done, when it does not fit.
    #[inline]
    #[must_use]
    pub(super) fn write(&mut self, address: u64, frame: &[u8]) -> bool {
        if frame.len() > self.chunk {
            return false;
        }
        let Some(to) = usize::try_from(address).ok().and_then(|address| self.memory.find::<u8>(address, frame.len())) else {
            return false;
        };
        // SAFETY: within the mapping, in one chunk, which is ours; the frame is not part of the mapping, which is borrowed mutably.
        unsafe { std::ptr::copy_nonoverlapping(frame.as_ptr(), to.as_ptr(), frame.len()) };
        true
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn chunks_are_as_large_as_frames_need() {
        assert_eq!(Umem::new(4, 1518).unwrap().chunk, 2048);
        assert_eq!(Umem::new(4, 3500).unwrap().chunk, 4096);
        assert_eq!(Umem::new(4, 9022).unwrap().chunk, 4096);
    }

    #[test]
    fn a_frame_that_leaves_its_chunk_is_refused() {
        let mut umem = Umem::new(2, 1518).unwrap();
        assert!(umem.write(umem.address(1), b"frame"));
        assert_eq!(umem.frame(2048, 5), Some(&b"frame"[..]));
        assert!(umem.frame(2040, 16).is_none(), "from one chunk to the next");
        assert!(umem.frame(4096, 1).is_none(), "behind the last");
        assert!(umem.frame(u64::MAX, 1).is_none());
        assert!(!umem.write(0, &[0; 2049]) && !umem.write(4096, &[0]));
        assert_eq!(umem.chunk_of(2048 + 256), 2048);
    }
}

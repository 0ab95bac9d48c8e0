//! The receive ring of a packet socket, third version (Documentation/networking/packet_mmap.rst): blocks of frames, which kernel and user own by turns.
//!
//! ```text
//! block │ status, number of frames │ header, address, virtio header, frame │ header, … │
//! ```
//!
//! Invariants: a block is ours from when its status, loaded with acquire, says so, until we store, with release, that it is the kernel's again; we
//! look at no other. Places and lengths that the kernel wrote are checked against the block all the same.

use std::io;
use std::mem::{offset_of, size_of};
use std::os::fd::BorrowedFd;
use std::sync::atomic::{AtomicU32, Ordering};

use crate::Time;
use crate::live::sys::{self, Mapping};

/// Bytes of a block: four of the largest frames.
const BLOCK: usize = 1 << 18;
/// What a ring of the third version says a frame has; frames take what they need.
const FRAME: usize = 2048;
/// Milliseconds after which a block comes that is not full.
const RETIRE: u32 = 1;
/// `struct virtio_net_hdr`, in front of each frame.
const VIRTIO: usize = 10;
/// `VIRTIO_NET_HDR_F_NEEDS_CSUM`.
const NEEDS_CHECKSUM: u8 = 1;

/// The ring.
#[derive(Debug)]
pub(super) struct BlockRing {
    memory: Mapping,
    blocks: usize,
    /// The block that is looked at.
    current: usize,
    /// Frames of it that were not handed out, when it is ours.
    left: Option<u32>,
    /// Place in the block of the next of them.
    at: usize,
    misplaced: u64,
}

/// A frame in the ring.
#[derive(Debug)]
pub(super) struct RingFrame<'a> {
    /// Its bytes, without the VLAN tag that was taken off.
    pub(super) bytes: &'a [u8],
    /// Bytes it had, of which these may be the first.
    pub(super) wire_len: usize,
    /// When it came.
    pub(super) time: Time,
    /// The tag that was taken off, type first.
    pub(super) vlan: Option<[u8; 4]>,
    /// Where to sum from, and how far behind it the sum is to stand, when the checksum is not finished.
    pub(super) unfinished: Option<(usize, usize)>,
    /// True for several segments in one, as a stack hands them to hardware that cuts them.
    pub(super) is_unsegmented: bool,
}

impl BlockRing {
    /// Gives a packet socket a ring of this many blocks (256 KiB each), to be bound afterwards.
    ///
    /// # Errors
    /// When the kernel refuses.
    pub(super) fn new(fd: BorrowedFd<'_>, blocks: usize) -> io::Result<BlockRing> {
        let set = |name, value: i32| sys::set_option(fd, libc::SOL_PACKET, name, &value);
        set(libc::PACKET_VERSION, libc::tpacket_versions::TPACKET_V3 as i32)?;
        set(libc::PACKET_VNET_HDR, 1)?;
        let request = libc::tpacket_req3 {
            tp_block_size: BLOCK as u32,
            tp_block_nr: blocks as u32,
            tp_frame_size: FRAME as u32,
            tp_frame_nr: (BLOCK / FRAME * blocks) as u32,
            tp_retire_blk_tov: RETIRE,
            tp_sizeof_priv: 0,
            tp_feature_req_word: 0,
        };
        sys::set_option(fd, libc::SOL_PACKET, libc::PACKET_RX_RING, &request)?;
        Ok(BlockRing { memory: Mapping::shared(fd, BLOCK * blocks, 0)?, blocks, current: 0, left: None, at: 0, misplaced: 0 })
    }

    /// The oldest frame that was not handed out. Asking for the next gives its memory back.
    #[inline]
    pub(super) fn next(&mut self) -> Option<RingFrame<'_>> {
        loop {
            match self.left {
                Some(0) => {
                    self.status()?.store(libc::TP_STATUS_KERNEL, Ordering::Release);
                    self.current = (self.current + 1) % self.blocks;
                    self.left = None;
                }
                Some(left) => {
                    self.left = Some(left - 1);
                    let place = self.at;
                    let header = self.read::<libc::tpacket3_hdr>(place)?;
                    self.at = place + header.tp_next_offset as usize;
                    // Asked twice, because the compiler does not see that a loop that goes on has borrowed nothing.
                    if self.frame(place, &header).is_some() {
                        return self.frame(place, &header);
                    }
                    self.misplaced += 1;
                }
                None => {
                    if self.status()?.load(Ordering::Acquire) & libc::TP_STATUS_USER == 0 {
                        return None;
                    }
                    let head = offset_of!(libc::tpacket_block_desc, hdr);
                    let header = self.read::<libc::tpacket_hdr_v1>(head)?;
                    self.left = Some(header.num_pkts);
                    self.at = header.offset_to_first_pkt as usize;
                }
            }
        }
    }

    /// Frames that the kernel said are where none can be.
    pub(super) fn misplaced(&self) -> u64 {
        self.misplaced
    }

    /// Whose the current block is.
    fn status(&self) -> Option<&AtomicU32> {
        let place = offset_of!(libc::tpacket_block_desc, hdr) + offset_of!(libc::tpacket_hdr_v1, block_status);
        let status = self.memory.find::<AtomicU32>(self.current * BLOCK + place, 1)?;
        // SAFETY: within the mapping and aligned; both sides touch it atomically.
        Some(unsafe { status.as_ref() })
    }

    /// The structure at this place of the current block, which must be ours.
    fn read<T: Copy>(&self, place: usize) -> Option<T> {
        let bytes = self.bytes(place, size_of::<T>())?;
        // SAFETY: as many bytes as it has; the kernel's structures are integers, of which any bits are a value.
        Some(unsafe { bytes.as_ptr().cast::<T>().read_unaligned() })
    }

    /// Bytes of the current block, which must be ours. None when they are not all in it.
    fn bytes(&self, place: usize, len: usize) -> Option<&[u8]> {
        if place.checked_add(len)? > BLOCK {
            return None;
        }
        let start = self.memory.find::<u8>(self.current * BLOCK + place, len)?;
        // SAFETY: within the mapping and the block, which is ours, so that the kernel does not write to it.
        Some(unsafe { std::slice::from_raw_parts(start.as_ptr(), len) })
    }

    fn frame(&self, place: usize, header: &libc::tpacket3_hdr) -> Option<RingFrame<'_>> {
        let start = place.checked_add(usize::from(header.tp_mac))?;
        let bytes = self.bytes(start, header.tp_snaplen as usize)?;
        let virtio = self.bytes(start.checked_sub(VIRTIO)?, VIRTIO)?;
        let &[flags, segmentation, _, _, _, _, s0, s1, o0, o1] = virtio else { return None };
        let number = |a, b| usize::from(u16::from_ne_bytes([a, b]));
        let has = |status: u32| header.tp_status & status != 0;
        let vlan = has(libc::TP_STATUS_VLAN_VALID).then(|| {
            let kind = if has(libc::TP_STATUS_VLAN_TPID_VALID) { header.hv1.tp_vlan_tpid } else { 0x8100 };
            let ([k0, k1], [t0, t1]) = (kind.to_be_bytes(), (header.hv1.tp_vlan_tci as u16).to_be_bytes());
            [k0, k1, t0, t1]
        });
        Some(RingFrame {
            bytes,
            wire_len: header.tp_len as usize,
            time: Time::from_parts(header.tp_sec.into(), header.tp_nsec.into()),
            vlan,
            unfinished: (flags & NEEDS_CHECKSUM != 0).then(|| (number(s0, s1), number(o0, o1))),
            is_unsegmented: segmentation != 0,
        })
    }
}

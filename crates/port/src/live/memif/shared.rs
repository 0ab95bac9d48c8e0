//! Memory that is shared with a peer, who may be hostile: regions, the bytes of packets in them, and rings.
//!
//! ```text
//! ring     0         4       6      8        64      68        128
//!          │ cookie  │ flags │ head │ …      │ tail  │ …       │ descriptor │ descriptor │ …
//!
//! descriptor   0       2        4        8        12        16
//!              │ flags │ region │ length │ offset │ metadata │     numbers in the machine's byte order
//! ```
//! Invariants:
//!
//! - A region stays mapped while anything that points into it lives: a [`Ring`] holds its regions, a [`Place`] borrows them. It cannot shrink, because
//!   its file was sealed (`sys::memory`) or found sealed (`sys::sealed_len`) before it was mapped. So touching a byte of a mapping never faults.
//! - The peer writes what and when it likes. So nothing here is a reference to shared bytes: numbers are read and written as atomics, bytes of packets are
//!   copied by pointer. Torn or changing bytes are only bytes.
//! - What the peer wrote is handed out as a copy, and whoever decides by it decides by that copy. Only [`Regions::place`] makes a region's number, offset
//!   and length something that can be touched, and it checks all three.

use std::io;
use std::marker::PhantomData;
use std::ptr::NonNull;
use std::sync::Arc;
use std::sync::atomic::{AtomicU16, AtomicU32, AtomicU64, Ordering, fence};

use crate::Buf;
use crate::live::sys::Mapping;

/// What a ring begins with.
pub(super) const COOKIE: u32 = 0x03e3_1f20;
/// Flag of a descriptor: the packet goes on in the next one.
pub(super) const MORE: u16 = 1;
/// Flag of a ring: whoever receives does not want to be woken.
const QUIET: u16 = 1;
/// Slots of the largest ring, as a power of two: counters of 16 bits tell full rings of so many from empty ones.
pub(super) const MOST_LOG2_SLOTS: u8 = 14;
/// Bytes in front of the descriptors, and where the numbers among them stand.
const HEAD_BYTES: usize = 128;
const FLAGS: usize = 4;
const HEAD: usize = 6;
const TAIL: usize = 64;
/// Bytes of a descriptor.
const DESCRIPTOR: usize = 16;
/// Bytes of a cache line.
const LINE: usize = 64;

/// Bytes of a ring with so many slots.
pub(super) const fn ring_bytes(slots: usize) -> usize {
    HEAD_BYTES + DESCRIPTOR * slots
}

/// The memory of one connection.
#[derive(Debug)]
pub(super) struct Regions(Vec<Mapping>);

// SAFETY: it is only ever touched by atomics and by copies, from whatever thread.
unsafe impl Sync for Regions {}

impl Regions {
    pub(super) fn new(regions: Vec<Mapping>) -> Regions {
        Regions(regions)
    }

    /// `len` bytes at `offset` of a region. None when there is no such region or they are not all in it.
    #[inline]
    pub(super) fn place(&self, region: u16, offset: u32, len: u32) -> Option<Place<'_>> {
        let len = len as usize;
        let start = self.0.get(usize::from(region))?.find(offset as usize, len)?;
        Some(Place { start, len, regions: PhantomData })
    }

    /// Has what stands there come to this core's cache: two lines, which hold most headers. There need not be anything.
    #[inline]
    pub(super) fn prefetch(&self, region: u16, offset: u32) {
        if let Some(start) = self.start(region) {
            prefetch(start.wrapping_add(offset as usize));
            prefetch(start.wrapping_add(offset as usize + LINE));
        }
    }

    /// As [`Regions::prefetch`], to be written.
    #[inline]
    pub(super) fn prefetch_to_fill(&self, region: u16, offset: u32) {
        if let Some(start) = self.start(region) {
            prefetch_to_write(start.wrapping_add(offset as usize));
            prefetch_to_write(start.wrapping_add(offset as usize + LINE));
        }
    }

    #[inline]
    fn start(&self, region: u16) -> Option<*const u8> {
        self.0.get(usize::from(region))?.find::<u8>(0, 0).map(|start| start.as_ptr().cast_const())
    }
}

/// Bytes within a region.
#[derive(Clone, Copy, Debug)]
pub(super) struct Place<'a> {
    start: NonNull<u8>,
    len: usize,
    regions: PhantomData<&'a Regions>,
}

impl Place<'_> {
    #[inline]
    pub(super) fn len(self) -> usize {
        self.len
    }

    /// Puts a copy of the bytes behind those of a buffer.
    #[inline]
    pub(super) fn append_to(self, buf: &mut Buf) {
        let to = buf.extend(self.len);
        // SAFETY: `to` has as many bytes and is the buffer's alone; ours are within a mapping, and initialized, as all shared memory is.
        unsafe { std::ptr::copy_nonoverlapping(self.start.as_ptr(), to.as_mut_ptr(), self.len) };
    }

    /// Writes bytes to its beginning: as many as fit.
    #[inline]
    pub(super) fn fill(self, bytes: &[u8]) {
        let len = bytes.len().min(self.len);
        // SAFETY: within a mapping; the bytes are ours, and no mapping is.
        unsafe { std::ptr::copy_nonoverlapping(bytes.as_ptr(), self.start.as_ptr(), len) };
    }
}

#[inline]
fn prefetch(at: *const u8) {
    #[cfg(target_arch = "x86_64")]
    // SAFETY: a hint, which touches nothing.
    unsafe {
        std::arch::x86_64::_mm_prefetch::<{ std::arch::x86_64::_MM_HINT_T0 }>(at.cast());
    }
    #[cfg(not(target_arch = "x86_64"))]
    let _ = at;
}

/// As [`prefetch`], taking the line from the core that has it: reading would leave that one a copy, which the write must wait to see gone.
#[inline]
fn prefetch_to_write(at: *const u8) {
    // The intrinsic with the hint to write gives a plain prefetch where the target is any x86-64. Processors without the instruction do nothing.
    #[cfg(target_arch = "x86_64")]
    // SAFETY: a hint, which touches nothing.
    unsafe {
        std::arch::asm!("prefetchw [{}]", in(reg) at, options(nostack, preserves_flags, readonly));
    }
    #[cfg(not(target_arch = "x86_64"))]
    let _ = at;
}

/// What a slot of a ring says of a buffer.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub(super) struct Descriptor {
    pub(super) flags: u16,
    pub(super) region: u16,
    pub(super) length: u32,
    pub(super) offset: u32,
}

/// A ring: slots, of which the client counts `head` up and the server `tail`. Both counters wrap at 2¹⁶; slot = counter mod slots.
#[derive(Debug)]
pub(super) struct Ring {
    start: NonNull<u8>,
    /// Slots less one; slots are a power of two.
    mask: u16,
    regions: Arc<Regions>,
}

// SAFETY: it keeps what it points to, which belongs to no thread.
unsafe impl Send for Ring {}

impl Ring {
    /// The ring of 2 to the power of `log2_slots` slots at this place.
    ///
    /// # Errors
    /// When there is no such region, the ring is not all in it, stands askew, or has too many slots to be counted.
    pub(super) fn new(regions: &Arc<Regions>, region: u16, offset: u32, log2_slots: u8) -> io::Result<Ring> {
        let refused = |why| io::Error::new(io::ErrorKind::InvalidData, why);
        if log2_slots > MOST_LOG2_SLOTS {
            return Err(refused("a ring of more than 16384 slots"));
        }
        let slots = 1_usize << log2_slots;
        let mapping = regions.0.get(usize::from(region)).ok_or_else(|| refused("a ring in a region that there is not"))?;
        let words = ring_bytes(slots) / size_of::<u64>();
        let start = mapping.find::<u64>(offset as usize, words);
        let start = start.ok_or_else(|| refused("a ring outside its region, or not at a multiple of 8"))?;
        Ok(Ring { start: start.cast(), mask: (slots - 1) as u16, regions: Arc::clone(regions) })
    }

    pub(super) fn regions(&self) -> &Regions {
        &self.regions
    }

    pub(super) fn slots(&self) -> u16 {
        self.mask + 1
    }

    /// Slot of a counter.
    #[inline]
    pub(super) fn slot(&self, counter: u16) -> u16 {
        counter & self.mask
    }

    pub(super) fn has_cookie(&self) -> bool {
        // SAFETY: the start of the ring is in the mapping and aligned to 8.
        unsafe { self.start.cast::<AtomicU32>().as_ref() }.load(Ordering::Relaxed) == COOKIE
    }

    /// Makes it an empty ring.
    pub(super) fn initialize(&self) {
        self.number(FLAGS).store(0, Ordering::Relaxed);
        self.number(HEAD).store(0, Ordering::Relaxed);
        self.number(TAIL).store(0, Ordering::Relaxed);
        // SAFETY: the start of the ring is in the mapping and aligned to 8.
        unsafe { self.start.cast::<AtomicU32>().as_ref() }.store(COOKIE, Ordering::Release);
    }

    /// The client's counter. What it wrote before is seen after.
    #[inline]
    pub(super) fn head(&self) -> u16 {
        self.number(HEAD).load(Ordering::Acquire)
    }

    /// Sets the client's counter. What was written before is seen with it.
    #[inline]
    pub(super) fn set_head(&self, counter: u16) {
        self.number(HEAD).store(counter, Ordering::Release);
    }

    /// The server's counter. What it wrote before is seen after.
    #[inline]
    pub(super) fn tail(&self) -> u16 {
        self.number(TAIL).load(Ordering::Acquire)
    }

    /// Sets the server's counter. What was written before is seen with it.
    #[inline]
    pub(super) fn set_tail(&self, counter: u16) {
        self.number(TAIL).store(counter, Ordering::Release);
    }

    /// True when who receives wants to be woken. What was counted before is seen by whoever asks to be woken after.
    #[inline]
    pub(super) fn wants_waking(&self) -> bool {
        fence(Ordering::SeqCst);
        self.number(FLAGS).load(Ordering::Relaxed) & QUIET == 0
    }

    /// Says whether we, who receive, want to be woken. After that it must be looked once more for what came.
    #[inline]
    pub(super) fn set_wants_waking(&self, wants: bool) {
        self.number(FLAGS).store(if wants { 0 } else { QUIET }, Ordering::Relaxed);
        fence(Ordering::SeqCst);
    }

    /// What the slot of a counter says.
    #[inline]
    pub(super) fn read(&self, counter: u16) -> Descriptor {
        let [first, second] = self.words(counter);
        let [f0, f1, r0, r1, l0, l1, l2, l3] = first.load(Ordering::Relaxed).to_ne_bytes();
        let [o0, o1, o2, o3, ..] = second.load(Ordering::Relaxed).to_ne_bytes();
        Descriptor {
            flags: u16::from_ne_bytes([f0, f1]),
            region: u16::from_ne_bytes([r0, r1]),
            length: u32::from_ne_bytes([l0, l1, l2, l3]),
            offset: u32::from_ne_bytes([o0, o1, o2, o3]),
        }
    }

    /// Has the slot of a counter say this, with metadata of zero.
    #[inline]
    pub(super) fn write(&self, counter: u16, descriptor: Descriptor) {
        let [first, second] = self.words(counter);
        let ([f0, f1], [r0, r1]) = (descriptor.flags.to_ne_bytes(), descriptor.region.to_ne_bytes());
        let ([l0, l1, l2, l3], [o0, o1, o2, o3]) = (descriptor.length.to_ne_bytes(), descriptor.offset.to_ne_bytes());
        first.store(u64::from_ne_bytes([f0, f1, r0, r1, l0, l1, l2, l3]), Ordering::Relaxed);
        second.store(u64::from_ne_bytes([o0, o1, o2, o3, 0, 0, 0, 0]), Ordering::Relaxed);
    }

    /// Has the slot of a counter come to this core's cache.
    #[inline]
    pub(super) fn prefetch(&self, counter: u16) {
        prefetch(self.start.as_ptr().wrapping_add(HEAD_BYTES + DESCRIPTOR * usize::from(self.slot(counter))));
    }

    /// Has the slot of a counter come to this core's cache to be written.
    #[inline]
    pub(super) fn prefetch_to_write(&self, counter: u16) {
        prefetch_to_write(self.start.as_ptr().wrapping_add(HEAD_BYTES + DESCRIPTOR * usize::from(self.slot(counter))));
    }

    /// A number in front of the descriptors: flags, head or tail.
    #[inline]
    fn number(&self, offset: usize) -> &AtomicU16 {
        debug_assert!(offset < HEAD_BYTES);
        // SAFETY: within the mapping, which the ring keeps, and even, as the start of the ring is.
        unsafe { self.start.add(offset).cast::<AtomicU16>().as_ref() }
    }

    #[inline]
    fn words(&self, counter: u16) -> [&AtomicU64; 2] {
        let offset = HEAD_BYTES + DESCRIPTOR * usize::from(self.slot(counter));
        // SAFETY: a slot of the ring, all of which is within the mapping, which the ring keeps; aligned to 8, as the start of the ring is.
        unsafe {
            let first = self.start.add(offset).cast::<AtomicU64>();
            [first.as_ref(), first.add(1).as_ref()]
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn regions(sizes: &[usize]) -> Arc<Regions> {
        Arc::new(Regions::new(sizes.iter().map(|&bytes| Mapping::anonymous(bytes).unwrap()).collect()))
    }

    #[test]
    fn a_place_outside_its_region_is_none() {
        let regions = regions(&[4096, 8192]);
        for (region, offset, len) in [
            (0, 4096, 1),
            (0, 4095, 2),
            (1, 8192, 1),
            (2, 0, 1),
            (0, u32::MAX, 1),
            (0, 1, u32::MAX),
            (0, u32::MAX, u32::MAX),
            (u16::MAX, 0, 0),
        ] {
            assert!(regions.place(region, offset, len).is_none(), "{region} {offset} {len}");
        }
        let place = regions.place(1, 8000, 192).unwrap();
        place.fill(&[0x5a; 300]);
        let mut buf = Buf::from_bytes(b"front-");
        place.append_to(&mut buf);
        assert_eq!((buf.len(), buf[5], buf[6], buf[197]), (198, b'-', 0x5a, 0x5a));
        assert!(regions.place(0, 4096, 0).is_some_and(|place| place.len() == 0));
    }

    #[test]
    fn a_ring_outside_its_region_is_refused() {
        let regions = regions(&[4096]);
        assert!(Ring::new(&regions, 0, 0, 7).is_ok(), "2176 bytes");
        for (region, offset, log2_slots, part) in [
            (1, 0, 7, "that there is not"),
            (0, 1928, 7, "outside"),
            (0, 4, 7, "multiple of 8"),
            (0, u32::MAX, 7, "outside"),
            (0, 0, 8, "outside"),
            (0, 0, 15, "16384"),
            (0, 0, 255, "16384"),
        ] {
            let error = Ring::new(&regions, region, offset, log2_slots).unwrap_err();
            assert!(error.to_string().contains(part), "{region} {offset} {log2_slots}: {error}");
        }
    }

    #[test]
    #[cfg(target_endian = "little")]
    fn a_ring_has_the_layout_of_the_protocol() {
        let regions = regions(&[4096]);
        let ring = Ring::new(&regions, 0, 64, 4).unwrap();
        assert!(!ring.has_cookie());
        ring.initialize();
        ring.set_head(0x0102);
        ring.set_tail(0x0304);
        ring.set_wants_waking(false);
        ring.write(17, Descriptor { flags: MORE, region: 2, length: 0x0506_0708, offset: 0x090a_0b0c });
        let mut buf = Buf::default();
        regions.place(0, 64, 160).unwrap().append_to(&mut buf);
        assert_eq!(buf[..8], [0x20, 0x1f, 0xe3, 0x03, 1, 0, 0x02, 0x01]);
        assert_eq!(buf[64..66], [0x04, 0x03]);
        assert_eq!(buf[144..160], [1, 0, 2, 0, 0x08, 0x07, 0x06, 0x05, 0x0c, 0x0b, 0x0a, 0x09, 0, 0, 0, 0]);
        assert_eq!(ring.read(1), Descriptor { flags: MORE, region: 2, length: 0x0506_0708, offset: 0x090a_0b0c });
        assert_eq!((ring.head(), ring.tail(), ring.wants_waking(), ring.has_cookie()), (0x0102, 0x0304, false, true));
        ring.set_wants_waking(true);
        assert!(ring.wants_waking());
    }
}

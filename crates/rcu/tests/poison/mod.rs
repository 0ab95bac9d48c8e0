//! An allocator that overwrites what is freed and keeps it for a while, so that whoever still reads it finds nothing that could pass for a value, and whoever
//! still writes it is found out. For tests: `#[global_allocator] static ALLOCATOR: Poison = Poison::new();`
//!
//! Invariants: the ring is touched under its lock only; what is in it was allocated by [`System`] with the layout that stands beside it, and nobody else has it.
#![allow(dead_code, reason = "each test uses a part")]

use std::alloc::{GlobalAlloc, Layout, System};
use std::cell::UnsafeCell;
use std::ptr::{NonNull, null_mut};
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};

/// What freed memory holds: as a pointer or a length it fails at once.
const POISON: u8 = 0xde;
/// Freed blocks that are kept, the oldest of which is given back for each new one.
const KEPT: usize = 1 << 14;
/// Larger blocks are overwritten and given back at once.
const LARGEST: usize = 1 << 16;

/// The allocator.
pub struct Poison {
    locked: AtomicBool,
    ring: UnsafeCell<Ring>,
    /// Bytes allocated and not freed.
    live: AtomicUsize,
    /// Freed blocks that somebody wrote to.
    spoilt: AtomicUsize,
}

struct Ring {
    blocks: [(*mut u8, Layout); KEPT],
    next: usize,
}

// SAFETY: the ring is touched under the lock only.
unsafe impl Sync for Poison {}

impl Poison {
    /// One that keeps nothing yet.
    pub const fn new() -> Poison {
        let ring = Ring { blocks: [(null_mut(), Layout::new::<u8>()); KEPT], next: 0 };
        Poison { locked: AtomicBool::new(false), ring: UnsafeCell::new(ring), live: AtomicUsize::new(0), spoilt: AtomicUsize::new(0) }
    }

    /// Bytes that are allocated now.
    pub fn live(&self) -> usize {
        self.live.load(Ordering::Relaxed)
    }

    /// How many freed blocks were written to.
    pub fn spoilt(&self) -> usize {
        self.spoilt.load(Ordering::Relaxed)
    }

    /// Puts a freed block into the ring and takes the oldest out.
    fn exchange(&self, block: *mut u8, layout: Layout) -> Option<(NonNull<u8>, Layout)> {
        while self.locked.swap(true, Ordering::Acquire) {
            std::thread::yield_now();
        }
        // SAFETY: the lock is held.
        let ring = unsafe { &mut *self.ring.get() };
        let (oldest, its) = std::mem::replace(&mut ring.blocks[ring.next], (block, layout));
        ring.next = (ring.next + 1) % KEPT;
        self.locked.store(false, Ordering::Release);
        NonNull::new(oldest).map(|oldest| (oldest, its))
    }
}

// SAFETY: blocks are those of `System`; one is given back to it once, with its layout.
unsafe impl GlobalAlloc for Poison {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        self.live.fetch_add(layout.size(), Ordering::Relaxed);
        // SAFETY: the caller's promise.
        unsafe { System.alloc(layout) }
    }

    unsafe fn dealloc(&self, block: *mut u8, layout: Layout) {
        self.live.fetch_sub(layout.size(), Ordering::Relaxed);
        // SAFETY: the block is the caller's until now, and of that size.
        unsafe { block.write_bytes(POISON, layout.size()) };
        if layout.size() > LARGEST {
            // SAFETY: the caller's promise.
            return unsafe { System.dealloc(block, layout) };
        }
        if let Some((oldest, layout)) = self.exchange(block, layout) {
            // SAFETY: it was freed, and is nobody's but the ring's, which has let it go; of that size, and written when it was freed.
            let bytes = unsafe { std::slice::from_raw_parts(oldest.as_ptr(), layout.size()) };
            if bytes.iter().any(|byte| *byte != POISON) {
                self.spoilt.fetch_add(1, Ordering::Relaxed);
            }
            // SAFETY: as above.
            unsafe { System.dealloc(oldest.as_ptr(), layout) };
        }
    }
}

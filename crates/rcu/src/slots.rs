//! Published values by number.
//!
//! ```text
//!  id   1 … 64   65 … 192   193 … 448   …      chunk k holds 64·2^k cells
//!      ┌────────┬──────────┬───────────┐
//!      │ chunk 0│ chunk 1  │ chunk 2   │ …      made when first needed, never moved
//!      └───┬────┴────┬─────┴─────┬─────┘
//!        cells     cells       cells            each an atomic pointer to a value in its Arc
//! ```

use std::fmt;
use std::sync::OnceLock;

use crate::cell::Cell;
use crate::domain::Domain;
use crate::domain_ref::DomainRef;
use crate::reader::Guard;
use crate::reference::Ref;
use crate::sync::{Arc, Mutex, lock};

/// Cells in the first chunk, as a power of two.
const FIRST_BITS: u32 = 6;
/// Enough chunks for every `u32`.
const CHUNKS: usize = (u32::BITS - FIRST_BITS + 1) as usize;

/// A table from small numbers to values: readers find a value with two loads and never lock.
///
/// Ids are `1..=u32::MAX`, so that 0 can mean "none" wherever an id is stored. The id of a removed value is
/// given out again only after a grace period: a reader that read an id in a burst never finds
/// another's value under it.
pub struct Slots<T: Send + Sync + 'static> {
    chunks: [OnceLock<Box<[Cell<T>]>>; CHUNKS],
    /// Also the lock that writers of the cells take.
    ids: Arc<Mutex<Ids>>,
    domain: DomainRef,
}

#[derive(Default)]
struct Ids {
    /// The highest id ever given out.
    highest: u32,
    /// Those that can be given out again.
    free: Vec<u32>,
    used: usize,
}

impl<T: Send + Sync + 'static> Slots<T> {
    /// An empty table.
    #[must_use]
    pub fn new(domain: &std::sync::Arc<Domain>) -> Self {
        Self { chunks: [const { OnceLock::new() }; CHUNKS], ids: Arc::new(Mutex::new(Ids::default())), domain: DomainRef::new(domain) }
    }

    /// Publishes a value under an id that no reader can know from before.
    ///
    /// # Panics
    /// When all 2^32 − 1 ids are in use.
    pub fn insert(&self, value: Arc<T>) -> u32 {
        let mut ids = lock(&self.ids);
        let id = ids.free.pop().unwrap_or_else(|| {
            ids.highest = ids.highest.checked_add(1).expect("all 2^32 - 1 ids are in use");
            ids.highest
        });
        ids.used += 1;
        if let Some(place) = Place::of(id) {
            let cells = self.chunks[place.chunk].get_or_init(|| new_chunk(place.chunk));
            // SAFETY: the lock is held; the cell of a free id is empty, so there is nothing to let live.
            unsafe { cells[place.cell].swap(Some(value)) };
        }
        id
    }

    /// Publishes another value under an id in use, and returns the one before.
    ///
    /// `None`, and nothing changed, if the id is not in use.
    pub fn replace(&self, id: u32, value: Arc<T>) -> Option<Arc<T>> {
        let old = {
            let _writers = lock(&self.ids);
            let cell = self.cell(id)?;
            cell.load()?;
            // SAFETY: the lock is held; the old value is retired below.
            unsafe { cell.swap(Some(value)) }?
        };
        self.domain.retire(Box::new(Arc::clone(&old)));
        Some(old)
    }

    /// Takes a value out of the table. `None` if the id is not in use.
    pub fn remove(&self, id: u32) -> Option<Arc<T>> {
        let old = {
            let mut ids = lock(&self.ids);
            // SAFETY: the lock is held; the old value is retired below.
            let old = unsafe { self.cell(id)?.swap(None) }?;
            ids.used -= 1;
            old
        };
        let freed = FreedId { id, ids: Arc::clone(&self.ids) };
        self.domain.retire(Box::new((Arc::clone(&old), freed)));
        Some(old)
    }

    /// Borrows the value of `id` for the rest of the burst. `None` if the id is not in use.
    ///
    /// # Panics
    /// If the guard belongs to a reader of another domain.
    #[inline]
    #[track_caller]
    pub fn get<'g>(&self, guard: &Guard<'g>, id: u32) -> Option<Ref<'g, T>> {
        self.domain.check(guard);
        let value = self.cell(id)?.load()?;
        // SAFETY: it lives in an `Arc`, and what the cell held when the burst loaded it lives until the burst ends.
        Some(unsafe { Ref::borrowed(value) })
    }

    /// As [`Slots::get`], as a plain reference, which cannot be held.
    ///
    /// # Panics
    /// If the guard belongs to a reader of another domain.
    #[inline]
    #[track_caller]
    pub fn borrow<'g>(&self, guard: &Guard<'g>, id: u32) -> Option<&'g T> {
        self.domain.check(guard);
        let value = self.cell(id)?.load()?;
        // SAFETY: what the cell held when the burst loaded it lives until the burst ends.
        Some(unsafe { value.as_ref() })
    }

    /// The value of `id`, counted. For the control plane: it takes the writers' lock.
    #[must_use]
    pub fn snapshot(&self, id: u32) -> Option<Arc<T>> {
        let _writers = lock(&self.ids);
        // SAFETY: the lock is held.
        unsafe { self.cell(id)?.share() }
    }

    /// How many ids are in use.
    #[must_use]
    pub fn len(&self) -> usize {
        lock(&self.ids).used
    }

    /// Whether no id is in use.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    #[inline]
    fn cell(&self, id: u32) -> Option<&Cell<T>> {
        let place = Place::of(id)?;
        self.chunks.get(place.chunk)?.get()?.get(place.cell)
    }
}

impl<T: Send + Sync + 'static> Drop for Slots<T> {
    fn drop(&mut self) {
        // A burst can outlive the table it borrowed from.
        let cells = self.chunks.iter().filter_map(OnceLock::get).flatten();
        // SAFETY: nobody else is left to write; the values are retired below.
        let values: Vec<_> = cells.filter_map(|cell| unsafe { cell.swap(None) }).collect();
        if !values.is_empty() {
            self.domain.retire(Box::new(values));
        }
    }
}

impl<T: Send + Sync + 'static> fmt::Debug for Slots<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Slots").field("len", &self.len()).finish_non_exhaustive()
    }
}

/// Where an id's cell is.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
struct Place {
    chunk: usize,
    cell: usize,
}

impl Place {
    #[inline]
    fn of(id: u32) -> Option<Self> {
        // Counted from the size of the first chunk, the highest set bit tells the chunk, the rest the cell.
        let n = u64::from(id.checked_sub(1)?) + (1 << FIRST_BITS);
        let bits = n.ilog2();
        Some(Self { chunk: (bits - FIRST_BITS) as usize, cell: (n ^ (1 << bits)) as usize })
    }
}

fn new_chunk<T>(chunk: usize) -> Box<[Cell<T>]> {
    (0..1usize << (FIRST_BITS as usize + chunk)).map(|_| Cell::new(None)).collect()
}

/// Dropped after a grace period: the id can be given out again.
struct FreedId {
    id: u32,
    ids: Arc<Mutex<Ids>>,
}

impl Drop for FreedId {
    fn drop(&mut self) {
        lock(&self.ids).free.push(self.id);
    }
}

#[cfg(all(test, not(loom)))]
mod tests {
    use super::*;

    #[test]
    fn every_id_has_a_cell_of_its_own() {
        let place = |chunk, cell| Some(Place { chunk, cell });
        assert_eq!(Place::of(0), None);
        assert_eq!((Place::of(1), Place::of(64)), (place(0, 0), place(0, 63)));
        assert_eq!((Place::of(65), Place::of(192)), (place(1, 0), place(1, 127)));
        assert_eq!((Place::of(193), Place::of(u32::MAX)), (place(2, 0), place(26, 62)));
        assert_eq!(CHUNKS, 27);
    }

    #[test]
    fn values_stay_where_they_are_while_the_table_grows() {
        let domain = Domain::new();
        let slots = Slots::new(&domain);
        let first = slots.insert(Arc::new(0u32));
        domain.reader().burst(|guard| {
            let before = slots.get(guard, first).unwrap();
            let ids: Vec<_> = (1..1000).map(|n| slots.insert(Arc::new(n))).collect();
            assert!(slots.get(guard, first).unwrap().ptr_eq(&before));
            for (n, id) in (1..).zip(ids) {
                assert_eq!((id, slots.get(guard, id).as_deref()), (n + 1, Some(&n)));
            }
        });
        assert_eq!((slots.len(), slots.is_empty()), (1000, false));
    }

    #[test]
    fn ids_not_in_use_are_none() {
        let domain = Domain::new();
        let slots = Slots::new(&domain);
        slots.insert(Arc::new(1u64));
        for id in [0, 2, 65, u32::MAX] {
            assert_eq!(slots.snapshot(id), None);
            assert_eq!(slots.replace(id, Arc::new(2)), None);
            assert_eq!(slots.remove(id), None);
            domain.reader().burst(|guard| assert!(slots.get(guard, id).is_none()));
        }
        assert_eq!((slots.len(), domain.pending()), (1, 0));
    }

    #[test]
    fn a_removed_value_and_its_id_last_until_the_burst_ends() {
        let domain = Domain::new();
        let slots = Slots::new(&domain);
        let id = slots.insert(Arc::new(1u64));
        domain.reader().burst(|guard| {
            let value = slots.get(guard, id).unwrap();
            assert_eq!(slots.remove(id).as_deref(), Some(&1));
            domain.reclaim();
            assert_ne!(slots.insert(Arc::new(2)), id);
            assert_eq!((*value, slots.get(guard, id).is_none()), (1, true));
        });
        domain.reclaim();
        assert_eq!((slots.insert(Arc::new(3)), slots.len()), (id, 2));
    }

    #[test]
    fn a_replaced_value_leaves_the_id_in_use() {
        let domain = Domain::new();
        let slots = Slots::new(&domain);
        let value = Arc::new(1u64);
        let id = slots.insert(Arc::clone(&value));
        assert_eq!(slots.replace(id, Arc::new(2)).as_deref(), Some(&1));
        assert_eq!((slots.snapshot(id).as_deref(), slots.len()), (Some(&2), 1));
        domain.reclaim();
        assert_eq!(Arc::strong_count(&value), 1);
    }

    #[test]
    fn a_dropped_table_lets_its_values_go_after_a_grace_period() {
        let domain = Domain::new();
        let slots = Slots::new(&domain);
        let value = Arc::new(1u64);
        slots.insert(Arc::clone(&value));
        slots.insert(Arc::clone(&value));
        drop(slots);
        assert_eq!((Arc::strong_count(&value), domain.pending()), (3, 1));
        domain.reclaim();
        assert_eq!(Arc::strong_count(&value), 1);
    }
}

//! Neighbours: which Ethernet address an IP address on a link has, and how sure that is.
//!
//! A neighbour is one word, state and address together: a worker reads it with one load, a change is one store, and a route that leads through a
//! gateway points straight at it.

use std::collections::HashMap;
use std::hash::{BuildHasher, RandomState};
use std::net::IpAddr;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use rcu::{Domain, Guard, Rcu};
use wire::Mac;

use crate::IfIndex;

/// How far a neighbour is known: the states of RFC 4861 §7.3.2 and Linux's `ip neigh`.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[repr(u8)]
pub enum NeighbourState {
    /// Nobody asked yet.
    None = 0,
    /// Asked, not answered.
    Incomplete = 1,
    /// Answered lately.
    Reachable = 2,
    /// Answered some time ago; good to use, to be checked then.
    Stale = 3,
    /// Used since it went stale; a check follows.
    Delay = 4,
    /// Being checked.
    Probe = 5,
    /// Did not answer.
    Failed = 6,
    /// Configured, never asked.
    Permanent = 7,
}

impl NeighbourState {
    const ALL: [NeighbourState; 8] = {
        use NeighbourState::*;
        [None, Incomplete, Reachable, Stale, Delay, Probe, Failed, Permanent]
    };

    /// True of the states in which the Ethernet address may be used.
    pub fn is_valid(self) -> bool {
        use NeighbourState::*;
        matches!(self, Reachable | Stale | Delay | Probe | Permanent)
    }
}

/// One neighbour.
#[derive(Debug)]
pub struct Neighbour {
    dev: IfIndex,
    addr: IpAddr,
    /// State in the high byte, Ethernet address in the six low ones.
    word: AtomicU64,
}

impl Neighbour {
    pub(crate) fn new(dev: IfIndex, addr: IpAddr) -> Neighbour {
        Neighbour { dev, addr, word: AtomicU64::new(0) }
    }

    /// The interface it is reached through.
    pub fn dev(&self) -> IfIndex {
        self.dev
    }

    /// Its IP address.
    pub fn addr(&self) -> IpAddr {
        self.addr
    }

    /// State and Ethernet address.
    #[inline]
    pub fn load(&self) -> (NeighbourState, Mac) {
        let [state, _, mac @ ..] = self.word.load(Ordering::Acquire).to_be_bytes();
        (NeighbourState::ALL[usize::from(state & 7)], Mac(mac))
    }

    /// The Ethernet address, when it may be used.
    #[inline]
    pub fn mac(&self) -> Option<Mac> {
        let (state, mac) = self.load();
        state.is_valid().then_some(mac)
    }

    /// Changes state and Ethernet address with one store.
    pub fn store(&self, state: NeighbourState, mac: Mac) {
        let [a, b, c, d, e, f] = mac.0;
        self.word.store(u64::from_be_bytes([state as u8, 0, a, b, c, d, e, f]), Ordering::Release);
    }
}

const BUCKETS: usize = 1024;

type Bucket = Vec<Arc<Neighbour>>;
type Index = HashMap<(IfIndex, IpAddr), Arc<Neighbour>>;

/// All neighbours: read by workers without a lock, changed one bucket at a time.
pub struct Neighbours {
    buckets: Box<[Rcu<Bucket>]>,
    /// Secrets of the hash, so that no sender can aim at one bucket.
    secrets: [u64; 2],
    index: Mutex<Index>,
}

impl Neighbours {
    /// An empty table.
    pub fn new(domain: &Arc<Domain>) -> Neighbours {
        let random = RandomState::new();
        Neighbours {
            buckets: (0..BUCKETS).map(|_| Rcu::new(domain, Bucket::new())).collect(),
            secrets: [random.hash_one(0), random.hash_one(1)],
            index: Mutex::default(),
        }
    }

    /// The neighbour `addr` on `dev`, if anything is known about it.
    #[inline]
    pub fn find<'g>(&self, guard: &Guard<'g>, dev: IfIndex, addr: IpAddr) -> Option<&'g Neighbour> {
        let bucket: &'g Bucket = self.bucket(dev, addr).load(guard);
        bucket.iter().find(|n| n.dev == dev && n.addr == addr).map(|n| &**n)
    }

    /// As [`Neighbours::find`], as a reference that can be held.
    pub fn get(&self, dev: IfIndex, addr: IpAddr) -> Option<Arc<Neighbour>> {
        self.index().get(&(dev, addr)).cloned()
    }

    /// The neighbour `addr` on `dev`, made if need be. Takes a lock: not for the packet path.
    pub fn entry(&self, dev: IfIndex, addr: IpAddr) -> Arc<Neighbour> {
        let mut index = self.index();
        if let Some(neighbour) = index.get(&(dev, addr)) {
            return neighbour.clone();
        }
        let neighbour = Arc::new(Neighbour::new(dev, addr));
        index.insert((dev, addr), neighbour.clone());
        self.bucket(dev, addr).update(|bucket| {
            let mut bucket = bucket.clone();
            bucket.push(neighbour.clone());
            bucket
        });
        neighbour
    }

    /// Forgets what is known about `addr` on `dev`. False when nothing was. Routes through it keep their entry, now of unknown address.
    pub fn remove(&self, dev: IfIndex, addr: IpAddr) -> bool {
        let mut index = self.index();
        let Some(neighbour) = index.get(&(dev, addr)) else { return false };
        let known = neighbour.load().0 != NeighbourState::None;
        neighbour.store(NeighbourState::None, Mac::default());
        // The index, the bucket and nobody else: no route leads through it.
        if Arc::strong_count(neighbour) <= 2 {
            index.remove(&(dev, addr));
            self.bucket(dev, addr).update(|bucket| bucket.iter().filter(|n| (n.dev, n.addr) != (dev, addr)).cloned().collect());
        }
        known
    }

    /// Every neighbour about which something is known, in no order.
    pub fn list(&self) -> Vec<Arc<Neighbour>> {
        self.index().values().filter(|n| n.load().0 != NeighbourState::None).cloned().collect()
    }

    /// Number of entries, those of which nothing is known included.
    pub fn len(&self) -> usize {
        self.index().len()
    }

    /// True when nobody is known.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    #[inline]
    fn bucket(&self, dev: IfIndex, addr: IpAddr) -> &Rcu<Bucket> {
        &self.buckets[self.hash(dev, addr) as usize % BUCKETS]
    }

    /// A product of the address's halves, each with a secret, folded: a tenth of what the standard library's hash takes.
    #[inline]
    fn hash(&self, dev: IfIndex, addr: IpAddr) -> u64 {
        let bits = match addr {
            IpAddr::V4(addr) => u128::from(u32::from(addr)),
            IpAddr::V6(addr) => u128::from(addr),
        };
        let [first, second] = [(bits >> 64) as u64 ^ u64::from(dev.0) << 32, bits as u64];
        let product = u128::from(first ^ self.secrets[0]) * u128::from(second ^ self.secrets[1]);
        (product >> 64) as u64 ^ product as u64
    }

    fn index(&self) -> MutexGuard<'_, Index> {
        self.index.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const E0: IfIndex = IfIndex(2);

    #[test]
    fn a_change_is_seen_by_whoever_holds_the_entry() {
        let domain = Domain::new();
        let table = Neighbours::new(&domain);
        let gateway = table.entry(E0, "10.0.0.2".parse().unwrap());
        assert_eq!(gateway.mac(), None);
        table.entry(E0, "10.0.0.2".parse().unwrap()).store(NeighbourState::Permanent, Mac([2, 0, 0, 0, 0, 9]));
        assert_eq!(gateway.mac(), Some(Mac([2, 0, 0, 0, 0, 9])));
    }

    #[test]
    fn a_reader_finds_what_is_there_and_not_what_was_removed() {
        let domain = Domain::new();
        let table = Neighbours::new(&domain);
        let addr = "fd00::2".parse().unwrap();
        table.entry(E0, addr).store(NeighbourState::Reachable, Mac([2, 0, 0, 0, 0, 9]));
        let mut reader = domain.reader();
        reader.burst(|guard| assert!(table.find(guard, E0, addr).is_some()));
        reader.burst(|guard| assert!(table.find(guard, IfIndex(3), addr).is_none()));
        assert!(table.remove(E0, addr));
        reader.burst(|guard| assert!(table.find(guard, E0, addr).is_none()));
        assert!(!table.remove(E0, addr));
    }
}

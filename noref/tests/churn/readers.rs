//! Two threads that ask all the time.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::mpsc::{Receiver, Sender, channel};
use std::thread::{Scope as Threads, ScopedJoinHandle};

use rcu::{Guard, Reader};
use route::{Address, DstCache, DstRef, Fib, Flow, IfIndex, Network, RouteRefs, Scope, TableId};
use testkit::rng::Rng;

use crate::model::Seen;
use crate::tables::{self, Favourites, Place};

/// Questions of a burst.
const BURST: usize = 16;
/// Answers that a reader keeps of a round; it goes on asking.
const KEPT: usize = 20_000;
/// Questions of each reader when nothing changes.
const QUIET: usize = 2_000;

/// What writer and readers have in common.
pub struct Shared<'s> {
    pub network: &'s Network,
    pub places: &'s [Place],
    /// Commits that are over.
    pub version: AtomicU64,
    /// Nothing changes.
    pub paused: AtomicBool,
}

struct Thread<'t> {
    go: Sender<Arc<Favourites>>,
    seen: Receiver<Vec<Seen>>,
    _thread: ScopedJoinHandle<'t, ()>,
}

/// The threads.
pub struct Readers<'t>(Vec<Thread<'t>>);

impl<'t> Readers<'t> {
    pub fn start(scope: &'t Threads<'t, '_>, shared: &'t Shared<'t>, number: usize) -> Readers<'t> {
        let start = |n: usize| {
            let ((go, told), (tell, seen)) = (channel::<Arc<Favourites>>(), channel());
            let mut asker = Asker {
                shared,
                reader: shared.network.domain().reader(),
                random: Rng::new(100 + n as u64),
                seen: Vec::new(),
                found4: DstCache::default(),
                found6: DstCache::default(),
            };
            let thread = scope.spawn(move || {
                while let Ok(favourites) = told.recv() {
                    if tell.send(asker.round(&favourites)).is_err() {
                        break;
                    }
                }
            });
            Thread { go, seen, _thread: thread }
        };
        Readers((0..number).map(start).collect())
    }

    /// Has them ask, these more often than others, until the pause.
    pub fn go(&self, shared: &Shared<'_>, favourites: &Favourites) {
        shared.paused.store(false, Ordering::Relaxed);
        let favourites = Arc::new(favourites.clone());
        self.0.iter().for_each(|thread| thread.go.send(Arc::clone(&favourites)).expect("a reader"));
    }

    /// Nothing changes any more: they ask some more questions, go offline, and tell what they saw.
    pub fn pause(&self, shared: &Shared<'_>) -> Vec<Seen> {
        shared.paused.store(true, Ordering::Release);
        self.0.iter().flat_map(|thread| thread.seen.recv().expect("a reader did not fail")).collect()
    }
}

struct Asker<'s> {
    shared: &'s Shared<'s>,
    reader: Reader,
    random: Rng,
    seen: Vec<Seen>,
    found4: DstCache<Ipv4Addr>,
    found6: DstCache<Ipv6Addr>,
}

impl Asker<'_> {
    fn round(&mut self, favourites: &Favourites) -> Vec<Seen> {
        self.reader.online();
        while !self.shared.paused.load(Ordering::Acquire) {
            self.burst(favourites);
            if self.seen.len() > KEPT {
                let mut others = [true, false].into_iter().cycle();
                self.seen.retain(|_| others.next() == Some(true));
            }
        }
        for _ in 0..QUIET / BURST {
            self.burst(favourites);
        }
        self.reader.offline();
        std::mem::take(&mut self.seen)
    }

    /// Asks one table for some addresses, one by one or together.
    fn burst(&mut self, favourites: &Favourites) {
        let Asker { shared, reader, random, seen, found4, found6 } = self;
        let favourite = (random.below(2) == 0).then(|| *random.choose(favourites));
        let place = &shared.places[favourite.map_or_else(|| random.below(shared.places.len()), |(at, _)| at)];
        let addrs: [IpAddr; BURST] = std::array::from_fn(|_| {
            let net = favourite.map_or_else(|| place.prefix(random), |(_, net)| net);
            // Some addresses again and again, for whom remembers answers.
            if random.below(2) == 0 { net.0 } else { tables::within(net, random) }
        });
        let mut answers = [0; BURST];
        let from = shared.version.load(Ordering::Acquire);
        reader.burst(|guard| match place.v6 {
            false => ask(guard, shared.network, found4, place.id, &addrs.map(tables::v4), &mut answers, random),
            true => ask(guard, shared.network, found6, place.id, &addrs.map(tables::v6), &mut answers, random),
        });
        let to = shared.version.load(Ordering::Acquire);
        let answered = addrs.into_iter().zip(answers);
        seen.extend(answered.map(|(addr, answer)| Seen { table: place.id, addr, answer, from, to }));
    }
}

/// A family's tables.
trait Asked: Address {
    fn fib(network: &Network) -> &Fib<Self>;
}

impl Asked for Ipv4Addr {
    fn fib(network: &Network) -> &Fib<Ipv4Addr> {
        &network.v4
    }
}

impl Asked for Ipv6Addr {
    fn fib(network: &Network) -> &Fib<Ipv6Addr> {
        &network.v6
    }
}

/// As the packet path asks: by the rules or in a table, one by one, remembering answers, or a batch.
fn ask<A: Asked>(
    guard: &Guard<'_>,
    network: &Network,
    found: &mut DstCache<A>,
    table: TableId,
    addrs: &[A; BURST],
    answers: &mut [u8; BURST],
    random: &mut Rng,
) {
    let (fib, generation) = (A::fib(network), network.generation());
    let flow = |addr| Flow::new(addr, IfIndex(2));
    let named = (table != TableId::MAIN).then_some(table);
    let alone = |addr| match named {
        None => fib.lookup(guard, &flow(addr), RouteRefs::Noref).dst,
        Some(table) => fib.lookup_table(guard, table, &flow(addr), RouteRefs::Noref).expect("the table is there").dst,
    };
    let way = random.below(3);
    if way < 2 {
        for (answer, addr) in answers.iter_mut().zip(addrs) {
            *answer = match way {
                0 => gateway(&alone(*addr)),
                _ => gateway(&found.lookup(guard, fib, generation, named, &flow(*addr), RouteRefs::Noref).expect("the table is there").dst),
            };
        }
        return;
    }
    let scope = if table == TableId::MAIN { Scope::Main } else { Scope::Table(table) };
    let mut routes = Vec::new();
    fib.lookup_batch(guard, scope, &addrs.map(A::key), RouteRefs::Noref, &mut routes);
    for ((answer, addr), route) in answers.iter_mut().zip(addrs).zip(routes) {
        *answer = gateway(&fib.route(guard, route, RouteRefs::Noref).unwrap_or_else(|| alone(*addr)));
    }
}

/// The number of a route's gateway, 0 for none.
fn gateway(dst: &DstRef<'_>) -> u8 {
    dst.nexthop.as_ref().and_then(|hop| hop.gateway.as_ref()).map_or(0, |gateway| tables::number(gateway.addr()))
}

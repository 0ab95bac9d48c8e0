//! Following the kernel: a thread that keeps the tables, and the filters in front of the ports, as the kernel has them.
//!
//! ```text
//! netlink ──► Follower ──► tables ──► workers
//!        filters ◄┘  └───────────────────┘
//! ```

use std::collections::{BTreeMap, HashMap, HashSet};
use std::io;
use std::net::IpAddr;
use std::os::fd::{AsFd, OwnedFd};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{SyncSender, sync_channel};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

use control::mirror::{Asker, Follower, Mirror};
use plane::{SidCount, Tables};
use port::live::wait_any;
use port::live::xdp::{BpfError, Filter, NO_TAG, Tags};
use route::{IfIndex, Link, LinkKind, NeighbourState, SidId, TableId, VLAN_8021Q};
use wire::Mac;

use super::bell::{Bell, Ear, bell};
use super::clock::Clock;
use super::complaint::Complaint;
use super::router::MirrorStanding;
use super::snapshot::Snapshot;
use crate::api::sid_count;
use crate::failure::Failure;

/// How long the kernel's tables may take to be read at the start.
const FIRST_READ: Duration = Duration::from_secs(120);
/// Neighbours that wait to be asked for; those beyond are wanted again by later packets.
const WANTED: usize = 1024;
/// The longest wait for the kernel; events, workers and the end interrupt it.
const LONGEST_WAIT: Duration = Duration::from_secs(1);
/// Steps one right after the other that a few changes take: with more of them many are under way.
const STEPS_OF_A_FEW: u32 = 8;
/// How far apart steps are while many changes are under way: those that come meanwhile are put into the tables together, which costs far less than one by one.
const STEPS_APART: Duration = Duration::from_micros(500);
/// How long is waited after an error.
const AFTER_ERROR: Duration = Duration::from_millis(100);

/// A neighbour that the kernel is to find out or check.
pub type Wanted = (IfIndex, IpAddr);

/// The mirror, shared by its thread and those who ask.
///
/// The follower's lock is held while tables are read, which can take long. The main thread takes none but the others while workers run: signals and the
/// watchdog do not wait.
pub struct Mirroring {
    follower: Mutex<Follower>,
    /// Ports that came or went, for the follower's next step.
    ports: Mutex<Vec<(usize, Option<IfIndex>)>>,
    /// Sets devices up.
    asker: Mutex<Asker>,
    filters: Mutex<Filters>,
    numbers: Mutex<Numbers>,
    ended: AtomicBool,
    bell: Bell,
    clock: Clock,
}

/// Numbers of SIDs that are given out again: what comes under one begins to count at what was counted under it before.
#[derive(Default)]
struct Numbers {
    /// What that was.
    before: BTreeMap<SidId, SidCount>,
    /// SIDs that are gone, of which it is still to be found out.
    gone: Vec<SidId>,
}

/// The filters in front of ports.
#[derive(Default)]
struct Filters {
    /// By the ports' places.
    ports: Vec<Option<PortFilter>>,
    /// The state of the mirror that they were told.
    told: Option<u64>,
}

struct PortFilter {
    index: IfIndex,
    filter: Arc<Filter>,
    told: Told,
    complaint: Complaint,
}

/// What a filter is told. A VRF is named by its table, the default one by 0.
#[derive(Default)]
struct Told {
    mac: Mac,
    vrf: u32,
    /// The VRFs of the VLANs that are noref's.
    vlans: HashMap<Tags, u32>,
    own: HashSet<(u32, IpAddr)>,
}

/// What the mirror's thread is started with.
pub struct Ends {
    ear: Ear,
    events: OwnedFd,
}

/// Starts the thread that asks the kernel for the neighbours that workers want: one of its own, as to follow the kernel can take long at times. It ends when
/// no worker is left.
///
/// # Errors
/// When there are no threads or descriptors left.
pub fn ask_for_neighbours(tables: Arc<Tables>) -> io::Result<SyncSender<Wanted>> {
    let mut asker = Asker::new()?;
    let (to, wanted) = sync_channel::<Wanted>(WANTED);
    let ask = move || {
        for (dev, addr) in wanted {
            if asker.keep_alive(dev, addr).is_err() {
                // Its packets want it again.
                continue;
            }
            // The kernel gives a stale one some seconds to be heard from before it asks, and does not tell of that. Until it tells what came of it, packets
            // need not stop at it.
            if let Some(known) = tables.network.neighbours.get(dev, addr)
                && let (NeighbourState::Stale, mac) = known.load()
            {
                known.store(NeighbourState::Delay, mac);
            }
        }
    };
    thread::Builder::new().name("noref-neigh".into()).spawn(ask)?;
    Ok(to)
}

impl Mirroring {
    /// Reads all of the kernel's tables. `ports` are the numbers of the ports' devices, in their places; none of a port that is no device.
    ///
    /// # Errors
    /// When they cannot be read.
    pub fn begin(ports: &[Option<u32>]) -> Result<(Arc<Mirroring>, Ends), Failure> {
        let unreadable = |error: io::Error| Failure::unusable(format!("the kernel's tables cannot be read: {error}"));
        let clock = Clock::start();
        let mut follower = Follower::new(Mirror::new(&[])).map_err(unreadable)?;
        follower.set_time(clock.tick());
        for (place, index) in ports.iter().enumerate() {
            follower.set_port(place, index.map(IfIndex));
        }
        follower.read_all(FIRST_READ).map_err(unreadable)?;
        let events = follower.as_fd().try_clone_to_owned().map_err(Failure::unusable)?;
        let (bell, ear) = bell().map_err(Failure::unusable)?;
        let asker = Asker::new().map_err(Failure::unusable)?;
        let mirroring = Mirroring {
            follower: Mutex::new(follower),
            ports: Mutex::default(),
            asker: Mutex::new(asker),
            filters: Mutex::default(),
            numbers: Mutex::default(),
            ended: AtomicBool::new(false),
            bell,
            clock,
        };
        Ok((Arc::new(mirroring), Ends { ear, events }))
    }

    /// Starts the thread that follows.
    ///
    /// # Errors
    /// When there are no threads left.
    pub fn start(self: &Arc<Mirroring>, ends: Ends) -> Result<JoinHandle<()>, Failure> {
        let mirroring = Arc::clone(self);
        thread::Builder::new().name("noref-mirror".into()).spawn(move || mirroring.follow(ends)).map_err(Failure::unusable)
    }

    /// Has the thread end.
    pub fn end(&self) {
        self.ended.store(true, Ordering::Relaxed);
        self.bell.ring();
    }

    /// Reads the mirror. The kernel is not followed meanwhile; workers do not wait.
    pub fn read<R>(&self, f: impl FnOnce(&Mirror) -> R) -> R {
        let mut follower = self.follower();
        follower.set_time(self.clock.tick());
        f(follower.mirror())
    }

    /// How far the tables are from the kernel's.
    pub fn standing(&self) -> MirrorStanding {
        let follower = self.follower();
        let follow = follower.follow();
        MirrorStanding {
            settled: follow.is_settled(),
            last_event: follower.since_last_event(),
            counters: follow.counters,
            unsupported: follower.mirror().unsupported(),
        }
    }

    /// What was counted under the numbers of SIDs before they came.
    pub fn counted_before(&self) -> BTreeMap<SidId, SidCount> {
        lock(&self.numbers).before.clone()
    }

    /// Lets the numbers of SIDs that are gone be given out again, if there are any and all workers tell what they counted: `snapshots` is none when one does not.
    pub fn let_go(&self, tables: &Arc<Tables>, snapshots: impl FnOnce() -> Option<Vec<Snapshot>>) {
        let gone = std::mem::take(&mut lock(&self.numbers).gone);
        if gone.is_empty() {
            return;
        }
        match snapshots() {
            Some(snapshots) => {
                let counted = gone.iter().map(|id| (*id, sid_count(&snapshots, &BTreeMap::new(), *id)));
                lock(&self.numbers).before.extend(counted);
                control::mirror::let_go(tables, gone);
            }
            None => lock(&self.numbers).gone.extend(gone),
        }
    }

    /// The port in place `place` is the device of this number, with the filter in front of it; none: it is not there. The thread takes that in next, and
    /// tells the filter what to leave to the kernel.
    pub fn set_port(&self, place: usize, device: Option<(u32, Option<&Arc<Filter>>)>) {
        lock(&self.ports).push((place, device.map(|(index, _)| IfIndex(index))));
        let filter = device.and_then(|(index, filter)| {
            let filter = Arc::clone(filter?);
            Some(PortFilter { index: IfIndex(index), filter, told: Told::default(), complaint: Complaint::default() })
        });
        let mut filters = self.filters();
        if filters.ports.len() <= place {
            filters.ports.resize_with(place + 1, || None);
        }
        filters.ports[place] = filter;
        filters.told = None;
        drop(filters);
        self.bell.ring();
    }

    /// Tells the filters what they are to leave to the kernel, as it is now. Before there is a thread that does.
    pub fn tell_filters(&self) {
        let follower = self.follower();
        self.filters().follow(follower.mirror());
    }

    /// Sets a device of noref's own up.
    ///
    /// # Errors
    /// What the kernel says.
    pub fn set_up(&self, index: IfIndex, master: Option<IfIndex>) -> io::Result<()> {
        lock(&self.asker).set_up(index, master)
    }

    /// The thread.
    fn follow(&self, Ends { mut ear, events }: Ends) {
        let mut complaint = Complaint::default();
        let mut steps = Steps::default();
        while !self.ended.load(Ordering::Relaxed) {
            let patience = self.follower().patience();
            // What is wrong with the socket of events the next step says: it reads it.
            let _ = wait_any(&[events.as_fd(), ear.as_fd()], patience.min(LONGEST_WAIT));
            thread::sleep(steps.pause(Instant::now()));
            ear.hear();
            let mut follower = self.follower();
            for (place, index) in lock(&self.ports).drain(..) {
                follower.set_port(place, index);
            }
            follower.set_time(self.clock.tick());
            let stepped = follower.step(Duration::ZERO);
            self.filters().follow(follower.mirror());
            lock(&self.numbers).gone.extend(follower.take_gone());
            drop(follower);
            steps.ended(Instant::now());
            match stepped {
                Ok(()) => complaint.forget(),
                Err(error) => {
                    complaint.tell(format_args!("the kernel could not be followed, it is tried on: {error}"));
                    // Nobody who asks the mirror waits for this.
                    thread::sleep(AFTER_ERROR);
                }
            }
        }
    }

    fn follower(&self) -> MutexGuard<'_, Follower> {
        lock(&self.follower)
    }

    fn filters(&self) -> MutexGuard<'_, Filters> {
        lock(&self.filters)
    }
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// When the kernel was followed last.
#[derive(Default)]
struct Steps {
    last: Option<Instant>,
    /// Steps that had something to do soon after the one before.
    close: u32,
}

impl Steps {
    /// Something is to be done: how long it may wait for more.
    fn pause(&mut self, now: Instant) -> Duration {
        let left = self.last.map_or(Duration::ZERO, |last| (last + STEPS_APART).saturating_duration_since(now));
        self.close = if left.is_zero() { self.close / 2 } else { self.close.saturating_add(1).min(2 * STEPS_OF_A_FEW) };
        if self.close > STEPS_OF_A_FEW { left } else { Duration::ZERO }
    }

    fn ended(&mut self, now: Instant) {
        self.last = Some(now);
    }
}

impl Filters {
    /// Tells them what changed.
    fn follow(&mut self, mirror: &Mirror) {
        let changes = mirror.here().changes();
        if self.told.replace(changes) == Some(changes) {
            return;
        }
        for port in self.ports.iter_mut().flatten() {
            let Some(link) = mirror.editor().links().get(port.index) else { continue };
            if let Err(error) = port.tell(Told::of(link, mirror)) {
                port.complaint.tell(format_args!("{}: the filter does not know all addresses and VLANs of the host: {error}", link.name));
            }
        }
    }
}

impl Told {
    /// What the filter of a port is to know.
    fn of(port: &Link, mirror: &Mirror) -> Told {
        let vrf = |link: &Link| link.vrf_table.map_or(0, |table| table.0);
        let mut vlans = HashMap::new();
        if let LinkKind::Port(place) = port.kind {
            // A tag that says a priority only.
            vlans.insert([(VLAN_8021Q, 0), NO_TAG], vrf(port));
            for (tags, link) in mirror.editor().links().vlans_of_port(place) {
                match tags[..] {
                    [tag] => _ = vlans.insert([tag, NO_TAG], vrf(link)),
                    [outer, inner] => _ = vlans.insert([outer, inner], vrf(link)),
                    // The kernel forwards what comes in with more.
                    _ => {}
                }
            }
        }
        let vrfs: HashSet<u32> = vlans.values().copied().chain([0, vrf(port)]).collect();
        let own = |vrf: u32| {
            let table = if vrf == 0 { TableId::LOCAL } else { TableId(vrf) };
            mirror.here().addresses(table).map(move |addr| (vrf, addr))
        };
        Told { mac: port.mac, vrf: vrf(port), vlans, own: vrfs.into_iter().flat_map(own).collect() }
    }
}

impl PortFilter {
    /// Tells the filter what it does not know yet: addresses before what brings packets to them up.
    fn tell(&mut self, now: Told) -> Result<(), BpfError> {
        let PortFilter { filter, told, .. } = self;
        for (vrf, addr) in now.own.difference(&told.own) {
            filter.add_own(*vrf, *addr)?;
        }
        if (now.mac, now.vrf) != (told.mac, told.vrf) {
            filter.set_station(now.mac.0, now.vrf)?;
        }
        for (tags, vrf) in now.vlans.iter().filter(|(tags, vrf)| told.vlans.get(*tags) != Some(vrf)) {
            filter.set_vlan(*tags, *vrf)?;
        }
        for tags in told.vlans.keys().filter(|tags| !now.vlans.contains_key(*tags)) {
            filter.remove_vlan(*tags)?;
        }
        for (vrf, addr) in told.own.difference(&now.own) {
            filter.remove_own(*vrf, *addr)?;
        }
        *told = now;
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn steps_wait_for_more_only_while_many_changes_are_under_way() {
        let (mut steps, begin) = (Steps::default(), Instant::now());
        let soon = STEPS_APART / 5;
        let mut now = begin;
        let mut pauses = |count: u32, after: Duration| -> Vec<Duration> {
            (0..count)
                .map(|_| {
                    now += after;
                    let pause = steps.pause(now);
                    steps.ended(now);
                    pause
                })
                .collect()
        };
        assert!(pauses(STEPS_OF_A_FEW, soon).iter().all(Duration::is_zero), "a few");
        assert_eq!(pauses(2, soon).last(), Some(&(STEPS_APART - soon)), "many");
        assert!(pauses(2, STEPS_APART).iter().all(Duration::is_zero), "those that come later");
        assert!(pauses(2, soon).iter().all(Duration::is_zero), "and a few after them");
    }
}

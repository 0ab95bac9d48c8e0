//! Neighbours: asking for them, keeping what is known fresh, and the packets that wait (RFC 4861 §7.3, Linux `neighbour.c`).

use std::collections::{BTreeSet, HashMap, VecDeque};
use std::net::IpAddr;
use std::time::Duration;

use port::Time;
use route::{DropReason, DstRef, IfIndex, NeighbourState};
use wire::Mac;

use super::{Cause, Host};
use crate::context::Context;
use crate::packet::{Packet, Version};
use crate::trace::Ledger;
use crate::verdict::Forward;

/// Between two questions.
const RETRY: Duration = Duration::from_secs(1);
/// Questions without an answer after which a neighbour counts as failed.
const TRIES: u8 = 3;
/// How long an answer is good.
const REACHABLE: Duration = Duration::from_secs(30);
/// Between the first use of a stale neighbour and the question to it.
const DELAY: Duration = Duration::from_secs(5);
/// Packets that may wait for one neighbour.
const QUEUE: usize = 64;
/// Packets that may wait for all neighbours together.
const WAITING: usize = 16 * 1024;
/// Neighbours that may be known or asked for beside the configured ones.
const NEIGHBOURS: usize = 8192;

/// Beside a kernel, which does the asking: when it is first looked whether it knows, each time after twice as long,
const FIRST_LOOK: Duration = Duration::from_millis(1);
/// up to this,
const LONGEST_LOOK: Duration = Duration::from_millis(128);
/// and how often: for a little more than the three seconds that a kernel asks.
const LOOKS: u8 = 31;

pub(super) type Key = (IfIndex, IpAddr);

/// A packet that waits. Its route is held: it outlives the burst in which it was looked up.
struct Parked {
    packet: Packet,
    dst: DstRef<'static>,
}

#[derive(Default)]
struct Entry {
    due: Option<Time>,
    tries: u8,
    queue: VecDeque<Parked>,
    /// Source of the packet that made us ask, to ask from the same address.
    source: Option<IpAddr>,
}

/// How a neighbour came to tell its address.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Told {
    /// It answered us: there is a way there and back.
    InAnswer,
    /// It asked us, so it is about to talk to us: it is remembered although nobody asked.
    ToUs,
    /// In passing: this is news of a known neighbour only.
    InPassing,
}

/// The neighbours that a worker is concerned with.
#[derive(Default)]
pub(super) struct Resolver {
    entries: HashMap<Key, Entry>,
    due: BTreeSet<(Time, Key)>,
    waiting: usize,
    /// Neighbours that packets wait for.
    busy: usize,
}

impl Resolver {
    pub(super) fn next_due(&self) -> Option<Time> {
        self.due.first().map(|(time, _)| *time)
    }

    pub(super) fn waiting(&self) -> usize {
        self.waiting
    }

    fn schedule(&mut self, key: Key, at: Option<Time>) {
        let Some(entry) = self.entries.get_mut(&key) else { return };
        if let Some(old) = std::mem::replace(&mut entry.due, at) {
            self.due.remove(&(old, key));
        }
        if let Some(at) = at {
            self.due.insert((at, key));
        }
    }

    /// Keeps a packet until the neighbour of an entry is known.
    fn park(&mut self, key: Key, parked: Parked) {
        let queue = &mut self.entries.entry(key).or_default().queue;
        self.busy += usize::from(queue.is_empty());
        self.waiting += 1;
        queue.push_back(parked);
    }

    /// The packets that wait for the neighbour, and wait no more.
    fn unpark(&mut self, key: Key) -> VecDeque<Parked> {
        let queue = self.entries.get_mut(&key).map(|entry| std::mem::take(&mut entry.queue)).unwrap_or_default();
        self.busy -= usize::from(!queue.is_empty());
        self.waiting -= queue.len();
        queue
    }

    /// A neighbour that nobody waits for: best a stale one that is not in use, for which no time is set; else the one that is due first, whose answer
    /// is the oldest.
    fn expendable(&self) -> Option<Key> {
        if self.busy == self.entries.len() {
            return None;
        }
        let stale = self.entries.iter().find(|(_, entry)| entry.due.is_none() && entry.queue.is_empty()).map(|(key, _)| *key);
        let is_idle = |key: &Key| self.entries.get(key).is_some_and(|entry| entry.queue.is_empty());
        stale.or_else(|| self.due.iter().map(|(_, key)| *key).find(is_idle))
    }

    fn forget(&mut self, key: Key) -> VecDeque<Parked> {
        self.schedule(key, None);
        let queue = self.unpark(key);
        self.entries.remove(&key);
        queue
    }
}

impl Host {
    /// Parks a packet until `addr` on the way out answers, and asks if nobody has yet.
    pub(super) fn wait(&mut self, cx: &Context<'_, '_>, packet: Packet, forward: Forward<'_>, addr: IpAddr, ledger: &mut Ledger) {
        let key = (forward.dev, addr);
        let fresh = self.resolver.entries.get(&key).is_none_or(|entry| entry.due.is_none());
        if fresh && self.resolver.entries.len() >= NEIGHBOURS && !self.evict(cx) {
            return self.drop(packet, DropReason::NeighbourPending, ledger);
        }
        let entry = self.resolver.entries.entry(key).or_default();
        // The new arrival takes the place of the oldest (RFC 4861 §7.2.2).
        if entry.queue.len() >= QUEUE
            && let Some(Parked { packet, dst: _held }) = entry.queue.pop_front()
        {
            self.resolver.waiting -= 1;
            ledger.counters.link_mut(packet.iif).waiting -= 1;
            self.drop(packet, DropReason::NeighbourPending, ledger);
        }
        if self.resolver.waiting >= WAITING {
            return self.drop(packet, DropReason::NeighbourPending, ledger);
        }
        let Some(entry) = self.resolver.entries.get_mut(&key) else { return self.drop(packet, DropReason::NeighbourPending, ledger) };
        ledger.step(&packet, "wait", || format!("for {addr} on {} to tell its address", cx.name(forward.dev)));
        let source = source_of(&packet);
        let cause = Cause::from(&packet);
        ledger.counters.link_mut(packet.iif).waiting += 1;
        if fresh {
            entry.tries = 1;
            entry.source = source;
        }
        self.resolver.park(key, Parked { packet, dst: forward.dst.hold() });
        if fresh && self.kernel.is_some() {
            self.await_kernel(key, cause.time);
        } else if fresh {
            self.resolver.schedule(key, Some(cause.time.after(RETRY)));
            cx.tables.network.neighbours.entry(key.0, addr).store(NeighbourState::Incomplete, Mac::default());
            self.solicit(cx, key, None, cause, ledger);
        }
    }

    /// Makes room by letting a neighbour go that nobody waits for.
    fn evict(&mut self, cx: &Context<'_, '_>) -> bool {
        let Some(key) = self.resolver.expendable() else { return false };
        self.resolver.forget(key);
        cx.tables.network.neighbours.remove(key.0, key.1);
        true
    }

    /// A stale neighbour is in use: it is asked in a while if nothing is heard from it.
    pub(super) fn neighbour_used(&mut self, dev: IfIndex, addr: IpAddr, now: Time) {
        let key = (dev, addr);
        if let Some(kernel) = &mut self.kernel {
            return kernel.want(key, now);
        }
        let room = self.resolver.entries.len() < NEIGHBOURS;
        // Another worker may have heard of it: then this one knows it from now on too.
        let entry = if room { Some(self.resolver.entries.entry(key).or_default()) } else { self.resolver.entries.get_mut(&key) };
        if let Some(entry) = entry
            && entry.due.is_none()
        {
            entry.tries = 0;
            self.resolver.schedule(key, Some(now.after(DELAY)));
        }
    }

    /// A neighbour told its address `mac`: packets that waited for it go.
    pub(super) fn learn(&mut self, cx: &Context<'_, '_>, key: Key, mac: Mac, told: Told, cause: Cause, ledger: &mut Ledger) {
        let (dev, addr) = key;
        let neighbours = &cx.tables.network.neighbours;
        let (state, known) = neighbours.find(cx.guard, dev, addr).map_or((NeighbourState::None, Mac::default()), |n| n.load());
        let unknown = matches!(state, NeighbourState::None | NeighbourState::Failed);
        if state == NeighbourState::Permanent || unknown && told != Told::ToUs || mac.is_group() || mac.is_zero() {
            return;
        }
        if unknown && self.resolver.entries.len() >= NEIGHBOURS && !self.evict(cx) {
            return;
        }
        let confirmed = told == Told::InAnswer;
        let stays = !confirmed && state == NeighbourState::Reachable && known == mac;
        if stays {
            return;
        }
        let state = if confirmed { NeighbourState::Reachable } else { NeighbourState::Stale };
        neighbours.entry(dev, addr).store(state, mac);
        let entry = self.resolver.entries.entry(key).or_default();
        entry.tries = 0;
        self.resolver.schedule(key, confirmed.then(|| cause.time.after(REACHABLE)));
        ledger.step_of(cause.number, cause.time, "learn", || format!("{addr} on {} is at {mac}", cx.name(dev)));
        self.release(cx, key, mac, cause.time, ledger);
    }

    /// Sends what waits for a neighbour that is known now, because of what was heard at `time`.
    fn release(&mut self, cx: &Context<'_, '_>, key: Key, mac: Mac, time: Time, ledger: &mut Ledger) {
        for Parked { mut packet, dst: _held } in self.resolver.unpark(key) {
            ledger.counters.link_mut(packet.iif).waiting -= 1;
            packet.time = packet.time.max(time);
            self.emit(cx, packet, key.0, mac, ledger);
        }
    }

    /// Asks again, gives up, or lets an answer grow old, for all that is due.
    pub(super) fn resolve_due(&mut self, cx: &Context<'_, '_>, now: Time, ledger: &mut Ledger) {
        while let Some(&(at, key)) = self.resolver.due.first().filter(|(at, _)| *at <= now) {
            self.resolver.schedule(key, None);
            self.due(cx, key, at, ledger);
        }
    }

    fn due(&mut self, cx: &Context<'_, '_>, key: Key, at: Time, ledger: &mut Ledger) {
        if self.kernel.is_some() {
            return self.look_at_kernels(cx, key, at, ledger);
        }
        let neighbour = cx.tables.network.neighbours.entry(key.0, key.1);
        let (state, mac) = neighbour.load();
        let Some(entry) = self.resolver.entries.get_mut(&key) else { return };
        if state.is_valid() && !entry.queue.is_empty() {
            // It was configured, or told another worker.
            self.resolver.schedule(key, Some(at.after(REACHABLE)));
            return self.release(cx, key, mac, at, ledger);
        }
        match state {
            NeighbourState::Permanent => {
                self.resolver.forget(key);
            }
            // It answered another worker, after this one had asked.
            NeighbourState::Reachable if entry.tries > 0 => {
                entry.tries = 0;
                self.resolver.schedule(key, Some(at.after(REACHABLE)));
            }
            NeighbourState::Reachable => neighbour.store(NeighbourState::Stale, mac),
            _ if entry.tries >= TRIES => {
                neighbour.store(NeighbourState::Failed, Mac::default());
                cx.tables.network.neighbours.remove(key.0, key.1);
                self.give_up(cx, key, at, ledger);
            }
            _ => {
                entry.tries += 1;
                let number = entry.queue.front().map_or(0, |parked| parked.packet.number);
                let known = state.is_valid().then_some(mac);
                match known {
                    Some(mac) => neighbour.store(NeighbourState::Probe, mac),
                    // An answer counts for those only that were asked.
                    None => neighbour.store(NeighbourState::Incomplete, Mac::default()),
                }
                self.resolver.schedule(key, Some(at.after(RETRY)));
                self.solicit(cx, key, known, Cause { time: at, number }, ledger);
            }
        }
    }

    /// Forgets a neighbour that does not answer, and tells the sources of what waits for it.
    fn give_up(&mut self, cx: &Context<'_, '_>, key: Key, at: Time, ledger: &mut Ledger) {
        for Parked { mut packet, dst: _held } in self.resolver.forget(key) {
            ledger.counters.link_mut(packet.iif).waiting -= 1;
            packet.time = packet.time.max(at);
            self.unresolved(cx, packet, ledger);
        }
    }

    /// The kernel is asked for a neighbour that packets wait for; from now on it is looked whether it knows.
    fn await_kernel(&mut self, key: Key, now: Time) {
        if let Some(kernel) = &mut self.kernel {
            kernel.want(key, now);
            self.resolver.schedule(key, Some(now.after(FIRST_LOOK)));
        }
    }

    /// Looks whether the kernel knows the neighbour by now. It tells of one that it found and of one that does not answer, and the latter may be news
    /// from before it was asked: so it has as long as it takes to ask three times.
    fn look_at_kernels(&mut self, cx: &Context<'_, '_>, key: Key, at: Time, ledger: &mut Ledger) {
        let (state, mac) =
            cx.tables.network.neighbours.find(cx.guard, key.0, key.1).map_or((NeighbourState::None, Mac::default()), |n| n.load());
        let Some(entry) = self.resolver.entries.get_mut(&key) else { return };
        if state.is_valid() {
            self.release(cx, key, mac, at, ledger);
            self.resolver.forget(key);
        } else if entry.tries >= LOOKS {
            self.give_up(cx, key, at, ledger);
        } else {
            let next = LONGEST_LOOK.min(FIRST_LOOK * (1 << entry.tries.min(10)));
            entry.tries += 1;
            self.resolver.schedule(key, Some(at.after(next)));
            // It may have been asked a moment ago for another reason, and the neighbour gone since.
            if let Some(kernel) = &mut self.kernel {
                kernel.want(key, at);
            }
        }
    }

    /// Asks who has the address; with `known`, the one who was last said to.
    fn solicit(&mut self, cx: &Context<'_, '_>, (dev, addr): Key, known: Option<Mac>, cause: Cause, ledger: &mut Ledger) {
        let source = self.resolver.entries.get(&(dev, addr)).and_then(|entry| entry.source);
        match (addr, source) {
            (IpAddr::V4(target), Some(IpAddr::V4(source))) => self.arp_request(cx, dev, target, Some(source), known, cause, ledger),
            (IpAddr::V4(target), _) => self.arp_request(cx, dev, target, None, known, cause, ledger),
            (IpAddr::V6(target), Some(IpAddr::V6(source))) => self.solicitation(cx, dev, target, Some(source), known, cause, ledger),
            (IpAddr::V6(target), _) => self.solicitation(cx, dev, target, None, known, cause, ledger),
        }
    }
}

fn source_of(packet: &Packet) -> Option<IpAddr> {
    match packet.version {
        Version::V4 => wire::ipv4::Header::read(&packet.buf).map(|header| header.src().into()),
        Version::V6 => wire::ipv6::Header::read(&packet.buf).map(|header| header.src().into()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn room_is_made_by_the_stale_and_then_by_the_one_with_the_oldest_answer() {
        let key = |n: u8| (IfIndex(2), IpAddr::from([10, 1, 2, n]));
        let mut resolver = Resolver::default();
        for n in 0..200 {
            resolver.entries.insert(key(n), Entry::default());
            if n != 77 {
                resolver.schedule(key(n), Some(Time(1000 - u64::from(n))));
            }
        }
        assert_eq!(resolver.expendable(), Some(key(77)));
        resolver.forget(key(77));
        assert_eq!(resolver.expendable(), Some(key(199)));
        resolver.busy = resolver.entries.len();
        assert_eq!(resolver.expendable(), None, "packets wait for all of them");
    }
}

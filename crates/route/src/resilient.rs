//! Resilient groups of nexthop objects: flows fall into buckets, and a bucket keeps its member while it is in use, whatever becomes of the others
//! (Linux `type resilient`).
//!
//! Each member wants a share of the buckets by its weight. A bucket of a member that has too many goes to one that has too few once it was not used for a
//! while, or when the group has been out of balance for too long; one whose member is gone goes at once. Which bucket goes where is as in Linux, so that
//! equal histories lead to equal tables.

use std::collections::HashMap;
use std::num::NonZeroU16;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use crate::Tick;

/// A group out of balance is looked at no more often than this, ticks (Linux `NH_RES_UPKEEP_DW_MINIMUM_INTERVAL`).
const LOOK_EVERY: u64 = Tick::PER_SECOND / 2;

/// What an operator says of a resilient group. What is left out stays as it was when the group is replaced.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct ResilientSpec {
    /// `buckets`: how many; a new group needs it, and it never changes.
    pub buckets: Option<NonZeroU16>,
    /// `idle_timer`, ticks: a bucket not used for so long may go to another member. 120 s when it was never given.
    pub idle_timer: Option<u32>,
    /// `unbalanced_timer`, ticks: after so long out of balance buckets in use go too; 0, when it was never given: they do not.
    pub unbalanced_timer: Option<u32>,
}

/// The buckets of a resilient group.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Resilient {
    idle_timer: u32,
    unbalanced_timer: u32,
    buckets: Arc<Vec<Bucket>>,
    used: Arc<Used>,
    unbalanced_since: Option<Tick>,
    due: Option<Tick>,
}

/// A bucket: whose it is, and since when.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
struct Bucket {
    nexthop: u32,
    since: Tick,
}

/// When each bucket was last used. Workers write it, each bucket once a tick at most: between two ticks all of them only read it.
#[derive(Debug)]
struct Used(Box<[AtomicU64]>);

impl PartialEq for Used {
    fn eq(&self, other: &Used) -> bool {
        std::ptr::eq(self, other)
    }
}

impl Eq for Used {}

/// What a member is entitled to, and has.
struct Share {
    nexthop: u32,
    wants: usize,
    has: usize,
}

impl Resilient {
    /// `idle_timer` of a group that says nothing of it, ticks.
    const IDLE_TIMER: u32 = 120 * Tick::PER_SECOND as u32;

    /// A table of buckets that are nobody's yet.
    pub fn new(buckets: NonZeroU16) -> Resilient {
        let count = usize::from(buckets.get());
        Resilient {
            idle_timer: Resilient::IDLE_TIMER,
            unbalanced_timer: 0,
            buckets: Arc::new(vec![Bucket::default(); count]),
            used: Arc::new(Used((0..count).map(|_| AtomicU64::new(0)).collect())),
            unbalanced_since: None,
            due: None,
        }
    }

    /// Takes over what is said of it.
    pub fn set(&mut self, spec: &ResilientSpec) {
        self.idle_timer = spec.idle_timer.unwrap_or(self.idle_timer);
        self.unbalanced_timer = spec.unbalanced_timer.unwrap_or(self.unbalanced_timer);
    }

    /// How many buckets it has.
    pub fn len(&self) -> usize {
        self.buckets.len()
    }

    /// Never: a group has a bucket at least.
    pub fn is_empty(&self) -> bool {
        self.buckets.is_empty()
    }

    /// `idle_timer`, ticks.
    pub fn idle_timer(&self) -> u32 {
        self.idle_timer
    }

    /// `unbalanced_timer`, ticks.
    pub fn unbalanced_timer(&self) -> u32 {
        self.unbalanced_timer
    }

    /// How long it has been out of balance, ticks; 0 in balance.
    pub fn unbalanced_time(&self, now: Tick) -> u64 {
        self.unbalanced_since.map_or(0, |since| now.since(since))
    }

    /// When [`Resilient::keep_up`] has something to do; none in balance.
    pub fn due(&self) -> Option<Tick> {
        self.due
    }

    /// The nexthop object of each bucket, and for how many ticks it was not used.
    pub fn buckets(&self, now: Tick) -> impl Iterator<Item = (u32, u64)> {
        self.buckets.iter().zip(&self.used.0).map(move |(bucket, used)| (bucket.nexthop, now.since(bucket.last_used(used))))
    }

    /// Moves the buckets that are to go to another member: after a change of the members, and when it is [`due`](Resilient::due).
    pub fn keep_up(&mut self, members: &[(u32, u16)], now: Tick) {
        let mut due = now.after(if self.unbalanced_timer > 0 { self.unbalanced_timer } else { self.idle_timer });
        let balanced = self.balance(members, now, |table, bucket, used| {
            let idle = match bucket.last_used(used) {
                // Not since it went to its member.
                since if since == bucket.since => now,
                used => used.after(table.idle_timer),
            };
            if now >= idle {
                return true;
            }
            due = due.min(idle);
            if table.unbalanced_timer > 0 {
                let forced = table.unbalanced_since.unwrap_or(now).after(table.unbalanced_timer);
                if now > forced {
                    return true;
                }
                due = due.min(forced);
            }
            false
        });
        self.due = (!balanced).then(|| due.max(now.after(LOOK_EVERY)));
    }

    /// Has its buckets as a kernel does: `told` are their nexthop objects. Those that are none of the members', because the kernel did not tell yet what became
    /// of them, go where it sends them.
    pub fn follow(&mut self, members: &[(u32, u16)], told: &[u32], now: Tick) {
        if told.len() == self.len() {
            let changed = |(bucket, told): (&Bucket, &u32)| bucket.nexthop != *told;
            if self.buckets.iter().zip(told).any(changed) {
                for (bucket, told) in Arc::make_mut(&mut self.buckets).iter_mut().zip(told) {
                    if bucket.nexthop != *told {
                        *bucket = Bucket { nexthop: *told, since: now };
                    }
                }
            }
        }
        self.balance(members, now, |_, _, _| false);
    }

    /// Gives buckets of nobody, and those of members with too many of which `may_go` is true, to members with too few. True when all have then what they want.
    fn balance(&mut self, members: &[(u32, u16)], now: Tick, mut may_go: impl FnMut(&Resilient, &Bucket, &AtomicU64) -> bool) -> bool {
        let mut shares = shares(members, self.len());
        let places: HashMap<u32, usize> = (0..).zip(&shares).map(|(place, share)| (share.nexthop, place)).collect();
        for place in self.buckets.iter().filter_map(|bucket| places.get(&bucket.nexthop)) {
            shares[*place].has += 1;
        }
        // The last one is served first.
        let mut under: Vec<usize> = (0..shares.len()).filter(|place| shares[*place].has < shares[*place].wants).collect();
        let since = self.unbalanced_since.unwrap_or(now);
        self.unbalanced_since = (!under.is_empty()).then_some(since);
        for at in 0..self.len() {
            let Some(&to) = under.last() else { break };
            let bucket = self.buckets[at];
            let of = places.get(&bucket.nexthop).copied();
            if of.is_some_and(|of| shares[of].has <= shares[of].wants || !may_go(self, &bucket, &self.used.0[at])) {
                continue;
            }
            if let Some(of) = of {
                shares[of].has -= 1;
            }
            shares[to].has += 1;
            if shares[to].has == shares[to].wants {
                under.pop();
            }
            Arc::make_mut(&mut self.buckets)[at] = Bucket { nexthop: shares[to].nexthop, since: now };
        }
        if under.is_empty() {
            self.unbalanced_since = None;
        }
        under.is_empty()
    }

    /// For workers: the buckets by the places that `ways`, nexthop objects, have among the ways of a route.
    pub(crate) fn compile(&self, ways: &[u32]) -> Buckets {
        let places: HashMap<u32, u16> = ways.iter().copied().zip(0..).collect();
        let place = |bucket: &Bucket| places.get(&bucket.nexthop).copied().unwrap_or(0);
        Buckets { places: self.buckets.iter().map(place).collect(), used: self.used.clone() }
    }
}

impl Bucket {
    /// When it was last used, or went to its member.
    fn last_used(&self, used: &AtomicU64) -> Tick {
        Tick(used.load(Ordering::Relaxed)).max(self.since)
    }
}

/// How many of `count` buckets each member wants.
fn shares(members: &[(u32, u16)], count: usize) -> Vec<Share> {
    let total = members.iter().map(|(_, weight)| u64::from(*weight)).sum::<u64>().max(1);
    let (mut weights, mut before) = (0, 0);
    let share = |(nexthop, weight): &(u32, u16)| {
        weights += u64::from(*weight);
        let bound = ((count as u64 * weights + total / 2) / total) as usize;
        Share { nexthop: *nexthop, wants: bound - std::mem::replace(&mut before, bound), has: 0 }
    };
    members.iter().map(share).collect()
}

/// The buckets of a route, as workers use them.
#[derive(Clone, Debug)]
pub struct Buckets {
    /// The place of each bucket's way.
    places: Box<[u16]>,
    used: Arc<Used>,
}

impl Buckets {
    /// The place of the way that a flow of this hash takes; its bucket is in use.
    #[inline]
    pub(crate) fn select(&self, hash: u32, now: Tick) -> u16 {
        let bucket = hash as usize % self.places.len().max(1);
        if let Some(used) = self.used.0.get(bucket)
            && used.load(Ordering::Relaxed) < now.0
        {
            used.store(now.0, Ordering::Relaxed);
        }
        self.places.get(bucket).copied().unwrap_or(0)
    }
}

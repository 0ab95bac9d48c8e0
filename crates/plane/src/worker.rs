//! A worker: takes bursts of frames through the stages.
//!
//! ```text
//! frames ──► input ──┬─ plain: look up all together ──► decide ──┐ again, when a behaviour wants it
//!                    │              ▲────────────────────────────┤
//!                    └─ others: settle each                      │
//!                               └────────────────────────────────┴──► perform, in the order of the frames
//! ```
//! All but the last stage read shared tables and write into the packet only; the last one sends and does what was decided.

use std::net::IpAddr;
use std::sync::Arc;

use port::{Buf, Pool, Time};
use rcu::Reader;
use route::{IfIndex, RouteRefs};

use crate::arrivals::Arrivals;
use crate::context::Context;
use crate::departures::{Sent, SentTogether};
use crate::fast::{Fast, Other};
use crate::host::{Host, Up};
use crate::trace::{Ledger, Step};
use crate::{Counters, Tables};

/// One core's share of the router. Nothing in it is shared with another.
pub struct Worker {
    tables: Arc<Tables>,
    reader: Reader,
    refs: RouteRefs,
    arrivals: Arrivals,
    scratch: Scratch,
    host: Host,
    ledger: Ledger,
    frames: u64,
}

/// Working memory, kept from burst to burst so that none allocates.
#[derive(Default)]
struct Scratch {
    others: Vec<Other<'static>>,
    fast: Fast,
}

impl Worker {
    /// A worker on these tables.
    pub fn new(tables: Arc<Tables>, refs: RouteRefs) -> Worker {
        let reader = tables.network.domain().reader();
        let mut worker = Worker {
            tables,
            reader,
            refs,
            arrivals: Arrivals::new(),
            scratch: Scratch::default(),
            host: Host::new(),
            ledger: Ledger::default(),
            frames: 0,
        };
        worker.host.kernel = worker.tables.beside_kernel.then(Default::default);
        worker.ledger.counters.reserve(64, worker.tables.sids.len() + 1);
        worker
    }

    /// Writes down every step of every packet from now on, or stops doing so.
    pub fn trace(&mut self, on: bool) {
        self.ledger.trace(on);
    }

    /// The steps written down since the last call.
    pub fn take_steps(&mut self) -> Vec<Step> {
        self.ledger.take_steps()
    }

    /// The buffers that frames are received into.
    pub fn pool(&mut self) -> &mut Pool {
        &mut self.host.pool
    }

    /// Takes a frame that came in by the port in place `port`. False when the burst is full: call [`Worker::run`].
    #[inline]
    pub fn receive(&mut self, port: usize, buf: Buf, time: Time) -> bool {
        self.arrivals.push(port, buf, time)
    }

    /// As [`Worker::receive`], of copies of frames that came in together: as many of them as there is room for. How many that were.
    #[inline]
    pub fn receive_copies<'f>(&mut self, port: usize, time: Time, frames: impl Iterator<Item = &'f [u8]>) -> usize {
        let pool = &mut self.host.pool;
        self.arrivals.extend(
            port,
            time,
            frames.map(|frame| {
                let mut buf = pool.take(frame.len());
                buf.append(frame);
                buf
            }),
        )
    }

    /// Takes the frames received since the last call through all stages.
    pub fn run(&mut self) {
        let Worker { tables, reader, refs, arrivals, scratch, host, ledger, frames } = self;
        let first = *frames;
        *frames += arrivals.len() as u64;
        reader.burst(|guard| {
            let cx = Context::new(tables, guard, *refs);
            run(scratch, &cx, arrivals, first, host, ledger);
        });
        arrivals.clear();
    }

    /// Fires the timers due by `now`: neighbours are asked again, fragments given up.
    pub fn advance(&mut self, now: Time) {
        let Worker { tables, reader, refs, host, ledger, .. } = self;
        reader.burst(|guard| host.advance(&Context::new(tables, guard, *refs), now, ledger));
    }

    /// From now on the tables' memory waits for this worker between its bursts too, which spares it a fence a burst. It must then either go on running
    /// bursts, empty ones if need be, or go [`offline`](Worker::offline).
    pub fn online(&mut self) {
        self.reader.online();
    }

    /// Nothing waits for this worker until [`online`](Worker::online) or the next burst: to be called before it sleeps.
    pub fn offline(&mut self) {
        self.reader.offline();
    }

    /// When [`Worker::advance`] has something to do next.
    pub fn next_due(&self) -> Option<Time> {
        self.host.next_due()
    }

    /// Hands over the frames to be sent, in order; their buffers go back to the pool.
    pub fn drain(&mut self, mut send: impl FnMut(Sent<'_>)) {
        self.drain_together(|batch| batch.iter().for_each(&mut send));
    }

    /// As [`Worker::drain`], those together that leave together.
    #[inline]
    pub fn drain_together(&mut self, send: impl FnMut(SentTogether<'_>)) {
        let Host { pool, out, .. } = &mut self.host;
        out.drain(pool, send);
    }

    /// Hands over the packets that are the kernel's, in order; their buffers go back to the pool. There are some beside a kernel only.
    pub fn drain_up(&mut self, mut take: impl FnMut(&Up)) {
        let Host { pool, kernel, .. } = &mut self.host;
        for up in kernel.iter_mut().flat_map(|kernel| kernel.up.drain(..)) {
            take(&up);
            pool.give(up.buf);
        }
    }

    /// Hands over the neighbours that the kernel is to find out or to check.
    pub fn drain_wanted(&mut self, take: impl FnMut((IfIndex, IpAddr))) {
        self.host.kernel.iter_mut().flat_map(|kernel| kernel.wanted.drain(..)).for_each(take);
    }

    /// Frames received so far.
    pub fn frames(&self) -> u64 {
        self.frames + self.arrivals.len() as u64
    }

    /// Packets that wait for a neighbour.
    pub fn waiting(&self) -> usize {
        self.host.waiting()
    }

    /// True when no packet waits, neither for a neighbour nor for the rest of its datagram: every one has its end.
    pub fn is_idle(&self) -> bool {
        self.host.is_idle()
    }

    /// What was counted.
    pub fn counters(&self) -> &Counters {
        &self.ledger.counters
    }
}

/// Takes a burst of frames through the router, in the memory of `scratch`; `first` is the number of the first of them.
fn run<'g>(scratch: &mut Scratch, cx: &Context<'_, 'g>, arrivals: &mut Arrivals, first: u64, host: &mut Host, ledger: &mut Ledger) {
    let mut others: Vec<Other<'g>> = recycle(std::mem::take(&mut scratch.others));
    scratch.fast.run(cx, arrivals, first, &mut others, ledger);
    let mut in_turn = others.drain(..);
    let (mut frames, runs) = arrivals.drain();
    for (places, _, time) in runs.iter() {
        let mut number = first + places.start as u64;
        for (port, count) in scratch.fast.out(places) {
            let bufs = frames.by_ref().take(count);
            match port {
                Some(port) => host.out.extend(port, time, number, bufs),
                None => bufs.zip(&mut in_turn).for_each(|(_, Other { packet, verdict, .. })| host.perform(cx, packet, verdict, ledger)),
            }
            number += count as u64;
        }
    }
    drop(in_turn);
    scratch.others = recycle(others);
}

/// An emptied vector for values of another lifetime, in the memory of the old one.
pub(crate) fn recycle<T, U>(mut values: Vec<T>) -> Vec<U> {
    values.clear();
    values.into_iter().filter_map(|_| None).collect()
}

//! A worker: takes bursts of frames through the stages.
//!
//! ```text
//! frames ──► input (all) ──► look up (all, together) ──► decide (all) ─┐
//!                                ▲                                     │ a behaviour wants another lookup
//!                                └─────────────────────────────────────┘
//!                                                      ──► perform (each, in the order of its frame)
//! ```
//! All but the last stage read shared tables and write into the packet only; the last one does what was decided.

use std::net::{Ipv4Addr, Ipv6Addr};
use std::sync::Arc;

use port::{Buf, Pool, Time};
use rcu::Reader;
use route::{IfIndex, Leaf, RouteRefs, Scratch};
use srv6::{Lookup4, Lookup6};

use crate::context::Context;
use crate::host::{Host, Sent};
use crate::packet::{Packet, Version};
use crate::trace::{Ledger, Step};
use crate::verdict::Verdict;
use crate::{Counters, Tables, decide, ethernet};

/// Packets of a burst at most.
pub const BURST: usize = 256;

/// One core's share of the router. Nothing in it is shared with another.
pub struct Worker {
    tables: Arc<Tables>,
    reader: Reader,
    refs: RouteRefs,
    burst: Vec<Packet>,
    stage: Stage,
    host: Host,
    ledger: Ledger,
    frames: u64,
}

/// Working memory of the stages, kept from burst to burst so that none allocates.
#[derive(Default)]
struct Stage {
    verdicts: Vec<Verdict<'static>>,
    /// Places of the packets that want another lookup.
    open: Vec<u32>,
    keys6: Vec<u128>,
    lookups6: Vec<(u32, Lookup6)>,
    leaves6: Vec<Leaf>,
    scratch6: Scratch<Ipv6Addr>,
    keys4: Vec<u32>,
    lookups4: Vec<(u32, Lookup4)>,
    leaves4: Vec<Leaf>,
    scratch4: Scratch<Ipv4Addr>,
}

impl Worker {
    /// A worker on these tables.
    pub fn new(tables: Arc<Tables>, refs: RouteRefs) -> Worker {
        let reader = tables.network.domain().reader();
        let mut worker = Worker {
            tables,
            reader,
            refs,
            burst: Vec::with_capacity(BURST),
            stage: Stage::default(),
            host: Host::new(),
            ledger: Ledger::default(),
            frames: 0,
        };
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
    pub fn receive(&mut self, port: usize, buf: Buf, time: Time) -> bool {
        self.burst.push(Packet { port, ..Packet::new(Version::V6, buf, time, self.frames, IfIndex(0)) });
        self.frames += 1;
        self.burst.len() < BURST
    }

    /// Takes the frames received since the last call through all stages.
    pub fn run(&mut self) {
        let Worker { tables, reader, refs, burst, stage, host, ledger, .. } = self;
        reader.burst(|guard| {
            let cx = Context::new(tables, guard, *refs);
            stage.run(&cx, burst, host, ledger);
        });
    }

    /// Fires the timers due by `now`: neighbours are asked again, fragments given up.
    pub fn advance(&mut self, now: Time) {
        let Worker { tables, reader, refs, host, ledger, .. } = self;
        reader.burst(|guard| host.advance(&Context::new(tables, guard, *refs), now, ledger));
    }

    /// When [`Worker::advance`] has something to do next.
    pub fn next_due(&self) -> Option<Time> {
        self.host.next_due()
    }

    /// Hands over the frames to be sent, in order; their buffers go back to the pool.
    pub fn drain(&mut self, mut send: impl FnMut(&Sent)) {
        let Host { pool, out, .. } = &mut self.host;
        for sent in out.drain(..) {
            send(&sent);
            pool.give(sent.buf);
        }
    }

    /// Frames received so far.
    pub fn frames(&self) -> u64 {
        self.frames
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

impl Stage {
    fn run<'g>(&mut self, cx: &Context<'_, 'g>, burst: &mut Vec<Packet>, host: &mut Host, ledger: &mut Ledger) {
        let mut verdicts: Vec<Verdict<'g>> = recycle(std::mem::take(&mut self.verdicts));
        for packet in burst.iter_mut() {
            packet.enter(cx.links.of_port(packet.port).map_or(IfIndex(0), |link| link.index));
            ledger.counters.link_mut(packet.iif).received.add(packet.buf.len());
            if ledger.is_tracing() {
                ledger.step(packet, "in", || ethernet::describe(&packet.buf, cx.links.get(packet.iif)));
            }
            verdicts.push(ethernet::input(cx, packet, ledger));
        }
        self.open.clear();
        self.open.extend(0..burst.len() as u32);
        while self.collect(cx, burst, &mut verdicts, ledger) {
            self.look_up6(cx, burst, &mut verdicts, ledger);
            self.look_up4(cx, burst, &mut verdicts, ledger);
        }
        for (packet, verdict) in burst.iter_mut().zip(verdicts.drain(..)) {
            match verdict {
                Verdict::Forward(forward) if host.send_now(cx, packet, &forward, ledger) => {}
                verdict => host.perform(cx, packet.take(), verdict, ledger),
            }
        }
        burst.clear();
        self.verdicts = recycle(verdicts);
    }

    /// Gathers the packets that ask for a lookup which a batch can answer; others are followed to their end at once. False when none is left.
    fn collect<'g>(&mut self, cx: &Context<'_, 'g>, burst: &mut [Packet], verdicts: &mut [Verdict<'g>], ledger: &mut Ledger) -> bool {
        let Stage { open, keys6, lookups6, keys4, lookups4, .. } = self;
        keys6.clear();
        lookups6.clear();
        keys4.clear();
        lookups4.clear();
        open.retain(|&place| {
            let (packet, verdict) = (&mut burst[place as usize], &mut verdicts[place as usize]);
            match verdict {
                Verdict::Route6(lookup) => {
                    if let Some(key) = decide::key6(cx, packet, lookup) {
                        keys6.push(key);
                        lookups6.push((place, *lookup));
                        return true;
                    }
                }
                Verdict::Route4(lookup) => {
                    if let Some(key) = decide::key4(cx, packet, lookup) {
                        keys4.push(key);
                        lookups4.push((place, *lookup));
                        return true;
                    }
                }
                _ => return false,
            }
            let wish = std::mem::replace(verdict, Verdict::Arp);
            *verdict = decide::settle(cx, packet, wish, ledger);
            false
        });
        !(lookups6.is_empty() && lookups4.is_empty())
    }

    fn look_up6<'g>(&mut self, cx: &Context<'_, 'g>, burst: &mut [Packet], verdicts: &mut [Verdict<'g>], ledger: &mut Ledger) {
        let fib = &cx.tables.network.v6;
        fib.lookup_batch(cx.guard, &self.keys6, &mut self.scratch6, &mut self.leaves6);
        for ((place, lookup), leaf) in self.lookups6.iter().zip(&self.leaves6) {
            let packet = &mut burst[*place as usize];
            let answer = fib.answer(cx.guard, *leaf, cx.refs, || decide::flow6(cx, packet, lookup));
            verdicts[*place as usize] = decide::route6(cx, packet, lookup, Some(answer), ledger);
        }
    }

    fn look_up4<'g>(&mut self, cx: &Context<'_, 'g>, burst: &mut [Packet], verdicts: &mut [Verdict<'g>], ledger: &mut Ledger) {
        let fib = &cx.tables.network.v4;
        fib.lookup_batch(cx.guard, &self.keys4, &mut self.scratch4, &mut self.leaves4);
        for ((place, lookup), leaf) in self.lookups4.iter().zip(&self.leaves4) {
            let packet = &mut burst[*place as usize];
            let answer = fib.answer(cx.guard, *leaf, cx.refs, || decide::flow4(cx, packet, lookup));
            verdicts[*place as usize] = decide::route4(cx, packet, lookup, answer, ledger);
        }
    }
}

/// An emptied vector for values of another lifetime, in the memory of the old one.
fn recycle<T, U>(mut values: Vec<T>) -> Vec<U> {
    values.clear();
    values.into_iter().filter_map(|_| None).collect()
}

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
use route::{Answer, Flow, RouteRefs, Scratch};
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
    answers: Vec<Answer<'static>>,
    open: Vec<u32>,
    flows6: Vec<Flow<Ipv6Addr>>,
    lookups6: Vec<(u32, Lookup6)>,
    scratch6: Scratch<Ipv6Addr>,
    flows4: Vec<Flow<Ipv4Addr>>,
    lookups4: Vec<(u32, Lookup4)>,
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
        let Worker { tables, reader, burst, frames, ledger, .. } = self;
        let index = reader.burst(|guard| tables.network.links.load(guard).of_port(port).map(|link| link.index));
        let Some(index) = index else { return burst.len() < BURST };
        let packet = Packet::new(Version::V6, buf, time, *frames, index);
        ledger.counters.link_mut(index).received.add(packet.buf.len());
        *frames += 1;
        burst.push(packet);
        burst.len() < BURST
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
        let mut answers: Vec<Answer<'g>> = recycle(std::mem::take(&mut self.answers));
        for packet in burst.iter_mut() {
            if ledger.is_tracing() {
                ledger.step(packet, "in", || ethernet::describe(&packet.buf, cx.links.get(packet.iif)));
            }
            verdicts.push(ethernet::input(cx, packet, ledger));
        }
        self.open.clear();
        self.open.extend(0..burst.len() as u32);
        while self.collect(cx, burst, &mut verdicts) {
            let network = &cx.tables.network;
            network.v6.lookup_batch(cx.guard, &self.flows6, cx.refs, &mut self.scratch6, &mut answers);
            for ((at, lookup), (flow, answer)) in self.lookups6.iter().zip(self.flows6.iter().zip(answers.drain(..))) {
                let at = *at as usize;
                verdicts[at] = decide::route6(cx, &mut burst[at], lookup, flow, Some(answer), ledger);
            }
            network.v4.lookup_batch(cx.guard, &self.flows4, cx.refs, &mut self.scratch4, &mut answers);
            for ((at, lookup), (flow, answer)) in self.lookups4.iter().zip(self.flows4.iter().zip(answers.drain(..))) {
                let at = *at as usize;
                verdicts[at] = decide::route4(cx, &mut burst[at], lookup, flow, answer, ledger);
            }
        }
        for (packet, verdict) in burst.drain(..).zip(verdicts.drain(..)) {
            host.perform(cx, packet, verdict, ledger);
        }
        self.verdicts = recycle(verdicts);
        self.answers = recycle(answers);
    }

    /// Gathers the packets that ask for a lookup. False when there is none.
    fn collect<'g>(&mut self, cx: &Context<'_, 'g>, burst: &mut [Packet], verdicts: &mut [Verdict<'g>]) -> bool {
        self.flows6.clear();
        self.lookups6.clear();
        self.flows4.clear();
        self.lookups4.clear();
        let Stage { open, flows6, lookups6, flows4, lookups4, .. } = self;
        open.retain(|&place| {
            let at = place as usize;
            match verdicts[at] {
                Verdict::Route6(lookup) if lookup.table.is_some() => {
                    // One table only, which the batch does not know: alone, performed like the others.
                    false
                }
                Verdict::Route6(lookup) => match decide::flow6(cx, &mut burst[at], &lookup) {
                    Ok(flow) => {
                        flows6.push(flow);
                        lookups6.push((place, lookup));
                        true
                    }
                    Err(reason) => {
                        verdicts[at] = Verdict::Drop(reason);
                        false
                    }
                },
                Verdict::Route4(lookup) => match decide::flow4(cx, &mut burst[at], &lookup) {
                    Ok(flow) => {
                        flows4.push(flow);
                        lookups4.push((place, lookup));
                        true
                    }
                    Err(early) => {
                        verdicts[at] = early;
                        false
                    }
                },
                _ => false,
            }
        });
        !(lookups6.is_empty() && lookups4.is_empty())
    }
}

/// An emptied vector for values of another lifetime, in the memory of the old one.
fn recycle<T, U>(mut values: Vec<T>) -> Vec<U> {
    values.clear();
    values.into_iter().filter_map(|_| None).collect()
}

//! Performing verdicts: the one place where packets are sent, answered, kept waiting or dropped.
//!
//! Deciding only reads; everything with a memory is here: neighbours being asked for, fragments being collected, rate limits. Packets come in the order
//! in which their frames came, so that the outcome does not depend on how they were batched.

mod answer4;
mod arp;
mod deliver4;
mod deliver6;
mod icmp4;
mod icmp6;
mod kernel;
mod ndisc;
mod originate;
mod output;
mod resolver;
mod tcp;

use port::{Buf, Pool, Time};
use route::{DropReason, IfIndex};

use crate::context::Context;
use crate::departures::Departures;
use crate::packet::{Packet, Version};
use crate::rate::{Global, Peers};
use crate::reassembly::{Expired, Reassembler4, Reassembler6};
use crate::trace::Ledger;
use crate::verdict::Verdict;
use crate::{decide, forward4};
use kernel::Kernel;
pub use kernel::Up;
use resolver::Resolver;

/// What caused a packet that the router makes.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Cause {
    pub(crate) time: Time,
    pub(crate) number: u64,
}

impl From<&Packet> for Cause {
    fn from(packet: &Packet) -> Cause {
        Cause { time: packet.time, number: packet.number }
    }
}

/// All state that packets leave behind in a worker.
pub(crate) struct Host {
    pub(crate) pool: Pool,
    pub(crate) out: Departures,
    /// What goes to the kernel, beside one.
    pub(crate) kernel: Option<Kernel>,
    resolver: Resolver,
    peers: Peers,
    global: Option<Global>,
    fragments4: Reassembler4,
    fragments6: Reassembler6,
    /// Identification of the next IPv4 packet that the router makes.
    ip_id: u16,
    /// Identification of the next IPv6 packet that the router fragments.
    fragment_id: u32,
}

impl Host {
    pub(crate) fn new() -> Host {
        Host {
            pool: Pool::default(),
            out: Departures::default(),
            kernel: None,
            resolver: Resolver::default(),
            peers: Peers::default(),
            global: None,
            fragments4: Reassembler4::default(),
            fragments6: Reassembler6::default(),
            ip_id: 1,
            fragment_id: 1,
        }
    }

    /// Does what was decided.
    pub(crate) fn perform<'g>(&mut self, cx: &Context<'_, 'g>, mut packet: Packet, verdict: Verdict<'g>, ledger: &mut Ledger) {
        match verdict {
            Verdict::Route6(_) | Verdict::Route4(_) => {
                let verdict = decide::settle(cx, &mut packet, verdict, ledger);
                self.perform(cx, packet, verdict, ledger);
            }
            Verdict::Turn6(_) | Verdict::Turn4(_) => {
                // The lookup is the same one, made again.
                (packet.in_turn, packet.lookups) = (true, packet.lookups.saturating_sub(1));
                let again = match verdict {
                    Verdict::Turn6(lookup) => Verdict::Route6(lookup),
                    Verdict::Turn4(lookup) => Verdict::Route4(lookup),
                    other => other,
                };
                let verdict = decide::settle(cx, &mut packet, again, ledger);
                self.perform(cx, packet, verdict, ledger);
            }
            Verdict::Forward(forward) => {
                if forward.redirect {
                    self.redirect(cx, &packet, &forward, ledger);
                }
                forward4::leave(cx, &mut packet, &forward);
                self.forward(cx, packet, forward, ledger);
            }
            Verdict::Frame(port) => self.frame(cx, packet, port, ledger),
            Verdict::Kernel => self.leave_to_kernel(packet, ledger),
            Verdict::Deliver6(_) | Verdict::Deliver4(_) | Verdict::Drop(DropReason::Unsupported) if self.kernel.is_some() => {
                self.leave_to_kernel(packet, ledger);
            }
            // The kernel has its own copy of what is no IP.
            Verdict::Arp if self.kernel.is_some() => self.drop(packet, DropReason::NotForUs, ledger),
            Verdict::Deliver6(dst) => self.deliver6(cx, packet, dst, ledger),
            Verdict::Deliver4(group) => self.deliver4(cx, packet, group, ledger),
            Verdict::Arp => self.arp(cx, packet, ledger),
            Verdict::Error(error, reason) => {
                match packet.version {
                    Version::V4 => self.error4(cx, &packet, error, ledger),
                    Version::V6 => self.error6(cx, &packet, error, ledger),
                }
                self.drop(packet, reason, ledger);
            }
            Verdict::Drop(reason) => self.drop(packet, reason, ledger),
        }
    }

    /// The packet ends here.
    pub(crate) fn drop(&mut self, packet: Packet, reason: DropReason, ledger: &mut Ledger) {
        ledger.counters.drop(reason);
        ledger.step(&packet, "drop", || format!("{}: {}", reason.word(), reason.meaning()));
        self.pool.give(packet.buf);
    }

    /// The packet was for the router and did what it was to do.
    pub(crate) fn delivered(&mut self, packet: Packet, what: impl FnOnce() -> String, ledger: &mut Ledger) {
        ledger.counters.link_mut(packet.iif).delivered += 1;
        ledger.step(&packet, "deliver", what);
        self.pool.give(packet.buf);
    }

    /// Fires what has become due by `now`.
    pub(crate) fn advance(&mut self, cx: &Context<'_, '_>, now: Time, ledger: &mut Ledger) {
        self.resolve_due(cx, now, ledger);
        self.expire_fragments(cx, now, ledger);
    }

    /// When something becomes due next.
    pub(crate) fn next_due(&self) -> Option<Time> {
        let fragments = [self.fragments4.next_deadline(), self.fragments6.next_deadline()];
        self.resolver.next_due().into_iter().chain(fragments.into_iter().flatten().map(Time)).min()
    }

    /// Packets waiting for neighbours.
    pub(crate) fn waiting(&self) -> usize {
        self.resolver.waiting()
    }

    /// No packet waits for anything.
    pub(crate) fn is_idle(&self) -> bool {
        self.waiting() == 0 && self.fragments4.next_deadline().is_none() && self.fragments6.next_deadline().is_none()
    }

    fn expire_fragments(&mut self, cx: &Context<'_, '_>, now: Time, ledger: &mut Ledger) {
        while let Some(mut expired) = self.fragments4.expire(now.0, &mut self.pool) {
            self.fragments_lost(expired.fragments, DropReason::FragmentTimeout, ledger);
            let Some(first) = expired.first.take() else { continue };
            let mut packet = expired_packet(Version::V4, first, now, &expired);
            packet.options = expired.options;
            let error = crate::verdict::IcmpError::new(wire::icmp4::TIME_EXCEEDED, 1, 0);
            self.error4(cx, &packet, error, ledger);
        }
        while let Some(mut expired) = self.fragments6.expire(now.0, &mut self.pool) {
            self.fragments_lost(expired.fragments, DropReason::FragmentTimeout, ledger);
            let Some(first) = expired.first.take() else { continue };
            let packet = expired_packet(Version::V6, first, now, &expired);
            let error = crate::verdict::IcmpError::new(wire::icmp6::TIME_EXCEEDED, wire::icmp6::time_exceeded::REASSEMBLY, 0);
            self.error6(cx, &packet, error, ledger);
        }
    }

    fn fragments_lost(&mut self, fragments: usize, reason: DropReason, ledger: &mut Ledger) {
        for _ in 0..fragments {
            ledger.counters.reassembled -= 1;
            ledger.counters.drop(reason);
        }
    }
}

/// The first fragment of a datagram that was given up, as the packet that an error is about.
fn expired_packet(version: Version, first: Buf, now: Time, expired: &Expired) -> Packet {
    let mut packet = Packet::new(version, first, now, expired.number, IfIndex(expired.iif));
    if expired.vrf != 0 {
        packet.dev = IfIndex(expired.vrf);
        packet.in_vrf = true;
    }
    packet
}

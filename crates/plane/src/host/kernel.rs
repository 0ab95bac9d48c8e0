//! Beside a kernel: what it is left to do, and what it is asked for.

use std::collections::HashMap;
use std::net::IpAddr;
use std::time::Duration;

use port::{Buf, Time};
use route::{DropReason, IfIndex};

use super::Host;
use super::resolver::Key;
use crate::packet::{Packet, Version};
use crate::rate::Tokens;
use crate::trace::Ledger;

/// Packets that a worker leaves to the kernel in a second: each costs a system call and the kernel's way of a packet on the worker's core, some 10 µs, so a
/// flood of them has a fifth of the core and the others the rest.
const UP_A_SECOND: u64 = 20_000;
/// Packets that it may leave to the kernel at once, after a silence. Also how many wait to be passed on, which bounds the buffers that they hold.
const UP_AT_ONCE: u64 = 512;
/// The kernel is asked for one neighbour once in this time.
const WANT_EVERY: Duration = Duration::from_secs(1);
/// Neighbours of which it is remembered when the kernel was asked.
const WANTED: usize = 8192;
/// When there are that many, old ones are looked for once in this time.
const SWEEP_EVERY: Duration = Duration::from_millis(100);

/// A packet that is the kernel's.
#[derive(Debug)]
pub struct Up {
    /// The VRF device that it is in; none in the default VRF.
    pub vrf: Option<IfIndex>,
    /// It is an IPv6 packet.
    pub v6: bool,
    /// The packet, IP header first.
    pub buf: Buf,
}

/// What is there for the kernel.
#[derive(Default)]
pub(crate) struct Kernel {
    pub(crate) up: Vec<Up>,
    pub(crate) wanted: Vec<(IfIndex, IpAddr)>,
    asked: HashMap<Key, Time>,
    /// When old ones were last looked for.
    swept: Option<Time>,
    allowance: Allowance,
}

/// How many packets may go up, in nanoseconds by the packets' clock: each takes its price.
struct Allowance(Tokens);

impl Default for Allowance {
    fn default() -> Allowance {
        Allowance(Tokens { saved: Allowance::MOST, last: 0 })
    }
}

impl Allowance {
    const PRICE: u64 = 1_000_000_000 / UP_A_SECOND;
    const MOST: u64 = UP_AT_ONCE * Allowance::PRICE;

    /// May one more packet go up? One that waited may be older than the last: then no time has passed.
    fn take(&mut self, now: Time) -> bool {
        self.0.take(now.0.max(self.0.last), Allowance::PRICE, Allowance::MOST)
    }
}

impl Kernel {
    /// The kernel is to find out, or check, a neighbour that is in use.
    pub(super) fn want(&mut self, key: Key, now: Time) {
        if self.asked.get(&key).is_some_and(|asked| now < asked.after(WANT_EVERY)) {
            return;
        }
        if self.asked.len() >= WANTED {
            if self.swept.is_some_and(|swept| now < swept.after(SWEEP_EVERY)) {
                return;
            }
            self.swept = Some(now);
            self.asked.retain(|_, asked| now < asked.after(WANT_EVERY));
            if self.asked.len() >= WANTED {
                return;
            }
        }
        self.asked.insert(key, now);
        self.wanted.push(key);
    }
}

impl Host {
    /// The kernel goes on with the packet, as it is now, unless it got too many of late.
    pub(super) fn leave_to_kernel(&mut self, packet: Packet, ledger: &mut Ledger) {
        let Some(kernel) = &mut self.kernel else { return self.drop(packet, DropReason::Unsupported, ledger) };
        if !kernel.allowance.take(packet.time) {
            return self.drop(packet, DropReason::KernelBusy, ledger);
        }
        ledger.counters.kernel += 1;
        ledger.step(&packet, "kernel", || "left to the kernel".into());
        let vrf = packet.in_vrf.then_some(packet.dev);
        kernel.up.push(Up { vrf, v6: packet.version == Version::V6, buf: packet.buf });
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_kernel_is_asked_for_a_neighbour_once_a_second() {
        let key = (IfIndex(2), IpAddr::from([10, 1, 2, 3]));
        let mut kernel = Kernel::default();
        let start = Time::ZERO;
        for milliseconds in [0, 1, 999, 1000, 1500, 2000] {
            kernel.want(key, start.after(Duration::from_millis(milliseconds)));
        }
        assert_eq!(kernel.wanted, [key; 3]);
    }

    #[test]
    fn the_kernel_gets_a_burst_at_once_and_then_so_many_a_second() {
        let mut allowance = Allowance::default();
        let mut passed = |millis: u64| {
            let now = Time::from_micros(1_700_000_000_000_000).after(Duration::from_millis(millis));
            (0..10_000).filter(|_| allowance.take(now)).count() as u64
        };
        assert_eq!(passed(0), UP_AT_ONCE);
        // However often it is asked for, and by whatever burst.
        assert_eq!((1..=20).map(&mut passed).sum::<u64>(), UP_A_SECOND / 50);
        // Older packets bring no time.
        assert_eq!((passed(3), passed(20), passed(21)), (0, 0, UP_A_SECOND / 1000));
        // A long silence saves no more than a burst.
        assert_eq!(passed(60_000), UP_AT_ONCE);
    }

    #[test]
    fn who_was_asked_for_long_ago_is_forgotten_when_there_is_no_room() {
        let key = |n: u32| (IfIndex(2), IpAddr::from(n.to_be_bytes()));
        let mut kernel = Kernel::default();
        for n in 0..WANTED as u32 + 10 {
            kernel.want(key(n), Time::ZERO);
        }
        assert_eq!(kernel.wanted.len(), WANTED);
        kernel.want(key(u32::MAX), Time::ZERO.after(WANT_EVERY));
        assert_eq!((kernel.wanted.len(), kernel.asked.len()), (WANTED + 1, 1));
    }
}

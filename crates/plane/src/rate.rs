//! How many ICMP messages may be sent: to one peer, and in all (RFC 1812 §4.3.2.8, RFC 4443 §2.4 (f)), counted as Linux counts.
//!
//! A peer's bucket holds milliseconds: it fills with the time that passes and a message takes its price out. Time comes from the caller, so
//! that a replayed capture is limited by its own clock.

use std::collections::HashMap;
use std::net::IpAddr;

/// Messages that a bucket may save up (Linux's XRLIM_BURST_FACTOR).
const BURST: u64 = 6;
/// Age in milliseconds of a bucket never used before: it starts with what this long a silence saved.
const FRESH: u64 = 60_000;
/// Price and limit, in milliseconds, of the errors that an IPv4 route asks for (net.ipv4.route.error_cost, error_burst).
const ROUTE_ERROR: (u64, u64) = (1000, 5000);
/// Redirects that a sender may ignore before it gets no more (net.ipv4.route.redirect_number).
const REDIRECTS: u32 = 9;
/// Milliseconds before the second redirect; the pause doubles with each (net.ipv4.route.redirect_load).
const REDIRECT_PAUSE: u64 = 20;
/// Milliseconds of silence after which redirects start anew (net.ipv4.route.redirect_silence).
const REDIRECT_SILENCE: u64 = REDIRECT_PAUSE << (REDIRECTS + 1);
/// Peers in one generation of the table.
const GENERATION: usize = 32 * 1024;

/// Whom a bucket belongs to.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct Peer {
    /// Its address.
    pub addr: IpAddr,
    /// For IPv4 the interface number of the VRF it lives in; 0 for none, and for IPv6, where Linux makes no difference.
    pub vrf: u32,
}

impl From<IpAddr> for Peer {
    fn from(addr: IpAddr) -> Peer {
        Peer { addr, vrf: 0 }
    }
}

/// A token bucket whose tokens are time: it fills with the time that passes, in whatever unit its user has.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Tokens {
    pub(crate) saved: u64,
    /// When it was asked last.
    pub(crate) last: u64,
}

impl Tokens {
    /// Takes `price` out if there is as much, after what has come in since the last time, up to `limit`.
    pub(crate) fn take(&mut self, now: u64, price: u64, limit: u64) -> bool {
        self.saved = self.saved.saturating_add(now.saturating_sub(self.last)).min(limit);
        self.last = now;
        let allowed = self.saved >= price;
        if allowed {
            self.saved -= price;
        }
        allowed
    }
}

/// Linux's `inet_peer`, as far as limits go. Times are milliseconds.
#[derive(Clone, Copy, Debug)]
struct Bucket {
    tokens: Tokens,
    redirects: u32,
}

/// The buckets of the peers that were sent something lately, at most 65536.
///
/// Two generations: a peer met again moves to the younger; when that is full the older is forgotten. A forgotten peer starts with a fresh
/// bucket, as in Linux, whose table is bounded too.
#[derive(Debug, Default)]
pub struct Peers {
    young: HashMap<Peer, Bucket>,
    old: HashMap<Peer, Bucket>,
}

impl Peers {
    /// May a message that costs `timeout_ms` milliseconds go to `peer`? Six may follow each other at once, then one each `timeout_ms`. Linux's
    /// `inet_peer_xrlim_allow`: a price of 0 is always allowed *and empties the bucket*, which then refuses what has another price. That shows
    /// for IPv6 with net.ipv6.icmp.ratelimit=0, where an error shuts up redirects; for IPv4 Linux does not ask at all when
    /// net.ipv4.icmp_ratelimit is 0, and neither must the caller.
    pub fn allow(&mut self, peer: impl Into<Peer>, timeout_ms: u32, now_ns: u64) -> bool {
        let now = milliseconds(now_ns);
        self.bucket(peer.into(), now).tokens.take(now, timeout_ms.into(), BURST * u64::from(timeout_ms))
    }

    /// May `peer` be told that the route of an IPv4 packet of its is unreachable or prohibited, or that there is none? Five at once, then one a
    /// second, out of the same bucket as [`Peers::allow`] and whatever net.ipv4.icmp_ratelimit says (Linux's `ip_error`).
    pub fn allow_route_error4(&mut self, peer: impl Into<Peer>, now_ns: u64) -> bool {
        let now = milliseconds(now_ns);
        self.bucket(peer.into(), now).tokens.take(now, ROUTE_ERROR.0, ROUTE_ERROR.1)
    }

    /// May `peer`, who sent an IPv4 packet the long way round, get a redirect? The pause between two doubles from 20 ms on; after nine that it
    /// ignored it gets none until it has kept silent for 20 s (Linux's `ip_rt_send_redirect`).
    pub fn allow_redirect4(&mut self, peer: impl Into<Peer>, now_ns: u64) -> bool {
        let now = milliseconds(now_ns);
        let bucket = self.bucket(peer.into(), now);
        if now > bucket.tokens.last + REDIRECT_SILENCE {
            bucket.tokens.saved = 0;
            bucket.redirects = 0;
        }
        if bucket.redirects >= REDIRECTS {
            bucket.tokens.last = now;
            return false;
        }
        let allowed = bucket.redirects == 0 || now > bucket.tokens.last + (REDIRECT_PAUSE << bucket.redirects);
        if allowed {
            bucket.tokens.last = now;
            bucket.redirects += 1;
        }
        allowed
    }

    fn bucket(&mut self, peer: Peer, now: u64) -> &mut Bucket {
        if self.young.len() >= GENERATION && !self.young.contains_key(&peer) {
            std::mem::swap(&mut self.young, &mut self.old);
            self.young.clear();
        }
        let old = &mut self.old;
        self.young.entry(peer).or_insert_with(|| {
            old.remove(&peer).unwrap_or(Bucket { tokens: Tokens { saved: 0, last: now.saturating_sub(FRESH) }, redirects: 0 })
        })
    }
}

/// The limit over all peers (net.ipv4.icmp_msgs_per_sec, icmp_msgs_burst), without the jitter by which Linux hides its count.
#[derive(Debug)]
pub struct Global {
    per_second: u32,
    burst: u32,
    credit: u32,
    filled: Option<u64>,
}

impl Default for Global {
    fn default() -> Global {
        Global::new(1000, 50)
    }
}

impl Global {
    /// A limit of `per_second` messages a second, `burst` of them at once.
    pub fn new(per_second: u32, burst: u32) -> Global {
        Global { per_second, burst, credit: 0, filled: None }
    }

    /// May another message go? It is not counted yet: the peer's own limit is asked afterwards, and what that refuses costs nothing here (see
    /// [`Global::consume`]). Credit is given at most every 20 ms.
    pub fn allow(&mut self, now_ns: u64) -> bool {
        if self.credit > 0 {
            return true;
        }
        let now = milliseconds(now_ns);
        let passed = self.filled.map_or(1000, |filled| now.saturating_sub(filled).min(1000));
        let more = u64::from(self.per_second) * passed / 1000;
        if passed < 20 || more == 0 {
            return false;
        }
        self.filled = Some(now);
        self.credit = more.min(self.burst.into()) as u32;
        true
    }

    /// Counts a message that went.
    pub fn consume(&mut self) {
        self.credit = self.credit.saturating_sub(1);
    }
}

/// The clock of the buckets. It starts late enough for a fresh bucket to be old.
fn milliseconds(now_ns: u64) -> u64 {
    now_ns / 1_000_000 + FRESH
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::net::{Ipv4Addr, Ipv6Addr};

    const MS: u64 = 1_000_000;
    const HOST4: IpAddr = IpAddr::V4(Ipv4Addr::new(10, 81, 2, 33));
    const HOST6: IpAddr = IpAddr::V6(Ipv6Addr::new(0xfd00, 1, 2, 3, 4, 5, 6, 7));

    #[test]
    fn six_messages_go_at_once_and_then_one_each_timeout() {
        let mut peers = Peers::default();
        assert_eq!((0..10).filter(|_| peers.allow(HOST6, 1000, 0)).count(), 6);
        assert!(!peers.allow(HOST6, 1000, 999 * MS));
        assert!(peers.allow(HOST6, 1000, 1000 * MS));
        assert!(!peers.allow(HOST6, 1000, 1000 * MS));
    }

    #[test]
    fn an_error_without_limit_empties_the_bucket_that_redirects_pay_from() {
        // Linux's answers to golden case srv6_end/End_X_linklocal, a frame each 4 ms: redirects for frames 0 and 1, time exceeded for 4,
        // nothing for 5.
        let mut peers = Peers::default();
        assert!(peers.allow(HOST6, 1000, 0));
        assert!(peers.allow(HOST6, 1000, 4 * MS));
        assert!(peers.allow(HOST6, 0, 16 * MS));
        assert!(!peers.allow(HOST6, 1000, 20 * MS));
    }

    #[test]
    fn five_route_errors_go_at_once() {
        // Golden case rules/unreachable: frames 0 to 3 and 8 are answered, 9 to 14 are not.
        let mut peers = Peers::default();
        let answered: Vec<u64> = [0, 1, 2, 3, 8, 9, 12, 13].into_iter().filter(|i| peers.allow_route_error4(HOST4, i * 4 * MS)).collect();
        assert_eq!(answered, [0, 1, 2, 3, 8]);
    }

    #[test]
    fn redirects_slow_down_and_stop_until_the_sender_was_silent() {
        let mut peers = Peers::default();
        let sent: Vec<u64> = (0..20_000).filter(|ms| peers.allow_redirect4(HOST4, ms * MS)).collect();
        assert_eq!(sent, [0, 41, 122, 283, 604, 1245, 2526, 5087, 10_208]);
        assert!(!peers.allow_redirect4(HOST4, 40_000 * MS));
        assert!(peers.allow_redirect4(HOST4, 61_000 * MS));
    }

    #[test]
    fn peers_of_the_same_address_in_two_vrfs_do_not_share_a_bucket() {
        let mut peers = Peers::default();
        while peers.allow(HOST4, 1000, 0) {}
        assert!(peers.allow(Peer { addr: HOST4, vrf: 7 }, 1000, 0));
    }

    #[test]
    fn the_table_of_peers_is_bounded_and_keeps_those_in_use() {
        let mut peers = Peers::default();
        while peers.allow(HOST6, 1000, 0) {}
        for i in 0..200_000u32 {
            peers.allow(IpAddr::V4(Ipv4Addr::from(i)), 1000, 0);
            if i % 10_000 == 0 {
                assert!(!peers.allow(HOST6, 1000, 0), "forgotten after {i}");
            }
        }
        assert!(peers.young.len() + peers.old.len() <= 2 * GENERATION);
    }

    #[test]
    fn the_global_limit_gives_a_burst_and_then_the_rate() {
        let mut global = Global::default();
        let mut send = |now| {
            let allowed = global.allow(now);
            if allowed {
                global.consume();
            }
            allowed
        };
        assert_eq!((0..100).filter(|_| send(0)).count(), 50);
        assert!(!send(19 * MS));
        assert_eq!((0..100).filter(|_| send(20 * MS)).count(), 20);
        assert_eq!((21..1040).filter(|ms| send(ms * MS)).count(), 1000);
    }

    #[test]
    fn a_clock_that_goes_back_does_no_harm() {
        let mut peers = Peers::default();
        assert!(peers.allow(HOST4, 1000, u64::MAX));
        assert!(peers.allow(HOST4, 1000, 0));
        assert!(!Global::new(0, 0).allow(u64::MAX));
    }
}

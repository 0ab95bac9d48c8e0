//! Prefixes.

use std::fmt;

use crate::Key;

/// A prefix: an address of which the first `len` bits count, the others are zero.
///
/// Ordered by address, then by length: a prefix stands directly before everything it contains.
// Packed, because the writer keeps hundreds of thousands: 20 bytes for IPv6 instead of 32.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[repr(Rust, packed(4))]
pub struct Prefix<K: Key> {
    addr: K,
    len: u8,
}

impl<K: Key> Prefix<K> {
    /// The prefix of `len` bits that contains `addr`; `None` if a key has not that many bits.
    #[must_use]
    pub fn new(addr: K, len: u8) -> Option<Self> {
        (len <= K::BITS).then(|| Self { addr: addr.network(len), len })
    }

    /// The prefix of full length: one address.
    #[must_use]
    pub fn host(addr: K) -> Self {
        Self { addr, len: K::BITS }
    }

    /// The first address of the prefix.
    #[must_use]
    pub fn addr(self) -> K {
        self.addr
    }

    /// How many bits count.
    #[must_use]
    #[expect(clippy::len_without_is_empty, reason = "the length of a prefix, not of a collection")]
    pub fn len(self) -> u8 {
        self.len
    }

    /// Whether `addr` lies within the prefix.
    #[must_use]
    pub fn contains(self, addr: K) -> bool {
        addr.network(self.len) == self.addr()
    }

    /// Whether `other` lies within this prefix; a prefix covers itself.
    #[must_use]
    pub fn covers(self, other: Self) -> bool {
        self.len <= other.len && self.contains(other.addr)
    }

    /// The last address of the prefix.
    #[must_use]
    pub fn last(self) -> K {
        self.addr().last(self.len)
    }

    /// The prefix of the first `len` bits, or this one if it is no longer than that.
    pub(crate) fn truncated(self, len: u8) -> Self {
        let len = len.min(self.len);
        Self { addr: self.addr().network(len), len }
    }
}

impl<K: Key> fmt::Debug for Prefix<K> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (first, second) = self.addr().halves();
        if K::BITS == 32 {
            write!(f, "{}/{}", std::net::Ipv4Addr::from(second as u32), self.len)
        } else {
            write!(f, "{}/{}", std::net::Ipv6Addr::from(u128::from(first) << 64 | u128::from(second)), self.len)
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn v4(addr: [u8; 4], len: u8) -> Prefix<u32> {
        Prefix::new(u32::from_be_bytes(addr), len).expect("length within 32")
    }

    #[test]
    fn host_bits_are_masked_off_and_long_lengths_refused() {
        assert_eq!(v4([10, 1, 2, 3], 8), v4([10, 0, 0, 0], 8));
        assert_eq!(Prefix::new(0u32, 33), None);
        assert_eq!(Prefix::new(0u128, 129), None);
        assert_eq!(Prefix::new(1u128, 0), Prefix::new(0u128, 0));
    }

    #[test]
    fn a_prefix_contains_its_first_and_last_address_and_none_outside() {
        let net = v4([10, 128, 0, 0], 9);
        assert!(net.contains(net.addr()) && net.contains(net.last()));
        assert!(!net.contains(net.addr() - 1) && !net.contains(net.last() + 1));
        assert!(net.covers(net) && net.covers(v4([10, 200, 0, 0], 16)) && !net.covers(v4([10, 0, 0, 0], 8)));
    }

    #[test]
    fn a_prefix_sorts_before_what_it_contains() {
        let mut all = [v4([10, 1, 0, 0], 16), v4([11, 0, 0, 0], 8), v4([10, 0, 0, 0], 16), v4([10, 0, 0, 0], 8)];
        all.sort();
        assert_eq!(all, [v4([10, 0, 0, 0], 8), v4([10, 0, 0, 0], 16), v4([10, 1, 0, 0], 16), v4([11, 0, 0, 0], 8)]);
    }

    #[test]
    fn prefixes_are_stored_packed_and_printed_as_operators_write_them() {
        assert_eq!((size_of::<Prefix<u32>>(), size_of::<Prefix<u128>>()), (8, 20));
        assert_eq!(format!("{:?}", v4([10, 0, 0, 0], 8)), "10.0.0.0/8");
        assert_eq!(format!("{:?}", Prefix::new(0x2001_0db8_u128 << 96, 32)), "Some(2001:db8::/32)");
    }
}

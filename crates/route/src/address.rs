//! IPv4 and IPv6 addresses as one kind of thing, so that tables and rules are written once.

use std::fmt::{Debug, Display};
use std::hash::Hash;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

/// An address family's address.
pub trait Address: Copy + Eq + Ord + Hash + Debug + Display + Into<IpAddr> + Send + Sync + 'static {
    /// The address as an integer in host order, for longest-prefix match.
    type Key: lpm::Key;
    /// Length of an address, bits.
    const BITS: u8;
    /// All zeros: no address.
    const UNSPECIFIED: Self;

    /// As an integer.
    fn key(self) -> Self::Key;

    /// From an integer.
    fn from_key(key: Self::Key) -> Self;

    /// The bits in two halves, of which an IPv4 address has the second only.
    fn halves(self) -> [u64; 2];

    /// From an integer of 128 bits; none when it is beyond the last address.
    fn from_bits(bits: u128) -> Option<Self>;

    /// True of destinations that mean something on one link only, so that a lookup must stay on the interface: IPv6 link-local,
    /// multicast and loopback.
    fn is_link_scoped(self) -> bool;

    /// Metric of a route that names none (Linux: 0 for IPv4, 1024 for IPv6).
    const DEFAULT_METRIC: u32;
}

impl Address for Ipv4Addr {
    type Key = u32;
    const BITS: u8 = 32;
    const UNSPECIFIED: Ipv4Addr = Ipv4Addr::UNSPECIFIED;
    const DEFAULT_METRIC: u32 = 0;

    #[inline]
    fn key(self) -> u32 {
        u32::from(self)
    }

    fn from_key(key: u32) -> Ipv4Addr {
        Ipv4Addr::from(key)
    }

    #[inline]
    fn halves(self) -> [u64; 2] {
        [0, u32::from(self).into()]
    }

    fn from_bits(bits: u128) -> Option<Ipv4Addr> {
        u32::try_from(bits).ok().map(Ipv4Addr::from)
    }

    #[inline]
    fn is_link_scoped(self) -> bool {
        false
    }
}

impl Address for Ipv6Addr {
    type Key = u128;
    const BITS: u8 = 128;
    const UNSPECIFIED: Ipv6Addr = Ipv6Addr::UNSPECIFIED;
    const DEFAULT_METRIC: u32 = 1024;

    #[inline]
    fn key(self) -> u128 {
        u128::from(self)
    }

    fn from_key(key: u128) -> Ipv6Addr {
        Ipv6Addr::from(key)
    }

    #[inline]
    fn halves(self) -> [u64; 2] {
        let key = u128::from(self);
        [(key >> 64) as u64, key as u64]
    }

    fn from_bits(bits: u128) -> Option<Ipv6Addr> {
        Some(Ipv6Addr::from(bits))
    }

    #[inline]
    fn is_link_scoped(self) -> bool {
        let first = self.octets();
        first[0] == 0xff || first[0] == 0xfe && first[1] & 0xc0 == 0x80 || self == Ipv6Addr::LOCALHOST
    }
}

/// An address with the bits beyond its length set to zero.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Prefix<A> {
    addr: A,
    len: u8,
}

impl<A: Address> Prefix<A> {
    /// The prefix of `len` bits that `addr` lies in; none when `len` is beyond the address.
    pub fn new(addr: A, len: u8) -> Option<Prefix<A>> {
        lpm::Prefix::new(addr.key(), len).map(|prefix| Prefix { addr: A::from_key(prefix.addr()), len })
    }

    /// The address alone.
    pub fn host(addr: A) -> Prefix<A> {
        Prefix { addr, len: A::BITS }
    }

    /// First address of the prefix.
    pub fn addr(self) -> A {
        self.addr
    }

    /// Length, bits.
    pub fn len(self) -> u8 {
        self.len
    }

    /// True of the prefix that holds every address.
    pub fn is_empty(self) -> bool {
        self.len == 0
    }

    /// True when `addr` lies in the prefix.
    pub fn contains(self, addr: A) -> bool {
        Prefix::new(addr, self.len) == Some(self)
    }

    /// As the match tables take it.
    pub fn to_lpm(self) -> Option<lpm::Prefix<A::Key>> {
        lpm::Prefix::new(self.addr.key(), self.len)
    }
}

impl<A: Address> Display for Prefix<A> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self.len {
            0 => f.write_str("default"),
            len if len == A::BITS => write!(f, "{}", self.addr),
            len => write!(f, "{}/{len}", self.addr),
        }
    }
}

impl<A: Address> Debug for Prefix<A> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        Display::fmt(self, f)
    }
}

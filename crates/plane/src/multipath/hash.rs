//! The kernel's hash over the keys of a flow, so that a flow takes the same way as in Linux for the same seed.
//!
//! The keys stand in memory as Linux has them on a little-endian machine, hashed with SipHash-2-4 (Aumasson and Bernstein, 2012):
//!
//! ```text
//! byte 0  zero (2), protocol (1), zero (1), flow label (4)
//!      8  zero (20)
//!     28  source port (2), destination port (2), zero (4)
//!     36  source, destination (4 each, or 16 each), zero (4)
//! ```

/// Both addresses, the source first: bytes as in the packet.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Addresses {
    V4([[u8; 4]; 2]),
    V6([[u8; 16]; 2]),
}

/// What of a packet is hashed; what is not is zero.
#[derive(Clone, Copy, Debug)]
pub(super) struct Keys {
    pub(super) addresses: Addresses,
    /// Source and destination port, bytes as in the packet.
    pub(super) ports: [[u8; 2]; 2],
    pub(super) proto: u8,
    /// As it stands in memory: of the packet itself in network order, of what the dissector found in host order.
    pub(super) label: [u8; 4],
}

impl Keys {
    /// Nothing but addresses.
    pub(super) fn of(addresses: Addresses) -> Keys {
        Keys { addresses, ports: [[0; 2]; 2], proto: 0, label: [0; 4] }
    }

    /// The hash, never 0. Both directions of a flow have the same.
    #[inline]
    pub(super) fn hash(mut self, seed: u32) -> u32 {
        // Compared as the numbers that the bytes are on a little-endian machine, but for IPv6 addresses.
        if u16::from_le_bytes(self.ports[1]) < u16::from_le_bytes(self.ports[0]) {
            self.ports.swap(0, 1);
        }
        let [a, b, c, d] = self.label;
        let first = u64::from_le_bytes([0, 0, self.proto, 0, a, b, c, d]);
        let [[a, b], [c, d]] = self.ports;
        let ports = u64::from_le_bytes([0, 0, 0, 0, a, b, c, d]);
        match self.addresses {
            Addresses::V4([src, dst]) => {
                let (src, dst) = (u32::from_le_bytes(src), u32::from_le_bytes(dst));
                let (low, high) = if dst < src { (dst, src) } else { (src, dst) };
                finish(siphash(seed, &[first, 0, 0, ports, u64::from(low) << 32, high.into()]))
            }
            Addresses::V6([src, dst]) => {
                let (low, high) = if dst < src { (dst, src) } else { (src, dst) };
                let (low, high) = (u128::from_le_bytes(low), u128::from_le_bytes(high));
                let words = [
                    (low as u64) << 32,
                    (low >> 32) as u64,
                    (low >> 96) as u64 | (high as u64) << 32,
                    (high >> 32) as u64,
                    (high >> 96) as u64,
                ];
                let [a, b, c, d, e] = words;
                finish(siphash(seed, &[first, 0, 0, ports, a, b, c, d, e]))
            }
        }
    }
}

fn finish(hash: u64) -> u32 {
    (hash as u32).max(1)
}

/// SipHash-2-4 of whole words, both halves of the key made of the seed.
#[inline]
fn siphash(seed: u32, words: &[u64]) -> u64 {
    let key = u64::from(seed) << 32 | u64::from(seed);
    let mut v = [0x736f_6d65_7073_6575 ^ key, 0x646f_7261_6e64_6f6d ^ key, 0x6c79_6765_6e65_7261 ^ key, 0x7465_6462_7974_6573 ^ key];
    let length = (words.len() as u64 * 8) << 56;
    for &word in words.iter().chain(&[length]) {
        v[3] ^= word;
        round(&mut v);
        round(&mut v);
        v[0] ^= word;
    }
    v[2] ^= 0xff;
    (0..4).for_each(|_| round(&mut v));
    v[0] ^ v[1] ^ v[2] ^ v[3]
}

#[inline(always)]
fn round([a, b, c, d]: &mut [u64; 4]) {
    *a = a.wrapping_add(*b);
    *b = b.rotate_left(13) ^ *a;
    *a = a.rotate_left(32);
    *c = c.wrapping_add(*d);
    *d = d.rotate_left(16) ^ *c;
    *a = a.wrapping_add(*d);
    *d = d.rotate_left(21) ^ *a;
    *c = c.wrapping_add(*b);
    *b = b.rotate_left(17) ^ *c;
    *c = c.rotate_left(32);
}

/// Two words mixed into one: Jenkins's lookup3 (2006) with Linux's start value.
#[inline]
pub(super) fn jhash2(first: u32, second: u32) -> u32 {
    const START: u32 = 0xdead_beef_u32.wrapping_add(2 << 2);
    let (mut a, mut b, mut c) = (first.wrapping_add(START), second.wrapping_add(START), START);
    let mix = |x: &mut u32, y: u32, bits: u32| *x = (*x ^ y).wrapping_sub(y.rotate_left(bits));
    mix(&mut c, b, 14);
    mix(&mut a, c, 11);
    mix(&mut b, a, 25);
    mix(&mut c, b, 16);
    mix(&mut a, c, 4);
    mix(&mut b, a, 14);
    mix(&mut c, b, 24);
    c
}

#[cfg(test)]
mod tests {
    use std::hash::Hasher;

    use super::*;

    #[test]
    #[expect(deprecated, reason = "the one implementation of SipHash-2-4 that the standard library has")]
    fn siphash_is_that_of_its_authors() {
        for (seed, words) in [(0, &[][..]), (12345, &[1, 2, 3, u64::MAX, 0, 7]), (u32::MAX, &[0x0123_4567_89ab_cdef; 9])] {
            let key = u64::from(seed) << 32 | u64::from(seed);
            let mut reference = std::hash::SipHasher::new_with_keys(key, key);
            words.iter().for_each(|word: &u64| reference.write(&word.to_le_bytes()));
            assert_eq!(siphash(seed, words), reference.finish(), "{seed} {words:?}");
        }
    }

    #[test]
    fn both_directions_of_a_flow_hash_alike() {
        let v4 = |swap: bool| {
            let mut keys = Keys { ports: [[0x12, 0x34], [0, 80]], proto: 6, ..Keys::of(Addresses::V4([[10, 0, 0, 2], [192, 0, 2, 77]])) };
            if swap {
                keys.ports.swap(0, 1);
                keys.addresses = Addresses::V4([[192, 0, 2, 77], [10, 0, 0, 2]]);
            }
            keys.hash(7)
        };
        assert_eq!(v4(false), v4(true));
        let v6 = |a: [u8; 16], b: [u8; 16]| Keys::of(Addresses::V6([a, b])).hash(7);
        assert_eq!(v6([1; 16], [2; 16]), v6([2; 16], [1; 16]));
        assert_ne!(v6([1; 16], [2; 16]), v6([1; 16], [3; 16]));
    }
}

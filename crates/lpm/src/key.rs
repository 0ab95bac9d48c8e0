//! What can be looked up: the bits of an address.

use std::fmt::Debug;
use std::hash::Hash;

/// An address in host order; its most significant bit is the first bit of a prefix.
///
/// `u32` for IPv4, `u128` for IPv6; nobody else can implement it.
pub trait Key: bits::Bits + Copy + Eq + Ord + Hash + Debug + Send + Sync + 'static {
    /// The length of an address in bits.
    const BITS: u8;
}

impl Key for u32 {
    const BITS: u8 = 32;
}

impl Key for u128 {
    const BITS: u8 = 128;
}

pub(crate) mod bits {
    /// The arithmetic of a key, and how its tables are shaped.
    pub trait Bits: Sized {
        /// Sizes of the direct table: from how many prefixes on it has how many bits. Ascending.
        ///
        /// The first is that of an empty table: a few words. From it, levels of six bits end at the end of a key, or
        /// of the /64 that most small IPv6 tables are made of. The last is what measured best with the whole Internet.
        const DIRECT: &'static [(usize, u8)];
        /// Whether prefixes of full length are matched exactly, by hash, before the trie.
        ///
        /// In the trie a /128 is a chain of up to 22 nodes. A /32 is at most six, and three below
        /// the full direct table: less than what the hash would cost every other lookup.
        const HOSTS: bool;

        /// The first `bits` bits; `bits` is at most 24.
        fn first(self, bits: u8) -> usize;
        /// The six bits behind the first `offset`, with zeros where the key has ended.
        fn six(self, offset: u8) -> usize;
        /// The same, for an offset of at most 58.
        fn six_early(self, offset: u8) -> usize;
        /// The key with all but its first `len` bits cleared.
        fn network(self, len: u8) -> Self;
        /// The key with all but its first `len` bits set.
        fn last(self, len: u8) -> Self;
        /// How many bits the two have in common before the first that differs.
        fn common(self, other: Self) -> u8;
        /// The two halves of the key, the first one first.
        fn halves(self) -> (u64, u64);
    }

    impl Bits for u32 {
        const DIRECT: &'static [(usize, u8)] = &[(0, 2), (256, 12), (16_384, 18)];
        const HOSTS: bool = false;

        #[inline(always)]
        fn first(self, bits: u8) -> usize {
            ((u64::from(self) << bits) >> 32) as usize
        }

        #[inline(always)]
        fn six(self, offset: u8) -> usize {
            (self.wrapping_shl(offset.into()) >> 26) as usize
        }

        #[inline(always)]
        fn six_early(self, offset: u8) -> usize {
            self.six(offset)
        }

        fn network(self, len: u8) -> Self {
            self & !(u32::MAX.checked_shr(len.into()).unwrap_or(0))
        }

        fn last(self, len: u8) -> Self {
            self | u32::MAX.checked_shr(len.into()).unwrap_or(0)
        }

        fn common(self, other: Self) -> u8 {
            (self ^ other).leading_zeros() as u8
        }

        #[inline(always)]
        fn halves(self) -> (u64, u64) {
            (0, self.into())
        }
    }

    impl Bits for u128 {
        const DIRECT: &'static [(usize, u8)] = &[(0, 4), (256, 10), (32_768, 20)];
        const HOSTS: bool = true;

        #[inline(always)]
        fn first(self, bits: u8) -> usize {
            let (first, _) = self.halves();
            ((first >> 1) >> (63 - bits)) as usize
        }

        #[inline(always)]
        fn six(self, offset: u8) -> usize {
            let (first, second) = self.halves();
            // Most prefixes end in the first half: its shifts are cheaper than those of 128 bits.
            if offset <= 58 {
                (first.wrapping_shl(offset.into()) >> 58) as usize
            } else if offset < 64 {
                (self.wrapping_shl(offset.into()) >> 122) as usize
            } else {
                (second.wrapping_shl(offset.into()) >> 58) as usize
            }
        }

        #[inline(always)]
        fn six_early(self, offset: u8) -> usize {
            (self.halves().0.wrapping_shl(offset.into()) >> 58) as usize
        }

        fn network(self, len: u8) -> Self {
            self & !(u128::MAX.checked_shr(len.into()).unwrap_or(0))
        }

        fn last(self, len: u8) -> Self {
            self | u128::MAX.checked_shr(len.into()).unwrap_or(0)
        }

        fn common(self, other: Self) -> u8 {
            (self ^ other).leading_zeros() as u8
        }

        #[inline(always)]
        fn halves(self) -> (u64, u64) {
            ((self >> 64) as u64, self as u64)
        }
    }
}

#[cfg(test)]
mod tests {
    use super::bits::Bits;

    const V4: u32 = 0xc0a8_01fe;
    const V6: u128 = 0x2001_0db8_1234_5678_9abc_def0_0fed_cba9;

    #[test]
    fn the_first_bits_are_the_most_significant() {
        assert_eq!((V4.first(0), V4.first(12), V4.first(18)), (0, 0xc0a, 0x302a0));
        assert_eq!((V6.first(0), V6.first(14), V6.first(20)), (0, 0x800, 0x20010));
    }

    #[test]
    fn six_bits_are_read_anywhere_and_padded_with_zeros() {
        assert_eq!((V4.six(0), V4.six(18), V4.six(30)), (0b11_0000, 0b00_0001, 0b10_0000));
        for offset in 0..128u8 {
            let expected = (0..6).fold(0, |six, bit| {
                let at = u32::from(offset) + bit;
                six << 1 | if at < 128 { (V6 >> (127 - at) & 1) as usize } else { 0 }
            });
            assert_eq!(V6.six(offset), expected, "at {offset}");
        }
    }

    #[test]
    fn masks_reach_from_nothing_to_the_whole_key() {
        assert_eq!((V4.network(0), V4.network(24), V4.network(32)), (0, 0xc0a8_0100, V4));
        assert_eq!((V4.last(0), V4.last(24), V4.last(32)), (u32::MAX, 0xc0a8_01ff, V4));
        assert_eq!((V6.network(0), V6.network(32), V6.network(128)), (0, 0x2001_0db8 << 96, V6));
        assert_eq!((V6.last(0), V6.last(128)), (u128::MAX, V6));
    }

    #[test]
    fn common_bits_stop_at_the_first_difference() {
        assert_eq!((V4.common(V4), V4.common(V4 ^ 1), V4.common(!V4)), (32, 31, 0));
        assert_eq!((V6.common(V6), V6.common(V6 ^ 1 << 64)), (128, 63));
    }
}

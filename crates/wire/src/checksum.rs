//! The Internet checksum (RFC 1071) and its incremental update (RFC 1624).

use core::net::{Ipv4Addr, Ipv6Addr};

/// A running one's-complement sum, not yet folded or complemented.
#[derive(Clone, Copy, Default, Debug)]
pub struct Sum(u64);

impl Sum {
    /// Adds bytes as 16-bit big-endian words; an odd last byte is padded with zero, so only the last piece may be odd.
    #[must_use]
    pub fn bytes(self, bytes: &[u8]) -> Sum {
        let mut sum = self.0;
        let mut words = bytes.chunks_exact(4);
        for word in &mut words {
            if let Ok(word) = <[u8; 4]>::try_from(word) {
                sum += u64::from(u32::from_be_bytes(word));
            }
        }
        let mut last = [0; 4];
        for (to, from) in last.iter_mut().zip(words.remainder()) {
            *to = *from;
        }
        Sum(sum + u64::from(u32::from_be_bytes(last)))
    }

    /// Adds one 16-bit word in host order.
    #[must_use]
    pub fn word(self, word: u16) -> Sum {
        Sum(self.0 + u64::from(word))
    }

    /// The pseudo header of IPv4 (RFC 768): `len` is the upper-layer length in bytes.
    pub fn pseudo4(src: Ipv4Addr, dst: Ipv4Addr, proto: u8, len: usize) -> Sum {
        Sum(u64::from(u32::from(src)) + u64::from(u32::from(dst)) + u64::from(proto) + len as u64)
    }

    /// The pseudo header of IPv6 (RFC 8200 §8.1): `len` is the upper-layer length in bytes.
    pub fn pseudo6(src: Ipv6Addr, dst: Ipv6Addr, proto: u8, len: usize) -> Sum {
        Sum(u64::from(proto) + len as u64).bytes(&src.octets()).bytes(&dst.octets())
    }

    /// The folded sum; 0xffff when it covers a correct checksum.
    pub fn fold(self) -> u16 {
        let mut sum = self.0;
        while sum > 0xffff {
            sum = (sum & 0xffff) + (sum >> 16);
        }
        sum as u16
    }

    /// The value for a checksum field that was zero while summed.
    pub fn finish(self) -> u16 {
        !self.fold()
    }

    /// True when the summed bytes contain a right checksum.
    pub fn is_valid(self) -> bool {
        self.fold() == 0xffff
    }
}

/// The checksum after one 16-bit word under it changed from `old` to `new` (RFC 1624 equation 3: never turns into the other zero wrongly).
pub fn update(checksum: u16, old: u16, new: u16) -> u16 {
    Sum(u64::from(!checksum) + u64::from(!old) + u64::from(new)).finish()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_example_of_rfc_1071_sums_right() {
        assert_eq!(Sum::default().bytes(&[0x00, 0x01, 0xf2, 0x03, 0xf4, 0xf5, 0xf6, 0xf7]).fold(), 0xddf2);
    }

    #[test]
    fn the_example_of_rfc_1624_does_not_become_negative_zero() {
        assert_eq!(update(0xdd2f, 0x5555, 0x3285), 0x0000);
    }

    #[test]
    fn an_odd_last_byte_counts_as_the_high_one() {
        assert_eq!(Sum::default().bytes(&[0x12, 0x34, 0x56]).fold(), 0x1234 + 0x5600);
    }
}

//! Addresses for tests. Equal words hide checksum faults (a swapped word sums the same), so these differ in every 16-bit word.

use std::net::{Ipv4Addr, Ipv6Addr};
use wire::Mac;

/// IPv6 address number `n`: unicast, all eight words different, and different from those of every other `n`.
///
/// ```
/// assert_eq!(testkit::addr::v6(1).to_string(), "2001:1102:2203:3304:4405:5506:6607:7708");
/// ```
pub fn v6(n: u16) -> Ipv6Addr {
    let word = |i: u16| (i * 0x1100).wrapping_add(n.wrapping_mul(8).wrapping_add(i).wrapping_sub(7));
    Ipv6Addr::new(0x2001, word(1), word(2), word(3), word(4), word(5), word(6), word(7))
}

/// SID number `n`: as [`v6`], from the unique local block `fc00::/16`.
pub fn sid(n: u16) -> Ipv6Addr {
    let mut words = v6(n).segments();
    words[0] = 0xfc00;
    Ipv6Addr::from(words)
}

/// IPv4 address number `n`: unicast, both words different, and different from those of every other `n`.
pub fn v4(n: u8) -> Ipv4Addr {
    Ipv4Addr::new(10, n, n.wrapping_add(129), n.wrapping_add(2))
}

/// A unicast, locally administered Ethernet address number `n`; its three words differ.
pub fn mac(n: u8) -> Mac {
    Mac([0x02, n, 0x5e, n.wrapping_add(85), 0x77, n.wrapping_add(170)])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_word_of_an_address_is_that_of_another() {
        let mut seen = std::collections::HashSet::new();
        for n in 0..32 {
            for word in v6(n).segments().into_iter().skip(1) {
                assert!(seen.insert(word), "{word:x} twice, again in {}", v6(n));
            }
        }
    }

    #[test]
    fn the_words_of_an_ipv4_address_differ() {
        for n in 0..=255 {
            let [a, b, c, d] = v4(n).octets();
            assert_ne!((a, b), (c, d));
        }
    }
}

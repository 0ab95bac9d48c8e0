//! The Internet's routing table, and reproducible random addresses in it.
#![allow(dead_code, reason = "each test and bench that includes this uses a part")]

use std::io::Read;
use std::net::IpAddr;

use lpm::{Key, Prefix};

/// Both families' prefixes with values from 1 to 64.
pub struct Internet {
    pub v4: Vec<(Prefix<u32>, u32)>,
    pub v6: Vec<(Prefix<u128>, u32)>,
}

impl Internet {
    pub fn load() -> Self {
        let path = concat!(env!("CARGO_MANIFEST_DIR"), "/../../benches/data/internet-prefixes.txt.gz");
        let file = std::fs::File::open(path).expect("routing table");
        let mut text = String::new();
        flate2::read::GzDecoder::new(file).read_to_string(&mut text).expect("gzip of text");
        let mut random = Random(1);
        let mut internet = Self { v4: Vec::new(), v6: Vec::new() };
        for line in text.lines() {
            let (addr, len) = line.split_once('/').expect("address/length");
            let (len, value) = (len.parse().expect("length"), random.below(64) as u32 + 1);
            match addr.parse().expect("address") {
                IpAddr::V4(addr) => internet.v4.push((Prefix::new(addr.into(), len).expect("IPv4 length"), value)),
                IpAddr::V6(addr) => internet.v6.push((Prefix::new(addr.into(), len).expect("IPv6 length"), value)),
            }
        }
        internet
    }
}

/// So many addresses, each anywhere in one of the prefixes, all prefixes equally likely.
pub fn addresses<K: RandomKey>(prefixes: &[(Prefix<K>, u32)], count: usize) -> Vec<K> {
    let mut random = Random(2);
    (0..count).map(|_| K::within(prefixes[random.below(prefixes.len())].0, &mut random)).collect()
}

/// A key of random bits behind a prefix.
pub trait RandomKey: Key {
    const ZERO: Self;
    fn within(prefix: Prefix<Self>, random: &mut Random) -> Self;
}

impl RandomKey for u32 {
    const ZERO: Self = 0;
    fn within(prefix: Prefix<u32>, random: &mut Random) -> u32 {
        prefix.addr() | random.next() as u32 & (prefix.last() ^ prefix.addr())
    }
}

impl RandomKey for u128 {
    const ZERO: Self = 0;
    fn within(prefix: Prefix<u128>, random: &mut Random) -> u128 {
        let bits = u128::from(random.next()) << 64 | u128::from(random.next());
        prefix.addr() | bits & (prefix.last() ^ prefix.addr())
    }
}

/// SplitMix64.
pub struct Random(pub u64);

impl Random {
    pub fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ z >> 30).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ z >> 27).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ z >> 31
    }

    pub fn below(&mut self, bound: usize) -> usize {
        ((u128::from(self.next()) * bound as u128) >> 64) as usize
    }
}

//! Hashing of prefixes.

use std::hash::{BuildHasherDefault, Hasher};

/// A hasher for keys that the operator chooses: a multiplication a word spreads them well, and a full table has a million.
#[derive(Clone, Copy, Default, Debug)]
pub struct PrefixHasher(u64);

/// Makes hashers of prefixes.
pub type FastHash = BuildHasherDefault<PrefixHasher>;

impl Hasher for PrefixHasher {
    fn finish(&self) -> u64 {
        self.0 ^ self.0 >> 32
    }

    fn write(&mut self, bytes: &[u8]) {
        for chunk in bytes.chunks(8) {
            let mut word = [0; 8];
            word[..chunk.len()].copy_from_slice(chunk);
            self.write_u64(u64::from_le_bytes(word));
        }
    }

    fn write_u8(&mut self, value: u8) {
        self.write_u64(u64::from(value));
    }

    fn write_u32(&mut self, value: u32) {
        self.write_u64(u64::from(value));
    }

    fn write_u64(&mut self, value: u64) {
        self.0 = (self.0 ^ value).wrapping_mul(0x9e37_79b9_7f4a_7c15).rotate_left(29);
    }

    fn write_usize(&mut self, value: usize) {
        self.write_u64(value as u64);
    }

    fn write_u16(&mut self, value: u16) {
        self.write_u64(u64::from(value));
    }
}

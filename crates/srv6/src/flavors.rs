//! Flavours of an endpoint behaviour.

use std::fmt;

/// A set of flavours (RFC 8986 §4.16, RFC 9800 §4). The bits are the kernel's (`SEG6_LOCAL_FLV_OPERATION`).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Flavors(u32);

impl Flavors {
    /// No flavour.
    pub const NONE: Flavors = Flavors(0);
    /// Penultimate segment pop: the SRH is removed when the last segment becomes active.
    pub const PSP: Flavors = Flavors(1 << 1);
    /// Ultimate segment pop: the SRH is removed at the last segment.
    pub const USP: Flavors = Flavors(1 << 2);
    /// Ultimate segment decapsulation: the outer header is removed at the last segment.
    pub const USD: Flavors = Flavors(1 << 3);
    /// Compressed SIDs: the next one is shifted into place within the destination address.
    pub const NEXT_CSID: Flavors = Flavors(1 << 4);

    const WORDS: [(Flavors, &str); 4] =
        [(Flavors::PSP, "psp"), (Flavors::USP, "usp"), (Flavors::USD, "usd"), (Flavors::NEXT_CSID, "next-csid")];

    /// The set with the kernel's `bits`; none when one of them is unknown.
    pub fn from_bits(bits: u32) -> Option<Flavors> {
        let known = Flavors::WORDS.iter().fold(0, |known, (flavor, _)| known | flavor.0);
        (bits & !known == 0).then_some(Flavors(bits))
    }

    /// The flavour that iproute2 spells `word`.
    pub fn from_word(word: &str) -> Option<Flavors> {
        Flavors::WORDS.iter().find(|(_, known)| *known == word).map(|(flavor, _)| *flavor)
    }

    /// The kernel's bits.
    pub const fn bits(self) -> u32 {
        self.0
    }

    /// True of no flavour.
    pub const fn is_empty(self) -> bool {
        self.0 == 0
    }

    /// All of `other` are in this set.
    pub const fn contains(self, other: Flavors) -> bool {
        self.0 & other.0 == other.0
    }

    /// The flavours in either set.
    #[must_use]
    pub const fn union(self, other: Flavors) -> Flavors {
        Flavors(self.0 | other.0)
    }

    /// The flavours of this set that are not in `other`.
    #[must_use]
    pub const fn without(self, other: Flavors) -> Flavors {
        Flavors(self.0 & !other.0)
    }
}

/// As iproute2 writes a set: `psp,next-csid`.
impl fmt::Display for Flavors {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut comma = "";
        for (_, word) in Flavors::WORDS.iter().filter(|(flavor, _)| self.contains(*flavor)) {
            write!(f, "{comma}{word}")?;
            comma = ",";
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_and_kernel_bits_name_the_same_flavors() {
        let both = Flavors::PSP.union(Flavors::NEXT_CSID);
        assert_eq!(both.to_string(), "psp,next-csid");
        assert_eq!(Flavors::from_bits(0b10010), Some(both));
        assert_eq!(Flavors::from_bits(1), None);
        assert_eq!(Flavors::from_word("usd"), Some(Flavors::USD));
    }
}

//! The HMAC TLV: signing a segment list and verifying it (RFC 8754 §2.1.2), as Linux does.
//!
//! ```text
//! | type 5 | length 38 | reserved | key id (4) | HMAC (32) |      at the end of the SRH, with 0x08 set in its flags
//! ```
//! Signed are the source address, last entry, flags, key id and the segment list. SHA-1 fills 20 of the 32 bytes, the others are zero.
//!
//! Two things differ from Linux: lists of more than 14 segments are signed and verified as well (Linux's buffer ends there and it drops them), and the
//! HMAC verified is that of the SRH acted upon (Linux looks right behind the IPv6 header, where another extension header may stand).

use std::collections::BTreeMap;
use std::fmt;
use std::net::Ipv6Addr;

use hmac::{Hmac, Mac};
use route::DropReason;
use sha1::Sha1;
use sha2::Sha256;
use wire::srh::{Header, LEN, TLV_HMAC};

/// Bytes of the TLV.
pub(crate) const TLV_LEN: usize = 40;
/// Bytes of the HMAC in it.
pub(crate) const VALUE_LEN: usize = 32;
/// The flag of an SRH that carries one (`SR6_FLAG1_HMAC`).
pub(crate) const FLAG: u8 = 0x08;
/// Longest secret, bytes (`SEG6_HMAC_SECRET_LEN`).
const MAX_SECRET_LEN: usize = 64;

/// How a key signs. The numbers are the kernel's.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum HmacAlgorithm {
    /// HMAC-SHA1, 20 bytes.
    Sha1 = 1,
    /// HMAC-SHA256, 32 bytes.
    Sha256 = 2,
}

impl HmacAlgorithm {
    /// The algorithm as iproute2 spells it.
    pub const fn word(self) -> &'static str {
        match self {
            HmacAlgorithm::Sha1 => "sha1",
            HmacAlgorithm::Sha256 => "sha256",
        }
    }

    /// The algorithm that iproute2 spells `word`.
    pub fn from_word(word: &str) -> Option<HmacAlgorithm> {
        [HmacAlgorithm::Sha1, HmacAlgorithm::Sha256].into_iter().find(|algorithm| algorithm.word() == word)
    }
}

/// Why a key cannot be set.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum HmacKeyError {
    /// Id 0 stands for no HMAC.
    #[error("key id 0 means no HMAC; ids are 1 to 4294967295")]
    Zero,
    /// No secret.
    #[error("the secret of key {0} is empty")]
    Empty(u32),
    /// The secret is longer than the kernel takes.
    #[error("the secret of key {id} has {len} bytes, at most 64 are possible")]
    TooLong {
        /// The key.
        id: u32,
        /// Bytes of the secret.
        len: usize,
    },
}

/// The keys that sign and verify segment lists, by id.
#[derive(Clone, Default)]
pub struct HmacKeys {
    keys: BTreeMap<u32, Key>,
}

/// A key with its secret already mixed in.
#[derive(Clone)]
enum Key {
    Sha1(Hmac<Sha1>),
    Sha256(Hmac<Sha256>),
}

impl HmacKeys {
    /// No keys.
    pub const fn new() -> HmacKeys {
        HmacKeys { keys: BTreeMap::new() }
    }

    /// Sets a key, in place of one with the same id.
    ///
    /// # Errors
    /// Id 0, a secret that is empty or longer than 64 bytes.
    pub fn set(&mut self, id: u32, algorithm: HmacAlgorithm, secret: &[u8]) -> Result<(), HmacKeyError> {
        match (id, secret.len()) {
            (0, _) => return Err(HmacKeyError::Zero),
            (_, 0) => return Err(HmacKeyError::Empty(id)),
            (_, len @ ..=MAX_SECRET_LEN) => len,
            (_, len) => return Err(HmacKeyError::TooLong { id, len }),
        };
        let key = match algorithm {
            HmacAlgorithm::Sha1 => Hmac::new_from_slice(secret).map(Key::Sha1),
            HmacAlgorithm::Sha256 => Hmac::new_from_slice(secret).map(Key::Sha256),
        };
        self.keys.insert(id, key.map_err(|_| HmacKeyError::Empty(id))?);
        Ok(())
    }

    /// Takes a key away; false when there is none.
    pub fn remove(&mut self, id: u32) -> bool {
        self.keys.remove(&id).is_some()
    }

    /// Ids and algorithms, in the order of the ids. Secrets do not come out again.
    pub fn iter(&self) -> impl Iterator<Item = (u32, HmacAlgorithm)> {
        self.keys.iter().map(|(id, key)| {
            let algorithm = match key {
                Key::Sha1(_) => HmacAlgorithm::Sha1,
                Key::Sha256(_) => HmacAlgorithm::Sha256,
            };
            (*id, algorithm)
        })
    }
}

impl fmt::Debug for HmacKeys {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_map().entries(self.iter()).finish()
    }
}

impl Key {
    /// The value of a TLV over the parts of the text.
    fn sign(&self, signed: [&[u8]; 5]) -> [u8; VALUE_LEN] {
        let mut value = [0; VALUE_LEN];
        match self {
            Key::Sha1(mac) => fill(&mut value, &over(mac, signed)),
            Key::Sha256(mac) => fill(&mut value, &over(mac, signed)),
        }
        value
    }
}

fn over<M: Mac + Clone>(mac: &M, signed: [&[u8]; 5]) -> impl AsRef<[u8]> + use<M> {
    let mut mac = mac.clone();
    signed.into_iter().for_each(|part| mac.update(part));
    mac.finalize().into_bytes()
}

fn fill(value: &mut [u8; VALUE_LEN], digest: &impl AsRef<[u8]>) {
    value.iter_mut().zip(digest.as_ref()).for_each(|(to, from)| *to = *from);
}

/// The HMAC of `srh` with the key that its TLV names.
fn compute(keys: &HmacKeys, source: Ipv6Addr, srh: &[u8]) -> Result<[u8; VALUE_LEN], DropReason> {
    let header = Header::read(srh).ok_or(DropReason::BadSrh)?;
    let tlv = tlv_at(srh).ok_or(DropReason::BadSrh)?;
    let id: [u8; 4] = srh.get(tlv + 4..tlv + 8).and_then(|id| id.try_into().ok()).ok_or(DropReason::BadSrh)?;
    let segments = srh.get(LEN..LEN + (usize::from(header.last_entry) + 1) * 16).ok_or(DropReason::BadSrh)?;
    let key = keys.keys.get(&u32::from_be_bytes(id)).ok_or(DropReason::HmacKeyMissing)?;
    Ok(key.sign([&source.octets(), &[header.last_entry], &[header.flags], &id, segments]))
}

/// Offset of the HMAC TLV of `srh`: the last 40 bytes, when the flag is set and it stands there behind the segment list.
#[inline]
fn tlv_at(srh: &[u8]) -> Option<usize> {
    let header = Header::read(srh).filter(|header| header.flags & FLAG != 0)?;
    let tlv = srh.len().checked_sub(TLV_LEN)?;
    let behind_segments = tlv >= LEN + (usize::from(header.last_entry) + 1) * 16;
    let here = srh.get(tlv..tlv + 2)? == [TLV_HMAC, TLV_LEN as u8 - 2];
    (behind_segments && here).then_some(tlv)
}

/// Fills in the HMAC of `srh`, a whole SRH that has the TLV.
///
/// # Errors
/// [`DropReason::HmacKeyMissing`].
pub(crate) fn sign(keys: &HmacKeys, source: Ipv6Addr, srh: &mut [u8]) -> Result<(), DropReason> {
    let value = compute(keys, source, srh)?;
    let at = srh.len().checked_sub(VALUE_LEN).ok_or(DropReason::BadSrh)?;
    srh.get_mut(at..).ok_or(DropReason::BadSrh)?.copy_from_slice(&value);
    Ok(())
}

/// True of a whole SRH that has the TLV.
#[inline]
pub(crate) fn is_carried(srh: &[u8]) -> bool {
    tlv_at(srh).is_some()
}

/// Checks the HMAC of `srh`, a whole SRH.
///
/// # Errors
/// [`DropReason::HmacMissing`], [`DropReason::HmacInvalid`], the latter also when the key is not known.
pub(crate) fn verify(keys: &HmacKeys, source: Ipv6Addr, srh: &[u8]) -> Result<(), DropReason> {
    let tlv = tlv_at(srh).ok_or(DropReason::HmacMissing)?;
    let right = compute(keys, source, srh).map_err(|_| DropReason::HmacInvalid)?;
    let given = srh.get(tlv + 8..).unwrap_or_default();
    // every byte is looked at, so that the time taken tells nothing
    let difference = right.iter().zip(given).fold(0, |difference, (a, b)| difference | a ^ b);
    if difference == 0 && given.len() == VALUE_LEN { Ok(()) } else { Err(DropReason::HmacInvalid) }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::srh;
    use crate::testing::*;

    fn keys() -> HmacKeys {
        let mut keys = HmacKeys::new();
        keys.set(1, HmacAlgorithm::Sha1, b"first secret").unwrap();
        keys.set(42, HmacAlgorithm::Sha256, b"second secret").unwrap();
        keys
    }

    fn signed(id: u32) -> Vec<u8> {
        let mut srh = srh::build(&[LAST, MIDDLE], 1, id, 0).unwrap();
        sign(&keys(), SOURCE, &mut srh).unwrap();
        srh
    }

    #[test]
    fn what_was_signed_verifies() {
        for id in [1, 42] {
            assert_eq!(verify(&keys(), SOURCE, &signed(id)), Ok(()));
        }
        assert_eq!(signed(1)[signed(1).len() - 12..], [0; 12], "SHA-1 is padded with zeros");
    }

    #[test]
    fn segments_left_may_change_on_the_way_nothing_else() {
        let mut srh = signed(42);
        srh[3] = 0;
        assert_eq!(verify(&keys(), SOURCE, &srh), Ok(()));
        for at in [8, 8 + 31, srh.len() - 1] {
            let mut changed = srh.clone();
            changed[at] ^= 1;
            assert_eq!(verify(&keys(), SOURCE, &changed), Err(DropReason::HmacInvalid), "byte {at}");
        }
        assert_eq!(verify(&keys(), OTHER, &srh), Err(DropReason::HmacInvalid));
    }

    #[test]
    fn an_unknown_key_is_not_trusted() {
        assert_eq!(verify(&HmacKeys::new(), SOURCE, &signed(42)), Err(DropReason::HmacInvalid));
        let mut unsigned = srh::build(&[LAST], 0, 7, 0).unwrap();
        assert_eq!(sign(&keys(), SOURCE, &mut unsigned), Err(DropReason::HmacKeyMissing));
    }

    #[test]
    fn without_the_tlv_or_its_flag_there_is_none() {
        let plain = srh::build(&[LAST], 0, 0, 0).unwrap();
        let mut unflagged = signed(42);
        unflagged[5] = 0;
        for srh in [plain, unflagged] {
            assert!(!is_carried(&srh));
            assert_eq!(verify(&keys(), SOURCE, &srh), Err(DropReason::HmacMissing));
        }
    }

    #[test]
    fn the_text_that_is_signed_is_linuxs() {
        let mut text = SOURCE.octets().to_vec();
        text.extend_from_slice(&[1, FLAG, 0, 0, 0, 42]);
        text.extend_from_slice(&LAST.octets());
        text.extend_from_slice(&MIDDLE.octets());
        let mut mac = Hmac::<Sha256>::new_from_slice(b"second secret").unwrap();
        mac.update(&text);
        assert_eq!(signed(42)[8 + 32 + 8..], mac.finalize().into_bytes()[..]);
    }

    #[test]
    fn keys_are_numbered_from_one_and_have_a_secret() {
        let mut keys = keys();
        assert_eq!(keys.set(0, HmacAlgorithm::Sha1, b"x"), Err(HmacKeyError::Zero));
        assert_eq!(keys.set(3, HmacAlgorithm::Sha1, b""), Err(HmacKeyError::Empty(3)));
        assert_eq!(keys.set(3, HmacAlgorithm::Sha1, &[1; 65]), Err(HmacKeyError::TooLong { id: 3, len: 65 }));
        assert_eq!(format!("{keys:?}"), "{1: Sha1, 42: Sha256}");
        assert!(keys.remove(1) && !keys.remove(1));
    }
}

//! Segment routing headers: checked as Linux checks them, and built.

use std::net::Ipv6Addr;

use wire::srh::{Header, LEN, TLV_HMAC, TYPE};

use crate::BuildError;
use crate::hmac;

/// Longest routing header, in units of 8 bytes, the first not counted.
const MAX_HDR_EXT_LEN: usize = 255;

/// True when `srh`, a whole routing header, is an SRH in the reduced or the full form (RFC 8754 §2, RFC 8986 §5.2) whose TLVs end with it.
///
/// Linux reads every TLV as type, length, value, Pad1 included: two bytes at least. A segments left of last entry + 1 is legal, as the reduced
/// form leaves the first segment out.
#[inline]
pub(crate) fn is_valid(srh: &[u8]) -> bool {
    let Some(header) = Header::read(srh) else { return false };
    let last_entry = usize::from(header.last_entry);
    if header.routing_type != TYPE || header.len() != srh.len() || usize::from(header.segments_left) > last_entry + 1 {
        return false;
    }
    if (last_entry + 1) * 2 > usize::from(header.hdr_ext_len) {
        return false;
    }
    let mut tlvs = srh.get(LEN + (last_entry + 1) * 16..).unwrap_or_default();
    while let [_type, len, ..] = tlvs {
        let Some(rest) = tlvs.get(2 + usize::from(*len)..) else { return false };
        tlvs = rest;
    }
    tlvs.is_empty()
}

/// An SRH with next header 0 and `entries` as its segment list: the last segment of the way first. `hmac` names the key of an HMAC TLV, 0 for
/// none; its value is left zero.
///
/// # Errors
/// No entry, or more than fit; `spare` of them are not the operator's and are left out of the message.
pub(crate) fn build(entries: &[Ipv6Addr], segments_left: usize, hmac: u32, spare: usize) -> Result<Vec<u8>, BuildError> {
    let tlv_len = if hmac == 0 { 0 } else { hmac::TLV_LEN };
    let most = (MAX_HDR_EXT_LEN - tlv_len / 8) / 2;
    if entries.len() <= spare {
        return Err(BuildError::NoSegments);
    }
    let too_many = BuildError::TooManySegments { given: entries.len() - spare, most: most - spare };
    if entries.len() > most {
        return Err(too_many);
    }
    let units = entries.len() * 2 + tlv_len / 8;
    let (Ok(hdr_ext_len), Ok(last_entry), Ok(segments_left)) = (units.try_into(), (entries.len() - 1).try_into(), segments_left.try_into())
    else {
        return Err(too_many);
    };
    let flags = if hmac == 0 { 0 } else { hmac::FLAG };
    let mut srh = vec![0, hdr_ext_len, TYPE, segments_left, last_entry, flags, 0, 0];
    entries.iter().for_each(|entry| srh.extend_from_slice(&entry.octets()));
    if hmac != 0 {
        srh.extend_from_slice(&[TLV_HMAC, hmac::TLV_LEN as u8 - 2, 0, 0]);
        srh.extend_from_slice(&hmac.to_be_bytes());
        srh.extend_from_slice(&[0; hmac::VALUE_LEN]);
    }
    Ok(srh)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::*;

    fn with(change: impl FnOnce(&mut Vec<u8>)) -> bool {
        let mut srh = build(&[LAST, MIDDLE, SID], 2, 0, 0).unwrap();
        change(&mut srh);
        is_valid(&srh)
    }

    /// Appends TLVs, a multiple of 8 bytes, and corrects the length.
    fn with_tlvs(tlvs: &[u8]) -> bool {
        with(|srh| {
            srh.extend_from_slice(tlvs);
            srh[1] += (tlvs.len() / 8) as u8;
        })
    }

    #[test]
    fn an_srh_that_was_built_is_valid() {
        for (entries, hmac) in [(1, 0), (2, 7), (127, 0), (125, 7)] {
            let segments = vec![LAST; entries];
            assert!(is_valid(&build(&segments, entries - 1, hmac, 0).unwrap()), "{entries} entries");
        }
    }

    #[test]
    fn fault_segments_left_not_bounded() {
        assert!(with(|srh| srh[3] = 3), "last entry + 1 is the reduced form");
        assert!(!with(|srh| srh[3] = 4));
        assert!(!with(|srh| srh[3] = 255));
    }

    #[test]
    fn fault_last_segment_taken_for_a_tlv() {
        // Entries are last entry + 1: a TLV begins after all of them, and the fourth address of a list of four is not one.
        let mut srh = build(&[LAST, MIDDLE, OTHER, SID], 3, 0, 0).unwrap();
        assert!(is_valid(&srh));
        srh[8 + 3 * 16 + 1] = 255;
        assert!(is_valid(&srh));
    }

    #[test]
    fn tlvs_are_walked_to_the_end() {
        assert!(with_tlvs(&[4, 6, 0, 0, 0, 0, 0, 0]), "PadN");
        assert!(with_tlvs(&[0; 8]), "Pad1 counts as type and length");
        assert!(with_tlvs(&[124, 2, 1, 2, 0, 0, 0, 0]), "an unknown one, then padding");
        assert!(!with_tlvs(&[124, 7, 0, 0, 0, 0, 0, 0]), "beyond the end");
        assert!(!with_tlvs(&[124, 5, 0, 0, 0, 0, 0, 4]), "one byte left");
    }

    #[test]
    fn lengths_that_contradict_each_other_are_refused() {
        assert!(!with(|srh| srh[1] = 0));
        assert!(!with(|srh| srh[1] += 1));
        assert!(!with(|srh| srh[4] = 3), "one entry more than there is room for");
        assert!(!with(|srh| srh[2] = 0), "routing type");
        assert!(!is_valid(&[]));
    }

    #[test]
    fn fault_more_segments_than_an_array_holds() {
        for entries in [17, 64, 126, 127] {
            assert_eq!(build(&vec![LAST; entries], entries - 1, 0, 0).unwrap().len(), 8 + 16 * entries);
        }
        assert_eq!(build(&[LAST; 128], 127, 0, 0), Err(BuildError::TooManySegments { given: 128, most: 127 }));
        assert_eq!(build(&[LAST; 126], 125, 9, 0), Err(BuildError::TooManySegments { given: 126, most: 125 }));
        assert_eq!(build(&[LAST; 128], 127, 0, 1), Err(BuildError::TooManySegments { given: 127, most: 126 }));
        assert_eq!(build(&[LAST], 1, 0, 1), Err(BuildError::NoSegments));
    }
}

//! Walking the chain of IPv6 extension headers (RFC 8200 §4), the way Linux's `ipv6_find_hdr` does.

use crate::{ipv6, proto, srh};

/// Where a header stands in a packet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Found {
    /// Offset from the front of the IPv6 header, bytes.
    pub offset: usize,
    /// The header's protocol number.
    pub proto: u8,
    /// Offset of the byte that names it as next header.
    pub named_at: usize,
    /// Fragment offset in bytes of the last fragment header passed, 0 when there was none.
    pub fragment_offset: usize,
}

/// Why a header was not found.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum NotFound {
    /// The chain ends without it.
    Absent,
    /// The packet ends within the chain.
    Truncated,
}

/// True of the headers that a chain may consist of, no-next-header included.
#[inline]
pub fn is_extension(number: u8) -> bool {
    matches!(number, proto::HOP_BY_HOP | proto::ROUTING | proto::FRAGMENT | proto::AH | proto::NONE | proto::DEST_OPTS)
}

/// Length in bytes of the extension header of protocol `number` whose length field is `len_field`.
#[inline]
pub fn header_len(number: u8, len_field: u8) -> usize {
    match number {
        proto::FRAGMENT => 8,
        proto::AH => (usize::from(len_field) + 2) * 4,
        _ => (usize::from(len_field) + 1) * 8,
    }
}

/// What to look for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Target {
    /// The first header of this protocol.
    Proto(u8),
    /// The first routing header with segments left.
    ActiveRouting,
    /// The first header that is no extension header (or no-next-header).
    Upper,
}

/// Looks through the chain of the packet at the front of `packet`, which starts with its IPv6 header.
///
/// A later fragment ends the chain: what follows its fragment header is payload, reported for [`Target::Upper`] only.
///
/// # Errors
/// [`NotFound::Truncated`] when the packet ends before a header that must be looked at, else [`NotFound::Absent`].
pub fn find(packet: &[u8], target: Target) -> Result<Found, NotFound> {
    let mut next = *packet.get(6).ok_or(NotFound::Truncated)?;
    let mut named_at = 6;
    let mut offset = ipv6::LEN;
    let mut fragment_offset = 0;
    loop {
        let wanted = match target {
            Target::Proto(number) => next == number,
            Target::ActiveRouting => next == proto::ROUTING,
            Target::Upper => false,
        };
        let here = Found { offset, proto: next, named_at, fragment_offset };
        if !is_extension(next) || next == proto::NONE {
            return if wanted || target == Target::Upper { Ok(here) } else { Err(NotFound::Absent) };
        }
        let (Some(&after), Some(&len_field)) = (packet.get(offset), packet.get(offset + 1)) else {
            return Err(NotFound::Truncated);
        };
        let mut found = wanted;
        if next == proto::ROUTING {
            let segments_left = srh_segments_left(packet, offset).ok_or(NotFound::Truncated)?;
            found &= target != Target::ActiveRouting || segments_left != 0;
        }
        if next == proto::FRAGMENT {
            let bytes = packet.get(offset + 2..offset + 4).ok_or(NotFound::Truncated)?;
            let at = usize::from(u16::from_be_bytes([bytes[0], bytes[1]]) & !7);
            if at != 0 {
                if target == Target::Upper {
                    return Ok(Found { offset: offset + 8, proto: after, named_at: offset, fragment_offset: at });
                }
                return if found { Ok(Found { fragment_offset: at, ..here }) } else { Err(NotFound::Absent) };
            }
            fragment_offset = at;
        }
        if found {
            return Ok(here);
        }
        named_at = offset;
        offset += header_len(next, len_field);
        next = after;
    }
}

fn srh_segments_left(packet: &[u8], offset: usize) -> Option<u8> {
    let _fixed: &[u8] = packet.get(offset..offset + 4)?;
    packet.get(offset + core::mem::offset_of!(srh::Header, segments_left)).copied()
}

#[cfg(test)]
mod tests {
    use super::*;
    extern crate std;
    use std::vec;
    use std::vec::Vec;

    fn packet(first: u8, headers: &[&[u8]]) -> Vec<u8> {
        let mut bytes = vec![0; ipv6::LEN];
        bytes[6] = first;
        headers.iter().for_each(|header| bytes.extend_from_slice(header));
        bytes
    }

    #[test]
    fn an_authentication_header_counts_in_words_of_four() {
        // known fault: AH length read with the rule of the other headers.
        let bytes = packet(proto::AH, &[&[proto::UDP, 4, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0], &[0; 12], &[1, 2, 3, 4, 5, 6, 7, 8]]);
        assert_eq!(find(&bytes, Target::Upper).map(|f| (f.proto, f.offset)), Ok((proto::UDP, 40 + 24)));
    }

    #[test]
    fn a_routing_header_without_segments_left_is_skipped_for_the_active_one() {
        let used = [proto::ROUTING, 0, 4, 0, 0, 0, 0, 0];
        let active = [proto::UDP, 0, 4, 1, 0, 0, 0, 0];
        let bytes = packet(proto::ROUTING, &[&used, &active]);
        assert_eq!(find(&bytes, Target::Proto(proto::ROUTING)).map(|f| f.offset), Ok(40));
        assert_eq!(find(&bytes, Target::ActiveRouting).map(|f| (f.offset, f.named_at)), Ok((48, 40)));
    }

    #[test]
    fn a_later_fragment_has_no_header_behind_it() {
        let bytes = packet(proto::FRAGMENT, &[&[proto::UDP, 0, 0, 8, 0, 0, 0, 1], &[0; 16]]);
        assert_eq!(find(&bytes, Target::Proto(proto::UDP)), Err(NotFound::Absent));
        assert_eq!(find(&bytes, Target::Upper).map(|f| f.fragment_offset), Ok(8));
    }

    #[test]
    fn a_chain_that_leaves_the_packet_is_truncated() {
        let bytes = packet(proto::HOP_BY_HOP, &[&[proto::DEST_OPTS, 4, 1, 4, 0, 0, 0, 0]]);
        assert_eq!(find(&bytes, Target::Upper), Err(NotFound::Truncated));
    }
}

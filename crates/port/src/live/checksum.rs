//! Checksums that a sender's stack left to hardware. Between virtual devices there is none, and the frame comes with the checksum half done.
//!
//! Half done means (Documentation/networking/checksum-offloads.rst): the field holds the sum of the pseudo header, not complemented; to finish it,
//! sum from the transport header to the end of the packet, complement, and store.

/// Finishes the checksum at `start + offset`, summing from `start` to the end of the frame. False, and nothing changed, when the frame has no
/// such place.
#[must_use]
pub(super) fn finish(frame: &mut [u8], start: usize, offset: usize) -> bool {
    let Some(part) = frame.get_mut(start..) else { return false };
    let sum = fold(sum(part));
    let Some(field) = offset.checked_add(2).and_then(|end| part.get_mut(offset..end)) else { return false };
    // Zero would mean "none" for UDP; all ones is the same number.
    let checksum = if sum == 0xffff { 0xffff } else { !sum };
    field.copy_from_slice(&checksum.to_be_bytes());
    true
}

/// Finishes the checksum of TCP or UDP directly in IPv4 or IPv6 when it is half done; true when it was. For devices that do not say.
///
/// A checksum that equals the pseudo header's sum is half done, or, for one frame of 65536, right or wrong by chance: a right one is left, and
/// a wrong one that is finished would have been dropped by its receiver.
pub(super) fn finish_partial(frame: &mut [u8]) -> bool {
    partial(frame).is_some_and(|(start, end, offset)| frame.get_mut(..end).is_some_and(|packet| finish(packet, start, offset)))
}

/// Where transport header and packet begin and end, and the checksum's offset, when it is half done.
fn partial(frame: &[u8]) -> Option<(usize, usize, usize)> {
    let packet = frame.get(14..)?;
    let (protocol, header, end, addresses) = match (frame.get(12..14)?, packet.first()? >> 4) {
        ([0x08, 0x00], 4) => {
            // A fragment has its checksum over all of the datagram.
            if word(packet, 6)? & 0x3fff != 0 {
                return None;
            }
            (*packet.get(9)?, usize::from(packet.first()? & 15) * 4, usize::from(word(packet, 2)?), packet.get(12..20)?)
        }
        ([0x86, 0xdd], 6) => (*packet.get(6)?, 40, 40 + usize::from(word(packet, 4)?), packet.get(8..40)?),
        _ => return None,
    };
    let offset = match protocol {
        6 => 16,
        17 => 6,
        _ => return None,
    };
    let transport = packet.get(header..end)?;
    let len = u32::try_from(transport.len()).ok()?;
    let pseudo = fold(sum(addresses) + u64::from(len >> 16) + u64::from(len & 0xffff) + u64::from(protocol));
    if word(transport, offset)? != pseudo || fold(u64::from(pseudo) + sum(transport)) == 0xffff {
        return None;
    }
    Some((14 + header, 14 + end, offset))
}

fn word(bytes: &[u8], at: usize) -> Option<u16> {
    bytes.get(at..at + 2)?.try_into().ok().map(u16::from_be_bytes)
}

/// The sum of the bytes as 16-bit words (RFC 1071), not folded. A last odd byte is the upper half of a word.
fn sum(bytes: &[u8]) -> u64 {
    let (words, rest) = bytes.as_chunks::<2>();
    words.iter().map(|&word| u64::from(u16::from_be_bytes(word))).sum::<u64>() + rest.first().map_or(0, |&byte| u64::from(byte) << 8)
}

fn fold(mut sum: u64) -> u16 {
    while sum >> 16 != 0 {
        sum = (sum & 0xffff) + (sum >> 16);
    }
    sum as u16
}

#[cfg(test)]
mod tests {
    use super::*;

    /// UDP in IPv4 or IPv6 with this payload and checksum.
    fn udp(v6: bool, payload: &[u8], checksum: u16) -> Vec<u8> {
        let len = (8 + payload.len()) as u16;
        let mut frame = vec![2; 12];
        if v6 {
            frame.extend([0x86, 0xdd, 0x60, 0, 0, 0]);
            frame.extend(len.to_be_bytes());
            frame.extend([17, 64]);
            frame.extend(0x2001_0db8_1111_2222_3333_4444_5555_6666_u128.to_be_bytes());
            frame.extend(0x2001_0db8_7777_8888_9999_aaaa_bbbb_cccd_u128.to_be_bytes());
        } else {
            frame.extend([0x08, 0x00, 0x45, 0]);
            frame.extend((20 + len).to_be_bytes());
            frame.extend([0, 1, 0, 0, 64, 17, 0, 0, 10, 1, 2, 3, 10, 4, 5, 6]);
        }
        frame.extend([0x12, 0x34, 0x56, 0x78]);
        frame.extend(len.to_be_bytes());
        frame.extend(checksum.to_be_bytes());
        frame.extend(payload);
        frame
    }

    fn transport(v6: bool) -> usize {
        14 + if v6 { 40 } else { 20 }
    }

    /// The sum of the pseudo header of [`udp`].
    fn pseudo(v6: bool, payload: &[u8]) -> u16 {
        let frame = udp(v6, payload, 0);
        let addresses = if v6 { &frame[22..54] } else { &frame[26..34] };
        fold(sum(addresses) + 17 + 8 + payload.len() as u64)
    }

    fn is_right(v6: bool, frame: &[u8], payload: &[u8]) -> bool {
        fold(u64::from(pseudo(v6, payload)) + sum(&frame[transport(v6)..transport(v6) + 8 + payload.len()])) == 0xffff
    }

    #[test]
    fn a_checksum_half_done_is_finished() {
        for v6 in [false, true] {
            for payload in [&b"odd"[..], b"even", b""] {
                let mut frame = udp(v6, payload, pseudo(v6, payload));
                // What pads a short frame is no part of the packet.
                frame.extend([0xa5; 9]);
                assert!(finish_partial(&mut frame));
                assert!(is_right(v6, &frame, payload));
                assert!(!finish_partial(&mut frame), "it is finished once");
            }
        }
    }

    #[test]
    fn where_the_place_is_known_nothing_is_guessed() {
        let mut frame = udp(true, b"payload", pseudo(true, b"payload"));
        assert!(finish(&mut frame, transport(true), 6));
        assert!(is_right(true, &frame, b"payload"));
        assert!(!finish(&mut frame, 1000, 6) && !finish(&mut frame, 60, usize::MAX));
    }

    #[test]
    fn other_checksums_are_left_alone() {
        for v6 in [false, true] {
            for checksum in [0, 0x1234, !pseudo(v6, b"x")] {
                let mut frame = udp(v6, b"x", checksum);
                let before = frame.clone();
                assert!(!finish_partial(&mut frame));
                assert_eq!(frame, before);
            }
        }
    }

    #[test]
    fn bytes_cut_off_anywhere_are_no_packet() {
        for v6 in [false, true] {
            let frame = udp(v6, b"payload", pseudo(v6, b"payload"));
            assert!((0..frame.len()).all(|len| !finish_partial(&mut frame[..len].to_vec())));
        }
    }

    #[test]
    fn a_fragment_is_left_alone() {
        let mut frame = udp(false, b"x", pseudo(false, b"x"));
        frame[20] = 0x20;
        assert!(!finish_partial(&mut frame));
    }
}

//! Splitting an IPv4 packet that is longer than the MTU of its way out (RFC 791 §2.3), byte for byte as Linux's `ip_do_fragment`.

use port::{Buf, Pool};
use route::DropReason;
use wire::ipv4;

use crate::options4;

/// Splits `packet`, which starts with its IPv4 header, into fragments of at most `mtu` bytes, header included, and gives each to `emit` in
/// order. Returns how many there were.
///
/// DF is the caller's to obey: the fragments are sent without it (and without the reserved bit). The first keeps the options, the later ones
/// those that are to be copied; a packet that is a later fragment itself was treated so before. When `packet` is a fragment with more to
/// follow, all its pieces have more to follow. Identification, TOS and TTL are kept, checksums set.
///
/// # Errors
/// [`DropReason::TooBig`] when the MTU leaves no room for 8 bytes of payload, [`DropReason::BadHeaderLength`] when `packet` does not hold
/// the header it announces. Nothing was emitted then.
pub fn fragment(packet: &[u8], mtu: usize, pool: &mut Pool, mut emit: impl FnMut(Buf)) -> Result<usize, DropReason> {
    let original = *ipv4::Header::read(packet).ok_or(DropReason::HeaderTruncated)?;
    let header_len = original.header_len();
    let packet = packet.get(..original.total_len()).unwrap_or(packet);
    let (header, payload) = packet.split_at_checked(header_len).filter(|_| header_len >= ipv4::LEN).ok_or(DropReason::BadHeaderLength)?;
    let room = mtu.saturating_sub(header_len);
    let aligned = room & !7;
    if aligned == 0 {
        return Err(DropReason::TooBig);
    }
    let start = original.flags_offset() & ipv4::OFFSET;
    let more_follow = original.flags_offset() & ipv4::MF;

    let mut later_header = [0; 60];
    let later_header = later_header.get_mut(..header_len).ok_or(DropReason::BadHeaderLength)?;
    later_header.copy_from_slice(header);
    if start == 0 {
        options4::keep_copied(later_header);
    }

    let mut count = 0;
    let mut at = 0;
    loop {
        let rest = payload.get(at..).unwrap_or_default();
        let is_last = rest.len() <= room;
        let piece = if is_last { rest } else { rest.get(..aligned).unwrap_or_default() };
        let mut buf = pool.take(header_len + piece.len());
        buf.append(if at == 0 { header } else { later_header });
        buf.append(piece);
        if let Some(header) = ipv4::Header::read_mut(&mut buf) {
            header.set_total_len((header_len + piece.len()) as u16);
            let offset = start.wrapping_add((at / 8) as u16) & ipv4::OFFSET;
            header.set_flags_offset(offset | if is_last { more_follow } else { ipv4::MF });
        }
        ipv4::fill_checksum(&mut buf);
        emit(buf);
        count += 1;
        if is_last {
            return Ok(count);
        }
        at += piece.len();
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::reassembly::golden::packets;
    use testkit::frame::{Ipv4, Udp};

    fn split(packet: &[u8], mtu: usize) -> Result<Vec<Vec<u8>>, DropReason> {
        let mut fragments = Vec::new();
        fragment(packet, mtu, &mut Pool::default(), |buf| fragments.push(buf.to_vec()))?;
        Ok(fragments)
    }

    /// What Linux put out for each packet of `case`, cut in more than one piece or not, without the rest.
    fn compare(case: &str, file: &str, mtu: usize, numbers: std::ops::RangeInclusive<u64>) {
        let answers = packets(case, file);
        for (number, mut packet) in packets(case, "in-e0.pcap") {
            if !numbers.contains(&number) {
                continue;
            }
            let linux: Vec<&Vec<u8>> = answers.iter().filter(|(cause, _)| *cause == number).map(|(_, answer)| answer).collect();
            // As the router has it by then: one hop less, the route recorded.
            ipv4::Header::read_mut(&mut packet).unwrap().decrement_ttl();
            if packet[20..23] == [7, 7, 4] && packet[0] > 0x45 {
                packet[22..27].copy_from_slice(&[8, 10, 0, 1, 1]);
            }
            assert_eq!(split(&packet, mtu).unwrap().iter().collect::<Vec<_>>(), linux, "{case} frame {number}");
        }
    }

    #[test]
    fn packets_are_split_as_linux_splits_them() {
        compare("frag/forward", "out-e1.pcap", 1500, 6..=11);
        compare("frag/forward_mtu_1004", "out-e1.pcap", 1004, 6..=11);
        compare("ip4_forward/all", "out-e1.pcap", 1500, 39..=40);
        compare("ip4_forward/all", "out-e1.pcap", 1300, 42..=42);
    }

    #[test]
    fn the_options_of_a_later_fragment_are_left_alone() {
        let packet = (Ipv4::test().fragment(800, true).options(&[7, 3, 4, 0]) / &[5; 100]).bytes();
        let pieces = split(&packet, 68).unwrap();
        assert_eq!(pieces.len(), 3);
        for (i, piece) in pieces.iter().enumerate() {
            assert_eq!(piece[20..24], [7, 3, 4, 0]);
            let flags_offset = ipv4::Header::read(piece).unwrap().flags_offset();
            assert_eq!(flags_offset, ipv4::MF | (100 + 5 * i) as u16, "more follow behind the last, too");
        }
    }

    #[test]
    fn fragments_go_without_df_and_the_reserved_bit() {
        let mut packet = (Ipv4::test().dont_fragment() / Udp::new(1, 2) / &[5; 100]).bytes();
        packet[6] |= 0x80;
        let flags: Vec<u8> = split(&packet, 100).unwrap().iter().map(|piece| piece[6]).collect();
        assert_eq!(flags, [0x20, 0]);
    }

    #[test]
    fn an_mtu_without_room_for_8_bytes_splits_nothing() {
        let packet = (Ipv4::test() / Udp::new(1, 2) / &[5; 100]).bytes();
        assert_eq!(split(&packet, 27), Err(DropReason::TooBig));
        assert_eq!(split(&packet, 28).unwrap().len(), 14);
    }

    #[test]
    fn packets_of_any_bytes_are_survived() {
        use proptest::prelude::*;
        proptest!(|(bytes in proptest::collection::vec(any::<u8>(), 0..200), mtu in 0usize..300)| {
            for piece in split(&bytes, mtu).unwrap_or_default() {
                prop_assert!(piece.len() <= mtu);
            }
        });
    }
}

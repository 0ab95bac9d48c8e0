//! Splitting an IPv6 packet that the router itself made and that is longer than the MTU of its way out (RFC 8200 §4.5). Packets in transit are
//! never split.

use port::{Buf, Pool};
use route::DropReason;
use wire::{frag, ipv6, proto};
use zerocopy::IntoBytes;

/// Splits `packet`, which starts with its IPv6 header, into fragments of at most `mtu` bytes, headers included, all with identification `id`,
/// and gives each to `emit` in order. Returns how many there were.
///
/// Only the IPv6 header is repeated in each: the packet has no hop-by-hop or routing header, which would have to be, too.
///
/// # Errors
/// [`DropReason::TooBig`] when the MTU leaves no room for 8 bytes of payload, [`DropReason::HeaderTruncated`] when `packet` holds no header.
/// Nothing was emitted then.
pub fn fragment(packet: &[u8], mtu: usize, id: u32, pool: &mut Pool, mut emit: impl FnMut(Buf)) -> Result<usize, DropReason> {
    let original = *ipv6::Header::read(packet).ok_or(DropReason::HeaderTruncated)?;
    let packet = packet.get(..ipv6::LEN + original.payload_len()).unwrap_or(packet);
    let payload = packet.get(ipv6::LEN..).ok_or(DropReason::HeaderTruncated)?;
    let room = mtu.saturating_sub(ipv6::LEN + frag::LEN).min(usize::from(u16::MAX) - frag::LEN);
    let aligned = room & !7;
    if aligned == 0 {
        return Err(DropReason::TooBig);
    }
    let mut count = 0;
    let mut at = 0;
    loop {
        let rest = payload.get(at..).unwrap_or_default();
        let is_last = rest.len() <= room;
        let piece = if is_last { rest } else { rest.get(..aligned).unwrap_or_default() };
        let mut header = original;
        header.next_header = proto::FRAGMENT;
        header.set_payload_len((frag::LEN + piece.len()) as u16);
        let offset_more = (at & 0xfff8) as u16 | u16::from(!is_last);
        let fragment = frag::Header { next_header: original.next_header, reserved: 0, offset_more: offset_more.into(), id: id.into() };
        let mut buf = pool.take(ipv6::LEN + frag::LEN + piece.len());
        buf.append(header.as_bytes());
        buf.append(fragment.as_bytes());
        buf.append(piece);
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

    fn split(packet: &[u8], mtu: usize, id: u32) -> Result<Vec<Vec<u8>>, DropReason> {
        let mut fragments = Vec::new();
        fragment(packet, mtu, id, &mut Pool::default(), |buf| fragments.push(buf.to_vec()))?;
        Ok(fragments)
    }

    #[test]
    fn answers_are_split_as_linux_splits_them() {
        let answers = packets("frag/local_answers_over_mtu", "out-e1.pcap");
        for number in [3, 4] {
            let linux: Vec<Vec<u8>> = answers.iter().filter(|(cause, _)| *cause == number).map(|(_, answer)| answer.clone()).collect();
            // The reply before it was split: the pieces behind the first one's header, its next header put back.
            let mut packet = linux[0][..40].to_vec();
            linux.iter().for_each(|piece| packet.extend(&piece[48..]));
            packet[6] = linux[0][40];
            let payload_len = packet.len() as u16 - 40;
            packet[4..6].copy_from_slice(&payload_len.to_be_bytes());
            let id = u32::from_be_bytes(linux[0][44..48].try_into().unwrap());
            assert_eq!(split(&packet, 1280, id).unwrap(), linux, "frame {number}");
        }
    }

    #[test]
    fn an_mtu_without_room_for_8_bytes_splits_nothing() {
        let packet = (testkit::frame::Ipv6::test() / testkit::frame::Udp::new(1, 2) / &[5; 100]).bytes();
        assert_eq!(split(&packet, 55, 1), Err(DropReason::TooBig));
        assert_eq!(split(&packet, 56, 1).unwrap().len(), 14);
    }

    #[test]
    fn packets_of_any_bytes_are_survived() {
        use proptest::prelude::*;
        proptest!(|(bytes in proptest::collection::vec(any::<u8>(), 0..200), mtu in 0usize..300)| {
            for piece in split(&bytes, mtu, 1).unwrap_or_default() {
                prop_assert!(piece.len() <= mtu);
            }
        });
    }
}

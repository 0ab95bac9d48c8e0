//! Reassembly of IPv4 datagrams.

use std::collections::HashMap;
use std::net::Ipv4Addr;

use port::Pool;
use route::DropReason;
use wire::ipv4;

use super::datagram::{Datagram, Fragment};
use super::table::{Offered, Table};
use super::{Arrival, Expired, Fate, Outcome};

/// How long a datagram waits for its fragments, nanoseconds (net.ipv4.ipfrag_time).
const LIFETIME: u64 = 30_000_000_000;
/// Fragments of other datagrams of the same source that may come between two of one datagram (net.ipv4.ipfrag_max_dist). After more, the
/// 16-bit identification may have come round, and the two belong to different datagrams.
const MAX_DISTANCE: u32 = 64;

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
struct Key {
    source: Source,
    dst: Ipv4Addr,
    id: u16,
    proto: u8,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
struct Source {
    vrf: u32,
    src: Ipv4Addr,
}

/// What a source has sent.
#[derive(Debug, Default)]
struct Sent {
    fragments: u32,
    /// Datagrams that wait now. With the last one the entry goes.
    waiting: usize,
}

/// The IPv4 datagrams that wait for fragments.
#[derive(Debug)]
pub struct Reassembler4 {
    table: Table<Key>,
    sources: HashMap<Source, Sent>,
}

impl Default for Reassembler4 {
    fn default() -> Reassembler4 {
        Reassembler4 { table: Table::new(LIFETIME), sources: HashMap::new() }
    }
}

impl Reassembler4 {
    /// Takes a packet for the router that may be a fragment; it starts with its IPv4 header and ends where that says. Linux's `ip_defrag`.
    ///
    /// A fragment that more should follow and that is no multiple of 8 bytes long loses its last bytes. The whole carries options,
    /// identification and TTL of the first fragment.
    pub fn input(&mut self, packet: &[u8], arrival: Arrival, pool: &mut Pool) -> Outcome {
        let Some(header) = ipv4::Header::read(packet) else { return Outcome::dropped(DropReason::HeaderTruncated, 0) };
        if !header.is_fragment() {
            return Outcome::new(Fate::Whole);
        }
        let Some((front, payload)) = packet.split_at_checked(header.header_len()).filter(|(front, _)| front.len() >= ipv4::LEN) else {
            return Outcome::dropped(DropReason::BadHeaderLength, 0);
        };
        let more = header.flags_offset() & ipv4::MF != 0;
        let fragment = Fragment {
            header: front,
            payload: payload.get(..payload.len() & !7).filter(|_| more).unwrap_or(payload),
            offset: usize::from(header.flags_offset() & ipv4::OFFSET) * 8,
            more,
            df: header.flags_offset() & ipv4::DF != 0,
            ecn: header.tos & 3,
            iif: arrival.iif,
            number: arrival.number,
            named_at: 0,
            options: arrival.options,
        };
        let source = Source { vrf: arrival.vrf, src: header.src() };
        let key = Key { source, dst: header.dst(), id: header.id(), proto: header.proto };
        let Some(lost) = self.find(key, arrival.now) else { return Outcome::dropped(DropReason::FragmentLimit, 0) };
        let outcome = match self.table.offer(key, &fragment) {
            Offered::Waiting => Outcome { lost, lost_reason: DropReason::FragmentTimeout, ..Outcome::new(Fate::Waiting) },
            Offered::Refused(reason, others) => Outcome::dropped(reason, others + lost),
            Offered::Complete(datagram) => join(&datagram, pool),
        };
        if !self.table.contains(&key) {
            self.leave(source);
        }
        outcome
    }

    /// The next datagram that is to be let go by now, if any: ask until there is none, before the next [`Reassembler4::input`].
    pub fn expire(&mut self, now: u64, pool: &mut Pool) -> Option<Expired> {
        let (key, datagram) = self.table.expire(now)?;
        self.leave(key.source);
        Some(Expired::new(key.source.vrf, &datagram, pool))
    }

    /// When the next datagram is to be let go, nanoseconds.
    pub fn next_deadline(&self) -> Option<u64> {
        self.table.next_deadline()
    }

    /// Sees to it that the datagram of `key` waits. Returns how many fragments of it were let go because they are too old; None when there is
    /// no memory left.
    fn find(&mut self, key: Key, now: u64) -> Option<usize> {
        let is_new = !self.table.contains(&key);
        let datagram = self.table.find(key, now)?;
        let sent = self.sources.entry(key.source).or_default();
        sent.waiting += usize::from(is_new);
        sent.fragments = sent.fragments.wrapping_add(1);
        let distance = sent.fragments.wrapping_sub(std::mem::replace(&mut datagram.ticket, sent.fragments));
        let is_too_far = datagram.fragments() > 0 && distance > MAX_DISTANCE;
        Some(if is_too_far { self.table.restart(key, now) } else { 0 })
    }

    fn leave(&mut self, source: Source) {
        if let Some(sent) = self.sources.get_mut(&source) {
            sent.waiting = sent.waiting.saturating_sub(1);
            if sent.waiting == 0 {
                self.sources.remove(&source);
            }
        }
    }
}

fn join(datagram: &Datagram, pool: &mut Pool) -> Outcome {
    let header_len = datagram.header().len();
    let total_len = u16::try_from(header_len + datagram.len());
    let (Ok(total_len), Some(ecn)) = (total_len, datagram.ecn()) else {
        return Outcome::dropped(DropReason::FragmentBad, datagram.fragments().saturating_sub(1));
    };
    let mut packet = datagram.join(datagram.header(), pool);
    let mut proto = 0;
    if let Some(header) = ipv4::Header::read_mut(&mut packet) {
        header.set_total_len(total_len);
        header.set_flags_offset(if datagram.keeps_df() { ipv4::DF } else { 0 });
        header.tos |= ecn;
        proto = header.proto;
    }
    ipv4::fill_checksum(&mut packet);
    Outcome::new(Fate::Complete { packet, at: header_len, proto, options: datagram.options })
}

#[cfg(test)]
mod tests {
    use super::super::golden::packets;
    use super::*;
    use port::Buf;
    use testkit::frame::Ipv4 as Ip;
    use wire::checksum::Sum;

    const FROM: Ipv4Addr = Ipv4Addr::new(10, 81, 2, 33);
    const TO: Ipv4Addr = Ipv4Addr::new(172, 29, 7, 91);
    const ARRIVAL: Arrival = Arrival { vrf: 0, iif: 2, number: 0, now: 0, options: None };
    const PAYLOAD: [u8; 64] = *b"0123456789abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ+-";

    fn input(fragments: &mut Reassembler4, packet: &[u8]) -> Outcome {
        fragments.input(packet, ARRIVAL, &mut Pool::default())
    }

    fn piece(id: u16, offset: usize, more: bool) -> Ip {
        Ip::new(FROM, TO).protocol(17).id(id).fragment(offset, more)
    }

    /// Bytes `offset` to `end` of [`PAYLOAD`] as a fragment of datagram `id`.
    fn fragment(id: u16, offset: usize, end: usize) -> Vec<u8> {
        (piece(id, offset, end < PAYLOAD.len()) / &PAYLOAD[offset..end]).bytes()
    }

    fn complete(outcome: Outcome) -> Option<Buf> {
        match outcome.fate {
            Fate::Complete { packet, at, .. } => {
                let header = *ipv4::Header::read(&packet).unwrap();
                assert_eq!((header.total_len(), header.header_len()), (packet.len(), at));
                assert!(Sum::default().bytes(&packet[..at]).is_valid());
                Some(packet)
            }
            _ => None,
        }
    }

    #[test]
    fn every_fragment_has_the_fate_that_linux_gives_it() {
        let mut fragments = Reassembler4::default();
        let answers = packets("frag/reassembly_local_v4", "out-e1.pcap");
        for (number, packet) in packets("frag/reassembly_local_v4", "in-e1.pcap") {
            let len = ipv4::Header::read(&packet).unwrap().total_len();
            let outcome = input(&mut fragments, &packet[..len]);
            let whole = match outcome.fate {
                Fate::Whole => Some(packet[..len].to_vec()),
                _ => complete(outcome).map(|packet| packet.to_vec()),
            };
            let answer = answers.iter().find(|(cause, _)| *cause == number).map(|(_, answer)| answer);
            assert_eq!(whole.is_some(), answer.is_some(), "frame {number}");
            if let (Some(request), Some(reply)) = (whole, answer) {
                assert_eq!(request[28..], reply[28..], "payload of frame {number}");
                assert_eq!((request.len(), request[1], request[6..8].to_vec()), (reply.len(), reply[1], vec![0, 0]), "frame {number}");
                assert!(Sum::default().bytes(&request[20..]).is_valid());
            }
        }
    }

    #[test]
    fn options_come_from_the_first_fragment() {
        let mut fragments = Reassembler4::default();
        let last = (piece(7, 32, false).options(&[1, 1, 1, 1]) / &PAYLOAD[32..]).bytes();
        let first = (piece(7, 0, true).options(&[7, 7, 4, 0, 0, 0, 0, 0x88, 4, 0, 1, 0]) / &PAYLOAD[..32]).bytes();
        assert!(complete(input(&mut fragments, &last)).is_none());
        let whole = complete(input(&mut fragments, &first)).unwrap();
        assert_eq!(whole[20..32], [7, 7, 4, 0, 0, 0, 0, 0x88, 4, 0, 1, 0]);
        assert_eq!(whole[32..], PAYLOAD);
    }

    #[test]
    fn the_whole_keeps_df_when_the_largest_fragment_had_it() {
        for (df_first, kept) in [(true, ipv4::DF), (false, 0)] {
            let mut fragments = Reassembler4::default();
            let small = piece(7, 0, true);
            let large = piece(7, 16, false);
            let (small, large) = if df_first { (small, large.dont_fragment()) } else { (small.dont_fragment(), large) };
            input(&mut fragments, &(small / &PAYLOAD[..16]).bytes());
            let whole = complete(input(&mut fragments, &(large / &PAYLOAD[16..]).bytes())).unwrap();
            assert_eq!(ipv4::Header::read(&whole).unwrap().flags_offset(), kept);
        }
    }

    #[test]
    fn a_fragment_that_is_no_multiple_of_8_loses_its_end() {
        let mut fragments = Reassembler4::default();
        input(&mut fragments, &fragment(7, 0, 37));
        assert_eq!(complete(input(&mut fragments, &fragment(7, 32, 64))).unwrap()[20..], PAYLOAD);
    }

    #[test]
    fn a_datagram_that_would_be_too_long_is_dropped() {
        let mut fragments = Reassembler4::default();
        let chunk = vec![7; 32_768];
        input(&mut fragments, &(piece(7, 0, true) / &chunk[..]).bytes());
        let outcome = input(&mut fragments, &(piece(7, 32_768, false) / &chunk[..32_748]).bytes());
        assert!(matches!(outcome, Outcome { fate: Fate::Dropped(DropReason::FragmentBad), lost: 1, .. }), "{outcome:?}");
    }

    #[test]
    fn after_thirty_seconds_the_first_fragment_is_given_back() {
        let mut fragments = Reassembler4::default();
        let (first, other) = (fragment(7, 0, 32), fragment(8, 32, 64));
        fragments.input(&first, Arrival { number: 70, ..ARRIVAL }, &mut Pool::default());
        fragments.input(&fragment(7, 40, 48), Arrival { iif: 5, number: 71, now: LIFETIME - 1, ..ARRIVAL }, &mut Pool::default());
        input(&mut fragments, &other);
        let mut pool = Pool::default();
        assert_eq!(fragments.next_deadline(), Some(LIFETIME));
        assert!(fragments.expire(LIFETIME - 1, &mut pool).is_none());
        let expired = fragments.expire(LIFETIME, &mut pool).unwrap();
        assert_eq!((expired.first.as_deref(), expired.fragments, expired.iif, expired.number), (Some(&first[..]), 2, 5, 70));
        let expired = fragments.expire(LIFETIME, &mut pool).unwrap();
        assert_eq!((expired.first.as_deref(), expired.fragments), (None, 1));
        assert!(fragments.expire(u64::MAX, &mut pool).is_none());
        assert!(fragments.sources.is_empty());
    }

    #[test]
    fn fragments_too_far_apart_are_not_put_together() {
        let after = |between: u16| {
            let mut fragments = Reassembler4::default();
            input(&mut fragments, &fragment(7, 0, 32));
            for id in 100..100 + between {
                input(&mut fragments, &fragment(id, 0, 32));
            }
            input(&mut fragments, &fragment(7, 32, 64))
        };
        assert!(complete(after(63)).is_some());
        let late = after(64);
        assert!(matches!(late, Outcome { fate: Fate::Waiting, lost: 1, lost_reason: DropReason::FragmentTimeout }), "{late:?}");
    }

    #[test]
    fn fragments_of_two_vrfs_do_not_meet() {
        let mut fragments = Reassembler4::default();
        input(&mut fragments, &fragment(7, 0, 32));
        let outcome = fragments.input(&fragment(7, 32, 64), Arrival { vrf: 9, ..ARRIVAL }, &mut Pool::default());
        assert!(matches!(outcome.fate, Fate::Waiting));
    }

    #[test]
    fn what_was_split_comes_together_in_any_order() {
        use proptest::prelude::*;
        let orders = (0usize..4000, 60usize..1500, any::<u64>());
        proptest!(|((len, mtu, seed) in orders)| {
            let payload: Vec<u8> = (0..len).map(|i| (i * 7) as u8).collect();
            let packet = (Ip::new(FROM, TO).protocol(17).id(7).options(&[7, 7, 4, 0, 0, 0, 0]) / &payload[..]).bytes();
            let mut pieces = Vec::new();
            crate::fragment4::fragment(&packet, mtu, &mut Pool::default(), |buf| pieces.push(buf)).unwrap();
            pieces.sort_by_key(|piece| u64::from(ipv4::Header::read(piece).unwrap().flags_offset()).wrapping_mul(seed | 1));
            let mut fragments = Reassembler4::default();
            let count = pieces.len();
            for (i, piece) in pieces.iter().enumerate() {
                let outcome = fragments.input(piece, ARRIVAL, &mut Pool::default());
                match outcome.fate {
                    Fate::Whole => prop_assert_eq!(count, 1),
                    Fate::Complete { packet: whole, .. } => {
                        prop_assert_eq!(i, count - 1);
                        prop_assert_eq!(&whole[..], &packet[..]);
                    }
                    _ => prop_assert!(i < count - 1 && outcome.lost == 0),
                }
            }
            prop_assert!(fragments.sources.is_empty());
        });
    }

    #[test]
    fn packets_of_any_bytes_are_survived() {
        use proptest::prelude::*;
        let bytes = proptest::collection::vec(any::<u8>(), 0..80);
        proptest!(|(packets in proptest::collection::vec((bytes, 0u8..4), 0..40))| {
            let mut fragments = Reassembler4::default();
            for (mut packet, offset) in packets {
                // Often the same datagram, small offsets.
                if packet.len() >= 20 {
                    let more = packet[6] & 0x20;
                    packet[4..8].copy_from_slice(&[0, 0, more, offset]);
                    packet[9..20].fill(7);
                    packet[0] = 0x45 | packet[0] & 2;
                }
                input(&mut fragments, &packet);
            }
            while fragments.expire(u64::MAX, &mut Pool::default()).is_some() {}
            prop_assert!(fragments.sources.is_empty());
        });
    }
}

//! Classic pcap files: one header, then records (draft-ietf-opsawg-pcap).
//!
//! ```text
//! file    magic 4 | major 2 | minor 2 | reserved 8 | snap length 4 | link type 4
//! record  seconds 4 | fraction 4 | bytes here 4 | bytes on the wire 4 | (8 more in the modified format) | the bytes
//! ```

use super::source::Source;
use super::{Cause, LinkType, MAX_RECORD, Order, Record};
use crate::Time;

const FILE_HEADER: usize = 24;
const RECORD_HEADER: usize = 16;

/// Bits of the link type field that are neither the type nor about the frame check sequence.
const RESERVED: u32 = 0x03ff_0000;

/// A classic pcap file behind its header.
pub(super) struct Pcap {
    order: Order,
    /// Nanoseconds in one unit of the fraction.
    unit: u64,
    record_header: usize,
    link: LinkType,
}

impl Pcap {
    /// The order of bytes, unit of the fraction (ns) and record header (bytes) that a magic number stands for.
    fn of_magic(magic: [u8; 4]) -> Option<(Order, u64, usize)> {
        let (order, value) = match magic[0] {
            0xa1 => (Order::Big, u32::from_be_bytes(magic)),
            _ => (Order::Little, u32::from_le_bytes(magic)),
        };
        match value {
            0xa1b2_c3d4 => Some((order, 1_000, RECORD_HEADER)),
            0xa1b2_3c4d => Some((order, 1, RECORD_HEADER)),
            0xa1b2_cd34 => Some((order, 1_000, RECORD_HEADER + 8)),
            _ => None,
        }
    }

    /// Reads the file header. None, and nothing taken, when `magic` is not that of a pcap file.
    pub(super) fn open(source: &mut Source, magic: [u8; 4]) -> Result<Option<Pcap>, Cause> {
        let Some((order, unit, record_header)) = Pcap::of_magic(magic) else { return Ok(None) };
        let header = source.look(FILE_HEADER, "the file header")?;
        let (major, minor) = (order.u16(header, 4), order.u16(header, 6));
        if (major, minor) != (2, 4) {
            return Err(Cause::Version { format: "pcap", major, minor });
        }
        let link_field = order.u32(header, 20);
        if link_field & RESERVED != 0 {
            return Err(Cause::ReservedBits(link_field));
        }
        let link = LinkType::of_number(link_field & 0xffff)?;
        source.take(FILE_HEADER);
        Ok(Some(Pcap { order, unit, record_header, link }))
    }

    /// The next record, whose bytes are still to be taken from `source`. None at the end.
    pub(super) fn next(&mut self, source: &mut Source) -> Result<Option<Record>, Cause> {
        if source.peek(1)?.is_empty() {
            return Ok(None);
        }
        let header = source.look(self.record_header, "a record header")?;
        let seconds = self.order.u32(header, 0);
        let fraction = self.order.u32(header, 4);
        let len = self.order.u32(header, 8) as usize;
        let wire_len = self.order.u32(header, 12) as usize;
        if len > MAX_RECORD {
            return Err(Cause::Length { what: "a record", len: len as u64 });
        }
        let whole = self.record_header + len;
        source.look(whole, "a record")?;
        source.take(self.record_header);
        let time = Time::from_parts(u64::from(seconds), u64::from(fraction) * self.unit);
        Ok(Some(Record { time, len, wire_len, link: self.link }))
    }
}

#[cfg(test)]
mod tests {
    use super::super::testing::{messages, read};
    use super::*;
    use crate::Link;

    /// A file whose numbers stand in `order`.
    fn file(order: Order, magic: u32, link: u32, records: &[(u32, u32, &[u8], u32)]) -> Vec<u8> {
        let u32 = |value: u32| match order {
            Order::Little => value.to_le_bytes(),
            Order::Big => value.to_be_bytes(),
        };
        let version = match order {
            Order::Little => [2, 0, 4, 0],
            Order::Big => [0, 2, 0, 4],
        };
        let mut file = [u32(magic), version, [0; 4], [0; 4], u32(65_535), u32(link)].concat();
        for (seconds, fraction, bytes, wire_len) in records {
            file.extend([u32(*seconds), u32(*fraction), u32(bytes.len() as u32), u32(*wire_len)].concat());
            file.extend(if magic == 0xa1b2_cd34 { &[0; 8][..] } else { &[] });
            file.extend(*bytes);
        }
        file
    }

    #[test]
    fn every_magic_is_read_in_both_byte_orders() {
        for order in [Order::Little, Order::Big] {
            for (magic, nanos) in [(0xa1b2_c3d4, 7_000), (0xa1b2_3c4d, 7), (0xa1b2_cd34, 7_000)] {
                let (packets, error) = read(file(order, magic, 1, &[(u32::MAX, 7, &[1, 2, 3], 1500), (0, 0, &[], 0)]));
                assert!(error.is_none(), "{error:?}");
                assert_eq!(packets.len(), 2);
                assert_eq!(packets[0].time, Time::from_parts(u64::from(u32::MAX), nanos));
                assert_eq!((&packets[0].buf[..], packets[0].wire_len, packets[0].link), (&[1, 2, 3][..], 1500, Link::Ethernet));
                assert!(packets[1].buf.is_empty());
            }
        }
    }

    #[test]
    fn link_types_say_what_a_packet_begins_with() {
        for (number, link, begins) in [
            (1, Link::Ethernet, 0),
            (0x3000_0001, Link::Ethernet, 0),
            (101, Link::Ip, 0),
            (12, Link::Ip, 0),
            (14, Link::Ip, 0),
            (228, Link::Ip4, 0),
            (229, Link::Ip6, 0),
            (0, Link::Ip, 4),
            (108, Link::Ip, 4),
        ] {
            let (packets, _) = read(file(Order::Little, 0xa1b2_c3d4, number, &[(0, 0, &[0, 1, 2, 3, 4], 5), (0, 0, &[9, 9], 1)]));
            assert_eq!((packets[0].link, packets[0].buf[0], packets[0].wire_len), (link, begins, 5 - usize::from(begins)), "{number}");
            assert_eq!(packets[1].buf.len(), if begins == 0 { 2 } else { 0 });
        }
    }

    #[test]
    fn a_damaged_file_is_read_up_to_the_damage() {
        let good = file(Order::Little, 0xa1b2_c3d4, 1, &[(0, 0, &[1; 10], 10), (1, 0, &[2; 10], 10)]);
        for (len, packets, message) in [
            (0, 0, "it is empty: not even a file header"),
            (3, 0, "the file header of 24 bytes has only 3"),
            (23, 0, "the file header of 24 bytes has only 23"),
            (25, 0, "a record header of 16 bytes has only 1 (at byte 24, before the first packet)"),
            (49, 0, "a record of 26 bytes has only 25"),
            (51, 1, "a record header of 16 bytes has only 1 (at byte 50, after 1 packet)"),
            (75, 1, "a record of 26 bytes has only 25 (at byte 50, after 1 packet)"),
        ] {
            let (read, error) = messages(good[..len].to_vec());
            let error = error.unwrap_or_default();
            assert!(read == packets && error.contains(message), "expected {message:?}, got {error:?} after {read}");
        }
        assert_eq!((messages(good[..24].to_vec()), messages(good.clone())), ((0, None), (2, None)));
        let mut long = good;
        long[58..62].copy_from_slice(&(MAX_RECORD as u32 + 1).to_le_bytes());
        assert!(messages(long).1.unwrap().contains("a record says a length of 262145 bytes"));
    }

    #[test]
    fn what_is_no_capture_is_refused_with_the_reason() {
        let changed = |at: usize, to: &[u8]| {
            let mut bytes = file(Order::Little, 0xa1b2_c3d4, 1, &[]);
            bytes[at..at + to.len()].copy_from_slice(to);
            messages(bytes).1.unwrap_or_default()
        };
        for (at, to, message) in [
            (0, &b"#!/b"[..], "it is no pcap or pcapng file (it begins with the bytes 23 21 2f 62)"),
            (0, &[0x1f, 0x8b], "it is compressed with gzip"),
            (0, b"\x28\xb5\x2f\xfd", "it is compressed with zstd"),
            (4, &[1], "pcap version 1.4 is not known"),
            (6, &[5], "pcap version 2.5 is not known"),
            (20, &[113], "link type 113 (Linux cooked capture, as of `tcpdump -i any`) is not supported"),
            (20, &[0xff, 0xff], "link type 65535 (see tcpdump.org/linktypes.html) is not supported"),
            (22, &[0x30], "reserved bits of the link type are set (0x00300001)"),
        ] {
            let error = changed(at, to);
            assert!(error.contains(message), "expected {message:?}, got {error:?}");
        }
    }
}

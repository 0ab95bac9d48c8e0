//! pcapng files: sections of blocks (draft-ietf-opsawg-pcapng). Blocks other than those below are passed over.
//!
//! ```text
//! block      type 4 | length 4 | body | padding to 4 | length 4 again
//! section    byte-order magic 4 | major 2 | minor 2 | section length 8 | options
//! interface  link type 2 | reserved 2 | snap length 4 | options
//! enhanced   interface 4 | time high 4 | time low 4 | bytes here 4 | bytes on the wire 4 | the bytes | padding | options
//! packet     interface 2 | drops 2 | as enhanced (obsolete)
//! simple     bytes on the wire 4 | the bytes | padding
//! ```

use super::source::Source;
use super::{Cause, LinkType, MAX_RECORD, Order, Record};
use crate::Time;

pub(super) const SECTION: u32 = 0x0a0d_0d0a;
pub(super) const INTERFACE: u32 = 1;
const PACKET: u32 = 2;
const SIMPLE: u32 = 3;
pub(super) const ENHANCED: u32 = 6;

/// Bytes of a block before its body, and behind it.
pub(super) const HEAD: usize = 8;
pub(super) const TAIL: usize = 4;

/// A section that describes more interfaces than this is no capture; it bounds what a hostile file makes us remember.
const MAX_INTERFACES: usize = 4096;

/// Bytes of an interface's options that are looked at: the two that matter come early in every writer's files.
const MAX_OPTIONS: usize = 16 * 1024;

pub(super) const OPTION_END: u16 = 0;
pub(super) const OPTION_TIME_RESOLUTION: u16 = 9;
const OPTION_TIME_OFFSET: u16 = 14;

/// What a section says of an interface.
#[derive(Clone, Copy, Debug)]
struct Interface {
    /// Kept as its number: an interface whose packets the router does not take may stand in a file as long as it has none.
    link_type: u32,
    snap_len: u32,
    clock: Clock,
}

/// How an interface's time stamps count.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
struct Clock {
    /// Units a second.
    units: u64,
    /// Seconds to add.
    offset: i64,
}

impl Default for Clock {
    /// Microseconds since the epoch.
    fn default() -> Clock {
        Clock { units: 1_000_000, offset: 0 }
    }
}

impl Clock {
    fn from_options(order: Order, mut options: &[u8]) -> Clock {
        let mut clock = Clock::default();
        while let Some((head, rest)) = options.split_at_checked(4) {
            let len = usize::from(order.u16(head, 2));
            let Some((value, _)) = rest.split_at_checked(len) else { break };
            match (order.u16(head, 0), value) {
                (OPTION_END, _) => break,
                // A negative power of ten, or of two when the top bit is set; one that 64 bits cannot count in is as good as none.
                (OPTION_TIME_RESOLUTION, &[exponent]) => {
                    let base: u64 = if exponent & 0x80 == 0 { 10 } else { 2 };
                    clock.units = base.checked_pow(u32::from(exponent & 0x7f)).unwrap_or(clock.units);
                }
                (OPTION_TIME_OFFSET, value) if value.len() == 8 => clock.offset = order.u64(value, 0) as i64,
                _ => {}
            }
            options = rest.get(len.next_multiple_of(4)..).unwrap_or_default();
        }
        clock
    }

    fn time(self, stamp: u64) -> Time {
        let units = u128::from(self.units);
        let nanos = u128::from(stamp) * 1_000_000_000 / units;
        let nanos = nanos as i128 + i128::from(self.offset) * 1_000_000_000;
        Time(u64::try_from(nanos.max(0)).unwrap_or(u64::MAX))
    }
}

/// A pcapng file within a section.
pub(super) struct PcapNg {
    order: Order,
    interfaces: Vec<Interface>,
    /// When the last packet came: simple packets carry no time of their own.
    last: Time,
    /// The block whose packet was given out last: its length, and the bytes of it taken.
    begun: Option<(u32, usize)>,
}

/// Where a packet block has what.
struct PacketFields {
    interface: u32,
    stamp: Option<u64>,
    len: usize,
    wire_len: usize,
    header: usize,
}

impl PcapNg {
    /// Begins with the first section. None, and nothing taken, when `magic` is not a section header's.
    pub(super) fn open(source: &mut Source, magic: [u8; 4]) -> Result<Option<PcapNg>, Cause> {
        if magic != SECTION.to_be_bytes() {
            return Ok(None);
        }
        let mut file = PcapNg { order: Order::Little, interfaces: Vec::new(), last: Time::ZERO, begun: None };
        file.section(source)?;
        Ok(Some(file))
    }

    /// The next packet, whose bytes are still to be taken from `source`. None at the end.
    pub(super) fn next(&mut self, source: &mut Source) -> Result<Option<Record>, Cause> {
        if let Some((len, read)) = self.begun.take() {
            self.pass(source, len, read)?;
        }
        loop {
            if source.peek(1)?.is_empty() {
                return Ok(None);
            }
            let head = source.look(HEAD, "a block header")?;
            let (kind, len) = (self.order.u32(head, 0), self.order.u32(head, 4));
            if kind == SECTION {
                self.section(source)?;
                continue;
            }
            check_length(len)?;
            match kind {
                INTERFACE => self.interface(source, len)?,
                PACKET | SIMPLE | ENHANCED => return self.packet(source, kind, len).map(Some),
                _ => self.pass(source, len, 0)?,
            }
        }
    }

    /// Passes over the rest of a block of `len` bytes of which `read` are taken, and compares the length at its end.
    fn pass(&mut self, source: &mut Source, len: u32, read: usize) -> Result<(), Cause> {
        let broken = |there: u64| Cause::BrokenOff { what: "a block", wanted: u64::from(len), there };
        let begin = source.offset() - read as u64;
        let rest = u64::from(len) - (read + TAIL) as u64;
        if !source.skip(rest)? {
            return Err(broken(source.offset() - begin));
        }
        let tail = source.peek(TAIL)?;
        if tail.len() < TAIL {
            let there = u64::from(len) - (TAIL - tail.len()) as u64;
            return Err(broken(there));
        }
        let again = self.order.u32(tail, 0);
        source.take(TAIL);
        if again != len {
            return Err(Cause::BlockLengths(len, again));
        }
        Ok(())
    }

    /// A section header: from here on another byte order may hold and interfaces count from 0 again.
    fn section(&mut self, source: &mut Source) -> Result<(), Cause> {
        let head = source.look(HEAD + 16, "a section header")?;
        self.order = match Order::Big.u32(head, HEAD) {
            0x1a2b_3c4d => Order::Big,
            0x4d3c_2b1a => Order::Little,
            other => return Err(Cause::ByteOrder(other.to_be_bytes())),
        };
        let len = self.order.u32(head, 4);
        let (major, minor) = (self.order.u16(head, 12), self.order.u16(head, 14));
        // 1.2 was written by some for 1.0 (draft-ietf-opsawg-pcapng section 4.1); a higher minor version stays readable by its definition, but
        // none is defined.
        if major != 1 || !matches!(minor, 0 | 2) {
            return Err(Cause::Version { format: "pcapng", major, minor });
        }
        if len < (HEAD + 16 + TAIL) as u32 {
            return Err(Cause::Length { what: "a section header", len: u64::from(len) });
        }
        check_length(len)?;
        self.interfaces.clear();
        self.pass(source, len, 0)
    }

    fn interface(&mut self, source: &mut Source, len: u32) -> Result<(), Cause> {
        let options = (len as usize).saturating_sub(HEAD + 8 + TAIL).min(MAX_OPTIONS);
        let body = source.look(HEAD + 8 + options, "an interface description")?;
        if len < (HEAD + 8 + TAIL) as u32 {
            return Err(Cause::Length { what: "an interface description", len: u64::from(len) });
        }
        if self.interfaces.len() == MAX_INTERFACES {
            return Err(Cause::TooManyInterfaces(MAX_INTERFACES));
        }
        self.interfaces.push(Interface {
            link_type: u32::from(self.order.u16(body, HEAD)),
            snap_len: self.order.u32(body, HEAD + 4),
            clock: Clock::from_options(self.order, &body[HEAD + 8..]),
        });
        self.pass(source, len, 0)
    }

    fn packet(&mut self, source: &mut Source, kind: u32, len: u32) -> Result<Record, Cause> {
        let order = self.order;
        let fields = if kind == SIMPLE {
            let head = source.look(HEAD + 4, "a packet block")?;
            let wire_len = order.u32(head, HEAD) as usize;
            let snap_len = match self.interfaces.first() {
                Some(&Interface { snap_len: 0, .. }) | None => usize::MAX,
                Some(interface) => interface.snap_len as usize,
            };
            PacketFields { interface: 0, stamp: None, len: wire_len.min(snap_len), wire_len, header: HEAD + 4 }
        } else {
            let head = source.look(HEAD + 20, "a packet block")?;
            PacketFields {
                interface: if kind == ENHANCED { order.u32(head, HEAD) } else { u32::from(order.u16(head, HEAD)) },
                stamp: Some(u64::from(order.u32(head, HEAD + 4)) << 32 | u64::from(order.u32(head, HEAD + 8))),
                len: order.u32(head, HEAD + 12) as usize,
                wire_len: order.u32(head, HEAD + 16) as usize,
                header: HEAD + 20,
            }
        };
        let Some(interface) = self.interfaces.get(fields.interface as usize) else {
            return Err(Cause::Interface(fields.interface));
        };
        let link = LinkType::of_number(interface.link_type)?;
        match (len as usize).checked_sub(fields.header + TAIL) {
            None => return Err(Cause::Length { what: "a packet block", len: u64::from(len) }),
            Some(there) if fields.len > there.min(MAX_RECORD) => {
                return Err(Cause::Length { what: "a packet", len: fields.len as u64 });
            }
            Some(_) => {}
        }
        source.look(fields.header + fields.len, "a packet block")?;
        let time = fields.stamp.map_or(self.last, |stamp| interface.clock.time(stamp));
        self.last = time;
        source.take(fields.header);
        self.begun = Some((len, fields.header + fields.len));
        Ok(Record { time, len: fields.len, wire_len: fields.wire_len, link })
    }
}

/// Lengths of blocks count their head and tail and are multiples of four.
fn check_length(len: u32) -> Result<(), Cause> {
    match len as usize >= HEAD + TAIL && len.is_multiple_of(4) {
        true => Ok(()),
        false => Err(Cause::Length { what: "a block", len: u64::from(len) }),
    }
}

#[cfg(test)]
mod tests {
    use super::super::testing::{messages, read};
    use super::*;
    use crate::Link;

    /// Builds blocks in one byte order.
    struct File(Order, Vec<u8>);

    impl File {
        fn new(order: Order) -> File {
            let mut file = File(order, Vec::new());
            file.section(1, 0);
            file
        }

        fn u16(&self, value: u16) -> [u8; 2] {
            match self.0 {
                Order::Little => value.to_le_bytes(),
                Order::Big => value.to_be_bytes(),
            }
        }

        fn u32(&self, value: u32) -> [u8; 4] {
            match self.0 {
                Order::Little => value.to_le_bytes(),
                Order::Big => value.to_be_bytes(),
            }
        }

        fn block(&mut self, kind: u32, body: &[&[u8]]) {
            let mut body = body.concat();
            body.resize(body.len().next_multiple_of(4), 0);
            let len = self.u32((HEAD + body.len() + TAIL) as u32);
            let block = [&self.u32(kind), &len, &body[..], &len].concat();
            self.1.extend(block);
        }

        fn section(&mut self, major: u16, minor: u16) {
            self.block(SECTION, &[&self.u32(0x1a2b_3c4d), &self.u16(major), &self.u16(minor), &[0xff; 8]]);
        }

        fn interface(&mut self, link_type: u16, snap_len: u32, options: &[(u16, &[u8])]) {
            let mut body = [&self.u16(link_type)[..], &[0, 0], &self.u32(snap_len)].concat();
            for (code, value) in options {
                body.extend([&self.u16(*code)[..], &self.u16(value.len() as u16), value].concat());
                body.resize(body.len().next_multiple_of(4), 0);
            }
            self.block(INTERFACE, &[&body]);
        }

        fn enhanced(&mut self, interface: u32, stamp: u64, bytes: &[u8], wire_len: u32) {
            let (high, low) = (self.u32((stamp >> 32) as u32), self.u32(stamp as u32));
            let body: [&[u8]; 6] = [&self.u32(interface), &high, &low, &self.u32(bytes.len() as u32), &self.u32(wire_len), bytes];
            self.block(ENHANCED, &body);
        }
    }

    #[test]
    fn packets_of_all_kinds_are_read_in_both_byte_orders() {
        for order in [Order::Little, Order::Big] {
            let mut file = File::new(order);
            file.interface(1, 3, &[]);
            file.enhanced(0, 5_000_001, &[1; 5], 1500);
            file.block(0x0bad, &[b"passed over"]);
            file.block(SIMPLE, &[&file.u32(9), &[2; 3]]);
            let (zero, one, len) = (file.u32(0), file.u32(6_000_000), file.u32(2));
            file.block(PACKET, &[&[0; 4], &zero, &one, &len, &len, &[3; 2]]);
            // Another section: interfaces count anew, and the byte order may change.
            file.0 = if order == Order::Little { Order::Big } else { Order::Little };
            file.section(1, 2);
            file.interface(101, 0, &[]);
            file.enhanced(0, 7_000_000, &[0x45; 20], 20);
            let (packets, error) = read(file.1);
            assert!(error.is_none(), "{error:?}");
            let seen: Vec<_> = packets.iter().map(|p| (p.buf[0], p.buf.len(), p.wire_len, p.time.0 / 1_000, p.link)).collect();
            let ethernet = Link::Ethernet;
            assert_eq!(
                seen,
                [
                    (1, 5, 1500, 5_000_001, ethernet),
                    (2, 3, 9, 5_000_001, ethernet),
                    (3, 2, 2, 6_000_000, ethernet),
                    (0x45, 20, 20, 7_000_000, Link::Ip),
                ]
            );
        }
    }

    #[test]
    fn an_interface_s_clock_follows_its_options() {
        let order = Order::Big;
        let clock = |options: &[u8]| Clock::from_options(order, options);
        assert_eq!(clock(&[]).time(5), Time(5_000));
        assert_eq!(clock(&[0, 9, 0, 1, 9, 0, 0, 0]).time(5), Time(5));
        assert_eq!(clock(&[0, 9, 0, 1, 0x81, 0, 0, 0]).time(5), Time(2_500_000_000));
        assert_eq!(clock(&[0, 14, 0, 8, 0, 0, 0, 0, 0, 0, 0, 2]).time(5), Time(2_000_005_000));
        assert_eq!(clock(&[0, 14, 0, 8, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff]).time(1_000_001), Time(1_000));
        assert_eq!(clock(&[0, 14, 0, 8, 0x80, 0, 0, 0, 0, 0, 0, 0]).time(u64::MAX), Time::ZERO);
        assert_eq!(clock(&[0, 9, 0, 1, 0, 0, 0, 0]).time(u64::MAX), Time(u64::MAX));
        // Behind the end of options, cut off, or out of range: as if not there.
        for options in [&[0, 0, 0, 0, 0, 9, 0, 1, 9, 0, 0, 0][..], &[0, 9, 0, 1], &[0, 9, 0xff, 0xff, 9], &[0, 9, 0, 1, 0x7f, 0, 0, 0]] {
            assert_eq!(clock(options), Clock::default());
        }
    }

    #[test]
    fn a_damaged_file_is_read_up_to_the_damage() {
        let mut good = File::new(Order::Little);
        good.interface(1, 0, &[]);
        good.enhanced(0, 1, &[1; 6], 6);
        let damaged = |damage: fn(&mut File)| {
            let mut file = File(Order::Little, good.1.clone());
            damage(&mut file);
            messages(file.1)
        };
        let at = good.1.len();
        assert_eq!(damaged(|_| {}), (1, None));
        for (damage, message) in [
            ((|f| f.1.extend([6, 0])) as fn(&mut File), "it breaks off: a block header of 8 bytes has only 2"),
            (|f| f.1.extend([9, 0, 0, 0, 13, 0, 0, 0]), "a block says a length of 13 bytes"),
            (|f| f.1.extend([9, 0, 0, 0, 0, 0, 0, 0]), "a block says a length of 0 bytes"),
            (|f| f.1.extend([9, 0, 0, 0, 0xfc, 0xff, 0xff, 0xff, 1]), "a block of 4294967292 bytes has only 9"),
            (|f| f.1.extend([9, 0, 0, 0, 12, 0, 0, 0, 1]), "a block of 12 bytes has only 9"),
            (|f| f.1.extend([9, 0, 0, 0, 12, 0, 0, 0, 16, 0, 0, 0]), "a block begins with length 12 and ends with length 16"),
            (|f| f.1.extend([6, 0, 0, 0, 12, 0, 0, 0, 12, 0, 0, 0]), "a packet block of 28 bytes has only 12"),
            (|f| f.1.extend([[6, 0, 0, 0, 12, 0, 0, 0], [0; 8], [0; 8], [0; 8]].concat()), "a packet block says a length of 12 bytes"),
            (|f| f.enhanced(1, 0, &[], 0), "a packet is of interface 1, which the section does not describe"),
            (|f| f.block(ENHANCED, &[&[0; 12], &[0xff; 8]]), "a packet says a length of 4294967295 bytes"),
            (|f| f.block(SIMPLE, &[&[200, 0, 0, 0], &[0; 4]]), "a packet says a length of 200 bytes"),
            (|f| f.section(2, 0), "pcapng version 2.0 is not known"),
            (|f| f.block(SECTION, &[&[7; 16]]), "a section header has no byte-order magic (but [07, 07, 07, 07])"),
            (
                |f| {
                    f.interface(113, 0, &[]);
                    f.enhanced(1, 0, &[1], 1);
                },
                "link type 113 (Linux cooked capture",
            ),
            (
                |f| {
                    let one = f.1.len();
                    f.interface(1, 0, &[]);
                    let interface = f.1[one..].to_vec();
                    (0..MAX_INTERFACES).for_each(|_| f.1.extend(&interface));
                },
                "a section describes more than 4096 interfaces",
            ),
        ] {
            let (packets, error) = damaged(damage);
            let error = error.unwrap_or_default();
            assert!(packets == 1 && error.contains(message), "expected {message:?}, got {error:?} after {packets}");
        }
        for len in 0..at {
            let (packets, error) = messages(good.1[..len].to_vec());
            // The packet is good as soon as its bytes are there; what follows is padding and the length again.
            assert_eq!((packets, error.is_some()), (usize::from(len >= at - 6), !matches!(len, 28 | 48)), "{len} of {at} bytes");
        }
    }
}

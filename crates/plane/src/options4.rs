//! The options of an IPv4 header (RFC 791 §3.1): checked and filled in on receipt, when forwarding, in fragments, in answers.
//!
//! Linux fills record route and time stamp in twice: [`compile`], on receipt, with the address the router would answer the source from;
//! [`forward`] then puts the address of the way out over it, in a record route only.

mod check;
mod echo;

use std::net::Ipv4Addr;

use port::Time;
use wire::ipv4;

pub use echo::{Echoed, echo};

const END: u8 = 0;
const NOP: u8 = 1;
const RECORD_ROUTE: u8 = 7;
const TIMESTAMP: u8 = 68;
const LOOSE_ROUTE: u8 = 131;
const CIPSO: u8 = 134;
const STRICT_ROUTE: u8 = 137;
const ROUTER_ALERT: u8 = 148;
/// Set in the type of an option that goes into every fragment.
const COPIED: u8 = 0x80;

/// Formats of a time stamp option, the low half of its fourth byte.
mod format {
    pub const TIME: u8 = 0;
    pub const ADDRESS_AND_TIME: u8 = 1;
    pub const PRESPECIFIED: u8 = 3;
}

/// What a packet's options are. Places are offsets in bytes from the front of the IPv4 header.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Options {
    /// Loose or strict source route.
    pub source_route: Option<SourceRoute>,
    /// Record route.
    pub record_route: Option<u8>,
    /// The record route had room and got this router's address.
    pub recorded: bool,
    /// Time stamp.
    pub timestamp: Option<u8>,
    /// The time stamp got this router's address.
    pub stamped_address: bool,
    /// The time stamp got the time.
    pub stamped_time: bool,
    /// Router alert of value 0 (RFC 2113).
    pub router_alert: Option<u8>,
    /// Commercial IP security option.
    pub cipso: Option<u8>,
    /// Bytes were changed and the header checksum is not yet right again.
    pub changed: bool,
}

/// A source route option.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SourceRoute {
    /// Where it stands.
    pub at: u8,
    /// Strict: the next address must be a neighbour.
    pub strict: bool,
}

/// A malformed option, answered by an ICMP parameter problem of code 0.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Malformed {
    /// Offset of the bad byte from the front of the IPv4 header: the message's pointer.
    pub pointer: u8,
    /// The good ones before it, which the message carries back.
    pub before: Options,
}

/// What the router fills options in with. The functions are asked only when an option wants to know.
#[derive(Clone, Copy)]
pub struct Here<'a> {
    /// The address that goes into the option. On receipt the one the source would be answered from, which for a packet to the router itself is
    /// the packet's destination; in an answer its own source.
    pub address: &'a dyn Fn() -> Ipv4Addr,
    /// False for the router's own addresses and for broadcast and multicast ones, for prespecified time stamps (Linux's `RTN_UNICAST`).
    pub is_elsewhere: &'a dyn Fn(Ipv4Addr) -> bool,
    /// Time of day: milliseconds since midnight UT.
    pub milliseconds: u32,
}

/// What a time stamp says at `time`: milliseconds since midnight UT.
pub fn milliseconds_of_day(time: Time) -> u32 {
    (time.0 / 1_000_000 % 86_400_000) as u32
}

/// Checks the options of a received packet, which starts with its IPv4 header, and fills them in. The checksum is left as it was: [`forward`]
/// or [`seal`] corrects it, and an error quotes the packet as it stands. Linux's `ip_options_compile`, which runs after the route was looked up.
///
/// # Errors
/// [`Malformed`] at the first bad option; those before it are filled in already.
pub fn compile(packet: &mut [u8], here: &Here<'_>) -> Result<Options, Malformed> {
    let mut found = Options::default();
    let header_len = ipv4::Header::read(packet).map_or(0, ipv4::Header::header_len);
    let Some(bytes) = packet.get_mut(ipv4::LEN..header_len) else { return Ok(found) };
    let mut at = 0;
    while let Some(&kind) = bytes.get(at) {
        match kind {
            END => {
                clear_after_end(bytes, at, &mut found);
                break;
            }
            NOP => at += 1,
            _ => {
                let place = (ipv4::LEN + at) as u8;
                let len = bytes.get(at + 1).map_or(0, |&len| usize::from(len));
                let Some(option) = bytes.get_mut(at..at + len).filter(|option| option.len() >= 2) else {
                    return Err(Malformed { pointer: place, before: found });
                };
                if let Err(bad) = check::option(option, place, &mut found, here) {
                    return Err(Malformed { pointer: place + bad, before: found });
                }
                at += len;
            }
        }
    }
    Ok(found)
}

/// Makes the bytes behind an end of options ends, too.
fn clear_after_end(bytes: &mut [u8], at: usize, found: &mut Options) {
    for byte in bytes.iter_mut().skip(at) {
        found.changed |= *byte != END;
        *byte = END;
    }
}

/// Writes four bytes where an option's pointer, which counts from 1, points.
fn put(option: &mut [u8], pointer: u8, bytes: [u8; 4]) -> Option<()> {
    let at = usize::from(pointer).checked_sub(1)?;
    option.get_mut(at..at + 4)?.copy_from_slice(&bytes);
    Some(())
}

fn address_at(option: &[u8], pointer: u8) -> Option<Ipv4Addr> {
    let at = usize::from(pointer).checked_sub(1)?;
    Some(Ipv4Addr::from(<[u8; 4]>::try_from(option.get(at..at + 4)?).ok()?))
}

fn advance(option: &mut [u8], by: u8) {
    if let Some(pointer) = option.get_mut(2) {
        *pointer = pointer.wrapping_add(by);
    }
}

/// Fills the options of a packet that leaves by the interface with address `out`, asked for when an option wants it: it goes over the one that
/// [`compile`] put into a record route. The checksum is right afterwards if any option changed. Linux's `ip_forward_options`; source routes are
/// not followed.
pub fn forward(packet: &mut [u8], options: &mut Options, out: impl FnOnce() -> Ipv4Addr) {
    if let Some(option) = options.record_route.filter(|_| options.recorded).and_then(|at| option_at(packet, at)) {
        let pointer = option.get(2).copied().unwrap_or(0);
        if put(option, pointer.wrapping_sub(4), out().octets()).is_some() {
            options.changed = true;
        }
    }
    seal(packet, options);
}

/// Makes the checksum right if an option changed.
pub fn seal(packet: &mut [u8], options: &mut Options) {
    if std::mem::take(&mut options.changed) {
        ipv4::fill_checksum(packet);
    }
}

/// The option that stands at `at`, no further than its length says.
fn option_at(packet: &mut [u8], at: u8) -> Option<&mut [u8]> {
    let at = usize::from(at);
    let len = usize::from(*packet.get(at + 1)?);
    packet.get_mut(at..at + len)
}

/// Turns the options that belong into the first fragment only into no-operations: `header` is that of the later ones. The length stays
/// (Linux's `ip_options_fragment`). The checksum is for the caller to set.
pub fn keep_copied(header: &mut [u8]) {
    let Some(mut bytes) = header.get_mut(ipv4::LEN..) else { return };
    loop {
        match *bytes {
            [NOP, ref mut rest @ ..] => bytes = rest,
            [END, ..] | [] | [_] => return,
            [kind, len, ..] => {
                let Some((option, rest)) = bytes.split_at_mut_checked(len.into()).filter(|_| len >= 2) else { return };
                if kind & COPIED == 0 {
                    option.fill(NOP);
                }
                bytes = rest;
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use wire::checksum::Sum;

    const OWN: Ipv4Addr = Ipv4Addr::new(10, 81, 2, 33);
    const OUT: Ipv4Addr = Ipv4Addr::new(172, 29, 7, 91);
    const NOON: u32 = 43_200_000;
    const HERE: Here<'_> = Here { address: &|| OWN, is_elsewhere: &|address| address != OWN, milliseconds: NOON };

    /// An IPv4 packet with `options` padded by ends, a right checksum and eight bytes of payload.
    pub(super) fn packet(options: &[u8]) -> Vec<u8> {
        let header_len = 20 + options.len().next_multiple_of(4);
        let mut packet = vec![0; header_len + 8];
        let total_len = packet.len() as u16;
        let header = ipv4::Header::read_mut(&mut packet).unwrap();
        *header = ipv4::Header::new(Ipv4Addr::new(10, 4, 5, 6), Ipv4Addr::new(172, 20, 30, 41), 17, 64, total_len);
        header.set_header_len(header_len);
        packet[20..20 + options.len()].copy_from_slice(options);
        ipv4::fill_checksum(&mut packet);
        packet
    }

    fn pointer_of(options: &[u8]) -> Option<u8> {
        compile(&mut packet(options), &HERE).err().map(|bad| bad.pointer)
    }

    #[test]
    fn a_record_route_gets_the_address_of_the_way_out() {
        // The options of golden ip4_forward/all frame 50, and of frag/forward frame 9.
        for options in [[7, 11, 4, 0, 0, 0, 0, 0, 0, 0, 0, 0], [7, 7, 4, 0, 0, 0, 0, 0x88, 4, 0, 1, 0]] {
            let mut packet = packet(&options);
            let mut found = compile(&mut packet, &HERE).unwrap();
            assert_eq!(packet[22..27], [8, 10, 81, 2, 33]);
            forward(&mut packet, &mut found, || OUT);
            assert_eq!(packet[22..27], [8, 172, 29, 7, 91]);
            assert_eq!(packet[27..32], options[7..12]);
            assert!(Sum::default().bytes(&packet[..32]).is_valid());
        }
    }

    #[test]
    fn a_time_stamp_gets_the_time_and_keeps_the_address_of_the_way_in() {
        let mut time_only = packet(&[68, 12, 5, 0, 0, 0, 0, 0, 0, 0, 0, 0]);
        let found = compile(&mut time_only, &HERE).unwrap();
        assert_eq!((found.timestamp, found.stamped_time, found.stamped_address), (Some(20), true, false));
        assert_eq!(time_only[22..28], [9, 0, 0x02, 0x93, 0x2e, 0x00]);

        let mut both = packet(&[68, 12, 5, 1, 0, 0, 0, 0, 0, 0, 0, 0]);
        let mut found = compile(&mut both, &HERE).unwrap();
        forward(&mut both, &mut found, || OUT);
        assert_eq!(both[22..32], [13, 1, 10, 81, 2, 33, 0x02, 0x93, 0x2e, 0x00]);
        assert!(Sum::default().bytes(&both[..32]).is_valid());
    }

    #[test]
    fn a_prespecified_time_stamp_is_only_filled_in_by_the_router_it_names() {
        let mut ours = packet(&[68, 12, 5, 3, 10, 81, 2, 33, 0, 0, 0, 0]);
        assert!(compile(&mut ours, &HERE).unwrap().stamped_time);
        assert_eq!(ours[22..32], [13, 3, 10, 81, 2, 33, 0x02, 0x93, 0x2e, 0x00]);
        let mut theirs = packet(&[68, 12, 5, 3, 10, 81, 2, 34, 0, 0, 0, 0]);
        let before = theirs.clone();
        let found = compile(&mut theirs, &HERE).unwrap();
        assert_eq!((theirs, found.timestamp, found.changed), (before, Some(20), false));
    }

    #[test]
    fn a_full_time_stamp_counts_the_routers_it_has_no_room_for() {
        let mut full = packet(&[68, 4, 5, 0xe0]);
        assert!(compile(&mut full, &HERE).unwrap().changed);
        assert_eq!(full[23], 0xf0);
        assert_eq!(pointer_of(&[68, 4, 5, 0xf0]), Some(23));
        assert_eq!(pointer_of(&[68, 4, 5, 0xf3]), None, "prespecified ones do not count");
    }

    #[test]
    fn a_full_record_route_passes_unchanged() {
        let mut full = packet(&[7, 7, 8, 1, 2, 3, 4]);
        let before = full.clone();
        let mut found = compile(&mut full, &HERE).unwrap();
        forward(&mut full, &mut found, || OUT);
        assert_eq!((full, found.recorded, found.record_route), (before, false, Some(20)));
    }

    #[test]
    fn the_pointer_of_a_parameter_problem_names_the_bad_byte() {
        // known fault: pointer always 0. The first is golden ip4_forward/all frame 54.
        let bad: [(&[u8], u8); 16] = [
            (&[7, 40, 4, 0], 20),
            (&[7, 1, 4, 0], 20),
            (&[1, 1, 1, 7], 23),
            (&[7, 2, 0, 0], 21),
            (&[7, 7, 3, 0, 0, 0, 0], 22),
            (&[7, 7, 5, 0, 0, 0, 0], 22),
            (&[7, 3, 4, 7, 3, 4], 23),
            (&[68, 3, 5], 21),
            (&[68, 8, 4, 0, 0, 0, 0, 0], 22),
            (&[68, 8, 5, 1, 0, 0, 0, 0], 22),
            (&[148, 3, 0], 21),
            (&[131, 2], 21),
            (&[131, 7, 3, 1, 2, 3, 4], 22),
            (&[131, 3, 4, 137, 3, 4], 23),
            (&[134, 7, 0, 0, 0, 1, 1], 21),
            (&[134, 10, 0, 0, 0, 1, 1, 2, 9, 0], 29),
        ];
        for (options, pointer) in bad {
            assert_eq!(pointer_of(options), Some(pointer), "{options:?}");
        }
    }

    #[test]
    fn what_has_no_meaning_here_passes() {
        for options in [&[1, 1, 0, 0][..], &[0x88, 4, 0, 1], &[0x9e, 3, 200], &[148, 4, 0, 1], &[68, 8, 5, 2, 0, 0, 0, 0], &[]] {
            assert_eq!(pointer_of(options), None, "{options:?}");
        }
        assert_eq!(compile(&mut packet(&[148, 4, 0, 0]), &HERE).unwrap().router_alert, Some(20));
        let strict = compile(&mut packet(&[1, 137, 7, 4, 1, 2, 3, 4]), &HERE).unwrap().source_route;
        assert_eq!(strict, Some(SourceRoute { at: 21, strict: true }));
    }

    #[test]
    fn bytes_behind_the_end_become_ends() {
        let mut packet = packet(&[0, 7, 40, 4]);
        assert!(compile(&mut packet, &HERE).unwrap().changed);
        assert_eq!(packet[20..24], [0; 4]);
    }

    #[test]
    fn later_fragments_keep_the_copied_options_and_their_length() {
        // Golden frag/forward frame 9.
        let mut header = packet(&[7, 7, 8, 10, 0, 1, 1, 0x88, 4, 0, 1, 0]);
        header.truncate(32);
        keep_copied(&mut header);
        assert_eq!(header[20..], [1, 1, 1, 1, 1, 1, 1, 0x88, 4, 0, 1, 0]);
    }

    #[test]
    fn options_of_any_bytes_are_survived() {
        use proptest::prelude::*;
        proptest!(|(mut bytes in proptest::collection::vec(any::<u8>(), 0..64), ihl in 0u8..16)| {
            if let Some(first) = bytes.first_mut() {
                *first = 0x40 | ihl;
            }
            if let Ok(mut found) = compile(&mut bytes, &HERE) {
                let _ = echo(&bytes, &found, &HERE);
                forward(&mut bytes, &mut found, || OUT);
            }
            keep_copied(&mut bytes);
        });
    }
}

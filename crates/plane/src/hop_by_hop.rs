//! The options of IPv6's hop-by-hop and destination options headers (RFC 8200 §4.2, §4.3, §4.6).
//!
//! ```text
//! | next header | length in units of 8 after the first 8 | options: type, length, data; Pad1 is a type alone |
//! ```
//! The two high bits of a type say what happens to a packet whose option is unknown: 00 skip it, 01 drop the packet, 10 drop it and report,
//! 11 report unless the destination is multicast.

use wire::{icmp6, ipv6};

const PAD1: u8 = 0;
const PADN: u8 = 1;
const ROUTER_ALERT: u8 = 5;
const JUMBO: u8 = 0xc2;
const IOAM: u8 = 0x31;

/// Options, padding aside, that one header may hold (net.ipv6.max_hbh_opts_number and max_dst_opts_number, 8 each).
const MAX_OPTIONS: usize = 8;
/// Bytes that a run of padding may have: more would align to nothing (RFC 4942 §2.1.9.5).
const MAX_PADDING: usize = 7;

/// What a header's options asked for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Passed {
    /// Length of the header, bytes.
    pub len: usize,
    /// Value of the router alert option (RFC 2711), if there is one.
    pub router_alert: Option<u16>,
    /// Payload length of a jumbogram (RFC 2675), bytes, if it is one; it lies within the packet, which is to be cut to it.
    pub jumbo: Option<usize>,
}

/// A packet that its options forbid to pass.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Refused {
    /// Nobody is told.
    Silent,
    /// The source gets an ICMPv6 parameter problem.
    Problem {
        /// Its code.
        code: u8,
        /// Its pointer: offset of the bad byte from the front of the IPv6 header.
        pointer: u32,
    },
}

/// Which header it is.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Kind {
    HopByHop,
    Destination,
}

/// Looks at the hop-by-hop options right behind the IPv6 header at the front of `packet`, which the packet must not pass unlooked at, whether it is
/// forwarded or for the router. Linux's `ipv6_parse_hopopts`; options it knows only when told to (IOAM, CALIPSO) are skipped as their
/// types say.
///
/// # Errors
/// [`Refused`] when the packet must not pass.
pub fn hop_by_hop(packet: &[u8]) -> Result<Passed, Refused> {
    walk(packet, ipv6::LEN, Kind::HopByHop)
}

/// Looks at the destination options at `at` of a packet that is for the router. Linux's `ipv6_destopt_rcv` without mobility.
///
/// # Errors
/// [`Refused`] when the packet must not be delivered.
pub fn destination(packet: &[u8], at: usize) -> Result<Passed, Refused> {
    walk(packet, at, Kind::Destination)
}

fn walk(packet: &[u8], at: usize, kind: Kind) -> Result<Passed, Refused> {
    let len_field = *packet.get(at + 1).ok_or(Refused::Silent)?;
    let len = (usize::from(len_field) + 1) * 8;
    let header = packet.get(at..at + len).ok_or(Refused::Silent)?;
    let mut passed = Passed { len, router_alert: None, jumbo: None };
    let mut options = 0;
    let mut padding = 0;
    let mut offset = 2;
    while let Some(&number) = header.get(offset) {
        if number == PAD1 {
            padding += 1;
            offset += 1;
        } else {
            let data_len = usize::from(*header.get(offset + 1).ok_or(Refused::Silent)?);
            let data = header.get(offset + 2..offset + 2 + data_len).ok_or(Refused::Silent)?;
            if number == PADN {
                padding += 2 + data_len;
                if data.iter().any(|&byte| byte != 0) {
                    return Err(Refused::Silent);
                }
            } else {
                options += 1;
                if options > MAX_OPTIONS {
                    return Err(Refused::Silent);
                }
                option(packet, at + offset, number, data, kind, &mut passed)?;
                padding = 0;
            }
            offset += 2 + data_len;
        }
        if padding > MAX_PADDING {
            return Err(Refused::Silent);
        }
    }
    Ok(passed)
}

/// One option, no padding, whose type stands at `at` in the packet.
fn option(packet: &[u8], at: usize, number: u8, data: &[u8], kind: Kind, passed: &mut Passed) -> Result<(), Refused> {
    match (kind, number) {
        (Kind::HopByHop, ROUTER_ALERT) => {
            let value = <[u8; 2]>::try_from(data).map_err(|_| Refused::Silent)?;
            passed.router_alert = Some(u16::from_be_bytes(value));
            Ok(())
        }
        (Kind::HopByHop, JUMBO) => {
            passed.jumbo = Some(jumbo(packet, at, data)?);
            Ok(())
        }
        // Not understood, but known to be aligned (RFC 9486 §3).
        (Kind::HopByHop, IOAM) if !at.is_multiple_of(4) => Err(Refused::Silent),
        _ => unknown(packet, at, number),
    }
}

/// The payload length of a jumbogram whose option stands at `at`.
fn jumbo(packet: &[u8], at: usize, data: &[u8]) -> Result<usize, Refused> {
    let header = ipv6::Header::read(packet).ok_or(Refused::Silent)?;
    let Ok(len) = <[u8; 4]>::try_from(data).map(u32::from_be_bytes) else { return Err(Refused::Silent) };
    if at % 4 != 2 {
        return Err(Refused::Silent);
    }
    if len <= u32::from(u16::MAX) {
        return Err(problem(icmp6::parameter::FIELD, at + 2));
    }
    if header.payload_len() != 0 {
        return Err(problem(icmp6::parameter::FIELD, at));
    }
    let len = usize::try_from(len).map_err(|_| Refused::Silent)?;
    if len > packet.len().saturating_sub(ipv6::LEN) {
        return Err(Refused::Silent);
    }
    Ok(len)
}

fn unknown(packet: &[u8], at: usize, number: u8) -> Result<(), Refused> {
    let multicast = ipv6::Header::read(packet).is_some_and(|header| header.dst().is_multicast());
    match number >> 6 {
        0 => Ok(()),
        2 => Err(problem(icmp6::parameter::OPTION, at)),
        3 if !multicast => Err(problem(icmp6::parameter::OPTION, at)),
        _ => Err(Refused::Silent),
    }
}

fn problem(code: u8, pointer: usize) -> Refused {
    Refused::Problem { code, pointer: pointer as u32 }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::net::Ipv6Addr;
    use wire::proto;
    use zerocopy::IntoBytes;

    const UNICAST: Ipv6Addr = Ipv6Addr::new(0xfd09, 1, 2, 3, 4, 5, 6, 9);
    const GROUP: Ipv6Addr = Ipv6Addr::new(0xff02, 0, 0, 0, 0, 0, 1, 0x99);

    /// A packet to `dst` with a header of `options` behind the IPv6 header, and 8 bytes of payload.
    fn packet_to(dst: Ipv6Addr, options: &[u8]) -> Vec<u8> {
        let src = Ipv6Addr::new(0xfd00, 0, 0, 7, 0, 0, 3, 2);
        let len = options.len() + 2 + 8;
        let mut packet = ipv6::Header::new(src, dst, proto::HOP_BY_HOP, 64, len as u16).as_bytes().to_vec();
        packet.extend([proto::UDP, ((options.len() + 2) / 8 - 1) as u8]);
        packet.extend(options);
        packet.extend([0; 8]);
        packet
    }

    fn look(options: &[u8]) -> Result<Passed, Refused> {
        hop_by_hop(&packet_to(UNICAST, options))
    }

    #[test]
    fn options_are_looked_at_before_forwarding_as_their_high_bits_say() {
        // known fault: hop-by-hop options not looked at in transit; golden ip6_forward/all frames 46 to 54. Another: pointer always 0.
        let passed = Ok(Passed { len: 8, router_alert: None, jumbo: None });
        let unknown = Err(Refused::Problem { code: 2, pointer: 42 });
        assert_eq!(look(&[1, 4, 0, 0, 0, 0]), passed);
        assert_eq!(look(&[5, 2, 0, 0, 1, 0]), Ok(Passed { len: 8, router_alert: Some(0), jumbo: None }));
        assert_eq!(look(&[0x1e, 4, 0, 0, 0, 0]), passed);
        assert_eq!(look(&[0x5e, 4, 0, 0, 0, 0]), Err(Refused::Silent));
        assert_eq!(look(&[0x9e, 4, 0, 0, 0, 0]), unknown);
        assert_eq!(look(&[0xde, 4, 0, 0, 0, 0]), unknown);
        assert_eq!(hop_by_hop(&packet_to(GROUP, &[0x9e, 4, 0, 0, 0, 0])), unknown);
        assert_eq!(hop_by_hop(&packet_to(GROUP, &[0xde, 4, 0, 0, 0, 0])), Err(Refused::Silent));
        assert_eq!(look(&[0xc2, 4, 0, 0, 0, 40]), Err(Refused::Problem { code: 0, pointer: 44 }));
        assert_eq!(look(&[1, 40, 0, 0, 0, 0]), Err(Refused::Silent));
    }

    #[test]
    fn a_header_that_leaves_the_packet_is_refused_silently() {
        let mut packet = packet_to(UNICAST, &[1, 4, 0, 0, 0, 0]);
        packet[41] = 30;
        assert_eq!(hop_by_hop(&packet), Err(Refused::Silent));
        assert_eq!(hop_by_hop(&packet[..40]), Err(Refused::Silent));
        assert_eq!(destination(&packet, packet.len()), Err(Refused::Silent));
    }

    #[test]
    fn padding_is_short_and_empty() {
        let alert = [5, 2, 0, 0];
        let padded = |before: &[u8], after: &[u8]| look(&[before, &alert, after].concat()).is_ok();
        assert!(padded(&[0; 7], &[1, 1, 0]));
        assert!(!padded(&[0; 8], &[0, 0]));
        assert!(padded(&[1, 5, 0, 0, 0, 0, 0], &[0, 0, 0]));
        assert!(!padded(&[0, 1, 5, 0, 0, 0, 0, 0], &[0, 0]), "one run of eight bytes");
        assert!(!padded(&[1, 5, 0, 0, 9, 0, 0], &[0, 0, 0]), "something hidden in the padding");
        assert!(!padded(&[], &[0, 1]), "PadN without its length");
    }

    #[test]
    fn more_than_eight_options_are_refused() {
        assert!(look(&[[0x1e, 0].repeat(8), vec![1, 4, 0, 0, 0, 0]].concat()).is_ok());
        assert_eq!(look(&[0x1e, 0].repeat(11)), Err(Refused::Silent));
    }

    #[test]
    fn a_router_alert_has_two_bytes() {
        assert_eq!(look(&[5, 3, 0, 0, 1, 0]).map(|passed| passed.router_alert), Err(Refused::Silent));
    }

    #[test]
    fn a_jumbogram_is_long_and_says_so_in_one_place_only() {
        let mut packet = packet_to(UNICAST, &[0xc2, 4, 0, 1, 0, 0]);
        assert_eq!(hop_by_hop(&packet), Err(Refused::Problem { code: 0, pointer: 42 }), "both lengths set");
        packet[4..6].fill(0);
        assert_eq!(hop_by_hop(&packet), Err(Refused::Silent), "cut");
        packet.resize(40 + 65_536 + 3, 0);
        assert_eq!(hop_by_hop(&packet).map(|passed| passed.jumbo), Ok(Some(65_536)));
        assert_eq!(look(&[0, 0xc2, 4, 0, 1, 0, 0, 1, 5, 0, 0, 0, 0, 0]), Err(Refused::Silent), "not aligned");
    }

    #[test]
    fn destination_options_are_judged_by_their_types_alone() {
        let options = |bytes: &[u8]| destination(&packet_to(UNICAST, bytes), 40);
        let home = [&[0xc9, 16][..], &[7; 16], &[1, 2, 0, 0]].concat();
        assert_eq!(options(&home), Err(Refused::Problem { code: 2, pointer: 42 }));
        assert_eq!(options(&[0xc2, 4, 0, 0, 0, 40]), Err(Refused::Problem { code: 2, pointer: 42 }));
        assert_eq!(options(&[5, 3, 0, 0, 1, 0]).map(|passed| passed.len), Ok(8));
    }

    #[test]
    fn options_of_any_bytes_are_survived() {
        use proptest::prelude::*;
        proptest!(|(bytes in proptest::collection::vec(any::<u8>(), 0..200), at in 0usize..220)| {
            let _ = (hop_by_hop(&bytes), destination(&bytes, at));
        });
    }
}

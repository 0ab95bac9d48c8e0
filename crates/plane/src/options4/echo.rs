//! The options that an ICMP answer carries back to the sender.

use std::ops::Deref;

use super::{END, Here, Options, address_at, advance, format, put};

/// The options of an answer, to stand behind its IPv4 header. Dereferences to the bytes, a multiple of 4, at most 40.
#[derive(Clone, Copy, Debug)]
pub struct Echoed {
    bytes: [u8; 40],
    len: usize,
}

impl Echoed {
    fn push(&mut self, option: &[u8]) -> Option<&mut [u8]> {
        let to = self.bytes.get_mut(self.len..self.len + option.len())?;
        to.copy_from_slice(option);
        self.len += option.len();
        Some(to)
    }
}

impl Deref for Echoed {
    type Target = [u8];

    fn deref(&self) -> &[u8] {
        self.bytes.get(..self.len).unwrap_or_default()
    }
}

/// The options that an ICMP answer to `packet` carries back (RFC 1122 §3.2.2.6): record route, time stamp and CIPSO, the first two filled in
/// once more with the source and the time of the answer. `options` is what [`compile`](super::compile) found in it. A source route is not
/// reversed: a packet with one is refused. Linux's `__ip_options_echo` and `ip_options_build`.
///
/// None when an option has room for less than it wants, and then there is no answer at all.
pub fn echo(packet: &[u8], options: &Options, here: &Here<'_>) -> Option<Echoed> {
    let mut answer = Echoed { bytes: [END; 40], len: 0 };
    let original = |at: u8| {
        let at = usize::from(at);
        packet.get(at..at + usize::from(*packet.get(at + 1)?))
    };
    if let Some(at) = options.record_route {
        let option = answer.push(original(at)?)?;
        let pointer = *option.get(2)?;
        if options.recorded && usize::from(pointer) <= option.len() {
            put(option, pointer, (here.address)().octets())?;
            advance(option, 4);
        }
    }
    if let Some(at) = options.timestamp {
        stamp_answer(answer.push(original(at)?)?, options, here)?;
    }
    if let Some(at) = options.cipso {
        answer.push(original(at)?)?;
    }
    answer.len = answer.len.next_multiple_of(4);
    Some(answer)
}

fn stamp_answer(option: &mut [u8], options: &Options, here: &Here<'_>) -> Option<()> {
    let &[_, _, mut pointer, format, ..] = &*option else { return None };
    if usize::from(pointer) > option.len() {
        return Some(());
    }
    if options.stamped_address {
        put(option, pointer, (here.address)().octets())?;
        pointer += 4;
        advance(option, 4);
    }
    let time = here.milliseconds.to_be_bytes();
    if options.stamped_time && format & 15 != format::PRESPECIFIED {
        put(option, pointer, time)?;
        advance(option, 4);
    } else if options.stamped_time {
        // As on receipt, the time goes in where the next prespecified address is one of ours.
        address_at(option, pointer)?;
        if usize::from(pointer) + 7 <= option.len() && address_at(option, pointer).is_some_and(|next| !(here.is_elsewhere)(next)) {
            put(option, pointer + 4, time)?;
            advance(option, 8);
        }
    }
    Some(())
}

#[cfg(test)]
mod tests {
    use super::super::{compile, tests::packet};
    use super::*;
    use std::net::Ipv4Addr;

    const OWN: Ipv4Addr = Ipv4Addr::new(10, 81, 2, 33);
    const OUT: Ipv4Addr = Ipv4Addr::new(172, 29, 7, 91);

    fn answer(options: &[u8]) -> Option<Vec<u8>> {
        let mut packet = packet(options);
        let found = compile(&mut packet, &Here { address: &|| OWN, is_elsewhere: &|a| a != OWN, milliseconds: 7 }).unwrap();
        let leaving = Here { address: &|| OUT, is_elsewhere: &|a| a != OWN, milliseconds: 8 };
        echo(&packet, &found, &leaving).map(|echoed| echoed.to_vec())
    }

    #[test]
    fn a_record_route_holds_the_way_in_and_the_way_out() {
        let answered = answer(&[7, 15, 4, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0]).unwrap();
        assert_eq!(answered, [7, 15, 12, 10, 81, 2, 33, 172, 29, 7, 91, 0, 0, 0, 0, 0]);
        assert_eq!(answer(&[7, 7, 4, 0, 0, 0, 0]).unwrap(), [7, 7, 8, 10, 81, 2, 33, 0], "full after the way in");
    }

    #[test]
    fn a_time_stamp_holds_both_times() {
        let answered = answer(&[68, 12, 5, 0, 0, 0, 0, 0, 0, 0, 0, 0]).unwrap();
        assert_eq!(answered, [68, 12, 13, 0, 0, 0, 0, 7, 0, 0, 0, 8]);
        let answered = answer(&[68, 20, 5, 1, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0]).unwrap();
        assert_eq!(answered, [68, 20, 21, 1, 10, 81, 2, 33, 0, 0, 0, 7, 172, 29, 7, 91, 0, 0, 0, 8]);
        let twice = [68, 20, 5, 3, 10, 81, 2, 33, 0, 0, 0, 0, 10, 81, 2, 33, 0, 0, 0, 0];
        assert_eq!(answer(&twice).unwrap()[2..], [21, 3, 10, 81, 2, 33, 0, 0, 0, 7, 10, 81, 2, 33, 0, 0, 0, 8]);
    }

    #[test]
    fn there_is_no_answer_when_half_an_entry_is_left() {
        assert_eq!(answer(&[7, 9, 4, 0, 0, 0, 0, 0, 0]), None);
        assert_eq!(answer(&[68, 10, 5, 0, 0, 0, 0, 0, 0, 0]), None);
    }

    #[test]
    fn other_options_are_not_carried_back() {
        assert!(answer(&[148, 4, 0, 0, 0x88, 4, 0, 1]).unwrap().is_empty());
        assert_eq!(answer(&[1, 134, 8, 0, 0, 0, 1, 1, 2]).unwrap(), [134, 8, 0, 0, 0, 1, 1, 2]);
    }
}

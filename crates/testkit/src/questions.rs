//! Questions for neighbours, and which of them repeat an earlier one: what a timer sends again has no frame that causes it.

use std::collections::HashSet;
use wire::{EtherType, eth, ipv6, proto};

use crate::tags;

/// Opcode of an ARP request, at this place of the message (RFC 826).
const REQUEST: (usize, &[u8]) = (6, &[0, 1]);
/// Type of a neighbour solicitation (RFC 4861 §4.3).
const SOLICITATION: u8 = 135;

/// The questions that were asked.
#[derive(Clone, Debug, Default)]
pub struct Questions(HashSet<(String, Vec<u8>)>);

impl Questions {
    /// True for a question that left by the same port before; it is remembered.
    pub fn is_repeated(&mut self, port: &str, frame: &[u8]) -> bool {
        is_question(frame) && !self.0.insert((port.to_owned(), frame.to_vec()))
    }
}

fn is_question(frame: &[u8]) -> bool {
    let frame = &frame[tags::len(frame)..];
    let (Some(header), Some(packet)) = (eth::Header::read(frame), frame.get(eth::LEN..)) else { return false };
    match header.ethertype() {
        EtherType::ARP => packet.get(REQUEST.0..).is_some_and(|rest| rest.starts_with(REQUEST.1)),
        EtherType::IPV6 => packet.get(6) == Some(&proto::ICMP6) && packet.get(ipv6::LEN) == Some(&SOLICITATION),
        _ => false,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::addr;
    use crate::frame::{Ether, Icmp6, Ipv6, Udp};

    #[test]
    fn a_question_asked_again_by_the_same_port_is_repeated() {
        let mut questions = Questions::default();
        let question = (Ether::test() / Ipv6::new(addr::v6(1), addr::v6(2)) / Icmp6::error(SOLICITATION, 0, 0)).bytes();
        let answer = (Ether::test() / Ipv6::new(addr::v6(1), addr::v6(2)) / Udp::new(1, 2)).bytes();
        assert!(!questions.is_repeated("e0", &question));
        assert!(!questions.is_repeated("e1", &question));
        assert!(questions.is_repeated("e0", &question));
        assert!(!questions.is_repeated("e0", &answer) && !questions.is_repeated("e0", &answer));
        assert!(!questions.is_repeated("e0", &[]));
    }
}

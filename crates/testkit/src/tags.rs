//! VLAN tags of frames.

use wire::{EtherType, eth};

/// Bytes of a tag.
const TAG: usize = 4;

/// Bytes of the tags that a frame bears: from there on it looks as if it had none, but for its addresses.
pub fn len(frame: &[u8]) -> usize {
    let type_at = |at: usize| frame.get(at..at + 2).map(|field| EtherType(u16::from_be_bytes([field[0], field[1]])));
    let tags = (eth::LEN - 2..).step_by(TAG).take_while(|at| matches!(type_at(*at), Some(EtherType::VLAN | EtherType::QINQ)));
    (tags.count() * TAG).min(frame.len())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::addr;
    use crate::frame::{Ether, Ipv6, Udp, Vlan};

    #[test]
    fn tags_are_counted_up_to_the_first_other_type() {
        let (ip, udp) = (|| Ipv6::new(addr::v6(1), addr::v6(2)), || Udp::new(1, 2));
        let plain = (Ether::test() / ip() / udp()).bytes();
        let tagged = (Ether::test() / Vlan::new(7) / Vlan::new(9) / ip() / udp()).bytes();
        assert_eq!((len(&plain), len(&tagged), len(&tagged[..20])), (0, 8, 8));
        assert_eq!(tagged[len(&tagged) + 12..], plain[12..]);
        assert_eq!((len(&[]), len(&plain[..13])), (0, 0));
    }
}

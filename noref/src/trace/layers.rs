//! The Internet headers of a frame, one inside the other: what a filter looks at.

use std::net::IpAddr;

use wire::ext::{self, Target};
use wire::{EtherType, eth, ipv4, ipv6, proto};

/// Headers inside headers that are looked at.
const DEPTH: usize = 4;
/// Bytes of a VLAN tag.
const TAG: usize = 4;

/// One IP header.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Layer {
    pub src: IpAddr,
    pub dst: IpAddr,
    /// Protocols of the extension headers, a bit each, and of what follows them.
    extensions: u8,
    pub upper: u8,
}

/// Protocols that an IPv6 header chain may name in front of the upper layer, in the order of the bits of [`Layer::extensions`].
const EXTENSIONS: [u8; 5] = [proto::HOP_BY_HOP, proto::ROUTING, proto::FRAGMENT, proto::AH, proto::DEST_OPTS];

impl Layer {
    /// True when a header of this protocol follows the IP header, with others between them or not.
    pub fn carries(&self, number: u8) -> bool {
        let extension = EXTENSIONS.iter().position(|known| *known == number);
        self.upper == number || extension.is_some_and(|bit| self.extensions & 1 << bit != 0)
    }
}

/// The IP headers of an Ethernet frame, outermost first. Damaged bytes end them.
pub fn layers(frame: &[u8]) -> Vec<Layer> {
    let mut layers = Vec::new();
    let mut rest = ethernet(frame);
    while let Some((ethertype, packet)) = rest.take()
        && layers.len() < DEPTH
    {
        let found = match ethertype {
            EtherType::IPV4 => ip4(packet),
            EtherType::IPV6 => ip6(packet),
            _ => None,
        };
        let Some((layer, behind)) = found else { break };
        layers.push(layer);
        rest = match layer.upper {
            proto::IPIP => Some((EtherType::IPV4, behind)),
            proto::IPV6 => Some((EtherType::IPV6, behind)),
            proto::ETHERNET => ethernet(behind),
            _ => None,
        };
    }
    layers
}

/// What an Ethernet frame carries behind its VLAN tags.
fn ethernet(frame: &[u8]) -> Option<(EtherType, &[u8])> {
    let mut ethertype = eth::Header::read(frame)?.ethertype();
    let mut packet = frame.get(eth::LEN..)?;
    while matches!(ethertype, EtherType::VLAN | EtherType::QINQ) {
        let [_, _, high, low] = *packet.first_chunk::<TAG>()?;
        ethertype = EtherType(u16::from_be_bytes([high, low]));
        packet = packet.get(TAG..)?;
    }
    Some((ethertype, packet))
}

fn ip4(packet: &[u8]) -> Option<(Layer, &[u8])> {
    let header = ipv4::Header::read(packet)?;
    let layer = Layer { src: header.src().into(), dst: header.dst().into(), extensions: 0, upper: header.proto };
    // What follows in a later fragment is no header.
    let later = header.flags_offset() & ipv4::OFFSET != 0;
    let behind = if later { None } else { packet.get(header.header_len().max(ipv4::LEN)..) };
    Some((layer, behind.unwrap_or_default()))
}

fn ip6(packet: &[u8]) -> Option<(Layer, &[u8])> {
    let header = ipv6::Header::read(packet)?;
    let has = |number: u8| ext::find(packet, Target::Proto(number)).is_ok();
    let extensions = (0..).zip(EXTENSIONS).filter(|(_, number)| has(*number)).map(|(bit, _)| 1 << bit).sum();
    let (upper, behind) = match ext::find(packet, Target::Upper) {
        Ok(found) if found.fragment_offset == 0 => (found.proto, packet.get(found.offset..)),
        Ok(found) => (found.proto, None),
        Err(_) => (header.next_header, None),
    };
    Some((Layer { src: header.src().into(), dst: header.dst().into(), extensions, upper }, behind.unwrap_or_default()))
}

#[cfg(test)]
mod tests {
    use testkit::frame::{Ether, Ipv4, Ipv6, Srh, Tcp, Udp};
    use testkit::{addr, frame::Vlan};

    use super::*;

    #[test]
    fn headers_inside_headers_are_found() {
        let path = [addr::sid(1), addr::sid(2)];
        let inside = Ipv4::new("192.0.2.1".parse().unwrap(), "198.51.100.9".parse().unwrap()).options(&[1; 4]);
        let outside = Ether::test() / Vlan::new(7) / Ipv6::new(addr::v6(1), path[0]) / Srh::through(&path);
        let layers = layers(&(outside / inside / Tcp::syn(1, 2)).bytes());
        let [first, second] = layers.as_slice() else { panic!("{layers:?}") };
        assert_eq!((first.src, first.dst), (addr::v6(1).into(), path[0].into()));
        assert!(first.carries(proto::ROUTING) && first.carries(proto::IPIP) && !first.carries(proto::TCP));
        assert_eq!(second.dst.to_string(), "198.51.100.9");
        assert!(second.carries(proto::TCP) && !second.carries(proto::ROUTING));
    }

    #[test]
    fn damaged_frames_have_as_many_headers_as_can_be_read() {
        let whole = (Ether::test() / Ipv6::test() / Ipv6::test() / Udp::new(1, 2) / b"data").bytes();
        assert_eq!(layers(&whole).len(), 2);
        for len in 0..whole.len() {
            let few = layers(&whole[..len]).len();
            assert_eq!(few, usize::from(len >= 14 + 40) + usize::from(len >= 14 + 80), "{len} bytes");
        }
        let endless = (0..20).fold(Ether::test() / Ipv6::test(), |frame, _| frame / Ipv6::test());
        assert_eq!(layers(&endless.bytes()).len(), DEPTH);
    }
}

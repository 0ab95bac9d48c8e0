//! Which frames come up to noref. All others go on to the kernel, as if nobody were there.
//!
//! ```text
//! too short, or not to the port's MAC            → kernel
//! tags (at most two) that are nobody's           → kernel
//! neither IPv4 nor IPv6 (ARP, LLDP …)            → kernel
//! to an own address                              → kernel
//! to a multicast or broadcast address            → kernel
//! IPv6 to a link-local address                   → kernel
//! ICMPv6 types 133–137 (neighbour discovery)     → kernel
//! the frame's queue has no socket                → kernel
//! else                                           → the socket of the queue
//! ```
//!
//! An address is *own* when it stands in a map for every VRF, or for the one that the frame is in: the port's, or that of the VLAN sub-interface that its tags
//! lead to, which stands in another map. The control plane keeps them current: SIDs and the ends of tunnels that noref serves do not, whatever
//! the kernel thinks of them. Fragments and options are no reason to stay below.
//!
//! That is for a router beside the kernel ([`Takes::Forwarded`]). One that is alone on its devices answers for its addresses and asks for its neighbours
//! itself: every frame comes up ([`Takes::Everything`]).

use std::net::IpAddr;
use std::os::fd::{AsRawFd, BorrowedFd};

use super::bpf::{BpfError, Map, MapKind, Program};
use super::context::PASS;
use super::filter_code::{VRF, assemble, assemble_all};
use super::switch::Switch;

/// Own addresses of one family that there is room for.
const ADDRESSES: u32 = 65_536;
/// Tags, or pairs of them, that there is room for.
const VLANS: u32 = 16_384;

/// The tags of a frame, the outermost first: protocol (EtherType) and VLAN number. The second is [`NO_TAG`] where there is one only.
pub type Tags = [(u16, u16); 2];
/// No tag.
pub const NO_TAG: (u16, u16) = (0, 0);

/// Which frames come up.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum Takes {
    /// Those to be forwarded; the host's own stay in the kernel.
    #[default]
    Forwarded,
    /// All, also those to other stations: the device is in promiscuous mode. The kernel gets none, whatever addresses it has.
    Everything,
}

/// The program and what it reads. One for each device; the maps can change while frames pass.
#[derive(Debug)]
pub struct Filter {
    code: Program,
    switch: Switch,
    sockets: Map,
    station: Map,
    vlans: Map,
    own4: Map,
    own6: Map,
}

impl Filter {
    /// A filter for a device with this MAC and number of receive queues. Until a queue has its socket, its frames go to the kernel.
    ///
    /// # Errors
    /// When the kernel refuses a map or the program.
    pub fn new(takes: Takes, mac: [u8; 6], queues: u32) -> Result<Filter, BpfError> {
        Filter::with_fallback(takes, mac, queues, PASS)
    }

    fn with_fallback(takes: Takes, mac: [u8; 6], queues: u32, without_socket: i32) -> Result<Filter, BpfError> {
        let sockets = Map::new(MapKind::Sockets, "noref_sockets", 4, 4, queues.max(1))?;
        let station = Map::new(MapKind::Array, "noref_station", 4, 12, 1)?;
        let vlans = Map::new(MapKind::Hash, "noref_vlans", 8, 4, VLANS)?;
        let own4 = Map::new(MapKind::Hash, "noref_own4", 8, 1, ADDRESSES)?;
        let own6 = Map::new(MapKind::Hash, "noref_own6", 20, 1, ADDRESSES)?;
        let code = match takes {
            Takes::Forwarded => assemble(&sockets, &station, &vlans, &own4, &own6, without_socket),
            Takes::Everything => assemble_all(&sockets, without_socket),
        };
        let code = code.map_err(BpfError::assembling("the filter"))?;
        let code = Program::load("noref_filter", &code)?;
        let switch = Switch::new(&code)?;
        let filter = Filter { code, switch, sockets, station, vlans, own4, own6 };
        filter.set_station(mac, 0)?;
        Ok(filter)
    }

    /// The program, to be attached.
    pub fn program(&self) -> &Program {
        self.switch.entry()
    }

    /// All frames go to the kernel until [`Filter::go_on`]. Those that came up before are in the sockets' rings still.
    ///
    /// # Errors
    /// When the kernel refuses.
    pub fn pause(&self) -> Result<(), BpfError> {
        self.switch.off()
    }

    /// Frames come up again.
    ///
    /// # Errors
    /// When the kernel refuses.
    pub fn go_on(&self) -> Result<(), BpfError> {
        self.switch.on(&self.code)
    }

    /// The device has this MAC and is in the VRF of this table, 0 for none.
    ///
    /// # Errors
    /// When the kernel refuses.
    pub fn set_station(&self, mac: [u8; 6], vrf: u32) -> Result<(), BpfError> {
        let [a, b, c, d, e, f] = mac;
        let mut value = [a, b, c, d, e, f, 0, 0, 0, 0, 0, 0];
        value[VRF as usize..].copy_from_slice(&vrf.to_ne_bytes());
        self.station.insert(&[0; 4], &value)
    }

    /// Frames with these tags, and no others behind them, are those of a VLAN sub-interface in the VRF of this table, 0 for none.
    ///
    /// # Errors
    /// When there is no room: 16384 tags or pairs of them.
    pub fn set_vlan(&self, tags: Tags, vrf: u32) -> Result<(), BpfError> {
        self.vlans.insert(&tags_key(tags), &vrf.to_ne_bytes())
    }

    /// Frames with these tags stay in the kernel; false when they did.
    ///
    /// # Errors
    /// When the kernel refuses.
    pub fn remove_vlan(&self, tags: Tags) -> Result<bool, BpfError> {
        self.vlans.remove(&tags_key(tags))
    }

    /// The host has this address in the VRF of this table, with 0 in all: what is sent to it stays in the kernel.
    ///
    /// # Errors
    /// When there is no room: 65536 addresses a family.
    pub fn add_own(&self, vrf: u32, address: IpAddr) -> Result<(), BpfError> {
        let (own, key) = self.own(vrf, address);
        own.insert(&key, &[1])
    }

    /// The host has this address there no longer; false when it had not.
    ///
    /// # Errors
    /// When the kernel refuses.
    pub fn remove_own(&self, vrf: u32, address: IpAddr) -> Result<bool, BpfError> {
        let (own, key) = self.own(vrf, address);
        own.remove(&key)
    }

    /// Where an address stands.
    fn own(&self, vrf: u32, address: IpAddr) -> (&Map, Vec<u8>) {
        let vrf = vrf.to_ne_bytes();
        match address {
            IpAddr::V4(address) => (&self.own4, [&vrf[..], &address.octets()].concat()),
            IpAddr::V6(address) => (&self.own6, [&vrf[..], &address.octets()].concat()),
        }
    }

    /// Frames of this receive queue go to this AF_XDP socket.
    ///
    /// # Errors
    /// When the device has no such queue or the socket no receive ring.
    pub fn set_socket(&self, queue: u32, socket: BorrowedFd<'_>) -> Result<(), BpfError> {
        self.sockets.insert(&queue.to_ne_bytes(), &socket.as_raw_fd().to_ne_bytes())?;
        self.switch.close_first();
        Ok(())
    }

    /// Frames of this receive queue go to the kernel.
    ///
    /// # Errors
    /// When the kernel refuses.
    pub fn clear_socket(&self, queue: u32) -> Result<(), BpfError> {
        self.sockets.remove(&queue.to_ne_bytes()).map(|_| ())
    }
}

/// Protocols as they stand in the frame, numbers as numbers.
fn tags_key(tags: Tags) -> [u8; 8] {
    let mut key = [0; 8];
    for ((protocol, id), place) in tags.into_iter().zip(key.chunks_exact_mut(4)) {
        place[..2].copy_from_slice(&protocol.to_be_bytes());
        place[2..].copy_from_slice(&id.to_ne_bytes());
    }
    key
}

#[cfg(test)]
mod tests {
    use super::super::bpf::allowed;
    use super::*;

    use std::net::{Ipv4Addr, Ipv6Addr};

    const MAC: [u8; 6] = [2, 0, 0, 0, 0x0e, 1];

    fn frame(to: [u8; 6], ether_type: u16, payload: &[u8]) -> Vec<u8> {
        [&to[..], &[2, 0, 0, 0, 0x0f, 9], &ether_type.to_be_bytes(), payload].concat()
    }

    fn ip4(to: [u8; 4]) -> Vec<u8> {
        let to = Ipv4Addr::from(to).octets();
        frame(MAC, 0x0800, &[&[0x45, 0, 0, 20, 0, 0, 0, 0, 64, 17, 0, 0, 192, 0, 2, 7][..], &to].concat())
    }

    fn ip6(to: &str, next: u8, payload: &[u8]) -> Vec<u8> {
        let (from, to): (Ipv6Addr, Ipv6Addr) = ("2001:db8:1::2".parse().unwrap(), to.parse().unwrap());
        frame(MAC, 0x86dd, &[&[0x60, 0, 0, 0, 0, 8, next, 64][..], &from.octets(), &to.octets(), payload].concat())
    }

    /// A filter that answers `XDP_ABORTED` where it would redirect, so that no socket is needed to see it. None where the kernel lets us not.
    fn filter() -> Option<Filter> {
        allowed(Filter::with_fallback(Takes::Forwarded, MAC, 4, 0))
    }

    fn comes_up(filter: &Filter, frame: &[u8]) -> bool {
        match filter.program().answer(frame).unwrap() {
            0 => true,
            2 => false,
            other => panic!("the program answers {other}"),
        }
    }

    #[test]
    fn what_is_forwarded_comes_up_and_all_else_stays_in_the_kernel() {
        let Some(filter) = filter() else { return };
        filter.add_own(0, "10.0.1.1".parse().unwrap()).unwrap();
        filter.add_own(0, "2001:db8:5::1".parse().unwrap()).unwrap();
        let udp = [0; 8];
        let cases = [
            ("IPv4", true, ip4([10, 0, 1, 2])),
            ("IPv4 to an own address", false, ip4([10, 0, 1, 1])),
            ("IPv4 multicast", false, ip4([239, 1, 2, 3])),
            ("IPv4 broadcast", false, ip4([255; 4])),
            ("IPv4 of class E", true, ip4([240, 1, 2, 3])),
            ("IPv4 that is cut off", false, ip4([10, 0, 1, 2])[..33].to_vec()),
            ("IPv6", true, ip6("2001:db8:5::2", 17, &udp)),
            ("IPv6 with nothing behind it", true, ip6("2001:db8:5::2", 59, &[])),
            ("IPv6 that is cut off", false, ip6("2001:db8:5::2", 59, &[])[..53].to_vec()),
            ("IPv6 to an own address", false, ip6("2001:db8:5::1", 17, &udp)),
            ("IPv6 with a segment list", true, ip6("fc00:0:1::", 43, &[4; 24])),
            ("IPv6 fragment", true, ip6("2001:db8:5::2", 44, &udp)),
            ("IPv6 multicast", false, ip6("ff0e::7", 17, &udp)),
            ("IPv6 link-local", false, ip6("febf::7", 17, &udp)),
            ("IPv6 next to link-local", true, ip6("fec0::7", 17, &udp)),
            ("echo request", true, ip6("2001:db8:5::2", 58, &[128, 0, 0, 0])),
            ("neighbour solicitation", false, ip6("2001:db8:5::2", 58, &[135, 0, 0, 0])),
            ("redirect", false, ip6("2001:db8:5::2", 58, &[137, 0, 0, 0])),
            ("ICMPv6 behind the redirect", true, ip6("2001:db8:5::2", 58, &[138, 0, 0, 0])),
            ("ICMPv6 without a type", false, ip6("2001:db8:5::2", 58, &[])),
            ("ARP", false, frame(MAC, 0x0806, &[0; 46])),
            ("VLAN", false, frame(MAC, 0x8100, &[0; 46])),
            ("another station", false, frame([2, 0, 0, 0, 0x0e, 2], 0x0800, &ip4([10, 0, 1, 2])[14..])),
            ("another station of the same end", false, frame([3, 0, 0, 0, 0x0e, 1], 0x0800, &ip4([10, 0, 1, 2])[14..])),
            ("all stations", false, frame([0xff; 6], 0x0800, &ip4([10, 0, 1, 2])[14..])),
        ];
        for (what, expected, frame) in cases {
            assert_eq!(comes_up(&filter, &frame), expected, "{what}");
        }
    }

    /// A frame with these tags, each in front of the one before it, with all priority bits set.
    fn tagged(frame: &[u8], tags: &[(u16, u16)]) -> Vec<u8> {
        let (addresses, rest) = frame.split_at(12);
        let tags: Vec<u8> = tags.iter().flat_map(|(protocol, id)| [protocol.to_be_bytes(), (0xf000 | id).to_be_bytes()].concat()).collect();
        [addresses, &tags, rest].concat()
    }

    const Q10: (u16, u16) = (0x8100, 10);
    const AD7: (u16, u16) = (0x88a8, 7);

    #[test]
    fn frames_with_tags_are_those_of_their_vlan() {
        let Some(filter) = filter() else { return };
        filter.set_vlan([Q10, NO_TAG], 0).unwrap();
        filter.set_vlan([AD7, Q10], 99).unwrap();
        filter.add_own(0, "10.0.1.1".parse().unwrap()).unwrap();
        filter.add_own(99, "10.0.1.2".parse().unwrap()).unwrap();
        filter.add_own(99, "2001:db8:5::1".parse().unwrap()).unwrap();
        let discovery = ip6("2001:db8:5::2", 58, &[135, 0, 0, 0]);
        let cases = [
            ("a VLAN's", true, tagged(&ip4([10, 0, 1, 9]), &[Q10])),
            ("a VLAN's IPv6", true, tagged(&ip6("2001:db8:5::2", 17, &[0; 8]), &[Q10])),
            ("to an own address", false, tagged(&ip4([10, 0, 1, 1]), &[Q10])),
            ("to an own address of another VRF", true, tagged(&ip4([10, 0, 1, 2]), &[Q10])),
            ("to an own address, two tags", false, tagged(&ip4([10, 0, 1, 2]), &[AD7, Q10])),
            ("to an address that is own in all VRFs, two tags", false, tagged(&ip4([10, 0, 1, 1]), &[AD7, Q10])),
            ("to an address that is not, two tags", true, tagged(&ip4([10, 0, 1, 3]), &[AD7, Q10])),
            ("to an own IPv6 address, two tags", false, tagged(&ip6("2001:db8:5::1", 17, &[0; 8]), &[AD7, Q10])),
            ("neighbour discovery", false, tagged(&discovery, &[Q10])),
            ("ARP", false, tagged(&frame(MAC, 0x0806, &[0; 46]), &[Q10])),
            ("another number", false, tagged(&ip4([10, 0, 1, 9]), &[(0x8100, 11)])),
            ("another protocol", false, tagged(&ip4([10, 0, 1, 9]), &[(0x88a8, 10)])),
            ("a tag too many", false, tagged(&ip4([10, 0, 1, 9]), &[Q10, Q10])),
            ("the outer tag alone", false, tagged(&ip4([10, 0, 1, 9]), &[AD7])),
            ("three tags", false, tagged(&ip4([10, 0, 1, 9]), &[AD7, Q10, Q10])),
            ("another station", false, tagged(&frame([2, 0, 0, 0, 0x0e, 2], 0x0800, &ip4([10, 0, 1, 9])[14..]), &[Q10])),
            ("IPv4 that is cut off", false, tagged(&ip4([10, 0, 1, 9])[..33], &[Q10])),
            ("IPv4 that is not cut off", true, tagged(&ip4([10, 0, 1, 9])[..34], &[Q10])),
            ("IPv6 that is cut off", false, tagged(&ip6("2001:db8:5::2", 59, &[])[..53], &[AD7, Q10])),
            ("tags alone", false, [tagged(&ip4([10, 0, 1, 9]), &[AD7, Q10])[..22].to_vec(), vec![0; 12]].concat()),
        ];
        for (what, expected, frame) in cases {
            assert_eq!(comes_up(&filter, &frame), expected, "{what}");
        }
        assert!(filter.remove_vlan([Q10, NO_TAG]).unwrap());
        assert!(!comes_up(&filter, &tagged(&ip4([10, 0, 1, 9]), &[Q10])));
        assert!(comes_up(&filter, &ip4([10, 0, 1, 2])), "without a tag, in no VRF");
        filter.set_station(MAC, 99).unwrap();
        assert!(!comes_up(&filter, &ip4([10, 0, 1, 2])), "without a tag, in the VRF");
    }

    #[test]
    fn everything_comes_up_to_a_router_that_is_alone() {
        let Some(filter) = allowed(Filter::with_fallback(Takes::Everything, MAC, 4, 0)) else { return };
        filter.add_own(0, "10.0.1.1".parse().unwrap()).unwrap();
        for (what, frame) in [
            ("IPv4 to an own address", ip4([10, 0, 1, 1])),
            ("IPv4 multicast", ip4([239, 1, 2, 3])),
            ("neighbour solicitation", ip6("ff02::1:ff00:7", 58, &[135, 0, 0, 0])),
            ("ARP to all stations", frame([0xff; 6], 0x0806, &[0; 46])),
            ("another station", frame([2, 0, 0, 0, 0x0e, 2], 0x0800, &ip4([10, 0, 1, 2])[14..])),
            ("an Ethernet header alone", frame(MAC, 0x88b5, &[])),
        ] {
            assert!(comes_up(&filter, &frame), "{what}");
        }
    }

    #[test]
    fn addresses_and_the_mac_change_while_it_runs() {
        let Some(filter) = filter() else { return };
        let own = "10.0.1.2".parse().unwrap();
        assert!(comes_up(&filter, &ip4([10, 0, 1, 2])));
        filter.add_own(0, own).unwrap();
        assert!(!comes_up(&filter, &ip4([10, 0, 1, 2])));
        assert!(filter.remove_own(0, own).unwrap() && !filter.remove_own(0, own).unwrap());
        assert!(comes_up(&filter, &ip4([10, 0, 1, 2])));
        filter.set_station([2, 0, 0, 0, 0x0e, 7], 0).unwrap();
        assert!(!comes_up(&filter, &ip4([10, 0, 1, 2])));
    }

    #[test]
    fn a_queue_without_socket_leaves_its_frames_to_the_kernel() {
        if filter().is_none() {
            return;
        }
        let filter = Filter::new(Takes::Forwarded, MAC, 1).unwrap();
        assert_eq!(filter.program().answer(&ip4([10, 0, 1, 2])).unwrap(), PASS as u32);
        filter.clear_socket(0).unwrap();
        assert!(filter.clear_socket(1).is_err(), "there is no such queue");
    }
}

//! Network files for tests: the router of the golden cases, and one on which every address that a capture mentions is a SID or a headend.

use std::collections::BTreeSet;
use std::fmt::Write as _;
use std::net::{Ipv4Addr, Ipv6Addr};
use wire::{EtherType, Mac, eth, ipv4, ipv6, proto};

use crate::tags;

/// The Ethernet address of port e0 of every router here.
pub const E0: Mac = Mac([0x02, 0, 0, 0, 0x0e, 0]);

/// Every SRv6 behaviour in every form that this repository implements, as `ip route … encap seg6local action` takes it. Ports, tables and VRFs
/// are those of [`plain`] and [`with_every_behaviour`].
pub const BEHAVIOURS: &[&str] = &[
    "End count dev e0",
    "End flavors psp count dev e0",
    "End flavors next-csid lblen 32 nflen 16 count dev e0",
    "End flavors psp,next-csid lblen 16 nflen 8 count dev e0",
    "End.X nh6 fd00:1::2 count dev e1",
    "End.X nh6 fe80::21 count dev e1",
    "End.X nh6 fd00:2::2 flavors next-csid lblen 48 nflen 8 count dev e2",
    "End.T table 100 count dev e0",
    "End.DX2 oif e3 count dev e0",
    "End.DX4 nh4 10.0.1.2 count dev e1",
    "End.DX6 nh6 fd00:1::2 count dev e1",
    "End.DX6 nh6 :: count dev e1",
    "End.DT4 vrftable 10 count dev vrf10",
    "End.DT6 table 100 count dev e0",
    "End.DT6 vrftable 10 count dev vrf10",
    "End.DT46 vrftable 20 count dev vrf20",
    "End.B6 srh segs fc00:2::b,fc00:2::c count dev e0",
    "End.B6.Encaps srh segs fc00:2::b,fc00:2::c count dev e0",
];

/// Every headend mode, as `ip route … encap seg6` takes it; the last one is for IPv6 only.
pub const HEADENDS: &[&str] = &[
    "mode encap segs fc00:2::1 dev e1",
    "mode encap segs fc00:2::1,fc00:3::2,fc00:2::3 dev e1",
    "mode encap.red segs fc00:2::1 dev e1",
    "mode encap.red segs fc00:2::1,fc00:3::2,fc00:2::3 dev e1",
    "mode l2encap segs fc00:2::1,fc00:3::2 dev e1",
    "mode l2encap.red segs fc00:2::1 dev e1",
    "mode encap segs fc00:2::1,fc00:3::2 hmac 7 dev e1",
    "mode inline segs fc00:2::1,fc00:3::2 dev e1",
];

/// The router of the golden cases: ports e0 to e3 with a neighbour on each, and a way out for everything.
pub fn plain() -> String {
    let mut net = String::new();
    for port in 0..4 {
        let _ = write!(
            net,
            "ip link set e{port} address 02:00:00:00:0e:0{port} mtu 1500 up\n\
             sysctl -w net.ipv6.conf.e{port}.seg6_enabled=1\n\
             ip addr add 10.0.{port}.1/24 dev e{port}\n\
             ip -6 addr add fd00:{port}::1/64 dev e{port} nodad\n\
             ip -6 addr add fe80::1{port}/64 dev e{port} nodad\n\
             ip neigh replace 10.0.{port}.2 lladdr 02:00:00:00:0f:0{port} dev e{port} nud permanent\n\
             ip -6 neigh replace fd00:{port}::2 lladdr 02:00:00:00:0f:0{port} dev e{port} nud permanent\n\
             ip -6 neigh replace fe80::2{port} lladdr 02:00:00:00:0f:0{port} dev e{port} nud permanent\n",
        );
    }
    net.push_str(
        "sysctl -w net.ipv4.ip_forward=1\n\
         sysctl -w net.ipv6.conf.all.forwarding=1\n\
         sysctl -w net.ipv6.conf.all.seg6_enabled=1\n\
         ip link set lo up\n\
         ip -6 addr add fd00:ffff::1/128 dev lo\n\
         ip sr tunsrc set fd00:ffff::1\n\
         ip -6 route add fc00:2::/32 via fd00:1::2 dev e1\n\
         ip -6 route add fc00:3::/32 via fd00:2::2 dev e2\n\
         ip -6 route add default via fd00:2::2 dev e2\n\
         ip route add default via 10.0.2.2 dev e2\n",
    );
    net
}

/// VLANs of the golden cases: with one tag and with two, on e0 and, as a way out, on e1; one of them in a VRF, and a dummy device.
const VLANS: &str = "\
ip link add link e0 name e0.10 up type vlan id 10 ingress-qos-map 3:6
ip link add link e0 name e0.20 up type vlan id 20
ip link add link e0 name e0s up type vlan protocol 802.1ad id 100
ip link add link e0s name e0s.10 up type vlan id 10
ip link add link e1 name e1.30 up type vlan id 30 egress-qos-map 6:5
ip link set e0.20 master vrf20
ip addr add 10.30.10.1/24 dev e0.10
ip -6 addr add fd30:10::1/64 dev e0.10 nodad
ip addr add 10.30.30.1/24 dev e1.30
ip -6 addr add fd30:30::1/64 dev e1.30 nodad
ip neigh replace 10.30.30.2 lladdr 02:00:00:00:0f:01 dev e1.30 nud permanent
ip -6 neigh replace fd30:30::2 lladdr 02:00:00:00:0f:01 dev e1.30 nud permanent
ip link add d0 up type dummy
ip route add table 20 default via 10.30.30.2 dev e1.30
ip -6 route add table 100 default via fd30:30::2 dev e1.30
ip route add 10.30.20.0/24 dev d0
";

/// [`plain`] with two VRFs and VLANs, and with a behaviour or a headend on each address: address `k` gets number `k + shift`, so that as many shifts as
/// there are entries let every address meet every one. IPv6 addresses are SIDs three times out of four, else headends.
pub fn with_every_behaviour(destinations: &Destinations, shift: usize) -> String {
    let mut net = plain();
    net.push_str(
        "sysctl -w net.vrf.strict_mode=1\n\
         ip sr hmac set 7 sha256 a-secret-for-tests\n\
         ip link add vrf10 type vrf table 10\n\
         ip link add vrf20 type vrf table 20\n\
         ip link set vrf10 up\n\
         ip link set vrf20 up\n\
         ip link set e3 master vrf10\n\
         ip -6 addr replace fd00:3::1/64 dev e3 nodad\n\
         ip route add table 10 default via 10.0.3.2 dev e3\n\
         ip -6 route add table 10 default dev e3\n",
    );
    net.push_str(VLANS);
    for (index, address) in destinations.v6.iter().enumerate() {
        let number = index + shift;
        if number % 4 == 3 {
            let _ = writeln!(net, "ip -6 route add {address} encap seg6 {}", HEADENDS[number / 4 % HEADENDS.len()]);
        } else {
            let _ = writeln!(net, "ip -6 route add {address} encap seg6local action {}", BEHAVIOURS[number % BEHAVIOURS.len()]);
        }
    }
    for (index, address) in destinations.v4.iter().enumerate() {
        let _ = writeln!(net, "ip route add {address} encap seg6 {}", HEADENDS[(index + shift) % (HEADENDS.len() - 1)]);
    }
    net
}

/// The destinations that frames mention and that can be routed to.
#[derive(Clone, Debug, Default)]
pub struct Destinations {
    /// IPv6 unicast destinations and segments.
    pub v6: BTreeSet<Ipv6Addr>,
    /// IPv4 unicast destinations.
    pub v4: BTreeSet<Ipv4Addr>,
}

impl Destinations {
    /// Takes the addresses out of one Ethernet frame.
    pub fn collect(&mut self, frame: &[u8]) {
        let frame = &frame[tags::len(frame)..];
        let Some(header) = eth::Header::read(frame) else { return };
        let packet = &frame[eth::LEN..];
        match header.ethertype() {
            EtherType::IPV4 => {
                if let Some(ip) = ipv4::Header::read(packet) {
                    self.add_v4(ip.dst());
                }
            }
            EtherType::IPV6 => {
                if let Some(ip) = ipv6::Header::read(packet) {
                    self.add_v6(ip.dst());
                    if ip.next_header == proto::ROUTING {
                        let srh = packet.get(ipv6::LEN..).unwrap_or_default();
                        (0..8).map_while(|index| wire::srh::segment(srh, index)).for_each(|segment| self.add_v6(segment));
                    }
                }
            }
            _ => {}
        }
    }

    /// The router's own addresses and links stay what they are in [`plain`], and fc00:2::/32 and fc00:3::/32 lead out.
    fn add_v6(&mut self, address: Ipv6Addr) {
        let [first, second, ..] = address.segments();
        let own = matches!((first, second), (0xfd00, _) | (0xfd30, 0x10 | 0x30) | (0xfc00, 2 | 3));
        let special = address.is_multicast() || address.is_loopback() || address.is_unspecified() || address.is_unicast_link_local();
        if !own && !special {
            self.v6.insert(address);
        }
    }

    fn add_v4(&mut self, address: Ipv4Addr) {
        let special = address.is_multicast()
            || address.is_loopback()
            || address.is_unspecified()
            || address.is_broadcast()
            || address.is_link_local()
            || address.octets()[0] == 0
            || address.octets()[0] >= 224;
        if !matches!(address.octets(), [10, 0 | 30, ..]) && !special {
            self.v4.insert(address);
        }
    }
}

/// The same frame, addressed to port e0 as a unicast one.
pub fn addressed_to_e0(mut frame: Vec<u8>) -> Vec<u8> {
    if let Some(dst) = frame.get_mut(..6) {
        dst.copy_from_slice(&E0.0);
    }
    frame
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::addr;
    use crate::frame::{Ether, Ipv6, Srh, Udp};

    #[test]
    fn destinations_are_the_active_segment_and_the_others() {
        let path = [addr::sid(1), addr::sid(2)];
        let mut found = Destinations::default();
        found.collect(&(Ether::test() / Ipv6::new(addr::v6(1), path[0]) / Srh::through(&path) / Udp::new(1, 2)).bytes());
        assert!(path.iter().all(|segment| found.v6.contains(segment)));
    }

    #[test]
    fn enough_shifts_let_an_address_meet_every_behaviour_and_headend() {
        let destinations = Destinations { v6: [addr::sid(1)].into(), v4: [addr::v4(1)].into() };
        let all: String = (0..36).map(|shift| with_every_behaviour(&destinations, shift)).collect();
        assert!(BEHAVIOURS.iter().all(|behaviour| all.contains(&format!("action {behaviour}\n"))));
        assert!(HEADENDS.iter().all(|headend| all.contains(&format!("seg6 {headend}\n"))));
    }
}

//! Which frames come up to noref. All others go on to the kernel, as if nobody were there.
//!
//! ```text
//! too short, or not to the port's MAC            → kernel
//! neither IPv4 nor IPv6 (ARP, VLAN, LLDP …)      → kernel
//! to an own address                              → kernel
//! to a multicast or broadcast address            → kernel
//! IPv6 to a link-local address                   → kernel
//! ICMPv6 types 133–137 (neighbour discovery)     → kernel
//! the frame's queue has no socket                → kernel
//! else                                           → the socket of the queue
//! ```
//!
//! An address is *own* when it stands in a map, which the control plane keeps current: SIDs and the ends of tunnels that noref serves do not, whatever
//! the kernel thinks of them. Fragments and options are no reason to stay below.
//!
//! That is for a router beside the kernel ([`Takes::Forwarded`]). One that is alone on its devices answers for its addresses and asks for its neighbours
//! itself: every frame comes up ([`Takes::Everything`]).

use std::net::IpAddr;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd};

use super::bpf::{BpfError, Map, MapKind, Program};
use super::switch::{PASS, Switch};
use super::{Alu, Asm, AsmError, Cond, Frame, Helper, Insn, Label, Reg, Size};

/// Own addresses of one family that there is room for.
const ADDRESSES: u32 = 65_536;

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
        let station = Map::new(MapKind::Array, "noref_station", 4, 8, 1)?;
        let own4 = Map::new(MapKind::Hash, "noref_own4", 4, 1, ADDRESSES)?;
        let own6 = Map::new(MapKind::Hash, "noref_own6", 16, 1, ADDRESSES)?;
        let code = match takes {
            Takes::Forwarded => assemble(&sockets, &station, &own4, &own6, without_socket),
            Takes::Everything => assemble_all(&sockets, without_socket),
        };
        let code = code.map_err(|error| BpfError::Call {
            what: "assembling the filter".to_owned(),
            source: std::io::Error::new(std::io::ErrorKind::InvalidInput, error),
        })?;
        let code = Program::load("noref_filter", &code)?;
        let switch = Switch::new(&code)?;
        let filter = Filter { code, switch, sockets, station, own4, own6 };
        filter.set_mac(mac)?;
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

    /// The device has another MAC now.
    ///
    /// # Errors
    /// When the kernel refuses.
    pub fn set_mac(&self, mac: [u8; 6]) -> Result<(), BpfError> {
        let [a, b, c, d, e, f] = mac;
        self.station.insert(&[0; 4], &[a, b, c, d, e, f, 0, 0])
    }

    /// The host has this address: what is sent to it stays in the kernel.
    ///
    /// # Errors
    /// When there is no room: 65536 addresses a family.
    pub fn add_own(&self, address: IpAddr) -> Result<(), BpfError> {
        match address {
            IpAddr::V4(address) => self.own4.insert(&address.octets(), &[1]),
            IpAddr::V6(address) => self.own6.insert(&address.octets(), &[1]),
        }
    }

    /// The host has this address no longer; false when it had not.
    ///
    /// # Errors
    /// When the kernel refuses.
    pub fn remove_own(&self, address: IpAddr) -> Result<bool, BpfError> {
        match address {
            IpAddr::V4(address) => self.own4.remove(&address.octets()),
            IpAddr::V6(address) => self.own6.remove(&address.octets()),
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

// Offsets in `struct xdp_md`.
const DATA: i16 = 0;
const DATA_END: i16 = 4;
const QUEUE: i16 = 16;
// Offsets in the frame.
const ETHER_TYPE: i16 = 12;
const IP: i16 = 14;
const DESTINATION4: i16 = IP + 16;
const END4: i32 = 34;
const NEXT_HEADER: i16 = IP + 6;
const DESTINATION6: i16 = IP + 24;
const END6: i32 = 54;
const ICMP6_TYPE: i16 = END6 as i16;
const ICMP6: i32 = 58;

/// The program that asks what the module's head says, in that order. R6 is the context, R7 the frame's first byte, R8 the one behind its last.
fn assemble(sockets: &Map, station: &Map, own4: &Map, own6: &Map, without_socket: i32) -> Result<Vec<Insn>, AsmError> {
    use Reg::*;
    let mut asm = Asm::default();
    let (pass, ipv6, redirect) = (asm.label(), asm.label(), asm.label());
    asm.alu64(Alu::Move, R6, R1);
    asm.load(Size::Word, R7, R6, DATA);
    asm.load(Size::Word, R8, R6, DATA_END);
    need(&mut asm, END4, pass);
    leave_other_stations(&mut asm, station, pass);

    asm.load(Size::Half, R2, R7, ETHER_TYPE);
    asm.network16(R2);
    asm.jump_if(Cond::Eq, R2, 0x86dd, ipv6);
    asm.jump_if(Cond::Ne, R2, 0x0800, pass);
    leave_ip4(&mut asm, own4, pass);
    asm.jump(redirect);

    asm.bind(ipv6);
    need(&mut asm, END6, pass);
    leave_ip6(&mut asm, own6, pass);

    asm.bind(redirect);
    to_socket(&mut asm, sockets, without_socket);

    asm.bind(pass);
    asm.alu64(Alu::Move, R0, PASS);
    asm.exit();
    asm.finish()
}

/// To `pass` unless the frame has `bytes`. The verifier accepts loads below them from here on.
fn need(asm: &mut Asm, bytes: i32, pass: Label) {
    asm.alu64(Alu::Move, Reg::R1, Reg::R7);
    asm.alu64(Alu::Add, Reg::R1, bytes);
    asm.jump_if(Cond::Gt, Reg::R1, Reg::R8, pass);
}

/// To `pass` with a frame that is not to the port's MAC.
fn leave_other_stations(asm: &mut Asm, station: &Map, pass: Label) {
    asm.map_value(Reg::R1, number(station), 0);
    for (size, offset) in [(Size::Word, 0), (Size::Half, 4)] {
        asm.load(size, Reg::R2, Reg::R1, offset);
        asm.load(size, Reg::R3, Reg::R7, offset);
        asm.jump_if(Cond::Ne, Reg::R2, Reg::R3, pass);
    }
}

/// To `pass` with an IPv4 packet that is multicast, broadcast or to an own address.
fn leave_ip4(asm: &mut Asm, own4: &Map, pass: Label) {
    use Reg::*;
    asm.load(Size::Word, R2, R7, DESTINATION4);
    asm.store(Size::Word, Frame, -4, R2);
    asm.network32(R2);
    asm.alu64(Alu::Move, R3, R2);
    asm.alu64(Alu::ShiftRight, R3, 28);
    asm.jump_if(Cond::Eq, R3, 0xe, pass);
    // The immediate of a 64-bit comparison would be sign-extended.
    asm.jump_if32(Cond::Eq, R2, -1, pass);
    leave_own(asm, own4, 4, pass);
}

/// To `pass` with an IPv6 packet that is multicast, to a link-local or an own address, or of neighbour discovery.
fn leave_ip6(asm: &mut Asm, own6: &Map, pass: Label) {
    use Reg::*;
    asm.load(Size::Half, R2, R7, DESTINATION6);
    asm.network16(R2);
    asm.jump_if(Cond::Ge, R2, 0xff00, pass);
    asm.alu64(Alu::And, R2, 0xffc0);
    asm.jump_if(Cond::Eq, R2, 0xfe80, pass);
    let no_discovery = asm.label();
    asm.load(Size::Byte, R2, R7, NEXT_HEADER);
    asm.jump_if(Cond::Ne, R2, ICMP6, no_discovery);
    need(asm, END6 + 1, pass);
    asm.load(Size::Byte, R2, R7, ICMP6_TYPE);
    asm.jump_if(Cond::Lt, R2, 133, no_discovery);
    asm.jump_if(Cond::Le, R2, 137, pass);
    asm.bind(no_discovery);
    // By words: the address is aligned to two bytes only, which not every machine loads eight of.
    for offset in [0, 4, 8, 12] {
        asm.load(Size::Word, R2, R7, DESTINATION6 + offset);
        asm.store(Size::Word, Frame, -16 + offset, R2);
    }
    leave_own(asm, own6, 16, pass);
}

/// To `pass` when the address at the end of the stack, of so many bytes, is in the map.
fn leave_own(asm: &mut Asm, own: &Map, bytes: i32, pass: Label) {
    asm.map(Reg::R1, number(own));
    asm.alu64(Alu::Move, Reg::R2, Frame);
    asm.alu64(Alu::Add, Reg::R2, -bytes);
    asm.call(Helper::MapLookup);
    asm.jump_if(Cond::Ne, Reg::R0, 0, pass);
}

/// The program that asks nothing.
fn assemble_all(sockets: &Map, without_socket: i32) -> Result<Vec<Insn>, AsmError> {
    let mut asm = Asm::default();
    asm.alu64(Alu::Move, Reg::R6, Reg::R1);
    to_socket(&mut asm, sockets, without_socket);
    asm.finish()
}

/// Ends a program: the frame of the context in R6 goes to the socket of its queue.
fn to_socket(asm: &mut Asm, sockets: &Map, without_socket: i32) {
    asm.map(Reg::R1, number(sockets));
    asm.load(Size::Word, Reg::R2, Reg::R6, QUEUE);
    asm.alu64(Alu::Move, Reg::R3, without_socket);
    asm.call(Helper::RedirectMap);
    asm.exit();
}

/// The number by which a program that is loaded names a map.
fn number(map: &Map) -> i32 {
    map.as_fd().as_raw_fd()
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
        filter.add_own("10.0.1.1".parse().unwrap()).unwrap();
        filter.add_own("2001:db8:5::1".parse().unwrap()).unwrap();
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

    #[test]
    fn everything_comes_up_to_a_router_that_is_alone() {
        let Some(filter) = allowed(Filter::with_fallback(Takes::Everything, MAC, 4, 0)) else { return };
        filter.add_own("10.0.1.1".parse().unwrap()).unwrap();
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
        filter.add_own(own).unwrap();
        assert!(!comes_up(&filter, &ip4([10, 0, 1, 2])));
        assert!(filter.remove_own(own).unwrap() && !filter.remove_own(own).unwrap());
        assert!(comes_up(&filter, &ip4([10, 0, 1, 2])));
        filter.set_mac([2, 0, 0, 0, 0x0e, 7]).unwrap();
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

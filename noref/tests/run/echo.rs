//! Echo requests, by raw sockets: a machine need not have `ping`.

use std::net::{IpAddr, UdpSocket};
use std::time::{Duration, Instant};

use nix::sys::socket::{AddressFamily, SockFlag, SockProtocol, SockType, socket};

/// How long an answer may take; neighbours are found out meanwhile.
const PATIENCE: Duration = Duration::from_secs(4);
/// Identifier of the requests.
const IDENTIFIER: u16 = 0x6e72;

/// Sends an echo request from the thread's namespace; true when it is answered.
pub fn ping(to: IpAddr, number: u16) -> bool {
    let (family, protocol, request, reply) = match to {
        IpAddr::V4(_) => (AddressFamily::Inet, SockProtocol::Icmp, 8, 0),
        IpAddr::V6(_) => (AddressFamily::Inet6, SockProtocol::IcmpV6, 128, 129),
    };
    // A raw socket has the calls of a UDP socket; only ports mean nothing.
    let socket = UdpSocket::from(socket(family, SockType::Raw, SockFlag::SOCK_CLOEXEC, protocol).expect("a raw socket"));
    socket.set_read_timeout(Some(PATIENCE)).unwrap();
    let mut message = vec![request, 0, 0, 0];
    message.extend([IDENTIFIER, number].iter().flat_map(|word| word.to_be_bytes()));
    message.extend((0..40_u8).map(|byte| byte.wrapping_mul(37)));
    if to.is_ipv4() {
        // In ICMPv6 the kernel does it: the addresses are in the sum.
        let sum: u32 = message.chunks(2).map(|pair| u32::from(pair[0]) << 8 | u32::from(pair[1])).sum();
        let sum = (sum & 0xffff) + (sum >> 16);
        message[2..4].copy_from_slice(&(!(sum as u16)).to_be_bytes());
    }
    socket.send_to(&message, (to, 0)).unwrap_or_else(|error| panic!("to {to}: {error}"));
    let begin = Instant::now();
    let mut bytes = [0; 2048];
    while begin.elapsed() < PATIENCE {
        let Ok((len, _)) = socket.recv_from(&mut bytes) else { return false };
        // IPv4 comes with its header.
        let header = if to.is_ipv4() { usize::from(bytes[0] & 15) * 4 } else { 0 };
        if bytes[..len].get(header).is_some_and(|kind| *kind == reply) && bytes[..len].get(header + 4..) == message.get(4..) {
            return true;
        }
    }
    false
}

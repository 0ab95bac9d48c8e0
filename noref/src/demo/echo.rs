//! Echo requests, by raw sockets: a machine need not have `ping`.

use std::io;
use std::net::{IpAddr, UdpSocket};
use std::time::{Duration, Instant};

use nix::sys::socket::{AddressFamily, SockFlag, SockProtocol, SockType, socket};
use wire::checksum::Sum;

/// Identifier of the requests.
const IDENTIFIER: u16 = 0x6e72;

/// An echo request.
pub struct Request {
    pub to: IpAddr,
    /// Its sequence number.
    pub number: u16,
    /// How long the answer may take.
    pub patience: Duration,
}

/// Sends a request from the thread's namespace; true when it is answered in time.
///
/// # Errors
/// When it cannot be sent.
pub fn answered(request: &Request) -> io::Result<bool> {
    let Request { to, number, patience } = *request;
    let (family, protocol, kind, reply) = match to {
        IpAddr::V4(_) => (AddressFamily::Inet, SockProtocol::Icmp, 8, 0),
        IpAddr::V6(_) => (AddressFamily::Inet6, SockProtocol::IcmpV6, 128, 129),
    };
    // A raw socket has the calls of a UDP socket; only ports mean nothing.
    let socket = UdpSocket::from(socket(family, SockType::Raw, SockFlag::SOCK_CLOEXEC, protocol)?);
    let message = message(kind, number, to.is_ipv4());
    let begin = Instant::now();
    socket.send_to(&message, (to, 0))?;
    let mut bytes = [0; 2048];
    while let Some(left) = patience.checked_sub(begin.elapsed()).filter(|left| !left.is_zero()) {
        socket.set_read_timeout(Some(left))?;
        let Ok((len, from)) = socket.recv_from(&mut bytes) else { return Ok(false) };
        let bytes = bytes.get(..len).unwrap_or_default();
        // IPv4 comes with its header.
        let header = if to.is_ipv4() { bytes.first().map_or(0, |first| usize::from(first & 15) * 4) } else { 0 };
        if from.ip() == to && bytes.get(header) == Some(&reply) && bytes.get(header + 4..) == message.get(4..) {
            return Ok(true);
        }
    }
    Ok(false)
}

/// An ICMP or ICMPv6 message.
fn message(kind: u8, number: u16, finish: bool) -> Vec<u8> {
    let mut message = vec![kind, 0, 0, 0];
    message.extend([IDENTIFIER, number].iter().flat_map(|word| word.to_be_bytes()));
    message.extend((0..40_u8).map(|byte| byte.wrapping_mul(37)));
    // In ICMPv6 the kernel does it: the addresses are in the sum.
    if finish {
        let sum = Sum::default().bytes(&message).finish().to_be_bytes();
        message.splice(2..4, sum);
    }
    message
}

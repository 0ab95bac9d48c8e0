//! Address resolution for IPv4 over Ethernet (RFC 826).

use core::net::Ipv4Addr;
use zerocopy::{FromBytes, Immutable, IntoBytes, KnownLayout, Unaligned, big_endian::U16};

use crate::Mac;

/// Bytes of a packet.
pub const LEN: usize = 28;
/// Operation: who has this address?
pub const REQUEST: u16 = 1;
/// Operation: I have it.
pub const REPLY: u16 = 2;

/// ```text
/// | hardware 1 | protocol 0x0800 | 6 | 4 | operation |
/// | sender MAC | sender IP | target MAC | target IP |
/// ```
#[derive(Clone, Copy, Debug, FromBytes, IntoBytes, Immutable, KnownLayout, Unaligned)]
#[repr(C)]
pub struct Packet {
    hardware: U16,
    protocol: U16,
    hardware_len: u8,
    protocol_len: u8,
    operation: U16,
    /// The sender's Ethernet address.
    pub sender_mac: Mac,
    sender: [u8; 4],
    /// The target's Ethernet address, zero in a request.
    pub target_mac: Mac,
    target: [u8; 4],
}

impl Packet {
    /// A packet of the given operation.
    pub fn new(operation: u16, sender_mac: Mac, sender: Ipv4Addr, target_mac: Mac, target: Ipv4Addr) -> Packet {
        Packet {
            hardware: U16::new(1),
            protocol: U16::new(0x0800),
            hardware_len: 6,
            protocol_len: 4,
            operation: U16::new(operation),
            sender_mac,
            sender: sender.octets(),
            target_mac,
            target: target.octets(),
        }
    }

    /// The packet at the front of `bytes`; none when it is short or not IPv4 over Ethernet.
    pub fn read(bytes: &[u8]) -> Option<&Packet> {
        let (packet, _) = Packet::ref_from_prefix(bytes).ok()?;
        // Some stacks write 6, IEEE 802, for the same links.
        let ours = matches!(packet.hardware.get(), 1 | 6) && packet.protocol.get() == 0x0800;
        (ours && packet.hardware_len == 6 && packet.protocol_len == 4).then_some(packet)
    }

    /// [`REQUEST`], [`REPLY`] or another.
    pub fn operation(&self) -> u16 {
        self.operation.get()
    }

    /// The sender's address.
    pub fn sender(&self) -> Ipv4Addr {
        Ipv4Addr::from(self.sender)
    }

    /// The address asked for or answered to.
    pub fn target(&self) -> Ipv4Addr {
        Ipv4Addr::from(self.target)
    }
}

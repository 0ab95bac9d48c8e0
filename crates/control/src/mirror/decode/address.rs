//! `RTM_NEWADDR`: addresses of devices.

use std::net::{IpAddr, Ipv4Addr};

use route::{Address4, Address6, IfIndex};

use super::{Family, attributes, ip, u8_at, u32_at, u32_of};

/// `struct ifaddrmsg`.
const HEADER_LEN: usize = 8;
const IFA_ADDRESS: u16 = 1;
const IFA_LOCAL: u16 = 2;
const IFA_BROADCAST: u16 = 4;
const IFA_FLAGS: u16 = 8;
const IFA_F_SECONDARY: u32 = 0x01;
const IFA_F_DADFAILED: u32 = 0x08;
const IFA_F_OPTIMISTIC: u32 = 0x04;
const IFA_F_TENTATIVE: u32 = 0x40;
const IFA_F_NOPREFIXROUTE: u32 = 0x200;

/// An address of a device.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum DeviceAddress {
    /// Of IPv4.
    V4(Address4),
    /// Of IPv6.
    V6(Address6),
}

/// Reads an address and its device. None of an IPv6 address that is not the router's yet (duplicate address detection goes on) or not any more.
pub fn address(body: &[u8]) -> Option<(IfIndex, DeviceAddress)> {
    let (len, scope) = (u8_at(body, 1)?, u8_at(body, 3)?);
    let (mut flags, index) = (u32::from(u8_at(body, 2)?), u32_at(body, 4)?);
    let (mut address, mut local, mut broadcast) = (None, None, None);
    for (kind, value) in attributes(body.get(HEADER_LEN..)?) {
        match kind {
            IFA_ADDRESS => address = ip(value),
            IFA_LOCAL => local = ip(value),
            IFA_BROADCAST => broadcast = Ipv4Addr::read(value),
            IFA_FLAGS => flags = u32_of(value)?,
            _ => {}
        }
    }
    let no_prefix_route = flags & IFA_F_NOPREFIXROUTE != 0;
    let address = match local.or(address)? {
        IpAddr::V4(addr) if len <= 32 => {
            let secondary = flags & IFA_F_SECONDARY != 0;
            DeviceAddress::V4(Address4 { addr, len, scope, broadcast, secondary, no_prefix_route })
        }
        IpAddr::V6(addr) if len <= 128 => {
            let tentative = flags & IFA_F_TENTATIVE != 0 && flags & IFA_F_OPTIMISTIC == 0;
            if tentative || flags & IFA_F_DADFAILED != 0 {
                return None;
            }
            DeviceAddress::V6(Address6 { addr, len, no_prefix_route })
        }
        _ => return None,
    };
    Some((IfIndex(index), address))
}

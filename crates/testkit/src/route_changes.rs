//! Changes of routes in the kernel, many a system call: faster than `ip -batch`, which makes two for each.

use std::net::Ipv4Addr;
use std::os::fd::{AsRawFd, OwnedFd};

use nix::sys::socket::{AddressFamily, MsgFlags, SockFlag, SockProtocol, SockType, recv, send, socket};

/// Messages that are sent at once.
const AT_ONCE: usize = 256;
const RTM_NEWROUTE: u16 = 24;
const RTM_DELROUTE: u16 = 25;
const NLMSG_ERROR: u16 = 2;
const NLM_F_REQUEST: u16 = 1;
const NLM_F_ACK: u16 = 4;
const NLM_F_REPLACE: u16 = 0x100;
const NLM_F_EXCL: u16 = 0x200;
const NLM_F_CREATE: u16 = 0x400;
const RTA_DST: u16 = 1;
const RTA_OIF: u16 = 4;
const RTA_GATEWAY: u16 = 5;
const RTA_TABLE: u16 = 15;
const AF_INET: u8 = 2;
const RT_TABLE_MAIN: u8 = 254;
const RTPROT_BOOT: u8 = 3;
const RTN_UNICAST: u8 = 1;
/// `struct nlmsghdr`, and what an answer has behind it at least.
const HEADER_LEN: usize = 16;

/// What becomes of a route.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Change {
    /// It is added, and must not exist.
    Add,
    /// It takes the place of another, or is added.
    Replace,
    /// It is deleted.
    Del,
}

/// A route of `main` to one IPv4 address, put there as `ip route` does.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct HostRoute {
    /// The address.
    pub to: Ipv4Addr,
    /// The gateway.
    pub via: Ipv4Addr,
    /// The number of the device.
    pub dev: u32,
}

impl HostRoute {
    /// Adds the message that asks for the change, and that the kernel tells of it: the two are alike.
    pub fn message(&self, change: Change, flags: u16, message: &mut Vec<u8>) {
        let (kind, more) = match change {
            Change::Add => (RTM_NEWROUTE, NLM_F_CREATE | NLM_F_EXCL),
            Change::Replace => (RTM_NEWROUTE, NLM_F_CREATE | NLM_F_REPLACE),
            Change::Del => (RTM_DELROUTE, 0),
        };
        let begin = message.len();
        message.extend([0; 4]);
        message.extend(kind.to_ne_bytes());
        message.extend((flags | more).to_ne_bytes());
        message.extend([0; 8]);
        message.extend([AF_INET, 32, 0, 0, RT_TABLE_MAIN, RTPROT_BOOT, 0, RTN_UNICAST, 0, 0, 0, 0]);
        let attributes = [
            (RTA_TABLE, u32::from(RT_TABLE_MAIN).to_ne_bytes()),
            (RTA_DST, self.to.octets()),
            (RTA_GATEWAY, self.via.octets()),
            (RTA_OIF, self.dev.to_ne_bytes()),
        ];
        for (kind, value) in attributes {
            message.extend(8_u16.to_ne_bytes());
            message.extend(kind.to_ne_bytes());
            message.extend(value);
        }
        let length = (message.len() - begin) as u32;
        message[begin..begin + 4].copy_from_slice(&length.to_ne_bytes());
    }
}

/// Changes routes of the network namespace of the thread that made it.
#[derive(Debug)]
pub struct RouteChanges(OwnedFd);

impl RouteChanges {
    /// # Errors
    /// What the kernel complained about.
    pub fn new() -> Result<RouteChanges, String> {
        let made = socket(AddressFamily::Netlink, SockType::Raw, SockFlag::SOCK_CLOEXEC, SockProtocol::NetlinkRoute);
        made.map(RouteChanges).map_err(|error| format!("a netlink socket: {error}"))
    }

    /// Makes the same change to all of the routes; it is made when this returns.
    ///
    /// # Errors
    /// What the kernel complained about first.
    pub fn make(&self, change: Change, routes: impl IntoIterator<Item = HostRoute>) -> Result<(), String> {
        let mut messages = Vec::new();
        let mut routes = routes.into_iter().peekable();
        while routes.peek().is_some() {
            messages.clear();
            for at in 1..=AT_ONCE {
                let Some(route) = routes.next() else { break };
                // The answer to the last one stands behind those to all that were refused.
                let last = at == AT_ONCE || routes.peek().is_none();
                route.message(change, NLM_F_REQUEST | if last { NLM_F_ACK } else { 0 }, &mut messages);
            }
            send(self.0.as_raw_fd(), &messages, MsgFlags::empty()).map_err(|error| error.to_string())?;
            self.answer(change)?;
        }
        Ok(())
    }

    fn answer(&self, change: Change) -> Result<(), String> {
        let mut answer = [0; 4096];
        let length = recv(self.0.as_raw_fd(), &mut answer, MsgFlags::empty()).map_err(|error| error.to_string())?;
        let kind = u16::from_ne_bytes([answer[4], answer[5]]);
        let number = answer[HEADER_LEN..HEADER_LEN + 4].try_into().map_or(0, i32::from_ne_bytes);
        match (length > HEADER_LEN + 4, kind, number) {
            (true, NLMSG_ERROR, 0) => Ok(()),
            (true, NLMSG_ERROR, number) => Err(format!("{change:?}: {}", std::io::Error::from_raw_os_error(-number))),
            _ => Err(format!("{change:?}: an answer of {length} bytes of kind {kind}")),
        }
    }
}

//! What is around every message: the header of netlink, and how a datagram is cut into messages.

use super::{u16_at, u32_at};

/// Bytes of the header.
pub const HEADER_LEN: usize = 16;

/// `NLMSG_NOOP`.
pub const NOOP: u16 = 1;
/// `NLMSG_ERROR`: the answer to a request, negative or (0) an acknowledgement.
pub const ERROR: u16 = 2;
/// `NLMSG_DONE`: the end of a dump.
pub const DONE: u16 = 3;
/// `NLMSG_OVERRUN`: messages were lost.
pub const OVERRUN: u16 = 4;
/// `RTM_NEWLINK`.
pub const NEW_LINK: u16 = 16;
/// `RTM_DELLINK`.
pub const DEL_LINK: u16 = 17;
/// `RTM_GETLINK`.
pub const GET_LINK: u16 = 18;
/// `RTM_NEWADDR`.
pub const NEW_ADDRESS: u16 = 20;
/// `RTM_DELADDR`.
pub const DEL_ADDRESS: u16 = 21;
/// `RTM_GETADDR`.
pub const GET_ADDRESS: u16 = 22;
/// `RTM_NEWROUTE`.
pub const NEW_ROUTE: u16 = 24;
/// `RTM_DELROUTE`.
pub const DEL_ROUTE: u16 = 25;
/// `RTM_GETROUTE`.
pub const GET_ROUTE: u16 = 26;
/// `RTM_NEWNEIGH`.
pub const NEW_NEIGHBOUR: u16 = 28;
/// `RTM_DELNEIGH`.
pub const DEL_NEIGHBOUR: u16 = 29;
/// `RTM_GETNEIGH`.
pub const GET_NEIGHBOUR: u16 = 30;
/// `RTM_NEWRULE`.
pub const NEW_RULE: u16 = 32;
/// `RTM_DELRULE`.
pub const DEL_RULE: u16 = 33;
/// `RTM_GETRULE`.
pub const GET_RULE: u16 = 34;
/// `RTM_NEWNETCONF`: settings of an interface.
pub const NEW_NETCONF: u16 = 80;
/// `RTM_NEWNEXTHOP`.
pub const NEW_NEXTHOP: u16 = 104;
/// `RTM_DELNEXTHOP`.
pub const DEL_NEXTHOP: u16 = 105;
/// `RTM_GETNEXTHOP`.
pub const GET_NEXTHOP: u16 = 106;

/// `RTM_NEWNEXTHOPBUCKET`: a bucket of a resilient group of nexthop objects.
pub const NEW_BUCKET: u16 = 116;
/// `RTM_GETNEXTHOPBUCKET`.
pub const GET_BUCKET: u16 = 118;

/// `NLM_F_REQUEST`.
pub const REQUEST: u16 = 1;
/// `NLM_F_ACK`: whether it was done is to be told.
pub const ACKNOWLEDGE: u16 = 4;
/// `NLM_F_DUMP_INTR`: what is dumped changed meanwhile.
pub const DUMP_INTERRUPTED: u16 = 0x10;
/// `NLM_F_DUMP`.
pub const DUMP: u16 = 0x300;
/// `NLM_F_REPLACE`.
pub const REPLACE: u16 = 0x100;
/// `NLM_F_CREATE`.
pub const CREATE: u16 = 0x400;
/// `NLM_F_APPEND`.
pub const APPEND: u16 = 0x800;

/// One message.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Message<'a> {
    /// What kind.
    pub kind: u16,
    /// `NLM_F_…`.
    pub flags: u16,
    /// The number of the request that it answers, 0 for what is told unasked.
    pub sequence: u32,
    /// What follows the header.
    pub body: &'a [u8],
}

impl Message<'_> {
    /// The error number that an [`ERROR`] or [`DONE`] brings; none of an acknowledgement, or a dump that ends well.
    pub fn refusal(&self) -> Option<i32> {
        let number = u32_at(self.body, 0)? as i32;
        (number < 0).then_some(number.saturating_neg())
    }
}

/// The messages of a datagram; an error, once and last, when it ends within one.
pub fn messages(datagram: &[u8]) -> impl Iterator<Item = Result<Message<'_>, Cut>> {
    let mut rest = datagram;
    std::iter::from_fn(move || {
        if rest.is_empty() {
            return None;
        }
        let message = first(rest);
        let length = message.map_or(rest.len(), |message| (HEADER_LEN + message.body.len()).next_multiple_of(4));
        rest = rest.get(length..).unwrap_or_default();
        Some(message.ok_or(Cut))
    })
}

/// A datagram that ends within a message.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Cut;

fn first(bytes: &[u8]) -> Option<Message<'_>> {
    let length = u32_at(bytes, 0)? as usize;
    let body = bytes.get(HEADER_LEN..length)?;
    Some(Message { kind: u16_at(bytes, 4)?, flags: u16_at(bytes, 6)?, sequence: u32_at(bytes, 8)?, body })
}

/// A message of ours, its attributes included.
pub fn build(kind: u16, flags: u16, sequence: u32, body: &[u8]) -> Vec<u8> {
    let length = (HEADER_LEN + body.len()) as u32;
    let mut bytes = Vec::with_capacity(length as usize);
    bytes.extend(length.to_ne_bytes());
    bytes.extend(kind.to_ne_bytes());
    bytes.extend(flags.to_ne_bytes());
    bytes.extend(sequence.to_ne_bytes());
    bytes.extend([0; 4]);
    bytes.extend(body);
    bytes
}

/// Adds an attribute to a body.
pub fn push_attribute(body: &mut Vec<u8>, kind: u16, value: &[u8]) {
    body.extend(((4 + value.len()) as u16).to_ne_bytes());
    body.extend(kind.to_ne_bytes());
    body.extend(value);
    body.resize(body.len().next_multiple_of(4), 0);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_datagram_is_cut_into_its_messages() {
        let mut datagram = build(NEW_LINK, REPLACE, 7, &[1, 2, 3, 4, 5]);
        datagram.resize(datagram.len().next_multiple_of(4), 0);
        datagram.extend(build(DONE, 0, 7, &[0; 4]));
        let read: Vec<_> = messages(&datagram).map(|message| message.map(|m| (m.kind, m.flags, m.sequence, m.body.len()))).collect();
        assert_eq!(read, [Ok((NEW_LINK, REPLACE, 7, 5)), Ok((DONE, 0, 7, 4))]);
    }

    #[test]
    fn a_datagram_that_ends_within_a_message_says_so_once() {
        let datagram = build(NEW_LINK, 0, 0, &[0; 16]);
        for length in 1..datagram.len() {
            assert_eq!(messages(&datagram[..length]).collect::<Vec<_>>(), [Err(Cut)], "{length}");
        }
        let endless = build(NEW_LINK, 0, 0, &[]).into_iter().enumerate().map(|(at, byte)| if at < 4 { 0 } else { byte });
        assert_eq!(messages(&endless.collect::<Vec<_>>()).count(), 1);
    }
}

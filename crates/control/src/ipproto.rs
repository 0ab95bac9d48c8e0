//! Names and numbers of the protocols above IP.

use crate::error::Error;
use crate::keyword::{self, Keyword, full};
use crate::number;
use crate::span::{Spanned, Word};
use crate::words::unknown;

/// The names that rules are written with (`/etc/protocols`).
const NAMES: &[Keyword<u8>] = &[
    full("icmp", 1),
    full("igmp", 2),
    full("ipencap", 4),
    full("tcp", 6),
    full("udp", 17),
    full("dccp", 33),
    full("ipv6", 41),
    full("ipv6-route", 43),
    full("ipv6-frag", 44),
    full("rsvp", 46),
    full("gre", 47),
    full("esp", 50),
    full("ah", 51),
    full("ipv6-icmp", 58),
    full("ipv6-nonxt", 59),
    full("ipv6-opts", 60),
    full("eigrp", 88),
    full("ospf", 89),
    full("ipip", 94),
    full("etherip", 97),
    full("encap", 98),
    full("pim", 103),
    full("ipcomp", 108),
    full("vrrp", 112),
    full("l2tp", 115),
    full("isis", 124),
    full("sctp", 132),
    full("mobility-header", 135),
    full("udplite", 136),
    full("mpls-in-ip", 137),
    full("ethernet", 143),
];

/// Reads a protocol, by name or number.
pub(crate) fn parse(word: Word<'_>) -> Result<Spanned<u8>, Error> {
    match keyword::find(NAMES, word.text) {
        Some(name) => Ok(word.with(name.key)),
        None if word.text.starts_with(|first: char| first.is_ascii_digit()) => number::u8(word, "a protocol"),
        None => Err(unknown(word, "protocol", keyword::words(NAMES).into_iter().chain(["0 to 255".to_owned()]).collect())),
    }
}

/// A protocol as `ip rule` shows it.
pub(crate) fn shown(protocol: u8) -> String {
    keyword::word_of(NAMES, |name| *name == protocol).map_or_else(|| format!("ipproto-{protocol}"), str::to_owned)
}

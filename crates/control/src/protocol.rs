//! `proto`: who set a route or a rule. A note that noref keeps for deletion and display; it changes nothing in forwarding.

use crate::error::Error;
use crate::keyword::{self, Keyword, full};
use crate::number;
use crate::span::{Spanned, Word};
use crate::words::unknown;

/// The protocols every system has a name for (`rt_protos` of iproute2).
const PROTOCOLS: &[Keyword<u8>] = &[
    full("unspec", 0),
    full("redirect", 1),
    full("kernel", 2),
    full("boot", 3),
    full("static", 4),
    full("gated", 8),
    full("ra", 9),
    full("mrt", 10),
    full("zebra", 11),
    full("bird", 12),
    full("dnrouted", 13),
    full("xorp", 14),
    full("ntk", 15),
    full("dhcp", 16),
    full("keepalived", 18),
    full("babel", 42),
    full("openr", 99),
    full("bgp", 186),
    full("isis", 187),
    full("ospf", 188),
    full("rip", 189),
    full("eigrp", 192),
];

/// The protocol as it is shown: by its name if it has one.
pub(crate) fn show(number: u8) -> impl std::fmt::Display {
    std::fmt::from_fn(move |f| match keyword::word_of(PROTOCOLS, |protocol| *protocol == number) {
        Some(word) => f.write_str(word),
        None => write!(f, "{number}"),
    })
}

/// `kernel`, which `ip rule` does not show.
pub(crate) const KERNEL: u8 = 2;

/// The protocol of a route that names none: `boot`.
pub(crate) const BOOT: u8 = 3;

/// Reads a protocol, by name or number.
pub(crate) fn parse(word: Word<'_>) -> Result<Spanned<u8>, Error> {
    match keyword::find(PROTOCOLS, word.text) {
        Some(protocol) => Ok(word.with(protocol.key)),
        None if word.text.starts_with(|first: char| first.is_ascii_digit()) => number::u8(word, "a protocol"),
        None => Err(unknown(word, "protocol", keyword::words(PROTOCOLS))),
    }
}

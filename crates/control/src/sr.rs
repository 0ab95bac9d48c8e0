//! `ip sr`: what all SRv6 routes share.

use std::net::Ipv6Addr;

use srv6::HmacAlgorithm;

use crate::address;
use crate::error::Error;
use crate::keyword::{Keyword, full, short};
use crate::number;
use crate::span::Spanned;
use crate::words::Words;

/// An `ip sr` command.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum SrCommand<'t> {
    /// `sr tunsrc set ADDRESS`: source address of outer headers; `::` takes an address of the device.
    TunnelSource(Spanned<Ipv6Addr>),
    /// `sr hmac set KEYID ALGORITHM SECRET`: a key; an empty secret (`""`) takes it away.
    Hmac {
        /// Number of the key, not 0.
        key: Spanned<u32>,
        /// How the HMAC is computed.
        algorithm: Spanned<HmacAlgorithm>,
        /// The secret, as text.
        secret: Spanned<&'t str>,
    },
}

#[derive(Clone, Copy, Debug)]
enum Item {
    Hmac,
    TunnelSource,
}

const ITEMS: &[Keyword<Item>] = &[short("hmac", Item::Hmac), short("tunsrc", Item::TunnelSource)];
const SET: &[Keyword<()>] = &[short("set", ())];
const ALGORITHMS: &[Keyword<HmacAlgorithm>] = &[full("sha1", HmacAlgorithm::Sha1), full("sha256", HmacAlgorithm::Sha256)];

/// Reads what follows `ip sr`.
pub(crate) fn parse<'t>(words: &mut Words<'_, 't>) -> Result<SrCommand<'t>, Error> {
    let (item, _) = words.keyword(ITEMS, "item")?;
    words.keyword(SET, "command")?;
    match item.key {
        Item::TunnelSource => Ok(SrCommand::TunnelSource(address::address6(words.value("an IPv6 address")?)?)),
        Item::Hmac => {
            let key = number::in_range(words.value("a key number")?, "a key number", 1, u64::from(u32::MAX))?;
            let (algorithm, word) = words.keyword(ALGORITHMS, "algorithm")?;
            let secret = words
                .value("a secret")
                .map_err(|error| error.hint("iproute2 asks for the secret; a network file has it at the end of the line"))?;
            let key = Spanned::new(key.value as u32, key.span);
            Ok(SrCommand::Hmac { key, algorithm: word.with(algorithm.key), secret: secret.with(secret.text) })
        }
    }
}

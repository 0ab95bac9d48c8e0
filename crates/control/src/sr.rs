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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Command;
    use crate::command::{fault, parsed};

    #[test]
    fn the_tunnel_source_and_keys_are_read() {
        let Ok(Command::Sr(SrCommand::TunnelSource(source))) = parsed("ip sr tunsrc set fd00:ffff::1") else { panic!() };
        assert_eq!(source.value.to_string(), "fd00:ffff::1");
        let Ok(Command::Sr(SrCommand::Hmac { key, algorithm, secret })) = parsed("s h s 0x2a sha256 'two words'") else { panic!() };
        assert_eq!((key.value, algorithm.value, secret.value), (42, HmacAlgorithm::Sha256, "two words"));
    }

    #[test]
    fn what_is_wrong_is_named() {
        assert_eq!(fault("ip sr hmac set 0 sha1 x"), "\"0\" is not a key number: it must be 1 to 4294967295");
        assert_eq!(fault("ip sr hmac set 1 md5 x"), "unknown algorithm \"md5\"");
        assert_eq!(fault("ip sr hmac set 1 sha1"), "\"sha1\" needs a secret");
        assert_eq!(fault("ip sr tunsrc set 10.0.0.1"), "\"10.0.0.1\" is not an IPv6 address: it is an IPv4 address");
        assert_eq!(fault("ip sr show"), "unknown item \"show\"");
    }
}

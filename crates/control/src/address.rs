//! Addresses and prefixes as iproute2 reads them.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

use wire::Mac;

use crate::error::Error;
use crate::number;
use crate::span::{Spanned, Word};
use crate::words::no_value;

/// IPv4 or IPv6.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum Family {
    /// IPv4, `inet`.
    V4,
    /// IPv6, `inet6`.
    V6,
}

impl Family {
    /// The family of an address.
    #[must_use]
    pub fn of(address: IpAddr) -> Family {
        if address.is_ipv4() { Family::V4 } else { Family::V6 }
    }

    /// Bits of an address.
    #[must_use]
    pub fn bits(self) -> u8 {
        match self {
            Family::V4 => 32,
            Family::V6 => 128,
        }
    }

    /// The address of all zeros.
    #[must_use]
    pub fn unspecified(self) -> IpAddr {
        match self {
            Family::V4 => IpAddr::V4(Ipv4Addr::UNSPECIFIED),
            Family::V6 => IpAddr::V6(Ipv6Addr::UNSPECIFIED),
        }
    }

    fn an_address(self) -> &'static str {
        match self {
            Family::V4 => "an IPv4 address",
            Family::V6 => "an IPv6 address",
        }
    }
}

/// An address and how many of its bits count. Bits behind them may be set: whether that is right depends on the command.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Prefix {
    /// The address as written.
    pub addr: IpAddr,
    /// Length in bits.
    pub len: u8,
}

impl Prefix {
    /// Every address of a family.
    #[must_use]
    pub fn all(family: Family) -> Prefix {
        Prefix { addr: family.unspecified(), len: 0 }
    }

    /// The prefix with the bits behind its length cleared.
    #[must_use]
    pub fn masked(self) -> Prefix {
        let addr = match self.addr {
            IpAddr::V4(addr) => IpAddr::V4((u32::from(addr) & u32::MAX.checked_shl(32 - u32::from(self.len.min(32))).unwrap_or(0)).into()),
            IpAddr::V6(addr) => {
                IpAddr::V6((u128::from(addr) & u128::MAX.checked_shl(128 - u32::from(self.len.min(128))).unwrap_or(0)).into())
            }
        };
        Prefix { addr, len: self.len }
    }

    /// IPv4 or IPv6.
    #[must_use]
    pub fn family(self) -> Family {
        Family::of(self.addr)
    }
}

impl std::fmt::Display for Prefix {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{}/{}", self.addr, self.len)
    }
}

/// Reads an address of the family, or of either if none is asked for.
pub(crate) fn address(word: Word<'_>, family: Option<Family>) -> Result<Spanned<IpAddr>, Error> {
    let found = if word.text.contains(':') { Family::V6 } else { Family::V4 };
    if let Some(wanted) = family
        && wanted != found
    {
        let why = match found {
            Family::V6 => "it is an IPv6 address",
            Family::V4 if ipv4(word.text).is_ok() => "it is an IPv4 address",
            Family::V4 => "it has no colon",
        };
        return Err(no_value(word, wanted.an_address(), why));
    }
    match found {
        Family::V4 => ipv4(word.text).map(IpAddr::V4).map_err(|why| {
            let what = if family.is_none() { "an address" } else { "an IPv4 address" };
            no_value(word, what, why)
        }),
        Family::V6 => ipv6(word.text).map(IpAddr::V6).map_err(|why| no_value(word, "an IPv6 address", why)),
    }
    .map(|address| word.with(address))
}

/// Reads an IPv6 address.
pub(crate) fn address6(word: Word<'_>) -> Result<Spanned<Ipv6Addr>, Error> {
    match address(word, Some(Family::V6))? {
        Spanned { value: IpAddr::V6(address), span } => Ok(Spanned::new(address, span)),
        Spanned { .. } => Err(no_value(word, "an IPv6 address", "it is an IPv4 address")),
    }
}

/// Reads an IPv4 address.
pub(crate) fn address4(word: Word<'_>) -> Result<Spanned<Ipv4Addr>, Error> {
    match address(word, Some(Family::V4))? {
        Spanned { value: IpAddr::V4(address), span } => Ok(Spanned::new(address, span)),
        Spanned { .. } => Err(no_value(word, "an IPv4 address", "it is an IPv6 address")),
    }
}

/// Reads a prefix, `ADDRESS[/LENGTH]`. `None` is `default`, `all` or `any`: every address of a family that may not be known yet.
pub(crate) fn prefix(word: Word<'_>, family: Option<Family>) -> Result<Spanned<Option<Prefix>>, Error> {
    if matches!(word.text, "default" | "all" | "any") {
        return Ok(word.with(family.map(Prefix::all)));
    }
    let (text, len) = word.text.split_once('/').map_or((word.text, None), |(text, len)| (text, Some(len)));
    let addr = address(word.part(0, text.len()), family)?.value;
    let bits = Family::of(addr).bits();
    let len = match len {
        None => bits,
        Some(len) => mask_length(len)
            .filter(|&len| len <= bits)
            .ok_or_else(|| no_value(word.part(text.len() + 1, word.text.len()), "a prefix length", format!("it must be 0 to {bits}")))?,
    };
    Ok(word.with(Some(Prefix { addr, len })))
}

/// A prefix length, as a number or as an IPv4 netmask.
fn mask_length(text: &str) -> Option<u8> {
    if let Some(number) = number::parse(text) {
        return u8::try_from(number).ok();
    }
    let mask = u32::from(text.parse::<Ipv4Addr>().ok()?);
    (mask.leading_ones() + mask.trailing_zeros() == 32).then(|| mask.leading_ones() as u8)
}

/// An IPv4 address. Missing octets are zero and octets may be hexadecimal or octal: `10.1` is 10.1.0.0, `010.1` is 8.1.0.0.
fn ipv4(text: &str) -> Result<Ipv4Addr, String> {
    // The usual form first: a full table has a million of them.
    if let Ok(address) = text.parse() {
        return Ok(address);
    }
    let mut octets = [0; 4];
    let mut parts = text.split('.');
    for (octet, part) in octets.iter_mut().zip(&mut parts) {
        let number = number::parse(part).ok_or_else(|| match part {
            "" => "a number is missing between the dots".to_owned(),
            _ => format!("\"{part}\" is not a number"),
        })?;
        *octet = u8::try_from(number).map_err(|_| format!("{part} is more than 255"))?;
    }
    match parts.next() {
        Some(_) => Err("it has more than four numbers".to_owned()),
        None => Ok(octets.into()),
    }
}

fn ipv6(text: &str) -> Result<Ipv6Addr, String> {
    text.parse().map_err(|_| {
        let groups = text.split(':').filter(|group| !group.is_empty());
        for group in groups.clone().filter(|group| !group.contains('.')) {
            if let Some(wrong) = group.chars().find(|c| !c.is_ascii_hexdigit()) {
                return if wrong == '%' {
                    "an interface is named with \"dev\", not in the address".to_owned()
                } else {
                    format!("'{wrong}' is not a hexadecimal digit")
                };
            }
            if group.len() > 4 {
                return format!("the group {group} is out of range: a group is at most ffff");
            }
        }
        let doubles = text.matches("::").count();
        match groups.count() {
            _ if doubles > 1 || text.contains(":::") => "\"::\" may stand only once".to_owned(),
            count if count > 8 || (count == 8 && doubles == 1) => "it has more than eight groups".to_owned(),
            count if count < 8 && doubles == 0 => "it has fewer than eight groups and no \"::\"".to_owned(),
            _ => "it is malformed".to_owned(),
        }
    })
}

/// Reads an Ethernet address, `02:00:00:00:0e:00`; an octet may have one digit.
pub(crate) fn mac(word: Word<'_>) -> Result<Spanned<Mac>, Error> {
    let mut octets = [0; 6];
    let mut parts = word.text.split([':', '-']);
    let mut complete = true;
    for octet in &mut octets {
        let part = parts.next().filter(|part| matches!(part.len(), 1 | 2) && part.bytes().all(|byte| byte.is_ascii_hexdigit()));
        match part.and_then(|part| u8::from_str_radix(part, 16).ok()) {
            Some(value) => *octet = value,
            None => complete = false,
        }
    }
    if !complete || parts.next().is_some() {
        return Err(no_value(word, "an Ethernet address", "six hexadecimal octets with colons between them are expected"));
    }
    Ok(word.with(Mac(octets)))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::span::Span;

    fn word(text: &str) -> Word<'_> {
        Word { text, span: Span { start: 0, end: text.len() as u32 } }
    }

    fn read(text: &str) -> String {
        prefix(word(text), None)
            .map_or_else(|error| error.to_string(), |prefix| prefix.value.map_or("default".into(), |prefix| prefix.to_string()))
    }

    #[test]
    fn prefixes_may_be_short_hexadecimal_octal_or_with_a_netmask() {
        assert_eq!(read("10/8"), "10.0.0.0/8");
        assert_eq!(read("10.1/16"), "10.1.0.0/16");
        assert_eq!(read("010.0x10.0.0/16"), "8.16.0.0/16");
        assert_eq!(read("10.0.0.0/255.255.0.0"), "10.0.0.0/16");
        assert_eq!(read("10.9.0.1"), "10.9.0.1/32");
        assert_eq!(read("fd00:0::1/64"), "fd00::1/64");
        assert_eq!(read("::ffff:1.2.3.4"), "::ffff:1.2.3.4/128");
        assert_eq!(read("default"), "default");
    }

    #[test]
    fn a_wrong_prefix_says_what_is_wrong() {
        assert_eq!(read("10.0.0.0/33"), "\"33\" is not a prefix length: it must be 0 to 32");
        assert_eq!(read("10.0.0.0/255.0.255.0"), "\"255.0.255.0\" is not a prefix length: it must be 0 to 32");
        assert_eq!(read("10.0.0.256/8"), "\"10.0.0.256\" is not an address: 256 is more than 255");
        assert_eq!(read("10..1"), "\"10..1\" is not an address: a number is missing between the dots");
        assert_eq!(read("1.2.3.4.5"), "\"1.2.3.4.5\" is not an address: it has more than four numbers");
        assert_eq!(
            read("fc00:1::1000e"),
            "\"fc00:1::1000e\" is not an IPv6 address: the group 1000e is out of range: a group is at most ffff"
        );
        assert_eq!(read("fc00:1::g"), "\"fc00:1::g\" is not an IPv6 address: 'g' is not a hexadecimal digit");
        assert_eq!(read("fc00::1::2"), "\"fc00::1::2\" is not an IPv6 address: \"::\" may stand only once");
        assert_eq!(read("1:2:3"), "\"1:2:3\" is not an IPv6 address: it has fewer than eight groups and no \"::\"");
        assert_eq!(read("1:2:3:4:5:6:7:8:9"), "\"1:2:3:4:5:6:7:8:9\" is not an IPv6 address: it has more than eight groups");
    }

    #[test]
    fn the_family_is_kept_to() {
        let why = |text, family| address(word(text), Some(family)).unwrap_err().to_string();
        assert_eq!(why("fe80::1", Family::V4), "\"fe80::1\" is not an IPv4 address: it is an IPv6 address");
        assert_eq!(why("10.0.0.1", Family::V6), "\"10.0.0.1\" is not an IPv6 address: it is an IPv4 address");
        assert_eq!(why("fe80", Family::V6), "\"fe80\" is not an IPv6 address: it has no colon");
    }

    #[test]
    fn masking_clears_what_is_behind_the_length() {
        let masked = |text| prefix(word(text), None).unwrap().value.unwrap().masked().to_string();
        assert_eq!(masked("10.255.255.255/9"), "10.128.0.0/9");
        assert_eq!(masked("10.0.0.1/0"), "0.0.0.0/0");
        assert_eq!(masked("fd00::1/64"), "fd00::/64");
        assert_eq!(masked("fd00::1/0"), "::/0");
        assert_eq!(masked("fd00::1/128"), "fd00::1/128");
    }

    #[test]
    fn an_ethernet_address_has_six_octets() {
        assert_eq!(mac(word("2:0:0:0:e:1f")).unwrap().value, Mac([2, 0, 0, 0, 0xe, 0x1f]));
        for wrong in ["", "02:00:00:00:00", "02:00:00:00:00:00:00", "02:00:00:00:00:0g", "0200:0:0:0:0:0", "+2:0:0:0:0:0"] {
            assert!(mac(word(wrong)).is_err(), "{wrong}");
        }
    }
}

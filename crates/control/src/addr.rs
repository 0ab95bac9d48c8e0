//! `ip address`: addresses of devices.

use std::net::IpAddr;

use route::{SCOPE_HOST, SCOPE_LINK, SCOPE_UNIVERSE};

use crate::address::{self, Family, Prefix};
use crate::command::{self, Seen, Verb, verb};
use crate::error::Error;
use crate::keyword::{self, Keyword, full, short};
use crate::number;
use crate::span::{Spanned, Word};
use crate::words::{Words, once, unknown};

/// An `ip address` command.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct AddressCommand<'t> {
    /// What to do.
    pub operation: AddressOperation,
    /// The address and the length of its subnet.
    pub address: Spanned<Prefix>,
    /// The device.
    pub device: Word<'t>,
    /// IPv4 broadcast address.
    pub broadcast: Option<Spanned<Broadcast>>,
    /// Scope number: 0 global, 200 site, 253 link, 254 host.
    pub scope: Option<Spanned<u8>>,
    /// No duplicate address detection. noref does none.
    pub nodad: bool,
    /// No connected route.
    pub no_prefix_route: bool,
}

/// What is done with an address.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum AddressOperation {
    /// It must not exist.
    Add,
    /// It must exist.
    Change,
    /// It may exist.
    Replace,
    /// It must exist and goes.
    Delete,
}

/// A broadcast address.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Broadcast {
    /// This one.
    Address(IpAddr),
    /// The last address of the subnet (`brd +`).
    Last,
    /// The first address of the subnet (`brd -`).
    First,
}

const VERBS: &[Keyword<Verb<AddressOperation>>] = &[
    short("add", Verb::Do(AddressOperation::Add)),
    short("change", Verb::Do(AddressOperation::Change)),
    full("chg", Verb::Do(AddressOperation::Change)),
    short("replace", Verb::Do(AddressOperation::Replace)),
    short("delete", Verb::Do(AddressOperation::Delete)),
    short("show", Verb::Show),
    short("lst", Verb::Show),
    short("list", Verb::Show),
    short("flush", Verb::Later),
    short("save", Verb::Show),
    short("showdump", Verb::Show),
    short("restore", Verb::Later),
];

#[derive(Clone, Copy, Debug)]
enum Key {
    Broadcast,
    Scope,
    Device,
    Label,
    Lifetime,
    NoDad,
    NoPrefixRoute,
    Protocol,
    Local,
    /// iproute2 knows it, noref not yet.
    Later,
}

const KEYS: &[Keyword<Key>] = &[
    full("peer", Key::Later),
    full("remote", Key::Later),
    short("broadcast", Key::Broadcast),
    full("brd", Key::Broadcast),
    full("anycast", Key::Later),
    full("scope", Key::Scope),
    full("dev", Key::Device),
    full("label", Key::Label),
    full("metric", Key::Later),
    full("priority", Key::Later),
    full("preference", Key::Later),
    short("valid_lft", Key::Lifetime),
    short("preferred_lft", Key::Lifetime),
    full("nodad", Key::NoDad),
    full("noprefixroute", Key::NoPrefixRoute),
    full("home", Key::Later),
    full("optimistic", Key::Later),
    full("mngtmpaddr", Key::Later),
    full("autojoin", Key::Later),
    full("proto", Key::Protocol),
    full("local", Key::Local),
];

/// The scopes every system has a name for (`rt_scopes` of iproute2).
pub(crate) const SCOPES: &[Keyword<u8>] =
    &[full("global", SCOPE_UNIVERSE), full("site", 200), full("link", SCOPE_LINK), full("host", SCOPE_HOST), full("nowhere", 255)];

/// Reads a scope, by name or number.
pub(crate) fn scope(word: Word<'_>) -> Result<Spanned<u8>, Error> {
    match keyword::find(SCOPES, word.text) {
        Some(scope) => Ok(word.with(scope.key)),
        None if word.text.starts_with(|first: char| first.is_ascii_digit()) => number::u8(word, "a scope"),
        None => Err(unknown(word, "scope", keyword::words(SCOPES))),
    }
}

/// Whether a verb of `ip address` shows something.
pub(crate) fn seen(word: &str) -> Seen {
    command::seen(VERBS, word)
}

/// Reads what follows `ip address`.
pub(crate) fn parse<'t>(words: &mut Words<'_, 't>, family: Option<Family>) -> Result<AddressCommand<'t>, Error> {
    let (operation, _) = verb(words, "address", VERBS)?;
    let mut family = family;
    let (mut local, mut broadcast, mut device, mut scope_given) = (None, None, None, None);
    let (mut nodad, mut no_prefix_route) = (false, false);
    while let Some(word) = words.next() {
        match keyword::find(KEYS, word.text).map(|keyword| keyword.key) {
            Some(Key::Broadcast) => {
                let value = words.value("an address, + or -")?;
                let parsed = match value.text {
                    "+" => value.with(Broadcast::Last),
                    "-" => value.with(Broadcast::First),
                    _ => value.with(Broadcast::Address(address::address(value, family)?.value)),
                };
                once(&mut broadcast, parsed, word)?;
            }
            Some(Key::Scope) => once(&mut scope_given, scope(words.value("a scope")?)?, word)?,
            Some(Key::Device) => once(&mut device, words.value("a device")?, word)?,
            // A label is a name for old tools, a protocol a note of who set the address: neither changes what is forwarded.
            Some(Key::Label) => drop(words.value("a label")?),
            Some(Key::Protocol) => drop(words.value("a protocol")?),
            Some(Key::Lifetime) => {
                let value = words.value("a lifetime")?;
                if value.text != "forever" {
                    return Err(Error::not_implemented(value.span, "an address that expires").accepting(vec!["forever".to_owned()]));
                }
            }
            Some(Key::NoDad) => nodad = true,
            Some(Key::NoPrefixRoute) => no_prefix_route = true,
            Some(Key::Local) => once(&mut local, own_prefix(words.value("an address")?, &mut family)?, word)?,
            Some(Key::Later) => return Err(Error::not_implemented(word.span, format!("\"{}\" of an address", word.text))),
            None if local.is_none() && (word.text.contains(['.', ':', '/']) || word.text.starts_with(|c: char| c.is_ascii_digit())) => {
                local = Some(own_prefix(word, &mut family)?);
            }
            None => return Err(unknown(word, "keyword", accepted())),
        }
    }
    let command = "\"ip address\"";
    Ok(AddressCommand {
        operation,
        address: local.ok_or_else(|| words.incomplete(command, "an address"))?,
        device: device.ok_or_else(|| words.incomplete(command, "a device (\"dev NAME\")"))?,
        broadcast,
        scope: scope_given,
        nodad,
        no_prefix_route,
    })
}

/// Reads an address with the length of its subnet, which settles the family for what follows.
fn own_prefix(word: Word<'_>, family: &mut Option<Family>) -> Result<Spanned<Prefix>, Error> {
    let prefix = address::prefix(word, *family)?;
    let Some(value) = prefix.value.filter(|prefix| !prefix.addr.is_unspecified()) else {
        return Err(Error::refused(word.span, format!("\"{}\" is not an address that a device can have", word.text)));
    };
    *family = Some(value.family());
    Ok(word.with(value))
}

fn accepted() -> Vec<String> {
    let kept = keyword::words_of(KEYS, |key| !matches!(key, Key::Later));
    ["ADDRESS/LENGTH".to_owned()].into_iter().chain(kept).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Command;
    use crate::command::{fault, parsed};

    fn addr(line: &str) -> AddressCommand<'_> {
        match parsed(line) {
            Ok(Command::Address(address)) => address,
            other => panic!("{line}: {other:?}"),
        }
    }

    #[test]
    fn an_address_has_a_length_and_a_device() {
        let read = addr("ip addr add 10.0.0.1/24 brd + dev e0 label e0:1 scope link noprefixroute valid_lft forever preferred_lft forever");
        assert_eq!(
            (read.operation, read.address.value.to_string().as_str(), read.device.text),
            (AddressOperation::Add, "10.0.0.1/24", "e0")
        );
        assert_eq!((read.broadcast.unwrap().value, read.scope.unwrap().value, read.no_prefix_route), (Broadcast::Last, 253, true));
        let read = addr("-6 a r dev e0 local fd00:0::1/64 nodad");
        assert_eq!((read.operation, read.address.value.to_string().as_str(), read.nodad), (AddressOperation::Replace, "fd00::1/64", true));
        assert_eq!(addr("a d 10.0.0.1 dev e0").address.value.len, 32);
    }

    #[test]
    fn what_is_wrong_is_named() {
        assert_eq!(fault("ip addr add 10.0.0.1/24"), "\"ip address\" needs a device (\"dev NAME\")");
        assert_eq!(fault("ip addr add dev e0"), "\"ip address\" needs an address");
        assert_eq!(fault("ip addr add 10.0.0.1/24 dev e0 valid_lft 5"), "an address that expires is not implemented yet");
        assert_eq!(fault("ip addr add 10.0.0.1 peer 10.0.0.2 dev e0"), "\"peer\" of an address is not implemented yet");
        assert_eq!(fault("ip addr add 10.0.0.1/24 dev e0 skope 1"), "unknown keyword \"skope\"");
        assert_eq!(fault("ip addr add default dev e0"), "unknown keyword \"default\"");
        assert_eq!(fault("ip addr add 0.0.0.0/8 dev e0"), "\"0.0.0.0/8\" is not an address that a device can have");
        assert_eq!(fault("ip -6 addr add 10.0.0.1/8 dev e0"), "\"10.0.0.1\" is not an IPv6 address: it is an IPv4 address");
    }
}

//! Names and numbers of the DS field: TOS of IPv4, traffic class of IPv6.

use crate::error::Error;
use crate::keyword::{self, Keyword, full};
use crate::number;
use crate::span::{Spanned, Word};
use crate::words::no_value;

/// The names that every system has (`rt_dsfield` of iproute2), with the two bits behind DSCP.
const NAMES: &[Keyword<u8>] = &[
    full("default", 0),
    full("AF11", 0x28),
    full("AF12", 0x30),
    full("AF13", 0x38),
    full("AF21", 0x48),
    full("AF22", 0x50),
    full("AF23", 0x58),
    full("AF31", 0x68),
    full("AF32", 0x70),
    full("AF33", 0x78),
    full("AF41", 0x88),
    full("AF42", 0x90),
    full("AF43", 0x98),
    full("CS1", 0x20),
    full("CS2", 0x40),
    full("CS3", 0x60),
    full("CS4", 0x80),
    full("CS5", 0xa0),
    full("CS6", 0xc0),
    full("CS7", 0xe0),
    full("EF", 0xb8),
];

/// Reads a DS field as `tos` and `dsfield` take it: a name, or a number that is hexadecimal with or without `0x`.
pub(crate) fn parse(word: Word<'_>) -> Result<Spanned<u8>, Error> {
    let digits = word.text.strip_prefix("0x").or_else(|| word.text.strip_prefix("0X")).unwrap_or(word.text);
    let number = || Some(digits).filter(|digits| digits.bytes().all(|byte| byte.is_ascii_hexdigit()));
    match keyword::find(NAMES, word.text) {
        Some(name) => Ok(word.with(name.key)),
        None => match number().and_then(|digits| u8::from_str_radix(digits, 16).ok()) {
            Some(field) => Ok(word.with(field)),
            None => {
                let error = no_value(word, "a DS field", "a hexadecimal number from 0 to ff or a name (AF11, CS1, EF, …) is expected");
                Err(error.accepting(keyword::words(NAMES)))
            }
        },
    }
}

/// Reads a DSCP as `dscp` takes it: a name, or a number from 0 to 63.
pub(crate) fn parse_dscp(word: Word<'_>) -> Result<Spanned<u8>, Error> {
    match keyword::find(NAMES, word.text) {
        Some(name) => Ok(word.with(name.key >> 2)),
        None => number::in_range(word, "a DSCP", 0, 63).map(|number| word.with(number.value as u8)),
    }
}

/// A DS field as it is shown.
pub(crate) fn shown(field: u8) -> String {
    keyword::word_of(NAMES, |name| *name == field).map_or_else(|| format!("{field:#04x}"), str::to_owned)
}

/// A DSCP as it is shown.
pub(crate) fn shown_dscp(dscp: u8) -> String {
    keyword::word_of(NAMES, |name| name >> 2 == dscp).map_or_else(|| dscp.to_string(), str::to_owned)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::span::Span;

    #[test]
    fn a_ds_field_is_hexadecimal_or_a_name() {
        let word = |text| Word { text, span: Span::default() };
        let read = |text| parse(word(text)).ok().map(|field| field.value);
        assert_eq!(
            [read("10"), read("0x10"), read("EF"), read("CS1"), read("100"), read("+1"), read("")],
            [Some(0x10), Some(0x10), Some(0xb8), Some(0x20), None, None, None]
        );
        assert_eq!(parse_dscp(word("EF")).ok().map(|dscp| dscp.value), Some(46));
        assert_eq!(parse_dscp(word("64")).ok(), None);
        assert_eq!((shown(0x10), shown(0x20), shown_dscp(46), shown_dscp(1)), ("0x10".into(), "CS1".into(), "EF".into(), "1".into()));
    }
}

//! Numbers as C reads them: decimal, hexadecimal with `0x`, octal with a leading `0`.

use crate::error::Error;
use crate::span::{Spanned, Word};
use crate::words::no_value;

/// Reads a number that fits 64 bits.
pub(crate) fn parse(text: &str) -> Option<u64> {
    let (digits, radix) = match text.as_bytes() {
        [b'0', b'x' | b'X', ..] => (text.get(2..)?, 16),
        [b'0', _, ..] => (text.get(1..)?, 8),
        _ => (text, 10),
    };
    // `from_str_radix` takes a sign; C's own readers do too, but no number here is negative.
    if !digits.bytes().all(|byte| byte.is_ascii_alphanumeric()) {
        return None;
    }
    u64::from_str_radix(digits, radix).ok()
}

/// Reads a number that fits so many bits.
pub(crate) fn fitting<N: TryFrom<u64>>(text: &str) -> Option<N> {
    parse(text).and_then(|number| N::try_from(number).ok())
}

/// Reads a word as a number between `least` and `most`. `what` names it, with its article.
pub(crate) fn in_range(word: Word<'_>, what: &'static str, least: u64, most: u64) -> Result<Spanned<u64>, Error> {
    match parse(word.text) {
        Some(number) if (least..=most).contains(&number) => Ok(word.with(number)),
        Some(_) => Err(no_value(word, what, format!("it must be {least} to {most}"))),
        None => Err(no_value(
            word,
            what,
            format!("a number from {least} to {most} is expected (decimal, 0x hexadecimal, or octal with a leading 0)"),
        )),
    }
}

/// Reads a 32-bit number.
pub(crate) fn u32(word: Word<'_>, what: &'static str) -> Result<Spanned<u32>, Error> {
    in_range(word, what, 0, u64::from(u32::MAX)).map(|number| Spanned::new(number.value as u32, number.span))
}

/// Reads an 8-bit number.
pub(crate) fn u8(word: Word<'_>, what: &'static str) -> Result<Spanned<u8>, Error> {
    in_range(word, what, 0, u64::from(u8::MAX)).map(|number| Spanned::new(number.value as u8, number.span))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::span::Span;

    #[test]
    fn numbers_are_decimal_hexadecimal_or_octal() {
        assert_eq!(parse("10"), Some(10));
        assert_eq!(parse("0x1F"), Some(31));
        assert_eq!(parse("010"), Some(8));
        assert_eq!(parse("0"), Some(0));
        for wrong in ["", "0x", "08", "-1", "+1", "1a", "0x-1", "99999999999999999999", "1 "] {
            assert_eq!(parse(wrong), None, "{wrong}");
        }
    }

    #[test]
    fn a_number_out_of_range_names_the_range() {
        let word = Word { text: "300", span: Span { start: 0, end: 3 } };
        assert_eq!(in_range(word, "a weight", 1, 256).unwrap_err().to_string(), "\"300\" is not a weight: it must be 1 to 256");
    }
}

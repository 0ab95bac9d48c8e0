//! Bytes as hexadecimal digits.

use std::fmt::Write;

/// Two digits a byte.
pub fn write(bytes: &[u8]) -> String {
    let mut digits = String::with_capacity(bytes.len() * 2);
    for byte in bytes {
        // A string takes everything.
        let _ = write!(digits, "{byte:02x}");
    }
    digits
}

/// The bytes again; none of what is no such text.
pub fn read(digits: &str) -> Option<Vec<u8>> {
    let value = |digit: u8| char::from(digit).to_digit(16);
    let byte = |pair: &[u8]| match *pair {
        [high, low] => Some((value(high)? << 4 | value(low)?) as u8),
        _ => None,
    };
    digits.as_bytes().chunks(2).map(byte).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bytes_are_read_as_they_were_written() {
        let bytes: Vec<u8> = (0..=255).collect();
        assert_eq!(read(&write(&bytes)), Some(bytes));
        assert_eq!((write(&[0x0a, 0xf0]), read("")), ("0af0".to_owned(), Some(vec![])));
        for wrong in ["a", "0g", "ä"] {
            assert_eq!(read(wrong), None, "{wrong}");
        }
    }
}

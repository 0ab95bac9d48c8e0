//! Lines of a peer that may send anything: at most so many bytes, at most so long.

use std::io::{self, BufRead, Read};

/// Why there is no line.
#[derive(Debug, thiserror::Error)]
pub enum NoLine {
    /// The peer has ended.
    #[error("the other end has closed the connection")]
    Ended,
    /// A line is longer than it may be. What follows cannot be told apart from it.
    #[error("a line is longer than {0} bytes")]
    TooLong(usize),
    /// The peer was silent for too long, or is gone.
    #[error(transparent)]
    Io(#[from] io::Error),
}

/// Reads a line of at most `longest` bytes into `line`, without its newline. A last line without one counts as none: it may have been cut off.
///
/// # Errors
/// When there is none.
pub fn read(from: &mut impl BufRead, line: &mut Vec<u8>, longest: usize) -> Result<(), NoLine> {
    line.clear();
    from.by_ref().take(longest as u64 + 1).read_until(b'\n', line)?;
    match line.pop_if(|last| *last == b'\n') {
        Some(_) => Ok(()),
        None if line.len() > longest => Err(NoLine::TooLong(longest)),
        None => Err(NoLine::Ended),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_come_one_by_one_up_to_their_longest() {
        let mut from = &b"one\n\nfour\nfive5\ncut"[..];
        let mut line = Vec::new();
        let mut next = || read(&mut from, &mut line, 4).map(|()| String::from_utf8_lossy(&line).into_owned());
        assert_eq!(next().unwrap(), "one");
        assert_eq!(next().unwrap(), "");
        assert_eq!(next().unwrap(), "four");
        assert!(matches!(next(), Err(NoLine::TooLong(4))));
        assert!(matches!(read(&mut &b"cut"[..], &mut Vec::new(), 4), Err(NoLine::Ended)));
        assert!(matches!(read(&mut &b""[..], &mut Vec::new(), 4), Err(NoLine::Ended)));
    }
}

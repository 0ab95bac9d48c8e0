//! Text to words, line by line, as `ip -batch` does it.
//!
//! White space separates words; a word in single or double quotes may contain it. `#` begins a comment, also in the middle of a word. A
//! backslash at the end of a line joins the next one to it.

use crate::error::{Error, Fault};
use crate::span::{Span, Word};

/// Cuts a network file into lines of words. Words are borrowed: a line costs no allocation.
pub(crate) struct Lexer<'t> {
    text: &'t str,
    at: usize,
}

impl<'t> Lexer<'t> {
    pub(crate) fn new(text: &'t str) -> Self {
        Lexer { text, at: 0 }
    }

    /// Replaces `words` by those of the next line that has any. `false` at the end of the text.
    ///
    /// After an error the next call goes on with the following line.
    pub(crate) fn next_line(&mut self, words: &mut Vec<Word<'t>>) -> Result<bool, Error> {
        words.clear();
        let bytes = self.text.as_bytes();
        while let Some(&byte) = bytes.get(self.at) {
            match byte {
                b'\n' => {
                    self.at += 1;
                    if !words.is_empty() {
                        return Ok(true);
                    }
                }
                b' ' | b'\t' | b'\r' => self.at += 1,
                b'#' => self.skip_to_line_end(),
                b'\\' if self.joins_lines() => {
                    self.skip_to_line_end();
                    self.at += 1;
                }
                b'\'' | b'"' => words.push(self.quoted(byte)?),
                _ => words.push(self.word()),
            }
        }
        Ok(!words.is_empty())
    }

    fn word(&mut self) -> Word<'t> {
        let start = self.at;
        let bytes = self.text.as_bytes();
        while let Some(&byte) = bytes.get(self.at) {
            match byte {
                b' ' | b'\t' | b'\r' | b'\n' | b'#' => break,
                b'\\' if self.joins_lines() => break,
                _ => self.at += 1,
            }
        }
        self.cut(start, self.at)
    }

    fn quoted(&mut self, quote: u8) -> Result<Word<'t>, Error> {
        let start = self.at + 1;
        let rest = self.text.as_bytes().get(start..).unwrap_or_default();
        match rest.iter().position(|&byte| byte == quote || byte == b'\n') {
            Some(len) if rest.get(len) == Some(&quote) => {
                self.at = start + len + 1;
                Ok(self.cut(start, start + len))
            }
            _ => {
                let opening = self.cut(start - 1, start);
                self.skip_to_line_end();
                Err(Error::new(opening.span, Fault::OpenQuote))
            }
        }
    }

    /// Whether the backslash at hand is the last character of its line.
    fn joins_lines(&self) -> bool {
        let rest = self.text.as_bytes().get(self.at + 1..).unwrap_or_default();
        rest.starts_with(b"\n") || rest.starts_with(b"\r\n")
    }

    fn skip_to_line_end(&mut self) {
        let rest = self.text.as_bytes().get(self.at..).unwrap_or_default();
        self.at += rest.iter().position(|&byte| byte == b'\n').unwrap_or(rest.len());
    }

    fn cut(&self, start: usize, end: usize) -> Word<'t> {
        // The text is shorter than 4 GiB: `network_file` refuses longer ones.
        let span = Span { start: start as u32, end: end as u32 };
        Word { text: self.text.get(start..end).unwrap_or_default(), span }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn lines(text: &str) -> Vec<Vec<&str>> {
        let mut lexer = Lexer::new(text);
        let mut words = Vec::new();
        let mut lines = Vec::new();
        while lexer.next_line(&mut words).unwrap() {
            lines.push(words.iter().map(|word| word.text).collect());
        }
        lines
    }

    #[test]
    fn white_space_separates_and_comments_and_blank_lines_vanish() {
        assert_eq!(
            lines("# head\n\n ip  route\tadd \r\n\n  # x\nneigh# y\nlast"),
            [vec!["ip", "route", "add"], vec!["neigh"], vec!["last"]]
        );
        assert_eq!(lines(""), Vec::<Vec<&str>>::new());
    }

    #[test]
    fn a_backslash_at_the_end_joins_lines() {
        assert_eq!(lines("route add \\\n  default\\\r\n via x\na\\b"), [vec!["route", "add", "default", "via", "x"], vec!["a\\b"]]);
    }

    #[test]
    fn quotes_keep_white_space_and_hash_signs() {
        assert_eq!(lines("sr 'a b' \"c#d\" ''"), [vec!["sr", "a b", "c#d", ""]]);
    }

    #[test]
    fn an_open_quote_is_an_error_and_the_next_line_is_read() {
        let mut lexer = Lexer::new("sr 'a b\nnext");
        let mut words = Vec::new();
        assert_eq!(lexer.next_line(&mut words), Err(Error::new(Span { start: 3, end: 4 }, Fault::OpenQuote)));
        assert_eq!(lexer.next_line(&mut words), Ok(true));
        assert_eq!(words.first().map(|word| word.text), Some("next"));
    }

    #[test]
    fn a_word_knows_where_it_stands() {
        let mut lexer = Lexer::new("ip 'xy' z");
        let mut words = Vec::new();
        lexer.next_line(&mut words).unwrap();
        let spans: Vec<_> = words.iter().map(|word| (word.span.start, word.span.end)).collect();
        assert_eq!(spans, [(0, 2), (4, 6), (8, 9)]);
    }
}

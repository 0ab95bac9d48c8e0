//! Where in the text something stands.

/// A stretch of the network file: byte offsets of its first byte and of the byte after its last.
///
/// Line and column are worked out only when an error is shown; a table of a million routes never needs them.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Span {
    /// Offset of the first byte.
    pub start: u32,
    /// Offset of the first byte behind it.
    pub end: u32,
}

impl Span {
    /// The empty place directly behind this one, where something is missing.
    #[must_use]
    pub fn behind(self) -> Span {
        Span { start: self.end, end: self.end }
    }

    /// The part of this span from byte `from` to before byte `to`, counted from its start.
    #[must_use]
    pub fn part(self, from: usize, to: usize) -> Span {
        let at = |offset: usize| self.start.saturating_add(u32::try_from(offset).unwrap_or(u32::MAX)).min(self.end);
        Span { start: at(from), end: at(to) }
    }
}

/// A value and the word it was read from.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Spanned<T> {
    /// What was meant.
    pub value: T,
    /// Where it was written.
    pub span: Span,
}

impl<T> Spanned<T> {
    /// Puts a value and its place together.
    pub fn new(value: T, span: Span) -> Self {
        Spanned { value, span }
    }
}

/// A word of the network file, without its quotes.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Word<'t> {
    /// The word.
    pub text: &'t str,
    /// Where it stands (without quotes).
    pub span: Span,
}

impl<'t> Word<'t> {
    /// A value read from this word.
    pub fn with<T>(self, value: T) -> Spanned<T> {
        Spanned::new(value, self.span)
    }

    /// The part of the word from byte `from` to before byte `to`; empty if these are no character boundaries.
    #[must_use]
    pub fn part(self, from: usize, to: usize) -> Word<'t> {
        Word { text: self.text.get(from..to).unwrap_or_default(), span: self.span.part(from, to) }
    }
}

/// A place as an editor counts: lines and characters from 1.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub struct Position {
    /// Line, from 1.
    pub line: usize,
    /// Character in the line, from 1.
    pub column: usize,
}

/// The position of byte `offset` and the line it stands in, without its line end.
pub(crate) fn locate(text: &str, offset: u32) -> (Position, &str) {
    let mut offset = (offset as usize).min(text.len());
    while !text.is_char_boundary(offset) {
        offset -= 1;
    }
    let (before, after) = text.split_at(offset);
    let start = before.rfind('\n').map_or(0, |at| at + 1);
    let end = after.find('\n').map_or(text.len(), |at| offset + at);
    let line = before.bytes().filter(|&byte| byte == b'\n').count() + 1;
    let column = before.get(start..).unwrap_or_default().chars().count() + 1;
    (Position { line, column }, text.get(start..end).unwrap_or_default().trim_end_matches('\r'))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_and_characters_count_from_one() {
        let text = "one\r\ntwö x\nthree";
        assert_eq!(locate(text, 0), (Position { line: 1, column: 1 }, "one"));
        assert_eq!(locate(text, 10), (Position { line: 2, column: 5 }, "twö x"));
        assert_eq!(locate(text, 12), (Position { line: 3, column: 1 }, "three"));
        assert_eq!(locate(text, 99), (Position { line: 3, column: 6 }, "three"));
    }

    #[test]
    fn a_part_of_a_word_keeps_its_place() {
        let word = Word { text: "a,bc", span: Span { start: 10, end: 14 } };
        assert_eq!(word.part(2, 4), Word { text: "bc", span: Span { start: 12, end: 14 } });
        assert_eq!(word.part(3, 9).text, "");
    }
}

//! What is wrong with a network file, said so that the operator knows what to write instead.

use std::fmt;

use crate::nearest::nearest;
use crate::span::{Position, Span, locate};

/// What is wrong.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
pub enum Fault {
    /// A word of a closed set that is not in the set.
    #[error("unknown {what} \"{word}\"")]
    Unknown {
        /// What kind of word was expected.
        what: &'static str,
        /// What was written.
        word: String,
    },
    /// A word that does not say what is expected here.
    #[error("\"{word}\" is not {what}: {why}")]
    Value {
        /// What was expected, with its article.
        what: &'static str,
        /// What was written.
        word: String,
        /// What is wrong with it.
        why: String,
    },
    /// The line ends too early.
    #[error("{after} needs {what}")]
    Missing {
        /// What is missing, with its article.
        what: String,
        /// The word that asks for it.
        after: String,
    },
    /// Something was said before.
    #[error("\"{0}\" is given twice")]
    Twice(String),
    /// iproute2 or Linux know it, noref does not yet.
    #[error("{0} is not implemented yet")]
    NotImplemented(String),
    /// A command that shows something.
    #[error("\"{0}\" only shows; a network file holds what is to be configured")]
    ShowsOnly(String),
    /// A device that does not exist where it is named.
    #[error("there is no device \"{0}\"")]
    NoDevice(String),
    /// The words are right, what they ask for is impossible here.
    #[error("{0}")]
    Refused(String),
    /// A quote that is not closed in its line.
    #[error("the quote is not closed in this line")]
    OpenQuote,
}

/// A fault and its place.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
#[error("{fault}")]
pub struct Error {
    /// The words the fault is about; empty where something is missing.
    pub span: Span,
    /// What is wrong.
    pub fault: Fault,
    /// The words that would be accepted there, if they can be listed.
    pub accepted: Vec<String>,
    /// What to do instead, where that needs a sentence.
    pub hint: Option<String>,
}

impl Error {
    pub(crate) fn new(span: Span, fault: Fault) -> Error {
        Error { span, fault, accepted: Vec::new(), hint: None }
    }

    pub(crate) fn refused(span: Span, why: impl Into<String>) -> Error {
        Error::new(span, Fault::Refused(why.into()))
    }

    pub(crate) fn not_implemented(span: Span, what: impl Into<String>) -> Error {
        Error::new(span, Fault::NotImplemented(what.into()))
    }

    pub(crate) fn accepting(mut self, words: Vec<String>) -> Error {
        self.accepted = words;
        self
    }

    pub(crate) fn hint(mut self, hint: impl Into<String>) -> Error {
        self.hint = Some(hint.into());
        self
    }

    /// The accepted word that was probably meant.
    fn meant(&self) -> Option<&str> {
        match &self.fault {
            Fault::Unknown { word, .. } | Fault::NoDevice(word) => nearest(word, &self.accepted),
            _ => None,
        }
    }
}

/// An error as it is shown: file, line and column, the line with a mark under the word, and what would be accepted.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Diagnostic {
    /// The network file's name.
    pub file: String,
    /// Where the word stands.
    pub position: Position,
    /// The fault and its span.
    pub error: Error,
    line: String,
    /// Characters to mark.
    width: usize,
}

impl Diagnostic {
    /// Most characters of a line that are shown; the rest is cut off on either side.
    const SHOWN: usize = 160;

    pub(crate) fn new(file: &str, text: &str, error: Error) -> Diagnostic {
        let (position, line) = locate(text, error.span.start);
        let marked = text.get(error.span.start as usize..error.span.end as usize).unwrap_or_default();
        let width = marked.chars().take_while(|&character| character != '\n').count().max(1);
        Diagnostic { file: file.to_owned(), position, error, line: line.to_owned(), width }
    }

    /// The part of the line to show, and how many characters of it stand before the mark.
    fn excerpt(&self) -> (String, usize) {
        let before = self.position.column - 1;
        let skip = before.saturating_sub(Self::SHOWN * 3 / 4);
        let mut shown: String =
            self.line.chars().skip(skip).take(Self::SHOWN).map(|c| if c.is_control() && c != '\t' { '\u{fffd}' } else { c }).collect();
        if self.line.chars().count() > skip + Self::SHOWN {
            shown.push('…');
        }
        if skip > 0 { (format!("…{shown}"), before - skip + 1) } else { (shown, before) }
    }
}

impl fmt::Display for Diagnostic {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}:{}:{}: {}", self.file, self.position.line, self.position.column, self.error.fault)?;
        if let Some(meant) = self.error.meant() {
            write!(f, "; did you mean \"{meant}\"?")?;
        }
        let (line, before) = self.excerpt();
        // A tab in front of the word stays a tab, so that the mark stands under it whatever the tab width.
        let indent: String = line.chars().chain(std::iter::repeat(' ')).take(before).map(|c| if c == '\t' { '\t' } else { ' ' }).collect();
        let width = self.width.min((line.chars().count().saturating_sub(before)).max(1));
        write!(f, "\n  {line}\n  {indent}{}", "^".repeat(width))?;
        if !self.error.accepted.is_empty() {
            write!(f, "\n  accepted here: {}", self.error.accepted.join(", "))?;
        }
        if let Some(hint) = &self.error.hint {
            write!(f, "\n  {hint}")?;
        }
        Ok(())
    }
}

/// Everything that is wrong with a network file. Nothing of it was applied.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Errors {
    /// The first ones, in the order of the file.
    pub shown: Vec<Diagnostic>,
    /// How many follow.
    pub more: usize,
    /// Every line could be read; the tables cannot take what they ask for.
    pub parsed: bool,
}

impl Errors {
    /// How many errors are kept with their text.
    const SHOWN: usize = 20;

    pub(crate) fn none() -> Errors {
        Errors { shown: Vec::new(), more: 0, parsed: true }
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.shown.is_empty()
    }

    pub(crate) fn push(&mut self, file: &str, text: &str, error: Error) {
        if self.shown.len() < Self::SHOWN {
            self.shown.push(Diagnostic::new(file, text, error));
        } else {
            self.more += 1;
        }
    }
}

impl fmt::Display for Errors {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (number, diagnostic) in self.shown.iter().enumerate() {
            if number > 0 {
                f.write_str("\n")?;
            }
            write!(f, "{diagnostic}")?;
        }
        if self.more > 0 {
            write!(f, "\nand {} more", self.more)?;
        }
        Ok(())
    }
}

impl std::error::Error for Errors {}

#[cfg(test)]
mod tests {
    use super::*;

    fn shown(text: &str, start: u32, end: u32) -> String {
        let fault = Fault::Unknown { what: "keyword", word: "vai".into() };
        Diagnostic::new("net.ip", text, Error::new(Span { start, end }, fault).accepting(vec!["dev".into(), "via".into()])).to_string()
    }

    #[test]
    fn an_error_shows_its_place_its_line_and_what_is_accepted() {
        assert_eq!(
            shown("# x\nroute add default vai 10.0.0.1\n", 22, 25),
            "net.ip:2:19: unknown keyword \"vai\"; did you mean \"via\"?\n  route add default vai 10.0.0.1\n                    ^^^\n  accepted here: dev, via"
        );
    }

    #[test]
    fn a_tab_before_the_word_stays_a_tab() {
        assert!(shown("\tr\tvai", 3, 6).contains("\n  \tr\tvai\n  \t \t^^^\n"));
    }

    #[test]
    fn a_very_long_line_is_cut_around_the_word() {
        let text = format!("{} vai {}", "x".repeat(1000), "y".repeat(1000));
        let lines: Vec<String> = shown(&text, 1001, 1004).lines().map(str::to_owned).collect();
        assert!(lines[1].starts_with("  …") && lines[1].ends_with('…') && lines[1].chars().count() < 170);
        let mark = lines[2].chars().position(|c| c == '^').unwrap();
        assert_eq!(lines[1].chars().skip(mark).take(3).collect::<String>(), "vai");
    }
}

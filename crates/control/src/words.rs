//! Walking along the words of one command.

use crate::error::{Error, Fault};
use crate::keyword::{self, Keyword};
use crate::span::{Span, Word};

/// The words of a command, and how far they are read.
#[derive(Clone, Debug)]
pub(crate) struct Words<'w, 't> {
    words: &'w [Word<'t>],
    at: usize,
}

impl<'w, 't> Words<'w, 't> {
    pub(crate) fn new(words: &'w [Word<'t>]) -> Self {
        Words { words, at: 0 }
    }

    /// The next word, without taking it.
    pub(crate) fn peek(&self) -> Option<Word<'t>> {
        self.words.get(self.at).copied()
    }

    /// The first word, taken or not.
    pub(crate) fn first(&self) -> Option<Word<'t>> {
        self.words.first().copied()
    }

    /// Takes the next word if there is one.
    pub(crate) fn next(&mut self) -> Option<Word<'t>> {
        let word = self.peek()?;
        self.at += 1;
        Some(word)
    }

    /// Takes the next word if it is `text`.
    pub(crate) fn take(&mut self, text: &str) -> bool {
        let taken = self.peek().is_some_and(|word| word.text == text);
        self.at += usize::from(taken);
        taken
    }

    /// Takes the word that the one just taken needs; `what` names it, with its article.
    pub(crate) fn value(&mut self, what: impl Into<String>) -> Result<Word<'t>, Error> {
        self.next().ok_or_else(|| self.missing(what))
    }

    /// The error that something, named with its article, is missing behind the last word taken.
    pub(crate) fn missing(&self, what: impl Into<String>) -> Error {
        let last = self.at.checked_sub(1).and_then(|at| self.words.get(at));
        let (span, after) = last.map_or((Span::default(), String::from("the line")), |word| (word.span, format!("\"{}\"", word.text)));
        Error::new(span.behind(), Fault::Missing { what: what.into(), after })
    }

    /// The error that the command as a whole lacks something, named with its article; it points behind the command's last word.
    pub(crate) fn incomplete(&self, command: &str, what: impl Into<String>) -> Error {
        let end = self.words.last().map_or(Span::default(), |word| word.span.behind());
        Error::new(end, Fault::Missing { what: what.into(), after: command.to_owned() })
    }

    /// Takes one keyword of `table`. `what` names the kind of word for the error.
    pub(crate) fn keyword<'k, K>(&mut self, table: &'k [Keyword<K>], what: &'static str) -> Result<(&'k Keyword<K>, Word<'t>), Error> {
        let article = if what.starts_with(['a', 'e', 'i', 'o', 'u']) { "an" } else { "a" };
        let word = self.value(format!("{article} {what}")).map_err(|error| error.accepting(keyword::words(table)))?;
        match keyword::find(table, word.text) {
            Some(keyword) => Ok((keyword, word)),
            None => Err(unknown(word, what, keyword::words(table))),
        }
    }

    /// Fails if words are left over.
    pub(crate) fn end(&mut self) -> Result<(), Error> {
        match self.peek() {
            None => Ok(()),
            Some(word) => Err(Error::refused(word.span, format!("\"{}\" is too much here: the command is complete", word.text))),
        }
    }
}

/// The error for a word that is none of those accepted.
pub(crate) fn unknown(word: Word<'_>, what: &'static str, accepted: Vec<String>) -> Error {
    Error::new(word.span, Fault::Unknown { what, word: word.text.to_owned() }).accepting(accepted)
}

/// The error for a word that is not what is expected; `what` has its article.
pub(crate) fn no_value(word: Word<'_>, what: &'static str, why: impl Into<String>) -> Error {
    Error::new(word.span, Fault::Value { what, word: word.text.to_owned(), why: why.into() })
}

/// Sets `slot`, which may be set only once; `word` is the keyword that does it.
pub(crate) fn once<T>(slot: &mut Option<T>, value: T, word: Word<'_>) -> Result<(), Error> {
    if slot.is_some() {
        return Err(Error::new(word.span, Fault::Twice(word.text.to_owned())));
    }
    *slot = Some(value);
    Ok(())
}

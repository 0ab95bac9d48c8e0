//! Names and numbers of routing tables.

use route::TableId;

use crate::error::{Error, Fault};
use crate::number;
use crate::span::{Spanned, Word};

/// The names that every system has (`rt_tables` of iproute2).
const NAMES: [(&str, TableId); 4] =
    [("local", TableId::LOCAL), ("main", TableId::MAIN), ("default", TableId::DEFAULT), ("unspec", TableId(0))];

/// Reads a table: a name, or a number up to 4294967295.
pub(crate) fn parse(word: Word<'_>) -> Result<Spanned<TableId>, Error> {
    if let Some((_, table)) = NAMES.iter().find(|(name, _)| *name == word.text) {
        return Ok(word.with(*table));
    }
    if let Some(number) = number::fitting(word.text) {
        return Ok(word.with(TableId(number)));
    }
    let accepted = NAMES.iter().map(|(name, _)| (*name).to_owned()).chain(["0 to 4294967295".to_owned()]).collect();
    let error = Error::new(word.span, Fault::Unknown { what: "table", word: word.text.to_owned() }).accepting(accepted);
    Err(error.hint("names given in /etc/iproute2/rt_tables are not read; write the number"))
}

//! `ip rule`: which table answers for which packet.

use route::TableId;

use crate::address::{self, Family, Prefix};
use crate::command::{self, Seen, Verb, verb};
use crate::error::Error;
use crate::keyword::{self, Keyword, full, short};
use crate::number;
use crate::span::{Spanned, Word};
use crate::table;
use crate::words::{Words, once, unknown};

/// An `ip rule` command.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct RuleCommand<'t> {
    /// What to do.
    pub operation: RuleOperation,
    /// The family the rule is for.
    pub family: Family,
    /// Sources it is for.
    pub from: Option<Spanned<Prefix>>,
    /// Destinations it is for.
    pub to: Option<Spanned<Prefix>>,
    /// The interface it is for.
    pub iif: Option<Word<'t>>,
    /// The table it sends to; a new rule without one sends to `main`.
    pub table: Option<Spanned<TableId>>,
    /// Its preference: lower is asked first.
    pub preference: Option<Spanned<u32>>,
    /// `protocol`: who set it, a note.
    pub protocol: Option<Spanned<u8>>,
    /// Where the verb stands, for errors about the rule as a whole.
    pub verb: Word<'t>,
}

/// What is done with a rule.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum RuleOperation {
    /// It must not exist.
    Add,
    /// The first rule that has all that is given goes.
    Delete,
}

const VERBS: &[Keyword<Verb<RuleOperation>>] = &[
    short("list", Verb::Show),
    short("lst", Verb::Show),
    short("show", Verb::Show),
    short("save", Verb::Show),
    short("add", Verb::Do(RuleOperation::Add)),
    short("delete", Verb::Do(RuleOperation::Delete)),
    short("flush", Verb::Later),
    short("restore", Verb::Later),
];

#[derive(Clone, Copy, Debug)]
enum Key {
    From,
    To,
    Preference,
    Protocol,
    Table,
    Iif,
    /// iproute2 knows it, noref not yet.
    Later,
}

const KEYS: &[Keyword<Key>] = &[
    full("not", Key::Later),
    full("from", Key::From),
    full("to", Key::To),
    short("preference", Key::Preference),
    short("order", Key::Preference),
    short("priority", Key::Preference),
    full("tos", Key::Later),
    short("dsfield", Key::Later),
    full("fwmark", Key::Later),
    full("realms", Key::Later),
    short("protocol", Key::Protocol),
    full("tun_id", Key::Later),
    short("table", Key::Table),
    full("lookup", Key::Table),
    short("suppress_prefixlength", Key::Later),
    full("sup_pl", Key::Later),
    short("suppress_ifgroup", Key::Later),
    full("sup_group", Key::Later),
    full("dev", Key::Iif),
    full("iif", Key::Iif),
    full("oif", Key::Later),
    full("l3mdev", Key::Later),
    full("uidrange", Key::Later),
    full("ipproto", Key::Later),
    full("sport", Key::Later),
    full("dport", Key::Later),
    full("dscp", Key::Later),
    full("flowlabel", Key::Later),
    full("type", Key::Later),
    short("goto", Key::Later),
    short("nop", Key::Later),
    full("unicast", Key::Later),
    full("blackhole", Key::Later),
    full("unreachable", Key::Later),
    full("prohibit", Key::Later),
    full("throw", Key::Later),
    full("nat", Key::Later),
];

/// Whether a verb of `ip rule` shows something.
pub(crate) fn seen(word: &str) -> Seen {
    command::seen(VERBS, word)
}

/// Reads what follows `ip rule`.
pub(crate) fn parse<'t>(words: &mut Words<'_, 't>, family: Option<Family>) -> Result<RuleCommand<'t>, Error> {
    let (operation, verb) = verb(words, "rule", VERBS)?;
    let mut family = family;
    let (mut from, mut to, mut iif, mut table, mut preference, mut protocol) = (None, None, None, None, None, None);
    while let Some(word) = words.next() {
        match keyword::find(KEYS, word.text).map(|keyword| keyword.key) {
            Some(Key::From) => once(&mut from, selector(words.value("a prefix")?, &mut family)?, word)?,
            Some(Key::To) => once(&mut to, selector(words.value("a prefix")?, &mut family)?, word)?,
            Some(Key::Preference) => once(&mut preference, number::u32(words.value("a number")?, "a preference")?, word)?,
            Some(Key::Protocol) => once(&mut protocol, crate::protocol::parse(words.value("a protocol")?)?, word)?,
            Some(Key::Table) => once(&mut table, table::parse(words.value("a table")?)?, word)?,
            Some(Key::Iif) => once(&mut iif, words.value("a device")?, word)?,
            Some(Key::Later) => return Err(Error::not_implemented(word.span, format!("\"{}\" of a rule", word.text))),
            None => return Err(unknown(word, "keyword", accepted())),
        }
    }
    // iproute2 sends an unspecified table as none, and the kernel has no rule that leads nowhere.
    if let Some(none) = table.filter(|table| table.value == TableId(0)) {
        return Err(Error::refused(none.span, "a rule needs a table to send to, 1 to 4294967295"));
    }
    let given = from.is_some() || to.is_some() || iif.is_some() || table.is_some() || preference.is_some();
    if operation == RuleOperation::Delete && !given {
        return Err(words.incomplete("\"rule del\"", "something to tell the rule by"));
    }
    Ok(RuleCommand {
        operation,
        family: family.unwrap_or(Family::V4),
        from: from.flatten(),
        to: to.flatten(),
        iif,
        table,
        preference,
        protocol,
        verb,
    })
}

/// A prefix that a rule selects by; `all` selects nothing. It settles the family for what follows.
fn selector(word: Word<'_>, family: &mut Option<Family>) -> Result<Option<Spanned<Prefix>>, Error> {
    let prefix = address::prefix(word, *family)?;
    if let Some(prefix) = prefix.value {
        *family = Some(prefix.family());
    }
    Ok(prefix.value.filter(|prefix| prefix.len > 0).map(|prefix| word.with(prefix.masked())))
}

fn accepted() -> Vec<String> {
    keyword::words_of(KEYS, |key| !matches!(key, Key::Later))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Command;
    use crate::command::{fault, parsed};

    fn rule(line: &str) -> RuleCommand<'_> {
        match parsed(line) {
            Ok(Command::Rule(rule)) => rule,
            other => panic!("{line}: {other:?}"),
        }
    }

    #[test]
    fn a_rule_selects_and_sends_to_a_table() {
        let read = rule("ip rule add from 10.0.0.65/26 to 10.9/16 iif e0 lookup 100 pref 0x64");
        let shown = |prefix: Option<Spanned<Prefix>>| prefix.unwrap().value.to_string();
        assert_eq!((shown(read.from), shown(read.to)), ("10.0.0.64/26".into(), "10.9.0.0/16".into()));
        assert_eq!((read.iif.unwrap().text, read.table.unwrap().value, read.preference.unwrap().value), ("e0", TableId(100), 100));
        let read = rule("ru a from all to fc00:2::/32 t main o 900");
        assert_eq!((read.family, read.from, read.table.unwrap().value), (Family::V6, None, TableId::MAIN));
        assert_eq!(rule("ip -6 rule del lookup local pref 0").family, Family::V6);
    }

    #[test]
    fn what_is_not_there_yet_is_refused_by_name() {
        for word in [
            "not",
            "tos",
            "dsfield",
            "fwmark",
            "realms",
            "suppress_prefixlength",
            "sup_pl",
            "oif",
            "l3mdev",
            "uidrange",
            "ipproto",
            "sport",
            "dport",
            "type",
            "goto",
            "nop",
            "blackhole",
            "unreachable",
            "prohibit",
        ] {
            assert_eq!(fault(&format!("ip rule add {word} 1 lookup 100")), format!("\"{word}\" of a rule is not implemented yet"));
        }
        assert_eq!(fault("ip rule add lookup unspec"), "a rule needs a table to send to, 1 to 4294967295");
        assert_eq!(fault("ip rule add lookup nowhere"), "unknown table \"nowhere\"");
        assert_eq!(fault("ip rule add lokup 5"), "unknown keyword \"lokup\"");
        assert_eq!(fault("ip rule del"), "\"rule del\" needs something to tell the rule by");
        assert_eq!(fault("ip rule add from 10.0.0.0/8 to fd00::/8"), "\"fd00::\" is not an IPv4 address: it is an IPv6 address");
    }
}

//! `ip rule`: which table answers for which packet.

use route::TableId;

use crate::address::Family;
use crate::command::{self, Seen, Verb, verb};
use crate::error::Error;
use crate::keyword::{self, Keyword, full, short};
use crate::packets::{PacketKey, Packets};
use crate::span::{Spanned, Word};
use crate::words::{Words, once, unknown};
use crate::{number, table};

/// An `ip rule` command.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct RuleCommand<'t> {
    /// What to do.
    pub operation: RuleOperation,
    /// The family the rule is for.
    pub family: Family,
    /// The packets it is for.
    pub packets: Packets<'t>,
    /// The table it sends to; a new rule without one sends to `main`.
    pub table: Option<Spanned<TableId>>,
    /// What it does, if not to send to a table.
    pub kind: Option<Spanned<RuleKind>>,
    /// `suppress_prefixlength`.
    pub suppress_len: Option<Spanned<u8>>,
    /// `suppress_ifgroup`.
    pub suppress_group: Option<Spanned<u32>>,
    /// Its preference: lower is asked first.
    pub preference: Option<Spanned<u32>>,
    /// `protocol`: who set it, a note.
    pub protocol: Option<Spanned<u8>>,
    /// Where the verb stands, for errors about the rule as a whole.
    pub verb: Word<'t>,
}

/// What is done with rules.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum RuleOperation {
    /// It must not exist.
    Add,
    /// The first rule that has all that is given goes.
    Delete,
    /// All rules that have what is given go, but for those of preference 0.
    Flush,
}

/// What a rule does.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum RuleKind {
    /// `unicast`: sends to a table.
    Lookup,
    /// `goto`.
    Goto(u32),
    /// `nop`.
    Nop,
    /// `blackhole`.
    Blackhole,
    /// `unreachable`.
    Unreachable,
    /// `prohibit`.
    Prohibit,
}

const VERBS: &[Keyword<Verb<RuleOperation>>] = &[
    short("list", Verb::Show),
    short("lst", Verb::Show),
    short("show", Verb::Show),
    short("save", Verb::Show),
    short("add", Verb::Do(RuleOperation::Add)),
    short("delete", Verb::Do(RuleOperation::Delete)),
    short("flush", Verb::Do(RuleOperation::Flush)),
    short("restore", Verb::Later),
];

#[derive(Clone, Copy, Debug)]
enum Key {
    Packets(PacketKey),
    Preference,
    Protocol,
    Table,
    SuppressLen,
    SuppressGroup,
    Type,
    Goto,
    Kind(RuleKind),
    /// iproute2 knows it, noref not.
    Later,
}

const KEYS: &[Keyword<Key>] = &[
    full("not", Key::Packets(PacketKey::Not)),
    full("from", Key::Packets(PacketKey::From)),
    full("to", Key::Packets(PacketKey::To)),
    short("preference", Key::Preference),
    short("order", Key::Preference),
    short("priority", Key::Preference),
    full("tos", Key::Packets(PacketKey::Tos)),
    short("dsfield", Key::Packets(PacketKey::Tos)),
    full("fwmark", Key::Packets(PacketKey::Mark)),
    full("realms", Key::Later),
    short("protocol", Key::Protocol),
    full("tun_id", Key::Later),
    short("table", Key::Table),
    full("lookup", Key::Table),
    short("suppress_prefixlength", Key::SuppressLen),
    full("sup_pl", Key::SuppressLen),
    short("suppress_ifgroup", Key::SuppressGroup),
    full("sup_group", Key::SuppressGroup),
    full("dev", Key::Packets(PacketKey::Iif)),
    full("iif", Key::Packets(PacketKey::Iif)),
    full("oif", Key::Packets(PacketKey::Oif)),
    full("l3mdev", Key::Packets(PacketKey::L3mdev)),
    full("uidrange", Key::Later),
    full("ipproto", Key::Packets(PacketKey::Protocol)),
    full("sport", Key::Packets(PacketKey::Sport)),
    full("dport", Key::Packets(PacketKey::Dport)),
    full("dscp", Key::Packets(PacketKey::Dscp)),
    full("flowlabel", Key::Later),
    full("type", Key::Type),
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
    let rule = selection(words, family, operation, verb)?;
    let given = rule.packets.given || rule.table.is_some() || rule.preference.is_some() || rule.kind.is_some();
    let given = given || rule.suppress_len.is_some() || rule.suppress_group.is_some() || rule.protocol.is_some();
    if operation == RuleOperation::Delete && !given {
        return Err(words.incomplete("\"rule del\"", "something to tell the rule by"));
    }
    if operation == RuleOperation::Add {
        check_new(&rule)?;
    }
    Ok(rule)
}

/// Reads what a rule is told by, behind the verb.
pub(crate) fn selection<'t>(
    words: &mut Words<'_, 't>,
    mut family: Option<Family>,
    operation: RuleOperation,
    verb: Word<'t>,
) -> Result<RuleCommand<'t>, Error> {
    let mut rule = RuleCommand {
        operation,
        family: Family::V4,
        packets: Packets::default(),
        table: None,
        kind: None,
        suppress_len: None,
        suppress_group: None,
        preference: None,
        protocol: None,
        verb,
    };
    while let Some(word) = words.next() {
        let known = keyword::find(KEYS, word.text).or_else(|| keyword::find(KINDS, word.text));
        let Some(keyword) = known else { return Err(unknown(word, "keyword", accepted())) };
        match keyword.key {
            Key::Packets(key) => rule.packets.read(key, word, words, &mut family)?,
            Key::Preference => once(&mut rule.preference, number::u32(words.value("a number")?, "a preference")?, word)?,
            Key::Protocol => once(&mut rule.protocol, crate::protocol::parse(words.value("a protocol")?)?, word)?,
            Key::Table => once(&mut rule.table, table::parse(words.value("a table")?)?, word)?,
            Key::SuppressLen => {
                let length = number::in_range(words.value("a length")?, "a prefix length", 0, 254)?;
                once(&mut rule.suppress_len, Spanned::new(length.value as u8, length.span), word)?;
            }
            Key::SuppressGroup => once(&mut rule.suppress_group, group(words.value("a group")?)?, word)?,
            Key::Type => {
                let (keyword, word) = words.keyword(KINDS, "type of rule")?;
                kind(&mut rule, keyword.key, word, words)?;
            }
            key @ (Key::Goto | Key::Kind(_)) => kind(&mut rule, key, word, words)?,
            Key::Later => return Err(Error::not_implemented(word.span, format!("\"{}\" of a rule", word.text))),
        }
    }
    rule.family = family.unwrap_or(Family::V4);
    // iproute2 sends an unspecified table as none, and which one the kernel makes of that is its own affair.
    if let Some(none) = rule.table.filter(|table| table.value == TableId(0)) {
        return Err(Error::refused(none.span, "a rule needs a table to send to, 1 to 4294967295"));
    }
    Ok(rule)
}

/// What may stand behind `type`, and alone.
const KINDS: &[Keyword<Key>] = &[
    short("goto", Key::Goto),
    short("nop", Key::Kind(RuleKind::Nop)),
    full("unicast", Key::Kind(RuleKind::Lookup)),
    full("blackhole", Key::Kind(RuleKind::Blackhole)),
    full("unreachable", Key::Kind(RuleKind::Unreachable)),
    full("prohibit", Key::Kind(RuleKind::Prohibit)),
];

fn kind<'t>(rule: &mut RuleCommand<'t>, key: Key, word: Word<'t>, words: &mut Words<'_, 't>) -> Result<(), Error> {
    let kind = match key {
        Key::Kind(kind) => kind,
        _ => RuleKind::Goto(number::u32(words.value("a preference")?, "a preference")?.value),
    };
    once(&mut rule.kind, word.with(kind), word)
}

/// What the kernel and iproute2 refuse of a new rule.
fn check_new(rule: &RuleCommand<'_>) -> Result<(), Error> {
    if let (Some(table), Some(_)) = (rule.table, rule.packets.l3mdev) {
        return Err(Error::refused(table.span, "a rule with \"l3mdev\" sends to the table of the packet's VRF and names none"));
    }
    rule.preference.map_or(Ok(()), |preference| goes_forward(rule.kind, preference.value))
}

/// Refuses a `goto` of a rule of this preference that would not lead to a later one.
pub(crate) fn goes_forward(kind: Option<Spanned<RuleKind>>, preference: u32) -> Result<(), Error> {
    match kind {
        Some(Spanned { value: RuleKind::Goto(target), span }) if target <= preference => {
            Err(Error::refused(span, format!("\"goto\" goes forward only: to a preference above {preference}")))
        }
        _ => Ok(()),
    }
}

/// A group of devices.
pub(crate) fn group(word: Word<'_>) -> Result<Spanned<u32>, Error> {
    if word.text == "default" { Ok(word.with(0)) } else { number::u32(word, "a group of devices") }
}

fn accepted() -> Vec<String> {
    let mut words = keyword::words_of(KEYS, |key| !matches!(key, Key::Later));
    words.extend(keyword::words(KINDS));
    words
}

#[cfg(test)]
mod tests {
    use route::{Mark, Ports};

    use super::*;
    use crate::Command;
    use crate::address::Prefix;
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
        assert_eq!((shown(read.packets.from), shown(read.packets.to)), ("10.0.0.64/26".into(), "10.9.0.0/16".into()));
        assert_eq!((read.packets.iif.unwrap().text, read.table.unwrap().value, read.preference.unwrap().value), ("e0", TableId(100), 100));
        let read = rule("ru a from all to fc00:2::/32 t main o 900");
        assert_eq!((read.family, read.packets.from, read.table.unwrap().value), (Family::V6, None, TableId::MAIN));
        assert_eq!(rule("ip -6 rule del lookup local pref 0").family, Family::V6);
    }

    #[test]
    fn every_selector_and_action_is_read() {
        let read = rule("ip rule add not fwmark 0x1/0xf tos 0x10 ipproto udp sport 1000-2000 dport 53 oif e1 l3mdev prohibit");
        let packets = &read.packets;
        assert!(packets.not.is_some() && packets.l3mdev.is_some());
        assert_eq!(packets.mark.map(|mark| mark.value), Some(Mark { value: 1, mask: 15 }));
        assert_eq!((packets.tos.map(|tos| tos.value), packets.protocol.map(|protocol| protocol.value)), (Some(16), Some(17)));
        let ports = [packets.sport, packets.dport].map(|ports| ports.map(|ports| ports.value));
        assert_eq!(ports, [Some(Ports { first: 1000, last: 2000 }), Some(Ports { first: 53, last: 53 })]);
        assert_eq!((packets.oif.unwrap().text, read.kind.unwrap().value), ("e1", RuleKind::Prohibit));
        let read = rule("ip rule add lookup 5 suppress_prefixlength 0 suppress_ifgroup default dscp EF");
        assert_eq!((read.suppress_len.unwrap().value, read.suppress_group.unwrap().value), (0, 0));
        assert_eq!(read.packets.dscp.unwrap().value, 46);
        assert_eq!(rule("ip rule add pref 5 goto 9").kind.unwrap().value, RuleKind::Goto(9));
        assert_eq!(rule("ip rule add type nop").kind.unwrap().value, RuleKind::Nop);
        assert_eq!(rule("ip rule flush table 5").operation, RuleOperation::Flush);
    }

    #[test]
    fn what_the_kernel_refuses_is_refused() {
        assert_eq!(fault("ip rule add pref 9 goto 9"), "\"goto\" goes forward only: to a preference above 9");
        assert!(fault("ip rule add l3mdev lookup 5").starts_with("a rule with \"l3mdev\""));
        assert_eq!(
            fault("ip rule add dport 0 lookup 5"),
            "\"0\" is not a port: a number from 1 to 65534, or two as FIRST-LAST, is expected"
        );
        assert_eq!(fault("ip rule add sport 9-8 lookup 5"), "\"9-8\" is not a range of ports: its first port is above its last");
        assert_eq!(
            fault("ip rule add tos 0x12 lookup 5"),
            "\"0x12\" is not a DS field to select by: its last two bits are ECN and must be 0"
        );
    }

    #[test]
    fn what_is_not_there_is_refused_by_name() {
        for word in ["realms", "uidrange", "tun_id", "flowlabel", "throw", "nat"] {
            assert_eq!(fault(&format!("ip rule add {word} 1 lookup 100")), format!("\"{word}\" of a rule is not implemented yet"));
        }
        assert_eq!(fault("ip rule add lookup unspec"), "a rule needs a table to send to, 1 to 4294967295");
        assert_eq!(fault("ip rule add lookup nowhere"), "unknown table \"nowhere\"");
        assert_eq!(fault("ip rule add lokup 5"), "unknown keyword \"lokup\"");
        assert_eq!(fault("ip rule del"), "\"rule del\" needs something to tell the rule by");
        assert_eq!(fault("ip rule add from 10.0.0.0/8 to fd00::/8"), "\"fd00::\" is not an IPv4 address: it is an IPv6 address");
    }
}

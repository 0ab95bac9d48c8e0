//! One line of a network file as a typed command.

use crate::addr::{self, AddressCommand};
use crate::address::Family;
use crate::error::{Error, Fault};
use crate::keyword::{self, Keyword, full, short};
use crate::link::{self, LinkCommand};
use crate::mark::{self, MarkCommand};
use crate::neigh::{self, NeighbourCommand};
use crate::nexthop_object::{self, NexthopCommand};
use crate::route::{self, RouteCommand};
use crate::rule::{self, RuleCommand};
use crate::span::{Span, Word};
use crate::sr::{self, SrCommand};
use crate::sysctl::{self, Setting};
use crate::words::{Words, no_value, unknown};

/// What a line asks for. Names are borrowed from the text; values keep the place they were read from.
#[derive(Clone, PartialEq, Debug)]
pub enum Command<'t> {
    /// `ip link`.
    Link(LinkCommand<'t>),
    /// `ip address`.
    Address(AddressCommand<'t>),
    /// `ip route`.
    Route(RouteCommand<'t>),
    /// `ip rule`.
    Rule(RuleCommand<'t>),
    /// `mark`.
    Mark(MarkCommand<'t>),
    /// `ip neighbour`.
    Neighbour(NeighbourCommand<'t>),
    /// `ip nexthop`.
    Nexthop(NexthopCommand<'t>),
    /// `ip sr`.
    Sr(SrCommand<'t>),
    /// `sysctl`, which takes any number of settings.
    Sysctl(Vec<Setting<'t>>),
}

/// What a command is about.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Object {
    Address,
    Route,
    Rule,
    Neighbour,
    Nexthop,
    Link,
    Sr,
    /// iproute2 knows it, noref not yet.
    Later,
}

/// In iproute2's order, which its abbreviations depend on.
pub(crate) const OBJECTS: &[Keyword<Object>] = &[
    short("address", Object::Address),
    short("addrlabel", Object::Later),
    short("maddress", Object::Later),
    short("route", Object::Route),
    short("rule", Object::Rule),
    short("neighbor", Object::Neighbour),
    short("neighbour", Object::Neighbour),
    short("ntable", Object::Later),
    short("ntbl", Object::Later),
    short("link", Object::Link),
    short("l2tp", Object::Later),
    short("fou", Object::Later),
    short("ila", Object::Later),
    short("macsec", Object::Later),
    short("tunnel", Object::Later),
    short("tunl", Object::Later),
    short("tuntap", Object::Later),
    short("tap", Object::Later),
    short("token", Object::Later),
    short("tcpmetrics", Object::Later),
    short("monitor", Object::Later),
    short("xfrm", Object::Later),
    short("mroute", Object::Later),
    short("mrule", Object::Later),
    short("netns", Object::Later),
    short("netconf", Object::Later),
    short("vrf", Object::Later),
    short("sr", Object::Sr),
    short("nexthop", Object::Nexthop),
    short("mptcp", Object::Later),
    short("ioam", Object::Later),
    short("stats", Object::Later),
];

/// What to do with an object.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Verb<V> {
    /// Something that noref does.
    Do(V),
    /// Something that only shows.
    Show,
    /// iproute2 knows it, noref not yet.
    Later,
}

/// Reads the verb of a command, `add` or `replace`; `object` is the command so far, for the error.
pub(crate) fn verb<'t, V: Copy>(words: &mut Words<'_, 't>, object: &str, table: &[Keyword<Verb<V>>]) -> Result<(V, Word<'t>), Error> {
    let doing = || keyword::words_of(table, |verb| matches!(verb, Verb::Do(_)));
    let word = words.value("a command").map_err(|error| error.accepting(doing()))?;
    match keyword::find(table, word.text).map(|keyword| (keyword.key, keyword.word)) {
        Some((Verb::Do(verb), _)) => Ok((verb, word)),
        Some((Verb::Show, name)) => Err(Error::new(word.span, Fault::ShowsOnly(format!("{object} {name}")))),
        Some((Verb::Later, name)) => Err(Error::not_implemented(word.span, format!("\"{object} {name}\"")).accepting(doing())),
        None => Err(unknown(word, "command", doing())),
    }
}

/// What a verb is to somebody who is asked to show things.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Seen {
    /// It shows what there is.
    Shows,
    /// It shows something that noref does not show yet.
    Later(&'static str),
    /// It changes something, or is no verb.
    Other,
}

/// What the verb `word` is among those of an object.
pub(crate) fn seen<V: Copy>(table: &'static [Keyword<Verb<V>>], word: &str) -> Seen {
    match keyword::find(table, word).map(|keyword| (keyword.key, keyword.word)) {
        Some((Verb::Show, "show" | "list" | "lst")) => Seen::Shows,
        Some((Verb::Show, name)) => Seen::Later(name),
        _ => Seen::Other,
    }
}

/// Reads a line. The words are those of [`crate::lexer::Lexer`], at least one.
pub(crate) fn parse<'t>(words: &[Word<'t>]) -> Result<Command<'t>, Error> {
    let mut words = Words::new(words);
    let first = words.peek().map_or("", |word| word.text);
    match first {
        "sysctl" => {
            words.next();
            return sysctl::parse(&mut words).map(Command::Sysctl);
        }
        "bridge" | "tc" | "ethtool" | "devlink" | "dcb" | "rdma" => {
            let span = words.next().map_or(Span::default(), |word| word.span);
            return Err(Error::not_implemented(span, format!("\"{first}\"")));
        }
        _ => {}
    }
    words.take("ip");
    let family = options(&mut words)?;
    let accepted = || {
        let objects = OBJECTS.iter().filter(|object| !matches!(object.key, Object::Later) && object.word != "neighbor");
        objects.map(|object| object.word.to_owned()).chain(["sysctl".to_owned()]).collect::<Vec<_>>()
    };
    if words.take("mark") {
        let command = mark::parse(&mut words, family)?;
        words.end()?;
        return Ok(Command::Mark(command));
    }
    let word = words.value("an object").map_err(|error| error.accepting(accepted()))?;
    let Some(object) = keyword::find(OBJECTS, word.text) else {
        return Err(unknown(word, "object", accepted()));
    };
    let command = match object.key {
        Object::Address => addr::parse(&mut words, family).map(Command::Address),
        Object::Route => route::parse(&mut words, family).map(Command::Route),
        Object::Rule => rule::parse(&mut words, family).map(Command::Rule),
        Object::Neighbour => neigh::parse(&mut words, family).map(Command::Neighbour),
        Object::Nexthop => nexthop_object::parse(&mut words, family).map(Command::Nexthop),
        Object::Link => link::parse(&mut words).map(Command::Link),
        Object::Sr => sr::parse(&mut words).map(Command::Sr),
        Object::Later => Err(Error::not_implemented(word.span, format!("\"ip {}\"", object.word))),
    }?;
    words.end()?;
    Ok(command)
}

/// Whether later lines may need what this one sets up; also of a line that can not be read.
pub(crate) fn others_build_on(words: &[Word<'_>]) -> bool {
    let mut words = Words::new(words);
    words.take("ip");
    if options(&mut words).is_err() {
        return true;
    }
    let object = words.next().and_then(|word| keyword::find(OBJECTS, word.text)).map(|object| object.key);
    !matches!(object, Some(Object::Route | Object::Rule | Object::Neighbour | Object::Later))
}

/// Reads the options in front of the object: `-4`, `-6`, `-family inet|inet6`.
fn options(words: &mut Words<'_, '_>) -> Result<Option<Family>, Error> {
    let mut family = None;
    while let Some(word) = words.peek().filter(|word| word.text.starts_with('-')) {
        family = Some(family_option(words)?.ok_or_else(|| {
            no_value(word, "an option", "a network file takes those that name the address family")
                .accepting(["-4", "-6", "-family"].map(str::to_owned).to_vec())
        })?);
    }
    Ok(family)
}

/// Reads an option that names the family, if the next word is one.
pub(crate) fn family_option(words: &mut Words<'_, '_>) -> Result<Option<Family>, Error> {
    // Those that noref has not are without a key.
    const FAMILIES: &[Keyword<Option<Family>>] =
        &[full("inet", Some(Family::V4)), full("inet6", Some(Family::V6)), full("mpls", None), full("bridge", None), full("link", None)];
    let named = match words.peek().map_or("", |word| word.text) {
        "-4" => Family::V4,
        "-6" => Family::V6,
        option if option.len() > 1 && "-family".starts_with(option) => {
            words.next();
            let accepted = || keyword::words_of(FAMILIES, Option::is_some);
            let word = words.value("a family").map_err(|error| error.accepting(accepted()))?;
            let family = keyword::find(FAMILIES, word.text).ok_or_else(|| unknown(word, "family", accepted()))?;
            let later = || Error::not_implemented(word.span, format!("the family \"{}\"", family.word)).accepting(accepted());
            return family.key.map(Some).ok_or_else(later);
        }
        _ => return Ok(None),
    };
    words.next();
    Ok(Some(named))
}

/// Reads one line, for the tests of the objects.
#[cfg(test)]
pub(crate) fn parsed(line: &str) -> Result<Command<'_>, Error> {
    let mut words = Vec::new();
    crate::lexer::Lexer::new(line).next_line(&mut words)?;
    parse(&words)
}

/// What is said of a wrong line, for the tests of the objects.
#[cfg(test)]
pub(crate) fn fault(line: &str) -> String {
    parsed(line).expect_err("the line is wrong").to_string()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn objects_may_be_cut_short_as_iproute2_takes_them() {
        let object = |line: &'static str| match parsed(line) {
            Ok(Command::Link(_)) => "link",
            Ok(Command::Address(_)) => "address",
            Ok(Command::Route(_)) => "route",
            Ok(Command::Rule(_)) => "rule",
            Ok(Command::Mark(_)) => "mark",
            Ok(Command::Neighbour(_)) => "neighbour",
            Ok(Command::Nexthop(_)) => "nexthop",
            Ok(Command::Sr(_)) => "sr",
            Ok(Command::Sysctl(_)) => "sysctl",
            Err(error) => panic!("{line}: {error}"),
        };
        for line in [
            "r a default dev e0",
            "ro add default dev e0",
            "ip route add default dev e0",
            "ip -4 r r default dev e0",
            "route ap default dev e0",
        ] {
            assert_eq!(object(line), "route", "{line}");
        }
        assert_eq!(object("ru a lookup 5"), "rule");
        assert_eq!(object("a a 10.0.0.1/8 dev e0"), "address");
        assert_eq!(object("addr del 10.0.0.1/8 dev e0"), "address");
        assert_eq!(object("l s e0 up"), "link");
        assert_eq!(object("ip link set dev e0 up"), "link");
        assert_eq!(object("n r 10.0.0.2 lladdr 2:0:0:0:0:1 dev e0"), "neighbour");
        assert_eq!(object("neighbor del 10.0.0.2 dev e0"), "neighbour");
        assert_eq!(object("s t s fd00::1"), "sr");
        assert_eq!(object("sysctl -w net.ipv4.ip_forward=1"), "sysctl");
    }

    #[test]
    fn the_family_may_be_named_in_front() {
        for (line, family) in [
            ("ip -6 route add default dev e0", Family::V6),
            ("-6 route add default dev e0", Family::V6),
            ("ip -family inet6 route add default dev e0", Family::V6),
            ("ip -f inet route add default dev e0", Family::V4),
            ("ip route add default dev e0", Family::V4),
        ] {
            let Ok(Command::Route(route)) = parsed(line) else { panic!("{line}") };
            assert_eq!(route.family, family, "{line}");
        }
        assert_eq!(fault("ip -7 route add default"), "\"-7\" is not an option: a network file takes those that name the address family");
        assert_eq!(fault("ip -family inet7 route add default"), "unknown family \"inet7\"");
    }

    #[test]
    fn what_only_shows_and_what_is_not_there_yet_are_refused_by_name() {
        assert_eq!(fault("ip route show"), "\"route show\" only shows; a network file holds what is to be configured");
        assert_eq!(fault("ip route flush table main"), "\"route flush\" is not implemented yet");
        assert_eq!(fault("ip mroute add x"), "\"ip mroute\" is not implemented yet");
        assert_eq!(fault("bridge fdb add x dev y"), "\"bridge\" is not implemented yet");
        assert_eq!(fault("ip rout3 add default"), "unknown object \"rout3\"");
        assert_eq!(fault("ip route ad3 default"), "unknown command \"ad3\"");
        assert_eq!(fault("ip"), "\"ip\" needs an object");
        assert_eq!(fault("ip sr tunsrc set fd00::1 dev e0"), "\"dev\" is too much here: the command is complete");
    }
}

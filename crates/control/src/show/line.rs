//! A line that shows something, as it was written.

use super::get::Asked;
use super::selector::{LinkSelector, NeighbourSelector, RouteSelector};
use crate::address::Family;
use crate::command::{self, OBJECTS, Object, Seen};
use crate::error::Error;
use crate::keyword::{self, Keyword, full, short};
use crate::nexthop_object::{self, BucketSelector, NexthopSelector};
use crate::rule::{self, RuleCommand, RuleOperation};
use crate::span::Word;
use crate::words::{Words, unknown};
use crate::{addr, link, mark, neigh, route};

/// What stands in front of the object.
#[derive(Clone, Copy, Default, Debug)]
pub(super) struct Options {
    /// `-4`, `-6`, `-family`.
    pub family: Option<Family>,
    /// `-s`: with counters.
    pub statistics: bool,
    /// `-o`: each entry on one line.
    pub oneline: bool,
    /// `-d`: with what a device is.
    pub details: bool,
}

/// The line.
pub(super) struct Line<'t> {
    pub options: Options,
    pub subject: Subject<'t>,
}

/// Of what.
pub(super) enum Subject<'t> {
    Routes(RouteSelector<'t>),
    /// `ip route get`.
    Get(Box<Asked<'t>>),
    Rules(Box<RuleCommand<'t>>),
    Marks,
    Neighbours(NeighbourSelector<'t>),
    /// `ip link`, or `ip address`.
    Links(LinkSelector<'t>),
    Nexthops(NexthopSelector<'t>),
    Buckets(BucketSelector<'t>),
    TunnelSource,
    HmacKeys,
}

/// Reads a line; none when it does not show anything.
pub(super) fn parse<'t>(words: &[Word<'t>]) -> Result<Option<Line<'t>>, Error> {
    let mut words = Words::new(words);
    words.take("ip");
    let mut options = options(&mut words)?;
    if words.take("mark") {
        let shows = words.next().is_none_or(|verb| mark::seen(verb.text) == Seen::Shows);
        words.end()?;
        return Ok(shows.then_some(Line { options, subject: Subject::Marks }));
    }
    let Some(object) = words.next().and_then(|word| keyword::find(OBJECTS, word.text)) else { return Ok(None) };
    let Some(subject) = subject(&mut words, object, options.family)? else { return Ok(None) };
    words.end()?;
    match &subject {
        Subject::Routes(selector) => options.family = selector.family.or(options.family),
        Subject::Neighbours(selector) => options.family = selector.to.map(|to| to.value.family()).or(options.family),
        _ => {}
    }
    let not_of = |option: &str| {
        let span = words.first().map_or(crate::Span::default(), |word| word.span);
        Error::not_implemented(span, format!("\"{option}\" of \"ip {}\"", object.word))
    };
    if options.statistics && !matches!(subject, Subject::Routes(_)) {
        return Err(
            not_of("-statistics").hint("\"noref show ports\", \"noref show counters\" and \"noref show sids\" have what was counted")
        );
    }
    if options.details && !matches!(subject, Subject::Links(_)) {
        return Err(not_of("-details"));
    }
    Ok(Some(Line { options, subject }))
}

/// What an object's words ask to be shown; none when they ask for something else.
fn subject<'t>(words: &mut Words<'_, 't>, object: &Keyword<Object>, family: Option<Family>) -> Result<Option<Subject<'t>>, Error> {
    let shows = |words: &mut Words<'_, 't>, seen: fn(&str) -> Seen| -> Result<bool, Error> {
        match words.peek() {
            None => Ok(true),
            Some(verb) => match seen(verb.text) {
                Seen::Shows => Ok(words.next().is_some()),
                Seen::Later(name) => {
                    Err(Error::not_implemented(verb.span, format!("\"{} {name}\"", object.word)).accepting(vec!["show".to_owned()]))
                }
                Seen::Other => Ok(false),
            },
        }
    };
    Ok(Some(match object.key {
        Object::Route if words.peek().is_some_and(|verb| route::asks(verb.text)) => {
            words.next();
            Subject::Get(Box::new(Asked::parse(words, family)?))
        }
        Object::Route if shows(words, route::seen)? => Subject::Routes(RouteSelector::parse(words, family)?),
        Object::Rule if shows(words, rule::seen)? => {
            let verb = words.first().unwrap_or(Word { text: "", span: crate::Span::default() });
            Subject::Rules(Box::new(rule::selection(words, family, RuleOperation::Flush, verb)?))
        }
        Object::Neighbour if shows(words, neigh::seen)? => Subject::Neighbours(NeighbourSelector::parse(words, family)?),
        Object::Link if shows(words, link::seen)? => Subject::Links(LinkSelector::parse(words, false)?),
        Object::Address if shows(words, addr::seen)? => Subject::Links(LinkSelector::parse(words, true)?),
        Object::Nexthop if words.peek().is_some_and(|verb| nexthop_object::is_bucket(verb.text)) => {
            words.next();
            Subject::Buckets(nexthop_object::bucket(words)?)
        }
        Object::Nexthop if shows(words, nexthop_object::seen)? => Subject::Nexthops(nexthop_object::selector(words, "nexthops to show")?),
        Object::Sr => match sr(words) {
            Some(subject) => subject,
            None => return Ok(None),
        },
        _ => return Ok(None),
    }))
}

fn options(words: &mut Words<'_, '_>) -> Result<Options, Error> {
    #[derive(Clone, Copy)]
    enum Key {
        Statistics,
        Oneline,
        Details,
        Later,
    }
    const OPTIONS: &[Keyword<Key>] = &[
        short("-stats", Key::Statistics),
        short("-statistics", Key::Statistics),
        short("-oneline", Key::Oneline),
        short("-details", Key::Details),
        short("-resolve", Key::Later),
        short("-human-readable", Key::Later),
        full("-iec", Key::Later),
        short("-json", Key::Later),
        short("-pretty", Key::Later),
        short("-brief", Key::Later),
        full("-br", Key::Later),
        short("-Numeric", Key::Later),
        short("-timestamp", Key::Later),
        short("-color", Key::Later),
        short("-all", Key::Later),
        short("-netns", Key::Later),
    ];
    let mut options = Options::default();
    while let Some(word) = words.peek().filter(|word| word.text.len() > 1 && word.text.starts_with('-')) {
        if let Some(family) = command::family_option(words)? {
            options.family = Some(family);
            continue;
        }
        words.next();
        // `--json` is `-json`, as iproute2 takes it.
        let text = if word.text.starts_with("--") { &word.text[1..] } else { word.text };
        match keyword::find(OPTIONS, text).map(|option| (option.key, option.word)) {
            Some((Key::Statistics, _)) => options.statistics = true,
            Some((Key::Oneline, _)) => options.oneline = true,
            Some((Key::Details, _)) => options.details = true,
            Some((Key::Later, name @ ("-json" | "-pretty"))) => {
                let error = Error::not_implemented(word.span, format!("\"{name}\""));
                return Err(error.hint("\"noref show routes --json\" and its like print JSON, in a form of their own"));
            }
            Some((Key::Later, name)) => return Err(Error::not_implemented(word.span, format!("\"{name}\""))),
            None => {
                let accepted = ["-4", "-6", "-family", "-statistics", "-oneline", "-details"].map(str::to_owned).to_vec();
                return Err(unknown(word, "option", accepted));
            }
        }
    }
    Ok(options)
}

fn sr<'t>(words: &mut Words<'_, 't>) -> Option<Subject<'t>> {
    const ITEMS: &[Keyword<bool>] = &[short("hmac", false), short("tunsrc", true)];
    let tunnel_source = keyword::find(ITEMS, words.next()?.text)?.key;
    "show".starts_with(words.next()?.text).then_some(())?;
    Some(if tunnel_source { Subject::TunnelSource } else { Subject::HmacKeys })
}

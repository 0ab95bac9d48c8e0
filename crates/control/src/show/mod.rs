//! What is there, in the form in which iproute2's `ip` prints it: what an operator's eyes and scripts know. Where noref knows less or more than a kernel the
//! form differs, as docs/configuration.md lists.
//!
//! Output is a stream: of a million routes the names are gathered first, then some at a time are looked up and written, and the tables' writer waits
//! for no longer than that.

mod bucket;
mod encap;
mod get;
mod line;
mod link;
mod neigh;
mod nexthop;
mod route;
mod rule;
mod selector;
mod sr;

use std::io::{self, Write};

use ::route::{Editor, SidId};
use plane::{SidCount, Tables};

use self::line::{Line, Subject};
pub use self::rule::{rule_action, rule_others};
use crate::apply::Configuration;
use crate::error::{Error, Errors};
use crate::lexer::Lexer;

/// Where what is shown is read.
pub trait Source {
    /// Reads the tables as their writer has them, who waits meanwhile.
    fn editor<R>(&self, read: impl FnOnce(&Editor) -> R) -> R;

    /// What workers read.
    fn tables(&self) -> &Tables;

    /// What was counted at a SID. Asked while the tables are read, and only if [`Listing::counts`].
    fn counted(&self, id: SidId) -> SidCount;
}

/// A router without workers: nothing was counted.
impl Source for Configuration {
    fn editor<R>(&self, read: impl FnOnce(&Editor) -> R) -> R {
        read(&self.editor)
    }

    fn tables(&self) -> &Tables {
        &self.tables
    }

    fn counted(&self, _: SidId) -> SidCount {
        SidCount::default()
    }
}

/// Something to be shown: everything it names exists.
#[derive(Debug)]
pub struct Listing(Kind);

#[derive(Debug)]
enum Kind {
    Routes(route::Routes),
    Told(get::Told),
    Rules(rule::Rules),
    Marks(Option<crate::Family>),
    Neighbours(neigh::Neighbours),
    Links(link::Links),
    Nexthops(nexthop::Nexthops),
    Buckets(bucket::Buckets),
    TunnelSource,
    HmacKeys,
}

/// Reads a line that shows something (`ip route show table 10`); none when it is to change something. `name` stands for the text in errors.
///
/// # Errors
/// What is wrong with the line; a device or table that does not exist. Also of several lines: one is shown at a time.
pub fn listing(text: &str, name: &str, source: &impl Source) -> Result<Option<Listing>, Errors> {
    let wrong = |error: Error, parsed: bool| {
        let mut errors = Errors::none();
        errors.push(name, text, error);
        errors.parsed = parsed;
        errors
    };
    if u32::try_from(text.len()).is_err() {
        return Ok(None);
    }
    let mut lexer = Lexer::new(text);
    let mut words = Vec::new();
    if !lexer.next_line(&mut words).is_ok_and(|any| any) {
        return Ok(None);
    }
    let Some(line) = line::parse(&words).map_err(|error| wrong(error, false))? else { return Ok(None) };
    if let (Ok(true), Some(word)) = (lexer.next_line(&mut words), words.first()) {
        return Err(wrong(Error::refused(word.span, "a line that shows something stands alone"), false));
    }
    source.editor(|editor| resolved(line, source, editor)).map(Some).map_err(|error| wrong(error, true))
}

fn resolved(line: Line<'_>, source: &impl Source, editor: &Editor) -> Result<Listing, Error> {
    Ok(Listing(match line.subject {
        Subject::Get(asked) => Kind::Told(asked.told(line.options, source, editor)?),
        Subject::Routes(selector) => Kind::Routes(route::Routes::new(&selector, line.options, editor)?),
        Subject::Rules(command) => Kind::Rules(rule::Rules::new(&command, editor)?),
        Subject::Marks => Kind::Marks(line.options.family),
        Subject::Neighbours(selector) => Kind::Neighbours(neigh::Neighbours::new(&selector, line.options, editor)?),
        Subject::Links(selector) => Kind::Links(link::Links::new(&selector, line.options, editor)?),
        Subject::Nexthops(selector) => Kind::Nexthops(nexthop::Nexthops::new(&selector, editor)?),
        Subject::Buckets(selector) => Kind::Buckets(bucket::Buckets::new(&selector, editor)?),
        Subject::TunnelSource => Kind::TunnelSource,
        Subject::HmacKeys => Kind::HmacKeys,
    }))
}

impl Listing {
    /// True when [`Source::counted`] will be asked.
    pub fn counts(&self) -> bool {
        matches!(&self.0, Kind::Routes(routes) if routes.counts())
    }

    /// Why a question (`ip route get`) has no answer, as iproute2 says it; its exit status is 2 then.
    pub fn refusal(&self) -> Option<&str> {
        match &self.0 {
            Kind::Told(told) => told.refusal.as_deref(),
            _ => None,
        }
    }

    /// Writes it out.
    ///
    /// # Errors
    /// Those of `out`.
    pub fn print(&self, source: &impl Source, out: &mut impl Write) -> io::Result<()> {
        match &self.0 {
            Kind::Routes(routes) => routes.print(source, out),
            Kind::Told(told) => out.write_all(told.text.as_bytes()),
            Kind::Rules(rules) => out.write_all(source.editor(|editor| rules.text(editor)).as_bytes()),
            Kind::Marks(family) => out.write_all(source.editor(|editor| rule::marks(editor, *family)).as_bytes()),
            Kind::Neighbours(neighbours) => neighbours.print(source, out),
            Kind::Links(links) => out.write_all(source.editor(|editor| links.text(editor)).as_bytes()),
            Kind::Nexthops(nexthops) => nexthops.print(source, out),
            Kind::Buckets(buckets) => out.write_all(source.editor(|editor| buckets.text(editor)).as_bytes()),
            Kind::TunnelSource => out.write_all(sr::tunnel_source(source).as_bytes()),
            Kind::HmacKeys => out.write_all(sr::hmac_keys(source).as_bytes()),
        }
    }
}

/// The device of this name.
fn device(editor: &Editor, word: crate::Word<'_>) -> Result<::route::IfIndex, Error> {
    crate::apply::named(editor, word.text, word.span).map(|link| link.index)
}

/// A device as it is named; one that is gone by its number.
fn name(editor: &Editor, index: ::route::IfIndex) -> std::borrow::Cow<'_, str> {
    editor.links().name(index).map_or_else(|| format!("if{}", index.0).into(), std::borrow::Cow::Borrowed)
}

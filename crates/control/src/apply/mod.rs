//! Lines of the language, applied to the tables of a router: a network file to empty ones, later lines to those that workers read.
//!
//! Lines take effect in their order, as the kernel would take them: a VRF must be there before a port becomes its member, a gateway on a
//! link before a route leads through it.
//!
//! # All or nothing
//! A line builds on the lines before it, so what they ask for cannot be checked without doing it. It is done where no worker looks: in the
//! [`Editor`]'s own copy of the tables, which remembers what it changed. Either all of a request is committed, or the editor takes it back and nobody
//! ever saw it. A commit is not one moment: interfaces come first, then neighbours, then routes, each prefix whole, then rules. A burst that runs meanwhile
//! sees some of it, as in Linux. Of the other ways, a trial run on a copy of the tables would cost a copy of
//! the tables, and undoing line by line would show workers a state that nobody asked for.
//!
//! SIDs and policies are made before the routes that name them and go after them: a worker that has found a route in a burst finds what it
//! names until the burst ends, and a number is given out again only then.

pub(crate) mod letting_go;
mod links;
mod marks;
mod nexthops;
mod ports;
mod routes;
pub(crate) mod rules;
mod sids;

use std::collections::HashMap;
use std::net::IpAddr;
use std::sync::Arc;

use ::route::{ConfigError, Editor, Encap, IfIndex, Link, LinkChange, LinkKind, PolicyId, SidId, TableId, Tick};
use plane::Tables;
use srv6::{HmacKeys, Policy};

pub use self::ports::ports_of;
pub(crate) use self::sids::placed_of_objects;
pub use self::sids::{LocalSid, LocalSids, Placed};
use crate::address::Prefix;
use crate::command::{self, Command};
use crate::error::{Diagnostic, Error, Errors, Fault};
use crate::lexer::Lexer;
use crate::span::{Span, Word};

/// A router's tables and what the operator has made of them.
pub struct Configuration {
    /// The tables' writer.
    pub editor: Editor,
    /// What workers read.
    pub tables: Arc<Tables>,
    /// The SIDs.
    pub sids: LocalSids,
    /// What is accepted of the network file, as Linux accepts it, and probably not meant so.
    pub warnings: Vec<Diagnostic>,
    /// The policies in use: routes of the same policy share it, as they share all that follows from it.
    policies: HashMap<Arc<Policy>, PolicyId>,
    hmac_keys: HmacKeys,
}

/// What came of a request.
#[derive(Debug, Default)]
pub struct Applied {
    /// What is accepted, as Linux accepts it, and probably not meant so.
    pub warnings: Vec<Diagnostic>,
    /// New SIDs whose number was another's before: workers have counted under it. See [`LocalSids::count_from`].
    pub numbered_again: Vec<SidId>,
}

/// A port that is there before the network file is read, as a device is in a namespace.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct PortDevice {
    /// Its name.
    pub name: String,
    /// Its address and its MTU in bytes, until the network file sets others; none for one that is only in memory, which gets some.
    pub hardware: Option<(wire::Mac, u32)>,
}

/// Reads a network file and makes the tables it describes. `name` is the file's name in errors; `ports` are the names of the ports, all different, in
/// their order.
///
/// # Errors
/// Everything that is wrong with the file, up to a limit, with its place.
pub fn network_file(text: &str, name: &str, ports: &[&str]) -> Result<Configuration, Errors> {
    let ports: Vec<_> = ports.iter().map(|&name| PortDevice { name: name.to_owned(), hardware: None }).collect();
    network_file_on(text, name, &ports, Tick::default())
}

/// As [`network_file`], with ports that have an address and an MTU of their own, at the time `now`.
///
/// # Errors
/// As [`network_file`].
pub fn network_file_on(text: &str, name: &str, ports: &[PortDevice], now: Tick) -> Result<Configuration, Errors> {
    let mut configuration = Configuration::new(ports);
    configuration.editor.set_time(now);
    configuration.warnings = configuration.apply(text, name)?.warnings;
    Ok(configuration)
}

impl Configuration {
    /// A router with these ports, all down, and nothing else.
    pub fn new(ports: &[PortDevice]) -> Configuration {
        let mut editor = Editor::new();
        for (place, port) in ports.iter().enumerate() {
            // A name given twice is one port.
            if let (Ok(index), Some((mac, mtu))) = (editor.port_add(&port.name, place), port.hardware) {
                // The link is there, and nothing has been built on it yet.
                let _ = editor.link_set(index, LinkChange { mac: Some(mac), mtu: Some(mtu), ..LinkChange::default() });
            }
        }
        editor.commit();
        let tables = Arc::new(Tables::new(editor.network().clone()));
        Configuration {
            editor,
            tables,
            sids: LocalSids::default(),
            warnings: Vec::new(),
            policies: HashMap::new(),
            hmac_keys: HmacKeys::default(),
        }
    }

    /// Applies lines, all of them or none: workers see them when this returns, from their next burst on. `name` stands for the text in errors.
    ///
    /// # Errors
    /// Everything that is wrong with the lines, up to a limit, with its place. Nothing was changed then.
    pub fn apply(&mut self, text: &str, name: &str) -> Result<Applied, Errors> {
        let mut errors = Errors::none();
        if is_too_long(text, name, &mut errors) {
            return Err(errors);
        }
        let mut applier = Applier::new(self);
        let mut lexer = Lexer::new(text);
        let mut words = Vec::new();
        // Once something is missing that later lines build on, what they find missing says nothing.
        let mut sound = true;
        while let Some(command) = next_command(&mut lexer, &mut words) {
            errors.parsed &= command.is_ok();
            if let Err(error) = command.and_then(|command| if sound { applier.apply(&command) } else { Ok(()) }) {
                sound &= !command::others_build_on(&words);
                errors.push(name, text, error);
            }
        }
        if errors.is_empty() {
            return Ok(applier.commit(name, text));
        }
        applier.rollback();
        Err(errors)
    }

    /// Applies lines each by itself, as `ip -force -batch` does: what is wrong with one keeps no other from being applied.
    pub fn apply_each(&mut self, text: &str, name: &str) -> (Applied, Option<Errors>) {
        let (mut applied, mut errors) = (Applied::default(), Errors::none());
        if is_too_long(text, name, &mut errors) {
            return (applied, Some(errors));
        }
        let mut lexer = Lexer::new(text);
        let mut words = Vec::new();
        while let Some(command) = next_command(&mut lexer, &mut words) {
            let mut applier = Applier::new(self);
            errors.parsed &= command.is_ok();
            match command.and_then(|command| applier.apply(&command)) {
                Ok(()) => {
                    let Applied { warnings, numbered_again } = applier.commit(name, text);
                    applied.warnings.extend(warnings);
                    applied.numbered_again.extend(numbered_again);
                }
                Err(error) => {
                    applier.rollback();
                    errors.push(name, text, error);
                }
            }
        }
        (applied, Some(errors).filter(|errors| !errors.is_empty()))
    }
}

/// The command of the next line, whose words are left in `words`; none behind the last.
fn next_command<'t>(lexer: &mut Lexer<'t>, words: &mut Vec<Word<'t>>) -> Option<Result<Command<'t>, Error>> {
    match lexer.next_line(words) {
        Ok(true) => Some(command::parse(words)),
        Ok(false) => None,
        Err(error) => Some(Err(error)),
    }
}

/// Places in the text are numbers of 32 bits.
fn is_too_long(text: &str, name: &str, errors: &mut Errors) -> bool {
    let too_long = u32::try_from(text.len()).is_err();
    if too_long {
        errors.push(name, "", Error::refused(Span::default(), "the file is longer than 4 GiB"));
    }
    too_long
}

/// Applies the commands of one request, one after the other.
struct Applier<'c> {
    editor: &'c mut Editor,
    tables: &'c Arc<Tables>,
    sids: &'c mut LocalSids,
    policies: &'c mut HashMap<Arc<Policy>, PolicyId>,
    committed_keys: &'c mut HmacKeys,
    /// The keys as they are to be, when they change.
    hmac_keys: Option<HmacKeys>,
    /// What was made for routes of this request.
    made: Vec<Encap>,
    numbered_again: Vec<SidId>,
    warnings: Vec<Error>,
}

impl<'c> Applier<'c> {
    fn new(configuration: &'c mut Configuration) -> Applier<'c> {
        let Configuration { editor, tables, sids, policies, hmac_keys: committed_keys, warnings: _ } = configuration;
        Applier {
            editor,
            tables,
            sids,
            policies,
            committed_keys,
            hmac_keys: None,
            made: Vec::new(),
            numbered_again: Vec::new(),
            warnings: Vec::new(),
        }
    }

    fn apply(&mut self, command: &Command<'_>) -> Result<(), Error> {
        match command {
            Command::Route(route) => self.route(route),
            Command::Neighbour(neighbour) => self.neighbour(neighbour),
            Command::Address(address) => self.address(address),
            Command::Link(link) => self.link(link),
            Command::Rule(rule) => self.rule(rule),
            Command::Nexthop(nexthop) => self.nexthop(nexthop),
            Command::Mark(mark) => self.mark(mark),
            Command::Sr(sr) => self.sr(sr),
            Command::Sysctl(settings) => settings.iter().try_for_each(|setting| self.setting(setting)),
        }
    }

    /// Lets workers see what was applied.
    fn commit(self, name: &str, text: &str) -> Applied {
        if let Some(keys) = self.hmac_keys {
            self.committed_keys.clone_from(&keys);
            self.tables.hmac_keys.publish(keys);
        }
        self.editor.commit();
        let unnamed = |encap: &Encap| !self.editor.is_named(*encap);
        // What was made and replaced in the same request was never named in a commit.
        let gone: Vec<_> = self.editor.unnamed().chain(self.made.iter().copied().filter(unnamed)).collect();
        for encap in gone {
            forget(encap, self.tables, self.sids, self.policies);
            letting_go::after_a_grace_period(self.tables, encap);
        }
        self.editor.network().domain().reclaim();
        Applied {
            warnings: self.warnings.into_iter().map(|warning| Diagnostic::new(name, text, warning)).collect(),
            numbered_again: self.numbered_again,
        }
    }

    /// Makes everything what it was before.
    fn rollback(self) {
        self.editor.rollback();
        for encap in self.made {
            forget(encap, self.tables, self.sids, self.policies);
            letting_go::now(self.tables, encap);
        }
    }

    /// The device of this name.
    fn device(&self, word: Word<'_>) -> Result<IfIndex, Error> {
        self.named(word.text, word.span).map(|link| link.index)
    }

    fn named(&self, name: &str, span: Span) -> Result<&Link, Error> {
        named(self.editor, name, span)
    }

    /// The table of the VRF device of this name.
    fn vrf(&self, word: Word<'_>) -> Result<TableId, Error> {
        vrf(self.editor, word)
    }
}

/// The device of this name.
pub(crate) fn named<'e>(editor: &'e Editor, name: &str, span: Span) -> Result<&'e Link, Error> {
    let links = editor.links();
    links.named(name).ok_or_else(|| {
        let known = links.iter().map(|link| link.name.to_string()).collect();
        Error::new(span, Fault::NoDevice(name.to_owned())).accepting(known)
    })
}

/// The table of the VRF device of this name.
pub(crate) fn vrf(editor: &Editor, word: Word<'_>) -> Result<TableId, Error> {
    match named(editor, word.text, word.span)?.kind {
        LinkKind::Vrf(table) => Ok(table),
        _ => Err(Error::refused(word.span, format!("\"{}\" is not a VRF device", word.text))),
    }
}

/// What is known of a SID or policy that no route names any more.
fn forget(encap: Encap, tables: &Tables, sids: &mut LocalSids, policies: &mut HashMap<Arc<Policy>, PolicyId>) {
    match encap {
        Encap::None => {}
        Encap::Seg6Local(id) => sids.remove(id),
        Encap::Seg6(id) => {
            // Another may have come for the same policy already, under another number.
            if let Some(policy) = tables.policies.snapshot(id.0)
                && policies.get(&policy) == Some(&id)
            {
                policies.remove(&policy);
            }
        }
    }
}

/// An error of the tables, at the place it is about.
fn at(span: Span) -> impl Fn(ConfigError) -> Error {
    move |error| Error::refused(span, error.to_string())
}

/// An address of the family that the tables' functions are for.
pub(crate) trait Narrow: ::route::Family {
    fn narrow(addr: IpAddr) -> Option<Self>;
}

impl Narrow for std::net::Ipv4Addr {
    fn narrow(addr: IpAddr) -> Option<Self> {
        match addr {
            IpAddr::V4(addr) => Some(addr),
            IpAddr::V6(_) => None,
        }
    }
}

impl Narrow for std::net::Ipv6Addr {
    fn narrow(addr: IpAddr) -> Option<Self> {
        match addr {
            IpAddr::V4(_) => None,
            IpAddr::V6(addr) => Some(addr),
        }
    }
}

/// A prefix as the tables take it. The parser has made sure of family and length.
fn narrow<A: Narrow>(prefix: Prefix, span: Span) -> Result<::route::Prefix<A>, Error> {
    let narrowed = A::narrow(prefix.addr).and_then(|addr| ::route::Prefix::new(addr, prefix.len));
    narrowed.ok_or_else(|| Error::refused(span, format!("{prefix} is of the other address family")))
}

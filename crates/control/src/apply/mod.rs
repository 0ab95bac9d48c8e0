//! A network file, read line by line and applied to tables that nobody reads yet.
//!
//! Lines take effect in their order, as the kernel would take them: a VRF must be there before a port becomes its member, a gateway on a
//! link before a route leads through it. If one line is wrong, the tables are thrown away: nothing is half applied.

mod links;
mod routes;
mod rules;

use std::collections::HashMap;
use std::net::IpAddr;
use std::sync::Arc;

use ::route::{ConfigError, Editor, IfIndex, Link, LinkChange, LinkKind, PolicyId, SidId, TableId};
use plane::Tables;
use srv6::{HmacKeys, Policy, Sid};

use crate::address::Prefix;
use crate::command::{self, Command};
use crate::error::{Diagnostic, Error, Errors, Fault};
use crate::lexer::Lexer;
use crate::span::{Span, Word};

/// What a network file makes of a router. The tables are committed: workers that read them see the whole file.
pub struct Configuration {
    /// The tables' writer.
    pub editor: Editor,
    /// What workers read.
    pub tables: Arc<Tables>,
    /// The SIDs, in the order of the file.
    pub sids: Vec<LocalSid>,
    /// What is accepted, as Linux accepts it, and probably not meant so.
    pub warnings: Vec<Diagnostic>,
}

/// A SID and where it stands.
#[derive(Clone, Debug)]
pub struct LocalSid {
    /// Destinations it is for.
    pub prefix: Prefix,
    /// The table its route stands in.
    pub table: TableId,
    /// Under which number it is counted, and found in [`Tables::sids`].
    pub id: SidId,
    /// What it does.
    pub sid: Arc<Sid>,
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
    network_file_on(text, name, &ports)
}

/// As [`network_file`], with ports that have an address and an MTU of their own.
///
/// # Errors
/// As [`network_file`].
pub fn network_file_on(text: &str, name: &str, ports: &[PortDevice]) -> Result<Configuration, Errors> {
    let mut errors = Errors::none();
    if u32::try_from(text.len()).is_err() {
        errors.push(name, "", Error::refused(Span::default(), "the file is longer than 4 GiB"));
        return Err(errors);
    }
    let mut applier = Applier::new(ports);
    let mut lexer = Lexer::new(text);
    let mut words = Vec::new();
    // Once something is missing that later lines build on, what they find missing says nothing.
    let mut sound = true;
    loop {
        let result = match lexer.next_line(&mut words) {
            Ok(true) => command::parse(&words).and_then(|command| if sound { applier.apply(&command) } else { Ok(()) }),
            Ok(false) => break,
            Err(error) => Err(error),
        };
        if let Err(error) = result {
            sound &= !command::others_build_on(&words);
            errors.push(name, text, error);
        }
    }
    if errors.is_empty() { Ok(applier.finish(name, text)) } else { Err(errors) }
}

/// Applies commands one after the other.
struct Applier {
    editor: Editor,
    tables: Tables,
    sids: Vec<LocalSid>,
    /// The policies in use: routes of the same policy share it, as they share all that follows from it.
    policies: HashMap<Arc<Policy>, PolicyId>,
    hmac_keys: HmacKeys,
    warnings: Vec<Error>,
}

impl Applier {
    fn new(ports: &[PortDevice]) -> Applier {
        let mut editor = Editor::new();
        for (place, port) in ports.iter().enumerate() {
            // A name given twice is one port.
            if let (Ok(index), Some((mac, mtu))) = (editor.port_add(&port.name, place), port.hardware) {
                // The link is there, and nothing has been built on it yet.
                let _ = editor.link_set(index, LinkChange { mac: Some(mac), mtu: Some(mtu), ..LinkChange::default() });
            }
        }
        let tables = Tables::new(editor.network().clone());
        Applier { editor, tables, sids: Vec::new(), policies: HashMap::new(), hmac_keys: HmacKeys::default(), warnings: Vec::new() }
    }

    fn apply(&mut self, command: &Command<'_>) -> Result<(), Error> {
        match command {
            Command::Route(route) => self.route(route),
            Command::Neighbour(neighbour) => self.neighbour(neighbour),
            Command::Address(address) => self.address(address),
            Command::Link(link) => self.link(link),
            Command::Rule(rule) => self.rule(rule),
            Command::Sr(sr) => self.sr(sr),
            Command::Sysctl(settings) => settings.iter().try_for_each(|setting| self.setting(setting)),
        }
    }

    fn finish(mut self, name: &str, text: &str) -> Configuration {
        self.forget_unnamed();
        self.tables.hmac_keys.publish(self.hmac_keys);
        self.editor.commit();
        Configuration {
            editor: self.editor,
            tables: Arc::new(self.tables),
            sids: self.sids,
            warnings: self.warnings.into_iter().map(|warning| Diagnostic::new(name, text, warning)).collect(),
        }
    }

    /// The device of this name.
    fn device(&self, word: Word<'_>) -> Result<IfIndex, Error> {
        self.named(word.text, word.span).map(|link| link.index)
    }

    fn named(&self, name: &str, span: Span) -> Result<&Link, Error> {
        let links = self.editor.links();
        links.named(name).ok_or_else(|| {
            let known = links.iter().map(|link| link.name.to_string()).collect();
            Error::new(span, Fault::NoDevice(name.to_owned())).accepting(known)
        })
    }

    /// The table of the VRF device of this name.
    fn vrf(&self, word: Word<'_>) -> Result<TableId, Error> {
        match self.named(word.text, word.span)?.kind {
            LinkKind::Vrf(table) => Ok(table),
            _ => Err(Error::refused(word.span, format!("\"{}\" is not a VRF device", word.text))),
        }
    }
}

/// An error of the tables, at the place it is about.
fn at(span: Span) -> impl Fn(ConfigError) -> Error {
    move |error| Error::refused(span, error.to_string())
}

/// An address of the family that the tables' functions are for.
trait Narrow: ::route::Family {
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

//! The protocol of the control socket: a request is a line of JSON, a reply one line or several. `docs/control.md` describes it for other programs.
//!
//! ```text
//! → {"v":1,"show":{"what":"ports"}}
//! ← {"v":1,"ports":[{"port":"e0",…}]}
//! ```
//! A request has one member beside `v`, whose name is what is wanted; adding a kind of request is a variant of [`Request`] and its name in
//! [`Request::NAMES`]. A reply of several lines says `"more":true` in all but the last.

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use super::rows::{
    CounterRow, DropRow, MirrorRow, NeighbourRow, PortRow, RouteRow, RuleRow, SidRow, Traced, TracedFrame, UnsupportedRow, WorkerRow,
};
use crate::trace::Filter;

/// The version of the protocol. It changes when something goes or changes its meaning, not when something is added.
pub const VERSION: u64 = 1;

/// Bytes of the longest request, its newline included.
pub const MAX_REQUEST: usize = 64 * 1024;

/// Bytes of the lines of all requests that belong together ([`Lines::more`]), and of all clients that send some at the same time.
pub const MAX_LINES: usize = 256 * 1024 * 1024;

/// What a client wants.
#[derive(Serialize, Deserialize, Clone, PartialEq, Debug)]
#[serde(rename_all = "snake_case")]
pub enum Request {
    /// What there is, and what was counted.
    Show(Show),
    /// The way of packets that are to come.
    Trace(Trace),
    /// Lines of iproute2's language.
    Ip(Lines),
}

impl Request {
    /// The name of each kind of request, as its member is called.
    pub const NAMES: &[&str] = &["show", "trace", "ip"];
}

/// What is to be shown.
#[derive(Serialize, Deserialize, Clone, PartialEq, Eq, Debug)]
#[serde(deny_unknown_fields)]
pub struct Show {
    /// Of what.
    pub what: What,
}

/// What can be shown.
#[derive(Serialize, Deserialize, clap::ValueEnum, Clone, Copy, PartialEq, Eq, Debug)]
#[serde(rename_all = "snake_case")]
pub enum What {
    /// Ports: what they are, what came in and went out
    Ports,
    /// Workers: their queues, how busy they are, what they did
    Workers,
    /// Routes of all tables
    Routes,
    /// Rules, in the order in which they are asked
    Rules,
    /// Neighbours: who has which Ethernet address
    Neighbours,
    /// SIDs, and what happened at each
    Sids,
    /// Why packets were dropped
    Drops,
    /// Everything that is counted of the router as a whole and of its ports
    Counters,
    /// What of the kernel's configuration is left to the kernel, and why
    Unsupported,
    /// How far the mirror stands from the kernel
    Mirror,
}

/// Which packets' way is to be told.
#[derive(Serialize, Deserialize, Clone, PartialEq, Debug, Default)]
#[serde(deny_unknown_fields)]
pub struct Trace {
    /// Which.
    #[serde(default, skip_serializing_if = "Filter::is_all")]
    pub filter: Filter,
    /// How many; without, until the client ends it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub count: Option<u64>,
    /// With the bytes of each, as they came in.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub bytes: bool,
}

/// Lines of iproute2's language: one that shows something, or any number that change something.
#[derive(Serialize, Deserialize, Clone, PartialEq, Eq, Debug, Default)]
#[serde(deny_unknown_fields)]
pub struct Lines {
    /// The lines, or part of them.
    pub lines: String,
    /// What stands for them in errors: a file's name.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub name: String,
    /// Each by itself: what is wrong with one keeps no other from being done.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub force: bool,
    /// They go on in the next request, and nothing is done before that.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub more: bool,
}

/// What came of lines of iproute2's language.
#[derive(Serialize, Deserialize, Clone, PartialEq, Eq, Debug, Default)]
pub struct Outcome {
    /// What was to be shown, or a part of it.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub text: String,
    /// What was done and probably not meant so, for people to read.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub warnings: Vec<String>,
    /// What is wrong, for people to read. Nothing was done then, unless each line is by itself.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub errors: String,
    /// Of errors: the lines could be read, and the router does not take them.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub refused: bool,
    /// Of errors: a question (`route get`) has no answer, in iproute2's words.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub no_answer: bool,
}

/// One line of a reply.
#[derive(Serialize, Deserialize, Clone, PartialEq, Debug)]
pub struct Reply {
    /// The protocol's version.
    pub v: u64,
    #[serde(flatten)]
    pub body: Body,
    /// Another line of the same reply follows.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub more: bool,
}

/// What a line of a reply tells. Each table's lines hold rows in their order.
#[derive(Serialize, Deserialize, Clone, PartialEq, Debug)]
#[serde(rename_all = "snake_case")]
pub enum Body {
    Ports(Vec<PortRow>),
    Workers(Vec<WorkerRow>),
    Routes(Vec<RouteRow>),
    Rules(Vec<RuleRow>),
    Neighbours(Vec<NeighbourRow>),
    Sids(Vec<SidRow>),
    Drops(Vec<DropRow>),
    Counters(Vec<CounterRow>),
    Unsupported(Vec<UnsupportedRow>),
    /// None of a router that mirrors nobody.
    Mirror(Option<MirrorRow>),
    /// One packet's way.
    Frame(TracedFrame),
    /// A trace is over.
    Traced(Traced),
    /// What came of lines.
    Ip(Outcome),
    /// The request was not done.
    Error(Refusal),
}

/// Why a request was not done.
#[derive(Serialize, Deserialize, Clone, PartialEq, Eq, Debug, thiserror::Error)]
#[error("{message}{}", accepting(.accepted))]
pub struct Refusal {
    /// What is wrong.
    pub message: String,
    /// What would have been accepted in the place of what is wrong, when that is a short list.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub accepted: Vec<String>,
}

impl Refusal {
    /// A refusal without a list.
    pub fn new(message: impl Into<String>) -> Refusal {
        Refusal { message: message.into(), accepted: Vec::new() }
    }

    /// The same, saying what would have been accepted.
    #[must_use]
    pub fn accepting(self, accepted: impl IntoIterator<Item = impl ToString>) -> Refusal {
        Refusal { accepted: accepted.into_iter().map(|word| word.to_string()).collect(), ..self }
    }
}

fn accepting(accepted: &[String]) -> String {
    if accepted.is_empty() { String::new() } else { format!(" (accepted: {})", accepted.join(", ")) }
}

impl Reply {
    /// The only or last line of a reply.
    pub fn last(body: Body) -> Reply {
        Reply { v: VERSION, body, more: false }
    }

    /// A line that others follow.
    pub fn followed(body: Body) -> Reply {
        Reply { more: true, ..Reply::last(body) }
    }
}

impl Request {
    /// Reads a request from its line.
    ///
    /// # Errors
    /// What is wrong with it, and what would be accepted.
    pub fn parse(line: &[u8]) -> Result<Request, Refusal> {
        let mut members: Map<String, Value> = serde_json::from_slice(line)
            .map_err(|error| Refusal::new(format!("a request is a JSON object on one line, and this is none: {error}")))?;
        match members.remove("v") {
            Some(v) if v.as_u64() == Some(VERSION) => {}
            Some(v) => return Err(Refusal::new(format!("version {v} of the protocol is not known")).accepting([VERSION])),
            None => return Err(Refusal::new("a request says the protocol's version: \"v\"").accepting([VERSION])),
        }
        let mut names = members.keys();
        let (Some(name), None) = (names.next(), names.next()) else {
            let message = format!("a request has one member beside \"v\", and this has {}", members.len());
            return Err(Refusal::new(message).accepting(Request::NAMES));
        };
        if !Request::NAMES.contains(&name.as_str()) {
            return Err(Refusal::new(format!("unknown request {name:?}")).accepting(Request::NAMES));
        }
        let name = name.clone();
        serde_json::from_value(Value::Object(members)).map_err(|error| Refusal::new(format!("{name}: {error}")))
    }

    /// The line of a request, with its newline.
    pub fn line(&self) -> String {
        let line = serde_json::to_value(self).map(|mut request| {
            if let Some(members) = request.as_object_mut() {
                members.insert("v".into(), VERSION.into());
            }
            request.to_string()
        });
        // What is made of strings and numbers always has a form in JSON.
        line.unwrap_or_default() + "\n"
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn refused(line: &str) -> String {
        Request::parse(line.as_bytes()).expect_err(line).to_string()
    }

    #[test]
    fn a_request_is_read_as_it_was_written() {
        let filter = Filter::parse(&["port", "e0", "from", "10.0.0.0/8", "drop", "no_route"]).unwrap();
        for request in [
            Request::Show(Show { what: What::Neighbours }),
            Request::Trace(Trace::default()),
            Request::Trace(Trace { filter, count: Some(3), bytes: true }),
            Request::Ip(Lines { lines: "route show\n".into(), name: "a.ip".into(), force: true, more: true }),
        ] {
            let line = request.line();
            assert_eq!(Request::parse(line.as_bytes()), Ok(request), "{line}");
        }
        assert_eq!(Request::Show(Show { what: What::Ports }).line(), "{\"show\":{\"what\":\"ports\"},\"v\":1}\n");
    }

    #[test]
    fn every_kind_of_request_has_its_name_in_the_list() {
        let all = [Request::Show(Show { what: What::Ports }), Request::Trace(Trace::default()), Request::Ip(Lines::default())];
        assert_eq!(all.len(), Request::NAMES.len());
        for (request, name) in all.iter().zip(Request::NAMES) {
            assert!(serde_json::to_value(request).unwrap().get(name).is_some(), "{name}");
        }
    }

    #[test]
    fn what_is_wrong_with_a_request_is_said_with_what_is_accepted() {
        for (line, message) in [
            ("", "a request is a JSON object on one line"),
            ("[1]", "a request is a JSON object on one line"),
            ("{\"show\":{\"what\":\"ports\"}}", "says the protocol's version: \"v\" (accepted: 1)"),
            ("{\"v\":2,\"show\":{\"what\":\"ports\"}}", "version 2 of the protocol is not known (accepted: 1)"),
            ("{\"v\":\"1\",\"show\":{\"what\":\"ports\"}}", "version \"1\" of the protocol is not known (accepted: 1)"),
            ("{\"v\":1}", "one member beside \"v\", and this has 0 (accepted: show, trace"),
            ("{\"v\":1,\"show\":{\"what\":\"ports\"},\"trace\":{}}", "and this has 2"),
            ("{\"v\":1,\"fly\":{}}", "unknown request \"fly\" (accepted: show, trace"),
            ("{\"v\":1,\"show\":{\"what\":\"moon\"}}", "show: unknown variant `moon`, expected one of `ports`"),
            ("{\"v\":1,\"show\":{\"what\":\"ports\",\"who\":1}}", "show: unknown field `who`, expected `what`"),
            ("{\"v\":1,\"trace\":{\"filter\":{\"from\":\"10.0.0.0/33\"}}}", "trace: "),
            ("{\"v\":1,\"trace\":{\"count\":-1}}", "trace: invalid value: integer `-1`"),
        ] {
            let said = refused(line);
            assert!(said.contains(message), "{line}: expected {message:?} in {said}");
        }
    }

    #[test]
    fn a_reply_is_read_as_it_was_written() {
        let replies = [
            Reply::followed(Body::Drops(Vec::new())),
            Reply::last(Body::Mirror(None)),
            Reply::last(Body::Error(Refusal::new("no").accepting(["yes"]))),
            Reply::last(Body::Traced(Traced { packets: 1, missed: 0 })),
        ];
        for reply in replies {
            let line = serde_json::to_string(&reply).unwrap();
            assert!(line.contains("\"v\":1"), "{line}");
            assert_eq!(serde_json::from_str::<Reply>(&line).unwrap(), reply, "{line}");
        }
        assert_eq!(serde_json::to_string(&Reply::followed(Body::Drops(Vec::new()))).unwrap(), "{\"v\":1,\"drops\":[],\"more\":true}");
    }
}

//! `ip route get`: the way that a packet would take, asked of the tables that workers read, by what workers ask them with.

mod explain;
mod family;
mod question;

use std::cell::RefCell;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

use ::route::{Editor, Flow, IfIndex, Prefix, RouteEntry, RouteRefs, TableId};
use plane::get::{Asked as Plane, Question, Refusal, Reply};

use self::family::{By, Gets};
pub(super) use self::question::Asked;
use super::line::Options;
use super::route::Alone;
use super::{Source, route};
use crate::error::Error;

/// What is said of packets that a router beside a kernel leaves to that: what it would do with them is not known here.
const LEFT: &str = "noref leaves such packets to the kernel: ask ip";

/// What came of a question.
#[derive(Debug, Default)]
pub(super) struct Told {
    pub text: String,
    /// Why there is no answer, as iproute2 says it.
    pub refusal: Option<String>,
}

/// A question, and whom it is asked.
struct Inquiry<'q, S, A> {
    source: &'q S,
    editor: &'q Editor,
    options: Options,
    asked: &'q Asked<'q>,
    question: Question<A>,
}

impl Asked<'_> {
    /// Asks.
    ///
    /// # Errors
    /// A device that does not exist.
    pub(super) fn told(&self, options: Options, source: &impl Source, editor: &Editor) -> Result<Told, Error> {
        Ok(match self.destination.value {
            IpAddr::V4(dst) => Inquiry { source, editor, options, asked: self, question: self.question::<Ipv4Addr>(dst, editor)? }.told(),
            IpAddr::V6(dst) => Inquiry { source, editor, options, asked: self, question: self.question::<Ipv6Addr>(dst, editor)? }.told(),
        })
    }
}

impl<S: Source, A: Gets> Inquiry<'_, S, A> {
    fn told(&self) -> Told {
        // Of these alone the kernel makes a packet up.
        if !A::PROTOCOLS.contains(&self.question.upper.protocol) {
            return Told { refusal: Some("Error: Unsupported ip proto.".to_owned()), ..Told::default() };
        }
        let tables = self.source.tables();
        tables.network.domain().reader().burst(|guard| {
            let (plane, fib) = (Plane::new(tables, guard), A::fib(&tables.network));
            let by = A::by(&plane, &self.question);
            let steps = RefCell::new(String::new());
            let lookup = |flow: &Flow<A>| {
                if by == By::Workers && !self.asked.explain {
                    return fib.lookup(guard, flow, RouteRefs::Noref);
                }
                let ask = |table| match by {
                    By::Workers => fib.route_in(guard, table, flow),
                    By::Device(dev) => self.editor.dst_for(table, flow, dev),
                };
                fib.follow(guard, flow, ask, &mut |rule, outcome| {
                    let route = |table| self.editor.route_for(table, flow, self.named_by(by));
                    steps.borrow_mut().push_str(&self.step(rule, outcome, route));
                })
            };
            let reply = A::get(&plane, &self.question, &lookup);
            let mut told = self.answer(&reply, |table| self.editor.route_for(table, &A::flow(&plane, &self.question), self.named_by(by)));
            if self.asked.explain {
                told.text.push_str(&self.explained(&reply, &steps.borrow()));
            }
            told
        })
    }

    /// The interface that routes to a destination on one link only are told apart by.
    fn named_by(&self, by: By) -> Option<IfIndex> {
        match by {
            By::Device(dev) => dev,
            By::Workers => self.question.iif.filter(|_| self.question.dst.is_link_scoped()),
        }
    }

    /// The answer in iproute2's form; `route` finds the route of a table as it was configured.
    fn answer<'e>(&self, reply: &Result<Reply<'_>, Refusal>, route: impl Fn(TableId) -> Option<(Prefix<A>, &'e RouteEntry)>) -> Told {
        let refused = |refusal: Refusal| Told { refusal: Some(format!("RTNETLINK answers: {}", refusal.text())), ..Told::default() };
        let reply = match reply {
            Ok(reply) => reply,
            Err(refusal) => return refused(*refusal),
        };
        if reply.dev == IfIndex::KERNEL {
            return Told { refusal: Some(LEFT.to_owned()), ..Told::default() };
        }
        let found = Some(reply.table).filter(|table| *table != TableId(0)).and_then(route);
        let text = match (self.asked.fibmatch, found) {
            (false, found) => A::line(self, reply, found),
            (true, Some(found)) => {
                let v6 = A::BITS == 128;
                let alone = Alone {
                    iif: self.question.iif.filter(|_| v6),
                    kind: Some(reply.kind),
                    taken: reply.chosen.filter(|_| found.1.joins::<A>()).map_or(0, |(place, _)| place.into()),
                };
                let said = A::said(self.editor, reply.table);
                route::one(self.source, self.editor, (self.options, alone), (reply.table, said), found)
            }
            (true, None) => return refused(Refusal::HostUnreachable),
        };
        Told { text, refusal: None }
    }
}

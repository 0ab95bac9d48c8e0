//! What the families do in their own ways: whom they ask, and how iproute2 prints an answer.

use std::fmt::{self, Write};
use std::net::{Ipv4Addr, Ipv6Addr};

use ::route::{Action, Address, Answer, Editor, Encap, Fib, Flow, IfIndex, Kind, Network, Prefix, RouteEntry, Rule, TableId};
use plane::get::{Asked as Plane, Question, Refusal, Reply};

use super::Inquiry;
use crate::show::route::{Shown, gateway, metrics, out};
use crate::show::{Source, encap, name};
use crate::{dsfield, protocol};

/// Which tables are asked.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum By {
    /// Those that workers read.
    Workers,
    /// The configured ones, for a route by this device if one is named: no packet is looked up so.
    Device(Option<IfIndex>),
}

/// A family.
pub(super) trait Gets: Shown {
    /// Protocols that can be asked for; 0 when none is.
    const PROTOCOLS: [u8; 4];

    fn fib(network: &Network) -> &Fib<Self>;

    fn by(plane: &Plane<'_, '_>, question: &Question<Self>) -> By;

    fn flow(plane: &Plane<'_, '_>, question: &Question<Self>) -> Flow<Self>;

    fn get<'g>(plane: &Plane<'_, 'g>, question: &Question<Self>, lookup: &dyn Fn(&Flow<Self>) -> Answer<'g>) -> Result<Reply<'g>, Refusal>;

    /// The table that the kernel says a route is of.
    fn said(editor: &Editor, table: TableId) -> TableId;

    /// Writes the answer; `found` is the route as it was configured.
    fn write<S: Source>(
        text: &mut String,
        inquiry: &Inquiry<'_, S, Self>,
        reply: &Reply<'_>,
        found: Option<(Prefix<Self>, &RouteEntry)>,
    ) -> fmt::Result;

    fn line<S: Source>(inquiry: &Inquiry<'_, S, Self>, reply: &Reply<'_>, found: Option<(Prefix<Self>, &RouteEntry)>) -> String {
        let mut text = String::new();
        // Writing to a string does not fail.
        let _ = Self::write(&mut text, inquiry, reply, found);
        text
    }
}

const ICMP: u8 = 1;
const TCP: u8 = 6;
const UDP: u8 = 17;
const ICMP6: u8 = 58;

impl Gets for Ipv4Addr {
    const PROTOCOLS: [u8; 4] = [0, TCP, UDP, ICMP];

    fn fib(network: &Network) -> &Fib<Ipv4Addr> {
        &network.v4
    }

    fn by(plane: &Plane<'_, '_>, question: &Question<Ipv4Addr>) -> By {
        match plane.flow4(question).oif {
            IfIndex(0) => By::Workers,
            oif => By::Device(Some(oif)),
        }
    }

    fn flow(plane: &Plane<'_, '_>, question: &Question<Ipv4Addr>) -> Flow<Ipv4Addr> {
        plane.flow4(question)
    }

    fn get<'g>(
        plane: &Plane<'_, 'g>,
        question: &Question<Ipv4Addr>,
        lookup: &dyn Fn(&Flow<Ipv4Addr>) -> Answer<'g>,
    ) -> Result<Reply<'g>, Refusal> {
        plane.get4(question, lookup)
    }

    /// As long as there are no rules but its own, Linux has the routes of `local` in `main`.
    fn said(editor: &Editor, table: TableId) -> TableId {
        let usual = [(0, TableId::LOCAL), (32766, TableId::MAIN), (32767, TableId::DEFAULT)];
        let usual = usual.map(|(pref, table)| Rule::all(pref, Action::Lookup(table)));
        let is_usual =
            |rules: &[Rule<Ipv4Addr>]| rules.iter().zip(&usual).all(|(rule, usual)| Rule { protocol: 0, ..rule.clone() } == *usual);
        let rules = editor.rules::<Ipv4Addr>();
        if table == TableId::LOCAL && rules.len() == usual.len() && is_usual(rules) { TableId::MAIN } else { table }
    }

    fn write<S: Source>(
        text: &mut String,
        inquiry: &Inquiry<'_, S, Ipv4Addr>,
        reply: &Reply<'_>,
        found: Option<(Prefix<Ipv4Addr>, &RouteEntry)>,
    ) -> fmt::Result {
        let question = &inquiry.question;
        let from = question.src.filter(|src| !src.is_unspecified());
        destination(text, reply.kind, question.dst)?;
        if let Some(from) = from {
            write!(text, "from {from} ")?;
        }
        let tos = found.map_or(0, |(_, entry)| entry.select.tos);
        way(text, inquiry, reply, reply.dev, tos)?;
        let own = question.iif.is_none();
        if let (Some(src), true, None) = (reply.src, own, from) {
            write!(text, "src {src} ")?;
        }
        if reply.kind == Kind::Multicast {
            // iproute2's name for the bit that says so in a cached route.
            text.push_str("rt_offload_failed ");
        }
        match question.mark {
            0 => {}
            mark @ ..16 => write!(text, "mark {mark} ")?,
            mark => write!(text, "mark {mark:#x} ")?,
        }
        if let Some(uid) = inquiry.asked.uid(own) {
            write!(text, "uid {uid} ")?;
        }
        write!(text, "{}    cache ", if inquiry.options.oneline { "\\" } else { "\n" })?;
        let flags = [
            (reply.local, "local"),
            (reply.kind == Kind::Multicast, "mc"),
            (reply.kind == Kind::Broadcast, "brd"),
            (reply.redirect, "redirect"),
        ];
        let flags: Vec<_> = flags.iter().filter(|(set, _)| *set).map(|(_, word)| *word).collect();
        if !flags.is_empty() {
            write!(text, "<{}> ", flags.join(","))?;
        }
        metrics(text, reply.dst.mtu, &reply.dst.metrics)?;
        if let Some(iif) = question.iif {
            write!(text, "iif {} ", name(inquiry.editor, iif))?;
        }
        text.push('\n');
        Ok(())
    }
}

impl Gets for Ipv6Addr {
    const PROTOCOLS: [u8; 4] = [0, TCP, UDP, ICMP6];

    fn fib(network: &Network) -> &Fib<Ipv6Addr> {
        &network.v6
    }

    fn by(plane: &Plane<'_, '_>, question: &Question<Ipv6Addr>) -> By {
        let only = plane.only_by6(question);
        // On no link in particular a destination that is on one link only is the first one's.
        let first = question.dst.is_link_scoped() && !question.dst.is_loopback();
        if question.iif.is_none() && (only.is_some() || first) { By::Device(only) } else { By::Workers }
    }

    fn flow(plane: &Plane<'_, '_>, question: &Question<Ipv6Addr>) -> Flow<Ipv6Addr> {
        plane.flow6(question)
    }

    fn get<'g>(
        plane: &Plane<'_, 'g>,
        question: &Question<Ipv6Addr>,
        lookup: &dyn Fn(&Flow<Ipv6Addr>) -> Answer<'g>,
    ) -> Result<Reply<'g>, Refusal> {
        plane.get6(question, lookup)
    }

    fn said(_: &Editor, table: TableId) -> TableId {
        table
    }

    fn write<S: Source>(
        text: &mut String,
        inquiry: &Inquiry<'_, S, Ipv6Addr>,
        reply: &Reply<'_>,
        found: Option<(Prefix<Ipv6Addr>, &RouteEntry)>,
    ) -> fmt::Result {
        let question = &inquiry.question;
        destination(text, reply.kind, question.dst)?;
        write!(text, "from {} ", question.src.unwrap_or(Ipv6Addr::UNSPECIFIED))?;
        // The kernel knows its own anycast addresses from routes that are given.
        let given = found.is_some_and(|(_, entry)| reply.kind == Kind::Anycast && entry.protocol != protocol::KERNEL);
        way(text, inquiry, reply, if given { reply.dst.dev() } else { reply.dev }, 0)?;
        if let Some((_, entry)) = found.filter(|(_, entry)| entry.protocol != protocol::BOOT) {
            write!(text, "proto {} ", protocol::show(entry.protocol))?;
        }
        if let Some(src) = reply.src {
            write!(text, "src {src} ")?;
        }
        write!(text, "metric {} ", found.map_or(0, |(_, entry)| entry.metric))?;
        metrics(text, reply.dst.mtu, &reply.dst.metrics)?;
        if let Some(iif) = question.iif {
            write!(text, "iif {} ", name(inquiry.editor, iif))?;
        }
        text.push_str("pref medium\n");
        Ok(())
    }
}

fn destination(text: &mut String, kind: Kind, dst: impl Address) -> fmt::Result {
    if kind != Kind::Unicast {
        write!(text, "{} ", kind.word())?;
    }
    write!(text, "{dst} ")
}

/// The way out and the table that says so.
fn way<S: Source, A: Gets>(text: &mut String, inquiry: &Inquiry<'_, S, A>, reply: &Reply<'_>, dev: IfIndex, tos: u8) -> fmt::Result {
    if reply.encap != Encap::None {
        encap::write(text, inquiry.source, inquiry.editor, reply.encap, false)?;
    }
    if tos != 0 {
        write!(text, "tos {} ", dsfield::shown(tos))?;
    }
    if let Some(via) = reply.via {
        gateway::<A>(text, via)?;
    }
    write!(text, "dev {} ", out(inquiry.editor, dev))?;
    match A::said(inquiry.editor, reply.table) {
        TableId(0) | TableId::MAIN => Ok(()),
        table => write!(text, "table {table} "),
    }
}

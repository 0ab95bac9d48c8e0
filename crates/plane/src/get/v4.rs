//! IPv4.

use std::net::{IpAddr, Ipv4Addr};

use port::{Buf, Time};
use route::{Answer, DropReason, Flow, IfIndex, Kind, Upper};
use srv6::Lookup4;
use wire::{ipv4, proto};

use super::{Asked, Question, Refusal, Reply};
use crate::ip4_input::{Addresses, check_addresses};
use crate::packet::{Packet, Version};
use crate::source4::To;
use crate::{decide, source4};

/// The longest header behind that of IP: TCP's.
const UPPER: usize = 20;

impl<'g> Asked<'_, 'g> {
    /// What is looked up.
    pub fn flow4(&self, question: &Question<Ipv4Addr>) -> Flow<Ipv4Addr> {
        let question = with_protocol(question);
        match question.iif {
            Some(iif) => decide::flow4(&self.cx, &packet(&question, iif), &Lookup4::default()),
            None => self.own_flow(&question),
        }
    }

    /// The way; `lookup` asks the tables.
    ///
    /// # Errors
    /// Why there is none.
    pub fn get4(&self, question: &Question<Ipv4Addr>, lookup: impl Fn(&Flow<Ipv4Addr>) -> Answer<'g>) -> Result<Reply<'g>, Refusal> {
        let question = with_protocol(question);
        match question.iif {
            Some(iif) => self.input4(&question, iif, lookup),
            None => {
                let reply = self.output4(&question, lookup)?;
                // From a loopback address nothing leaves.
                let stays = || self.cx.links.get(reply.dev).is_some_and(|link| link.is_loopback() || link.is_vrf());
                let from_loopback = question.src.is_some_and(|src| src.is_loopback());
                if from_loopback && !stays() { Err(Refusal::Invalid) } else { Ok(reply) }
            }
        }
    }

    /// The router sends (Linux `ip_route_output_key_hash_rcu`).
    fn output4(&self, question: &Question<Ipv4Addr>, lookup: impl Fn(&Flow<Ipv4Addr>) -> Answer<'g>) -> Result<Reply<'g>, Refusal> {
        let dst = question.dst;
        let group = dst.is_multicast() || dst.is_broadcast();
        let oif = question.oif;
        if let Some(src) = question.src {
            let with_src = self.cx.links.iter().find(|link| link.has_addr(src.into())).map(|link| link.index);
            if src.is_multicast() || src.is_broadcast() {
                return Err(Refusal::Invalid);
            }
            if with_src.is_none() && self.cx.kind_here(src) != Some(Kind::Local) {
                return Err(Refusal::NetUnreachable);
            }
            if group && oif.is_none() {
                return Ok(self.on_link4(question, with_src.unwrap_or(IfIndex::LO)));
            }
        }
        if let Some(oif) = oif {
            if !self.cx.links.get(oif).is_some_and(|link| link.up) {
                return Err(Refusal::NetUnreachable);
            }
            if dst.is_broadcast() || dst.octets()[..3] == [224, 0, 0] {
                return Ok(self.on_link4(question, oif));
            }
        }
        if dst.is_unspecified() {
            let of_link = || oif.and_then(|oif| self.cx.links.source4(oif, Ipv4Addr::UNSPECIFIED));
            let src = question.src.or_else(of_link).unwrap_or(Ipv4Addr::LOCALHOST);
            return Ok(Reply { src: Some(src.into()), local: true, ..Reply::without_route(Kind::Local, IfIndex::LO) });
        }
        let flow = self.own_flow(question);
        let answer = lookup(&flow);
        if let Some(refusal) = Refusal::of(&answer) {
            // With an interface named, what no route is known for is taken to be on its link.
            let on_link = oif.filter(|oif| dst.is_multicast() || self.cx.vrf(*oif).1.is_none());
            return on_link.map(|oif| self.on_link4(question, oif)).ok_or(refusal);
        }
        self.way4(question, &flow, answer)
    }

    /// By the route that was found.
    fn way4(&self, question: &Question<Ipv4Addr>, flow: &Flow<Ipv4Addr>, answer: Answer<'g>) -> Result<Reply<'g>, Refusal> {
        let dst = question.dst;
        let preferred = answer.dst.src;
        if answer.dst.kind == Kind::Local {
            let dev = self.loopback(answer.dst.dev());
            let src = question.src.map(IpAddr::V4).or(preferred).unwrap_or(dst.into());
            return Ok(Reply { src: Some(src), ..Reply::to_router(answer, dev) });
        }
        let packet = packet(question, IfIndex::LO);
        let place = match flow.oif {
            IfIndex(0) => self.cx.select_from(&answer.dst, &packet, source4::of(&packet.buf)),
            oif => (0..).zip(answer.dst.hops()).find(|(_, hop)| hop.dev == oif).map(|(place, _)| place),
        };
        let place = place.ok_or(Refusal::Invalid)?;
        let near = question.oif.unwrap_or(IfIndex::LO);
        let src = question.src.or_else(|| self.cx.source_by(&answer.dst, place, dst, near)).map(IpAddr::V4);
        let reply = Reply::by(answer, place, self.cx.hash(&packet)).ok_or(Refusal::Invalid)?;
        Ok(self.cast4(question, Reply { src, ..reply }))
    }

    /// Out of an interface, without a route.
    fn on_link4(&self, question: &Question<Ipv4Addr>, dev: IfIndex) -> Reply<'g> {
        let src = question.src.or_else(|| self.cx.links.source4(dev, Ipv4Addr::UNSPECIFIED)).map(IpAddr::V4);
        self.cast4(question, Reply { src, ..Reply::without_route(Kind::Unicast, dev) })
    }

    /// What is for a group goes to no gateway, and what is for all on a link is for the router too.
    fn cast4(&self, question: &Question<Ipv4Addr>, reply: Reply<'g>) -> Reply<'g> {
        let dst = question.dst;
        if dst.is_broadcast() || reply.kind == Kind::Broadcast {
            let Reply { table, dev, src, .. } = reply;
            return Reply { table, src, local: true, ..Reply::without_route(Kind::Broadcast, dev) };
        }
        if dst.is_multicast() {
            let Reply { table, dev, src, .. } = reply;
            let local = self.cx.is_member4(dst);
            return Reply { table, src, local, ..Reply::without_route(Kind::Multicast, dev) };
        }
        reply
    }

    /// A packet comes in (Linux `ip_route_input_rcu`).
    fn input4(
        &self,
        question: &Question<Ipv4Addr>,
        iif: IfIndex,
        lookup: impl Fn(&Flow<Ipv4Addr>) -> Answer<'g>,
    ) -> Result<Reply<'g>, Refusal> {
        let packet = packet(question, iif);
        let src = source4::of(&packet.buf);
        let believed = |to| source4::check(&self.cx, &packet, src, to).map_err(Refusal::Dropped);
        let local = |kind| Reply { local: true, ..Reply::without_route(kind, self.loopback(iif)) };
        match check_addresses(src, question.dst).map_err(Refusal::Dropped)? {
            Addresses::Route => {}
            Addresses::Broadcast => return believed(To::All).map(|_| local(Kind::Broadcast)),
            Addresses::Multicast if self.cx.is_member4(question.dst) => return believed(To::All).map(|_| local(Kind::Multicast)),
            Addresses::Multicast => return Err(Refusal::Dropped(DropReason::NotForUs)),
        }
        let forwarding = self.cx.links.get(iif).is_some_and(|link| link.conf4.forwarding);
        let answer = lookup(&decide::flow4(&self.cx, &packet, &Lookup4::default()));
        if let Some(refusal) = Refusal::of(&answer) {
            return Err(if forwarding { refusal } else { Refusal::Dropped(DropReason::ForwardingOff) });
        }
        match answer.dst.kind {
            kind @ (Kind::Local | Kind::Broadcast) => {
                believed(if kind == Kind::Local { To::Router } else { To::All })?;
                let dev = self.loopback(answer.dst.dev());
                return Ok(Reply::to_router(answer, dev));
            }
            _ if !forwarding => return Err(Refusal::Dropped(DropReason::ForwardingOff)),
            Kind::Unicast => {}
            _ => return Err(Refusal::Dropped(DropReason::MulticastNotForwarded)),
        }
        let (place, hop) = self.cx.select(&answer.dst, &packet).ok_or(Refusal::Invalid)?;
        let on_link = believed(To::Dev(hop.dev))?;
        let sends = self.cx.settings.all4.send_redirects || self.cx.links.get(hop.dev).is_some_and(|link| link.conf4.send_redirects);
        let redirect = hop.dev == iif && on_link && sends;
        let hash = self.cx.hash(&packet);
        let reply = Reply::by(answer, place, hash).ok_or(Refusal::Invalid)?;
        Ok(Reply { redirect, ..reply })
    }
}

/// A protocol that is not named is UDP.
fn with_protocol(question: &Question<Ipv4Addr>) -> Question<Ipv4Addr> {
    let Upper { protocol, .. } = question.upper;
    let src = question.src.filter(|src| !src.is_unspecified());
    Question { src, upper: Upper { protocol: if protocol == 0 { proto::UDP } else { protocol }, ..question.upper }, ..*question }
}

/// A packet as asked about, that comes in by `iif`.
fn packet(question: &Question<Ipv4Addr>, iif: IfIndex) -> Packet {
    let Question { dst, src, mark, dsfield, upper, .. } = *question;
    let mut bytes = [0; ipv4::LEN + UPPER];
    bytes[..2].copy_from_slice(&[0x45, dsfield]);
    bytes[2..4].copy_from_slice(&((ipv4::LEN + UPPER) as u16).to_be_bytes());
    bytes[8..10].copy_from_slice(&[64, upper.protocol]);
    bytes[12..16].copy_from_slice(&src.unwrap_or(Ipv4Addr::UNSPECIFIED).octets());
    bytes[16..20].copy_from_slice(&dst.octets());
    match upper.protocol {
        // An echo request.
        proto::ICMP4 => bytes[20] = 8,
        _ => {
            bytes[20..22].copy_from_slice(&upper.sport.to_be_bytes());
            bytes[22..24].copy_from_slice(&upper.dport.to_be_bytes());
        }
    }
    Packet { mark, ..Packet::new(Version::V4, Buf::from_bytes(&bytes), Time::ZERO, 0, iif) }
}

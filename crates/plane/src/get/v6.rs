//! IPv6.

use std::net::{IpAddr, Ipv6Addr};

use route::{Address, Answer, Flow, IfIndex, Kind, Sharing};

use super::{Asked, NEVER, Question, Refusal, Reply};
use crate::multipath;

impl<'g> Asked<'_, 'g> {
    /// What is looked up.
    pub fn flow6(&self, question: &Question<Ipv6Addr>) -> Flow<Ipv6Addr> {
        let Some(iif) = question.iif else { return self.own_flow(question) };
        let flow = self.cx.flow(question.dst, question.src.unwrap_or(Ipv6Addr::UNSPECIFIED), iif, iif);
        Flow { mark: question.mark, dsfield: question.dsfield, upper: question.upper, ..flow }
    }

    /// The interface that the route must lead by: the one named where the destination is on one link only or no source is named
    /// (Linux `RT6_LOOKUP_F_IFACE`).
    pub fn only_by6(&self, question: &Question<Ipv6Addr>) -> Option<IfIndex> {
        let one_link = question.dst.is_link_scoped();
        match question.iif {
            Some(iif) => Some(iif).filter(|_| one_link),
            None => self.leaves_by(question.oif).filter(|_| one_link || question.src.is_none_or(|src| src.is_unspecified())),
        }
    }

    /// The way; `lookup` asks the tables.
    ///
    /// # Errors
    /// Why there is none.
    pub fn get6(&self, question: &Question<Ipv6Addr>, lookup: impl Fn(&Flow<Ipv6Addr>) -> Answer<'g>) -> Result<Reply<'g>, Refusal> {
        let answer = lookup(&self.flow6(question));
        if let Some(refusal) = Refusal::of(&answer) {
            return Err(refusal);
        }
        let src = question.src.unwrap_or(Ipv6Addr::UNSPECIFIED);
        let hash = multipath::hash_flow6(self.cx.settings, (src, question.dst), question.upper);
        let mut place = answer.dst.select(hash, false, NEVER).map(|(place, _)| place).ok_or(Refusal::NetUnreachable)?;
        // Of a group of nexthop objects Linux takes that of the hash all the same, and asks the first for a source.
        let group = !matches!(answer.dst.sharing, Sharing::Plain);
        if let Some(only) = self.only_by6(question).filter(|_| !group) {
            // The first by that interface, unless the hash is for a further one by it.
            let mut by = (0..).zip(answer.dst.hops()).filter(|(_, hop)| hop.dev == only);
            let first = by.next();
            let further = answer.dst.hop(place).is_some_and(|hop| hop.dev == only && first.is_some_and(|(_, first)| hash >= first.until));
            place = if further { place } else { first.map_or(place, |(first, _)| first) };
        }
        let own = question.iif.is_none();
        if answer.dst.kind == Kind::Multicast && !own {
            return Err(Refusal::NotRouted);
        }
        let link = answer.dst.hop(if group { 0 } else { place }).map_or(IfIndex(0), |hop| hop.dev);
        let chosen = || answer.dst.src.or_else(|| self.cx.links.source6(link, question.dst).map(IpAddr::V6));
        let src = if own { chosen() } else { answer.dst.src };
        match answer.dst.kind {
            Kind::Local | Kind::Anycast => {
                let dev = self.loopback(link);
                Ok(Reply { src, ..Reply::to_router(answer, dev) })
            }
            _ => Ok(Reply { src, ..Reply::by(answer, place, hash).ok_or(Refusal::NetUnreachable)? }),
        }
    }
}

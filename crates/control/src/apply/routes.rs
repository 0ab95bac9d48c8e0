//! Routes, and the SIDs and headends on them.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};
use std::sync::Arc;

use ::route::{
    ConfigError, Encap as Effect, HopSpec, Kind, More, PolicyId, Put, RouteEntry, RouteSpec, SCOPE_LINK, SCOPE_UNIVERSE, Select, SidId,
    TableId, Tick,
};
use plane::SidCount;
use srv6::{Policy, Sid};

use super::{Applier, LocalSid, Narrow, at, narrow};
use crate::address::{Family, Prefix};
use crate::encap::{Encap, Seg6, Seg6Local};
use crate::error::Error;
use crate::nexthop::Nexthop;
use crate::protocol;
use crate::route::{RouteCommand, RouteOperation, RouteTable};
use crate::span::{Span, Spanned};

impl Applier<'_> {
    pub(super) fn route(&mut self, command: &RouteCommand<'_>) -> Result<(), Error> {
        match command.family {
            Family::V4 => self.route_of::<Ipv4Addr>(command),
            Family::V6 => self.route_of::<Ipv6Addr>(command),
        }
    }

    fn route_of<A: Narrow>(&mut self, command: &RouteCommand<'_>) -> Result<(), Error> {
        let put = match command.operation {
            RouteOperation::Add => Put::Add,
            RouteOperation::Replace => Put::Replace,
            RouteOperation::Append => Put::Append,
            RouteOperation::Delete => return self.route_del::<A>(command),
        };
        let kind = command.said.kind.map_or(Kind::Unicast, |kind| kind.value);
        let table = self.table_of(command, kind)?;
        let mut hops = Vec::with_capacity(command.hops.len());
        for hop in &command.hops {
            hops.push(self.hop(command, table, hop)?);
        }
        let spec = RouteSpec {
            prefix: narrow::<A>(command.destination.value, command.destination.span)?,
            table: Some(table),
            kind,
            metric: command.said.metric.map(|metric| metric.value),
            protocol: command.said.protocol.map_or(protocol::BOOT, |protocol| protocol.value),
            scope: command.said.scope.map(|scope| scope.value).or_else(|| scope(command, kind)),
            src: command.said.source.and_then(|source| A::narrow(source.value)),
            mtu: command.said.mtu.map_or(0, |mtu| mtu.value),
            more: More {
                nexthop: command.said.nexthop.map_or(0, |id| id.value),
                select: select(command),
                metrics: command.said.metrics,
                expires: self.expires(command),
            },
            hops,
        };
        self.editor.route_put(spec, put).map_err(|error| refused(command, table, &error))
    }

    /// When a route goes that is added now.
    fn expires(&self, command: &RouteCommand<'_>) -> Option<Tick> {
        // These two stand for never.
        let seconds = command.said.expires.map(|seconds| seconds.value).filter(|seconds| ![0, u32::MAX].contains(seconds))?;
        Some(self.editor.time().after(u64::from(seconds) * Tick::PER_SECOND))
    }

    fn route_del<A: Narrow>(&mut self, command: &RouteCommand<'_>) -> Result<(), Error> {
        let table = self.table_of(command, command.said.kind.map_or(Kind::Unicast, |kind| kind.value))?;
        let mut hops = Vec::with_capacity(command.hops.len());
        for hop in &command.hops {
            hops.push((hop.device.map(|device| self.device(device)).transpose()?, hop.via.map(|via| via.value)));
        }
        let wanted = select(command);
        let matches = |entry: &RouteEntry| {
            // A metric of 0 stands for the one a route gets that names none.
            let metric = command.said.metric.filter(|metric| metric.value != 0);
            let fits = |hop: &::route::Hop, (device, via): (Option<::route::IfIndex>, Option<IpAddr>)| {
                device.is_none_or(|device| hop.dev == device) && (via.is_none() || hop.via == via)
            };
            let ways = match hops.as_slice() {
                [] => true,
                [only] => entry.effect.hops.iter().any(|hop| fits(hop, *only)),
                several => {
                    entry.effect.hops.len() == several.len() && entry.effect.hops.iter().zip(several).all(|(hop, given)| fits(hop, *given))
                }
            };
            ways && metric.is_none_or(|metric| entry.metric == metric.value)
                && entry.select == wanted
                && command.said.nexthop.is_none_or(|id| entry.effect.nexthop == id.value)
                && command.said.kind.is_none_or(|kind| entry.effect.kind == kind.value)
                && command.said.protocol.is_none_or(|protocol| entry.protocol == protocol.value)
                && command.said.scope.is_none_or(|scope| entry.scope == scope.value)
                && command.said.source.is_none_or(|source| entry.effect.src == Some(source.value))
        };
        let prefix = narrow::<A>(command.destination.value, command.destination.span)?;
        let missing =
            |_| Error::refused(command.destination.span, format!("there is no such route to {prefix} in table {table} (No such process)"));
        self.editor.route_del(table, prefix, matches).map_err(missing)
    }

    fn table_of(&self, command: &RouteCommand<'_>, kind: Kind) -> Result<TableId, Error> {
        let usual = if matches!(kind, Kind::Local | Kind::Broadcast | Kind::Anycast) { TableId::LOCAL } else { TableId::MAIN };
        Ok(match command.said.table {
            None => usual,
            // Table 0 stands for none given.
            Some(RouteTable::Table(table)) if table.value.0 == 0 => TableId::MAIN,
            Some(RouteTable::Table(table)) => table.value,
            Some(RouteTable::Vrf(device)) => self.vrf(device)?,
        })
    }

    fn hop(&mut self, command: &RouteCommand<'_>, table: TableId, hop: &Nexthop<'_>) -> Result<HopSpec, Error> {
        let dev = hop.device.map(|device| self.device(device)).transpose()?;
        let encap = self.encap(hop.encap.as_ref(), Some((table, command.destination.value)))?;
        Ok(HopSpec { dev, via: hop.via.map(|via| via.value), onlink: hop.onlink, weight: hop.weight, encap })
    }

    /// What a way does to packets; `place`: the table and the prefix of its route, if it is not that of a nexthop object.
    pub(super) fn encap(&mut self, encap: Option<&Spanned<Encap<'_>>>, place: Option<(TableId, Prefix)>) -> Result<Effect, Error> {
        Ok(match encap.map(|encap| &encap.value) {
            None => Effect::None,
            Some(Encap::Seg6(headend)) => Effect::Seg6(self.headend(headend)?),
            Some(Encap::Seg6Local(local)) => Effect::Seg6Local(self.local_sid(local, place)?),
        })
    }

    fn headend(&mut self, headend: &Seg6) -> Result<PolicyId, Error> {
        let tunsrc = headend.tunsrc.map(|tunsrc| tunsrc.value);
        let table = headend.table.map(|table| table.value);
        let policy = Policy::build(headend.mode.value, &headend.segments.value, tunsrc).map(|policy| policy.looked_up_in(table));
        let policy = policy.map_err(|error| Error::refused(headend.segments.span, error.to_string()))?;
        if let Some(&known) = self.policies.get(&policy) {
            return Ok(known);
        }
        let policy = Arc::new(policy);
        let id = PolicyId(self.tables.policies.insert(policy.clone()));
        self.made.push(Effect::Seg6(id));
        self.policies.insert(policy, id);
        Ok(id)
    }

    fn local_sid(&mut self, local: &Seg6Local<'_>, place: Option<(TableId, Prefix)>) -> Result<SidId, Error> {
        let mut attributes = local.attributes.clone();
        attributes.oif = local.oif.map(|device| self.device(device)).transpose()?;
        attributes.iif = local.iif.map(|device| self.device(device)).transpose()?;
        let descriptor = local.action.value;
        let sid = Sid::build(descriptor, &attributes).map_err(|error| Error::refused(local.place(error.attr()), error.to_string()))?;
        let ignored = sid.ignored();
        for attr in ignored.iter() {
            let why = format!("{} has no use for \"{attr}\"; it is ignored, as Linux does", descriptor.name);
            self.warnings.push(Error::refused(local.place(Some(attr)), why));
        }
        if let Some(vrf) = attributes.vrftable.filter(|_| !ignored.contains(srv6::Attr::VrfTable)) {
            self.editor.vrf_table_check(vrf).map_err(at(local.place(Some(srv6::Attr::VrfTable))))?;
        }
        let sid = Arc::new(sid);
        let id = SidId(self.tables.sids.insert(sid.clone()));
        self.made.push(Effect::Seg6Local(id));
        let local = LocalSid { place, id, sid, counted_before: SidCount::default() };
        if self.sids.insert(local) {
            self.numbered_again.push(id);
        }
        Ok(id)
    }
}

/// Which packets the route is for.
fn select(command: &RouteCommand<'_>) -> Select {
    let from = command.from.and_then(|from| Ipv6Addr::narrow(from.value.addr).and_then(|addr| ::route::Prefix::new(addr, from.value.len)));
    Select { tos: command.said.tos.map_or(0, |tos| tos.value), from }
}

/// The scope that iproute2 gives to an IPv4 route that names none: `link` when it has a device and no gateway, whatever it puts on the packet.
fn scope(command: &RouteCommand<'_>, kind: Kind) -> Option<u8> {
    match command.hops.as_slice() {
        _ if command.family == Family::V6 || kind != Kind::Unicast => None,
        [only] if only.via.is_none() => Some(SCOPE_LINK),
        _ => Some(SCOPE_UNIVERSE),
    }
}

/// The tables' refusal of a route, at the word it is about.
fn refused(command: &RouteCommand<'_>, table: TableId, error: &ConfigError) -> Error {
    let destination = command.destination.span;
    let via = |gateway: &IpAddr| command.hops.iter().filter_map(|hop| hop.via).find(|via| via.value == *gateway).map(|via| via.span);
    let device = || command.hops.iter().find_map(|hop| hop.device).map(|device| device.span);
    let span: Option<Span> = match error {
        ConfigError::Exists(_) => {
            let why = format!("the route to {} exists already in table {table} (File exists)", command.destination.value);
            return Error::refused(destination, why)
                .hint("use \"ip route replace\" to put this one in its place, or \"ip route append\" to add it");
        }
        ConfigError::GatewayUnreachable(gateway) | ConfigError::GatewayLocal(gateway) => via(gateway),
        ConfigError::DeviceDown(_) => device(),
        ConfigError::Missing("nexthop") => command.said.nexthop.map(|id| id.span),
        ConfigError::Invalid(_) if command.said.nexthop.is_some() => command.said.nexthop.map(|id| id.span),
        ConfigError::SourceNotLocal(_) => command.said.source.map(|source| source.span),
        ConfigError::Invalid(_) => command.hops.iter().find_map(Nexthop::span),
        _ => None,
    };
    Error::refused(span.unwrap_or(destination), error.to_string())
}

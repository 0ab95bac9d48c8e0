//! Routes as an operator writes them, and what of them the kernel refuses.

use std::net::IpAddr;
use std::sync::atomic::Ordering;

use crate::{
    Address, ConfigError, Editor, Effect, Encap, Family, Hop, IfIndex, Kind, Metrics, Prefix, Put, RouteEntry, SCOPE_HOST, SCOPE_LINK,
    SCOPE_UNIVERSE, Select, TableId, Tick,
};

/// One way out, as an operator writes it.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct HopSpec {
    /// `dev`.
    pub dev: Option<IfIndex>,
    /// `via`, also of the other family.
    pub via: Option<IpAddr>,
    /// `onlink`: do not check that the gateway is on the link.
    pub onlink: bool,
    /// `weight`, 1 to 256.
    pub weight: u16,
    /// `encap`.
    pub encap: Encap,
}

impl HopSpec {
    /// By a device, to a gateway if there is one, and nothing else.
    pub fn new(dev: IfIndex, via: Option<IpAddr>) -> HopSpec {
        HopSpec { dev: Some(dev), via, onlink: false, weight: 1, encap: Encap::None }
    }
}

/// What few routes say.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct More {
    /// `nhid`: the nexthop object that says the ways out; 0: the route itself does.
    pub nexthop: u32,
    /// `tos`, `from`.
    pub select: Select,
    /// `hoplimit`, `advmss`, `mtu lock`.
    pub metrics: Metrics,
    /// When it goes by itself, if it leads anywhere (`expires`, IPv6): not before [`Editor::keep_up`].
    pub expires: Option<Tick>,
}

/// A route, as an operator writes it.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct RouteSpec<A: Address> {
    /// Destinations.
    pub prefix: Prefix<A>,
    /// `table`; without: `main`, or `local` for the kinds that stand there.
    pub table: Option<TableId>,
    /// Type.
    pub kind: Kind,
    /// `metric`.
    pub metric: Option<u32>,
    /// `proto`, a number; `ip` itself writes 3 (boot).
    pub protocol: u8,
    /// `scope`, a number.
    pub scope: Option<u8>,
    /// `src`.
    pub src: Option<A>,
    /// `mtu`, bytes; 0: none.
    pub mtu: u32,
    /// What few routes say.
    pub more: More,
    /// Ways out.
    pub hops: Vec<HopSpec>,
}

impl<A: Address> RouteSpec<A> {
    /// A unicast route by these ways, of which nothing else is said, of the protocol that `ip` writes.
    pub fn new(prefix: Prefix<A>, hops: Vec<HopSpec>) -> RouteSpec<A> {
        RouteSpec {
            prefix,
            table: None,
            kind: Kind::Unicast,
            metric: None,
            protocol: 3,
            scope: None,
            src: None,
            mtu: 0,
            more: More::default(),
            hops,
        }
    }
}

impl Editor {
    /// Adds a route.
    ///
    /// # Errors
    /// What the kernel refuses: a route that exists, a gateway that is on no link, a device that is down, a source that is no address.
    pub fn route_put<A: Family>(&mut self, spec: RouteSpec<A>, how: Put) -> Result<(), ConfigError> {
        let local = matches!(spec.kind, Kind::Local | Kind::Broadcast | Kind::Anycast);
        let table = spec.table.filter(|table| table.0 != 0).unwrap_or(if local { TableId::LOCAL } else { TableId::MAIN });
        let v6 = A::BITS == 128;
        let mut kind = spec.kind;
        if v6 && kind == Kind::Unicast && spec.hops.first().and_then(|hop| hop.dev) == Some(IfIndex::LO) {
            // A route to nowhere: Linux makes it a reject route too, and its action with it.
            kind = Kind::Unreachable;
        }
        if let Some(src) = spec.src
            && !self.links.iter().any(|link| link.has_addr(src.into()))
        {
            return Err(ConfigError::SourceNotLocal(src.into()));
        }
        let hops = match kind {
            Kind::Unicast | Kind::Local | Kind::Broadcast | Kind::Anycast | Kind::Multicast => {
                if spec.more.nexthop != 0 {
                    self.check_nexthop::<A>(spec.more.nexthop)?;
                    if spec.prefix.addr().is_link_scoped() {
                        return Err(ConfigError::Invalid("a route to link-local addresses can not name a nexthop object here"));
                    }
                } else if spec.hops.is_empty() {
                    return Err(ConfigError::NoWayOut);
                }
                spec.hops.iter().map(|hop| self.hop(table, hop, A::BITS == 128)).collect::<Result<Vec<_>, _>>()?
            }
            _ => Vec::new(),
        };
        let metric = match spec.metric {
            None | Some(0) if v6 => A::DEFAULT_METRIC,
            metric => metric.unwrap_or(A::DEFAULT_METRIC),
        };
        let scope = spec.scope.unwrap_or(match kind {
            Kind::Local => SCOPE_HOST,
            Kind::Broadcast | Kind::Anycast | Kind::Multicast => SCOPE_LINK,
            _ if !v6 && !hops.is_empty() && hops.iter().all(|hop| hop.via.is_none() && hop.encap == Encap::None) => SCOPE_LINK,
            _ => SCOPE_UNIVERSE,
        });
        if !spec.more.select.is_all() && spec.prefix.addr().is_link_scoped() {
            return Err(ConfigError::Invalid("a route to link-local addresses can not be for some sources only here"));
        }
        let effect = Effect {
            nexthop: spec.more.nexthop,
            metrics: spec.more.metrics,
            // Linux forgets it of the others.
            expires: spec.more.expires.filter(|_| spec.more.nexthop != 0 || !hops.is_empty()),
            mtu: spec.mtu,
            src: spec.src.map(Into::into),
            ..Effect::new(kind, hops)
        };
        if kind == Kind::Local && !v6 {
            self.network().v4.local_given.store(true, Ordering::Relaxed);
        }
        let rib = A::rib(self).0;
        let effect = rib.intern(effect);
        rib.put(table, spec.prefix, RouteEntry { select: spec.more.select, metric, protocol: spec.protocol, scope, effect }, how)
    }

    /// Removes the first route of the prefix that `matches`.
    ///
    /// # Errors
    /// [`ConfigError::Missing`] when none does.
    pub fn route_del<A: Family>(
        &mut self,
        table: TableId,
        prefix: Prefix<A>,
        matches: impl Fn(&RouteEntry) -> bool,
    ) -> Result<(), ConfigError> {
        A::rib(self).0.remove(table, prefix, matches)
    }

    /// Checks one way out and finds its interface.
    pub(crate) fn hop(&mut self, table: TableId, hop: &HopSpec, v6_route: bool) -> Result<Hop, ConfigError> {
        let dev = match hop.via {
            None => hop.dev.ok_or(ConfigError::NoWayOut)?,
            Some(IpAddr::V6(via)) if via.is_unicast_link_local() => {
                hop.dev.ok_or(ConfigError::Invalid("a link-local gateway needs a device (dev NAME)"))?
            }
            Some(_) if hop.onlink => hop.dev.ok_or(ConfigError::Invalid("onlink needs a device (dev NAME)"))?,
            Some(IpAddr::V4(_)) if v6_route => return Err(ConfigError::Invalid("an IPv6 route can not have an IPv4 gateway")),
            // The kernel asks the rules as for a packet out of the device: behind the route's own table comes that of the device's VRF.
            Some(via) => {
                let vrf_table = hop.dev.and_then(|dev| self.links.get(dev)).and_then(|link| link.vrf_table);
                let mut link_in = |table| match via {
                    IpAddr::V4(via) => self.rib4.gateway_link(table, hop.dev, via),
                    IpAddr::V6(via) => self.rib6.gateway_link(table, hop.dev, via),
                };
                link_in(table).or_else(|error| vrf_table.map_or(Err(error), link_in))?
            }
        };
        let link = self.links.get(dev).ok_or(ConfigError::Missing("device"))?;
        if !link.up {
            return Err(ConfigError::DeviceDown(link.name.clone()));
        }
        Ok(Hop { dev, via: hop.via, onlink: hop.onlink && hop.via.is_some(), encap: hop.encap, weight: hop.weight })
    }
}

//! Everything that a packet's way depends on, as workers read it, and its one writer.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};
use std::sync::Arc;

use rcu::{Domain, Rcu};

use crate::rib::Rib;
use crate::{
    Action, Address, Conf4, Conf6, ConfigError, Effect, Encap, Fib, Hop, IfIndex, Kind, Link, LinkKind, Links, Neighbours, Prefix, Put,
    RouteEntry, Rule, Settings, TableId,
};

/// What workers read. Nothing in it is changed under them: a change publishes a new value.
pub struct Network {
    domain: Arc<Domain>,
    /// Interfaces.
    pub links: Rcu<Links>,
    /// Settings of the router as a whole.
    pub settings: Rcu<Settings>,
    /// IPv4 tables and rules.
    pub v4: Fib<Ipv4Addr>,
    /// IPv6 tables and rules.
    pub v6: Fib<Ipv6Addr>,
    /// Neighbours of both families.
    pub neighbours: Neighbours,
}

impl Network {
    /// The RCU domain that everything here is published in.
    pub fn domain(&self) -> &Arc<Domain> {
        &self.domain
    }
}

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
    /// Ways out.
    pub hops: Vec<HopSpec>,
}

/// What is changed of an interface; `None` stays.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct LinkChange {
    /// `address`.
    pub mac: Option<wire::Mac>,
    /// `mtu`, bytes.
    pub mtu: Option<u32>,
    /// `up` or `down`.
    pub up: Option<bool>,
    /// `master` (a VRF device) or `nomaster`.
    pub master: Option<Option<IfIndex>>,
}

/// The families' differences in editing.
pub trait Family: Address {
    /// The control plane's tables of this family.
    #[doc(hidden)]
    fn rib(editor: &mut Editor) -> (&mut Rib<Self>, &Links);
    /// As [`Family::rib`], to be read.
    #[doc(hidden)]
    fn rib_ref(editor: &Editor) -> &Rib<Self>;
}

impl Family for Ipv4Addr {
    fn rib(editor: &mut Editor) -> (&mut Rib<Ipv4Addr>, &Links) {
        (&mut editor.rib4, &editor.links)
    }

    fn rib_ref(editor: &Editor) -> &Rib<Ipv4Addr> {
        &editor.rib4
    }
}

impl Family for Ipv6Addr {
    fn rib(editor: &mut Editor) -> (&mut Rib<Ipv6Addr>, &Links) {
        (&mut editor.rib6, &editor.links)
    }

    fn rib_ref(editor: &Editor) -> &Rib<Ipv6Addr> {
        &editor.rib6
    }
}

/// The one writer of a [`Network`]. Changes are collected and seen by workers after [`Editor::commit`]; each change is checked whole before anything is
/// changed.
pub struct Editor {
    network: Arc<Network>,
    pub(crate) links: Links,
    pub(crate) settings: Settings,
    pub(crate) rib4: Rib<Ipv4Addr>,
    pub(crate) rib6: Rib<Ipv6Addr>,
    /// The tables are those of a kernel that has derived what is to be derived.
    pub(crate) mirrors: bool,
}

impl Default for Editor {
    fn default() -> Editor {
        Editor::new()
    }
}

impl Editor {
    /// A network with `lo`, the default rules and nothing else.
    pub fn new() -> Editor {
        let domain = Domain::new();
        let mut links = Links::default();
        links.add("lo", LinkKind::Loopback);
        let settings = Settings::default();
        let network = Arc::new(Network {
            links: Rcu::new(&domain, links.clone()),
            settings: Rcu::new(&domain, settings.clone()),
            v4: Fib::new(&domain),
            v6: Fib::new(&domain),
            neighbours: Neighbours::new(&domain),
            domain: domain.clone(),
        });
        let mut editor = Editor { network, links, settings, rib4: Rib::new(&domain), rib6: Rib::new(&domain), mirrors: false };
        // IPv6 has no table `default` in its rules.
        let _ = editor.rib6.rule_del(|rule| rule.pref == 32767);
        editor
    }

    /// What workers read.
    pub fn network(&self) -> &Arc<Network> {
        &self.network
    }

    /// Makes all changes since the last commit visible to workers.
    pub fn commit(&mut self) {
        if !self.mirrors {
            self.add_missing_link_locals();
        }
        self.links.index_addresses();
        self.network.links.publish(self.links.clone());
        self.network.settings.publish(self.settings.clone());
        self.rib4.commit(&self.network.v4, &self.network.neighbours);
        self.rib6.commit(&self.network.v6, &self.network.neighbours);
    }

    /// Interfaces as they will be after the commit.
    pub fn links(&self) -> &Links {
        &self.links
    }

    /// Settings as they will be after the commit.
    pub fn settings(&self) -> &Settings {
        &self.settings
    }

    /// Settings of the router as a whole, to be changed. What concerns interfaces has functions of its own.
    pub fn settings_mut(&mut self) -> &mut Settings {
        &mut self.settings
    }

    /// True when routes or rules have named the table (an empty table is another thing than none).
    pub fn table_exists<A: Family>(&self, table: TableId) -> bool {
        A::rib_ref(self).table_exists(table)
    }

    /// Every route of a table, in no order.
    pub fn routes<A: Family>(&self, table: TableId) -> impl Iterator<Item = (Prefix<A>, &RouteEntry)> {
        A::rib_ref(self).routes(table)
    }

    /// The rules, in the order in which they are asked.
    pub fn rules<A: Family>(&self) -> &[Rule<A>] {
        A::rib_ref(self).rules()
    }

    /// The longest prefix of `table` that holds `addr`: what a trace shows beside the route.
    pub fn longest<A: Family>(&self, table: TableId, addr: A) -> Option<(Prefix<A>, &RouteEntry)> {
        A::rib_ref(self).longest(table, addr, |_| true)
    }

    /// Adds a port: Ethernet, down, MTU 1500.
    ///
    /// # Errors
    /// [`ConfigError::Exists`] when an interface of that name exists.
    pub fn port_add(&mut self, name: &str, place: usize) -> Result<IfIndex, ConfigError> {
        let index = self.link_add(name, LinkKind::Port(place))?;
        if let Some(link) = self.links.get_mut(index) {
            // Locally administered, told apart by place, until the operator sets one.
            let [a, b] = (place as u16).to_be_bytes();
            link.mac = wire::Mac([0x02, 0, 0, 0, a, b]);
        }
        Ok(index)
    }

    /// Adds a VRF device and, with the first one, the rules that send lookups of its members to its table.
    ///
    /// # Errors
    /// A name that exists; table 0; with strict mode, a table that is another VRF's.
    pub fn vrf_add(&mut self, name: &str, table: TableId) -> Result<IfIndex, ConfigError> {
        if table.0 == 0 {
            return Err(ConfigError::Invalid("a VRF needs a table number above 0"));
        }
        if self.settings.vrf_strict_mode && self.links.vrf_with_table(table).is_some() {
            return Err(ConfigError::VrfTableUsed(table));
        }
        let first = !self.links.iter().any(Link::is_vrf);
        let index = self.link_add(name, LinkKind::Vrf(table))?;
        if first {
            let _ = self.rib4.rule_add(Rule::all(1000, Action::Vrf));
            let _ = self.rib6.rule_add(Rule::all(1000, Action::Vrf));
        }
        self.rib4.ensure_table(table);
        self.rib6.ensure_table(table);
        Ok(index)
    }

    fn link_add(&mut self, name: &str, kind: LinkKind) -> Result<IfIndex, ConfigError> {
        if self.links.named(name).is_some() {
            return Err(ConfigError::Exists("device"));
        }
        let index = self.links.add(name, kind);
        if let Some(link) = self.links.get_mut(index) {
            link.conf4 = self.settings.default4;
            link.conf6 = self.settings.default6;
        }
        Ok(index)
    }

    /// Removes a VRF device; its members leave it.
    ///
    /// # Errors
    /// A port or `lo` can not be removed.
    pub fn link_del(&mut self, index: IfIndex) -> Result<(), ConfigError> {
        let link = self.links.get(index).ok_or(ConfigError::Missing("device"))?;
        if !link.is_vrf() {
            return Err(ConfigError::Invalid("only devices added with `link add` can be removed"));
        }
        let members: Vec<_> = self.links.iter().filter(|link| link.master == Some(index)).map(|link| link.index).collect();
        for member in members {
            self.link_set(member, LinkChange { master: Some(None), ..LinkChange::default() })?;
        }
        self.link_routes_flush(index);
        self.links.remove(index);
        Ok(())
    }

    /// Changes an interface.
    ///
    /// # Errors
    /// An MTU out of range; a master that is no VRF device.
    pub fn link_set(&mut self, index: IfIndex, change: LinkChange) -> Result<(), ConfigError> {
        let link = self.links.get(index).ok_or(ConfigError::Missing("device"))?;
        if change.mtu.is_some_and(|mtu| !(68..=65536).contains(&mtu)) {
            return Err(ConfigError::Invalid("an MTU is 68 to 65536 bytes"));
        }
        if change.mac.is_some_and(|mac| mac.is_group() || mac.is_zero()) {
            return Err(ConfigError::Invalid("an interface's address is neither a group's nor zero"));
        }
        let table = match change.master {
            Some(Some(master)) => match self.links.get(master).map(|link| link.kind) {
                Some(LinkKind::Vrf(table)) if !link.is_vrf() && !link.is_loopback() => Some(Some(table)),
                _ => return Err(ConfigError::Invalid("a master is a VRF device, and its members are ports")),
            },
            Some(None) => Some(None),
            None => None,
        };
        let was_up = link.up;
        if let (Some(master), Some(table)) = (change.master, table) {
            self.link_down(index);
            if let Some(link) = self.links.get_mut(index) {
                link.master = master;
                link.vrf_table = table;
            }
            self.neighbours_flush(index);
        }
        let Some(link) = self.links.get_mut(index) else { return Ok(()) };
        link.mac = change.mac.unwrap_or(link.mac);
        link.mtu = change.mtu.unwrap_or(link.mtu);
        let ipv6 = link.has_ipv6();
        if !ipv6 {
            self.link_ipv6_off(index);
        }
        match change.up.unwrap_or(was_up) {
            true => self.link_up(index),
            false => self.link_down(index),
        }
        Ok(())
    }

    fn link_up(&mut self, index: IfIndex) {
        let Some(link) = self.links.get_mut(index) else { return };
        if link.up {
            return;
        }
        link.up = true;
        let loopback = link.is_loopback();
        self.link_addresses(index, true);
        if loopback {
            let _ = self.addr_add(index, IpAddr::V4(Ipv4Addr::LOCALHOST), AddrSpec { len: 8, scope: Some(254), ..AddrSpec::default() });
            let _ = self.addr_add(index, IpAddr::V6(Ipv6Addr::LOCALHOST), AddrSpec { len: 128, ..AddrSpec::default() });
        }
    }

    /// IPv4 addresses stay for the next time, IPv6 ones go, and with them every route through the interface.
    fn link_down(&mut self, index: IfIndex) {
        let Some(link) = self.links.get_mut(index) else { return };
        if !link.up {
            return;
        }
        link.up = false;
        link.addrs6.clear();
        self.link_routes_flush(index);
    }

    /// IPv6 addresses go, and with them every IPv6 route through the interface.
    fn link_ipv6_off(&mut self, index: IfIndex) {
        let Some(link) = self.links.get_mut(index) else { return };
        link.addrs6.clear();
        self.rib6.flush(|entry| entry.effect.hops.iter().any(|hop| hop.dev == index));
    }

    fn link_routes_flush(&mut self, index: IfIndex) {
        self.rib4.flush(|entry| entry.effect.hops.iter().any(|hop| hop.dev == index));
        self.rib6.flush(|entry| entry.effect.hops.iter().any(|hop| hop.dev == index));
    }

    fn neighbours_flush(&mut self, index: IfIndex) {
        for neighbour in self.network.neighbours.list().iter().filter(|n| n.dev() == index) {
            self.network.neighbours.remove(index, neighbour.addr());
        }
    }

    /// Checks that `vrftable` may name the table.
    ///
    /// # Errors
    /// Strict mode is off, or no VRF device has the table.
    pub fn vrf_table_check(&self, table: TableId) -> Result<(), ConfigError> {
        if !self.settings.vrf_strict_mode {
            return Err(ConfigError::VrfStrictModeOff);
        }
        self.links.vrf_with_table(table).map(|_| ()).ok_or(ConfigError::VrfTableUnknown(table))
    }

    /// Switches strict mode of VRFs.
    ///
    /// # Errors
    /// [`ConfigError::VrfTableUsed`] when two VRF devices share a table already.
    pub fn set_vrf_strict_mode(&mut self, on: bool) -> Result<(), ConfigError> {
        let shared = self.links.iter().find_map(|link| {
            let LinkKind::Vrf(table) = link.kind else { return None };
            self.links.iter().any(|other| other.kind == link.kind && other.index != link.index).then_some(table)
        });
        match shared {
            Some(table) if on => Err(ConfigError::VrfTableUsed(table)),
            _ => {
                self.settings.vrf_strict_mode = on;
                Ok(())
            }
        }
    }

    /// Changes IPv4 settings: of one interface, or with `None` of `all`; `forwarding` of `all` goes to every interface.
    pub fn conf4(&mut self, dev: Option<IfIndex>, change: impl Fn(&mut Conf4)) -> Result<(), ConfigError> {
        match dev {
            Some(dev) => change(&mut self.links.get_mut(dev).ok_or(ConfigError::Missing("device"))?.conf4),
            None => {
                let before = self.settings.all4.forwarding;
                change(&mut self.settings.all4);
                let forwarding = self.settings.all4.forwarding;
                if forwarding != before {
                    self.settings.default4.forwarding = forwarding;
                    self.links.iter_mut().for_each(|link| link.conf4.forwarding = forwarding);
                }
            }
        }
        Ok(())
    }

    /// Changes IPv6 settings, as [`Editor::conf4`].
    pub fn conf6(&mut self, dev: Option<IfIndex>, change: impl Fn(&mut Conf6)) -> Result<(), ConfigError> {
        let forwarding = |links: &Links| links.iter().map(|link| (link.index, link.conf6.forwarding)).collect::<Vec<_>>();
        let before = forwarding(&self.links);
        match dev {
            Some(dev) => change(&mut self.links.get_mut(dev).ok_or(ConfigError::Missing("device"))?.conf6),
            None => {
                let was = self.settings.all6;
                change(&mut self.settings.all6);
                let all = self.settings.all6;
                if all.forwarding != was.forwarding {
                    self.settings.default6.forwarding = all.forwarding;
                    self.links.iter_mut().for_each(|link| link.conf6.forwarding = all.forwarding);
                }
                if all.disable_ipv6 != was.disable_ipv6 {
                    self.settings.default6.disable_ipv6 = all.disable_ipv6;
                    self.links.iter_mut().for_each(|link| link.conf6.disable_ipv6 = all.disable_ipv6);
                }
            }
        }
        let off: Vec<_> = self.links.iter().filter(|link| link.conf6.disable_ipv6).map(|link| link.index).collect();
        off.into_iter().for_each(|index| self.link_ipv6_off(index));
        for (index, was) in before {
            if self.links.get(index).is_some_and(|link| link.conf6.forwarding != was) {
                self.link_anycast(index, !was);
            }
        }
        Ok(())
    }

    /// Adds or replaces a neighbour that is never asked for.
    ///
    /// # Errors
    /// [`ConfigError::Exists`] when one of that address is known and `replace` is false.
    pub fn neighbour_put(
        &mut self,
        dev: IfIndex,
        addr: IpAddr,
        state: crate::NeighbourState,
        mac: wire::Mac,
        replace: bool,
    ) -> Result<(), ConfigError> {
        let neighbour = self.network.neighbours.entry(dev, addr);
        if !replace && neighbour.load().0 != crate::NeighbourState::None {
            return Err(ConfigError::Exists("neighbour"));
        }
        neighbour.store(state, mac);
        Ok(())
    }

    /// Removes a neighbour.
    ///
    /// # Errors
    /// [`ConfigError::Missing`] when it is not known.
    pub fn neighbour_del(&mut self, dev: IfIndex, addr: IpAddr) -> Result<(), ConfigError> {
        self.network.neighbours.remove(dev, addr).then_some(()).ok_or(ConfigError::Missing("neighbour"))
    }

    /// Adds a rule.
    ///
    /// # Errors
    /// [`ConfigError::Exists`] for one equal in everything.
    pub fn rule_add<A: Family>(&mut self, rule: Rule<A>) -> Result<(), ConfigError> {
        A::rib(self).0.rule_add(rule)
    }

    /// Removes the first rule that `matches`.
    ///
    /// # Errors
    /// [`ConfigError::Missing`] when none does.
    pub fn rule_del<A: Family>(&mut self, matches: impl Fn(&Rule<A>) -> bool) -> Result<(), ConfigError> {
        A::rib(self).0.rule_del(matches)
    }

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
                if spec.hops.is_empty() {
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
            Kind::Local => 254,
            Kind::Broadcast | Kind::Anycast | Kind::Multicast => 253,
            _ if !v6 && !hops.is_empty() && hops.iter().all(|hop| hop.via.is_none() && hop.encap == Encap::None) => 253,
            _ => 0,
        });
        let effect = Effect { kind, hops, mtu: spec.mtu, src: spec.src.map(Into::into) };
        let rib = A::rib(self).0;
        let effect = rib.intern(effect);
        rib.put(table, spec.prefix, RouteEntry { metric, protocol: spec.protocol, scope, effect }, how)
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
    fn hop(&mut self, table: TableId, hop: &HopSpec, v6_route: bool) -> Result<Hop, ConfigError> {
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
        Ok(Hop { dev, via: hop.via, encap: hop.encap, weight: hop.weight })
    }
}

pub use crate::addresses::AddrSpec;

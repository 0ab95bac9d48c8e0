//! Interfaces coming, going and changing, and what of addresses, routes and neighbours comes, goes and changes with them.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

use crate::{
    Action, AddrSpec, Conf4, Conf6, ConfigError, Editor, IfIndex, Kind, Link, LinkKind, Links, RouteEntry, Rule, SCOPE_HOST, TableId,
};

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
    /// `group`, a number.
    pub group: Option<u32>,
}

impl Editor {
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

    /// The number of the interface of this name for a rule, which may be there before it: then the interface gets that number when it is added.
    pub fn number_for_rule(&mut self, name: &str) -> IfIndex {
        match self.links.number(name) {
            Some(known) => known,
            None => self.links.keep_new(name),
        }
    }

    pub(crate) fn link_add(&mut self, name: &str, kind: LinkKind) -> Result<IfIndex, ConfigError> {
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

    /// Removes a VRF device, whose members leave it, or another device that was added, with the VLANs on it.
    ///
    /// # Errors
    /// A port or `lo` can not be removed.
    pub fn link_del(&mut self, index: IfIndex) -> Result<(), ConfigError> {
        let link = self.links.get(index).ok_or(ConfigError::Missing("device"))?;
        if !matches!(link.kind, LinkKind::Vrf(_) | LinkKind::Vlan(_) | LinkKind::Dummy) {
            return Err(ConfigError::Invalid("only devices added with `link add` can be removed"));
        }
        let members: Vec<_> = self.links.iter().filter(|link| link.master == Some(index)).map(|link| link.index).collect();
        for member in members {
            self.link_set(member, LinkChange { master: Some(None), ..LinkChange::default() })?;
        }
        for vlan in self.links.vlans_on(index) {
            self.link_del(vlan)?;
        }
        self.link_routes_flush(index);
        self.neighbours_flush(index, |_| true);
        let removed = self.links.remove(index);
        if let Some(link) = removed.filter(|_| self.rib4.rules_name(index) || self.rib6.rules_name(index)) {
            self.links.keep(&link.name, index);
        }
        Ok(())
    }

    /// Changes an interface.
    ///
    /// # Errors
    /// An MTU out of range or above that of the device below a VLAN; a master that is no VRF device; a VLAN that is to be up on a device that is down.
    pub fn link_set(&mut self, index: IfIndex, change: LinkChange) -> Result<(), ConfigError> {
        self.vlan_check(index, &change)?;
        if change.mac.is_some() {
            // Linux `neigh_changeaddr`.
            for dev in self.links.with_address_of(index) {
                self.neighbours_flush(dev, |_| true);
            }
        }
        self.link_change(index, change)?;
        if let Some(link) = self.links.get_mut(index).filter(|_| change.mac.is_some()) {
            link.own_mac = true;
        }
        Ok(())
    }

    /// The hardware behind a port is another, of this Ethernet address: all that was set up on the port stays.
    pub fn port_replaced(&mut self, port: IfIndex, mac: wire::Mac) {
        // A port takes any address that hardware has.
        let _ = self.link_change(port, LinkChange { mac: Some(mac), ..LinkChange::default() });
    }

    pub(crate) fn link_change(&mut self, index: IfIndex, change: LinkChange) -> Result<(), ConfigError> {
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
        // One that is its master already changes nothing.
        let master = change.master.filter(|master| *master != link.master);
        if let (Some(master), Some(table)) = (master, table) {
            self.link_down(index);
            self.link_routes_flush(index);
            if let Some(link) = self.links.get_mut(index) {
                link.master = master;
                link.vrf_table = table;
            }
            self.link_addresses(index, true);
            self.neighbours_flush(index, |_| true);
        }
        let Some(link) = self.links.get_mut(index) else { return Ok(()) };
        link.mac = change.mac.unwrap_or(link.mac);
        link.mtu = change.mtu.unwrap_or(link.mtu);
        link.group = change.group.unwrap_or(link.group);
        let ipv6 = link.has_ipv6();
        if !ipv6 {
            self.link_ipv6_off(index);
        } else if was_up {
            self.rib6.link_up(index);
        }
        match change.up.unwrap_or(was_up) {
            true => self.link_up(index),
            false => self.link_down(index),
        }
        self.vlans_follow(index, was_up)
    }

    fn link_up(&mut self, index: IfIndex) {
        let Some(link) = self.links.get_mut(index) else { return };
        if link.up {
            return;
        }
        link.up = true;
        let (loopback, ipv6) = (link.is_loopback(), link.has_ipv6());
        self.rib4.link_up(index);
        if ipv6 {
            self.rib6.link_up(index);
        }
        self.link_addresses(index, true);
        if loopback {
            let _ =
                self.addr_add(index, IpAddr::V4(Ipv4Addr::LOCALHOST), AddrSpec { len: 8, scope: Some(SCOPE_HOST), ..AddrSpec::default() });
            let _ = self.addr_add(index, IpAddr::V6(Ipv6Addr::LOCALHOST), AddrSpec { len: 128, ..AddrSpec::default() });
        }
    }

    /// IPv4 addresses stay for the next time and stay the router's, IPv6 ones go, and with them every neighbour on the interface and every route through
    /// it that has no other way.
    fn link_down(&mut self, index: IfIndex) {
        let Some(link) = self.links.get_mut(index) else { return };
        if !link.up {
            return;
        }
        link.up = false;
        link.addrs6.clear();
        self.nexthops_flush(index, |_| true);
        let own = |entry: &RouteEntry| entry.effect.kind == Kind::Local && entry.scope == SCOPE_HOST;
        self.rib4.link_down(index, own);
        self.rib6.link_down(index, |_| false);
        self.neighbours_flush(index, |_| true);
    }

    /// IPv6 addresses go, and with them every IPv6 route through the interface and every IPv6 neighbour on it.
    fn link_ipv6_off(&mut self, index: IfIndex) {
        let Some(link) = self.links.get_mut(index) else { return };
        link.addrs6.clear();
        self.nexthops_flush(index, |object| object.v6);
        self.rib6.link_down(index, |_| false);
        self.neighbours_flush(index, IpAddr::is_ipv6);
    }

    /// True when no packet of the family is sent by the interface: it is down, or has lost what the family needs. A way through it is dead.
    pub fn is_dead<A: crate::Family>(&self, index: IfIndex) -> bool {
        A::rib_ref(self).is_down(index)
    }

    fn link_routes_flush(&mut self, index: IfIndex) {
        self.nexthops_flush(index, |_| true);
        self.rib4.flush(|entry| entry.leads_through(index));
        self.rib6.flush(|entry| entry.leads_through(index));
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
        let on: Vec<_> = self.links.iter().filter(|link| link.up && link.has_ipv6()).map(|link| link.index).collect();
        on.into_iter().for_each(|index| self.rib6.link_up(index));
        for (index, was) in before {
            if self.links.get(index).is_some_and(|link| link.conf6.forwarding != was) {
                self.link_anycast(index, !was);
            }
        }
        Ok(())
    }
}

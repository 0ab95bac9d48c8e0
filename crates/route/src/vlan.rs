//! VLAN sub-interfaces (IEEE 802.1Q) and dummy devices: interfaces without a port of their own.

use wire::EtherType;

use crate::{ConfigError, DropReason, Editor, IfIndex, Link, LinkChange, LinkKind, Links};

/// EtherType of a customer's tag (IEEE 802.1Q).
pub const VLAN_8021Q: u16 = EtherType::VLAN.0;
/// EtherType of a service provider's tag, around a customer's (IEEE 802.1ad).
pub const VLAN_8021AD: u16 = EtherType::QINQ.0;
/// The highest VLAN number (IEEE 802.1Q §9.6: 4095 is reserved).
pub const VLAN_MAX_ID: u16 = 4094;
/// Priority code points, which stand above drop eligible bit and number in a tag's control information.
pub const VLAN_CODE_POINTS: usize = 8;
const CODE_POINT_SHIFT: u32 = 13;
/// The VLAN number in a tag's control information.
pub const VLAN_NUMBER: u16 = 0xfff;
/// VLAN sub-interfaces that may stand on top of each other.
pub const VLAN_MAX_TAGS: usize = 4;
/// What tells dummy devices apart by their Ethernet addresses from ports: both are locally administered.
const DUMMY_MAC: u8 = 0x06;

/// The frames that a VLAN sub-interface takes of its device's, and how it marks its own.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub struct VlanTag {
    /// The device below.
    pub parent: IfIndex,
    /// EtherType of the tag: [`VLAN_8021Q`] or [`VLAN_8021AD`].
    pub protocol: u16,
    /// VLAN number, 0 to [`VLAN_MAX_ID`].
    pub id: u16,
}

/// What is said of a VLAN sub-interface beside its tag.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct VlanSettings {
    /// `reorder_hdr`: shown only, as routed packets are the same either way.
    pub reorder_hdr: bool,
    /// `loose_binding`: it is not set up and down with the device below it.
    pub loose_binding: bool,
    /// `ingress-qos-map`: the priority of packets by the priority code point of their tag.
    pub ingress: [u32; VLAN_CODE_POINTS],
    /// `egress-qos-map`: the priorities of packets whose tags have another priority code point than 0, with that, by priority.
    pub egress: Vec<(u32, u8)>,
}

impl Default for VlanSettings {
    fn default() -> VlanSettings {
        VlanSettings { reorder_hdr: true, loose_binding: false, ingress: [0; VLAN_CODE_POINTS], egress: Vec::new() }
    }
}

/// What is changed of [`VlanSettings`]; what is not named stays.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct VlanChange {
    /// `reorder_hdr`.
    pub reorder_hdr: Option<bool>,
    /// `loose_binding`.
    pub loose_binding: Option<bool>,
    /// Priority code points, 0 to 7, with the priorities that their packets get.
    pub ingress: Vec<(u8, u32)>,
    /// Priorities, with the priority code points, 0 to 7, that their packets' tags get.
    pub egress: Vec<(u32, u8)>,
}

impl VlanSettings {
    /// Changes them.
    pub fn change(&mut self, change: &VlanChange) {
        self.reorder_hdr = change.reorder_hdr.unwrap_or(self.reorder_hdr);
        self.loose_binding = change.loose_binding.unwrap_or(self.loose_binding);
        for (code_point, priority) in &change.ingress {
            self.ingress[usize::from(*code_point) % VLAN_CODE_POINTS] = *priority;
        }
        for (priority, code_point) in &change.egress {
            match self.egress.binary_search_by_key(priority, |(priority, _)| *priority) {
                Ok(at) if *code_point == 0 => _ = self.egress.remove(at),
                Ok(at) => self.egress[at].1 = *code_point,
                Err(_) if *code_point == 0 => {}
                Err(at) => self.egress.insert(at, (*priority, *code_point)),
            }
        }
    }

    /// The priority of a packet that came with this tag control information.
    pub fn priority(&self, control: u16) -> u32 {
        self.ingress[usize::from(control >> CODE_POINT_SHIFT) % VLAN_CODE_POINTS]
    }

    /// The priority code point of a packet of this priority.
    fn code_point(&self, priority: u32) -> u16 {
        self.egress.iter().find(|(of, _)| *of == priority).map_or(0, |(_, code_point)| u16::from(*code_point))
    }
}

/// A port, and the tags that frames bear there.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct WayOut {
    /// The port, by its place.
    pub port: usize,
    /// Protocol and control information of each tag, the outermost last.
    tags: [(u16, u16); VLAN_MAX_TAGS],
    len: usize,
}

impl WayOut {
    /// Protocol and tag control information, the innermost tag first.
    pub fn tags(&self) -> &[(u16, u16)] {
        &self.tags[..self.len]
    }
}

impl Links {
    /// The VLAN sub-interface of this tag.
    pub fn vlan(&self, tag: VlanTag) -> Option<&Link> {
        let at = self.vlans.binary_search_by_key(&tag, |(tag, _)| *tag).ok()?;
        self.get(self.vlans[at].1)
    }

    /// Where a packet of this priority leaves that is sent by `dev`.
    ///
    /// # Errors
    /// Why it does not: something on the way is down, or there is no port at its end.
    pub fn way_out(&self, dev: IfIndex, priority: u32) -> Result<WayOut, DropReason> {
        let (mut tags, mut len, mut at) = ([(0, 0); VLAN_MAX_TAGS], 0, dev);
        loop {
            let link = self.get(at).filter(|link| link.up).ok_or(DropReason::LinkDown)?;
            match link.kind {
                LinkKind::Port(port) => return Ok(WayOut { port, tags, len }),
                LinkKind::Vlan(VlanTag { parent, protocol, id }) => {
                    *tags.get_mut(len).ok_or(DropReason::Unsupported)? =
                        (protocol, link.vlan.code_point(priority) << CODE_POINT_SHIFT | id);
                    len += 1;
                    at = parent;
                }
                LinkKind::Dummy => return Err(DropReason::DummyDevice),
                LinkKind::Loopback | LinkKind::Vrf(_) | LinkKind::Elsewhere => return Err(DropReason::Unsupported),
            }
        }
    }

    /// The VLAN sub-interfaces that lead to the port in this place, with their tags there: protocol and number of each, the outermost first.
    pub fn vlans_of_port(&self, place: usize) -> impl Iterator<Item = (Vec<(u16, u16)>, &Link)> {
        let vlans = self.vlans.iter().filter_map(|(_, index)| self.get(*index));
        vlans.filter_map(move |link| {
            let way = self.way_out(link.index, 0).ok().filter(|way| way.port == place)?;
            Some((way.tags().iter().rev().map(|(protocol, control)| (*protocol, control & VLAN_NUMBER)).collect(), link))
        })
    }

    /// What stands at the lower end of the VLANs that `dev` is on: `dev` itself if it is none.
    pub fn below(&self, dev: IfIndex) -> Option<&Link> {
        self.downwards(dev).take(VLAN_MAX_TAGS + 1).find(|link| !matches!(link.kind, LinkKind::Vlan(_)))
    }

    /// A device, what it is a VLAN of, and so on.
    fn downwards(&self, dev: IfIndex) -> impl Iterator<Item = &Link> {
        std::iter::successors(self.get(dev), |link| match link.kind {
            LinkKind::Vlan(tag) => self.get(tag.parent),
            _ => None,
        })
    }

    /// The VLAN sub-interfaces right on top of a device.
    pub(crate) fn vlans_on(&self, parent: IfIndex) -> Vec<IfIndex> {
        self.iter().filter(|link| matches!(link.kind, LinkKind::Vlan(tag) if tag.parent == parent)).map(|link| link.index).collect()
    }

    /// A device and the VLAN sub-interfaces on it that have its Ethernet address.
    pub(crate) fn with_address_of(&self, dev: IfIndex) -> Vec<IfIndex> {
        let without_own = |vlan: &IfIndex| self.get(*vlan).is_some_and(|link| !link.own_mac);
        let above = self.vlans_on(dev).into_iter().filter(without_own).flat_map(|vlan| self.with_address_of(vlan));
        std::iter::once(dev).chain(above.collect::<Vec<_>>()).collect()
    }
}

impl Editor {
    /// Adds a VLAN sub-interface: down, with MTU and Ethernet address of the device below it, whose changes it follows.
    ///
    /// # Errors
    /// A name or tag that exists; a number beyond 4094; a device below that carries no Ethernet frames; too many on top of each other.
    pub fn vlan_add(&mut self, name: &str, tag: VlanTag, settings: &VlanChange) -> Result<IfIndex, ConfigError> {
        let parent = self.links.get(tag.parent).ok_or(ConfigError::Missing("device"))?;
        if !parent.sends() {
            return Err(ConfigError::Invalid("VLANs are not supported on this device: it must be a port, a VLAN or a dummy device"));
        }
        if tag.id > VLAN_MAX_ID {
            return Err(ConfigError::Invalid("a VLAN has a number from 0 to 4094"));
        }
        if self.links.downwards(tag.parent).filter(|link| matches!(link.kind, LinkKind::Vlan(_))).count() >= VLAN_MAX_TAGS {
            return Err(ConfigError::Invalid("at most 4 VLANs may stand on top of each other"));
        }
        if self.links.iter().any(|link| link.kind == LinkKind::Vlan(tag)) {
            return Err(ConfigError::Exists("VLAN of this number on the device"));
        }
        let (mac, mtu) = (parent.mac, parent.mtu);
        let index = self.link_add(name, LinkKind::Vlan(tag))?;
        if let Some(link) = self.links.get_mut(index) {
            (link.mac, link.mtu) = (mac, mtu);
            link.vlan.change(settings);
        }
        Ok(index)
    }

    /// Changes a VLAN sub-interface.
    ///
    /// # Errors
    /// [`ConfigError::Missing`] when it is none.
    pub fn vlan_change(&mut self, index: IfIndex, change: &VlanChange) -> Result<(), ConfigError> {
        let link = self.links.get_mut(index).filter(|link| matches!(link.kind, LinkKind::Vlan(_)));
        link.ok_or(ConfigError::Missing("VLAN"))?.vlan.change(change);
        Ok(())
    }

    /// Adds a dummy device: down, MTU 1500. It has addresses and takes packets, which end there.
    ///
    /// # Errors
    /// [`ConfigError::Exists`] when an interface of that name exists.
    pub fn dummy_add(&mut self, name: &str) -> Result<IfIndex, ConfigError> {
        let index = self.link_add(name, LinkKind::Dummy)?;
        if let Some(link) = self.links.get_mut(index) {
            let [a, b, c, d] = index.0.to_be_bytes();
            link.mac = wire::Mac([DUMMY_MAC, 0, a, b, c, d]);
        }
        Ok(index)
    }

    /// Checks what a VLAN sub-interface may not be while its device is as it is (Linux `vlan_dev_open`, `vlan_dev_change_mtu`).
    pub(crate) fn vlan_check(&self, index: IfIndex, change: &LinkChange) -> Result<(), ConfigError> {
        let Some(link) = self.links.get(index) else { return Ok(()) };
        let LinkKind::Vlan(tag) = link.kind else { return Ok(()) };
        let Some(parent) = self.links.get(tag.parent) else { return Ok(()) };
        if change.mtu.is_some_and(|mtu| mtu > parent.mtu) {
            return Err(ConfigError::Invalid("the MTU of a VLAN is at most that of the device below it"));
        }
        if change.up == Some(true) && !link.up && !parent.up && !link.vlan.loose_binding {
            return Err(ConfigError::DeviceDown(parent.name.clone()));
        }
        Ok(())
    }

    /// VLAN sub-interfaces go up and down with their device, have an Ethernet address of their own only if they were given one, and no greater MTU
    /// (Linux `vlan_device_event`).
    pub(crate) fn vlans_follow(&mut self, parent: IfIndex, was_up: bool) -> Result<(), ConfigError> {
        let Some((up, mtu, mac)) = self.links.get(parent).map(|link| (link.up, link.mtu, link.mac)) else { return Ok(()) };
        for index in self.links.vlans_on(parent) {
            let Some(link) = self.links.get(index) else { continue };
            let change = LinkChange {
                mac: (!link.own_mac && link.mac != mac).then_some(mac),
                mtu: (link.mtu > mtu).then_some(mtu),
                up: (was_up != up && link.up != up && !link.vlan.loose_binding).then_some(up),
                ..LinkChange::default()
            };
            if change != LinkChange::default() {
                self.link_change(index, change)?;
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn tag(parent: IfIndex, id: u16) -> VlanTag {
        VlanTag { parent, protocol: 0x8100, id }
    }

    fn up(up: bool) -> LinkChange {
        LinkChange { up: Some(up), ..LinkChange::default() }
    }

    #[test]
    fn a_vlan_follows_its_device() {
        let mut editor = Editor::new();
        let port = editor.port_add("e0", 0).unwrap();
        let outer = editor.vlan_add("e0.10", tag(port, 10), &VlanChange::default()).unwrap();
        let inner = editor.vlan_add("e0.10.20", tag(outer, 20), &VlanChange::default()).unwrap();
        assert!(matches!(editor.link_set(outer, up(true)), Err(ConfigError::DeviceDown(name)) if &*name == "e0"));
        editor.link_set(port, up(true)).unwrap();
        let ups = |editor: &Editor| [port, outer, inner].map(|index| editor.links().get(index).unwrap().up);
        assert_eq!(ups(&editor), [true; 3], "they come up with their device");
        editor.link_set(outer, up(false)).unwrap();
        assert_eq!(ups(&editor), [true, false, false]);
        editor.link_set(port, up(false)).unwrap();
        editor.link_set(port, up(true)).unwrap();
        assert_eq!(ups(&editor), [true; 3]);

        let (first, own) = (wire::Mac([2, 0, 0, 0, 0xa, 1]), wire::Mac([2, 0, 0, 0, 0xb, 2]));
        editor.link_set(port, LinkChange { mac: Some(first), mtu: Some(1400), ..LinkChange::default() }).unwrap();
        let inner_is = |editor: &Editor| editor.links().get(inner).map(|link| (link.mac, link.mtu));
        assert_eq!(inner_is(&editor), Some((first, 1400)));
        editor.link_set(inner, LinkChange { mac: Some(own), ..LinkChange::default() }).unwrap();
        editor.link_set(port, LinkChange { mac: Some(own), mtu: Some(1500), ..LinkChange::default() }).unwrap();
        editor.link_set(port, LinkChange { mac: Some(first), ..LinkChange::default() }).unwrap();
        assert_eq!(inner_is(&editor), Some((own, 1400)), "its own address stays, and a smaller MTU");
        assert!(editor.link_set(outer, LinkChange { mtu: Some(1501), ..LinkChange::default() }).is_err());
    }

    #[test]
    fn frames_leave_with_the_tags_of_every_vlan_on_the_way() {
        let mut editor = Editor::new();
        let port = editor.port_add("e0", 3).unwrap();
        editor.link_set(port, up(true)).unwrap();
        let service = VlanTag { protocol: 0x88a8, ..tag(port, 100) };
        let outer = editor.vlan_add("e0s", service, &VlanChange::default()).unwrap();
        let map = VlanChange { egress: vec![(0, 1), (6, 7)], ..VlanChange::default() };
        let inner = editor.vlan_add("e0s.10", tag(outer, 10), &map).unwrap();
        for index in [outer, inner] {
            editor.link_set(index, up(true)).unwrap();
        }
        editor.commit();
        let links = editor.links();
        let way = links.way_out(inner, 6).unwrap();
        assert_eq!((way.port, way.tags()), (3, &[(0x8100, 7 << 13 | 10), (0x88a8, 100)][..]));
        assert_eq!(links.way_out(inner, 0).unwrap().tags()[0], (0x8100, 1 << 13 | 10));
        assert_eq!(links.way_out(inner, 5).unwrap().tags()[0], (0x8100, 10));
        let below = |place| links.vlans_of_port(place).map(|(tags, link)| (tags, link.index)).collect::<Vec<_>>();
        assert_eq!(below(3), [(vec![(0x88a8, 100)], outer), (vec![(0x88a8, 100), (0x8100, 10)], inner)]);
        assert_eq!(below(0), []);
        let vlans = [service, tag(outer, 10), tag(port, 10)].map(|tag| links.vlan(tag).map(|link| link.index));
        assert_eq!(vlans, [Some(outer), Some(inner), None]);
    }

    #[test]
    fn what_linux_refuses_is_refused() {
        let mut editor = Editor::new();
        let port = editor.port_add("e0", 0).unwrap();
        editor.vlan_add("e0.10", tag(port, 10), &VlanChange::default()).unwrap();
        let mut add = |name: &str, tag| editor.vlan_add(name, tag, &VlanChange::default()).map_err(|error| error.to_string());
        assert_eq!(add("again", tag(port, 10)).unwrap_err(), "the VLAN of this number on the device exists already");
        assert_eq!(add("big", tag(port, 4095)).unwrap_err(), "a VLAN has a number from 0 to 4094");
        assert!(add("lo.1", tag(IfIndex::LO, 1)).unwrap_err().starts_with("VLANs are not supported"));
        assert!(add("gone.1", tag(IfIndex(77), 1)).is_err());
        let mut at = port;
        for n in 0..VLAN_MAX_TAGS {
            at = add(&format!("n{n}"), tag(at, 11)).unwrap();
        }
        assert!(add("deep", tag(at, 11)).unwrap_err().contains("at most 4"));
    }

    #[test]
    fn what_stands_on_a_device_goes_with_it() {
        let mut editor = Editor::new();
        let dummy = editor.dummy_add("d0").unwrap();
        let vlan = editor.vlan_add("d0.7", tag(dummy, 7), &VlanChange::default()).unwrap();
        editor.link_del(dummy).unwrap();
        assert!(editor.links().get(vlan).is_none() && editor.links().get(dummy).is_none());
    }
}

//! VLAN sub-interfaces and dummy devices of a kernel, without one.

use std::net::Ipv4Addr;

use control::mirror::{Device, DeviceKind, Dirty, KernelRule, Mirror, Reason, Snapshot};
use route::{Action, Conf4, Conf6, IfIndex, LinkKind, Selector, TableId, VLAN_8021AD, VLAN_8021Q, VlanSettings, VlanTag};
use wire::Mac;

fn device(index: u32, name: &str, kind: DeviceKind) -> Device {
    Device {
        index: IfIndex(index),
        name: name.into(),
        kind,
        mac: Mac([2, 0, 0, 0, 0xe, index as u8]),
        mtu: 1500,
        up: true,
        carrier: true,
        group: 0,
        master: None,
        conf4: Conf4::default(),
        conf6: Conf6::default(),
    }
}

fn tag(parent: u32, id: u16) -> VlanTag {
    VlanTag { parent: IfIndex(parent), protocol: VLAN_8021Q, id }
}

fn vlan(index: u32, name: &str, parent: u32, id: u16) -> Device {
    device(index, name, DeviceKind::Vlan(tag(parent, id), VlanSettings::default()))
}

fn rule(iif: &str) -> KernelRule<Ipv4Addr> {
    KernelRule {
        pref: 100,
        select: Selector::default(),
        iif: Some(iif.into()),
        oif: None,
        action: Ok(Action::Lookup(TableId(7))),
        suppress_len: None,
        suppress_group: None,
        protocol: 0,
    }
}

fn of(devices: impl IntoIterator<Item = Device>) -> Snapshot {
    let mut snapshot = Snapshot::default();
    snapshot.devices.extend(devices.into_iter().map(|device| (device.index, device)));
    snapshot
}

fn reconciled(mirror: &mut Mirror, snapshot: &mut Snapshot) {
    mirror.reconcile(snapshot, &mut Dirty { devices: true, ..Dirty::default() });
}

fn kind(mirror: &Mirror, name: &str) -> LinkKind {
    mirror.editor().links().named(name).expect(name).kind
}

#[test]
fn vlans_on_ports_are_the_routers_and_others_the_kernels() {
    let service = VlanTag { protocol: VLAN_8021AD, ..tag(2, 9) };
    let settings = VlanSettings { egress: vec![(0, 5)], ..VlanSettings::default() };
    let devices = [
        device(1, "lo", DeviceKind::Loopback),
        device(2, "e0", DeviceKind::Ethernet),
        device(3, "other", DeviceKind::Ethernet),
        vlan(4, "e0.10", 2, 10),
        device(5, "e0s", DeviceKind::Vlan(service, settings.clone())),
        vlan(6, "e0s.7", 5, 7),
        vlan(7, "other.10", 3, 10),
        device(8, "d0", DeviceKind::Dummy),
        vlan(9, "d0.1", 8, 1),
        device(10, "br0", DeviceKind::Other("bridge".into())),
        Device { master: Some(IfIndex(10)), ..vlan(11, "e0.30", 2, 30) },
        vlan(12, "round", 13, 1),
        vlan(13, "about", 12, 1),
    ];
    let mut snapshot = of(devices);
    let mut mirror = Mirror::new(&["e0"]);
    reconciled(&mut mirror, &mut snapshot);
    let expected = [
        ("e0", LinkKind::Port(0)),
        ("other", LinkKind::Elsewhere),
        ("e0.10", LinkKind::Vlan(tag(2, 10))),
        ("e0s", LinkKind::Vlan(service)),
        ("e0s.7", LinkKind::Vlan(tag(5, 7))),
        ("other.10", LinkKind::Elsewhere),
        ("d0", LinkKind::Dummy),
        ("d0.1", LinkKind::Vlan(tag(8, 1))),
        ("e0.30", LinkKind::Elsewhere),
        ("round", LinkKind::Elsewhere),
        ("about", LinkKind::Elsewhere),
    ];
    for (name, expected) in expected {
        assert_eq!(kind(&mirror, name), expected, "{name}");
    }
    assert_eq!(mirror.editor().links().named("e0s").map(|link| &link.vlan), Some(&settings));
    let listed: Vec<_> = mirror.unsupported().into_iter().map(|it| (it.what, it.reason)).collect();
    assert_eq!(listed, [("device e0.30".to_owned(), Reason::Master("br0".into()))]);

    // The port goes, and what stood on it is the kernel's.
    snapshot.devices.get_mut(&IfIndex(2)).unwrap().name = "wan".into();
    reconciled(&mut mirror, &mut snapshot);
    assert_eq!(
        (kind(&mirror, "wan"), kind(&mirror, "e0.10"), kind(&mirror, "e0s.7")),
        (LinkKind::Elsewhere, LinkKind::Elsewhere, LinkKind::Elsewhere)
    );
    snapshot.devices.remove(&IfIndex(4));
    reconciled(&mut mirror, &mut snapshot);
    assert!(mirror.editor().links().named("e0.10").is_none());
}

#[test]
fn a_rule_by_a_device_finds_it_under_its_new_name() {
    let devices = [device(2, "e0", DeviceKind::Ethernet), vlan(4, "e0.10", 2, 10)];
    let mut snapshot = of(devices);
    snapshot.rules4.push(rule("customer"));
    let mut mirror = Mirror::new(&["e0"]);
    let iif = |mirror: &Mirror| mirror.editor().rules::<Ipv4Addr>()[0].select.iif;
    mirror.reconcile(&mut snapshot, &mut Dirty { devices: true, rules: true, ..Dirty::default() });
    assert_ne!(iif(&mirror), Some(IfIndex(4)));
    snapshot.devices.get_mut(&IfIndex(4)).unwrap().name = "customer".into();
    reconciled(&mut mirror, &mut snapshot);
    assert_eq!(iif(&mirror), Some(IfIndex(4)));
}

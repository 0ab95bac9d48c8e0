//! Faults that other programs had with AF_XDP. docs/known-faults.md names the tests of the rest, which stand beside what they are about.

use std::time::Duration;

use port::live::xdp::Attach;
use port::live::{Device, PacketPort, PacketSettings, XdpDevice, XdpError, XdpPort, XdpSettings};
use port::{Pool, Port, Time};

use crate::lab::{self, FAR, NEAR, event};

const PATIENCE: Duration = Duration::from_secs(1);

fn open(name: &str, settings: XdpSettings) -> Option<XdpDevice> {
    lab::allowed(XdpDevice::open(name, settings), |error| error.io().raw_os_error())
}

fn queue(device: &XdpDevice) -> Option<XdpPort> {
    lab::allowed(device.port(0), |error: &XdpError| error.io().raw_os_error())
}

#[test]
fn a_port_let_go_under_load_sends_all_that_it_took() {
    let Some(()) = lab::cable(1) else { return };
    let (Some(near), Some(far)) = (open(NEAR, XdpSettings::default()), open(FAR, XdpSettings::default())) else { return };
    let (Some(mut port), Some(mut far)) = (queue(&near), queue(&far)) else { return };
    let (mut pool, mut batch) = (Pool::default(), Vec::new());
    let mut home = 0;
    let flood = |far: &mut XdpPort| {
        (0..64).for_each(|n| far.tx(&lab::frame(n, 100), Time::ZERO));
        far.flush().unwrap();
    };
    let mut send_back = |port: &mut XdpPort, far: &mut XdpPort| {
        let received = port.rx(&mut pool, &mut batch, 64).unwrap();
        for mut packet in batch.drain(..) {
            lab::turn_round(&mut packet.buf);
            port.tx(&packet.buf, packet.time);
            pool.give(packet.buf);
        }
        home += far.rx(&mut pool, &mut batch, 64).unwrap();
        batch.clear();
        received
    };
    for _ in 0..100 {
        flood(&mut far);
        send_back(&mut port, &mut far);
        port.flush().unwrap();
    }
    flood(&mut far);
    port.stop_receiving();
    // The load goes on, and is the kernel's.
    flood(&mut far);
    while send_back(&mut port, &mut far) > 0 {}
    assert!(port.drain(PATIENCE));
    let sent = port.counters().tx_packets;
    assert_eq!((port.counters().rx_packets, port.counters().tx_failed), (sent, 0));
    drop(port);
    let home = home + lab::receive(&mut far, usize::MAX, Duration::from_millis(100)).len();
    let lost = event(&mut far, "rx_dropped") + event(&mut far, "rx_ring_full") + event(&mut far, "rx_fill_ring_empty");
    assert_eq!((home as u64, lost), (sent, 0));
    assert!(sent > 64 * 100, "{sent}");
}

#[test]
fn a_device_whose_driver_has_no_xdp_is_explained_and_opened_in_the_stack_on_request() {
    let Some(()) = lab::namespace() else { return };
    if let Err(why) = lab::ip(&["link", "add", NEAR, "type", "dummy"]) {
        return lab::skip(why).unwrap_or_default();
    }
    lab::ip(&["link", "set", NEAR, "up"]).unwrap();
    let error = XdpDevice::open(NEAR, XdpSettings::default()).unwrap_err();
    if error.io().raw_os_error() == Some(libc::EPERM) {
        return;
    }
    assert!(error.to_string().contains("device near (MTU 1500): the driver refuses"), "{error}");
    assert!(error.to_string().contains("ask for a generic program"), "{error}");
    for attach in [Attach::Generic, Attach::NativeOrGeneric] {
        let Some(near) = open(NEAR, XdpSettings { attach, ..XdpSettings::default() }) else { return };
        assert!(near.notes().iter().any(|note| note.contains("in the stack")), "{:?}", near.notes());
        let Some(port) = queue(&near) else { return };
        assert!(!port.is_zero_copy());
    }
}

#[test]
fn fewer_queues_than_the_driver_wants_are_explained() {
    let Some(()) = lab::namespace() else { return };
    let near = ["link", "add", NEAR, "numrxqueues", "1", "type", "veth", "peer", FAR, "numtxqueues", "2"];
    if let Err(why) = lab::ip(&near) {
        return lab::skip(why).unwrap_or_default();
    }
    let told = std::process::Command::new("ethtool").args(["-L", FAR, "tx", "2"]).status();
    if !told.is_ok_and(|status| status.success()) {
        return lab::skip("ethtool -L far tx 2".to_owned()).unwrap_or_default();
    }
    let error = XdpDevice::open(NEAR, XdpSettings::default()).unwrap_err();
    if error.io().raw_os_error() != Some(libc::EPERM) {
        assert!(error.to_string().contains("too few queues"), "{error}");
    }
}

#[test]
fn rings_that_the_kernel_would_refuse_are_refused_with_the_reason() {
    let Some(()) = lab::cable(1) else { return };
    let Some(near) = open(NEAR, XdpSettings { slots: 1000, ..XdpSettings::default() }) else { return };
    let error = near.port(0).unwrap_err();
    if error.io().raw_os_error() != Some(libc::EPERM) {
        assert!(error.to_string().contains("a power of two of slots, not 1000"), "{error}");
    }
}

#[test]
fn a_vlan_tag_that_the_device_would_take_off_stays() {
    let Some(()) = lab::cable(1) else { return };
    let device = Device::named(NEAR).unwrap();
    if device.set_strips_vlan(true).is_err() {
        return;
    }
    let (Some(near), Some(far)) = (
        open(NEAR, XdpSettings { takes: port::live::xdp::Takes::Everything, ..XdpSettings::default() }),
        open(FAR, XdpSettings::default()),
    ) else {
        return;
    };
    assert!(!device.strips_vlan().unwrap());
    assert!(near.notes().iter().any(|note| note.contains("rxvlan") && note.contains("switched off")), "{:?}", near.notes());
    let (Some(mut port), Some(mut far)) = (queue(&near), queue(&far)) else { return };
    let mut frame = lab::frame(1, 100);
    frame.splice(12..12, [0x81, 0x00, 0x20, 0x07]);
    far.tx(&frame, Time::ZERO);
    far.flush().unwrap();
    // Before it came the frame of the far port's self-test.
    assert!(lab::receive(&mut port, 2, PATIENCE).iter().any(|packet| packet.buf[..] == frame));
}

#[test]
fn all_that_the_kernel_counts_is_told() {
    let Some(()) = lab::cable(1) else { return };
    let Some(near) = open(NEAR, XdpSettings::default()) else { return };
    let Some(mut port) = queue(&near) else { return };
    for name in [
        "rx_dropped",
        "rx_invalid_descriptors",
        "rx_ring_full",
        "rx_fill_ring_empty",
        "tx_invalid_descriptors",
        "tx_ring_empty",
        "rx_misplaced",
    ] {
        assert_eq!(event(&mut port, name) / 1000, 0, "{name}");
    }
}

#[test]
fn a_router_that_is_alone_hears_what_is_for_other_stations_and_one_beside_the_kernel_does_not() {
    let Some(()) = lab::cable(1) else { return };
    let promiscuous = || {
        let shown = std::process::Command::new("ip").args(["-d", "link", "show", NEAR]).output().unwrap();
        !String::from_utf8_lossy(&shown.stdout).contains("promiscuity 0 ")
    };
    {
        let Some(_near) = open(NEAR, XdpSettings::default()) else { return };
        assert!(!promiscuous());
    }
    {
        let Some(_near) = open(NEAR, XdpSettings { takes: port::live::xdp::Takes::Everything, ..XdpSettings::default() }) else { return };
        assert!(promiscuous());
    }
    let Some(packet) = lab::allowed(PacketPort::open(NEAR, PacketSettings::default()), std::io::Error::raw_os_error) else { return };
    assert!(promiscuous());
    drop(packet);
    assert!(!promiscuous(), "it ends with the port");
}

//! A device opened the best way there is.

use std::time::Duration;

use port::live::{Driver, LiveDevice, PacketSettings, XdpSettings};
use port::{Port, Time};

use crate::lab::{self, FAR, NEAR};

fn open(name: &str, driver: Driver) -> Option<LiveDevice> {
    lab::allowed(LiveDevice::open(name, driver), |error| error.io().raw_os_error())
}

#[test]
fn a_virtual_device_is_opened_with_af_xdp_and_all_its_queues() {
    let Some(()) = lab::cable(2) else { return };
    let (Some(mut near), Some(mut far)) = (open(NEAR, Driver::default()), open(FAR, Driver::default())) else { return };
    // Without AF_XDP in the kernel the other way was taken, and said.
    assert!(near.filter().is_some() || near.notes().iter().any(|note| note.contains("AF_PACKET")), "{near:?}");
    let (mut to, mut from) = (near.take_ports(), far.take_ports());
    if near.filter().is_some() {
        assert_eq!((to.len(), from.len()), (2, 2));
    }
    from[0].tx(&lab::frame(5, 100), Time::ZERO);
    from[0].flush().unwrap();
    assert_eq!(lab::receive(&mut to[0], 1, Duration::from_secs(1)).len(), 1);
}

#[test]
fn a_program_of_somebody_else_is_not_gone_round() {
    let Some(()) = lab::cable(1) else { return };
    let Some(_other) = open(NEAR, Driver::AfXdp(XdpSettings::default())) else { return };
    let error = LiveDevice::open(NEAR, Driver::default()).unwrap_err();
    assert!(error.to_string().contains("another XDP program"), "{error}");
}

#[test]
fn af_packet_is_opened_when_asked_for() {
    let Some(()) = lab::cable(1) else { return };
    let Some(mut near) = open(NEAR, Driver::AfPacket(PacketSettings::default())) else { return };
    assert!(near.filter().is_none());
    assert_eq!((near.take_ports().len(), near.take_ports().len()), (1, 0));
    assert_eq!(near.device().mac(), lab::NEAR_MAC);
}

//! TUN and TAP devices, with the kernel's stack at the other end.

use std::net::UdpSocket;
use std::time::Duration;

use port::live::{TapKind, TapPort};
use port::{Link, Port, Time};

use crate::lab;

const PATIENCE: Duration = Duration::from_secs(1);

/// A device that is up and has the address 10.9.1.1/24.
fn open(kind: TapKind) -> Option<TapPort> {
    lab::namespace()?;
    let result = TapPort::open("noref%d", kind);
    if matches!(&result, Err(error) if error.kind() == std::io::ErrorKind::NotFound) {
        return lab::skip("there is no /dev/net/tun".to_owned());
    }
    let port = lab::allowed(result, |error| match error.kind() {
        std::io::ErrorKind::PermissionDenied => Some(libc::EPERM),
        _ => error.raw_os_error(),
    })?;
    assert_eq!(port.name(), "noref0");
    lab::ip(&["address", "add", "10.9.1.1/24", "dev", "noref0"]).unwrap();
    lab::ip(&["link", "set", "noref0", "up"]).unwrap();
    Some(port)
}

/// From 10.9.1.2 to 10.9.1.1, with the right checksums.
fn udp(payload: &[u8; 4]) -> Vec<u8> {
    let mut packet = vec![0x45, 0, 0, 32, 0, 0, 0, 0, 64, 17, 0, 0, 10, 9, 1, 2, 10, 9, 1, 1];
    let sum: u32 = packet.chunks(2).map(|word| u32::from(word[0]) << 8 | u32::from(word[1])).sum();
    packet[10..12].copy_from_slice(&(!((sum >> 16) + (sum & 0xffff)) as u16).to_be_bytes());
    packet.extend([0x12, 0x34, 0x56, 0x78, 0, 12, 0, 0]);
    packet.extend(payload);
    packet
}

#[test]
fn the_kernel_and_a_tun_port_exchange_packets() {
    let Some(mut port) = open(TapKind::Tun) else { return };
    let socket = UdpSocket::bind("10.9.1.1:22136").unwrap();
    socket.set_read_timeout(Some(PATIENCE)).unwrap();
    socket.send_to(b"out", "10.9.1.2:4660").unwrap();
    let batch = lab::receive(&mut port, 1, PATIENCE);
    assert_eq!((batch[0].link, &batch[0].buf[28..]), (Link::Ip, &b"out"[..]));

    port.tx(&[&[0; 12][..], &[0x08, 0x00], &udp(b"back")].concat(), Time::ZERO);
    let mut bytes = [0; 16];
    assert_eq!(socket.recv(&mut bytes).unwrap(), 4);
    assert_eq!(&bytes[..4], b"back");

    port.tx(&[&[0; 12][..], &[0x08, 0x06], &[0; 28]].concat(), Time::ZERO);
    port.tx(&[0; 5], Time::ZERO);
    assert_eq!((port.counters().tx_packets, port.counters().tx_failed, lab::event(&mut port, "tx_not_ip")), (1, 2, 2));
}

#[test]
fn the_kernel_asks_for_neighbours_on_a_tap_port() {
    let Some(mut port) = open(TapKind::Tap) else { return };
    UdpSocket::bind("10.9.1.1:0").unwrap().send_to(b"out", "10.9.1.2:4660").unwrap();
    let batch = lab::receive(&mut port, 1, PATIENCE);
    assert_eq!((batch[0].link, &batch[0].buf[12..14]), (Link::Ethernet, &[0x08, 0x06][..]));
    assert_eq!(batch[0].buf[38..42], [10, 9, 1, 2]);
    port.tx(&lab::frame(1, 60), Time::ZERO);
    assert_eq!((port.counters().tx_packets, port.counters().tx_failed), (1, 0));
}

#[test]
fn a_device_that_is_down_or_gone_takes_nothing() {
    let Some(mut port) = open(TapKind::Tap) else { return };
    lab::ip(&["link", "set", "noref0", "down"]).unwrap();
    port.tx(&lab::frame(1, 60), Time::ZERO);
    assert_eq!(port.counters().tx_failed, 1);
    lab::ip(&["link", "del", "noref0"]).unwrap();
    assert!(port.rx(&mut Default::default(), &mut Vec::new(), 8).is_err());
}

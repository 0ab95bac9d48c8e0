//! AF_PACKET at both ends of a cable.

use std::os::fd::AsRawFd;
use std::time::Duration;

use port::live::{PacketPort, PacketSettings};
use port::{Pool, Port, Time};

use crate::lab::{self, FAR, NEAR, event};

const PATIENCE: Duration = Duration::from_secs(1);

fn open(name: &str, settings: PacketSettings) -> Option<PacketPort> {
    lab::allowed(PacketPort::open(name, settings), std::io::Error::raw_os_error)
}

fn both() -> Option<(PacketPort, PacketPort)> {
    lab::cable(1)?;
    Some((open(NEAR, PacketSettings::default())?, open(FAR, PacketSettings::default())?))
}

#[test]
fn frames_arrive_unchanged_and_in_order() {
    let Some((mut near, mut far)) = both() else { return };
    let len = |n: u32| 60 + n as usize * 7 % 1440;
    let mut received = 0;
    // More than the ring has bytes, so that blocks are used again.
    for burst in 0..250 {
        let numbers = burst * 64..(burst + 1) * 64;
        numbers.clone().for_each(|n| far.tx(&lab::frame(n, len(n)), Time::ZERO));
        far.flush().unwrap();
        for (n, packet) in numbers.zip(lab::receive(&mut near, 64, PATIENCE)) {
            assert_eq!(packet.buf[..], lab::frame(n, len(n)), "frame {n}");
            assert!(packet.time > Time::ZERO && packet.wire_len == len(n));
            received += 1;
        }
    }
    assert_eq!(received, 16_000);
    assert_eq!((near.counters().rx_packets, far.counters().tx_packets, far.counters().tx_failed), (16_000, 16_000, 0));
    assert_eq!(near.counters().rx_bytes, far.counters().tx_bytes);
    assert_eq!(event(&mut near, "rx_ring_full"), 0);
    assert_eq!(far.counters().rx_packets, 0, "what a port sends it does not receive");
}

#[test]
fn a_frame_that_is_too_long_is_counted_and_the_others_leave() {
    let Some((mut near, mut far)) = both() else { return };
    for (n, len) in [(0, 100), (1, 1600), (2, 100), (3, 9000), (4, 100)] {
        far.tx(&lab::frame(n, len), Time::ZERO);
    }
    far.flush().unwrap();
    let batch = lab::receive(&mut near, 3, PATIENCE);
    assert_eq!(batch.iter().map(|packet| lab::number(&packet.buf)).collect::<Vec<_>>(), [0, 2, 4]);
    assert_eq!((far.counters().tx_packets, far.counters().tx_failed), (3, 2));
}

#[test]
fn a_checksum_left_to_hardware_that_is_not_there_is_finished() {
    let Some((mut near, _far)) = both() else { return };
    lab::kernel_socket().send_to(b"payload", "10.1.2.9:22136").unwrap();
    let batch = lab::receive(&mut near, 1, PATIENCE);
    assert!(lab::is_checksum_right(&batch[0].buf), "{:02x?}", &batch[0].buf[..]);
    assert_eq!(event(&mut near, "rx_checksum_finished"), 1);
}

#[test]
fn a_vlan_tag_that_was_taken_off_is_put_back() {
    let Some((mut near, mut far)) = both() else { return };
    let mut frame = lab::frame(7, 100);
    frame.splice(12..12, [0x81, 0x00, 0x60, 0x0a]);
    far.tx(&frame, Time::ZERO);
    far.flush().unwrap();
    let batch = lab::receive(&mut near, 1, PATIENCE);
    assert_eq!((&batch[0].buf[..], batch[0].wire_len), (&frame[..], frame.len()));
    assert_eq!(event(&mut near, "rx_vlan_restored"), 1);
}

#[test]
fn what_a_full_ring_loses_is_counted_and_it_receives_again() {
    let Some(()) = lab::cable(1) else { return };
    let (Some(mut near), Some(mut far)) = (open(NEAR, PacketSettings { blocks: 2, group: None }), open(FAR, PacketSettings::default()))
    else {
        return;
    };
    for n in 0..2_000 {
        far.tx(&lab::frame(n, 1000), Time::ZERO);
    }
    far.flush().unwrap();
    let received = lab::receive(&mut near, usize::MAX, Duration::from_millis(100)).len() as u64;
    let lost = event(&mut near, "rx_ring_full");
    assert!(received > 0 && lost > 0 && received + lost <= 2_000, "{received} received, {lost} lost");
    far.tx(&lab::frame(9, 100), Time::ZERO);
    far.flush().unwrap();
    assert_eq!(lab::receive(&mut near, 1, PATIENCE).iter().map(|packet| lab::number(&packet.buf)).collect::<Vec<_>>(), [9]);
}

#[test]
fn ports_of_a_group_share_the_frames() {
    let Some(()) = lab::cable(1) else { return };
    let grouped = PacketSettings { group: Some(7), ..PacketSettings::default() };
    let (Some(mut one), Some(mut two)) = (open(NEAR, grouped), open(NEAR, grouped)) else { return };
    let Some(mut far) = open(FAR, PacketSettings::default()) else { return };
    for n in 0..64_u8 {
        let mut frame = lab::frame(n.into(), 100);
        frame[35] = n;
        far.tx(&frame, Time::ZERO);
    }
    far.flush().unwrap();
    let patience = Duration::from_millis(200);
    let (one, two) = (lab::receive(&mut one, 64, patience).len(), lab::receive(&mut two, 64, patience).len());
    assert_eq!(one + two, 64);
    assert!(one > 0 && two > 0, "{one} and {two}");
}

#[test]
fn a_port_that_stopped_receiving_gives_what_it_has_and_no_more() {
    let Some((mut near, mut far)) = both() else { return };
    far.tx(&lab::frame(1, 100), Time::ZERO);
    far.flush().unwrap();
    assert!(port::live::wait_readable(near.descriptor().unwrap(), Duration::from_secs(1)).unwrap());
    near.stop_receiving();
    far.tx(&lab::frame(2, 100), Time::ZERO);
    far.flush().unwrap();
    let numbers: Vec<_> = lab::receive(&mut near, 2, Duration::from_millis(50)).iter().map(|packet| lab::number(&packet.buf)).collect();
    assert_eq!(numbers, [1]);
    near.tx(&lab::frame(3, 100), Time::ZERO);
    assert!(near.drain(Duration::from_secs(1)), "it still sends");
}

#[test]
fn a_device_that_goes_away_is_an_error_and_no_silence() {
    let Some((_near, mut far)) = both() else { return };
    lab::ip(&["link", "del", FAR]).unwrap();
    let descriptor = far.descriptor().unwrap();
    assert!(port::live::wait_readable(descriptor, Duration::from_millis(10)).is_err());
    far.tx(&lab::frame(0, 100), Time::ZERO);
    assert!(far.flush().is_err());
    assert_eq!(far.counters().tx_failed, 1);
}

#[test]
fn a_link_that_was_down_carries_frames_again() {
    let Some((mut near, mut far)) = both() else { return };
    for round in 0..3 {
        lab::ip(&["link", "set", FAR, "down"]).unwrap();
        far.tx(&lab::frame(round, 100), Time::ZERO);
        far.flush().unwrap();
        assert_eq!(far.counters().tx_failed, u64::from(round) + 1);
        let waited = port::live::wait_readable(far.descriptor().unwrap(), Duration::from_millis(5));
        assert_eq!(waited.unwrap_err().raw_os_error(), Some(libc::ENETDOWN), "told once");
        assert!(port::live::wait_readable(far.descriptor().unwrap(), Duration::from_millis(5)).is_ok());
        lab::ip(&["link", "set", FAR, "up"]).unwrap();
        far.tx(&lab::frame(100 + round, 100), Time::ZERO);
        far.flush().unwrap();
        let mut batch = Vec::new();
        for _ in 0..100 {
            near.rx(&mut Pool::default(), &mut batch, 8).unwrap();
            if !batch.is_empty() {
                break;
            }
            // The near end has no carrier while the far end is down, which is no error of its own.
            let _ = port::live::wait_readable(near.descriptor().unwrap(), Duration::from_millis(5));
        }
        assert_eq!(batch.iter().map(|packet| lab::number(&packet.buf)).collect::<Vec<_>>(), [100 + round]);
    }
}

#[test]
fn segments_put_together_are_left_out_and_counted() {
    let Some((mut near, _far)) = both() else { return };
    let socket = lab::kernel_socket();
    // Four segments in one piece, to be cut by hardware that a virtual device has not got.
    let segment: libc::c_int = 1000;
    // SAFETY: the kernel reads as many bytes as the number has.
    let set = unsafe { libc::setsockopt(socket.as_raw_fd(), libc::SOL_UDP, libc::UDP_SEGMENT, (&raw const segment).cast(), 4) };
    if set != 0 || socket.send_to(&[7; 4000], "10.1.2.9:22136").is_err() {
        lab::skip::<()>("the kernel does not leave segments of UDP to hardware".to_owned());
        return;
    }
    let batch = lab::receive(&mut near, 4, Duration::from_millis(200));
    assert!(batch.iter().all(|packet| packet.buf.len() <= 1514), "more than the link carries");
    // A kernel that cuts them before they reach the device sends four; one that cannot say what they are counts them as dropped.
    let left_out = event(&mut near, "rx_unsegmented") + event(&mut near, "rx_ring_full");
    assert!(batch.len() == 4 || (batch.is_empty() && left_out == 1), "{} came, {left_out} left out", batch.len());
}

//! AF_XDP at both ends of a cable.

use std::time::{Duration, Instant};

use port::live::xdp::Attach;
use port::live::{Copies, XdpDevice, XdpError, XdpPort, XdpSettings};
use port::{Pool, Port, Time};

use crate::lab::{self, FAR, NEAR, event};

const PATIENCE: Duration = Duration::from_secs(1);
/// Frames on the way at once: fewer than the 256 that a veth device holds, which drops what is more.
const WINDOW: u32 = 192;

fn open(name: &str, settings: XdpSettings) -> Option<XdpDevice> {
    lab::allowed(XdpDevice::open(name, settings), |error| error.io().raw_os_error())
}

fn queue(device: &XdpDevice, queue: u32) -> Option<XdpPort> {
    lab::allowed(device.port(queue), |error: &XdpError| error.io().raw_os_error())
}

/// Sends numbered frames of 60 bytes to `longest` from the far end, sends them back from the near one, and counts what comes home unchanged.
fn echo(settings: XdpSettings, count: u32, longest: usize) {
    let Some(()) = lab::cable(1) else { return };
    let len = |number: u32| 60 + number as usize * 7 % (longest - 59);
    for end in [NEAR, FAR] {
        lab::ip(&["link", "set", end, "mtu", &(longest - 14).to_string()]).unwrap();
    }
    let Some(near) = open(NEAR, settings) else { return };
    let Some(far) = open(FAR, settings) else { return };
    let (Some(mut near), Some(mut far)) = (queue(&near, 0), queue(&far, 0)) else { return };
    let mut pool = Pool::with_buffers(256);
    let mut batch = Vec::new();
    let (mut sent, mut home, mut last) = (0, 0, Instant::now());
    let begin = Instant::now();
    while home < count && last.elapsed() < PATIENCE {
        while sent < count && sent - home < WINDOW {
            far.tx(&lab::frame(sent, len(sent)), Time::ZERO);
            sent += 1;
        }
        far.flush().unwrap();
        near.rx(&mut pool, &mut batch, 256).unwrap();
        for packet in batch.drain(..) {
            let mut buf = packet.buf;
            lab::turn_round(&mut buf);
            near.tx(&buf, packet.time);
            pool.give(buf);
        }
        near.flush().unwrap();
        far.rx(&mut pool, &mut batch, 256).unwrap();
        for packet in batch.drain(..) {
            let mut buf = packet.buf;
            lab::turn_round(&mut buf);
            assert_eq!(buf[..], lab::frame(home, len(home)), "frame {home}");
            home += 1;
            last = Instant::now();
            pool.give(buf);
        }
    }
    println!("{home} frames there and back in {:?}", begin.elapsed());
    let lost = u64::from(count - home);
    let known: u64 =
        [&mut near, &mut far].map(|port| port.counters().tx_failed + event(port, "rx_dropped") + event(port, "rx_ring_full")).iter().sum();
    assert!(lost <= known, "{lost} frames lost, {known} by a ring or for want of memory");
    assert_eq!(known, 0, "no ring is ever full here");
    assert_eq!(event(&mut near, "rx_misplaced"), 0);
}

#[test]
fn a_hundred_thousand_frames_go_there_and_back_unchanged() {
    echo(XdpSettings::default(), 100_000, 1459);
}

#[test]
fn frames_go_there_and_back_with_the_filter_in_the_stack() {
    echo(XdpSettings { attach: Attach::Generic, ..XdpSettings::default() }, 10_000, 1514);
}

#[test]
fn frames_go_there_and_back_when_the_worker_drives_the_device() {
    echo(XdpSettings { busy_poll: true, ..XdpSettings::default() }, 10_000, 1514);
}

#[test]
fn frames_longer_than_a_page_go_there_and_back_in_pieces() {
    echo(XdpSettings::default(), 10_000, 9014);
}

#[test]
fn frames_longer_than_a_page_go_there_and_back_with_the_filter_in_the_stack() {
    echo(XdpSettings { attach: Attach::Generic, ..XdpSettings::default() }, 1_000, 9014);
}

#[test]
fn one_flush_sends_everything() {
    let Some(()) = lab::cable(1) else { return };
    let settings = XdpSettings { slots: 512, ..XdpSettings::default() };
    let (Some(near), Some(far)) = (open(NEAR, settings), open(FAR, settings)) else { return };
    let (Some(mut near), Some(mut far)) = (queue(&near, 0), queue(&far, 0)) else { return };
    (0..200).for_each(|n| far.tx(&lab::frame(n, 100), Time::ZERO));
    far.flush().unwrap();
    let batch = lab::receive(&mut near, 200, PATIENCE);
    assert_eq!(batch.iter().map(|packet| lab::number(&packet.buf)).collect::<Vec<_>>(), (0..200).collect::<Vec<_>>());
    assert_eq!((near.counters().rx_packets, far.counters().tx_packets), (200, 200));
}

#[test]
fn a_port_that_slept_through_a_flood_receives_again() {
    let Some(()) = lab::cable(1) else { return };
    let settings = XdpSettings { slots: 64, ..XdpSettings::default() };
    let (Some(near), Some(far)) = (open(NEAR, settings), open(FAR, settings)) else { return };
    let (Some(mut near), Some(mut far)) = (queue(&near, 0), queue(&far, 0)) else { return };
    // What a process that is stopped looks like from below: nobody takes frames, and there are more than rings and memory hold.
    for burst in 0..200 {
        (0..32).for_each(|n| far.tx(&lab::frame(burst * 32 + n, 100), Time::ZERO));
        far.flush().unwrap();
    }
    std::thread::sleep(Duration::from_millis(50));
    let flood = lab::receive(&mut near, usize::MAX, Duration::from_millis(200)).len() as u64;
    assert!(flood >= 64, "the rings held {flood}");
    let lost = event(&mut near, "rx_dropped") + event(&mut near, "rx_ring_full") + event(&mut near, "rx_fill_ring_empty");
    assert!(lost > 0, "the kernel counts what it could not place");
    for round in 0..10 {
        (0..32).for_each(|n| far.tx(&lab::frame(round * 32 + n, 100), Time::ZERO));
        far.flush().unwrap();
        assert_eq!(lab::receive(&mut near, 32, PATIENCE).len(), 32, "round {round}");
    }
}

#[test]
fn each_queue_is_a_port() {
    let Some(()) = lab::cable(2) else { return };
    let (Some(near), Some(far)) = (open(NEAR, XdpSettings::default()), open(FAR, XdpSettings::default())) else { return };
    assert_eq!(near.device().rx_queues(), 2);
    // What is sent on a queue comes in on the queue of the same number.
    let ports: Option<Vec<_>> = (0..2).map(|n| Some((queue(&near, n)?, queue(&far, n)?))).collect();
    let Some(mut ports) = ports else { return };
    for (n, (_, far)) in ports.iter_mut().enumerate() {
        far.tx(&lab::frame(n as u32, 100), Time::ZERO);
        far.flush().unwrap();
    }
    for (n, (near, _)) in ports.iter_mut().enumerate() {
        let batch = lab::receive(near, 1, PATIENCE);
        assert_eq!(batch.iter().map(|packet| lab::number(&packet.buf)).collect::<Vec<_>>(), [n as u32]);
    }
    assert!(near.port(2).is_err(), "there is no third");
}

#[test]
fn what_is_for_the_host_stays_in_the_kernel() {
    let Some(()) = lab::cable(1) else { return };
    let (Some(near), Some(far)) = (open(NEAR, XdpSettings::default()), open(FAR, XdpSettings::default())) else { return };
    let (Some(mut port), Some(mut far)) = (queue(&near, 0), queue(&far, 0)) else { return };
    near.filter().add_own(0, "10.4.5.6".parse().unwrap()).unwrap();
    let mut to_all = lab::frame(1, 100);
    to_all[..6].fill(0xff);
    let mut elsewhere = lab::frame(3, 100);
    elsewhere[33] = 7;
    for frame in [lab::frame(0, 100), to_all, elsewhere] {
        far.tx(&frame, Time::ZERO);
    }
    far.flush().unwrap();
    let batch = lab::receive(&mut port, 2, Duration::from_millis(100));
    assert_eq!(batch.iter().map(|packet| lab::number(&packet.buf)).collect::<Vec<_>>(), [3]);
}

#[test]
fn a_queue_can_be_taken_again_as_soon_as_it_is_left() {
    let Some(()) = lab::cable(1) else { return };
    let (Some(near), Some(far)) = (open(NEAR, XdpSettings::default()), open(FAR, XdpSettings::default())) else { return };
    let Some(mut far) = queue(&far, 0) else { return };
    for round in 0..5 {
        let Some(mut port) = queue(&near, 0) else { return };
        if round == 0 {
            assert!(near.port(0).is_err(), "it is taken");
        }
        far.tx(&lab::frame(round, 100), Time::ZERO);
        far.flush().unwrap();
        assert_eq!(lab::receive(&mut port, 1, PATIENCE).len(), 1);
        port.tx(&lab::frame(round, 100), Time::ZERO);
    }
    drop(near);
    assert!(open(NEAR, XdpSettings::default()).is_some(), "the filter was taken off");
}

#[test]
fn where_the_driver_cannot_do_without_copies_the_port_says_so() {
    let Some(()) = lab::cable(1) else { return };
    let Some(near) = open(NEAR, XdpSettings::default()) else { return };
    let Some(port) = queue(&near, 0) else { return };
    assert!(!port.is_zero_copy());
    assert!(port.notes()[0].starts_with("near, queue 0: frames are copied by the kernel"), "{:?}", port.notes());
    drop(port);
    drop(near);
    let Some(near) = open(NEAR, XdpSettings { copies: Copies::Zero, ..XdpSettings::default() }) else { return };
    let error = near.port(0).unwrap_err();
    assert!(error.to_string().starts_with("device near, queue 0: a socket without copies: "), "{error}");
}

#[test]
fn a_device_that_goes_away_is_an_error_and_no_silence() {
    let Some(()) = lab::cable(1) else { return };
    let Some(near) = open(NEAR, XdpSettings::default()) else { return };
    let Some(mut port) = queue(&near, 0) else { return };
    lab::ip(&["link", "del", NEAR]).unwrap();
    let descriptor = port.descriptor().unwrap();
    assert!(port::live::wait_readable(descriptor, Duration::from_millis(10)).is_err());
    port.tx(&lab::frame(0, 100), Time::ZERO);
    assert!(port.flush().is_err());
}

#[test]
fn a_checksum_left_to_hardware_that_is_not_there_is_finished() {
    let Some(()) = lab::cable(1) else { return };
    let Some(near) = open(NEAR, XdpSettings::default()) else { return };
    let Some(mut port) = queue(&near, 0) else { return };
    lab::kernel_socket().send_to(b"payload", "10.1.2.9:22136").unwrap();
    let batch = lab::receive(&mut port, 1, PATIENCE);
    assert!(lab::is_checksum_right(&batch[0].buf), "{:02x?}", &batch[0].buf[..]);
    assert_eq!(event(&mut port, "rx_checksum_finished"), 1);
}

#[test]
fn a_device_that_has_a_program_is_refused_and_the_reason_said() {
    let Some(()) = lab::cable(1) else { return };
    let Some(_near) = open(NEAR, XdpSettings::default()) else { return };
    for attach in [Attach::Native, Attach::NativeOrGeneric] {
        let error = XdpDevice::open(NEAR, XdpSettings { attach, ..XdpSettings::default() }).unwrap_err();
        assert!(error.to_string().contains("another XDP program is there already"), "{error}");
    }
}

#[test]
fn a_port_moves_to_another_thread() {
    let Some(()) = lab::cable(1) else { return };
    let (Some(near), Some(far)) = (open(NEAR, XdpSettings::default()), open(FAR, XdpSettings::default())) else { return };
    let (Some(mut near), Some(mut far)) = (queue(&near, 0), queue(&far, 0)) else { return };
    let worker = std::thread::spawn(move || lab::receive(&mut near, 100, PATIENCE).len());
    for n in 0..100 {
        far.tx(&lab::frame(n, 100), Time::ZERO);
        far.flush().unwrap();
    }
    assert_eq!(worker.join().unwrap(), 100);
}

#[test]
fn frames_that_are_none_are_counted_and_cost_nothing() {
    let Some(()) = lab::cable(1) else { return };
    let settings = XdpSettings { slots: 64, ..XdpSettings::default() };
    let (Some(near), Some(far)) = (open(NEAR, settings), open(FAR, settings)) else { return };
    let (Some(mut near), Some(mut far)) = (queue(&near, 0), queue(&far, 0)) else { return };
    for _ in 0..100 {
        far.tx(&[], Time::ZERO);
        far.tx(&[0; 13], Time::ZERO);
        far.tx(&[0; 5000], Time::ZERO);
        far.flush().unwrap();
    }
    assert_eq!((far.counters().tx_packets, far.counters().tx_failed, event(&mut far, "tx_invalid_descriptors")), (0, 300, 0));
    (0..64).for_each(|n| far.tx(&lab::frame(n, 60), Time::ZERO));
    far.flush().unwrap();
    assert_eq!(lab::receive(&mut near, 64, PATIENCE).len(), 64);
    assert!(far.drain(PATIENCE));
}

#[test]
fn a_link_that_was_down_carries_frames_again() {
    let Some(()) = lab::cable(1) else { return };
    let (Some(near), Some(far)) = (open(NEAR, XdpSettings::default()), open(FAR, XdpSettings::default())) else { return };
    let (Some(mut near), Some(mut far)) = (queue(&near, 0), queue(&far, 0)) else { return };
    for round in 0..3 {
        lab::ip(&["link", "set", FAR, "down"]).unwrap();
        far.tx(&lab::frame(round, 100), Time::ZERO);
        far.flush().unwrap();
        lab::ip(&["link", "set", FAR, "up"]).unwrap();
        far.tx(&lab::frame(100 + round, 100), Time::ZERO);
        far.flush().unwrap();
        let numbers: Vec<_> =
            lab::receive(&mut near, 2, Duration::from_millis(200)).iter().map(|packet| lab::number(&packet.buf)).collect();
        assert!(numbers.contains(&(100 + round)), "round {round}: {numbers:?}");
    }
}

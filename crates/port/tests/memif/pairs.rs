//! A client and a server, both of our own.

use std::os::unix::fs::PermissionsExt;
use std::time::{Duration, Instant};

use port::Pool;
use port::live::memif::MemifDevice;

use crate::pair::{Directory, End, frame, look, pair, receive};

#[test]
fn frames_go_both_ways_in_every_queue() {
    let directory = Directory::new("both-ways");
    let (mut server, mut client) = pair(&directory.socket(), ",queues=3", ",queues=3,slots=128");
    for round in 0..40 {
        for queue in 0..3 {
            let there: Vec<_> = (0..100).map(|place| frame(round * 1000 + queue * 100 + place, 60 + place * 14)).collect();
            let back: Vec<_> = (0..100).map(|place| frame(round * 7000 + queue * 100 + place, 1459 - place * 14)).collect();
            client.send(queue, &there);
            server.send(queue, &back);
            assert_eq!(server.receive(queue, 100), there);
            assert_eq!(client.receive(queue, 100), back);
        }
    }
    for end in [&mut server, &mut client] {
        for queue in 0..3 {
            let counters = end.ports[queue].counters();
            assert_eq!((counters.rx_packets, counters.tx_packets, counters.tx_failed), (4000, 4000, 0));
            assert_eq!((end.event(queue, "rx_unreadable"), end.event(queue, "connections")), (0, 1));
        }
    }
}

#[test]
fn jumbo_frames_go_in_several_buffers() {
    let directory = Directory::new("jumbo");
    let (mut server, mut client) = pair(&directory.socket(), "", ",mtu=9000");
    let frames: Vec<_> = [60, 2048, 2049, 9014, 40_000, 65_549].into_iter().enumerate().map(|(number, len)| frame(number, len)).collect();
    client.send(0, &frames);
    assert_eq!(server.receive(0, 6), frames);
    server.send(0, &frames);
    assert_eq!(client.receive(0, 6), frames);
}

#[test]
fn what_a_full_ring_does_not_take_is_counted() {
    let directory = Directory::new("full");
    let (mut server, mut client) = pair(&directory.socket(), "", ",slots=64");
    for end in [&mut client, &mut server] {
        end.send(0, &(0..100).map(|number| frame(number, 60)).collect::<Vec<_>>());
        assert_eq!((end.ports[0].counters().tx_packets, end.ports[0].counters().tx_failed, end.event(0, "tx_ring_full")), (64, 36, 36));
    }
    assert_eq!(server.receive(0, 64).len(), 64);
    assert_eq!(client.receive(0, 64).len(), 64);
}

#[test]
fn a_port_without_peer_receives_nothing_and_counts_what_it_cannot_send() {
    let directory = Directory::new("alone");
    let mut client = End::open(&directory.socket(), "");
    client.hears("no server there");
    client.send(0, &[frame(1, 60)]);
    assert_eq!((client.ports[0].counters().tx_failed, client.event(0, "tx_unconnected")), (1, 1));
    assert_eq!(client.ports[0].rx(&mut Pool::default(), &mut Vec::new(), 64).unwrap(), 0);
    assert_eq!(client.device.peer(), None);
}

#[test]
fn whoever_comes_again_is_connected_again() {
    let directory = Directory::new("again");
    let socket = directory.socket();
    let mut server = End::open(&socket, ",role=server");
    for round in 0..3 {
        let mut client = End::open(&socket, "");
        assert!(client.hears("connected to").contains("noref (m0)"));
        client.send(0, &[frame(round, 100)]);
        assert_eq!(server.receive(0, 1), [frame(round, 100)]);
        drop(client);
        server.hears("closed");
        look(&mut server);
        assert_eq!(server.device.peer(), None);
    }
    assert_eq!(server.event(0, "connections"), 3);
    drop(server);
    assert!(!socket.exists(), "a server takes its socket away");

    let mut client = End::open(&socket, "");
    for round in 0..3 {
        let mut server = End::open(&socket, ",role=server");
        client.hears("connected to");
        server.send(0, &[]);
        look(&mut client);
        client.send(0, &[frame(round, 100)]);
        assert_eq!(server.receive(0, 1), [frame(round, 100)]);
        drop(server);
        client.hears("closed");
    }
    assert_eq!(client.event(0, "connections"), 3);
}

#[test]
fn what_was_sent_before_the_end_still_arrives() {
    let directory = Directory::new("last");
    let (mut server, mut client) = pair(&directory.socket(), "", "");
    let sent: Vec<_> = (0..500).map(|number| frame(number, 60)).collect();
    client.send(0, &sent);
    let sender = std::thread::spawn(move || drop(client));
    assert!(server.receive(0, 500) == sent);
    sender.join().unwrap();
    server.hears("closed");

    // Also of one that does not wait until it was taken.
    let mut client = End::open(&directory.socket(), "");
    server.hears("connected to");
    client.hears("connected to");
    look(&mut server);
    client.send(0, &sent);
    let End { ports, device, .. } = client;
    drop(device);
    drop(ports);
    server.hears("closed");
    assert!(server.receive(0, 500) == sent);
}

#[test]
fn a_worker_that_sleeps_is_woken_by_a_frame_and_by_a_peer_that_comes() {
    let directory = Directory::new("sleep");
    let socket = directory.socket();
    let mut server = End::open(&socket, ",role=server");
    let port = std::mem::take(&mut server.ports).remove(0);
    let sleeper = std::thread::spawn(move || {
        let mut port = port;
        (receive(&mut *port, 40).len(), port.counters())
    });
    std::thread::sleep(Duration::from_millis(50));
    let mut client = End::open(&socket, "");
    client.hears("connected to");
    let begin = Instant::now();
    for number in 0..40 {
        client.send(0, &[frame(number, 60)]);
        std::thread::sleep(Duration::from_millis(3));
    }
    assert_eq!(sleeper.join().unwrap().0, 40);
    assert!(begin.elapsed() < Duration::from_millis(900), "woken, and not by the end of a wait: {:?}", begin.elapsed());
}

#[test]
fn only_who_knows_the_secret_is_let_in() {
    let directory = Directory::new("secret");
    let socket = directory.socket();
    let server = End::open(&socket, ",role=server,secret=sesame");
    for wrong in ["", ",secret=sesam", ",secret=sesame-open"] {
        let client = End::open(&socket, wrong);
        client.hears("another secret");
    }
    server.hears("another secret");
    let client = End::open(&socket, ",secret=sesame");
    client.hears("connected to");
}

#[test]
fn what_does_not_fit_together_is_said_on_both_sides() {
    let directory = Directory::new("misfit");
    let socket = directory.socket();
    let server = End::open(&socket, ",role=server,queues=2,id=5");
    let other = End::open(&socket, "");
    other.hears("id 0 instead of 5");
    drop(other);
    server.hears("id 0 instead of 5");
    let greedy = End::open(&socket, ",queues=3,id=5");
    greedy.hears("has 2 queues, fewer than 3");
    drop(greedy);
    let modest = End::open(&socket, ",queues=1,id=5");
    modest.hears("fewer than 2 rings to the client");
    server.hears("fewer than 2 rings to the client");
}

#[test]
fn a_second_client_is_turned_away() {
    let directory = Directory::new("second");
    let (mut server, mut client) = pair(&directory.socket(), "", "");
    let second = End::open(&directory.socket(), "");
    second.hears("already connected");
    client.send(0, &[frame(1, 60)]);
    assert_eq!(server.receive(0, 1), [frame(1, 60)]);
}

#[test]
fn a_socket_left_behind_is_taken_over_and_one_in_use_is_not() {
    let directory = Directory::new("stale");
    let socket = directory.socket();
    let settings = || format!("{},role=server", socket.display()).parse().unwrap();
    // Bound, never listened at, and closed: as a process leaves it that was killed.
    drop(std::os::unix::net::UnixDatagram::bind(&socket).unwrap());
    assert!(socket.exists());

    let first = MemifDevice::open("m0", settings(), |_| {}).unwrap();
    assert_eq!(std::fs::metadata(&socket).unwrap().permissions().mode() & 0o777, 0o600);
    let error = MemifDevice::open("m1", settings(), |_| {}).unwrap_err();
    assert!(error.to_string().contains("somebody is server there already"), "{error}");
    drop(first);

    std::fs::write(&socket, "precious").unwrap();
    let error = MemifDevice::open("m0", settings(), |_| {}).unwrap_err();
    assert!(error.to_string().contains("no socket"), "{error}");
    assert_eq!(std::fs::read(&socket).unwrap(), b"precious");
}

#[test]
fn an_abstract_name_needs_no_file() {
    let name = format!("@noref-memif-test-{}", std::process::id());
    let (mut server, mut client) = pair(name.as_ref(), "", "");
    client.send(0, &[frame(3, 60)]);
    assert_eq!(server.receive(0, 1), [frame(3, 60)]);
}

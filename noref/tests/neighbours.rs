//! Packets that wait for a neighbour, and what becomes of them.

use std::net::{IpAddr, Ipv6Addr};
use std::time::Duration;

use control::Configuration;
use plane::Worker;
use port::Time;
use route::{DropReason, NeighbourState, RouteRefs};
use testkit::frame::{Ether, Ipv6, Udp};
use testkit::golden::PORTS;
use testkit::network;
use wire::Mac;

const HOST: Ipv6Addr = Ipv6Addr::new(0xfd00, 0, 0, 0, 0, 0, 0, 2);
/// On the link of e1, where nobody answers for it.
const SILENT: Ipv6Addr = Ipv6Addr::new(0xfd00, 1, 0, 0, 0xa1b2, 0xc3d4, 0xe5f6, 0x0708);
const MAC: Mac = Mac([2, 0, 0, 0, 0x1f, 9]);
const NOW: Time = Time::from_micros(1_767_225_600_000_000);

fn router() -> (Configuration, Worker) {
    let configuration = control::network_file(&network::plain(), "network.ip", PORTS).unwrap_or_else(|errors| panic!("{errors}"));
    let worker = Worker::new(configuration.tables.clone(), RouteRefs::Noref);
    (configuration, worker)
}

fn send(worker: &mut Worker, dst: Ipv6Addr) {
    let frame = (Ether::new(network::E0, Mac([2, 0, 0, 0, 0x0f, 0])) / Ipv6::new(HOST, dst) / Udp::new(1111, 2222) / b"data").bytes();
    let mut buf = worker.pool().take(frame.len());
    buf.append(&frame);
    worker.receive(0, buf, NOW);
    worker.run();
}

/// The frames to `MAC` that were to be sent.
fn sent(worker: &mut Worker) -> usize {
    let mut frames = 0;
    worker.drain(|sent| frames += usize::from(sent.buf.starts_with(&MAC.0)));
    frames
}

#[test]
fn packets_that_wait_leave_when_their_neighbour_is_configured() {
    for state in [NeighbourState::Permanent, NeighbourState::Reachable] {
        let (mut configuration, mut worker) = router();
        (0..3).for_each(|_| send(&mut worker, SILENT));
        assert_eq!((worker.waiting(), sent(&mut worker)), (3, 0));

        let e1 = configuration.editor.links().named("e1").map(|link| link.index).unwrap();
        configuration.editor.neighbour_put(e1, IpAddr::V6(SILENT), state, MAC, true).unwrap();
        configuration.editor.commit();
        worker.advance(NOW.after(Duration::from_secs(2)));
        assert_eq!((worker.waiting(), sent(&mut worker)), (0, 3), "{state:?}");
        assert!((0..8).all(|index| worker.counters().link(route::IfIndex(index)).waiting == 0), "{state:?}");
    }
}

#[test]
fn a_scan_of_silent_addresses_does_not_hold_packets_without_end() {
    let (_configuration, mut worker) = router();
    for n in 0..1000 {
        let dst = Ipv6Addr::from(u128::from(SILENT) + n);
        (0..20).for_each(|_| send(&mut worker, dst));
        worker.drain(|_| {});
    }
    assert_eq!(worker.waiting(), 16 * 1024);
    assert_eq!(worker.counters().drops(DropReason::NeighbourPending), 20_000 - 16 * 1024);
}

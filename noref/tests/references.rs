//! Who counts references to a route while packets pass: with `RouteRefs::Noref` only what outlives its burst does.

use std::net::Ipv6Addr;
use std::sync::Arc;
use std::time::Duration;

use plane::{Tables, Worker};
use port::Time;
use route::{Flow, IfIndex, RouteRefs};
use testkit::frame::{Ether, Ipv6, Udp};
use testkit::golden::PORTS;
use testkit::network;
use wire::Mac;

const HOST: Ipv6Addr = Ipv6Addr::new(0xfd00, 0, 0, 0, 0, 0, 0, 2);
/// On the link of e1, where nobody answers for it.
const SILENT: Ipv6Addr = Ipv6Addr::new(0xfd00, 1, 0, 0, 0xa1b2, 0xc3d4, 0xe5f6, 0x0708);
/// Behind a neighbour that is known.
const FAR: Ipv6Addr = Ipv6Addr::new(0xfd09, 0x1a1b, 0x2c2d, 0x3e3f, 0x4041, 0x5253, 0x6465, 0x7677);

/// Strong references to the route of packets to `dst`.
fn references(tables: &Tables, dst: Ipv6Addr) -> usize {
    let flow = Flow { src: HOST, ..Flow::new(dst, IfIndex::LO) };
    let network = &tables.network;
    network.domain().reader().burst(|guard| Arc::strong_count(&network.v6.lookup(guard, &flow, RouteRefs::Noref).dst.to_arc()) - 1)
}

fn send(worker: &mut Worker, dst: Ipv6Addr, now: Time) {
    let frame = (Ether::new(network::E0, Mac([2, 0, 0, 0, 0x0f, 0])) / Ipv6::new(HOST, dst) / Udp::new(1111, 2222) / b"data").bytes();
    let mut buf = worker.pool().take(frame.len());
    buf.append(&frame);
    worker.receive(0, buf, now);
    worker.run();
    worker.drain(|_| {});
}

#[test]
fn a_packet_that_waits_holds_its_route_and_one_that_passes_does_not() {
    for refs in [RouteRefs::Noref, RouteRefs::Counted] {
        let configuration = control::network_file(&network::plain(), "network.ip", PORTS).unwrap_or_else(|errors| panic!("{errors}"));
        let tables = configuration.tables.clone();
        let mut worker = Worker::new(configuration.tables, refs);
        let now = Time::from_micros(1_767_225_600_000_000);
        let (passing, waiting) = (references(&tables, FAR), references(&tables, SILENT));

        (0..10).for_each(|_| send(&mut worker, FAR, now));
        assert_eq!(references(&tables, FAR), passing, "{refs:?}");
        (0..10).for_each(|_| send(&mut worker, SILENT, now));
        assert_eq!((worker.waiting(), references(&tables, SILENT)), (10, waiting + 10), "{refs:?}");

        // The neighbour is given up, and so are the packets with their routes.
        worker.advance(now.after(Duration::from_secs(60)));
        assert_eq!((worker.waiting(), references(&tables, SILENT)), (0, waiting), "{refs:?}");
    }
}

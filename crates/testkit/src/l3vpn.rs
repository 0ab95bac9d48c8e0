//! The traffic of `examples/l3vpn`: what arrives at the three ports of its provider edge router.

use crate::capture::Record;
use crate::frame::{Ether, Frame, Icmp4, Ipv4, Ipv6, Layer, Srh, Udp};
use port::Time;
use std::net::{Ipv4Addr, Ipv6Addr};
use wire::Mac;

/// The ports, in the order of [`captures`].
pub const PORTS: [&str; 3] = ["core", "red0", "blue0"];

const SITE4: Ipv4Addr = Ipv4Addr::new(192, 168, 7, 21);
const FAR4: Ipv4Addr = Ipv4Addr::new(192, 168, 8, 99);
const SITE6: Ipv6Addr = Ipv6Addr::new(0xfd07, 0, 0, 0, 0x1a2b, 0x3c4d, 0x5e6f, 0x7021);
const FAR6: Ipv6Addr = Ipv6Addr::new(0xfd08, 0, 0, 0, 0x8192, 0xa3b4, 0xc5d6, 0xe799);
const FAR_EDGE: Ipv6Addr = Ipv6Addr::new(0xfc00, 2, 0, 0, 0, 0, 0, 1);
const END: Ipv6Addr = Ipv6Addr::new(0xfc00, 1, 0, 0, 0, 0, 0, 0xe);

/// A tenant's number, as it stands in tables, SIDs and Ethernet addresses.
#[derive(Clone, Copy)]
enum Tenant {
    Red = 0x10,
    Blue = 0x20,
}

impl Tenant {
    /// The SID of this tenant at the router of the example.
    fn sid(self) -> Ipv6Addr {
        Ipv6Addr::new(0xfc00, 1, 0, 0, 0, 0, 0xd46, self as u16)
    }

    /// From the tenant's site to its port.
    fn ether(self) -> Ether {
        Ether::new(Mac([2, 0, 0, 0, 1, self as u8]), Mac([2, 0, 0, 0, 7, self as u8]))
    }
}

/// What arrives at each port of [`PORTS`]. The tenants send the same packets: only the port tells them apart.
pub fn captures() -> [Vec<Record>; 3] {
    let mut core = Capture::starting_at(0);
    for flow in 0..6 {
        for tenant in [Tenant::Red, Tenant::Blue] {
            core.add(from_core(tenant.sid(), Ipv4::new(FAR4, SITE4).ttl(61) / Udp::new(5000 + flow, 53) / b"answer"));
            core.add(from_core(tenant.sid(), Ipv6::new(FAR6, SITE6).hop_limit(61) / Udp::new(5000 + flow, 53) / b"answer"));
        }
    }
    // With an SRH whose segments are used up, as a sender in full mode leaves it.
    let used = Srh::through(&[END, Tenant::Red.sid()]).segments_left(0);
    core.add(stacked(to_router(Tenant::Red.sid()) / used, Ipv4::new(FAR4, SITE4) / Udp::new(6000, 53) / b"full mode"));
    // Passing through End to the far edge.
    let through = Srh::through(&[END, Ipv6Addr::new(0xfc00, 2, 0, 0, 0, 0, 0, 0xe)]);
    core.add(stacked(to_router(END) / through, Ipv4::new(FAR4, SITE4) / Udp::new(6001, 53) / b"in transit"));
    // What goes wrong: the tenant's packet is at its last hop; nobody has this SID; segments are left where none may be; the last entry lies.
    core.add(from_core(Tenant::Red.sid(), Ipv4::new(FAR4, SITE4).ttl(1) / Udp::new(7000, 53) / b"expired"));
    core.add(from_core(Ipv6Addr::new(0xfc00, 1, 0, 0, 0, 0, 0xd46, 0x30), Ipv4::new(FAR4, SITE4) / Udp::new(7001, 53) / b"unknown"));
    let left = Srh::through(&[Tenant::Blue.sid(), END]);
    core.add(stacked(to_router(Tenant::Blue.sid()) / left, Ipv4::new(FAR4, SITE4) / Udp::new(7002, 53) / b"left"));
    let lying = Srh::through(&[END, FAR_EDGE]).last_entry(9);
    core.add(stacked(to_router(END) / lying, Ipv4::new(FAR4, SITE4) / Udp::new(7003, 53) / b"lie"));

    let site = |tenant: Tenant, start| {
        let mut capture = Capture::starting_at(start);
        for flow in 0..6 {
            capture.add(tenant.ether() / Ipv4::new(SITE4, FAR4) / Udp::new(5000 + flow, 53) / b"question");
            capture.add(tenant.ether() / Ipv6::new(SITE6, FAR6) / Udp::new(5000 + flow, 53) / b"question");
        }
        capture.add(tenant.ether() / Ipv4::new(SITE4, Ipv4Addr::new(10, 1, 1, 1)) / Icmp4::echo(tenant as u16, 1) / b"are you there");
        capture.add(tenant.ether() / Ipv4::new(SITE4, Ipv4Addr::new(172, 31, 5, 6)) / Udp::new(8000, 53) / b"nowhere");
        capture.records
    };
    [core.records, site(Tenant::Red, 250), site(Tenant::Blue, 500)]
}

/// From the far edge to a SID of this router.
fn to_router(sid: Ipv6Addr) -> Frame {
    Ether::new(Mac([2, 0, 0, 0, 1, 0]), Mac([2, 0, 0, 0, 2, 0])) / Ipv6::new(FAR_EDGE, sid).hop_limit(63)
}

/// A packet as the far edge encapsulates it in reduced mode: one segment, no SRH.
fn from_core(sid: Ipv6Addr, inner: Frame) -> Frame {
    stacked(to_router(sid), inner)
}

/// All layers of `inner` inside `outer`.
fn stacked(outer: Frame, inner: Frame) -> Frame {
    inner.into_layers().into_iter().fold(outer, |frame, layer: Layer| frame / layer)
}

/// Frames a millisecond apart.
struct Capture {
    next: Time,
    records: Vec<Record>,
}

impl Capture {
    fn starting_at(micros: u64) -> Capture {
        // 2026-01-01 00:00 UTC
        Capture { next: Time::from_micros(1_767_225_600_000_000 + micros), records: Vec::new() }
    }

    fn add(&mut self, frame: Frame) {
        self.records.push(Record { time: self.next, bytes: frame.bytes() });
        self.next = self.next.after(std::time::Duration::from_millis(1));
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{capture, root};

    #[test]
    fn the_example_in_the_tree_is_what_the_program_makes() {
        for (port, records) in PORTS.iter().zip(captures()) {
            let file = root().join(format!("examples/l3vpn/in-{port}.pcap"));
            assert!(capture::read(&file) == records, "{}: run `cargo run -p noref-testkit --example make_l3vpn`", file.display());
        }
    }
}

//! The packet path allocates nothing: once as many buffers exist as a burst needs, thousands of packets pass without one call to the allocator.

use std::net::{Ipv4Addr, Ipv6Addr};
use std::time::Duration;

use plane::{BURST, Worker};
use port::Time;
use route::RouteRefs;
use testkit::frame::{Ether, Frame, Icmp4, Ipv4, Ipv6, Srh, Udp, Vlan};
use testkit::golden::PORTS;
use testkit::network;
use wire::Mac;

/// Bursts before the count begins: every buffer and list gets its size.
const WARM_UP: usize = 3;
/// Bursts that are counted.
const COUNTED: usize = 12;

const HOST6: Ipv6Addr = Ipv6Addr::new(0xfd00, 0, 0, 0, 0, 0, 0, 2);
const HOST4: Ipv4Addr = Ipv4Addr::new(10, 0, 0, 2);
const FAR6: Ipv6Addr = Ipv6Addr::new(0xfd09, 0x1a1b, 0x2c2d, 0x3e3f, 0x4041, 0x5253, 0x6465, 0x7677);
const FAR4: Ipv4Addr = Ipv4Addr::new(203, 0, 113, 77);
const SID: Ipv6Addr = Ipv6Addr::new(0xfc00, 1, 0, 0, 0, 0, 0, 0xe);
/// A SID of another router, behind e1.
const NEXT: Ipv6Addr = Ipv6Addr::new(0xfc00, 2, 0, 0x11, 0x22, 0x33, 0x44, 0x55);

fn ether() -> Ether {
    Ether::new(network::E0, Mac([2, 0, 0, 0, 0x0f, 0]))
}

fn v6() -> Frame {
    ether() / Ipv6::new(HOST6, FAR6) / Udp::new(1111, 2222) / b"data"
}

fn v4() -> Frame {
    ether() / Ipv4::new(HOST4, FAR4) / Udp::new(1111, 2222) / b"data"
}

/// A packet for the SID that has `left` segments left, with what `inner` has behind its Ethernet header inside.
fn to_sid(left: u8, inner: Frame) -> Frame {
    let srh = Srh::through(&[SID, NEXT]).segments_left(left);
    inner.into_layers().into_iter().skip(1).fold(ether() / Ipv6::new(HOST6, SID) / srh, |frame, layer| frame / layer)
}

/// The plain router with these lines behind its own.
fn worker(lines: &str, refs: RouteRefs) -> Worker {
    let configuration = control::network_file(&(network::plain() + lines), "network.ip", PORTS).unwrap_or_else(|errors| panic!("{errors}"));
    Worker::new(configuration.tables, refs)
}

/// Sends bursts of `frame` to port e0, each of which must be sent on or answered, without an allocation.
#[track_caller]
fn expect_none(lines: &str, frame: Frame) {
    let frame = frame.bytes();
    for refs in [RouteRefs::Noref, RouteRefs::Counted] {
        let mut worker = worker(lines, refs);
        let mut now = Time::from_micros(1_767_225_600_000_000);
        let mut sent = 0;
        let mut bursts = |count| {
            for _ in 0..count {
                now = now.after(Duration::from_micros(100));
                for _ in 0..BURST {
                    let mut buf = worker.pool().take(frame.len());
                    buf.append(&frame);
                    worker.receive(0, buf, now);
                }
                worker.run();
                worker.drain(|_| sent += 1);
            }
        };
        bursts(WARM_UP);
        let counted = allocation_counter::measure(|| bursts(COUNTED));
        assert_eq!(sent, (WARM_UP + COUNTED) * BURST, "{lines}");
        assert_eq!(counted.count_total, 0, "{lines}: allocations for {} packets with {refs:?}", COUNTED * BURST);
    }
}

#[test]
fn the_count_sees_an_allocation() {
    assert_eq!(allocation_counter::measure(|| drop(Box::new(7))).count_total, 1);
}

#[test]
fn forwarding_allocates_nothing() {
    expect_none("", v6());
    expect_none("", v4());
    let record_route = Ipv4::new(HOST4, FAR4).options(&[7, 7, 4, 0, 0, 0, 0]);
    expect_none("", ether() / record_route / Udp::new(1111, 2222));
    // By rule, where each packet is looked up alone.
    expect_none("ip rule add iif e0 lookup main pref 100\nip -6 rule add iif e0 lookup main pref 100\n", v6());
    expect_none("ip rule add iif e0 lookup main pref 100\nip -6 rule add iif e0 lookup main pref 100\n", v4());
}

#[test]
fn forwarding_between_vlans_allocates_nothing() {
    let lines = format!(
        "ip link add link e0 name e0.10 up type vlan id 10
         ip link add link e2 name e2s up type vlan protocol 802.1ad id 7
         ip link add link e2s name e2s.30 up type vlan id 30 egress-qos-map 0:5
         ip addr add 10.30.30.1/24 dev e2s.30
         ip -6 addr add fd30:30::1/64 dev e2s.30 nodad
         ip neigh replace 10.30.30.2 lladdr 02:00:00:00:0f:02 dev e2s.30 nud permanent
         ip -6 neigh replace fd30:30::2 lladdr 02:00:00:00:0f:02 dev e2s.30 nud permanent
         ip route add {FAR4} via 10.30.30.2
         ip -6 route add {FAR6} via fd30:30::2\n"
    );
    let tagged = |frame: Frame| frame.into_layers().into_iter().skip(1).fold(ether() / Vlan::new(10), |frame, layer| frame / layer);
    for frame in [v4, v6] {
        expect_none(&lines, frame());
        expect_none(&lines, tagged(frame()));
    }
}

#[test]
fn endpoint_behaviours_allocate_nothing() {
    let sid = |action: &str| format!("ip -6 route add {SID} encap seg6local action {action}\n");
    for action in [
        "End dev e0",
        "End count dev e0",
        "End flavors psp dev e0",
        "End.X nh6 fd00:1::2 dev e1",
        "End.T table main dev e0",
        "End.B6 srh segs fc00:2::b,fc00:2::c dev e0",
        "End.B6.Encaps srh segs fc00:2::b,fc00:2::c dev e0",
    ] {
        expect_none(&sid(action), to_sid(1, v6()));
    }
    for action in ["End.DX4 nh4 10.0.2.2 dev e2", "End.DX4 nh4 0.0.0.0 dev e2"] {
        expect_none(&sid(action), to_sid(0, v4()));
    }
    for action in ["End.DX6 nh6 fd00:2::2 dev e2", "End.DT6 table main dev e0"] {
        expect_none(&sid(action), to_sid(0, v6()));
    }
    let vrf = "sysctl -w net.vrf.strict_mode=1\nip link add vrf10 type vrf table 10\nip link set vrf10 up\n\
               ip route add table 10 default via 10.0.2.2 dev e2\nip -6 route add table 10 default via fd00:2::2 dev e2\n";
    expect_none(&(vrf.to_owned() + &sid("End.DT4 vrftable 10 dev vrf10")), to_sid(0, v4()));
    expect_none(&(vrf.to_owned() + &sid("End.DT46 vrftable 10 dev vrf10")), to_sid(0, v6()));
}

#[test]
fn headends_allocate_nothing() {
    for mode in ["encap", "encap.red", "l2encap"] {
        let route = format!("encap seg6 mode {mode} segs {NEXT},fc00:3::2 dev e1\n");
        expect_none(&format!("ip -6 route add {FAR6} {route}"), v6());
        expect_none(&format!("ip route add {FAR4} {route}"), v4());
    }
    expect_none(&format!("ip -6 route add {FAR6} encap seg6 mode inline segs {NEXT} dev e1\n"), v6());
    let signed = format!("ip sr hmac set 7 sha256 secret\nip -6 route add {FAR6} encap seg6 mode encap segs {NEXT} hmac 7 dev e1\n");
    expect_none(&signed, v6());
}

#[test]
fn echo_replies_allocate_nothing() {
    expect_none("", ether() / Ipv4::new(HOST4, Ipv4Addr::new(10, 0, 0, 1)) / Icmp4::echo(7, 9) / b"are you there");
}

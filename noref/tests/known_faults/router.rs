//! A router in memory, and the addresses that the tests speak of.

use std::net::{Ipv4Addr, Ipv6Addr};

use control::Configuration;
use plane::Worker;
use port::Time;
use route::{DropReason, RouteRefs};
use testkit::frame::{Ether, Frame};
use testkit::golden::PORTS;
use testkit::network;
use wire::Mac;

/// A host behind e0.
pub const HOST6: Ipv6Addr = Ipv6Addr::new(0xfd00, 0, 0, 0, 0, 0, 0, 2);
/// The same for IPv4.
pub const HOST4: Ipv4Addr = Ipv4Addr::new(10, 0, 0, 2);
/// Behind the neighbour on e2, by the default route.
pub const FAR6: Ipv6Addr = Ipv6Addr::new(0xfd09, 0x1a1b, 0x2c2d, 0x3e3f, 0x4041, 0x5253, 0x6465, 0x7677);
/// The same for IPv4.
pub const FAR4: Ipv4Addr = Ipv4Addr::new(203, 0, 113, 77);
/// The source of outer headers.
pub const TUNNEL_SOURCE: Ipv6Addr = Ipv6Addr::new(0xfd00, 0xffff, 0, 0, 0, 0, 0, 1);
/// A SID of the router, for tests to define.
pub const SID: Ipv6Addr = Ipv6Addr::new(0xfc00, 1, 0, 0, 0, 0, 0, 0xe);

/// SID number `n` (from 1) of another router, behind e1.
pub fn segment(n: u16) -> Ipv6Addr {
    Ipv6Addr::new(0xfc00, 2, 0, 0x1100 + n, 0x2200 + n, 0x3300 + n, 0x4400 + n, 0x5500 + n)
}

/// SID number `n` of another router, behind e2.
pub fn segment_by_e2(n: u16) -> Ipv6Addr {
    let mut words = segment(n).segments();
    words[1] = 3;
    words.into()
}

/// Segments as `segs` takes them.
pub fn list(path: &[Ipv6Addr]) -> String {
    path.iter().map(Ipv6Addr::to_string).collect::<Vec<_>>().join(",")
}

/// The Ethernet header of a frame from the neighbour on port number `port` to the router.
pub fn to_router(port: u8) -> Ether {
    Ether::new(Mac([2, 0, 0, 0, 0x0e, port]), Mac([2, 0, 0, 0, 0x0f, port]))
}

/// The Ethernet header of a frame from the router to the neighbour on port number `port`.
pub fn from_router(port: u8) -> Ether {
    Ether::new(Mac([2, 0, 0, 0, 0x0f, port]), Mac([2, 0, 0, 0, 0x0e, port]))
}

/// `outer`, with all layers of `inner` inside.
pub fn around(outer: Frame, inner: Frame) -> Frame {
    inner.into_layers().into_iter().fold(outer, |frame, layer| frame / layer)
}

/// An IP packet in an Ethernet frame.
pub fn framed(header: Ether, packet: Frame) -> Frame {
    let mut layers = packet.into_layers().into_iter();
    let first = layers.next().expect("a packet has a header");
    layers.fold(header / first, |frame, layer| frame / layer)
}

/// A router and its clock.
pub struct Router {
    configuration: Configuration,
    worker: Worker,
    now: Time,
}

impl Router {
    /// The plain router with these lines behind its own.
    pub fn with(lines: &str) -> Router {
        let net = network::plain() + lines;
        let configuration = control::network_file(&net, "network.ip", PORTS).unwrap_or_else(|errors| panic!("{errors}"));
        let worker = Worker::new(configuration.tables.clone(), RouteRefs::Noref);
        Router { configuration, worker, now: Time::from_micros(1_767_225_600_000_000) }
    }

    /// Applies lines while it runs.
    pub fn change(&mut self, lines: &str) {
        self.configuration.apply(lines, "change").unwrap_or_else(|errors| panic!("{errors}"));
    }

    /// The plain router with `ip -6 route add SID encap seg6local action` and these words.
    pub fn with_sid(action: &str) -> Router {
        Router::with(&format!("ip -6 route add {SID} encap seg6local action {action}\n"))
    }

    /// Sends a frame to port number `port`. What leaves: port number and frame.
    pub fn send(&mut self, port: usize, frame: Frame) -> Vec<(usize, Vec<u8>)> {
        self.send_bytes(port, &frame.bytes())
    }

    /// As [`Router::send`] for a frame that no builder makes.
    pub fn send_bytes(&mut self, port: usize, frame: &[u8]) -> Vec<(usize, Vec<u8>)> {
        self.now = self.now.after(std::time::Duration::from_secs(2));
        let mut buf = self.worker.pool().take(frame.len());
        buf.append(frame);
        self.worker.receive(port, buf, self.now);
        self.worker.run();
        let mut sent = Vec::new();
        self.worker.drain(|frame| sent.push((frame.port, frame.buf.to_vec())));
        sent
    }

    /// Sends a frame to port e0.
    ///
    /// # Panics
    /// Unless it leaves as exactly `expected` by port number `port`.
    #[track_caller]
    pub fn expect(&mut self, frame: Frame, port: usize, expected: Frame) {
        let sent = self.send(0, frame);
        let expected = expected.bytes();
        assert!(sent == [(port, expected.clone())], "left: {}\nwanted: e{port} {}", show(&sent), hex(&expected));
    }

    /// Sends a frame to port e0.
    ///
    /// # Panics
    /// Unless it is dropped for `reason` and nobody is told.
    #[track_caller]
    pub fn expect_silent_drop(&mut self, frame: Frame, reason: DropReason) {
        let before = self.drops(reason);
        let sent = self.send(0, frame);
        assert!(sent.is_empty(), "left: {}", show(&sent));
        assert_eq!(self.drops(reason), before + 1, "dropped for another reason than {reason}");
    }

    /// Sends a frame to port e0.
    ///
    /// # Panics
    /// Unless it is dropped for `reason` and the host behind e0 is told by an ICMPv6 error of this type and code, or ICMP for IPv4.
    #[track_caller]
    pub fn expect_error(&mut self, frame: Frame, reason: DropReason, error: (u8, u8)) {
        let before = self.drops(reason);
        let sent = self.send(0, frame);
        assert_eq!(self.drops(reason), before + 1, "dropped for another reason than {reason}; left: {}", show(&sent));
        let [(0, told)] = &sent[..] else { panic!("left: {}", show(&sent)) };
        let told = icmp6(told).or_else(|| icmp4(told)).map(|(kind, code, _)| (kind, code));
        assert_eq!(told, Some(error), "left: {}", show(&sent));
    }

    /// Packets dropped for a reason so far.
    pub fn drops(&self, reason: DropReason) -> u64 {
        self.worker.counters().drops(reason)
    }
}

/// The ICMPv6 message in a frame: type, code, and the four bytes behind the checksum.
pub fn icmp6(frame: &[u8]) -> Option<(u8, u8, u32)> {
    let message = frame.get(54..).filter(|_| frame.get(20) == Some(&wire::proto::ICMP6))?;
    Some((*message.first()?, *message.get(1)?, u32::from_be_bytes(message.get(4..8)?.try_into().ok()?)))
}

/// The ICMP message in a frame, as [`icmp6`]; the IPv4 header has no options.
pub fn icmp4(frame: &[u8]) -> Option<(u8, u8, u32)> {
    let message = frame.get(34..).filter(|_| frame.get(23) == Some(&wire::proto::ICMP4))?;
    Some((*message.first()?, *message.get(1)?, u32::from_be_bytes(message.get(4..8)?.try_into().ok()?)))
}

fn show(sent: &[(usize, Vec<u8>)]) -> String {
    sent.iter().map(|(port, frame)| format!("e{port} {}", hex(frame))).collect::<Vec<_>>().join("\n      ")
}

fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

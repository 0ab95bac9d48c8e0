//! A router with the full Internet table and a SID of each kind, and frames for it.
#![allow(dead_code, reason = "benches and tests use different parts")]

use std::fmt::Write as _;
use std::io::Read as _;
use std::net::{Ipv4Addr, Ipv6Addr};
use std::path::Path;
use std::sync::Arc;

use control::Configuration;
use plane::Worker;
use route::RouteRefs;

/// Next hops that the prefixes are spread over.
const GATEWAYS: usize = 64;
/// A destination whose route leads into an SRv6 policy.
pub const ENCAPSULATED4: Ipv4Addr = Ipv4Addr::new(10, 99, 0, 9);
/// As [`ENCAPSULATED4`].
pub const ENCAPSULATED6: Ipv6Addr = Ipv6Addr::new(0xfd99, 0, 0, 0, 0, 0, 0, 9);

/// The network file's lines before the Internet: ports, neighbours, SIDs.
const PORTS: &str = "
link set e0 address 02:00:00:00:0e:00 mtu 9000 up
addr add 10.0.0.1/16 dev e0
-6 addr add fd00::1/64 dev e0 nodad
neigh replace 10.0.0.2 lladdr 02:00:00:00:0f:00 dev e0 nud permanent
-6 neigh replace fd00::2 lladdr 02:00:00:00:0f:00 dev e0 nud permanent
link set e1 address 02:00:00:00:0e:01 mtu 1500 up
addr add 10.1.0.1/16 dev e1
-6 addr add fd00:1::1/64 dev e1 nodad
sysctl net.ipv4.ip_forward=1
sysctl net.ipv6.conf.all.forwarding=1
link set lo up
-6 addr add fd00:ffff::1/128 dev lo
sr tunsrc set fd00:ffff::1
";
const SIDS: &str = "
-6 route add fc00:1::1 encap seg6local action End dev e0
-6 route add fc00:1::2 encap seg6local action End.DX4 nh4 10.1.1.2 dev e0
-6 route add fc00:1::3 encap seg6local action End.DT6 table main dev e0
-6 route add fc00:2::/32 via fd00:1::102 dev e1
route add 10.99.0.0/24 encap seg6 mode encap segs fc00:2::1 dev e1
-6 route add fd99::/64 encap seg6 mode encap segs fc00:2::1 dev e1
";

/// The prefixes of the full table.
pub fn prefixes() -> Vec<String> {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../benches/data/internet-prefixes.txt.gz");
    let file = std::fs::File::open(&path).unwrap_or_else(|error| panic!("{}: {error}", path.display()));
    let mut text = String::new();
    flate2::read::GzDecoder::new(file).read_to_string(&mut text).expect("the prefix list is text");
    text.lines().map(|line| line.trim().to_owned()).filter(|line| !line.is_empty()).collect()
}

/// A network file with the full table.
pub fn network_file(prefixes: &[String]) -> String {
    let mut text = String::from(PORTS);
    for n in 0..GATEWAYS {
        let _ = writeln!(text, "neigh replace 10.1.1.{} lladdr 02:00:00:00:1f:{n:02x} dev e1 nud permanent", n + 2);
        let _ = writeln!(text, "-6 neigh replace fd00:1::{:x} lladdr 02:00:00:00:1f:{n:02x} dev e1 nud permanent", n + 0x102);
    }
    text.push_str(SIDS);
    for (n, prefix) in prefixes.iter().enumerate() {
        let n = n % GATEWAYS;
        let _ = match prefix.contains(':') {
            true => writeln!(text, "-6 route add {prefix} via fd00:1::{:x} dev e1", n + 0x102),
            false => writeln!(text, "route add {prefix} via 10.1.1.{} dev e1", n + 2),
        };
    }
    text
}

/// The router.
pub struct Router {
    pub configuration: Configuration,
    prefixes: Vec<String>,
}

impl Router {
    /// Reads the network file with the full table.
    pub fn load() -> Router {
        let prefixes = prefixes();
        let configuration = control::network_file(&network_file(&prefixes), "full-table.ip", &["e0", "e1"]);
        let configuration = configuration.unwrap_or_else(|errors| panic!("{errors}"));
        Router { configuration, prefixes }
    }

    /// A worker on its tables.
    pub fn worker(&self, refs: RouteRefs) -> Worker {
        Worker::new(Arc::clone(&self.configuration.tables), refs)
    }

    /// Random addresses inside the IPv6 prefixes.
    pub fn destinations6(&self, n: usize) -> Vec<Ipv6Addr> {
        let prefixes: Vec<(Ipv6Addr, u32)> = self.prefixes.iter().filter_map(|text| parse(text)).collect();
        random(n, |word| {
            let (addr, len) = prefixes[word() as usize % prefixes.len()];
            let host = u128::from(word()) << 64 | u128::from(word());
            (u128::from(addr) | host & u128::MAX.checked_shr(len).unwrap_or(0)).into()
        })
    }

    /// Random addresses inside the IPv4 prefixes that a packet may have as its destination.
    pub fn destinations4(&self, n: usize) -> Vec<Ipv4Addr> {
        let prefixes: Vec<(Ipv4Addr, u32)> = self.prefixes.iter().filter_map(|text| parse(text)).collect();
        random(n, |word| {
            loop {
                let (addr, len) = prefixes[word() as usize % prefixes.len()];
                let addr: Ipv4Addr = (u32::from(addr) | word() as u32 & u32::MAX.checked_shr(len).unwrap_or(0)).into();
                if !addr.is_loopback() && !addr.is_multicast() && addr.octets()[0] != 10 && addr.octets()[0] != 0 {
                    break addr;
                }
            }
        })
    }
}

fn parse<A: std::str::FromStr>(prefix: &str) -> Option<(A, u32)> {
    let (addr, len) = prefix.split_once('/')?;
    Some((addr.parse().ok()?, len.parse().ok()?))
}

/// `n` values made from a fixed sequence of random words (splitmix64).
fn random<T>(n: usize, mut make: impl FnMut(&mut dyn FnMut() -> u64) -> T) -> Vec<T> {
    let mut state = 0x6e6f_7265_6600_u64;
    let mut word = move || {
        state = state.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mixed = (state ^ state >> 30).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        let mixed = (mixed ^ mixed >> 27).wrapping_mul(0x94d0_49bb_1331_11eb);
        mixed ^ mixed >> 31
    };
    (0..n).map(|_| make(&mut word)).collect()
}

/// Frames of the sizes that the patch series measured, without payload.
pub mod frames {
    use std::net::{Ipv4Addr, Ipv6Addr};

    use wire::{EtherType, Mac, eth, ipv4, ipv6, proto, udp};
    use zerocopy::IntoBytes;

    const SOURCE4: Ipv4Addr = Ipv4Addr::new(10, 0, 0, 2);
    const SOURCE6: Ipv6Addr = Ipv6Addr::new(0xfd00, 0, 0, 0, 0, 0, 0, 2);

    fn frame(ethertype: EtherType, parts: &[&[u8]]) -> Vec<u8> {
        let header = eth::Header::new(Mac([2, 0, 0, 0, 0xe, 0]), Mac([2, 0, 0, 0, 0xf, 0]), ethertype);
        let mut bytes = header.as_bytes().to_vec();
        parts.iter().for_each(|part| bytes.extend_from_slice(part));
        bytes
    }

    fn header4(dst: Ipv4Addr) -> Vec<u8> {
        let mut header = ipv4::Header::new(SOURCE4, dst, proto::UDP, 64, (ipv4::LEN + udp::LEN) as u16).as_bytes().to_vec();
        ipv4::fill_checksum(&mut header);
        header
    }

    /// IPv4 and UDP: 42 bytes.
    pub fn ip4(dst: Ipv4Addr) -> Vec<u8> {
        frame(EtherType::IPV4, &[&header4(dst), &[4, 87, 8, 174, 0, 8, 0, 0]])
    }

    /// IPv6 and UDP: 62 bytes.
    pub fn ip6(dst: Ipv6Addr) -> Vec<u8> {
        let header = ipv6::Header::new(SOURCE6, dst, proto::UDP, 64, udp::LEN as u16);
        frame(EtherType::IPV6, &[header.as_bytes(), &[4, 87, 8, 174, 0, 8, 0, 0]])
    }

    /// IPv6 with an SRH of two segments, one left: 94 bytes.
    pub fn end(sid: Ipv6Addr, next: Ipv6Addr) -> Vec<u8> {
        let header = ipv6::Header::new(SOURCE6, sid, proto::ROUTING, 64, 40);
        let srh = [proto::NONE, 4, 4, 1, 1, 0, 0, 0];
        frame(EtherType::IPV6, &[header.as_bytes(), &srh, &next.octets(), &sid.octets()])
    }

    /// IPv6, IPv4 and UDP: 82 bytes.
    pub fn decap4(sid: Ipv6Addr, dst: Ipv4Addr) -> Vec<u8> {
        let header = ipv6::Header::new(SOURCE6, sid, proto::IPIP, 64, 28);
        frame(EtherType::IPV6, &[header.as_bytes(), &header4(dst), &[4, 87, 8, 174, 0, 8, 0, 0]])
    }

    /// IPv6 in IPv6 and UDP: 102 bytes.
    pub fn decap6(sid: Ipv6Addr, dst: Ipv6Addr) -> Vec<u8> {
        let header = ipv6::Header::new(SOURCE6, sid, proto::IPV6, 64, 48);
        frame(EtherType::IPV6, &[header.as_bytes(), &ip6(dst)[eth::LEN..]])
    }
}

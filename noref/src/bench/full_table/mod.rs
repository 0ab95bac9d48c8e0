//! A router with the full Internet table and a SID of each kind, and frames for each way through it.
//!
//! It stands on the crates below alone, so that `noref bench`, the criterion bench and the tests that need a full table can all include it.
#![allow(dead_code, unused_imports, reason = "the program, benches and tests use different parts")]

pub mod frames;
mod lane;
pub mod prefixes;
mod random;
mod ways;

use std::fmt::Write as _;
use std::net::{Ipv4Addr, Ipv6Addr};
use std::sync::Arc;

use control::Configuration;
use plane::Worker;
use route::RouteRefs;

pub use lane::Lane;
pub use prefixes::Prefixes;
pub use random::Random;
pub use ways::{DESTINATIONS, Way, ways};

/// Next hops that the prefixes are spread over. Gateway `n` has the address 02:00:00:00:1f:`n`.
pub const GATEWAYS: usize = 64;
/// The ports: packets come in by the first and leave by the second.
pub const PORTS: [&str; 2] = ["e0", "e1"];
/// A destination whose route leads into an SRv6 policy.
pub const ENCAPSULATED4: Ipv4Addr = Ipv4Addr::new(10, 99, 0, 9);
/// As [`ENCAPSULATED4`].
pub const ENCAPSULATED6: Ipv6Addr = Ipv6Addr::new(0xfd99, 0, 0, 0, 0, 0, 0, 9);

/// A destination whose route leads out by a VLAN.
pub const TAGGED4: Ipv4Addr = Ipv4Addr::new(10, 98, 0, 9);
/// As [`TAGGED4`].
pub const TAGGED6: Ipv6Addr = Ipv6Addr::new(0xfd98, 0, 0, 0, 0, 0, 0, 9);

/// The network file's lines before the Internet: ports, the neighbour at the first.
const DEVICES: &str = "
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

/// The VRF of the SIDs that want one, and those SIDs.
const VRF: &str = "
sysctl net.vrf.strict_mode=1
link add vrf10 type vrf table 10
link set vrf10 up
route add table 10 default via 10.1.1.2 dev e1
-6 route add table 10 default via fd00:1::102 dev e1
-6 route add fc00:1::6 encap seg6local action End.DT4 vrftable 10 dev e0
-6 route add fc00:1::8 encap seg6local action End.DT46 vrftable 10 dev e0
";

/// A VLAN on each port, and the routes out by one.
const VLANS: &str = "
link add link e0 name e0.10 up type vlan id 10
link add link e1 name e1.30 up type vlan id 30
addr add 10.30.0.1/16 dev e1.30
-6 addr add fd00:30::1/64 dev e1.30 nodad
neigh replace 10.30.0.2 lladdr 02:00:00:00:0f:30 dev e1.30 nud permanent
-6 neigh replace fd00:30::2 lladdr 02:00:00:00:0f:30 dev e1.30 nud permanent
route add 10.98.0.0/24 via 10.30.0.2 dev e1.30
-6 route add fd98::/64 via fd00:30::2 dev e1.30
";

/// The other SIDs, numbered as in `ways`, and the routes into policies.
const SIDS: &str = "
-6 route add fc00:1::1 encap seg6local action End dev e0
-6 route add fc00:1::2 encap seg6local action End.DX4 nh4 10.1.1.2 dev e0
-6 route add fc00:1::3 encap seg6local action End.DT6 table main dev e0
-6 route add fc00:1::4 encap seg6local action End.X nh6 fd00:1::102 dev e0
-6 route add fc00:1::5 encap seg6local action End.T table main dev e0
-6 route add fc00:1::7 encap seg6local action End.DX6 nh6 fd00:1::102 dev e0
-6 route add fc00:1::9 encap seg6local action End.B6.Encaps srh segs fc00:2::b,fc00:2::c dev e0
-6 route add fc00:2::/32 via fd00:1::102 dev e1
route add 10.99.0.0/24 encap seg6 mode encap segs fc00:2::1 dev e1
-6 route add fd99::/64 encap seg6 mode encap segs fc00:2::1 dev e1
";

/// A network file with these prefixes.
pub fn network_file(prefixes: &Prefixes) -> String {
    network_file_without_vrf(prefixes) + VRF + VLANS
}

/// The same without VRFs, VLANs and what takes them, for a kernel that has none.
pub fn network_file_without_vrf(prefixes: &Prefixes) -> String {
    let mut text = String::from(DEVICES);
    for n in 0..GATEWAYS {
        let _ = writeln!(text, "neigh replace {} lladdr 02:00:00:00:1f:{n:02x} dev e1 nud permanent", gateway4(n));
        let _ = writeln!(text, "-6 neigh replace {} lladdr 02:00:00:00:1f:{n:02x} dev e1 nud permanent", gateway6(n));
    }
    text.push_str(SIDS);
    for (n, (addr, len)) in prefixes.v4.iter().enumerate() {
        let _ = writeln!(text, "route add {addr}/{len} via {} dev e1", gateway4(n));
    }
    for (n, (addr, len)) in prefixes.v6.iter().enumerate() {
        let _ = writeln!(text, "-6 route add {addr}/{len} via {} dev e1", gateway6(n));
    }
    text
}

/// The address of gateway `n`, which are as many as [`GATEWAYS`] and then the same again.
pub fn gateway4(n: usize) -> Ipv4Addr {
    Ipv4Addr::new(10, 1, 1, (n % GATEWAYS) as u8 + 2)
}

/// As [`gateway4`].
pub fn gateway6(n: usize) -> Ipv6Addr {
    Ipv6Addr::new(0xfd00, 1, 0, 0, 0, 0, 0, (n % GATEWAYS) as u16 + 0x102)
}

/// The router.
pub struct Router {
    pub configuration: Configuration,
    pub prefixes: Prefixes,
}

impl Router {
    /// Makes a router with these prefixes.
    ///
    /// # Errors
    /// What the language says of a prefix: it is there twice, or it is none.
    pub fn new(prefixes: Prefixes) -> Result<Router, control::Errors> {
        let configuration = control::network_file(&network_file(&prefixes), "routes", &PORTS)?;
        Ok(Router { configuration, prefixes })
    }

    /// A worker on its tables.
    pub fn worker(&self, refs: RouteRefs) -> Worker {
        Worker::new(Arc::clone(&self.configuration.tables), refs)
    }
}

//! The router of the golden cases: ports e0 to e3 in a namespace, each the end of a veth pair whose far end is in another one.
//!
//! ```text
//! far: e0 ═══ e0 :router
//!      e1 ═══ e1
//!      e2 ═══ e2
//!      e3 ═══ e3
//! ```

use std::time::{Duration, Instant};

use port::live::{PacketPort, PacketSettings};
use port::{Pool, Port, Time};
use testkit::golden::PORTS;
use testkit::kernel;
use testkit::namespace::Namespace;
/// Held by a test as long as it runs a router: they measure times, and would disturb each other.
pub use testkit::program::alone;
use testkit::program::skipped;

/// The MTU of the devices, whatever the network file gives the ports: some frames of the cases are longer than that.
const MTU: &str = "9000";

/// Settings of the router's namespace, so that a port has the addresses that the network file gives it and no others.
const QUIET: &[(&str, &str)] = &[
    ("ipv6/conf/default/addr_gen_mode", "1"),
    ("ipv6/conf/default/router_solicitations", "0"),
    ("ipv6/conf/default/accept_dad", "0"),
    ("ipv6/conf/default/dad_transmits", "0"),
];

/// The two namespaces.
pub struct Lab {
    pub router: Namespace,
    pub far: Namespace,
}

impl Lab {
    /// The ports, up, and nothing else.
    pub fn new() -> Result<Lab, String> {
        let lab = Lab { router: Namespace::new()?, far: Namespace::new()? };
        // The far ends say and answer nothing.
        lab.far.set("ipv6/conf/default/disable_ipv6", "1")?;
        for (name, value) in QUIET {
            lab.router.set(name, value)?;
        }
        PORTS.iter().try_for_each(|port| lab.add_port(port))?;
        Ok(lab)
    }

    /// One port, up.
    pub fn add_port(&self, port: &str) -> Result<(), String> {
        let there = self.far.path();
        self.router.ip(&format!("link add {port} type veth peer name {port} netns {}", there.display()))?;
        self.far.ip(&format!("link set {port} mtu {MTU} up"))?;
        self.router.ip(&format!("link set {port} mtu {MTU} up"))?;
        // Checksums are part of what is compared, and a veth pair passes unfinished ones on.
        self.router.run("ethtool", &format!("-K {port} tx off"))?;
        Ok(())
    }

    /// The router's kernel is configured with a network file, line by line, as an operator types it.
    pub fn configure_kernel(&self, network: &str) -> Result<(), String> {
        let script: String = network.lines().map(kernel::as_shell).collect();
        let complaint = |why: String| why.rsplit(&format!("{script}: ")).next().unwrap_or_default().to_owned();
        self.router.run_with("sh", &["-ec", &script]).map(drop).map_err(complaint)
    }

    /// The router's kernel has no part in anything: no addresses, no answers.
    pub fn silence_kernel(&self) -> Result<(), String> {
        for port in PORTS {
            self.router.set(&format!("ipv6/conf/{port}/disable_ipv6"), "1")?;
        }
        Ok(())
    }

    /// The far ends, to send from and to see what comes out.
    pub fn cables(&self) -> Result<Cables, String> {
        let open =
            |port: &&str| PacketPort::open(port, PacketSettings { blocks: 4, group: None }).map_err(|error| format!("{port}: {error}"));
        let ports = self.far.inside(|| PORTS.iter().map(open).collect::<Result<_, _>>())?;
        Ok(Cables { ports, pool: Pool::default(), batch: Vec::new() })
    }
}

/// The far ends of the ports.
pub struct Cables {
    ports: Vec<PacketPort>,
    pool: Pool,
    batch: Vec<port::Received>,
}

impl Cables {
    /// Puts a frame on the cable of the port at this place of [`PORTS`]. One that is too long or too short for it is lost, as on any cable.
    pub fn send(&mut self, port: usize, frame: &[u8]) {
        self.ports[port].tx(frame, Time::ZERO);
        self.ports[port].flush().expect("a far end stays");
    }

    /// What came out meanwhile, each frame with its port's place.
    pub fn receive(&mut self) -> Vec<(usize, Vec<u8>)> {
        let mut out = Vec::new();
        for (place, port) in self.ports.iter_mut().enumerate() {
            while port.rx(&mut self.pool, &mut self.batch, 64).expect("a far end stays") > 0 {}
            for packet in self.batch.drain(..) {
                out.push((place, packet.buf.to_vec()));
                self.pool.give(packet.buf);
            }
        }
        out
    }

    /// Frames that came out so far and that nobody fetched in time.
    pub fn overrun(&mut self) -> u64 {
        let events = self.ports.iter_mut().flat_map(Port::events);
        events.filter(|(event, _)| *event == "rx_ring_full").map(|(_, count)| count).sum()
    }

    /// Waits until something comes out, or `until`.
    pub fn wait(&self, until: Instant) {
        let descriptors: Vec<_> = self.ports.iter().filter_map(Port::descriptor).collect();
        let left = until.saturating_duration_since(Instant::now());
        if left > Duration::ZERO {
            port::live::wait_any(&descriptors, left).expect("far ends stay");
        }
    }
}

/// None, with a word why, where a lab cannot be made; a failure where it must be.
pub fn skip<T>(why: &str) -> Option<T> {
    skipped(&format!("{} (this needs root, iproute2, ethtool, and a kernel with veth, AF_XDP and SRv6)", why.trim_end()));
    None
}

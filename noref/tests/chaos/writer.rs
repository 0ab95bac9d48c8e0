//! The writer: requests in the language, as an operator or a client makes them, each of random lines.

use std::fmt::Write as _;
use std::sync::Arc;

use control::Configuration;
use plane::Tables;
use testkit::golden::PORTS;
use testkit::rng::Rng;

/// Prefixes of each kind.
pub const NETS: usize = 60;
/// MTUs that tell the same gateway.
const TURNS: usize = 100;
/// Lines of a request.
const LINES: usize = 8;

pub struct Writer {
    configuration: Configuration,
    random: Rng,
}

impl Writer {
    /// A router with gateways behind e1 and nothing that leads there yet.
    pub fn new() -> Writer {
        let mut net = String::new();
        for port in 0..4 {
            let _ = writeln!(
                net,
                "link set e{port} address 02:00:00:00:0e:0{port} mtu 9000 up\nsysctl net.ipv6.conf.e{port}.seg6_enabled=1\n\
                 addr add 10.0.{port}.1/24 dev e{port}\n-6 addr add fd00:{port}::1/64 dev e{port} nodad"
            );
        }
        net.push_str(
            "sysctl net.ipv4.ip_forward=1\nsysctl net.ipv6.conf.all.forwarding=1\nsysctl net.ipv6.conf.all.seg6_enabled=1\n\
             link set lo up\nsr tunsrc set fd00:0::1\n-6 route add fc00:2::/32 via fd00:2::2 dev e2\n\
             -6 neigh replace fd00:2::2 lladdr 02:00:00:00:0f:02 dev e2 nud permanent\n",
        );
        for n in 0..NETS {
            let _ = writeln!(net, "neigh replace 10.0.1.{} lladdr 02:00:00:00:1f:{n:02x} dev e1 nud permanent", n + 2);
        }
        let configuration = control::network_file(&net, "network.ip", PORTS).unwrap_or_else(|errors| panic!("{errors}"));
        Writer { configuration, random: Rng::new(9) }
    }

    pub fn tables(&self) -> Arc<Tables> {
        self.configuration.tables.clone()
    }

    /// Makes some changes; how many.
    pub fn change(&mut self) -> usize {
        let text: String = (0..LINES).map(|_| self.line()).collect();
        // What is not there cannot be deleted: that line is left out.
        let _ = self.configuration.apply_each(&text, "change");
        self.configuration.editor.network().domain().reclaim();
        LINES
    }

    fn line(&mut self) -> String {
        let random = &mut self.random;
        let (net, other) = (random.below(NETS), random.below(NETS));
        match random.below(16) {
            // The MTU tells the gateway, and is hardly ever the same twice.
            0..5 => format!(
                "route replace 198.51.{net}.0/24 via 10.0.1.{} mtu {} dev e1\n",
                other + 2,
                1280 + other + NETS * random.below(TURNS)
            ),
            5 => format!("route del 198.51.{net}.0/24\n"),
            6..9 => format!(
                "-6 route replace fd0e:{net:x}::/64 encap seg6 mode encap segs fc00:2:{net:x}::1,fc00:2:{net:x}:{:x}::2 dev e2\n",
                random.below(1000)
            ),
            9 => format!("-6 route del fd0e:{net:x}::/64\n"),
            10 => format!("-6 route replace fc00:1:{net:x}::1 encap seg6local action End.X nh6 fd00:2::{:x} dev e0\n", other + 2),
            11 => format!("-6 route del fc00:1:{net:x}::1\n"),
            12 => format!("neigh replace 10.0.1.{} lladdr 02:00:00:00:1f:{net:02x} dev e1 nud permanent\n", net + 2),
            13 => format!("addr replace 10.7.{net}.1/24 dev e3\n"),
            14 => format!("addr del 10.7.{net}.1/24 dev e3\n"),
            _ if random.below(2) == 0 => format!("-6 rule add from fd77:{net:x}::/64 lookup {} pref {}\n", 100 + other, 100 + net),
            _ => format!("-6 rule del pref {}\n", 100 + net),
        }
    }
}

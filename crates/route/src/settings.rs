//! Settings of the router as a whole: the sysctls that are no interface's.

use std::net::Ipv6Addr;

use crate::{Conf4, Conf6, Multipath};

/// The sysctls that have an effect, with Linux's defaults.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Settings {
    /// `net.ipv4.conf.all`.
    pub all4: Conf4,
    /// `net.ipv4.conf.default`, copied to new interfaces.
    pub default4: Conf4,
    /// `net.ipv6.conf.all`.
    pub all6: Conf6,
    /// `net.ipv6.conf.default`, copied to new interfaces.
    pub default6: Conf6,
    /// `net.ipv4.ip_default_ttl`: TTL of packets that the router makes.
    pub default_ttl: u8,
    /// `net.ipv4.icmp_ratelimit`, milliseconds between messages to one destination; 0: no limit.
    pub icmp4_ratelimit: u32,
    /// `net.ipv4.icmp_ratemask`: bit N set: messages of type N are limited.
    pub icmp4_ratemask: u32,
    /// `net.ipv4.icmp_msgs_per_sec`: limit over all destinations.
    pub icmp4_msgs_per_sec: u32,
    /// `net.ipv4.icmp_msgs_burst`.
    pub icmp4_msgs_burst: u32,
    /// `net.ipv4.icmp_errors_use_inbound_ifaddr`.
    pub icmp4_errors_use_inbound: bool,
    /// `net.ipv4.icmp_echo_ignore_all`.
    pub icmp4_echo_ignore_all: bool,
    /// `net.ipv4.icmp_echo_ignore_broadcasts`.
    pub icmp4_echo_ignore_broadcasts: bool,
    /// `net.ipv6.icmp.ratelimit`, milliseconds.
    pub icmp6_ratelimit: u32,
    /// `net.ipv6.icmp.echo_ignore_all`.
    pub icmp6_echo_ignore_all: bool,
    /// `net.ipv6.seg6_flowlabel`: -1 zero, 0 copy the inner one, 1 compute it from the flow.
    pub seg6_flowlabel: i8,
    /// `net.ipv4.fib_multipath_hash_policy` and `_fields`.
    pub multipath4: Multipath,
    /// `net.ipv6.fib_multipath_hash_policy` and `_fields`.
    pub multipath6: Multipath,
    /// `net.ipv4.fib_multipath_hash_seed`, of both families.
    pub multipath_seed: u32,
    /// `net.ipv4.fib_multipath_use_neigh`: ways whose neighbour did not answer are left out.
    pub multipath_use_neigh: bool,
    /// `net.vrf.strict_mode`: a table belongs to one VRF only, which `vrftable` needs.
    pub vrf_strict_mode: bool,
    /// `ip sr tunsrc set`: source of outer headers; unspecified: chosen by the way out.
    pub seg6_tunsrc: Ipv6Addr,
}

impl Default for Settings {
    fn default() -> Settings {
        Settings {
            all4: Conf4::default(),
            default4: Conf4::default(),
            all6: Conf6::default(),
            default6: Conf6::default(),
            default_ttl: 64,
            icmp4_ratelimit: 1000,
            icmp4_ratemask: 0x1818,
            icmp4_msgs_per_sec: 10000,
            icmp4_msgs_burst: 10000,
            icmp4_errors_use_inbound: false,
            icmp4_echo_ignore_all: false,
            icmp4_echo_ignore_broadcasts: true,
            icmp6_ratelimit: 100,
            icmp6_echo_ignore_all: false,
            seg6_flowlabel: 0,
            multipath4: Multipath::default(),
            multipath6: Multipath::default(),
            multipath_seed: 0,
            multipath_use_neigh: false,
            vrf_strict_mode: false,
            seg6_tunsrc: Ipv6Addr::UNSPECIFIED,
        }
    }
}

impl Settings {
    /// How flows of a family are shared among ways.
    pub fn multipath(&self, v4: bool) -> Multipath {
        if v4 { self.multipath4 } else { self.multipath6 }
    }
}

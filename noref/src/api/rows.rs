//! What replies are made of: a type a table. Packets are counted in frames, bytes are those of Ethernet frames without check sequence unless said otherwise,
//! both since the router started.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

pub use crate::report::Traffic;

/// A port.
#[derive(Serialize, Deserialize, Clone, PartialEq, Eq, Debug, Default)]
pub struct PortRow {
    pub port: String,
    /// What stands behind it: `AF_XDP`, `AF_PACKET`, `memif` …
    pub driver: String,
    /// Queues that workers have of it.
    pub queues: u64,
    /// It is up as far as the router's tables say.
    pub up: bool,
    /// Its Ethernet address.
    pub mac: String,
    /// Bytes behind the Ethernet header.
    pub mtu: u32,
    /// Its addresses with their prefix length, in the order in which they were given.
    pub addresses: Vec<String>,
    pub received: Traffic,
    pub sent: Traffic,
    /// Packets that came in here and were for the router itself.
    pub delivered: u64,
    /// Packets held back at the moment until a neighbour here answers.
    pub waiting: u64,
    /// What else happened, by its name in `docs/ports.md`; only what did.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub events: BTreeMap<String, u64>,
    /// What the operator should know, a sentence each; also why it is not open.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub notes: Vec<String>,
}

/// A worker.
#[derive(Serialize, Deserialize, Clone, PartialEq, Debug, Default)]
pub struct WorkerRow {
    pub worker: u64,
    /// The core it stays on, if it does.
    pub core: Option<u64>,
    /// Its queues, as `PORT/N`; what it only sends by as `PORT (DRIVER to send)`.
    pub queues: Vec<String>,
    /// Seconds since it started.
    #[serde(default)]
    pub seconds: f64,
    /// Share of that time during which it had something to do, 0 to 1.
    pub busy: f64,
    /// Nanoseconds of that time for each packet that came in; none before the first.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub packet_ns: Option<f64>,
    /// The same in clocks of the processor's time stamp counter; none where it is not steady.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub packet_clocks: Option<f64>,
    pub received: Traffic,
    pub sent: Traffic,
    /// Packets that came in and went out.
    pub forwarded: u64,
    /// Packets that it made: answers, errors, solicitations.
    pub originated: u64,
    pub dropped: u64,
}

/// A route.
#[derive(Serialize, Deserialize, Clone, PartialEq, Eq, Debug, Default)]
pub struct RouteRow {
    /// `main`, `local`, `default` or a number.
    pub table: String,
    /// Destinations with their length: `0.0.0.0/0`, `10.0.0.0/8`.
    pub prefix: String,
    /// Its type, as `ip route` names it.
    pub kind: String,
    /// Ways out.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub ways: Vec<WayRow>,
    pub metric: u32,
    /// Who put it there: the number of `proto`.
    pub protocol: u8,
    /// The number of `scope`.
    pub scope: u8,
    /// Preferred source.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub src: Option<String>,
    /// MTU in bytes, when it has one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub mtu: Option<u32>,
}

/// One way out of a route.
#[derive(Serialize, Deserialize, Clone, PartialEq, Eq, Debug, Default)]
pub struct WayRow {
    /// The device; none when its packets are left to the kernel.
    pub dev: Option<String>,
    /// The gateway.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub via: Option<String>,
    /// What it does to the packet, in the words of `ip route`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub encap: Option<String>,
    pub weight: u16,
}

/// A rule.
#[derive(Serialize, Deserialize, Clone, PartialEq, Eq, Debug, Default)]
pub struct RuleRow {
    /// `inet` or `inet6`.
    pub family: String,
    pub pref: u32,
    /// Sources it is for, with their length; all when not there, as below.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub from: Option<String>,
    /// Destinations.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub to: Option<String>,
    /// Device that packets came in by.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub iif: Option<String>,
    /// What else it selects by: `not`, `fwmark 0x10`, `ipproto udp dport 53`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub also: Option<String>,
    /// What it does: `lookup main`, `lookup main suppress_prefixlength 0`, `l3mdev`, `goto 200`, `blackhole`.
    pub action: String,
}

/// A neighbour.
#[derive(Serialize, Deserialize, Clone, PartialEq, Eq, Debug, Default)]
pub struct NeighbourRow {
    pub address: String,
    pub dev: String,
    /// Its Ethernet address, where it is known.
    pub mac: Option<String>,
    /// As `ip neigh` spells it, in small letters.
    pub state: String,
}

/// A SID.
#[derive(Serialize, Deserialize, Clone, PartialEq, Eq, Debug, Default)]
pub struct SidRow {
    /// As a prefix.
    pub sid: String,
    /// The table that it stands in.
    pub table: String,
    /// Its behaviour, as iproute2 spells it.
    pub behavior: String,
    /// The behaviour with its attributes, as iproute2 shows them.
    pub action: String,
    /// Packets it processed.
    pub packets: u64,
    /// Bytes of them, from the IPv6 header on.
    pub bytes: u64,
    /// Packets that it could not process.
    pub errors: u64,
}

/// Packets that ended for one reason.
#[derive(Serialize, Deserialize, Clone, PartialEq, Eq, Debug, Default)]
pub struct DropRow {
    /// The reason's word in `docs/drop-reasons.md`: stable.
    pub reason: String,
    pub packets: u64,
    /// What it means.
    pub meaning: String,
}

/// Something that is counted.
#[derive(Serialize, Deserialize, Clone, PartialEq, Eq, Debug, Default)]
pub struct CounterRow {
    /// The port, of a counter that each port has.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub port: Option<String>,
    pub counter: String,
    pub value: u64,
}

/// Something that is left to the kernel.
#[derive(Serialize, Deserialize, Clone, PartialEq, Eq, Debug, Default)]
pub struct UnsupportedRow {
    /// What: `route 10.0.0.0/8 table main`, `rule 100`, `device br0`.
    pub what: String,
    pub reason: String,
}

/// How far the mirror stands from the kernel.
#[derive(Serialize, Deserialize, Clone, PartialEq, Debug, Default)]
pub struct MirrorRow {
    /// All that the kernel told is in the tables, and nothing is to be read again.
    pub settled: bool,
    /// Seconds since something of the kernel was read.
    pub quiet: f64,
    /// What is left to the kernel: as many as `show unsupported` lists.
    pub unsupported: u64,
    /// What happened while the kernel was followed, by its name in `docs/metrics.md`.
    pub counters: BTreeMap<String, u64>,
}

/// One packet's way.
#[derive(Serialize, Deserialize, Clone, PartialEq, Eq, Debug, Default)]
pub struct TracedFrame {
    /// Its number in this trace, from 0.
    pub frame: u64,
    /// When this happened, seconds since the epoch with nine places: a packet that waits goes on later, under its number again.
    pub time: String,
    /// The port that it came in by.
    pub port: String,
    pub steps: Vec<TracedStep>,
    /// Its bytes as they came in, in hexadecimal, when they were asked for; not again when it goes on later.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub bytes: Option<String>,
}

/// One step of it.
#[derive(Serialize, Deserialize, Clone, PartialEq, Eq, Debug, Default)]
pub struct TracedStep {
    /// What kind of step it is: see `docs/replay.md`.
    pub stage: String,
    /// What happened.
    pub text: String,
}

/// How a trace went.
#[derive(Serialize, Deserialize, Clone, PartialEq, Eq, Debug, Default)]
pub struct Traced {
    /// Packets that were told of.
    pub packets: u64,
    /// Packets that were not looked at, because they came faster than they could be told of.
    pub missed: u64,
}

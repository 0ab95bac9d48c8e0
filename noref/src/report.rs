//! What a run did, as text and as JSON. Both say the same; `docs/replay.md` and `docs/run.md` describe the JSON layout.

mod count;

use std::fmt;

use port::capture::CaptureError;
use serde::{Deserialize, Serialize};

pub use self::count::{Sids, drops, sid};
use crate::args::Refs;
use crate::show::columns::{Align, Columns};

/// The layout's number in JSON: it changes when a field goes or changes its meaning, not when one is added.
const LAYOUT: u32 = 1;

/// The result of a replay, or of a router that ran.
#[derive(Serialize, Debug, PartialEq, Eq)]
pub struct Report {
    /// Number of the layout.
    pub layout: u32,
    /// How packets carried their routes.
    pub refs: Refs,
    /// Packets received.
    pub packets: u64,
    /// Every port, in the order of their names.
    pub ports: Vec<PortReport>,
    /// Packets left to the kernel by a router beside one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub kernel: Option<u64>,
    /// Why packets ended, most frequent first; only reasons that occurred.
    pub drops: Vec<DropReport>,
    /// Every SID of the network file, in its order.
    pub sids: Vec<SidReport>,
    /// What else happened at ports of devices; only what did.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub events: Vec<EventReport>,
    /// Captures that broke off.
    pub broken: Vec<BrokenReport>,
    /// The way of each packet, when it was asked for. Text has it before the result, printed as it happens.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub trace: Option<Vec<FrameTrace>>,
}

/// One packet's way.
#[derive(Serialize, Debug, PartialEq, Eq)]
pub struct FrameTrace {
    /// Its number among all packets read, from 0.
    pub frame: u64,
    /// When this happened, seconds since the epoch with nine places: a packet that waits goes on later, under its number again.
    pub time: String,
    pub steps: Vec<StepTrace>,
}

/// One step of it.
#[derive(Serialize, Debug, PartialEq, Eq)]
pub struct StepTrace {
    /// What kind of step it is.
    pub stage: &'static str,
    /// What happened.
    pub text: String,
}

/// Packets and bytes.
#[derive(Serialize, Deserialize, Debug, Default, Clone, Copy, PartialEq, Eq)]
pub struct Traffic {
    pub packets: u64,
    /// Bytes with the Ethernet header.
    pub bytes: u64,
}

impl Traffic {
    pub fn count(&mut self, bytes: usize) {
        self.packets += 1;
        self.bytes += bytes as u64;
    }
}

/// What happened at a port.
#[derive(Serialize, Debug, Default, PartialEq, Eq)]
pub struct PortReport {
    pub port: String,
    /// What came in.
    pub received: Traffic,
    /// What went out.
    pub sent: Traffic,
    /// Packets that came in here and were for the router itself.
    pub delivered: u64,
}

/// Packets that ended for one reason.
#[derive(Serialize, Debug, PartialEq, Eq)]
pub struct DropReport {
    /// The reason's word: stable.
    pub reason: &'static str,
    pub packets: u64,
    /// What it means.
    pub meaning: &'static str,
}

/// What happened at a SID.
#[derive(Serialize, Debug, PartialEq, Eq)]
pub struct SidReport {
    /// The SID as a prefix.
    pub sid: String,
    /// The table it stands in.
    pub table: String,
    /// Its behaviour, as iproute2 spells it.
    pub behavior: String,
    /// Packets it processed.
    pub packets: u64,
    /// Bytes of them, from the IPv6 header on.
    pub bytes: u64,
    /// Packets that it could not process.
    pub errors: u64,
}

/// Something that happened to packets at a port before they reached the router, or behind it.
#[derive(Serialize, Debug, PartialEq, Eq)]
pub struct EventReport {
    pub port: String,
    /// Its name, as `docs/ports.md` explains it.
    pub event: &'static str,
    /// How often.
    pub count: u64,
}

/// A capture that could not be read to its end.
#[derive(Serialize, Debug, PartialEq, Eq)]
pub struct BrokenReport {
    pub capture: String,
    /// Packets read before.
    pub packets: u64,
    /// Bytes from its beginning to the place.
    pub offset: u64,
    pub why: String,
}

impl BrokenReport {
    pub fn of(error: &CaptureError) -> BrokenReport {
        BrokenReport { capture: error.name.clone(), packets: error.packets, offset: error.offset, why: error.cause.to_string() }
    }
}

impl Report {
    pub fn new(refs: Refs) -> Report {
        Report {
            layout: LAYOUT,
            refs,
            packets: 0,
            ports: Vec::new(),
            kernel: None,
            drops: Vec::new(),
            sids: Vec::new(),
            events: Vec::new(),
            broken: Vec::new(),
            trace: None,
        }
    }

    fn total(&self, of: impl Fn(&PortReport) -> u64) -> u64 {
        self.ports.iter().map(of).sum()
    }
}

impl fmt::Display for Report {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let dropped: u64 = self.drops.iter().map(|drop| drop.packets).sum();
        let sent = self.total(|port| port.sent.packets);
        let delivered = self.total(|port| port.delivered);
        write!(f, "{} received, {sent} sent, {delivered} delivered to the host, ", counted(self.packets, "packet"))?;
        if let Some(kernel) = self.kernel {
            write!(f, "{kernel} left to the kernel, ")?;
        }
        writeln!(f, "{dropped} dropped")?;

        let row = |PortReport { port, received, sent, delivered }: &PortReport| {
            cells([port, &received.packets, &received.bytes, &sent.packets, &sent.bytes, delivered])
        };
        columns(f, &["port", "received", "bytes", "sent", "bytes", "to the host"], self.ports.iter().map(row))?;

        if !self.drops.is_empty() {
            let row = |DropReport { reason, packets, meaning }: &DropReport| cells([reason, packets, meaning]);
            columns(f, &["dropped", "packets", "meaning"], self.drops.iter().map(row))?;
        }
        if !self.sids.is_empty() {
            let row = |SidReport { sid, table, behavior, packets, bytes, errors }: &SidReport| {
                cells([sid, table, behavior, packets, bytes, errors])
            };
            columns(f, &["SID", "table", "behaviour", "packets", "bytes", "errors"], self.sids.iter().map(row))?;
        }
        if !self.events.is_empty() {
            let row = |EventReport { port, event, count }: &EventReport| cells([port, event, count]);
            columns(f, &["port", "event", "count"], self.events.iter().map(row))?;
        }
        for BrokenReport { capture, packets, offset, why } in &self.broken {
            write!(f, "\n{capture}: {why} (at byte {offset}, after {})\n", counted(*packets, "packet"))?;
        }
        Ok(())
    }
}

/// `1 packet`, `2 packets`.
fn counted(n: u64, what: &str) -> String {
    format!("{n} {what}{}", if n == 1 { "" } else { "s" })
}

fn cells<const N: usize>(cells: [&dyn ToString; N]) -> Vec<String> {
    cells.map(|cell| cell.to_string()).to_vec()
}

/// Writes an empty line and rows whose columns stand below each other: numbers to the right, words to the left.
fn columns(f: &mut fmt::Formatter<'_>, heading: &[&'static str], rows: impl Iterator<Item = Vec<String>>) -> fmt::Result {
    let rows: Vec<_> = rows.collect();
    let is_number = |column: usize| rows.iter().all(|row| row.get(column).is_some_and(|cell| cell.parse::<u64>().is_ok()));
    let align = |column| if is_number(column) { Align::Right } else { Align::Left };
    let heading: Vec<_> = heading.iter().enumerate().map(|(column, word)| (*word, align(column))).collect();
    let mut text = Vec::new();
    // A vector takes everything.
    let _ = Columns::new(&heading).print(&rows, &mut text);
    write!(f, "\n{}", String::from_utf8_lossy(&text))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sample() -> Report {
        let port = |port: &str, received, sent, delivered| PortReport { port: port.into(), received, sent, delivered };
        let traffic = |packets, bytes| Traffic { packets, bytes };
        Report {
            packets: 49,
            ports: vec![port("e0", traffic(49, 9184), traffic(2, 180), 3), port("e1", traffic(0, 0), traffic(40, 12_000), 0)],
            drops: vec![
                DropReport { reason: "no_route", packets: 3, meaning: "No route leads to the destination." },
                DropReport { reason: "bad_srh", packets: 1, meaning: "The SRH is malformed." },
            ],
            sids: vec![SidReport {
                sid: "fd00:5::1/128".into(),
                table: "main".into(),
                behavior: "End.DT46".into(),
                packets: 7,
                bytes: 700,
                errors: 1,
            }],
            events: vec![EventReport { port: "e1".into(), event: "tx_failed", count: 2 }],
            broken: vec![BrokenReport { capture: "in.pcap".into(), packets: 1, offset: 99, why: "it breaks off".into() }],
            ..Report::new(Refs::Noref)
        }
    }

    #[test]
    fn the_text_stands_in_columns() {
        assert_eq!(
            sample().to_string(),
            "\
49 packets received, 42 sent, 3 delivered to the host, 4 dropped

port  received  bytes  sent  bytes  to the host
e0          49   9184     2    180            3
e1           0      0    40  12000            0

dropped   packets  meaning
no_route        3  No route leads to the destination.
bad_srh         1  The SRH is malformed.

SID            table  behaviour  packets  bytes  errors
fd00:5::1/128  main   End.DT46         7    700       1

port  event      count
e1    tx_failed      2

in.pcap: it breaks off (at byte 99, after 1 packet)
"
        );
    }

    #[test]
    fn the_json_layout_is_as_documented() {
        let json = serde_json::to_value(sample()).unwrap();
        let expected = serde_json::json!({
            "layout": 1,
            "refs": "noref",
            "packets": 49,
            "ports": [
                {"port": "e0", "received": {"packets": 49, "bytes": 9184}, "sent": {"packets": 2, "bytes": 180}, "delivered": 3},
                {"port": "e1", "received": {"packets": 0, "bytes": 0}, "sent": {"packets": 40, "bytes": 12000}, "delivered": 0},
            ],
            "drops": [
                {"reason": "no_route", "packets": 3, "meaning": "No route leads to the destination."},
                {"reason": "bad_srh", "packets": 1, "meaning": "The SRH is malformed."},
            ],
            "sids": [
                {"sid": "fd00:5::1/128", "table": "main", "behavior": "End.DT46", "packets": 7, "bytes": 700, "errors": 1},
            ],
            "events": [{"port": "e1", "event": "tx_failed", "count": 2}],
            "broken": [{"capture": "in.pcap", "packets": 1, "offset": 99, "why": "it breaks off"}],
        });
        assert_eq!(json, expected);
    }
}

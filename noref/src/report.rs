//! What a run did, as text and as JSON. Both say the same; `docs/replay.md` and `docs/run.md` describe the JSON layout.

mod count;

use std::fmt::{self, Write};

use port::capture::CaptureError;
use serde::{Deserialize, Serialize};

pub use self::count::{drops, sid};
use crate::args::Refs;

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

        let mut ports = Columns::new(["port", "received", "bytes", "sent", "bytes", "to the host"]);
        for PortReport { port, received, sent, delivered } in &self.ports {
            ports.row([port, &received.packets, &received.bytes, &sent.packets, &sent.bytes, delivered]);
        }
        write!(f, "\n{ports}")?;

        if !self.drops.is_empty() {
            let mut drops = Columns::new(["dropped", "packets", "meaning"]);
            for DropReport { reason, packets, meaning } in &self.drops {
                drops.row([reason, packets, meaning]);
            }
            write!(f, "\n{drops}")?;
        }
        if !self.sids.is_empty() {
            let mut sids = Columns::new(["SID", "table", "behaviour", "packets", "bytes", "errors"]);
            for SidReport { sid, table, behavior, packets, bytes, errors } in &self.sids {
                sids.row([sid, table, behavior, packets, bytes, errors]);
            }
            write!(f, "\n{sids}")?;
        }
        if !self.events.is_empty() {
            let mut events = Columns::new(["port", "event", "count"]);
            for EventReport { port, event, count } in &self.events {
                events.row([port, event, count]);
            }
            write!(f, "\n{events}")?;
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

/// Lines whose columns stand below each other: numbers to the right, words to the left.
struct Columns<const N: usize> {
    rows: Vec<[String; N]>,
}

impl<const N: usize> Columns<N> {
    fn new(heading: [&str; N]) -> Columns<N> {
        Columns { rows: vec![heading.map(str::to_owned)] }
    }

    fn row(&mut self, cells: [&dyn ToString; N]) {
        self.rows.push(cells.map(|cell| cell.to_string()));
    }

    /// A column of numbers; its heading does not count.
    fn is_number(&self, column: usize) -> bool {
        self.rows.iter().skip(1).all(|row| row[column].parse::<u64>().is_ok())
    }
}

impl<const N: usize> fmt::Display for Columns<N> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for row in &self.rows {
            let mut line = String::new();
            for (column, cell) in row.iter().enumerate() {
                let width = self.rows.iter().map(|row| row[column].chars().count()).max().unwrap_or(0);
                let gap = if column == 0 { "" } else { "  " };
                match self.is_number(column) {
                    true => write!(line, "{gap}{cell:>width$}")?,
                    false => write!(line, "{gap}{cell:<width$}")?,
                }
            }
            writeln!(f, "{}", line.trim_end())?;
        }
        Ok(())
    }
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

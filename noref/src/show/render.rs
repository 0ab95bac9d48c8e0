//! What a reply says, as text for a person.

use std::io::{self, Write};

use super::columns::{Align, Columns};
use crate::api::protocol::Body;
use crate::api::rows::{
    CounterRow, DropRow, MirrorRow, NeighbourRow, PortRow, RouteRow, RuleRow, SidRow, UnsupportedRow, WayRow, WorkerRow,
};

use Align::{Left, Right};

/// Rows that are waited for before the first is printed: all tables but the longest are even throughout.
const FIRST: usize = 2048;

/// Prints the lines of one reply.
#[derive(Default)]
pub struct Renderer {
    columns: Option<Columns>,
    /// Not printed yet.
    rows: Vec<Vec<String>>,
}

impl Renderer {
    /// Prints what a line says; `last` is that of the reply.
    ///
    /// # Errors
    /// Those of the output.
    pub fn print(&mut self, body: &Body, last: bool, output: &mut dyn Write) -> io::Result<()> {
        let (heading, rows): (_, Vec<_>) = match body {
            Body::Ports(ports) => (PORTS, ports.iter().map(port).collect()),
            Body::Workers(rows) => (WORKERS, rows.iter().map(worker).collect()),
            Body::Routes(rows) => (ROUTES, rows.iter().map(route).collect()),
            Body::Rules(rows) => (RULES, rows.iter().map(rule).collect()),
            Body::Neighbours(rows) => (NEIGHBOURS, rows.iter().map(neighbour).collect()),
            Body::Sids(rows) => (SIDS, rows.iter().map(sid).collect()),
            Body::Drops(rows) => (DROPS, rows.iter().map(drop_row).collect()),
            Body::Counters(rows) => (COUNTERS, rows.iter().map(counter).collect()),
            Body::Unsupported(rows) => (UNSUPPORTED, rows.iter().map(unsupported).collect()),
            Body::Mirror(None) => return writeln!(output, "the router mirrors nobody: its network file says everything"),
            Body::Mirror(Some(row)) => return mirror(row, output),
            // Replies to other requests.
            _ => return Ok(()),
        };
        self.rows.extend(rows);
        let begun = self.columns.is_some();
        if !self.rows.is_empty() && (last || begun || self.rows.len() >= FIRST) {
            let rows = std::mem::take(&mut self.rows);
            self.columns.get_or_insert_with(|| Columns::new(heading)).print(&rows, output)?;
        }
        match body {
            _ if last && self.columns.is_none() => writeln!(output, "none"),
            Body::Ports(ports) => notes(ports, output),
            _ => Ok(()),
        }
    }
}

const PORTS: &[(&str, Align)] = &[
    ("port", Left),
    ("state", Left),
    ("driver", Left),
    ("queues", Right),
    ("mtu", Right),
    ("mac", Left),
    ("received", Right),
    ("bytes", Right),
    ("sent", Right),
    ("bytes", Right),
    ("to the host", Right),
    ("waiting", Right),
    ("addresses", Left),
];

fn port(row: &PortRow) -> Vec<String> {
    vec![
        row.port.clone(),
        if row.up { "up" } else { "down" }.to_owned(),
        or_dash(&row.driver),
        row.queues.to_string(),
        row.mtu.to_string(),
        or_dash(&row.mac),
        row.received.packets.to_string(),
        row.received.bytes.to_string(),
        row.sent.packets.to_string(),
        row.sent.bytes.to_string(),
        row.delivered.to_string(),
        row.waiting.to_string(),
        or_dash(&row.addresses.join(" ")),
    ]
}

/// What else happened at ports, and what the operator should know of them.
fn notes(ports: &[PortRow], output: &mut dyn Write) -> io::Result<()> {
    let events: Vec<_> = ports
        .iter()
        .flat_map(|row| row.events.iter().map(|(event, count)| vec![row.port.clone(), event.clone(), count.to_string()]))
        .collect();
    if !events.is_empty() {
        writeln!(output)?;
        Columns::new(&[("port", Left), ("event", Left), ("count", Right)]).print(&events, output)?;
    }
    let notes: Vec<_> = ports.iter().flat_map(|row| row.notes.iter().map(|note| (&row.port, note))).collect();
    if !notes.is_empty() {
        writeln!(output)?;
    }
    // A note says itself which port it is about, or it is put in front.
    notes.into_iter().try_for_each(|(port, note)| match note.contains(port.as_str()) {
        true => writeln!(output, "{note}"),
        false => writeln!(output, "{port}: {note}"),
    })
}

const WORKERS: &[(&str, Align)] = &[
    ("worker", Right),
    ("core", Right),
    ("busy", Right),
    ("ns/packet", Right),
    ("clocks", Right),
    ("received", Right),
    ("sent", Right),
    ("forwarded", Right),
    ("own", Right),
    ("dropped", Right),
    ("queues", Left),
];

fn worker(row: &WorkerRow) -> Vec<String> {
    vec![
        row.worker.to_string(),
        row.core.map_or_else(|| "any".to_owned(), |core| core.to_string()),
        format!("{:.1} %", row.busy * 100.0),
        row.packet_ns.map_or_else(|| "-".to_owned(), |ns| format!("{ns:.1}")),
        row.packet_clocks.map_or_else(|| "-".to_owned(), |clocks| format!("{clocks:.0}")),
        row.received.packets.to_string(),
        row.sent.packets.to_string(),
        row.forwarded.to_string(),
        row.originated.to_string(),
        row.dropped.to_string(),
        or_dash(&row.queues.join(" ")),
    ]
}

const ROUTES: &[(&str, Align)] = &[("table", Left), ("type", Left), ("prefix", Left), ("metric", Right), ("way", Left)];

fn route(row: &RouteRow) -> Vec<String> {
    let ways: Vec<_> = row.ways.iter().map(|way| way_of(way, row.ways.len() > 1)).collect();
    let mut way = ways.join(", ");
    if let Some(src) = &row.src {
        way += &format!(" src {src}");
    }
    if let Some(mtu) = row.mtu {
        way += &format!(" mtu {mtu}");
    }
    vec![row.table.clone(), row.kind.clone(), row.prefix.clone(), row.metric.to_string(), or_dash(way.trim_start())]
}

fn way_of(way: &WayRow, weighted: bool) -> String {
    let encap = way.encap.as_ref().map(|encap| format!("{encap} ")).unwrap_or_default();
    let via = way.via.as_ref().map(|via| format!("via {via} ")).unwrap_or_default();
    let weight = if weighted { format!(" weight {}", way.weight) } else { String::new() };
    match &way.dev {
        Some(dev) => format!("{encap}{via}dev {dev}{weight}"),
        None => "left to the kernel".to_owned(),
    }
}

const RULES: &[(&str, Align)] =
    &[("family", Left), ("pref", Right), ("from", Left), ("to", Left), ("iif", Left), ("also", Left), ("action", Left)];

fn rule(row: &RuleRow) -> Vec<String> {
    let all = |word: &Option<String>| word.clone().unwrap_or_else(|| "all".to_owned());
    vec![
        row.family.clone(),
        row.pref.to_string(),
        all(&row.from),
        all(&row.to),
        all(&row.iif),
        row.also.clone().unwrap_or_default(),
        row.action.clone(),
    ]
}

const NEIGHBOURS: &[(&str, Align)] = &[("address", Left), ("dev", Left), ("mac", Left), ("state", Left)];

fn neighbour(row: &NeighbourRow) -> Vec<String> {
    vec![row.address.clone(), row.dev.clone(), row.mac.clone().unwrap_or_else(|| "-".to_owned()), row.state.clone()]
}

const SIDS: &[(&str, Align)] =
    &[("SID", Left), ("table", Left), ("packets", Right), ("bytes", Right), ("errors", Right), ("behaviour", Left)];

fn sid(row: &SidRow) -> Vec<String> {
    let action = row.action.strip_prefix("action ").unwrap_or(&row.action);
    vec![row.sid.clone(), row.table.clone(), row.packets.to_string(), row.bytes.to_string(), row.errors.to_string(), action.to_owned()]
}

const DROPS: &[(&str, Align)] = &[("dropped", Left), ("packets", Right), ("meaning", Left)];

fn drop_row(row: &DropRow) -> Vec<String> {
    vec![row.reason.clone(), row.packets.to_string(), row.meaning.clone()]
}

const COUNTERS: &[(&str, Align)] = &[("port", Left), ("counter", Left), ("value", Right)];

fn counter(row: &CounterRow) -> Vec<String> {
    vec![row.port.clone().unwrap_or_else(|| "-".to_owned()), row.counter.clone(), row.value.to_string()]
}

const UNSUPPORTED: &[(&str, Align)] = &[("left to the kernel", Left), ("because", Left)];

fn unsupported(row: &UnsupportedRow) -> Vec<String> {
    vec![row.what.clone(), row.reason.clone()]
}

fn mirror(row: &MirrorRow, output: &mut dyn Write) -> io::Result<()> {
    let settled = if row.settled { "the tables are the kernel's, as far as it was heard" } else { "the kernel is being read" };
    writeln!(output, "{settled}; the last that was heard of it is {:.1} s old", row.quiet)?;
    writeln!(output, "{} left to the kernel (noref show unsupported)\n", row.unsupported)?;
    let rows: Vec<_> = row.counters.iter().map(|(name, value)| vec![name.clone(), value.to_string()]).collect();
    Columns::new(&[("counter", Left), ("value", Right)]).print(&rows, output)
}

fn or_dash(text: &str) -> String {
    if text.is_empty() { "-".to_owned() } else { text.to_owned() }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use super::*;
    use crate::api::rows::Traffic;

    fn text(bodies: &[Body]) -> String {
        let (mut renderer, mut output) = (Renderer::default(), Vec::new());
        for (at, body) in bodies.iter().enumerate() {
            renderer.print(body, at + 1 == bodies.len(), &mut output).unwrap();
        }
        String::from_utf8(output).unwrap()
    }

    #[test]
    fn ports_stand_in_columns_with_their_events_and_notes_below() {
        let traffic = |packets, bytes| Traffic { packets, bytes };
        let e0 = PortRow {
            port: "e0".into(),
            driver: "AF_XDP".into(),
            queues: 2,
            up: true,
            mac: "02:00:00:00:00:01".into(),
            mtu: 1500,
            addresses: vec!["10.0.0.1/24".into(), "fd00::1/64".into()],
            received: traffic(49, 9184),
            sent: traffic(2, 180),
            delivered: 3,
            waiting: 0,
            events: BTreeMap::from([("rx_dropped".into(), 7)]),
            notes: vec!["it copies".into()],
        };
        assert_eq!(
            text(&[Body::Ports(vec![e0, PortRow { port: "e1".into(), ..PortRow::default() }])]),
            "\
port  state  driver  queues   mtu  mac                received  bytes  sent  bytes  to the host  waiting  addresses
e0    up     AF_XDP       2  1500  02:00:00:00:00:01        49   9184     2    180            3        0  10.0.0.1/24 fd00::1/64
e1    down   -            0     0  -                         0      0     0      0            0        0  -

port  event       count
e0    rx_dropped      7

e0: it copies
"
        );
    }

    #[test]
    fn routes_come_in_pieces_under_one_heading() {
        let route = |prefix: &str, ways| RouteRow {
            table: "main".into(),
            kind: "unicast".into(),
            prefix: prefix.into(),
            ways,
            ..RouteRow::default()
        };
        let way =
            |dev: Option<&str>, via: Option<&str>| WayRow { dev: dev.map(Into::into), via: via.map(Into::into), encap: None, weight: 1 };
        let several = vec![way(Some("e0"), Some("10.0.0.2")), way(Some("e1"), None)];
        assert_eq!(
            text(&[
                Body::Routes(vec![route("10.0.0.0/8", several)]),
                Body::Routes(vec![RouteRow {
                    mtu: Some(1400),
                    src: Some("10.0.0.1".into()),
                    ..route("10.9.0.0/16", vec![way(None, None)])
                }]),
                Body::Routes(vec![]),
            ]),
            "\
table  type     prefix       metric  way
main   unicast  10.0.0.0/8        0  via 10.0.0.2 dev e0 weight 1, dev e1 weight 1
main   unicast  10.9.0.0/16       0  left to the kernel src 10.0.0.1 mtu 1400
"
        );
    }

    #[test]
    fn what_is_empty_is_said_to_be() {
        assert_eq!(text(&[Body::Drops(vec![])]), "none\n");
        assert_eq!(text(&[Body::Mirror(None)]), "the router mirrors nobody: its network file says everything\n");
    }
}

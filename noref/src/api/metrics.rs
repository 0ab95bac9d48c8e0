//! Metrics for Prometheus. `docs/metrics.md` lists them; a test holds the two together.

use std::collections::BTreeMap;
use std::fmt;
use std::net::{Ipv4Addr, Ipv6Addr};

use prometheus_client::collector::Collector;
use prometheus_client::encoding::{DescriptorEncoder, MetricEncoder, prometheus_text};
use prometheus_client::metrics::MetricType;
use prometheus_client::registry::Registry;
use route::{DropReason, TableId};

use super::counts::{self, Totals};
use super::rows::{MirrorRow, PortRow, SidRow};
use super::tables::state_word;
use crate::run::{Router, Snapshot};

/// Everything that there is to tell of a router at this moment, in Prometheus' text format.
pub fn text(router: &Router) -> String {
    let mut registry = Registry::default();
    registry.register_collector(Box::new(Sample(metrics(router))));
    let mut text = String::new();
    // A string takes everything.
    let _ = prometheus_text::encode(&mut text, &registry);
    text
}

/// Labels of a value: name and value of each.
type Labels = Vec<(&'static str, String)>;

/// A metric with its values, each under its labels.
#[derive(Debug)]
struct Metric {
    /// Without the `_total` of counters, which the encoder adds.
    name: &'static str,
    help: &'static str,
    values: Vec<(Labels, Value)>,
}

#[derive(Clone, Copy, Debug)]
enum Value {
    Counter(u64),
    /// A counter in seconds.
    Seconds(f64),
    Gauge(f64),
}

/// What is there at one moment.
#[derive(Debug)]
struct Sample(Vec<Metric>);

impl Collector for Sample {
    fn encode(&self, mut encoder: DescriptorEncoder<'_>) -> fmt::Result {
        for Metric { name, help, values } in &self.0 {
            let Some((_, first)) = values.first() else { continue };
            let kind = if matches!(first, Value::Gauge(_)) { MetricType::Gauge } else { MetricType::Counter };
            let mut family = encoder.encode_descriptor(name, help, None, kind)?;
            for (labels, value) in values {
                if labels.is_empty() {
                    value.encode(&mut family)?;
                } else {
                    value.encode(&mut family.encode_family(labels)?)?;
                }
            }
        }
        Ok(())
    }
}

impl Value {
    fn encode(self, encoder: &mut MetricEncoder<'_>) -> fmt::Result {
        match self {
            Value::Counter(value) => encoder.encode_counter::<Labels, u64, u64>(&value, None),
            Value::Seconds(value) => encoder.encode_counter::<Labels, f64, u64>(&value, None),
            Value::Gauge(value) => encoder.encode_gauge(&value),
        }
    }
}

/// All metrics of a router, in their order.
fn metrics(router: &Router) -> Vec<Metric> {
    let snapshots = router.snapshots();
    let ports = counts::ports(router, &snapshots);
    let mut all = vec![
        metric(
            "noref_build_info",
            "Always 1; its labels say which noref this is.",
            [(vec![("version", env!("CARGO_PKG_VERSION").to_owned())], Value::Gauge(1.0))],
        ),
        metric("noref_uptime_seconds", "Since the router started.", [(vec![], Value::Gauge(router.uptime().as_secs_f64()))]),
    ];
    all.extend(of_router(&counts::totals(&snapshots, &ports)));
    all.extend(of_ports(&ports));
    all.extend(of_workers(&snapshots));
    all.push(drops(&snapshots));
    all.extend(of_sids(&counts::sids(router, &snapshots)));
    all.extend(of_tables(router));
    if let Some(standing) = router.mirror() {
        all.extend(of_mirror(&counts::mirror(&standing)));
    }
    all
}

fn metric(name: &'static str, help: &'static str, values: impl IntoIterator<Item = (Labels, Value)>) -> Metric {
    Metric { name, help, values: values.into_iter().collect() }
}

fn of_router(totals: &Totals) -> [Metric; 7] {
    let Totals { forwarded, originated, delivered, dropped: _, reassembled, waiting, kernel_passed, kernel_failed } = *totals;
    let counter = |name, help, value| metric(name, help, [(vec![], Value::Counter(value))]);
    [
        counter("noref_forwarded_packets", "Packets that came in and went out.", forwarded),
        counter("noref_originated_packets", "Packets that the router made: answers, errors, solicitations.", originated),
        counter("noref_delivered_packets", "Packets for the router itself.", delivered),
        counter("noref_reassembled_fragments", "Fragments that wait for others or became a datagram.", reassembled),
        counter("noref_kernel_passed_packets", "Packets left to the kernel, which took them.", kernel_passed),
        counter("noref_kernel_failed_packets", "Packets left to the kernel, which did not take them.", kernel_failed),
        metric("noref_waiting_packets", "Packets held back until a neighbour answers.", [(vec![], Value::Gauge(waiting as f64))]),
    ]
}

fn of_ports(ports: &[PortRow]) -> Vec<Metric> {
    let each =
        |name, help, of: fn(&PortRow) -> Value| metric(name, help, ports.iter().map(|row| (vec![("port", row.port.clone())], of(row))));
    let info = |row: &PortRow| (vec![("port", row.port.clone()), ("driver", row.driver.clone())], Value::Gauge(1.0));
    let events = ports.iter().flat_map(|row| {
        let labels = |event: &String| vec![("port", row.port.clone()), ("event", event.clone())];
        row.events.iter().map(move |(event, count)| (labels(event), Value::Counter(*count)))
    });
    vec![
        metric("noref_port_info", "Always 1; its labels say what stands behind a port.", ports.iter().map(info)),
        each("noref_port_up", "1 when the router's tables have the port up, else 0.", |row| Value::Gauge(f64::from(row.up))),
        each("noref_port_received_packets", "Frames that came in.", |row| Value::Counter(row.received.packets)),
        each("noref_port_received_bytes", "Bytes of them.", |row| Value::Counter(row.received.bytes)),
        each("noref_port_sent_packets", "Frames that went out.", |row| Value::Counter(row.sent.packets)),
        each("noref_port_sent_bytes", "Bytes of them.", |row| Value::Counter(row.sent.bytes)),
        each("noref_port_delivered_packets", "Packets that came in here and were for the router itself.", |row| {
            Value::Counter(row.delivered)
        }),
        metric("noref_port_events", "What else happened at a port, by its name in docs/ports.md.", events),
    ]
}

fn of_workers(snapshots: &[Snapshot]) -> [Metric; 6] {
    let each = |name, help, of: fn(&Snapshot) -> Value| {
        metric(name, help, snapshots.iter().map(|snapshot| (vec![("worker", snapshot.worker.to_string())], of(snapshot))))
    };
    [
        each("noref_worker_seconds", "Time since a worker began.", |worker| Value::Seconds(worker.time.total.as_secs_f64())),
        each("noref_worker_busy_seconds", "Of it, time in rounds in which frames came.", |worker| {
            Value::Seconds(worker.time.busy.as_secs_f64())
        }),
        each("noref_worker_busy_clocks", "The same in clocks of the time stamp counter; 0 where it is not steady.", |worker| {
            Value::Counter(worker.time.busy_clocks.unwrap_or(0))
        }),
        each("noref_worker_received_packets", "Packets that came in by a worker's queues.", |worker| {
            Value::Counter(worker.queues.iter().map(|queue| queue.counters.rx_packets).sum())
        }),
        each("noref_worker_rounds", "Times that a worker looked at its queues.", |worker| Value::Counter(worker.time.rounds)),
        each("noref_worker_sleeps", "Times that a worker went to sleep.", |worker| Value::Counter(worker.time.sleeps)),
    ]
}

/// Every reason, those that did not occur too: a rate can be told from the first packet on.
fn drops(snapshots: &[Snapshot]) -> Metric {
    let dropped = |reason| snapshots.iter().map(|snapshot| snapshot.counters.drops(reason)).sum();
    let row = |reason: &DropReason| (vec![("reason", reason.word().to_owned())], Value::Counter(dropped(*reason)));
    metric("noref_dropped_packets", "Packets dropped, by the reason's name in docs/drop-reasons.md.", DropReason::ALL.iter().map(row))
}

fn of_sids(sids: &[SidRow]) -> [Metric; 3] {
    let each = |name, help, of: fn(&SidRow) -> u64| {
        let labels = |row: &SidRow| vec![("sid", row.sid.clone()), ("table", row.table.clone()), ("behavior", row.behavior.clone())];
        metric(name, help, sids.iter().map(|row| (labels(row), Value::Counter(of(row)))))
    };
    [
        each("noref_sid_packets", "Packets that a SID processed.", |row| row.packets),
        each("noref_sid_bytes", "Bytes of them, from the IPv6 header on.", |row| row.bytes),
        each("noref_sid_errors", "Packets that a SID could not process.", |row| row.errors),
    ]
}

fn of_tables(router: &Router) -> [Metric; 2] {
    let (v4, v6) = router.editor(|editor| (editor.tables::<Ipv4Addr>(), editor.tables::<Ipv6Addr>()));
    let of = |family: &'static str, tables: Vec<(TableId, usize)>| {
        let labels = move |table: TableId| vec![("family", family.to_owned()), ("table", table.to_string())];
        tables.into_iter().map(move |(table, prefixes)| (labels(table), Value::Gauge(prefixes as f64)))
    };
    let mut states = BTreeMap::<&str, usize>::new();
    for neighbour in router.tables().network.neighbours.list() {
        *states.entry(state_word(neighbour.load().0)).or_default() += 1;
    }
    let neighbours = states.into_iter().map(|(state, count)| (vec![("state", state.to_owned())], Value::Gauge(count as f64)));
    [
        metric("noref_prefixes", "Prefixes with a route, by table.", of("inet", v4).chain(of("inet6", v6))),
        metric("noref_neighbours", "Neighbours, by state.", neighbours),
    ]
}

fn of_mirror(row: &MirrorRow) -> [Metric; 3] {
    let happened = |(what, count): (&String, &u64)| (vec![("what", what.clone())], Value::Counter(*count));
    [
        metric(
            "noref_mirror_settled",
            "1 when all that the kernel told is in the tables, else 0.",
            [(vec![], Value::Gauge(f64::from(row.settled)))],
        ),
        metric("noref_mirror_unsupported", "What is left to the kernel.", [(vec![], Value::Gauge(row.unsupported as f64))]),
        metric("noref_mirror_happenings", "What happened while the kernel was followed.", row.counters.iter().map(happened)),
    ]
}

#[cfg(test)]
mod tests {
    use super::super::testing::router;
    use super::*;
    use crate::api::counts::mirror_counters;

    const NETWORK: &str = "ip link set e0 up\nip addr add 10.0.0.1/24 dev e0\n\
                           ip -6 route add fc00::e encap seg6local action End dev e0\nip neigh add 10.0.0.2 lladdr 2:0:0:0:0:1 dev e0\n";

    #[test]
    fn it_is_the_text_that_prometheus_reads() {
        let text = text(&router(NETWORK, &["e0", "e1"]));
        for line in [
            "# TYPE noref_port_received_packets_total counter",
            "noref_port_received_packets_total{port=\"e1\"} 0",
            "noref_port_up{port=\"e0\"} 1.0",
            "noref_forwarded_packets_total 0",
            "noref_dropped_packets_total{reason=\"no_route\"} 0",
            "noref_sid_packets_total{sid=\"fc00::e/128\",table=\"main\",behavior=\"End\"} 0",
            "noref_neighbours{state=\"permanent\"} 1.0",
            "noref_prefixes{family=\"inet6\",table=\"main\"}",
        ] {
            assert!(text.lines().any(|known| known.starts_with(line)), "{line} in {text}");
        }
        for line in text.lines().filter(|line| !line.starts_with('#')) {
            let (name, value) = line.rsplit_once(' ').expect("a value");
            assert!(name.starts_with("noref_") && value.parse::<f64>().is_ok(), "{line}");
        }
    }

    #[test]
    fn every_metric_is_in_the_document() {
        let document = std::fs::read_to_string(testkit::root().join("docs/metrics.md")).unwrap();
        let mut all = metrics(&router(NETWORK, &["e0"]));
        let counters = mirror_counters(&Default::default()).map(|(name, count)| (name.to_owned(), count)).into();
        all.extend(of_mirror(&MirrorRow { counters, ..MirrorRow::default() }));
        for metric in all {
            let counts = metric.values.first().is_none_or(|(_, value)| !matches!(value, Value::Gauge(_)));
            let name = format!("`{}{}`", metric.name, if counts && metric.name != "noref_neighbours" { "_total" } else { "" });
            assert!(document.contains(&name), "docs/metrics.md does not have {name}");
            for (label, _) in metric.values.iter().flat_map(|(labels, _)| labels) {
                assert!(document.contains(&format!("`{label}`")), "docs/metrics.md does not have the label {label}");
            }
        }
        for (name, _) in mirror_counters(&Default::default()) {
            assert!(document.contains(&format!("`{name}`")), "docs/metrics.md does not explain {name}");
        }
    }
}

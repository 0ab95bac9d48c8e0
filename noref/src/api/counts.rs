//! Rows of what is counted: each worker's numbers, added up.

use std::collections::BTreeMap;

use control::mirror::MirrorCounters;
use plane::{Counters, PacketCount, SidCount};
use route::{DropReason, SidId};

use super::rows::{CounterRow, DropRow, MirrorRow, PortRow, SidRow, UnsupportedRow, WorkerRow};
use super::tables::{addresses, name};
use crate::report;
use crate::run::{MirrorStanding, QueueSnapshot, Router, Snapshot};

/// What all workers counted of the router as a whole.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Totals {
    pub forwarded: u64,
    pub originated: u64,
    pub delivered: u64,
    pub dropped: u64,
    pub reassembled: u64,
    pub waiting: u64,
    pub kernel_passed: u64,
    pub kernel_failed: u64,
}

impl Totals {
    /// Each with its name. One added and forgotten here does not compile.
    pub fn named(&self) -> [(&'static str, u64); 8] {
        let Totals { forwarded, originated, delivered, dropped, reassembled, waiting, kernel_passed, kernel_failed } = *self;
        [
            ("forwarded", forwarded),
            ("originated", originated),
            ("delivered", delivered),
            ("dropped", dropped),
            ("reassembled", reassembled),
            ("waiting", waiting),
            ("kernel_passed", kernel_passed),
            ("kernel_failed", kernel_failed),
        ]
    }
}

/// What all workers counted; `ports` are the rows of their ports.
pub fn totals(snapshots: &[Snapshot], ports: &[PortRow]) -> Totals {
    let sum = |of: fn(&Counters) -> u64| snapshots.iter().map(|snapshot| of(&snapshot.counters)).sum();
    Totals {
        forwarded: sum(|counters| counters.forwarded),
        originated: sum(|counters| counters.originated),
        delivered: ports.iter().map(|port| port.delivered).sum(),
        dropped: sum(Counters::dropped),
        reassembled: sum(|counters| counters.reassembled),
        waiting: snapshots.iter().map(|snapshot| snapshot.waiting as u64).sum(),
        kernel_passed: snapshots.iter().map(|snapshot| snapshot.kernel.passed).sum(),
        kernel_failed: snapshots.iter().map(|snapshot| snapshot.kernel.failed).sum(),
    }
}

/// The ports, in their places.
pub fn ports(router: &Router, snapshots: &[Snapshot]) -> Vec<PortRow> {
    let states = router.ports();
    router.editor(|editor| {
        let row = |state: &crate::run::PortState| {
            let queues = snapshots.iter().flat_map(|snapshot| &snapshot.queues).filter(|queue| queue.place == state.place);
            let sum = QueueSnapshot::sum(queues);
            let (received, sent) = sum.as_ref().map(QueueSnapshot::traffic).unwrap_or_default();
            let link = editor.links().of_port(state.place);
            let counts: Vec<_> = snapshots.iter().map(|snapshot| snapshot.counters.of_port(editor.links(), state.place)).collect();
            PortRow {
                port: state.name.clone(),
                driver: state.driver.to_owned(),
                queues: state.queues.into(),
                up: link.is_some_and(|link| link.up),
                mac: link.map(|link| link.mac.to_string()).unwrap_or_default(),
                mtu: link.map_or(0, |link| link.mtu),
                addresses: link.map(addresses).unwrap_or_default(),
                received,
                sent,
                delivered: counts.iter().map(|count| count.delivered).sum(),
                waiting: counts.iter().map(|count| count.waiting).sum(),
                events: sum.map(|sum| events(&sum)).unwrap_or_default(),
                notes: state.notes.clone(),
            }
        };
        states.iter().map(row).collect()
    })
}

/// What happened at a queue besides packets that came and went.
fn events(queue: &QueueSnapshot) -> BTreeMap<String, u64> {
    queue.events.iter().filter(|(_, count)| *count > 0).map(|(event, count)| ((*event).to_owned(), *count)).collect()
}

/// The workers, by number.
pub fn workers(snapshots: &[Snapshot]) -> Vec<WorkerRow> {
    let row = |snapshot: &Snapshot| {
        let (received, sent) = QueueSnapshot::sum(snapshot.queues.iter()).as_ref().map(QueueSnapshot::traffic).unwrap_or_default();
        let queue = |queue: &QueueSnapshot| match queue.queue {
            Some(number) => format!("{}/{number}", queue.port),
            None => format!("{} ({} to send)", queue.port, queue.driver),
        };
        let (total, busy) = (snapshot.time.total.as_secs_f64(), snapshot.time.busy.as_secs_f64());
        let each = |amount: f64| Some(amount / received.packets as f64).filter(|_| received.packets != 0);
        WorkerRow {
            worker: snapshot.worker as u64,
            core: snapshot.core.map(|core| core as u64),
            queues: snapshot.queues.iter().map(queue).collect(),
            seconds: total,
            busy: if total > 0.0 { busy / total } else { 0.0 },
            packet_ns: each(busy * 1e9),
            packet_clocks: snapshot.time.busy_clocks.and_then(|clocks| each(clocks as f64)),
            received,
            sent,
            forwarded: snapshot.counters.forwarded,
            originated: snapshot.counters.originated,
            dropped: snapshot.counters.dropped(),
        }
    };
    snapshots.iter().map(row).collect()
}

/// Every SID, by table and prefix.
pub fn sids(router: &Router, snapshots: &[Snapshot]) -> Vec<SidRow> {
    let mut all = router.sids();
    all.sort_unstable_by_key(|(table, prefix, _)| (*table, *prefix));
    let before = router.counted_before();
    router.editor(|editor| {
        let row = |(table, prefix, id): (route::TableId, route::Prefix<std::net::Ipv6Addr>, route::SidId)| {
            // One that went since it was listed.
            let sid = router.tables().sids.snapshot(id.0)?;
            let mut row = SidRow {
                sid: format!("{}/{}", prefix.addr(), prefix.len()),
                table: table.to_string(),
                behavior: sid.descriptor().name.to_owned(),
                action: sid.display_with(&|dev| Some(name(editor.links(), dev))).to_string(),
                ..SidRow::default()
            };
            let count = sid_count(snapshots, &before, id);
            (row.packets, row.bytes, row.errors) = (count.processed.packets, count.processed.bytes, count.errors);
            Some(row)
        };
        all.into_iter().filter_map(row).collect()
    })
}

/// What was counted under the number of a SID before it came, while that is not known: it shows zeros until then.
pub const NOT_KNOWN: SidCount = SidCount { processed: PacketCount { packets: u64::MAX, bytes: u64::MAX }, errors: u64::MAX };

/// What was counted at a SID, over all workers, without what its number had `before` it came.
pub fn sid_count(snapshots: &[Snapshot], before: &BTreeMap<SidId, SidCount>, id: SidId) -> SidCount {
    report::sid(snapshots.iter().map(|snapshot| &snapshot.counters), before, id)
}

/// Why packets were dropped, most frequent first; only reasons that occurred.
pub fn drops(snapshots: &[Snapshot]) -> Vec<DropRow> {
    let row =
        |(reason, packets): (DropReason, u64)| DropRow { reason: reason.word().to_owned(), packets, meaning: reason.meaning().to_owned() };
    report::drops(snapshots.iter().map(|snapshot| &snapshot.counters)).into_iter().map(row).collect()
}

/// Everything that is counted of the router as a whole, then of each port.
pub fn counters(snapshots: &[Snapshot], ports: &[PortRow]) -> Vec<CounterRow> {
    let of_router = totals(snapshots, ports).named().map(|(counter, value)| CounterRow { port: None, counter: counter.to_owned(), value });
    let of_port = |port: &PortRow| {
        let own = [
            ("received_packets", port.received.packets),
            ("received_bytes", port.received.bytes),
            ("sent_packets", port.sent.packets),
            ("sent_bytes", port.sent.bytes),
            ("delivered_packets", port.delivered),
        ];
        let own = own.map(|(counter, value)| (counter.to_owned(), value));
        let events = port.events.clone();
        let name = port.port.clone();
        own.into_iter().chain(events).map(move |(counter, value)| CounterRow { port: Some(name.clone()), counter, value })
    };
    of_router.into_iter().chain(ports.iter().flat_map(of_port)).collect()
}

/// What is left to the kernel; nothing of a router that mirrors nobody.
pub fn unsupported(standing: Option<&MirrorStanding>) -> Vec<UnsupportedRow> {
    let all = standing.map(|standing| standing.unsupported.as_slice()).unwrap_or_default();
    all.iter().map(|left| UnsupportedRow { what: left.what.clone(), reason: left.reason.to_string() }).collect()
}

/// How far the mirror stands from the kernel.
pub fn mirror(standing: &MirrorStanding) -> MirrorRow {
    MirrorRow {
        settled: standing.settled,
        quiet: standing.last_event.as_secs_f64(),
        unsupported: standing.unsupported.len() as u64,
        counters: mirror_counters(&standing.counters).into_iter().map(|(name, value)| (name.to_owned(), value)).collect(),
    }
}

/// Each of the mirror's counters with its name. One added and forgotten here does not compile.
pub fn mirror_counters(counters: &MirrorCounters) -> [(&'static str, u64); 9] {
    let MirrorCounters { events, malformed, lost, truncated, dumps, torn, refused, checks, differences } = *counters;
    [
        ("events", events),
        ("malformed", malformed),
        ("lost", lost),
        ("truncated", truncated),
        ("dumps", dumps),
        ("torn", torn),
        ("refused", refused),
        ("checks", checks),
        ("differences", differences),
    ]
}

//! What workers counted, written into the report.

use std::collections::BTreeMap;
use std::net::Ipv6Addr;

use plane::{Counters, SidCount, Tables};
use route::{DropReason, Links, Prefix, SidId, TableId};

use super::{DropReport, Report, SidReport};

impl Report {
    /// Adds what happened within the router: what was delivered at each port (the report has them in their places), left to the kernel, dropped, and done at
    /// SIDs. `counters` are those of each worker.
    pub fn count(&mut self, links: &Links, tables: &Tables, sids: &Sids<'_>, counters: &[&Counters]) {
        for (place, port) in self.ports.iter_mut().enumerate() {
            port.delivered = counters.iter().map(|counters| counters.of_port(links, place).delivered).sum();
        }
        if tables.beside_kernel {
            self.kernel = Some(counters.iter().map(|counters| counters.kernel).sum());
        }
        let drop = |(reason, packets): (DropReason, u64)| DropReport { reason: reason.word(), packets, meaning: reason.meaning() };
        self.drops.extend(drops(counters.iter().copied()).into_iter().map(drop));
        for (table, prefix, id) in sids.all {
            let Some(known) = tables.sids.snapshot(id.0) else { continue };
            let count = sid(counters.iter().copied(), sids.before, *id);
            self.sids.push(SidReport {
                sid: format!("{}/{}", prefix.addr(), prefix.len()),
                table: table.to_string(),
                behavior: known.descriptor().name.to_owned(),
                packets: count.processed.packets,
                bytes: count.processed.bytes,
                errors: count.errors,
            });
        }
    }
}

/// Why packets were dropped and how many, over all workers, most frequent first; only reasons that occurred.
pub fn drops<'a>(counters: impl Iterator<Item = &'a Counters> + Clone) -> Vec<(DropReason, u64)> {
    let of = |reason: &DropReason| (*reason, counters.clone().map(|counters| counters.drops(*reason)).sum::<u64>());
    let mut drops: Vec<_> = DropReason::ALL.iter().map(of).filter(|(_, packets)| *packets > 0).collect();
    drops.sort_by(|(a, many), (b, others)| others.cmp(many).then(a.word().cmp(b.word())));
    drops
}

/// The SIDs of a router.
pub struct Sids<'a> {
    /// Where each stands, and its number.
    pub all: &'a [(TableId, Prefix<Ipv6Addr>, SidId)],
    /// What was counted under their numbers before they came.
    pub before: &'a BTreeMap<SidId, SidCount>,
}

/// What was counted at a SID, over all workers, without what its number had `before` it came.
pub fn sid<'a>(counters: impl Iterator<Item = &'a Counters>, before: &BTreeMap<SidId, SidCount>, id: SidId) -> SidCount {
    let mut sum = SidCount::default();
    for count in counters.map(|counters| counters.sid(id)) {
        sum.processed.packets += count.processed.packets;
        sum.processed.bytes += count.processed.bytes;
        sum.errors += count.errors;
    }
    let before = before.get(&id).copied().unwrap_or_default();
    // A worker that did not answer when it was asked may have counted some of it.
    sum.processed.packets = sum.processed.packets.saturating_sub(before.processed.packets);
    sum.processed.bytes = sum.processed.bytes.saturating_sub(before.processed.bytes);
    sum.errors = sum.errors.saturating_sub(before.errors);
    sum
}

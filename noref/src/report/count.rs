//! What workers counted, written into the report.

use std::net::Ipv6Addr;

use plane::{Counters, Tables};
use route::{DropReason, Links, Prefix, SidId, TableId};

use super::{DropReport, Report, SidReport};

impl Report {
    /// Adds what happened within the router: what was delivered at each port (the report has them in their places), left to the kernel, dropped, and done at
    /// SIDs. `counters` are those of each worker.
    pub fn count(&mut self, links: &Links, tables: &Tables, sids: &[(TableId, Prefix<Ipv6Addr>, SidId)], counters: &[&Counters]) {
        for (place, port) in self.ports.iter_mut().enumerate() {
            if let Some(link) = links.of_port(place) {
                port.delivered = counters.iter().map(|counters| counters.link(link.index).delivered).sum();
            }
        }
        if tables.beside_kernel {
            self.kernel = Some(counters.iter().map(|counters| counters.kernel).sum());
        }
        for &reason in DropReason::ALL {
            let packets = counters.iter().map(|counters| counters.drops(reason)).sum();
            if packets > 0 {
                self.drops.push(DropReport { reason: reason.word(), packets, meaning: reason.meaning() });
            }
        }
        self.drops.sort_by(|a, b| b.packets.cmp(&a.packets).then(a.reason.cmp(b.reason)));
        for (table, prefix, id) in sids {
            let Some(sid) = tables.sids.snapshot(id.0) else { continue };
            let mut report = SidReport {
                sid: format!("{}/{}", prefix.addr(), prefix.len()),
                table: table.to_string(),
                behavior: sid.descriptor().name.to_owned(),
                packets: 0,
                bytes: 0,
                errors: 0,
            };
            for count in counters.iter().map(|counters| counters.sid(*id)) {
                report.packets += count.processed.packets;
                report.bytes += count.processed.bytes;
                report.errors += count.errors;
            }
            self.sids.push(report);
        }
    }
}

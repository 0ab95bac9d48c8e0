//! What workers counted, written into the report.

use control::Configuration;
use plane::Counters;
use route::DropReason;

use super::{DropReport, Report, SidReport};

impl Report {
    /// Adds what happened within the router: what was delivered at each port (the report has them in their places), dropped, and done at SIDs. `counters`
    /// are those of each worker.
    pub fn count(&mut self, configuration: &Configuration, counters: &[&Counters]) {
        let links = configuration.editor.links();
        for (place, port) in self.ports.iter_mut().enumerate() {
            if let Some(link) = links.of_port(place) {
                port.delivered = counters.iter().map(|counters| counters.link(link.index).delivered).sum();
            }
        }
        for &reason in DropReason::ALL {
            let packets = counters.iter().map(|counters| counters.drops(reason)).sum();
            if packets > 0 {
                self.drops.push(DropReport { reason: reason.word(), packets, meaning: reason.meaning() });
            }
        }
        self.drops.sort_by(|a, b| b.packets.cmp(&a.packets).then(a.reason.cmp(b.reason)));
        for sid in &configuration.sids {
            let mut report = SidReport {
                sid: sid.prefix.to_string(),
                table: sid.table.to_string(),
                behavior: sid.sid.descriptor().name.to_owned(),
                packets: 0,
                bytes: 0,
                errors: 0,
            };
            for count in counters.iter().map(|counters| counters.sid(sid.id)) {
                report.packets += count.processed.packets;
                report.bytes += count.processed.bytes;
                report.errors += count.errors;
            }
            self.sids.push(report);
        }
    }
}

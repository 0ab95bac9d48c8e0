//! The router that packets are sent through: the network file's tables and one worker.

use std::collections::BTreeMap;
use std::path::Path;
use std::time::Duration;

use control::{Configuration, Diagnostic};
use plane::{Sent, Step, Worker};
use port::{Received, Time};
use route::{IfIndex, Tick};

use crate::args::{PortName, Refs};
use crate::failure::Failure;
use crate::network;
use crate::report::{Report, Sids};

/// Packets within this time may be one burst, as when a worker looks at its ports now and then.
const TOGETHER: Duration = Duration::from_micros(100);

/// Longer than anything waits: a neighbour is given up after seconds, a datagram's fragments after 30 s (IPv4) or 60 s (IPv6).
const SETTLING: Duration = Duration::from_secs(120);

/// A router with its tables, its one worker and its clock, which is that of the captures.
pub struct Engine {
    configuration: Configuration,
    worker: Worker,
    /// Interface and Ethernet address of each port.
    links: Vec<(IfIndex, [u8; 6])>,
    /// When the tables have something to do by themselves.
    due: Option<Tick>,
    /// The latest time seen: the clock does not go back when a capture does.
    now: Time,
    /// When the burst being collected began.
    began: Option<Time>,
    tracing: bool,
}

impl Engine {
    /// A router as the network file `net` describes it, configured at the time `begin`.
    ///
    /// # Errors
    /// When the file can not be read or something in it is wrong.
    pub fn new(net: &Path, ports: &[PortName], begin: Time, refs: Refs, tracing: bool) -> Result<Engine, Failure> {
        let mut configuration = network::read(net, &network::without_devices(ports), begin)?;
        let due = configuration.editor.keep_up();

        let known = configuration.editor.links();
        let links = (0..ports.len()).map(|port| known.of_port(port).map_or((IfIndex(0), [0; 6]), |link| (link.index, link.mac.0)));
        let links = links.collect();
        let mut worker = Worker::new(configuration.tables.clone(), refs.into());
        worker.trace(tracing);
        Ok(Engine { configuration, worker, links, due, now: Time::ZERO, began: None, tracing })
    }

    /// What the network file says that is probably not meant so.
    pub fn warnings(&self) -> &[Diagnostic] {
        &self.configuration.warnings
    }

    /// True when the packets collected are to be processed before one of `time` is taken: it comes later than a burst lasts, or a timer is due
    /// before it. Traced packets go one by one, so that each one's steps stand together.
    pub fn must_run_before(&self, time: Time) -> bool {
        self.began.is_some_and(|began| self.tracing || time < began || time.since(began) > TOGETHER)
    }

    /// Collects a packet that arrives at port number `port`. False when the burst is full.
    pub fn receive(&mut self, port: usize, packet: Received) -> bool {
        let (_, mac) = self.links.get(port).copied().unwrap_or((IfIndex(0), [0; 6]));
        let time = packet.time;
        self.began.get_or_insert(time);
        self.worker.receive(port, packet.into_ethernet(mac).buf, time)
    }

    /// Processes the packets collected.
    pub fn run(&mut self) {
        if self.began.take().is_some() {
            self.worker.run();
        }
    }

    /// Sets the clock forward to `time` and fires the timers due until then, each at its time.
    pub fn advance(&mut self, time: Time) {
        let tick = Tick::from_nanos(time.0);
        if self.due.is_some_and(|due| due <= tick) {
            self.configuration.editor.set_time(tick);
            self.due = self.configuration.editor.keep_up();
        }
        while let Some(due) = self.worker.next_due().filter(|due| *due <= time) {
            self.worker.advance(due.max(self.now));
            if self.worker.next_due() == Some(due) {
                break;
            }
        }
        self.now = self.now.max(time);
    }

    /// Lets time pass until nothing waits for a neighbour or a fragment any more, so that each packet's end has a name.
    pub fn settle(&mut self) {
        let end = self.now.after(SETTLING);
        while !self.worker.is_idle()
            && let Some(due) = self.worker.next_due().filter(|due| *due <= end)
        {
            self.advance(due);
            if self.worker.next_due() == Some(due) {
                break;
            }
        }
    }

    /// Hands over the frames to be sent, in order.
    pub fn drain(&mut self, send: impl FnMut(Sent<'_>)) {
        self.worker.drain(send);
    }

    /// The steps since the last call.
    pub fn steps(&mut self) -> Vec<Step> {
        self.worker.take_steps()
    }

    /// The buffers that packets are read into.
    pub fn pool(&mut self) -> &mut port::Pool {
        self.worker.pool()
    }

    /// Writes down what happened within the router.
    pub fn report(&self, report: &mut Report) {
        let Configuration { editor, tables, .. } = &self.configuration;
        let all = self.configuration.placed_sids();
        let sids = Sids { all: &all, before: &BTreeMap::new() };
        report.count(editor.links(), tables, &sids, &[self.worker.counters()]);
    }
}

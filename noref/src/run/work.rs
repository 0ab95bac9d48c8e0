//! A worker's thread: frames from its queues through the router and out again, until it is told to end.

use std::sync::Arc;
use std::time::Duration;

use plane::{Counters, Tables, Worker};
use port::{Received, Time};
use route::RouteRefs;

use super::clock::Clock;
use super::queue::Queue;
use super::stop::Stop;
use crate::stderr::say;

/// Frames taken from a queue before the next one has its turn.
const TURN: usize = 64;
/// Rounds at the end, enough for what the rings of a queue hold.
const LAST_ROUNDS: usize = 64;
/// The longest sleep; anything that happens ends it sooner.
const LONGEST_SLEEP: Duration = Duration::from_secs(3600);
/// Longer than anything waits: see `SETTLING` of the replay's engine.
const SETTLING: Duration = Duration::from_secs(120);

/// One worker with its share of the ports' queues: all that it needs, and nothing of it shared but the tables it reads.
pub struct Work {
    worker: Worker,
    queues: Vec<Queue>,
    /// For each port, by its place, the queue of the share that sends for it.
    ways: Vec<Option<usize>>,
    batch: Vec<Received>,
    clock: Clock,
    stop: Stop,
    busy_poll: bool,
}

/// What a worker leaves behind.
pub struct Done {
    pub counters: Counters,
    pub queues: Vec<QueueDone>,
}

/// What happened at one of its queues.
pub struct QueueDone {
    pub place: usize,
    pub counters: port::Counters,
    pub events: Vec<(&'static str, u64)>,
}

impl Work {
    /// A worker that owns `queues`. It sends by those only, so a share has a queue of each port.
    pub fn new(tables: Arc<Tables>, queues: Vec<Queue>, stop: Stop, busy_poll: bool) -> Work {
        let ports = queues.iter().map(|queue| queue.place + 1).max().unwrap_or(0);
        let ways = (0..ports).map(|place| queues.iter().position(|queue| queue.place == place)).collect();
        let worker = Worker::new(tables, RouteRefs::Noref);
        Work { worker, queues, ways, batch: Vec::with_capacity(TURN), clock: Clock::start(), stop, busy_poll }
    }

    /// Works until it is told to end. What has come in by then is still forwarded.
    pub fn run(mut self) -> Done {
        self.worker.online();
        while !self.stop.is_told() {
            if !self.round() && !self.busy_poll {
                self.sleep();
            }
        }
        for _ in 0..LAST_ROUNDS {
            if !self.round() {
                break;
            }
        }
        self.worker.offline();
        self.settle();
        let done = |mut queue: Queue| QueueDone { place: queue.place, counters: queue.port().counters(), events: queue.events() };
        Done { counters: self.worker.counters().clone(), queues: self.queues.into_iter().map(done).collect() }
    }

    /// Gives each queue its turn, and the timers theirs. False when nothing came in.
    fn round(&mut self) -> bool {
        let now = self.clock.now();
        let mut came = false;
        for place in 0..self.queues.len() {
            let Some(queue) = self.queues.get_mut(place) else { break };
            let mut batch = std::mem::take(&mut self.batch);
            queue.receive(&mut self.worker, &mut batch, TURN);
            let in_port = queue.place;
            for packet in batch.drain(..) {
                came = true;
                if !self.worker.receive(in_port, packet.buf, now) {
                    self.forward();
                }
            }
            self.batch = batch;
        }
        // An empty burst, too, tells writers that nothing is borrowed any more.
        self.forward();
        if self.worker.next_due().is_some_and(|due| due <= now) {
            self.worker.advance(now);
            self.send();
        }
        came
    }

    fn forward(&mut self) {
        self.worker.run();
        self.send();
    }

    /// Sends what the worker has to send.
    fn send(&mut self) {
        let Work { worker, queues, ways, .. } = self;
        worker.drain(|sent| {
            let way = ways.get(sent.port).copied().flatten();
            if let Some(queue) = way.and_then(|way| queues.get_mut(way)) {
                queue.send(&sent.buf, sent.time);
            }
        });
        for queue in queues {
            queue.flush();
        }
    }

    /// Waits for frames, the next timer or the end. Writers of tables do not wait for this worker meanwhile.
    fn sleep(&mut self) {
        let now = self.clock.now();
        let until = self.worker.next_due().map_or(LONGEST_SLEEP, |due| due.since(now));
        self.worker.offline();
        let descriptors: Vec<_> =
            self.queues.iter().filter_map(|queue| queue.port().descriptor()).chain([self.stop.descriptor()]).collect();
        // A timer that is due is not waited for, one that was not served is no reason to spin.
        if let Err(error) = port::live::wait_any(&descriptors, until.max(Duration::from_millis(1))) {
            // The kernel tells it once. A device that comes up again is used again.
            say(format_args!("an interface went down or away: {error}"));
        }
        self.worker.online();
    }

    /// Lets time pass, for the packets only that wait for a neighbour or a fragment: each end gets its name. Nothing is sent any more.
    fn settle(&mut self) {
        let mut now: Time = self.clock.now();
        let end = now.after(SETTLING);
        while !self.worker.is_idle()
            && let Some(due) = self.worker.next_due().filter(|due| *due <= end)
        {
            now = now.max(due);
            self.worker.advance(now);
            self.worker.drain(|_| {});
            if self.worker.next_due() == Some(due) {
                break;
            }
        }
    }
}

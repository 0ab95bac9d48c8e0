//! A worker's thread: frames from its queues through the router and out again, until it is told to end.

use std::sync::Arc;
use std::time::{Duration, Instant};

use plane::{Tables, Worker};
use port::{Received, Time};
use route::RouteRefs;

use super::clock::Clock;
use super::mailbox::{Inbox, Request};
use super::queue::Queue;
use super::slow::Ways;
use super::snapshot::{QueueSnapshot, Snapshot, WorkTime};
use super::stopwatch::Stopwatch;
use crate::stderr::say;
use crate::trace::Probes;

/// Frames taken from a queue before the next one has its turn.
const TURN: usize = 64;
/// Rounds at the end, enough for what the rings of a queue hold.
const LAST_ROUNDS: usize = 64;
/// How long is looked for frames that follow before sleeping: waking up takes longer than this.
const SPIN: Duration = Duration::from_micros(20);
/// The longest sleep; anything that happens ends it sooner.
const LONGEST_SLEEP: Duration = Duration::from_secs(3600);
/// Longer than anything waits: see `SETTLING` of the replay's engine.
const SETTLING: Duration = Duration::from_secs(120);

/// One worker with its share of the ports' queues: all that it needs, and nothing of it shared but the tables it reads.
pub struct Work {
    number: usize,
    core: Option<usize>,
    worker: Worker,
    queues: Vec<Queue>,
    /// For each port, by its place, the queue of the share that sends for it.
    ways: Vec<Option<usize>>,
    /// What happened at queues that were removed, a port together.
    gone: Vec<QueueSnapshot>,
    batch: Vec<Received>,
    clock: Clock,
    inbox: Inbox,
    /// How packets go to the kernel, beside one.
    kernel: Option<Ways>,
    probes: Probes,
    /// A trace is on: packets go one at a time.
    traces: bool,
    busy_poll: bool,
    stopwatch: Stopwatch,
    sleeps: u64,
    told_to_end: bool,
}

/// What is a worker's own.
#[derive(Default)]
pub struct Share {
    /// Its queues: one of each port, so that it can send there.
    pub queues: Vec<Queue>,
    /// How packets go to the kernel, beside one.
    pub kernel: Option<Ways>,
}

impl Work {
    /// Worker `number`, which owns its share.
    pub fn new(number: usize, tables: Arc<Tables>, share: Share, inbox: Inbox, busy_poll: bool) -> Work {
        let Share { queues, kernel } = share;
        let mut work = Work {
            number,
            core: None,
            worker: Worker::new(tables, RouteRefs::Noref),
            queues,
            ways: Vec::new(),
            gone: Vec::new(),
            batch: Vec::with_capacity(TURN),
            clock: Clock::start(),
            inbox,
            kernel,
            probes: Probes::new(number),
            traces: false,
            busy_poll,
            stopwatch: Stopwatch::start(),
            sleeps: 0,
            told_to_end: false,
        };
        work.find_ways();
        work
    }

    /// Works until it is told to end; what it counted until then. What has come in by then is still forwarded.
    pub fn run(mut self) -> Snapshot {
        match port::live::pin_to_core(self.number) {
            Ok(()) => self.core = Some(self.number),
            Err(error) => say(format_args!("worker {} stays on no core of its own: {error}", self.number)),
        }
        self.worker.online();
        let mut idle_since = None;
        loop {
            if self.inbox.has_any() {
                self.serve();
                // Nothing would wake a worker that sleeps now.
                if self.told_to_end {
                    break;
                }
            }
            if self.round() {
                idle_since = None;
            } else if !self.busy_poll {
                let since = *idle_since.get_or_insert_with(Instant::now);
                if since.elapsed() >= SPIN {
                    self.sleep();
                    idle_since = None;
                }
            }
        }
        self.queues.iter_mut().for_each(Queue::stop_receiving);
        for _ in 0..LAST_ROUNDS {
            if !self.round() {
                break;
            }
        }
        self.worker.offline();
        self.settle();
        self.snapshot()
    }

    /// Gives each queue its turn, and the timers theirs. False when nothing came in.
    fn round(&mut self) -> bool {
        let begin = Instant::now();
        self.stopwatch.begin(begin);
        let now = self.clock.at(begin);
        let mut came = false;
        for place in 0..self.queues.len() {
            came |= self.turn(place, now);
        }
        // An empty burst, too, tells writers that nothing is borrowed any more.
        if self.traces {
            self.forward_untraced();
        } else {
            self.forward();
        }
        if self.worker.next_due().is_some_and(|due| due <= now) {
            self.worker.advance(now);
            self.send();
        }
        if self.traces {
            self.probes.tell(self.worker.take_steps());
            self.look_at_traces();
        }
        self.stopwatch.end(came);
        came
    }

    /// Takes in what a queue has, a turn of it. False when it has nothing.
    fn turn(&mut self, place: usize, now: Time) -> bool {
        let Some(queue) = self.queues.get_mut(place).filter(|queue| queue.receives()) else { return false };
        let mut batch = std::mem::take(&mut self.batch);
        queue.receive(&mut self.worker, &mut batch, TURN);
        let (in_port, came) = (queue.place, !batch.is_empty());
        for packet in batch.drain(..) {
            if self.traces {
                self.trace(in_port, packet, now);
            } else if !self.worker.receive(in_port, packet.buf, now) {
                self.forward();
            }
        }
        self.batch = batch;
        came
    }

    fn forward(&mut self) {
        self.worker.run();
        self.send();
    }

    /// Takes a packet through the router alone when somebody may want to know its steps, else with the others.
    #[cold]
    fn trace(&mut self, in_port: usize, packet: Received, now: Time) {
        let wanted = self.probes.arrive(self.worker.frames(), in_port, &packet.buf);
        if wanted {
            self.forward_untraced();
        }
        let room = self.worker.receive(in_port, packet.buf, now);
        if wanted {
            self.forward();
            self.probes.tell(self.worker.take_steps());
        } else if !room {
            self.forward_untraced();
        }
    }

    /// Forwards what was received of which nobody wants to know the steps.
    fn forward_untraced(&mut self) {
        self.worker.trace(false);
        self.forward();
        self.worker.trace(self.traces);
    }

    /// Begins to write down steps when somebody wants them, and stops when nobody does.
    #[cold]
    fn look_at_traces(&mut self) {
        let on = !self.probes.are_off();
        if on != self.traces {
            self.traces = on;
            self.worker.trace(on);
        }
    }

    /// Sends what the worker has to send.
    fn send(&mut self) {
        let Work { worker, queues, ways, .. } = self;
        worker.drain_together(|sent| {
            let way = ways.get(sent.port).copied().flatten();
            if let Some(queue) = way.and_then(|way| queues.get_mut(way)) {
                sent.bufs.iter().for_each(|buf| queue.send(buf, sent.time));
            }
        });
        for queue in queues {
            queue.flush();
        }
        if let Some(kernel) = &mut self.kernel {
            kernel.pass(&mut self.worker);
        }
    }

    /// Does what is asked for, between two bursts.
    #[cold]
    fn serve(&mut self) {
        for request in self.inbox.take() {
            match request {
                // Whoever asked may have given up.
                Request::Snapshot(to) => _ = to.send(self.snapshot()),
                Request::Trace(wanted) => {
                    // One too many is over at once, which whoever asked sees.
                    let _ = self.probes.add(wanted);
                    self.look_at_traces();
                }
                Request::AddQueues(queues) => {
                    self.queues.extend(queues);
                    self.find_ways();
                }
                Request::RemoveQueues(place, done) => {
                    self.remove(place);
                    let _ = done.send(());
                }
                Request::Ways(mut ways) => {
                    if let Some(before) = &self.kernel {
                        ways.go_on_from(before);
                    }
                    self.kernel = Some(ways);
                }
                Request::Stop => self.told_to_end = true,
            }
        }
    }

    fn snapshot(&mut self) -> Snapshot {
        let mut queues: Vec<_> = self.queues.iter_mut().map(Queue::snapshot).collect();
        // A port that came back goes on counting where it was.
        self.gone.iter().cloned().for_each(|gone| gone.add_to(&mut queues));
        Snapshot {
            worker: self.number,
            core: self.core,
            counters: self.worker.counters().clone(),
            waiting: self.worker.waiting(),
            queues,
            time: WorkTime { sleeps: self.sleeps, ..self.stopwatch.time() },
            kernel: self.kernel.as_ref().map(Ways::count).unwrap_or_default(),
        }
    }

    /// Lets the queues of a port go: what came in by them is forwarded first. Dropped, a queue waits for what it was given.
    fn remove(&mut self, place: usize) {
        let now = self.clock.now();
        for at in (0..self.queues.len()).filter(|&at| self.queues[at].place == place).collect::<Vec<_>>() {
            self.queues[at].stop_receiving();
            for _ in 0..LAST_ROUNDS {
                if !self.turn(at, now) {
                    break;
                }
            }
        }
        self.forward();
        let (gone, stay): (Vec<Queue>, Vec<Queue>) = std::mem::take(&mut self.queues).into_iter().partition(|queue| queue.place == place);
        self.queues = stay;
        for mut queue in gone {
            queue.snapshot().add_to(&mut self.gone);
        }
        self.find_ways();
    }

    /// Which queue sends for which port: one that receives too, if there is one.
    fn find_ways(&mut self) {
        let ports = self.queues.iter().map(|queue| queue.place + 1).max().unwrap_or(0);
        let way = |place| {
            let of_port = self.queues.iter().enumerate().filter(|(_, queue)| queue.place == place);
            of_port.max_by_key(|(_, queue)| queue.receives()).map(|(at, _)| at)
        };
        self.ways = (0..ports).map(way).collect();
    }

    /// Waits for frames, the next timer or a request. Writers of tables do not wait for this worker meanwhile.
    fn sleep(&mut self) {
        let now = self.clock.now();
        let until = self.worker.next_due().map_or(LONGEST_SLEEP, |due| due.since(now));
        self.sleeps += 1;
        self.worker.offline();
        let receiving = self.queues.iter().filter(|queue| queue.receives());
        let descriptors: Vec<_> = receiving.filter_map(|queue| queue.port().descriptor()).chain([self.inbox.descriptor()]).collect();
        // A timer that is due is not waited for, one that was not served is no reason to spin.
        if let Err(error) = port::live::wait_any(&descriptors, until.max(Duration::from_millis(1))) {
            // The kernel tells it once. A device that comes up again is used again.
            say(format_args!("an interface went down or away: {error}"));
        }
        self.worker.online();
    }

    /// Lets time pass, for the packets only that wait for a neighbour or a fragment: each end gets its name. What is sent for it is counted, so it goes out: mostly
    /// the errors that tell sources of their packets' end.
    fn settle(&mut self) {
        let mut now: Time = self.clock.now();
        let end = now.after(SETTLING);
        while !self.worker.is_idle()
            && let Some(due) = self.worker.next_due().filter(|due| *due <= end)
        {
            now = now.max(due);
            self.worker.advance(now);
            self.send();
            if self.worker.next_due() == Some(due) {
                break;
            }
        }
    }
}

//! A worker's part in traces. It takes packets one at a time while a trace is on, keeps a few bytes of each and compares its steps with the filters.

use std::collections::VecDeque;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::mpsc::{Receiver, RecvTimeoutError, SyncSender, TrySendError, sync_channel};
use std::time::{Duration, Instant};

use plane::Step;

use super::Filter;
use super::layers::{Layer, layers};

/// Packets told of that the one who asked has not read yet. Beyond them packets are missed, and counted.
const BACKLOG: usize = 1024;
/// Packets remembered because they wait, for a neighbour or a fragment, and go on later.
const WAITING: usize = 256;
/// Longer than anything waits: fragments are given up after a minute.
const LONGEST_WAIT: Duration = Duration::from_secs(61);
/// Steps remembered of one. Its neighbour may be asked for again and again.
const STEPS: usize = 64;
/// Traces at the same time.
const TRACES: usize = 8;

/// A trace, as it is given to each worker.
#[derive(Clone)]
pub struct Wanted {
    filter: Filter,
    /// The place of the filter's port among the ports.
    port: Option<usize>,
    bytes: bool,
    tell: SyncSender<Told>,
    shared: Arc<Shared>,
}

/// The other end of it. The trace is over when it goes.
pub struct Watch {
    told: Receiver<Told>,
    shared: Arc<Shared>,
}

/// Read and written only while a trace is on.
#[derive(Default)]
struct Shared {
    over: AtomicBool,
    missed: AtomicU64,
}

/// A packet that a trace is for, or what became of it later.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Told {
    pub worker: usize,
    /// The worker's number of it; one that waited comes again under it.
    pub frame: u64,
    /// The port that it came in by, by its place among the ports; none of what did not come in.
    pub port: Option<usize>,
    /// At least one, in the order in which they happened.
    pub steps: Vec<Step>,
    /// Its bytes as they came in, when they are wanted and it just came in.
    pub bytes: Option<Box<[u8]>>,
}

/// True of a packet that does not go on at once: more may come of it.
fn wait(steps: &[Step]) -> bool {
    steps.iter().any(|step| step.stage == "wait")
}

impl Told {
    /// True when more may come of it later.
    pub fn waits(&self) -> bool {
        wait(&self.steps)
    }
}

/// A trace to be asked of workers, and what comes of it. `port` is the place of the port that the filter names.
pub fn watch(filter: Filter, port: Option<usize>, bytes: bool) -> (Wanted, Watch) {
    let (tell, told) = sync_channel(BACKLOG);
    let shared = Arc::new(Shared::default());
    (Wanted { filter, port, bytes, tell, shared: shared.clone() }, Watch { told, shared })
}

impl Watch {
    /// The next packet.
    ///
    /// # Errors
    /// When none came in that time, or no worker is left.
    pub fn next(&self, patience: Duration) -> Result<Told, RecvTimeoutError> {
        self.told.recv_timeout(patience)
    }

    /// Packets that came faster than they were read.
    pub fn missed(&self) -> u64 {
        self.shared.missed.load(Ordering::Relaxed)
    }
}

impl Drop for Watch {
    fn drop(&mut self) {
        self.shared.over.store(true, Ordering::Relaxed);
    }
}

/// All traces that a worker takes part in.
pub struct Probes {
    worker: usize,
    wanted: Vec<Wanted>,
    /// What came in and has no step yet.
    arrived: Option<Arrived>,
    /// What waits, oldest first, by the worker's number.
    waiting: VecDeque<(u64, Kept)>,
    /// When something last began to wait.
    waited: Option<Instant>,
}

/// A packet as it came in.
struct Arrived {
    frame: u64,
    port: usize,
    layers: Vec<Layer>,
    bytes: Option<Box<[u8]>>,
}

/// What is remembered of a packet that waits.
struct Kept {
    port: usize,
    layers: Vec<Layer>,
    steps: Vec<Step>,
}

impl Probes {
    /// Those of worker number `worker`: none yet.
    pub fn new(worker: usize) -> Probes {
        Probes { worker, wanted: Vec::new(), arrived: None, waiting: VecDeque::new(), waited: None }
    }

    /// Takes part in a trace too. False when there are too many already: that one is over then.
    pub fn add(&mut self, wanted: Wanted) -> bool {
        let room = self.wanted.len() < TRACES;
        if room {
            self.wanted.push(wanted);
        }
        room
    }

    /// True when no trace is on. Traces that are over end here.
    pub fn are_off(&mut self) -> bool {
        self.wanted.retain(|wanted| !wanted.shared.over.load(Ordering::Relaxed));
        if self.wanted.is_empty() {
            *self = Probes::new(self.worker);
        }
        self.wanted.is_empty()
    }

    /// Looks at a frame that comes in next, by the port in place `port`, under the worker's number `frame`. True when its steps are to be told: by what it has
    /// in its headers, or because it may be what another waits for.
    pub fn arrive(&mut self, frame: u64, port: usize, bytes: &[u8]) -> bool {
        let layers = layers(bytes);
        let takes = |wanted: &Wanted| wanted.port.is_none_or(|wanted| wanted == port) && wanted.filter.takes_headers(Some(&layers));
        let wanted = self.waited.is_some_and(|since| since.elapsed() < LONGEST_WAIT) || self.wanted.iter().any(takes);
        if wanted {
            let kept = self.wanted.iter().any(|wanted| wanted.bytes).then(|| bytes.into());
            self.arrived = Some(Arrived { frame, port, layers, bytes: kept });
        }
        wanted
    }

    /// Tells whoever wants to know of these steps: those of the frame that arrived last, and of others that went on because of it.
    pub fn tell(&mut self, steps: Vec<Step>) {
        let arrived = self.arrived.take();
        for steps in steps.chunk_by(|a, b| (a.frame, a.time) == (b.frame, b.time)) {
            let Some(last) = steps.last() else { continue };
            let arrived = arrived.as_ref().filter(|arrived| arrived.frame == last.frame);
            let kept = if arrived.is_none() { self.take(last.frame) } else { None };
            let (port, layers) = match (arrived, &kept) {
                (Some(arrived), _) => (Some(arrived.port), Some(arrived.layers.as_slice())),
                (None, Some(kept)) => (Some(kept.port), Some(kept.layers.as_slice())),
                (None, None) => (None, None),
            };
            let earlier = kept.as_ref().map_or(&[][..], |kept| &kept.steps);
            for wanted in &self.wanted {
                let port_fits = wanted.port.is_none_or(|wanted| port == Some(wanted));
                if !port_fits || !wanted.filter.takes_headers(layers) {
                    continue;
                }
                let before = !earlier.is_empty() && wanted.filter.takes_steps(earlier);
                let all: Vec<Step> = earlier.iter().chain(steps).cloned().collect();
                if !wanted.filter.takes_steps(&all) {
                    continue;
                }
                // What led to it comes first, unless it was told already.
                if !earlier.is_empty() && !before {
                    wanted.tell(Told { worker: self.worker, frame: last.frame, port, steps: earlier.to_vec(), bytes: None });
                }
                let bytes = arrived.and_then(|arrived| arrived.bytes.clone()).filter(|_| wanted.bytes);
                wanted.tell(Told { worker: self.worker, frame: last.frame, port, steps: steps.to_vec(), bytes });
            }
            match kept {
                // It may go on once more.
                Some(mut kept) => {
                    let room = STEPS.saturating_sub(kept.steps.len());
                    kept.steps.extend(steps.iter().take(room).cloned());
                    self.waiting.push_back((last.frame, kept));
                }
                None => {
                    if let (true, Some(port), Some(layers)) = (wait(steps), port, layers) {
                        let kept = Kept { port, layers: layers.to_vec(), steps: steps.to_vec() };
                        if self.waiting.len() == WAITING {
                            self.waiting.pop_front();
                        }
                        self.waiting.push_back((last.frame, kept));
                        self.waited = Some(Instant::now());
                    }
                }
            }
        }
    }

    fn take(&mut self, frame: u64) -> Option<Kept> {
        let at = self.waiting.iter().position(|(known, _)| *known == frame)?;
        self.waiting.remove(at).map(|(_, kept)| kept)
    }
}

impl Wanted {
    fn tell(&self, told: Told) {
        // One who is gone has said so in `over`.
        if let Err(TrySendError::Full(_)) = self.tell.try_send(told) {
            self.shared.missed.fetch_add(1, Ordering::Relaxed);
        }
    }
}

#[cfg(test)]
mod tests {
    use port::Time;
    use testkit::frame::{Ether, Ipv4, Udp};

    use super::*;

    fn step(frame: u64, time: u64, stage: &'static str) -> Step {
        Step { frame, time: Time(time), stage, text: format!("{stage}: text") }
    }

    fn filter(words: &str) -> Filter {
        Filter::parse(&words.split_whitespace().collect::<Vec<_>>()).unwrap()
    }

    fn packet() -> Vec<u8> {
        let (a, b) = ("192.0.2.1".parse().unwrap(), "198.51.100.9".parse().unwrap());
        (Ether::test() / Ipv4::new(a, b) / Udp::new(1, 2) / b"data").bytes()
    }

    /// Sends one packet, number 7 by port 1, with these stages past a trace of these words; the stages that are told.
    fn told(words: &str, stages: &[&'static str]) -> Vec<Vec<&'static str>> {
        let mut probes = Probes::new(3);
        let (wanted, watch) = watch(filter(words), None, false);
        assert!(probes.add(wanted));
        if !probes.arrive(7, 1, &packet()) {
            return Vec::new();
        }
        probes.tell(stages.iter().map(|stage| step(7, 5, stage)).collect());
        std::iter::from_fn(|| watch.next(Duration::ZERO).ok()).map(|told| told.steps.iter().map(|step| step.stage).collect()).collect()
    }

    #[test]
    fn only_packets_that_meet_the_filter_are_told_of() {
        for (words, is) in [
            ("", true),
            ("from 192.0.2.0/24 to 198.51.100.9 proto udp", true),
            ("from 192.0.3.0/24", false),
            ("to 192.0.2.1", false),
            ("proto tcp", false),
            ("from fd00::/8", false),
            ("drop any", false),
        ] {
            assert_eq!(told(words, &["in", "out"]), if is { vec![vec!["in", "out"]] } else { vec![] }, "{words}");
        }
        assert_eq!(told("drop any", &["in", "drop"]), [["in", "drop"]]);
    }

    #[test]
    fn a_packet_that_waited_is_known_again_with_what_led_to_it() {
        let mut probes = Probes::new(3);
        let (every, all) = watch(filter("from 192.0.2.1"), Some(1), true);
        let (dropped, drops) = watch(filter("drop any"), None, false);
        assert!(probes.add(every) && probes.add(dropped));
        assert!(probes.arrive(7, 1, &packet()));
        probes.tell(vec![step(7, 5, "in"), step(7, 5, "wait"), step(7, 5, "out")]);
        // Its neighbour is asked once more.
        probes.tell(vec![step(7, 8, "out")]);
        // Later, as another one comes in by another port.
        assert!(probes.arrive(8, 0, &packet()));
        probes.tell(vec![step(8, 9, "in"), step(7, 9, "drop")]);

        let first = all.next(Duration::ZERO).unwrap();
        assert_eq!((first.frame, first.port, first.bytes.as_deref()), (7, Some(1), Some(&packet()[..])));
        for stage in ["out", "drop"] {
            let later = all.next(Duration::ZERO).unwrap();
            assert_eq!((later.frame, later.steps[0].stage, later.steps.len(), later.bytes), (7, stage, 1, None));
        }
        assert!(all.next(Duration::ZERO).is_err(), "port 0 is not that of the filter");

        let stages = |told: Told| told.steps.iter().map(|step| step.stage).collect::<Vec<_>>();
        assert_eq!(stages(drops.next(Duration::ZERO).unwrap()), ["in", "wait", "out", "out"]);
        assert_eq!(stages(drops.next(Duration::ZERO).unwrap()), ["drop"]);
    }

    #[test]
    fn packets_that_no_filter_is_for_are_not_looked_at_until_one_waits() {
        let mut probes = Probes::new(3);
        let (wanted, _watch) = watch(filter("from 192.0.2.1"), Some(1), false);
        assert!(probes.add(wanted));
        let other = (Ether::test() / Ipv4::test() / Udp::new(1, 2)).bytes();
        assert!(!probes.arrive(0, 0, &packet()), "another port");
        assert!(!probes.arrive(1, 1, &other), "another source");
        assert!(probes.arrive(2, 1, &packet()));
        probes.tell(vec![step(2, 5, "in"), step(2, 5, "wait")]);
        assert!(probes.arrive(3, 1, &other), "it may be what the other waits for");
    }

    #[test]
    fn what_is_not_read_is_bounded_and_counted() {
        let mut probes = Probes::new(3);
        let (wanted, watch) = watch(Filter::default(), None, false);
        assert!(probes.add(wanted));
        for frame in 0..BACKLOG as u64 + 10 {
            assert!(probes.arrive(frame, 0, &packet()));
            probes.tell(vec![step(frame, frame, "in"), step(frame, frame, "wait")]);
        }
        assert_eq!(watch.missed(), 10);
        assert_eq!(probes.waiting.len(), WAITING);
    }

    #[test]
    fn a_trace_ends_with_its_watch_and_there_are_only_so_many() {
        let mut probes = Probes::new(3);
        assert!(probes.are_off());
        let watches: Vec<_> = (0..TRACES).map(|_| watch(Filter::default(), None, false)).collect();
        let watches: Vec<_> = watches.into_iter().map(|(wanted, watch)| (probes.add(wanted), watch)).collect();
        assert!(watches.iter().all(|(added, _)| *added));
        assert!(!probes.add(watch(Filter::default(), None, false).0));
        drop(watches);
        assert!(probes.are_off());
    }
}

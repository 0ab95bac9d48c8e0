//! What a request is answered with.

use std::collections::BTreeMap;
use std::io::{self, Write};
use std::sync::mpsc::RecvTimeoutError;
use std::time::Duration;

use super::protocol::{Body, Refusal, Reply, Request, Trace, What};
use super::rows::{Traced, TracedFrame, TracedStep};
use super::{counts, language, tables};
use crate::run::Router;
use crate::trace::{Told, watch};

/// How often a trace looks whether somebody still wants it.
const LOOK: Duration = Duration::from_millis(100);
/// Packets between two such looks when there are many.
const STRIDE: u64 = 64;
/// Packets that waited, of which the number is remembered.
const WAITING: usize = 1024;

/// Where the lines of a reply go.
pub struct Answer<'a> {
    to: &'a mut dyn Write,
}

impl<'a> Answer<'a> {
    pub fn new(to: &'a mut dyn Write) -> Answer<'a> {
        Answer { to }
    }

    /// Writes the only or last line.
    ///
    /// # Errors
    /// Those of the other end.
    pub fn last(&mut self, body: Body) -> io::Result<()> {
        self.line(&Reply::last(body))?;
        self.to.flush()
    }

    /// Writes a line that others follow.
    ///
    /// # Errors
    /// Those of the other end.
    pub fn more(&mut self, body: Body) -> io::Result<()> {
        self.line(&Reply::followed(body))
    }

    /// Hands over what was written so far.
    fn flush(&mut self) -> io::Result<()> {
        self.to.flush()
    }

    fn line(&mut self, reply: &Reply) -> io::Result<()> {
        serde_json::to_writer(&mut *self.to, reply)?;
        self.to.write_all(b"\n")
    }
}

/// Answers a request. `wanted` says whether somebody still waits for a reply without end.
///
/// # Errors
/// Those of the other end.
pub fn answer(router: &Router, request: Request, wanted: &mut dyn FnMut() -> bool, answer: &mut Answer<'_>) -> io::Result<()> {
    match request {
        Request::Show(show) => self::show(router, show.what, answer),
        Request::Trace(request) => trace(router, request, wanted, answer),
        Request::Ip(lines) => language::ip(router, &lines, answer),
    }
}

fn show(router: &Router, what: What, answer: &mut Answer<'_>) -> io::Result<()> {
    let snapshots = || router.snapshots();
    let body = match what {
        What::Routes => return tables::routes(router, answer),
        What::Neighbours => return tables::neighbours(router, answer),
        What::Rules => Body::Rules(tables::rules(router)),
        What::Ports => Body::Ports(counts::ports(router, &snapshots())),
        What::Workers => Body::Workers(counts::workers(&snapshots())),
        What::Sids => Body::Sids(counts::sids(router, &snapshots())),
        What::Drops => Body::Drops(counts::drops(&snapshots())),
        What::Counters => {
            let snapshots = snapshots();
            Body::Counters(counts::counters(&snapshots, &counts::ports(router, &snapshots)))
        }
        What::Unsupported => Body::Unsupported(counts::unsupported(router.mirror().as_ref())),
        What::Mirror => Body::Mirror(router.mirror().as_ref().map(counts::mirror)),
    };
    answer.last(body)
}

fn trace(router: &Router, request: Trace, wanted: &mut dyn FnMut() -> bool, answer: &mut Answer<'_>) -> io::Result<()> {
    let ports = router.ports();
    let name = |place: usize| ports.iter().find(|port| port.place == place).map(|port| port.name.clone()).unwrap_or_default();
    let place = match &request.filter.port {
        None => None,
        Some(wanted) => match ports.iter().find(|port| port.name == *wanted) {
            Some(port) => Some(port.place),
            None => {
                let refusal = Refusal::new(format!("no port is called {wanted:?}")).accepting(ports.iter().map(|port| &port.name));
                return answer.last(Body::Error(refusal));
            }
        },
    };
    let (asked, watch) = watch(request.filter, place, request.bytes);
    router.trace(&asked);
    // From here on the workers alone keep it.
    drop(asked);
    let mut numbers = Numbers::default();
    let most = request.count.unwrap_or(u64::MAX);
    while numbers.given < most {
        match watch.next(LOOK) {
            Ok(told) => {
                let frame = frame(numbers.of(&told), told.port.map(name).unwrap_or_default(), told);
                answer.more(Body::Frame(frame))?;
                answer.flush()?;
                if numbers.given.is_multiple_of(STRIDE) && !wanted() {
                    break;
                }
            }
            Err(RecvTimeoutError::Timeout) if wanted() => {}
            Err(_) => break,
        }
    }
    answer.last(Body::Traced(Traced { packets: numbers.given, missed: watch.missed() }))
}

fn frame(number: u64, port: String, told: Told) -> TracedFrame {
    let time = told.steps.first().map(|step| step.time).unwrap_or_default();
    let step = |step: plane::Step| TracedStep { stage: step.stage.to_owned(), text: step.text };
    TracedFrame {
        frame: number,
        time: time.to_string(),
        port,
        steps: told.steps.into_iter().map(step).collect(),
        bytes: told.bytes.map(|bytes| super::hex::write(&bytes)),
    }
}

/// The numbers of packets in a trace: those of workers, which count apart, are made one row.
#[derive(Default)]
struct Numbers {
    given: u64,
    /// Of packets that waited, by worker and its number: more may come of them.
    waited: BTreeMap<(usize, u64), u64>,
}

impl Numbers {
    fn of(&mut self, told: &Told) -> u64 {
        let key = (told.worker, told.frame);
        let number = self.waited.get(&key).copied().unwrap_or_else(|| {
            self.given += 1;
            self.given - 1
        });
        if told.waits() {
            self.waited.insert(key, number);
            if self.waited.len() > WAITING {
                self.waited.pop_first();
            }
        }
        number
    }
}

#[cfg(test)]
mod tests {
    use port::Time;

    use super::*;

    fn told(worker: usize, frame: u64, stage: &'static str) -> Told {
        let step = plane::Step { frame, time: Time::ZERO, stage, text: String::new() };
        Told { worker, frame, port: Some(0), steps: vec![step], bytes: None }
    }

    #[test]
    fn packets_of_all_workers_are_one_row_and_one_that_waited_keeps_its_number() {
        let mut numbers = Numbers::default();
        assert_eq!(numbers.of(&told(0, 7, "out")), 0);
        assert_eq!(numbers.of(&told(1, 7, "wait")), 1);
        assert_eq!(numbers.of(&told(0, 8, "out")), 2);
        // As often as it comes: its neighbour is asked again, and again.
        assert_eq!([numbers.of(&told(1, 7, "out")), numbers.of(&told(1, 7, "out"))], [1, 1]);
        assert_eq!(numbers.given, 3);
        (0..5000).for_each(|frame| _ = numbers.of(&told(2, frame, "wait")));
        assert_eq!(numbers.waited.len(), WAITING);
    }
}

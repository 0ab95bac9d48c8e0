//! A wrapper that writes down what passes through a port.

use std::io::{self, Write};
#[cfg(unix)]
use std::os::fd::BorrowedFd;
use std::time::Duration;

use crate::capture::Writer;
use crate::{Counters, Link, Pool, Port, Received, Time};

/// Writes the frames that a port receives and sends to captures, and is else that port. Packets received without Ethernet header are not written.
/// A capture that can not be written does not disturb the port: it ends there, and [`Recorder::failure`] says why.
#[derive(Debug)]
pub struct Recorder<P, W> {
    port: P,
    received: Option<Writer<W>>,
    sent: Option<Writer<W>>,
    failure: Option<io::Error>,
}

impl<P: Port, W: Write> Recorder<P, W> {
    /// Records what `port` receives and what it sends, each where a writer is given.
    pub fn new(port: P, received: Option<Writer<W>>, sent: Option<Writer<W>>) -> Recorder<P, W> {
        Recorder { port, received, sent, failure: None }
    }

    /// Why recording ended early.
    pub fn failure(&self) -> Option<&io::Error> {
        self.failure.as_ref()
    }

    /// The port, and the writers of what it received and sent.
    pub fn into_parts(self) -> (P, Option<Writer<W>>, Option<Writer<W>>) {
        (self.port, self.received, self.sent)
    }

    fn note(&mut self, outcome: io::Result<()>) {
        if let Err(error) = outcome {
            self.received = None;
            self.sent = None;
            self.failure = Some(error);
        }
    }
}

impl<P: Port, W: Write> Port for Recorder<P, W> {
    fn rx(&mut self, pool: &mut Pool, batch: &mut Vec<Received>, max: usize) -> io::Result<usize> {
        let before = batch.len();
        let outcome = self.port.rx(pool, batch, max);
        let mut frames = batch.iter().skip(before).filter(|packet| packet.link == Link::Ethernet);
        let written = match &mut self.received {
            Some(writer) => frames.try_for_each(|packet| writer.write(packet.time, &packet.buf)),
            None => Ok(()),
        };
        self.note(written);
        outcome
    }

    fn tx(&mut self, frame: &[u8], time: Time) {
        self.port.tx(frame, time);
        let written = self.sent.as_mut().map_or(Ok(()), |writer| writer.write(time, frame));
        self.note(written);
    }

    fn flush(&mut self) -> io::Result<()> {
        let written = self.received.iter_mut().chain(&mut self.sent).try_for_each(Writer::flush);
        self.note(written);
        self.port.flush()
    }

    fn ended(&self) -> bool {
        self.port.ended()
    }

    fn counters(&self) -> Counters {
        self.port.counters()
    }

    #[cfg(unix)]
    fn descriptor(&self) -> Option<BorrowedFd<'_>> {
        self.port.descriptor()
    }

    fn events(&mut self) -> Vec<(&'static str, u64)> {
        self.port.events()
    }

    fn stop_receiving(&mut self) {
        self.port.stop_receiving();
    }

    fn drain(&mut self, timeout: Duration) -> bool {
        self.port.drain(timeout)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::MemoryPort;
    use crate::capture::Reader;

    #[test]
    fn what_passes_is_written_down_as_it_passed() {
        let writer = || Some(Writer::new(Vec::new()).unwrap());
        let port = MemoryPort::once(vec![vec![1; 60], vec![2; 60]]).timed(Time(5_000), std::time::Duration::ZERO);
        let mut recorder = Recorder::new(port, writer(), writer());
        let mut pool = Pool::default();
        let mut batch = Vec::new();
        assert_eq!(recorder.rx(&mut pool, &mut batch, 9).unwrap(), 2);
        recorder.tx(&[3; 60], Time(6_000));
        recorder.flush().unwrap();
        assert!(recorder.failure().is_none());
        assert_eq!(recorder.counters().tx_packets, 1);
        let (_, received, sent) = recorder.into_parts();
        for (writer, expected) in [(received, vec![(1, 5_000), (2, 5_000)]), (sent, vec![(3, 6_000)])] {
            let bytes = io::Cursor::new(writer.unwrap().into_inner());
            let mut reader = Reader::new("recorded", Box::new(bytes)).unwrap();
            let mut seen = Vec::new();
            while let Some(packet) = reader.next(&mut pool).unwrap() {
                seen.push((packet.buf[0], packet.time.0));
            }
            assert_eq!(seen, expected);
        }
    }

    #[test]
    fn a_full_disk_ends_the_recording_and_not_the_port() {
        struct Full;
        impl Write for Full {
            fn write(&mut self, _: &[u8]) -> io::Result<usize> {
                Err(io::ErrorKind::StorageFull.into())
            }
            fn flush(&mut self) -> io::Result<()> {
                Ok(())
            }
        }
        assert!(Writer::new(Full).is_err());
        let mut recorder = Recorder::new(MemoryPort::default(), None, Writer::new(Limited(24)).ok());
        recorder.tx(&[0; 60], Time::ZERO);
        recorder.tx(&[0; 60], Time::ZERO);
        assert_eq!(recorder.failure().map(io::Error::kind), Some(io::ErrorKind::StorageFull));
        assert_eq!(recorder.counters().tx_packets, 2);

        struct Limited(usize);
        impl Write for Limited {
            fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
                self.0 = self.0.checked_sub(bytes.len()).ok_or(io::ErrorKind::StorageFull)?;
                Ok(bytes.len())
            }
            fn flush(&mut self) -> io::Result<()> {
                Ok(())
            }
        }
    }
}

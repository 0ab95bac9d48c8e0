//! A port that receives from a capture and sends to one.

use std::io::{self, Write};

use super::{Reader, Writer};
use crate::{Counters, Pool, Port, Received, Time};

/// A port between two captures, either of which may be missing: without input it receives nothing, without output it only counts what is sent.
#[derive(Debug)]
pub struct CapturePort<W> {
    input: Option<Reader>,
    output: Option<Writer<W>>,
    failed: Option<io::Error>,
    ended: bool,
    counters: Counters,
}

impl<W: Write> CapturePort<W> {
    /// A port that receives the packets of `input` and writes what is sent to `output`.
    pub fn new(input: Option<Reader>, output: Option<Writer<W>>) -> CapturePort<W> {
        CapturePort { ended: input.is_none(), input, output, failed: None, counters: Counters::default() }
    }
}

impl<W: Write> Port for CapturePort<W> {
    fn rx(&mut self, pool: &mut Pool, batch: &mut Vec<Received>, max: usize) -> io::Result<usize> {
        let Some(input) = &mut self.input else { return Ok(0) };
        for given in 0..max {
            match input.next(pool) {
                Ok(Some(packet)) => {
                    self.counters.received(&packet);
                    batch.push(packet);
                }
                Ok(None) => {
                    self.ended = true;
                    return Ok(given);
                }
                Err(error) => {
                    self.ended = true;
                    return Err(io::Error::other(error));
                }
            }
        }
        Ok(max)
    }

    fn tx(&mut self, frame: &[u8], time: Time) {
        if self.failed.is_none()
            && let Some(Err(error)) = self.output.as_mut().map(|output| output.write(time, frame))
        {
            self.failed = Some(error);
        }
        match self.failed {
            None => self.counters.sent(frame.len()),
            Some(_) => self.counters.tx_failed += 1,
        }
    }

    fn flush(&mut self) -> io::Result<()> {
        match (&self.failed, &mut self.output) {
            (Some(error), _) => Err(io::Error::new(error.kind(), error.to_string())),
            (None, Some(output)) => output.flush(),
            (None, None) => Ok(()),
        }
    }

    fn ended(&self) -> bool {
        self.ended
    }

    fn counters(&self) -> Counters {
        self.counters
    }
}

#[cfg(test)]
mod tests {
    use super::super::testing::capture;
    use super::*;

    #[test]
    fn a_port_receives_one_capture_and_sends_the_other() {
        let reader = |bytes: Vec<u8>| Reader::new("in", Box::new(io::Cursor::new(bytes))).unwrap();
        let mut broken = capture(&[(1, 10), (2, 20), (3, 30)]);
        broken.pop();
        let mut port = CapturePort::new(Some(reader(broken)), Some(Writer::new(Vec::new()).unwrap()));
        let (mut pool, mut batch) = (Pool::default(), Vec::new());
        assert_eq!(port.rx(&mut pool, &mut batch, 1).unwrap(), 1);
        assert!(!port.ended());
        let error = port.rx(&mut pool, &mut batch, 8).unwrap_err();
        assert!(error.to_string().contains("it breaks off"), "{error}");
        assert!(port.ended());
        assert_eq!(port.rx(&mut pool, &mut batch, 8).unwrap(), 0);
        for packet in batch.drain(..) {
            port.tx(&packet.buf, packet.time);
        }
        port.flush().unwrap();
        assert_eq!(port.counters(), Counters { rx_packets: 2, rx_bytes: 2, tx_packets: 2, tx_bytes: 2, ..Counters::default() });
        assert_eq!(port.output.unwrap().into_inner(), capture(&[(1, 10), (2, 20)]));
    }
}

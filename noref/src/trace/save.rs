//! Packets saved as they came in, each with its way as a comment.

use std::collections::{BTreeMap, HashMap};
use std::fmt::Write as _;
use std::fs::File;
use std::path::{Path, PathBuf};

use port::Time;
use port::capture::{CaptureInterface, PcapngWriter};

use super::text::{heading, step};
use super::time;
use crate::api::hex;
use crate::api::rows::TracedFrame;
use crate::failure::Failure;
use crate::stderr::say;

/// Packets whose bytes are kept because they wait and go on later.
const WAITING: usize = 1024;

/// A capture being written. It is whole behind every packet, however the program ends.
pub struct Save {
    path: PathBuf,
    writer: PcapngWriter<File>,
    interfaces: HashMap<String, CaptureInterface>,
    waiting: BTreeMap<u64, Vec<u8>>,
    saved: u64,
    /// Packets that did not come in: the router made them, or they came before the trace.
    without_bytes: u64,
}

impl Save {
    /// Begins a capture, in place of what stands there.
    ///
    /// # Errors
    /// When the file cannot be written.
    pub fn create(path: &Path) -> Result<Save, Failure> {
        let failed = |error| Failure::unusable(format!("{}: {error}", path.display()));
        let writer = File::create(path).and_then(PcapngWriter::new).map_err(failed)?;
        Ok(Save { path: path.to_owned(), writer, interfaces: HashMap::new(), waiting: BTreeMap::new(), saved: 0, without_bytes: 0 })
    }

    /// Saves a packet; one that waited is saved once more, with what happened then.
    ///
    /// # Errors
    /// Those of the file.
    pub fn take(&mut self, frame: &TracedFrame) -> Result<(), Failure> {
        let bytes = frame.bytes.as_deref().and_then(hex::read).or_else(|| self.waiting.get(&frame.frame).cloned());
        let Some(bytes) = bytes else {
            self.without_bytes += 1;
            return Ok(());
        };
        let written = self.write(frame, &bytes);
        written.map_err(|error| Failure::incomplete(format!("{}: {error}", self.path.display())))?;
        self.saved += 1;
        if frame.steps.iter().any(|step| step.stage == "wait") {
            self.waiting.insert(frame.frame, bytes);
            if self.waiting.len() > WAITING {
                self.waiting.pop_first();
            }
        }
        Ok(())
    }

    fn write(&mut self, frame: &TracedFrame, bytes: &[u8]) -> std::io::Result<()> {
        let interface = match self.interfaces.get(&frame.port) {
            Some(interface) => *interface,
            None => {
                let interface = self.writer.interface(&frame.port)?;
                self.interfaces.insert(frame.port.clone(), interface);
                interface
            }
        };
        let mut comment = heading(frame.frame, &frame.time).to_string();
        for one in &frame.steps {
            // A string takes everything.
            let _ = write!(comment, "\n{}", step(one));
        }
        self.writer.packet(interface, time(frame).unwrap_or(Time::ZERO), bytes, &comment)
    }

    /// Says what was saved.
    ///
    /// # Errors
    /// Those of the file.
    pub fn finish(mut self) -> Result<(), Failure> {
        self.writer.flush().map_err(|error| Failure::incomplete(format!("{}: {error}", self.path.display())))?;
        say(format_args!("{}: {} saved", self.path.display(), self.saved));
        if self.without_bytes > 0 {
            say(format_args!("{} did not come in while it was traced (the router made them, say) and were not saved", self.without_bytes));
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use testkit::capture;
    use testkit::replay::Scratch;

    use super::*;
    use crate::api::rows::TracedStep;

    #[test]
    fn packets_are_saved_as_they_came_in_with_their_way() {
        let scratch = Scratch::new();
        let path = scratch.path().join("trace.pcapng");
        let mut save = Save::create(&path).unwrap();
        let frame = |number, stage: &str, bytes: Option<&str>| TracedFrame {
            frame: number,
            time: "1700000000.000000009".into(),
            port: "e0".into(),
            steps: vec![TracedStep { stage: stage.into(), text: format!("what {stage} says") }],
            bytes: bytes.map(Into::into),
        };
        for told in [frame(0, "wait", Some("0102")), frame(1, "out", Some("03")), frame(0, "out", None), frame(2, "out", None)] {
            save.take(&told).unwrap();
        }
        assert_eq!((save.saved, save.without_bytes), (3, 1));
        save.finish().unwrap();

        let text = String::from_utf8_lossy(&std::fs::read(&path).unwrap()).into_owned();
        assert!(text.contains("frame 0 at 1700000000.000000009 s\n  wait     what wait says"));
        let packets: Vec<_> = capture::read(&path).into_iter().map(|record| (record.time.nanos(), record.bytes)).collect();
        assert_eq!(packets, [(9, vec![1, 2]), (9, vec![3]), (9, vec![1, 2])]);
    }
}

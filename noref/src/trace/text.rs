//! Packets' ways as text, as `noref replay --trace` prints them.

use std::fmt::Display;
use std::io::{self, Write};

use crate::api::rows::{TracedFrame, TracedStep};

/// The line above a packet's steps.
pub fn heading(frame: u64, time: impl Display) -> impl Display {
    std::fmt::from_fn(move |f| write!(f, "frame {frame} at {time} s"))
}

/// A step's line, as [`plane::Step`] shows itself.
pub fn step(step: &TracedStep) -> impl Display {
    std::fmt::from_fn(move |f| write!(f, "  {:<8} {}", step.stage, step.text))
}

/// Prints packets, an empty line between them.
#[derive(Default)]
pub struct Text {
    begun: bool,
}

impl Text {
    /// Prints a packet's way.
    ///
    /// # Errors
    /// Those of the output.
    pub fn print(&mut self, frame: &TracedFrame, output: &mut dyn Write) -> io::Result<()> {
        if std::mem::replace(&mut self.begun, true) {
            writeln!(output)?;
        }
        writeln!(output, "{}", heading(frame.frame, &frame.time))?;
        frame.steps.iter().try_for_each(|one| writeln!(output, "{}", step(one)))
    }
}

#[cfg(test)]
mod tests {
    use port::Time;

    use super::*;

    #[test]
    fn it_looks_as_in_a_replay() {
        let shown = plane::Step { frame: 2, time: Time(5), stage: "in", text: "e0: 50 bytes".into() };
        let told = TracedStep { stage: shown.stage.into(), text: shown.text.clone() };
        assert_eq!(step(&told).to_string(), shown.to_string());
        let frame = TracedFrame { frame: 2, time: Time(5).to_string(), steps: vec![told], ..TracedFrame::default() };
        let (mut text, mut output) = (Text::default(), Vec::new());
        text.print(&frame, &mut output).unwrap();
        text.print(&frame, &mut output).unwrap();
        let once = "frame 2 at 0.000000005 s\n  in       e0: 50 bytes\n";
        assert_eq!(String::from_utf8(output).unwrap(), format!("{once}\n{once}"));
    }
}

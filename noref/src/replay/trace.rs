//! Each packet's way: printed as it happens, or kept for the JSON document.

use plane::Step;
use port::Time;

use crate::failure::Failure;
use crate::report::{FrameTrace, StepTrace};
use crate::stdout::Stdout;
use crate::trace::heading;

/// What becomes of the steps.
pub enum Trace {
    /// Nobody asked for them.
    Off,
    /// Printed, each frame under a heading, again when time has passed. Holds the heading printed last.
    Text(Option<(u64, Time)>),
    /// Kept until the end, in the same parts. Holds the heading of the last part, too.
    Json(Vec<FrameTrace>, Option<(u64, Time)>),
}

impl Trace {
    pub fn new(wanted: bool, json: bool) -> Trace {
        match (wanted, json) {
            (false, _) => Trace::Off,
            (true, false) => Trace::Text(None),
            (true, true) => Trace::Json(Vec::new(), None),
        }
    }

    pub fn is_on(&self) -> bool {
        !matches!(self, Trace::Off)
    }

    /// Takes the steps since the last time.
    ///
    /// # Errors
    /// Those of standard output.
    pub fn take(&mut self, steps: impl IntoIterator<Item = Step>, stdout: &mut Stdout) -> Result<(), Failure> {
        for step in steps {
            match self {
                Trace::Off => {}
                Trace::Text(last) => {
                    if *last != Some((step.frame, step.time)) {
                        let gap = if last.is_some() { "\n" } else { "" };
                        stdout.line(format_args!("{gap}{}", heading(step.frame, step.time)))?;
                        *last = Some((step.frame, step.time));
                    }
                    stdout.line(step)?;
                }
                Trace::Json(frames, last) => {
                    if last.replace((step.frame, step.time)) != Some((step.frame, step.time)) {
                        frames.push(FrameTrace { frame: step.frame, time: step.time.to_string(), steps: Vec::new() });
                    }
                    if let Some(last) = frames.last_mut() {
                        last.steps.push(StepTrace { stage: step.stage, text: step.text });
                    }
                }
            }
        }
        Ok(())
    }

    /// Separates the steps from what is printed next, or hands over what was kept.
    ///
    /// # Errors
    /// Those of standard output.
    pub fn finish(self, stdout: &mut Stdout) -> Result<Option<Vec<FrameTrace>>, Failure> {
        match self {
            Trace::Json(frames, _) => Ok(Some(frames)),
            Trace::Text(Some(_)) => stdout.line("").map(|()| None),
            Trace::Text(None) | Trace::Off => Ok(None),
        }
    }
}

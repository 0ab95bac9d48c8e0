//! The way of a packet in words, a line a step.

use std::fmt;
use std::net::Ipv6Addr;

use port::Time;
use route::DstCache;

/// One step of one packet.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Step {
    /// Number of the frame, counted over all ports from 0.
    pub frame: u64,
    /// When the frame came in.
    pub time: Time,
    /// What kind of step: `in`, `lookup`, `seg6`, `forward`, `out`, `drop` …
    pub stage: &'static str,
    /// What happened.
    pub text: String,
}

/// `  lookup   fc00:1::e: rule 32766, table main: …`
impl fmt::Display for Step {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "  {:<8} {}", self.stage, self.text)
    }
}

/// Counters, routes found lately, and steps when they are wanted: all that deciding writes down.
#[derive(Default)]
pub(crate) struct Ledger {
    pub(crate) counters: crate::Counters,
    /// For destinations that stand in the configuration.
    pub(crate) found6: DstCache<Ipv6Addr>,
    steps: Option<Vec<Step>>,
}

impl Ledger {
    pub(crate) fn trace(&mut self, on: bool) {
        self.steps = on.then(Vec::new);
    }

    pub(crate) fn take_steps(&mut self) -> Vec<Step> {
        self.steps.as_mut().map(std::mem::take).unwrap_or_default()
    }

    #[inline]
    pub(crate) fn is_tracing(&self) -> bool {
        self.steps.is_some()
    }

    /// Writes a step down, whose words are made only when somebody wants them.
    #[inline]
    pub(crate) fn step(&mut self, packet: &crate::packet::Packet, stage: &'static str, text: impl FnOnce() -> String) {
        if let Some(steps) = &mut self.steps {
            steps.push(Step { frame: packet.number, time: packet.time, stage, text: text() });
        }
    }

    /// As [`Ledger::step`] for what no packet in hand caused.
    pub(crate) fn step_of(&mut self, frame: u64, time: Time, stage: &'static str, text: impl FnOnce() -> String) {
        if let Some(steps) = &mut self.steps {
            steps.push(Step { frame, time, stage, text: text() });
        }
    }
}

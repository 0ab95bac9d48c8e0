//! What the authors of the kernel patches measured, on machines of theirs: figures to hold ratios against, not rates.

use serde::Serialize;

/// Packets a second of a way without and with the patches.
#[derive(Serialize, Clone, Copy, PartialEq, Debug)]
pub struct Patches {
    /// Receive queues, a core each.
    pub queues: &'static [u32],
    /// Millions of packets a second without the patches, for each number of queues.
    pub before: &'static [f64],
    /// With them.
    pub after: &'static [f64],
}

impl Patches {
    /// With against without, for each number of queues.
    pub fn ratios(&self) -> impl Iterator<Item = f64> {
        self.before.iter().zip(self.after).map(|(before, after)| after / before)
    }

    /// Those of an SRv6 behaviour: the highest rate with at most 0.5 % loss, over two sockets.
    pub fn seg6local(way: &str) -> Option<Patches> {
        let (before, after): (&[f64], &[f64]) = match way {
            "End" => (&[0.740, 6.404, 6.550], &[0.756, 6.950, 10.124]),
            "End.DX4" => (&[0.791, 6.118, 3.305], &[0.811, 7.394, 10.205]),
            "End.DT4" => (&[0.481, 4.328, 3.351], &[0.489, 4.588, 7.153]),
            _ => return None,
        };
        Some(Patches { queues: &[1, 10, 16], before, after })
    }

    /// That of opening connections at a listener, whose answers are routed through three tables; on how many queues is not said.
    pub fn rules(tables_missed: usize) -> Option<Patches> {
        (tables_missed == 3).then_some(Patches { queues: &[], before: &[3.78], after: &[5.50] })
    }
}

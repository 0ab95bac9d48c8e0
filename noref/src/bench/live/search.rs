//! The highest rate that passes: raised and lowered by halves until it is known well enough.

use serde::Serialize;

/// Packets that may be lost, as a share of those offered: as the first series of kernel patches measured.
const LOSS: f64 = 0.005;
/// Halvings of the interval that the rate lies in: from 100 % to 1 % of the highest.
const HALVINGS: usize = 7;
/// A source that stays below this share of what is asked of it can do no more.
const KEEPS_UP: f64 = 0.97;

/// Traffic at one rate for a while.
#[derive(Serialize, Clone, Copy, PartialEq, Debug, Default)]
pub struct Probe {
    /// Packets that the source sent.
    pub sent: u64,
    /// Packets that came out at the other end.
    pub received: u64,
    pub seconds: f64,
    /// Nanoseconds of the workers for a packet that they took, where somebody tells.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub busy_ns: Option<f64>,
}

impl Probe {
    /// Packets a second that were sent.
    pub fn offered(&self) -> f64 {
        self.sent as f64 / self.seconds
    }

    /// Packets a second that came out.
    pub fn rate(&self) -> f64 {
        self.received as f64 / self.seconds
    }

    /// Share of the packets that were lost.
    pub fn loss(&self) -> f64 {
        self.sent.saturating_sub(self.received) as f64 / self.sent.max(1) as f64
    }

    /// Whether something came out and no more than [`LOSS`] was lost.
    pub fn passes(&self) -> bool {
        self.received > 0 && self.loss() <= LOSS
    }
}

/// The probe at the highest rate at which at most [`LOSS`] is lost. `offer` offers so many packets a second, or as many as it can. When packets are lost at any rate,
/// the probe with the lowest one.
///
/// # Errors
/// Those of `offer`.
pub fn highest<E>(mut offer: impl FnMut(Option<f64>) -> Result<Probe, E>) -> Result<Probe, E> {
    let all = offer(None)?;
    if all.passes() || all.received == 0 {
        return Ok(all);
    }
    let (mut low, mut high) = (0.0, all.offered());
    // What came out when more was offered is not far from what passes.
    let mut next = all.rate().min(high);
    let (mut best, mut lowest) = (None, all);
    for _ in 0..HALVINGS {
        let probe = offer(Some(next))?;
        if probe.passes() {
            best = Some(best.map_or(probe, |best: Probe| if best.rate() > probe.rate() { best } else { probe }));
            if probe.offered() < next * KEEPS_UP {
                break;
            }
            low = next;
        } else {
            lowest = probe;
            high = next;
        }
        next = f64::midpoint(low, high);
    }
    Ok(best.unwrap_or(lowest))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// What stands between source and sink passes so many packets a second; the source makes so many at most.
    fn found(passes: f64, source: f64) -> (Probe, usize) {
        let mut probes = 0;
        let offer = |rate: Option<f64>| {
            probes += 1;
            let sent = rate.unwrap_or(f64::MAX).min(source);
            Ok::<_, ()>(Probe { sent: sent as u64, received: sent.min(passes) as u64, seconds: 1.0, busy_ns: None })
        };
        (highest(offer).unwrap(), probes)
    }

    #[test]
    fn the_highest_rate_without_loss_is_found() {
        let (probe, probes) = found(1e6, 15e6);
        assert!((0.99e6..1.006e6).contains(&probe.rate()) && probe.loss() <= LOSS, "{probe:?}");
        assert!(probes <= HALVINGS + 1);
    }

    #[test]
    fn a_source_that_loses_nothing_is_asked_once() {
        assert_eq!(found(15e6, 1e6).1, 1);
        assert_eq!(found(0.0, 1e6), (Probe { sent: 1_000_000, received: 0, seconds: 1.0, busy_ns: None }, 1));
    }

    #[test]
    fn a_router_that_loses_at_any_rate_is_told_with_its_loss() {
        let offer = |rate: Option<f64>| {
            let sent = rate.unwrap_or(4e6) as u64;
            Ok::<_, ()>(Probe { sent, received: sent / 2, seconds: 1.0, busy_ns: None })
        };
        let probe = highest(offer).unwrap();
        assert!(probe.loss() > 0.4 && probe.offered() < 0.1e6, "{probe:?}");
    }
}

//! A progress bar on standard error, when that is a terminal.

use std::time::{Duration, Instant};

use indicatif::{HumanCount, ProgressBar, ProgressDrawTarget, ProgressStyle};

/// Packets between two looks at the clock.
const STRIDE: u64 = 1024;

/// Shows packets and their rate, and how much of the captures is read when their size is known.
pub struct Progress {
    bar: ProgressBar,
    began: Instant,
    packets: u64,
}

impl Progress {
    /// A bar over `total` bytes, or without end when that is unknown. It draws nothing where standard error is no terminal, nor when `hidden`.
    pub fn new(total: Option<u64>, hidden: bool) -> Progress {
        let target = if hidden { ProgressDrawTarget::hidden() } else { ProgressDrawTarget::stderr_with_hz(10) };
        let bar = ProgressBar::with_draw_target(total, target);
        let template = match total {
            Some(_) => "[{bar:30}] {percent:>3} %  {msg}",
            None => "{spinner} {msg}",
        };
        if let Ok(style) = ProgressStyle::with_template(template) {
            bar.set_style(style.progress_chars("=> "));
        }
        Progress { bar, began: Instant::now(), packets: 0 }
    }

    /// Counts a packet; `read` says how many bytes of the captures were read so far.
    pub fn packet(&mut self, read: impl FnOnce() -> u64) {
        self.packets += 1;
        if self.packets.is_multiple_of(STRIDE) && !self.bar.is_hidden() {
            self.bar.set_position(read());
            self.bar.set_message(rate(self.packets, self.began.elapsed()));
        }
    }

    /// Takes the bar off the screen.
    pub fn finish(self) {
        self.bar.finish_and_clear();
    }
}

/// `1,048,576 packets, 2,000,000 a second`.
fn rate(packets: u64, elapsed: Duration) -> String {
    let rate = packets as f64 / elapsed.as_secs_f64().max(1e-3);
    format!("{} packets, {} a second", HumanCount(packets), HumanCount(rate as u64))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn packets_and_their_rate_are_shown_so_that_one_can_read_them() {
        assert_eq!(rate(1_048_576, Duration::from_millis(500)), "1,048,576 packets, 2,097,152 a second");
        assert_eq!(rate(2, Duration::ZERO), "2 packets, 2,000 a second");
    }
}

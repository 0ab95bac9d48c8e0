//! Who works on which queue.

use super::devices::Opened;
use super::found::Found;
use super::queue::Queue;
use super::settings::PortSettings;
use crate::failure::Failure;

/// As many workers as the port with the most queues has, and not more than there are cores, nor than a memif port has queues to send by.
pub fn fitting(devices: &[Found], settings: &[PortSettings]) -> usize {
    let queues = devices.iter().zip(settings).map(|(device, port)| device.rx_queues().min(port.queues.unwrap_or(u32::MAX)));
    let cores = std::thread::available_parallelism().map_or(1, usize::from);
    let most = queues.max().map_or(1, |most| (most as usize).clamp(1, cores));
    devices.iter().filter_map(Found::most_workers).fold(most, usize::min)
}

/// Deals queues out: those of all ports go round, so that a worker has one of each port where there are as many queues as workers.
pub struct Round {
    workers: usize,
    next: usize,
}

impl Round {
    /// For so many workers.
    pub fn new(workers: usize) -> Round {
        Round { workers, next: 0 }
    }

    /// How many workers there are.
    pub fn workers(&self) -> usize {
        self.workers
    }

    /// What each worker is to have of a port. One that gets none of its queues sends there all the same.
    ///
    /// # Errors
    /// When a way to send there cannot be opened.
    pub fn deal(&mut self, opened: &mut Opened) -> Result<Vec<Vec<Queue>>, Failure> {
        let mut shares: Vec<Vec<Queue>> = (0..self.workers).map(|_| Vec::new()).collect();
        for queue in opened.take_queues() {
            if let Some(share) = shares.get_mut(self.next()) {
                share.push(queue);
            }
        }
        for share in shares.iter_mut().filter(|share| share.is_empty()) {
            share.push(opened.sender()?);
        }
        Ok(shares)
    }

    fn next(&mut self) -> usize {
        let worker = self.next % self.workers;
        self.next += 1;
        worker
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn queues_go_round_all_workers() {
        let mut round = Round::new(2);
        // Two ports of two queues, then two of one.
        assert_eq!([0; 6].map(|_| round.next()), [0, 1, 0, 1, 0, 1]);
    }
}

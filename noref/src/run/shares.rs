//! Who works on which queue.

use port::live::{Device, PacketSender};

use super::devices::Opened;
use super::queue::Queue;
use super::settings::PortSettings;
use crate::failure::Failure;

/// As many workers as the port with the most queues has, and not more than there are cores.
pub fn fitting(devices: &[Device], settings: &[PortSettings]) -> usize {
    let queues = devices.iter().zip(settings).map(|(device, port)| device.rx_queues().min(port.queues.unwrap_or(u32::MAX)));
    let cores = std::thread::available_parallelism().map_or(1, usize::from);
    queues.max().map_or(1, |most| (most as usize).clamp(1, cores))
}

/// The worker that each queue of a port is for: the queues of all ports go round, so that a worker has one of each port where there are as many queues
/// as workers.
struct Round {
    workers: usize,
    next: usize,
}

impl Round {
    fn next(&mut self) -> usize {
        let worker = self.next % self.workers;
        self.next += 1;
        worker
    }
}

/// Deals the ports' queues out to so many workers. A worker that gets none of a port sends there by a packet socket of its own.
///
/// # Errors
/// When such a socket cannot be opened.
pub fn deal(opened: &mut [Opened], workers: usize) -> Result<Vec<Vec<Queue>>, Failure> {
    let mut round = Round { workers, next: 0 };
    let mut shares: Vec<Vec<Queue>> = (0..workers).map(|_| Vec::new()).collect();
    for opened in opened {
        deal_port(opened, &mut round, &mut shares)?;
    }
    Ok(shares)
}

fn deal_port(opened: &mut Opened, round: &mut Round, shares: &mut [Vec<Queue>]) -> Result<(), Failure> {
    for queue in opened.take_queues() {
        if let Some(share) = shares.get_mut(round.next()) {
            share.push(queue);
        }
    }
    for share in shares {
        if share.iter().all(|queue| queue.place != opened.place) {
            let sender = PacketSender::open(&opened.name).map_err(Failure::unusable)?;
            share.push(Queue::new(opened.place, &opened.name, None, "AF_PACKET", Box::new(sender)));
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn queues_go_round_all_workers() {
        let mut round = Round { workers: 2, next: 0 };
        // Two ports of two queues, then two of one.
        assert_eq!([0; 6].map(|_| round.next()), [0, 1, 0, 1, 0, 1]);
    }
}

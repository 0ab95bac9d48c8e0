//! Receiving from a ring and sending into one, on either side.
//!
//! ```text
//!                 to the server                          to the client
//! head (client)   how far packets were put in            how far buffers were offered
//! tail (server)   how far packets were taken             how far buffers were filled
//! buffers         the client's                           the client's
//! ```
//! The client knows where its buffers are and does not look at what the ring says of that; the server has it from the ring, and checks it. A counter of
//! the peer's that is more than a ring ahead of ours cannot be, and neither can a buffer outside the peer's memory: then the connection is [`Broken`].
//! A packet that cannot be read is left out and counted.

mod receiver;
mod sender;

pub(super) use receiver::Receiver;
pub(super) use sender::Sender;

/// The most buffers that one packet is in.
const MOST_PIECES: u16 = 64;
/// How many slots ahead memory is fetched: enough for what another core wrote to arrive meanwhile.
const AHEAD: u16 = 8;

/// What the peer did that cannot be gone on with.
#[derive(Clone, Copy, PartialEq, Eq, Debug, thiserror::Error)]
pub(super) enum Broken {
    #[error("a ring's counter is more than its slots ahead")]
    Counter,
    #[error("a ring offers a buffer outside the shared memory, or without room")]
    Buffer,
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Pool;
    use crate::live::memif::layout::{BUFFER, Buffers, Direction, Layout};
    use crate::live::memif::shared::{Descriptor, MORE, Regions, Ring};
    use crate::live::sys::Mapping;
    use std::sync::Arc;

    /// Slots of the rings in these tests.
    const SLOTS: u16 = 8;

    /// A client's memory with a ring in each direction, and further views of the rings, as a hostile peer has them.
    struct Shared {
        layout: Layout,
        regions: Arc<Regions>,
    }

    impl Shared {
        fn new() -> Shared {
            let layout = Layout::new(1, SLOTS.trailing_zeros() as u8).unwrap();
            let shared = Shared { layout, regions: Arc::new(Regions::new(vec![Mapping::anonymous(layout.bytes() as usize).unwrap()])) };
            shared.ring(Direction::ToServer).initialize();
            shared.ring(Direction::ToClient).initialize();
            shared
        }

        fn ring(&self, direction: Direction) -> Ring {
            Ring::new(&self.regions, 0, self.layout.ring(direction, 0), SLOTS.trailing_zeros() as u8).unwrap()
        }

        fn buffers(&self, direction: Direction) -> Buffers {
            self.layout.buffers(direction, 0)
        }

        /// Both ends of the ring in a direction, and the ring.
        fn ends(&self, direction: Direction) -> (Sender, Receiver, Ring) {
            let (one, other, peer) = (self.ring(direction), self.ring(direction), self.ring(direction));
            let buffers = self.buffers(direction);
            match direction {
                Direction::ToServer => (Sender::client(one, buffers), Receiver::server(other), peer),
                Direction::ToClient => {
                    let receiver = Receiver::client(other, buffers);
                    (Sender::server(one), receiver, peer)
                }
            }
        }
    }

    const BOTH: [Direction; 2] = [Direction::ToServer, Direction::ToClient];

    fn packet(number: usize, len: usize) -> Vec<u8> {
        (0..len).map(|place| (number * 7 + place) as u8).collect()
    }

    /// Everything that waits, and how many packets could not be read.
    fn drain(receiver: &mut Receiver, pool: &mut Pool) -> (Vec<Vec<u8>>, u64) {
        let mut packets = Vec::new();
        let waiting = receiver.waiting().unwrap();
        let taken = receiver.receive(waiting, 64, pool, |buf| packets.push(buf.to_vec()));
        (packets, taken.unreadable)
    }

    #[test]
    fn packets_come_out_as_they_were_put_in_across_the_wrap_of_the_counters() {
        for direction in BOTH {
            let shared = Shared::new();
            let (mut sender, mut receiver, _) = shared.ends(direction);
            let mut pool = Pool::default();
            for round in 0..17_000 {
                let sent: Vec<_> = (0..round % 9).map(|place| packet(round + place, 1 + (round * 37 + place) % 96)).collect();
                for packet in &sent {
                    assert_eq!(sender.put(packet), Ok(true), "{direction:?} {round}");
                }
                sender.publish();
                assert_eq!(drain(&mut receiver, &mut pool), (sent, 0), "{direction:?} {round}");
                assert!(sender.is_empty());
            }
        }
    }

    #[test]
    fn nothing_is_seen_before_it_is_published_and_a_full_ring_takes_no_more() {
        for direction in BOTH {
            let shared = Shared::new();
            let (mut sender, mut receiver, _) = shared.ends(direction);
            for number in 0..usize::from(SLOTS) {
                assert_eq!(sender.put(&packet(number, 60)), Ok(true));
            }
            assert_eq!(sender.put(b"no room"), Ok(false));
            assert_eq!(receiver.waiting(), Ok(0));
            assert!(sender.publish() && !sender.publish(), "told once");
            assert_eq!(receiver.waiting(), Ok(SLOTS));
            let mut count = 0;
            receiver.receive(SLOTS, 3, &mut Pool::default(), |_| count += 1);
            assert_eq!((count, receiver.waiting()), (3, Ok(SLOTS - 3)));
            assert_eq!(sender.put(b"room again"), Ok(true));
        }
    }

    #[test]
    fn a_long_packet_goes_in_several_buffers() {
        for direction in BOTH {
            let shared = Shared::new();
            let (mut sender, mut receiver, _) = shared.ends(direction);
            let mut pool = Pool::default();
            for round in 0..50 {
                let sent = vec![packet(round, 60), packet(round, 9018), packet(round, 2049)];
                for packet in &sent {
                    assert_eq!(sender.put(packet), Ok(true));
                }
                assert_eq!(sender.put(&packet(round, 2049)), Ok(false), "one slot is left");
                sender.publish();
                assert_eq!(drain(&mut receiver, &mut pool), (sent, 0));
            }
            assert_eq!(sender.put(&packet(0, 20_000)), Ok(false), "never fits");
            assert_eq!(sender.put(&packet(0, 60)), Ok(true));
        }
    }

    #[test]
    fn who_receives_says_whether_it_is_woken() {
        for direction in BOTH {
            let shared = Shared::new();
            let (mut sender, receiver, _) = shared.ends(direction);
            for wants in [false, true, false] {
                receiver.set_wants_waking(wants);
                sender.put(b"packet").unwrap();
                assert_eq!(sender.publish(), wants);
            }
        }
    }

    #[test]
    fn a_counter_that_cannot_be_breaks_the_connection() {
        let shared = Shared::new();
        let (_, receiver, peer) = shared.ends(Direction::ToServer);
        for counter in [SLOTS + 1, 0x7fff, 0x8000, 0xffff] {
            peer.set_head(counter);
            assert_eq!(receiver.waiting(), Err(Broken::Counter), "{counter}");
        }
        let (mut sender, receiver, peer) = shared.ends(Direction::ToClient);
        for counter in [SLOTS + 1, 0xffff] {
            peer.set_tail(counter);
            assert_eq!(receiver.waiting(), Err(Broken::Counter), "{counter}");
        }
        for counter in [SLOTS + 1, 0xffff] {
            peer.set_head(counter);
            assert_eq!(sender.put(b"packet"), Err(Broken::Counter), "{counter}");
        }
        let (mut sender, _, peer) = shared.ends(Direction::ToServer);
        for counter in [1, SLOTS, 0x8000] {
            peer.set_tail(counter);
            assert_eq!(sender.put(b"packet"), Err(Broken::Counter), "{counter}");
        }
    }

    #[test]
    fn a_packet_outside_the_memory_is_left_out_and_the_next_one_read() {
        let shared = Shared::new();
        let (_, mut receiver, peer) = shared.ends(Direction::ToServer);
        let end = shared.layout.bytes() as u32;
        let good = Descriptor { flags: 0, region: 0, length: 60, offset: end - 60 };
        let bad = [
            Descriptor { offset: end - 59, ..good },
            Descriptor { region: 1, ..good },
            Descriptor { region: u16::MAX, ..good },
            Descriptor { length: u32::MAX, ..good },
            Descriptor { length: 0, ..good },
            Descriptor { length: 65_554, offset: 0, ..good },
            Descriptor { offset: u32::MAX, length: u32::MAX, ..good },
        ];
        let mut pool = Pool::default();
        for (round, descriptor) in (0_u16..).zip(bad) {
            peer.write(2 * round, descriptor);
            peer.write(2 * round + 1, good);
            peer.set_head(2 * round + 2);
            let (packets, unreadable) = drain(&mut receiver, &mut pool);
            assert_eq!((packets.len(), unreadable), (1, 1), "{descriptor:?}");
            assert_eq!(receiver.waiting(), Ok(0));
        }
    }

    #[test]
    fn a_client_goes_by_its_own_buffers_whatever_the_ring_says() {
        let shared = Shared::new();
        let (mut sender, mut receiver, peer) = shared.ends(Direction::ToClient);
        let mut pool = Pool::default();
        sender.put(&packet(1, 60)).unwrap();
        sender.publish();
        peer.write(0, Descriptor { flags: 0, region: 9, length: 60, offset: u32::MAX });
        assert_eq!(drain(&mut receiver, &mut pool), (vec![packet(1, 60)], 0));
        let offered = peer.read(0);
        assert_eq!((offered.region, offered.length, offered.flags), (0, BUFFER, 0));
        sender.put(&packet(2, 60)).unwrap();
        sender.publish();
        peer.write(1, Descriptor { length: BUFFER + 1, ..peer.read(1) });
        assert_eq!(drain(&mut receiver, &mut pool), (vec![], 1));
    }

    #[test]
    fn a_buffer_that_cannot_be_breaks_the_connection() {
        let shared = Shared::new();
        for buffer in [
            Descriptor { region: 1, length: BUFFER, ..Descriptor::default() },
            Descriptor { offset: shared.layout.bytes() as u32 - 10, length: BUFFER, ..Descriptor::default() },
            Descriptor { length: 0, ..Descriptor::default() },
            Descriptor { length: u32::MAX, ..Descriptor::default() },
        ] {
            let (mut sender, _, peer) = shared.ends(Direction::ToClient);
            for slot in 0..SLOTS {
                peer.write(slot, buffer);
            }
            assert_eq!(sender.put(&[7; 60]), Err(Broken::Buffer), "{buffer:?}");
        }
    }

    #[test]
    fn a_packet_whose_pieces_are_still_to_come_waits_for_them() {
        let shared = Shared::new();
        let (_, mut receiver, peer) = shared.ends(Direction::ToServer);
        let mut pool = Pool::default();
        let more = Descriptor { flags: MORE, region: 0, length: 10, offset: 4096 };
        peer.write(0, more);
        peer.set_head(1);
        assert_eq!(drain(&mut receiver, &mut pool), (vec![], 0));
        peer.write(1, Descriptor { flags: 0, ..more });
        peer.set_head(2);
        let (packets, unreadable) = drain(&mut receiver, &mut pool);
        assert_eq!((packets.len(), packets[0].len(), unreadable), (1, 20, 0));
        assert_eq!(receiver.waiting(), Ok(0));
    }

    #[test]
    fn pieces_without_end_or_too_long_are_no_packet() {
        let shared = Shared::new();
        let (_, mut receiver, peer) = shared.ends(Direction::ToServer);
        let mut pool = Pool::default();
        for slot in 0..SLOTS {
            peer.write(slot, Descriptor { flags: MORE, region: 0, length: 10, offset: 0 });
        }
        peer.set_head(SLOTS);
        assert_eq!(drain(&mut receiver, &mut pool), (vec![], 1));
        assert_eq!(receiver.waiting(), Ok(0), "the ring is not stuck");
        for slot in 0..SLOTS {
            peer.write(slot, Descriptor { flags: if slot == 7 { 0 } else { MORE }, region: 0, length: 10_000, offset: 0 });
        }
        peer.set_head(2 * SLOTS);
        assert_eq!(drain(&mut receiver, &mut pool), (vec![], 1), "80,000 bytes");
        peer.write(0, Descriptor { flags: MORE, region: 0, length: 10, offset: 0 });
        peer.write(1, Descriptor { flags: 0, region: 7, length: 10, offset: 0 });
        peer.set_head(2 * SLOTS + 2);
        assert_eq!(drain(&mut receiver, &mut pool), (vec![], 1), "the second piece is nowhere");
    }

    #[test]
    fn a_peer_that_writes_anything_anywhere_harms_only_itself() {
        // Xorshift: the same in every run.
        let mut state = 0x9e37_79b9_7f4a_7c15_u64;
        let mut random = move || {
            state ^= state << 13;
            state ^= state >> 7;
            state ^= state << 17;
            state
        };
        let mut pool = Pool::default();
        let (mut received, mut unreadable, mut sent, mut broken) = (0, 0, 0, 0);
        for round in 0..400 {
            let direction = BOTH[round % 2];
            let shared = Shared::new();
            let (mut sender, mut receiver, peer) = shared.ends(direction);
            for _ in 0..100 {
                for _ in 0..random() % 4 {
                    let near = |bound: u64, random: u64| if random.is_multiple_of(8) { random >> 3 } else { (random >> 3) % bound };
                    let descriptor = Descriptor {
                        flags: random() as u16 & if random().is_multiple_of(4) { MORE } else { 0 },
                        region: near(2, random()) as u16,
                        length: near(3000, random()) as u32,
                        offset: near(shared.layout.bytes() + 100, random()) as u32,
                    };
                    peer.write(random() as u16, descriptor);
                }
                match random() % 3 {
                    0 => peer.set_head(peer.head().wrapping_add((random() % 6) as u16)),
                    1 => peer.set_tail(peer.tail().wrapping_add((random() % 6) as u16)),
                    _ => {}
                }
                match receiver.waiting() {
                    Ok(waiting) => {
                        let taken = receiver.receive(waiting, 5, &mut pool, |buf| received += u64::from(!buf.is_empty()));
                        assert!(taken.slots <= waiting);
                        unreadable += taken.unreadable;
                    }
                    Err(_) => broken += 1,
                }
                match sender.put(&[0xa5; 3000][..1 + (random() % 3000) as usize]) {
                    Ok(fits) => sent += u64::from(fits),
                    Err(_) => broken += 1,
                }
                sender.publish();
            }
        }
        assert!(received > 1000 && unreadable > 1000 && sent > 1000 && broken > 1000, "{received} {unreadable} {sent} {broken}");
    }
}

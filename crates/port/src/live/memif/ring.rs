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

use super::layout::{BUFFER, Buffers};
use super::shared::{Descriptor, MORE, Place, Ring};
use crate::{Buf, Pool};

/// The longest packet that is received: an IP packet of the greatest length, with its Ethernet header and a VLAN tag.
const LONGEST: usize = 65_535 + 18;
/// The most buffers that one packet is in.
const MOST_PIECES: u16 = 64;
/// How many slots ahead bytes are fetched.
const AHEAD: u16 = 8;

/// What the peer did that cannot be gone on with.
#[derive(Clone, Copy, PartialEq, Eq, Debug, thiserror::Error)]
pub(super) enum Broken {
    #[error("a ring's counter is more than its slots ahead")]
    Counter,
    #[error("a ring offers a buffer outside the shared memory, or without room")]
    Buffer,
}

/// What was taken out of a ring at once.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct Taken {
    /// Slots given back.
    pub(super) slots: u16,
    /// Packets that could not be read.
    pub(super) unreadable: u64,
}

/// The receiving end of a ring.
#[derive(Debug)]
pub(super) struct Receiver {
    ring: Ring,
    /// Where the buffers are, when they are ours.
    buffers: Option<Buffers>,
    /// Counter of the next slot to be looked at.
    next: u16,
}

impl Receiver {
    /// The client's end of a ring to the client: offers all buffers.
    pub(super) fn client(ring: Ring, buffers: Buffers) -> Receiver {
        for slot in 0..ring.slots() {
            offer(&ring, buffers, slot);
        }
        ring.set_head(ring.slots());
        Receiver { ring, buffers: Some(buffers), next: 0 }
    }

    /// The server's end of a ring to the server.
    pub(super) fn server(ring: Ring) -> Receiver {
        let next = ring.tail();
        Receiver { ring, buffers: None, next }
    }

    /// Slots that wait to be looked at.
    ///
    /// # Errors
    /// When the peer's counter cannot be.
    #[inline]
    pub(super) fn waiting(&self) -> Result<u16, Broken> {
        let peer = if self.buffers.is_some() { self.ring.tail() } else { self.ring.head() };
        match peer.wrapping_sub(self.next) {
            waiting if waiting <= self.ring.slots() => Ok(waiting),
            _ => Err(Broken::Counter),
        }
    }

    /// Hands over up to `max` packets of the next `waiting` slots, in buffers of `pool`, and gives the slots back.
    #[inline]
    pub(super) fn receive(&mut self, waiting: u16, max: usize, pool: &mut Pool, mut take: impl FnMut(Buf)) -> Taken {
        let (mut looked_at, mut packets, mut unreadable) = (0, 0, 0);
        for ahead in 0..AHEAD.min(waiting) {
            self.prefetch(ahead);
        }
        while packets < max && looked_at < waiting {
            if looked_at + AHEAD < waiting {
                self.prefetch(looked_at + AHEAD);
            }
            let descriptor = self.ring.read(self.next.wrapping_add(looked_at));
            if descriptor.flags & MORE != 0 {
                let Some(pieces) = self.pieces(looked_at, waiting) else { break };
                match self.join(looked_at, pieces, pool) {
                    Some(buf) => take(buf),
                    None => unreadable += 1,
                }
                looked_at += pieces;
            } else {
                match self.place(looked_at, descriptor) {
                    Some(place) if (1..=LONGEST).contains(&place.len()) => {
                        let mut buf = pool.take(place.len());
                        place.append_to(&mut buf);
                        take(buf);
                    }
                    _ => unreadable += 1,
                }
                looked_at += 1;
            }
            packets += 1;
        }
        self.give_back(looked_at);
        Taken { slots: looked_at, unreadable }
    }

    /// Says whether we want to be woken when packets come. Then it must be looked once more for what came.
    pub(super) fn set_wants_waking(&self, wants: bool) {
        self.ring.set_wants_waking(wants);
    }

    /// The bytes of a slot, `ahead` of the next one. None when they are not all in a buffer.
    #[inline]
    fn place(&self, ahead: u16, descriptor: Descriptor) -> Option<Place<'_>> {
        let Descriptor { region, offset, length, .. } = descriptor;
        match self.buffers {
            Some(_) if length > BUFFER => None,
            Some(buffers) => self.ring.regions().place(0, buffers.offset(self.ring.slot(self.next.wrapping_add(ahead))), length),
            None => self.ring.regions().place(region, offset, length),
        }
    }

    #[inline]
    fn prefetch(&self, ahead: u16) {
        let counter = self.next.wrapping_add(ahead);
        self.ring.prefetch(counter.wrapping_add(AHEAD));
        if let Some(place) = self.place(ahead, self.ring.read(counter)) {
            place.prefetch();
        }
    }

    /// Slots of the packet that begins `ahead`, up to the first that has no more behind it, or so many that it is none. None when some are still to
    /// come.
    #[cold]
    fn pieces(&self, ahead: u16, waiting: u16) -> Option<u16> {
        let most = MOST_PIECES.min(self.ring.slots());
        let seen = most.min(waiting - ahead);
        let end = (0..seen).find(|&at| self.ring.read(self.next.wrapping_add(ahead + at)).flags & MORE == 0);
        end.map(|end| end + 1).or_else(|| (seen == most).then_some(most))
    }

    /// The packet in these slots. None when one of them cannot be read, the last is not its end, or it is longer than packets are.
    #[cold]
    fn join(&self, ahead: u16, pieces: u16, pool: &mut Pool) -> Option<Buf> {
        let mut buf = pool.take(LONGEST.min(usize::from(pieces) * BUFFER as usize));
        for at in ahead..ahead + pieces {
            let descriptor = self.ring.read(self.next.wrapping_add(at));
            let ends = at + 1 < ahead + pieces || descriptor.flags & MORE == 0;
            match self.place(at, descriptor).filter(|place| ends && (1..=LONGEST).contains(&(buf.len() + place.len()))) {
                Some(place) => place.append_to(&mut buf),
                None => {
                    pool.give(buf);
                    return None;
                }
            }
        }
        Some(buf)
    }

    /// Lets the peer have the next slots again.
    #[inline]
    fn give_back(&mut self, slots: u16) {
        if slots == 0 {
            return;
        }
        match self.buffers {
            Some(buffers) => {
                for ahead in 0..slots {
                    offer(&self.ring, buffers, self.next.wrapping_add(ahead));
                }
                self.next = self.next.wrapping_add(slots);
                self.ring.set_head(self.next.wrapping_add(self.ring.slots()));
            }
            None => {
                self.next = self.next.wrapping_add(slots);
                self.ring.set_tail(self.next);
            }
        }
    }
}

/// Has the slot of a counter say that its buffer is empty. All of it is said each time: the peer could have written something else.
#[inline]
fn offer(ring: &Ring, buffers: Buffers, counter: u16) {
    ring.write(counter, Descriptor { flags: 0, region: 0, length: BUFFER, offset: buffers.offset(ring.slot(counter)) });
}

/// The sending end of a ring.
#[derive(Debug)]
pub(super) struct Sender {
    ring: Ring,
    /// Where the buffers are, when they are ours.
    buffers: Option<Buffers>,
    /// Counter of the next slot to be filled.
    next: u16,
    /// What the peer was told of.
    published: u16,
    /// Slots that were free when it was last looked, less those filled since.
    free: u16,
    /// Of a packet in several buffers what their slots said, while it is put in.
    pieces: Vec<Descriptor>,
}

impl Sender {
    /// The client's end of a ring to the server.
    pub(super) fn client(ring: Ring, buffers: Buffers) -> Sender {
        Sender { ring, buffers: Some(buffers), next: 0, published: 0, free: 0, pieces: Vec::with_capacity(MOST_PIECES.into()) }
    }

    /// The server's end of a ring to the client.
    pub(super) fn server(ring: Ring) -> Sender {
        let next = ring.tail();
        Sender { ring, buffers: None, next, published: next, free: 0, pieces: Vec::with_capacity(MOST_PIECES.into()) }
    }

    /// Puts a packet in, for the peer to see with the next [`Sender::publish`]. False when there is no room.
    ///
    /// # Errors
    /// When the peer's counter or buffer cannot be.
    #[inline]
    pub(super) fn put(&mut self, packet: &[u8]) -> Result<bool, Broken> {
        if self.free == 0 {
            self.free = self.room()?;
            if self.free == 0 {
                return Ok(false);
            }
        }
        if AHEAD / 2 < self.free {
            let counter = self.next.wrapping_add(AHEAD / 2);
            self.ring.prefetch(counter.wrapping_add(AHEAD));
            if let Some(place) = self.place(self.buffer(counter)) {
                place.prefetch_to_fill();
            }
        }
        let buffer = self.buffer(self.next);
        if packet.len() > buffer.length as usize {
            return self.put_in_pieces(packet);
        }
        self.fill(buffer, packet, 0)?;
        Ok(true)
    }

    /// Lets the peer see what was put in. True when it wants to be woken for it.
    #[inline]
    pub(super) fn publish(&mut self) -> bool {
        if self.published == self.next {
            return false;
        }
        self.published = self.next;
        if self.buffers.is_some() {
            self.ring.set_head(self.next)
        } else {
            self.ring.set_tail(self.next)
        }
        self.ring.wants_waking()
    }

    /// True when the peer has taken what was published. (Of a client that it has, is known when it offers all buffers again.)
    pub(super) fn is_empty(&self) -> bool {
        self.room().is_ok_and(|room| room == self.ring.slots())
    }

    /// Slots that can be filled.
    fn room(&self) -> Result<u16, Broken> {
        let slots = self.ring.slots();
        let room = match self.buffers {
            Some(_) => slots.checked_sub(self.next.wrapping_sub(self.ring.tail())),
            None => Some(self.ring.head().wrapping_sub(self.next)),
        };
        room.filter(|&room| room <= slots).ok_or(Broken::Counter)
    }

    /// The buffer of a slot: where it is and how much fits.
    #[inline]
    fn buffer(&self, counter: u16) -> Descriptor {
        match self.buffers {
            Some(buffers) => Descriptor { flags: 0, region: 0, length: BUFFER, offset: buffers.offset(self.ring.slot(counter)) },
            None => self.ring.read(counter),
        }
    }

    /// The bytes of a buffer.
    #[inline]
    fn place(&self, buffer: Descriptor) -> Option<Place<'_>> {
        self.ring.regions().place(buffer.region, buffer.offset, buffer.length)
    }

    /// Fills the next slot.
    #[inline]
    fn fill(&mut self, buffer: Descriptor, bytes: &[u8], flags: u16) -> Result<(), Broken> {
        match self.place(buffer) {
            Some(place) if place.len() >= bytes.len() => place.fill(bytes),
            _ => return Err(Broken::Buffer),
        }
        self.ring.write(self.next, Descriptor { flags, length: bytes.len() as u32, ..buffer });
        self.next = self.next.wrapping_add(1);
        self.free -= 1;
        Ok(())
    }

    /// Puts a packet in that is longer than a buffer. False, and nothing done, when there is no room for all of it.
    #[cold]
    fn put_in_pieces(&mut self, packet: &[u8]) -> Result<bool, Broken> {
        self.free = self.room()?;
        let mut pieces = std::mem::take(&mut self.pieces);
        let outcome = self.gather(packet.len(), &mut pieces).and_then(|fits| {
            let mut rest = packet;
            for (place, &buffer) in pieces.iter().enumerate().take(if fits { pieces.len() } else { 0 }) {
                let (piece, behind) = rest.split_at(rest.len().min(buffer.length as usize));
                self.fill(buffer, piece, if place + 1 < pieces.len() { MORE } else { 0 })?;
                rest = behind;
            }
            Ok(fits)
        });
        self.pieces = pieces;
        outcome
    }

    /// Collects the buffers that `len` bytes take. False when there are too few.
    fn gather(&self, len: usize, pieces: &mut Vec<Descriptor>) -> Result<bool, Broken> {
        pieces.clear();
        let mut room = 0;
        while room < len {
            if pieces.len() == usize::from(MOST_PIECES) || pieces.len() >= usize::from(self.free) {
                return Ok(false);
            }
            let buffer = self.buffer(self.next.wrapping_add(pieces.len() as u16));
            if buffer.length == 0 {
                return Err(Broken::Buffer);
            }
            room += buffer.length as usize;
            pieces.push(buffer);
        }
        Ok(true)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::live::memif::layout::{Direction, Layout};
    use crate::live::memif::shared::Regions;
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
}

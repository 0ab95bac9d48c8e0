//! The receiving end of a ring.

use super::{AHEAD, Broken, MOST_PIECES};
use crate::live::memif::layout::{BUFFER, Buffers};
use crate::live::memif::shared::{Descriptor, MORE, Place, Ring};
use crate::{Buf, Pool};

/// The longest packet that is received: an IP packet of the greatest length, with its Ethernet header and a VLAN tag.
const LONGEST: usize = 65_535 + 18;

/// What was taken out of a ring at once.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(in crate::live::memif) struct Taken {
    /// Slots given back.
    pub(in crate::live::memif) slots: u16,
    /// Packets that could not be read.
    pub(in crate::live::memif) unreadable: u64,
}

/// The receiving end of a ring.
#[derive(Debug)]
pub(in crate::live::memif) struct Receiver {
    ring: Ring,
    /// Where the buffers are, when they are ours.
    buffers: Option<Buffers>,
    /// Counter of the next slot to be looked at.
    next: u16,
}

impl Receiver {
    /// The client's end of a ring to the client: offers all buffers.
    pub(in crate::live::memif) fn client(ring: Ring, buffers: Buffers) -> Receiver {
        for slot in 0..ring.slots() {
            offer(&ring, buffers, slot);
        }
        ring.set_head(ring.slots());
        Receiver { ring, buffers: Some(buffers), next: 0 }
    }

    /// The server's end of a ring to the server.
    pub(in crate::live::memif) fn server(ring: Ring) -> Receiver {
        let next = ring.tail();
        Receiver { ring, buffers: None, next }
    }

    /// Slots that wait to be looked at.
    ///
    /// # Errors
    /// When the peer's counter cannot be.
    #[inline]
    pub(in crate::live::memif) fn waiting(&self) -> Result<u16, Broken> {
        let peer = if self.buffers.is_some() { self.ring.tail() } else { self.ring.head() };
        match peer.wrapping_sub(self.next) {
            waiting if waiting <= self.ring.slots() => Ok(waiting),
            _ => Err(Broken::Counter),
        }
    }

    /// Hands over up to `max` packets of the next `waiting` slots, in buffers of `pool`, and gives the slots back.
    #[inline]
    pub(in crate::live::memif) fn receive(&mut self, waiting: u16, max: usize, pool: &mut Pool, mut take: impl FnMut(Buf)) -> Taken {
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
    pub(in crate::live::memif) fn set_wants_waking(&self, wants: bool) {
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
        match self.buffers {
            Some(buffers) => {
                self.ring.prefetch_to_write(counter.wrapping_add(AHEAD));
                self.ring.regions().prefetch(0, buffers.offset(self.ring.slot(counter)));
            }
            None => {
                self.ring.prefetch(counter.wrapping_add(AHEAD));
                let Descriptor { region, offset, .. } = self.ring.read(counter);
                self.ring.regions().prefetch(region, offset);
            }
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

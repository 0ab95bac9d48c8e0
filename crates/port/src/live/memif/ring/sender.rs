//! The sending end of a ring.

use super::{AHEAD, Broken, MOST_PIECES};
use crate::live::memif::layout::{BUFFER, Buffers};
use crate::live::memif::shared::{Descriptor, MORE, Place, Ring};

/// The sending end of a ring.
#[derive(Debug)]
pub(in crate::live::memif) struct Sender {
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
    pub(in crate::live::memif) fn client(ring: Ring, buffers: Buffers) -> Sender {
        Sender { ring, buffers: Some(buffers), next: 0, published: 0, free: 0, pieces: Vec::with_capacity(MOST_PIECES.into()) }
    }

    /// The server's end of a ring to the client.
    pub(in crate::live::memif) fn server(ring: Ring) -> Sender {
        let next = ring.tail();
        Sender { ring, buffers: None, next, published: next, free: 0, pieces: Vec::with_capacity(MOST_PIECES.into()) }
    }

    /// Puts a packet in, for the peer to see with the next [`Sender::publish`]. False when there is no room.
    ///
    /// # Errors
    /// When the peer's counter or buffer cannot be.
    #[inline]
    pub(in crate::live::memif) fn put(&mut self, packet: &[u8]) -> Result<bool, Broken> {
        if self.free == 0 {
            self.free = self.room()?;
            if self.free == 0 {
                return Ok(false);
            }
        }
        if AHEAD < self.free {
            let counter = self.next.wrapping_add(AHEAD);
            self.ring.prefetch_to_write(counter.wrapping_add(AHEAD));
            let Descriptor { region, offset, .. } = self.buffer(counter);
            self.ring.regions().prefetch_to_fill(region, offset);
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
    pub(in crate::live::memif) fn publish(&mut self) -> bool {
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
    pub(in crate::live::memif) fn is_empty(&self) -> bool {
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

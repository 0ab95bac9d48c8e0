//! Connecting as a server, which uses the client's memory: everything the client says is checked here, once.

use std::io;
use std::os::fd::{AsFd, OwnedFd};
use std::sync::Arc;
use std::time::Instant;

use super::channel::{Channel, End};
use super::connection::{Connection, NAME, PATIENCE};
use super::mailbox::Lines;
use super::message::{AddRegion, AddRing, ETHERNET, Hello, Init, Message, VERSION};
use super::ring::{Receiver, Sender};
use super::settings::MemifSettings;
use super::shared::{Regions, Ring};
use super::sys::{self, Event};
use crate::live::sys::Mapping;

/// The most regions of a client.
const MOST_REGIONS: usize = 16;
/// The most bytes of all regions of a client.
const MOST_BYTES: u64 = 1 << 30;
/// Slots of the largest ring, as a power of two.
const MOST_LOG2_SLOTS: u8 = 14;

/// Agrees with the client at the other end of `channel`.
///
/// # Errors
/// Why it does not come about.
pub(super) fn connect(channel: &Channel, name: &str, settings: &MemifSettings, stop: &Event) -> Result<Connection, End> {
    let until = Instant::now() + PATIENCE;
    channel.send(&Message::Hello(hello(settings)), None)?;
    let peer = match channel.wait(stop, until)?.message {
        Message::Init(init) => admit(init, settings)?,
        other => return Err(End::refused(format!("{} instead of init", other.kind()))),
    };
    channel.send(&Message::Ack, None)?;
    let mut offer = Offer::new(settings.queues);
    loop {
        let incoming = channel.wait(stop, until)?;
        match incoming.message {
            Message::AddRegion(region) => offer.add_region(region, incoming.descriptor()?)?,
            Message::AddRing(ring) => offer.add_ring(ring, incoming.descriptor()?)?,
            Message::Connect(interface) => {
                let connection = offer.accept(format!("{peer} ({interface})"))?;
                channel.send(&Message::Connected(name.to_owned()), None)?;
                return Ok(connection);
            }
            other => return Err(End::refused(format!("{} where regions and rings are due", other.kind()))),
        }
        channel.send(&Message::Ack, None)?;
    }
}

fn hello(settings: &MemifSettings) -> Hello {
    Hello {
        name: NAME.to_owned(),
        min_version: VERSION,
        max_version: VERSION,
        max_region: MOST_REGIONS as u16 - 1,
        max_to_client: settings.queues - 1,
        max_to_server: settings.queues - 1,
        max_log2_slots: MOST_LOG2_SLOTS,
    }
}

/// Lets a client in, or not. Its name.
fn admit(init: Init, settings: &MemifSettings) -> Result<String, End> {
    if init.version != VERSION {
        return Err(End::refused(format!("version {}.{} instead of 2.0", init.version >> 8, init.version & 0xff)));
    }
    if init.id != settings.id {
        return Err(End::refused(format!("id {} instead of {}", init.id, settings.id)));
    }
    if init.mode != ETHERNET {
        return Err(End::refused(format!("mode {} instead of Ethernet", init.mode)));
    }
    match &settings.secret {
        Some(secret) if !secret.is(&init.secret) => Err(End::refused("another secret")),
        _ => Ok(init.name),
    }
}

/// What a client has brought so far.
struct Offer {
    regions: Vec<Mapping>,
    bytes: u64,
    to_server: Vec<Option<(AddRing, Event)>>,
    to_client: Vec<Option<(AddRing, Event)>>,
}

impl Offer {
    fn new(queues: u16) -> Offer {
        let rings = || (0..queues).map(|_| None).collect();
        Offer { regions: Vec::new(), bytes: 0, to_server: rings(), to_client: rings() }
    }

    fn add_region(&mut self, region: AddRegion, memory: OwnedFd) -> Result<(), End> {
        let refused = |why: String| Err(End::refused(format!("region {}: {why}", region.index)));
        if usize::from(region.index) != self.regions.len() || self.regions.len() == MOST_REGIONS {
            return refused(format!("regions are numbered from 0 to {}, in turn", MOST_REGIONS - 1));
        }
        self.bytes = self.bytes.saturating_add(region.bytes);
        if region.bytes == 0 || self.bytes > MOST_BYTES {
            return refused(format!("{} bytes; 1 to {MOST_BYTES} in all", region.bytes));
        }
        match sys::sealed_len(memory.as_fd()) {
            Ok(len) if len < region.bytes => return refused(format!("{} bytes said, {len} there", region.bytes)),
            Ok(_) => {}
            Err(error) if error.kind() == io::ErrorKind::InvalidData => {
                return refused(format!("{error}; with zero-copy switched off the client brings memory that can be used"));
            }
            Err(error) => return Err(End::Io("a region", error)),
        }
        let mapping = Mapping::shared(memory.as_fd(), region.bytes as usize, 0).map_err(End::io("mapping a region"))?;
        self.regions.push(mapping);
        Ok(())
    }

    fn add_ring(&mut self, ring: AddRing, event: OwnedFd) -> Result<(), End> {
        let rings = if ring.to_server { &mut self.to_server } else { &mut self.to_client };
        let refused = |why: String| Err(End::refused(format!("ring {}: {why}", ring.index)));
        let queues = rings.len();
        let Some(place) = rings.get_mut(usize::from(ring.index)) else {
            return refused(format!("here are {queues} queues (queues=)"));
        };
        if place.is_some() {
            return refused("there is one of that number".to_owned());
        }
        if ring.private_header != 0 {
            return refused("metadata in front of packets".to_owned());
        }
        let Ok(event) = Event::of_peer(event) else {
            return refused("its interrupt is no eventfd".to_owned());
        };
        *place = Some((ring, event));
        Ok(())
    }

    /// The connection, when all is there.
    fn accept(self, peer: String) -> Result<Connection, End> {
        let queues = self.to_client.len();
        let regions = Arc::new(Regions::new(self.regions));
        let ring = |what: &AddRing| {
            let ring = Ring::new(&regions, what.region, what.offset, what.log2_slots);
            let ring = ring.map_err(|error| End::refused(format!("ring {}: {error}", what.index)))?;
            if ring.has_cookie() { Ok(ring) } else { Err(End::refused(format!("ring {}: not initialized", what.index))) }
        };
        let mut connection = Connection { peer, lines: Vec::new(), wakers: Vec::new() };
        if self.to_server.iter().all(Option::is_none) {
            return Err(End::refused("no ring to the server"));
        }
        for (to_client, to_server) in self.to_client.into_iter().zip(self.to_server) {
            // A worker without one could send nothing.
            let (out, waker) = to_client.ok_or_else(|| End::refused(format!("fewer than {queues} rings to the client (queues=)")))?;
            let sender = Sender::server(ring(&out)?);
            let (receiver, rung) = match to_server {
                Some((back, event)) => (Some(Receiver::server(ring(&back)?)), Some(event)),
                None => (None, None),
            };
            connection.lines.push(Lines { receiver, sender, rung });
            connection.wakers.push(waker);
        }
        Ok(connection)
    }
}

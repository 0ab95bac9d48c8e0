//! Connecting as a client, which brings the memory.

use std::os::fd::AsFd;
use std::sync::Arc;
use std::time::Instant;

use super::channel::{Channel, End};
use super::connection::{Connection, NAME, PATIENCE};
use super::layout::{Direction, Layout};
use super::mailbox::Lines;
use super::message::{AddRegion, AddRing, ETHERNET, Init, Message, SECRET, VERSION};
use super::ring::{Receiver, Sender};
use super::settings::{MemifSettings, Secret};
use super::shared::{Regions, Ring};
use super::sys::{self, Event};
use crate::live::sys::Mapping;

/// A ring with what is rung for it.
struct Prepared {
    direction: Direction,
    index: u16,
    ring: Ring,
    event: Event,
}

/// Agrees with the server at the other end of `channel`.
///
/// # Errors
/// Why it does not come about.
pub(super) fn connect(channel: &Channel, name: &str, settings: &MemifSettings, stop: &Event) -> Result<Connection, End> {
    let until = Instant::now() + PATIENCE;
    let peer = match channel.wait(stop, until)?.message {
        Message::Hello(hello) if !(hello.min_version..=hello.max_version).contains(&VERSION) => {
            return Err(End::refused(format!("{} does not speak version 2.0", hello.name)));
        }
        Message::Hello(hello) if hello.max_to_client.min(hello.max_to_server) < settings.queues - 1 => {
            let most = u32::from(hello.max_to_client.min(hello.max_to_server)) + 1;
            return Err(End::refused(format!("{} has {most} queues, fewer than {} (queues=)", hello.name, settings.queues)));
        }
        Message::Hello(hello) => hello,
        other => return Err(End::refused(format!("{} instead of hello", other.kind()))),
    };
    let log2_slots = (settings.slots.trailing_zeros() as u8).min(peer.max_log2_slots);
    let layout = Layout::new(settings.queues, log2_slots)
        .ok_or_else(|| End::refused(format!("{} queues of {} slots are more than 1 GiB", settings.queues, settings.slots)))?;
    let memory = sys::memory(layout.bytes()).map_err(End::io("memory to share"))?;
    let mapping = Mapping::shared(memory.as_fd(), layout.bytes() as usize, 0).map_err(End::io("mapping the shared memory"))?;
    let regions = Arc::new(Regions::new(vec![mapping]));
    let rings = prepare(&regions, layout, settings.queues, log2_slots).map_err(End::io("rings"))?;

    let secret = settings.secret.as_ref().map_or([0; SECRET], Secret::bytes);
    let init = Init { version: VERSION, id: settings.id, mode: ETHERNET, secret, name: NAME.to_owned() };
    channel.send(&Message::Init(init), None)?;
    channel.wait_for_ack(stop, until)?;
    channel.send(&Message::AddRegion(AddRegion { index: 0, bytes: layout.bytes() }), Some(memory.as_fd()))?;
    channel.wait_for_ack(stop, until)?;
    for Prepared { direction, index, event, .. } in &rings {
        let offset = layout.ring(*direction, *index);
        let to_server = *direction == Direction::ToServer;
        let ring = AddRing { to_server, index: *index, region: 0, offset, log2_slots, private_header: 0 };
        channel.send(&Message::AddRing(ring), Some(event.as_fd()))?;
        channel.wait_for_ack(stop, until)?;
    }
    channel.send(&Message::Connect(name.to_owned()), None)?;
    match channel.wait(stop, until)?.message {
        // Servers empty the rings until here, and no longer.
        Message::Connected(interface) => Ok(begin(rings, layout, format!("{} ({interface})", peer.name))),
        other => Err(End::refused(format!("{} instead of connected", other.kind()))),
    }
}

/// Empty rings, those to the server first.
fn prepare(regions: &Arc<Regions>, layout: Layout, queues: u16, log2_slots: u8) -> std::io::Result<Vec<Prepared>> {
    let mut rings = Vec::new();
    for direction in [Direction::ToServer, Direction::ToClient] {
        for index in 0..queues {
            let ring = Ring::new(regions, 0, layout.ring(direction, index), log2_slots)?;
            ring.initialize();
            rings.push(Prepared { direction, index, ring, event: Event::new()? });
        }
    }
    Ok(rings)
}

fn begin(rings: Vec<Prepared>, layout: Layout, peer: String) -> Connection {
    let (to_server, to_client): (Vec<_>, Vec<_>) = rings.into_iter().partition(|ring| ring.direction == Direction::ToServer);
    let mut connection = Connection { peer, lines: Vec::new(), wakers: Vec::new() };
    for (out, back) in to_server.into_iter().zip(to_client) {
        let sender = Sender::client(out.ring, layout.buffers(out.direction, out.index));
        let receiver = Receiver::client(back.ring, layout.buffers(back.direction, back.index));
        connection.lines.push(Lines { receiver: Some(receiver), sender, rung: Some(back.event) });
        connection.wakers.push(out.event);
    }
    connection
}

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
    // A server that is still starting accepts late, and DPDK's does not survive a client that went by then.
    let hello = channel.wait(stop, None)?.message;
    let until = Some(Instant::now() + PATIENCE);
    let peer = match hello {
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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::live::memif::message::Hello;
    use crate::live::memif::sys::tests::channels;
    use std::thread;

    fn hello() -> Hello {
        Hello {
            name: "test".to_owned(),
            min_version: VERSION,
            max_version: VERSION,
            max_region: 0,
            max_to_client: 7,
            max_to_server: 7,
            max_log2_slots: 6,
        }
    }

    /// Has a server say hello, then answer each message with the next of `answers`, and go. What the client made of it, and what it sent.
    fn connected(words: &str, hello: Message, answers: Vec<Message>) -> (Result<Connection, End>, Vec<Message>) {
        let settings: MemifSettings = format!("unused{words}").parse().unwrap();
        let (ours, theirs) = channels();
        let server = thread::spawn(move || {
            let (stop, mut heard) = (Event::new().unwrap(), Vec::new());
            theirs.send(&hello, None).unwrap();
            for answer in answers {
                match theirs.wait(&stop, Some(Instant::now() + PATIENCE)) {
                    Ok(incoming) => heard.push(incoming.message),
                    Err(_) => break,
                }
                theirs.send(&answer, None).unwrap();
            }
            heard
        });
        let outcome = connect(&ours, "ours", &settings, &Event::new().unwrap());
        drop(ours);
        (outcome, server.join().unwrap())
    }

    #[test]
    fn a_client_says_what_it_brings_and_takes_what_the_server_allows() {
        let mut answers = vec![Message::Ack; 6];
        answers.push(Message::Connected("theirs".to_owned()));
        let (outcome, heard) = connected(",queues=2,slots=1024,id=9", Message::Hello(hello()), answers);
        let connection = outcome.unwrap();
        assert_eq!((connection.peer.as_str(), connection.lines.len(), connection.wakers.len()), ("test (theirs)", 2, 2));
        let kinds: Vec<_> = heard.iter().map(Message::kind).collect();
        assert_eq!(kinds, ["init", "add region", "add ring", "add ring", "add ring", "add ring", "connect"]);
        assert!(matches!(&heard[0], Message::Init(init) if init.id == 9 && init.mode == ETHERNET));
        let slots = |message: &Message| matches!(message, Message::AddRing(ring) if ring.log2_slots == 6);
        assert!(heard[2..6].iter().all(slots), "as many as the server can");
    }

    #[test]
    fn a_server_that_answers_something_else_is_left() {
        let ack = || Message::Ack;
        for (hello, answers, why) in [
            (Message::Ack, vec![], "ack instead of hello"),
            (Message::Hello(Hello { min_version: VERSION + 1, max_version: VERSION + 1, ..hello() }), vec![], "does not speak version 2.0"),
            (Message::Hello(Hello { max_to_server: 0, ..hello() }), vec![], "has 1 queues, fewer than 2"),
            (Message::Hello(hello()), vec![Message::Disconnect("no".to_owned())], "the peer disconnected: no"),
            (Message::Hello(hello()), vec![ack(), Message::Hello(hello())], "hello instead of ack"),
            (Message::Hello(hello()), vec![ack(), ack(), ack()], "the peer is gone"),
            (Message::Hello(hello()), vec![Message::Ack; 7], "ack instead of connected"),
        ] {
            let end = connected(",queues=2", hello, answers).0.unwrap_err().to_string();
            assert!(end.contains(why), "{why}: {end}");
        }
    }

    #[test]
    fn more_memory_than_a_region_can_have_is_refused() {
        let all = Hello { max_to_client: 63, max_to_server: 63, max_log2_slots: 14, ..hello() };
        let end = connected(",queues=64,slots=16384", Message::Hello(all), vec![]).0.unwrap_err().to_string();
        assert!(end.contains("more than 1 GiB"), "{end}");
    }
}

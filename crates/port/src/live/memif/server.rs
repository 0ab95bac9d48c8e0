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
use super::shared::{MOST_LOG2_SLOTS, Regions, Ring};
use super::sys::{self, Event};
use crate::live::sys::Mapping;

/// The most regions of a client.
const MOST_REGIONS: usize = 16;
/// The most bytes of all regions of a client.
const MOST_BYTES: u64 = 1 << 30;

/// Agrees with the client at the other end of `channel`.
///
/// # Errors
/// Why it does not come about.
pub(super) fn connect(channel: &Channel, name: &str, settings: &MemifSettings, stop: &Event) -> Result<Connection, End> {
    let until = Some(Instant::now() + PATIENCE);
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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::live::memif::layout::{Direction, Layout};
    use crate::live::memif::message::{BYTES, SECRET};
    use crate::live::memif::sys::tests::channels;
    use std::thread;

    const LOG2_SLOTS: u8 = 6;

    /// What a client sends, with the descriptor that goes along.
    type Step = (Message, Option<OwnedFd>);

    fn event() -> OwnedFd {
        Event::new().unwrap().as_fd().try_clone_to_owned().unwrap()
    }

    fn init() -> Init {
        Init { version: VERSION, id: 0, mode: ETHERNET, secret: [0; SECRET], name: "test".to_owned() }
    }

    /// What an honest client sends for one queue; its rings are initialized.
    fn honest() -> Vec<Step> {
        let layout = Layout::new(1, LOG2_SLOTS).unwrap();
        let memory = sys::memory(layout.bytes()).unwrap();
        let mapping = Mapping::shared(memory.as_fd(), layout.bytes() as usize, 0).unwrap();
        let regions = Arc::new(Regions::new(vec![mapping]));
        let ring = |direction| {
            let offset = layout.ring(direction, 0);
            Ring::new(&regions, 0, offset, LOG2_SLOTS).unwrap().initialize();
            let to_server = direction == Direction::ToServer;
            Message::AddRing(AddRing { to_server, index: 0, region: 0, offset, log2_slots: LOG2_SLOTS, private_header: 0 })
        };
        vec![
            (Message::Init(init()), None),
            (Message::AddRegion(AddRegion { index: 0, bytes: layout.bytes() }), Some(memory)),
            (ring(Direction::ToServer), Some(event())),
            (ring(Direction::ToClient), Some(event())),
            (Message::Connect("theirs".to_owned()), None),
        ]
    }

    /// Has a client send `steps`, waiting for an answer to each, and go. What the server made of it.
    fn served(settings: &MemifSettings, steps: Vec<Step>) -> Result<Connection, End> {
        let (ours, theirs) = channels();
        let client = thread::spawn(move || {
            let stop = Event::new().unwrap();
            let until = Some(Instant::now() + PATIENCE);
            assert!(matches!(theirs.wait(&stop, until).unwrap().message, Message::Hello(_)));
            for (message, descriptor) in steps {
                if theirs.send(&message, descriptor.as_ref().map(AsFd::as_fd)).is_err() || theirs.wait(&stop, until).is_err() {
                    break;
                }
            }
        });
        let outcome = connect(&ours, "ours", settings, &Event::new().unwrap());
        drop(ours);
        client.join().unwrap();
        outcome
    }

    fn settings(words: &str) -> MemifSettings {
        format!("unused,role=server{words}").parse().unwrap()
    }

    /// Has an honest client's step replaced. Why it was refused.
    fn refusal(place: usize, step: Step) -> String {
        let mut steps = honest();
        steps[place] = step;
        match served(&settings(""), steps) {
            Err(end) => end.to_string(),
            Ok(connection) => panic!("accepted: {connection:?}"),
        }
    }

    #[test]
    fn an_honest_client_is_served() {
        let connection = served(&settings(""), honest()).unwrap();
        assert_eq!((connection.peer.as_str(), connection.lines.len(), connection.wakers.len()), ("test (theirs)", 1, 1));
    }

    #[test]
    fn a_client_that_stops_half_way_is_gone() {
        for len in 0..honest().len() {
            let mut steps = honest();
            steps.truncate(len);
            assert!(matches!(served(&settings(""), steps), Err(End::Gone)), "{len}");
        }
    }

    #[test]
    fn who_speaks_otherwise_is_not_let_in() {
        let other = [
            (Init { version: 0x0100, ..init() }, "version 1.0 instead of 2.0"),
            (Init { id: 3, ..init() }, "id 3 instead of 0"),
            (Init { mode: 1, ..init() }, "mode 1 instead of Ethernet"),
        ];
        for (init, why) in other {
            assert!(refusal(0, (Message::Init(init), None)).contains(why), "{why}");
        }
        assert!(refusal(0, (Message::Ack, None)).contains("ack instead of init"));
        assert!(refusal(1, (Message::Init(init()), None)).contains("init where regions and rings are due"));
        assert!(refusal(2, (Message::Connected(String::new()), None)).contains("connected where"));
        let secret = Message::Init(Init { secret: [b'x'; SECRET], ..init() });
        let outcome = served(&settings(",secret=y"), vec![(secret, None)]);
        assert!(matches!(outcome, Err(End::Refused(why)) if why == "another secret"));
    }

    #[test]
    fn memory_that_could_vanish_is_refused() {
        let bytes = Layout::new(1, LOG2_SLOTS).unwrap().bytes();
        let region = |bytes| Message::AddRegion(AddRegion { index: 0, bytes });
        let memory = || Some(sys::memory(bytes).unwrap());
        assert!(refusal(1, (region(bytes), Some(sys::tests::unsealed(bytes)))).contains("not sealed against shrinking"));
        assert!(refusal(1, (region(bytes), Some(event()))).contains("no memfd"));
        let file = std::fs::File::open("/proc/self/exe").unwrap();
        assert!(refusal(1, (region(bytes), Some(file.into()))).contains("no memfd"));
        assert!(refusal(1, (region(bytes + 1), memory())).contains("there"), "more than it has");
        assert!(refusal(1, (region(0), memory())).contains("0 bytes"));
        assert!(refusal(1, (region(u64::MAX), memory())).contains("in all"));
        assert!(refusal(1, (region(bytes), None)).contains("0 descriptors instead of one"));
        for index in [1, 15, 16, u16::MAX] {
            assert!(refusal(1, (Message::AddRegion(AddRegion { index, bytes }), memory())).contains("in turn"));
        }
    }

    #[test]
    fn rings_that_cannot_be_are_refused() {
        let good = AddRing { to_server: true, index: 0, region: 0, offset: 0, log2_slots: LOG2_SLOTS, private_header: 0 };
        for (ring, why) in [
            (AddRing { index: 1, ..good }, "here are 1 queues"),
            (AddRing { index: u16::MAX, ..good }, "here are 1 queues"),
            (AddRing { private_header: 8, ..good }, "metadata"),
            (AddRing { region: 1, ..good }, "a region that there is not"),
            (AddRing { region: u16::MAX, ..good }, "a region that there is not"),
            (AddRing { offset: u32::MAX, ..good }, "outside its region"),
            (AddRing { offset: 4, ..good }, "multiple of 8"),
            (AddRing { log2_slots: 15, ..good }, "16384"),
            (AddRing { log2_slots: 255, ..good }, "16384"),
            (AddRing { offset: 8192, ..good }, "not initialized"),
            (AddRing { to_server: false, ..good }, "there is one of that number"),
        ] {
            let mut steps = honest();
            steps.insert(2, (Message::AddRing(ring), Some(event())));
            if ring.to_server {
                steps.remove(3);
            }
            let end = served(&settings(""), steps).unwrap_err().to_string();
            assert!(end.contains(why), "{why}: {end}");
        }
        assert!(refusal(2, (Message::AddRing(good), None)).contains("0 descriptors"));
        let file = std::fs::File::open("/dev/null").unwrap();
        assert!(refusal(2, (Message::AddRing(good), Some(file.into()))).contains("no eventfd"));
        assert!(refusal(2, (Message::Connect(String::new()), None)).contains("no ring to the server"));
    }

    #[test]
    fn messages_of_another_length_or_type_end_it() {
        for bytes in [&[3_u8, 0][..], &[0; BYTES - 1], &[0xff; BYTES], &[0; BYTES], &[1; BYTES + 1], &[2; 4000]] {
            let (ours, theirs) = channels();
            sys::tests::send_raw(theirs.as_fd(), bytes);
            let end = connect(&ours, "ours", &settings(""), &Event::new().unwrap()).unwrap_err();
            assert!(matches!(&end, End::Refused(why) if why.contains("a message of")), "{end}");
        }
    }

    #[test]
    fn many_descriptors_are_refused_and_closed() {
        let open = || std::fs::read_dir("/proc/self/fd").unwrap().count();
        let before = open();
        for _ in 0..4 {
            let (ours, theirs) = channels();
            sys::tests::send_descriptors(theirs.as_fd(), &Message::Init(init()).to_bytes(), 200);
            theirs.send(&Message::AddRegion(AddRegion { index: 0, bytes: 1 }), None).unwrap();
            let end = connect(&ours, "ours", &settings(""), &Event::new().unwrap()).unwrap_err();
            assert!(end.to_string().contains("0 descriptors"), "{end}");
        }
        // Other tests open some at the same time.
        assert!(open() < before + 200, "{} and {before}", open());
    }
}

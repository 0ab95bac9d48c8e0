//! The messages of the control socket, protocol version 2.0.
//!
//! ```text
//! client                          server        Each is 128 bytes: its type in two, then what it says, zeros behind. Numbers have the
//!    │ ◄──────────────────── hello │            machine's byte order, and stand unaligned.
//!    │ init ─────────────────────► │
//!    │ add region (memory) ──────► │            In brackets: the descriptor that travels with it. The server acknowledges init and each
//!    │ add ring (event) … ───────► │            addition.
//!    │ connect ──────────────────► │
//!    │ ◄──────────────── connected │
//!    ┊                             ┊
//!    │ ◄── disconnect, either ───► │
//! ```
//! Facts: `memif.h` of VPP's libmemif and of DPDK's `drivers/net/memif`, which agree.

/// Bytes of a message.
pub(super) const BYTES: usize = 128;
/// Version 2.0, the only one that is spoken.
pub(super) const VERSION: u16 = 2 << 8;
/// Bytes of a secret, of which unused ones are zero.
pub(super) const SECRET: usize = 24;
/// Bytes of a name, of which unused ones are zero.
const NAME: usize = 32;
/// Bytes of a reason.
const REASON: usize = 96;
/// Ethernet frames; 1 would be IP packets.
pub(super) const ETHERNET: u8 = 0;
/// Flag of [`AddRing`]: from client to server.
const TO_SERVER: u16 = 1;

/// What a server can do.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(super) struct Hello {
    pub(super) name: String,
    pub(super) min_version: u16,
    pub(super) max_version: u16,
    /// The highest number that a region may have.
    pub(super) max_region: u16,
    /// The highest number that a ring from server to client may have.
    pub(super) max_to_client: u16,
    /// The highest number that a ring from client to server may have.
    pub(super) max_to_server: u16,
    /// Slots of the largest ring, as a power of two.
    pub(super) max_log2_slots: u8,
}

/// Which interface of the server a client wants.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(super) struct Init {
    pub(super) version: u16,
    pub(super) id: u32,
    pub(super) mode: u8,
    pub(super) secret: [u8; SECRET],
    pub(super) name: String,
}

/// Memory of the client's.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct AddRegion {
    pub(super) index: u16,
    pub(super) bytes: u64,
}

/// A ring in that memory.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct AddRing {
    pub(super) to_server: bool,
    pub(super) index: u16,
    pub(super) region: u16,
    pub(super) offset: u32,
    pub(super) log2_slots: u8,
    /// Bytes of metadata in front of each packet.
    pub(super) private_header: u16,
}

/// A message.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(super) enum Message {
    Ack,
    Hello(Hello),
    Init(Init),
    AddRegion(AddRegion),
    AddRing(AddRing),
    /// With the client's name of the interface.
    Connect(String),
    /// With the server's name of the interface.
    Connected(String),
    /// With the reason.
    Disconnect(String),
}

impl Message {
    /// The message as it is sent. Of a text that is too long the beginning.
    pub(super) fn to_bytes(&self) -> [u8; BYTES] {
        let mut writer = Writer { bytes: [0; BYTES], at: 0 };
        match self {
            Message::Ack => writer.u16(1),
            Message::Hello(hello) => {
                writer.u16(2);
                writer.text(&hello.name, NAME);
                writer.u16(hello.min_version);
                writer.u16(hello.max_version);
                writer.u16(hello.max_region);
                writer.u16(hello.max_to_client);
                writer.u16(hello.max_to_server);
                writer.put(&[hello.max_log2_slots]);
            }
            Message::Init(init) => {
                writer.u16(3);
                writer.u16(init.version);
                writer.put(&init.id.to_ne_bytes());
                writer.put(&[init.mode]);
                writer.put(&init.secret);
                writer.text(&init.name, NAME);
            }
            Message::AddRegion(region) => {
                writer.u16(4);
                writer.u16(region.index);
                writer.put(&region.bytes.to_ne_bytes());
            }
            Message::AddRing(ring) => {
                writer.u16(5);
                writer.u16(if ring.to_server { TO_SERVER } else { 0 });
                writer.u16(ring.index);
                writer.u16(ring.region);
                writer.put(&ring.offset.to_ne_bytes());
                writer.put(&[ring.log2_slots]);
                writer.u16(ring.private_header);
            }
            Message::Connect(name) => {
                writer.u16(6);
                writer.text(name, NAME);
            }
            Message::Connected(name) => {
                writer.u16(7);
                writer.text(name, NAME);
            }
            Message::Disconnect(reason) => {
                writer.u16(8);
                // A code, of which 0 means nothing in particular.
                writer.put(&[0; 4]);
                writer.text(reason, REASON);
            }
        }
        writer.bytes
    }

    /// What a peer sent. None for a type that there is not.
    pub(super) fn from_bytes(bytes: &[u8; BYTES]) -> Option<Message> {
        let mut reader = Reader { rest: bytes };
        Some(match reader.u16() {
            1 => Message::Ack,
            2 => Message::Hello(Hello {
                name: reader.text(NAME),
                min_version: reader.u16(),
                max_version: reader.u16(),
                max_region: reader.u16(),
                max_to_client: reader.u16(),
                max_to_server: reader.u16(),
                max_log2_slots: reader.u8(),
            }),
            3 => Message::Init(Init {
                version: reader.u16(),
                id: u32::from_ne_bytes(reader.take()),
                mode: reader.u8(),
                secret: reader.take(),
                name: reader.text(NAME),
            }),
            4 => Message::AddRegion(AddRegion { index: reader.u16(), bytes: u64::from_ne_bytes(reader.take()) }),
            5 => Message::AddRing(AddRing {
                to_server: reader.u16() & TO_SERVER != 0,
                index: reader.u16(),
                region: reader.u16(),
                offset: u32::from_ne_bytes(reader.take()),
                log2_slots: reader.u8(),
                private_header: reader.u16(),
            }),
            6 => Message::Connect(reader.text(NAME)),
            7 => Message::Connected(reader.text(NAME)),
            8 => {
                let _code: [u8; 4] = reader.take();
                Message::Disconnect(reader.text(REASON))
            }
            _ => return None,
        })
    }

    /// What it is called in what the operator is told.
    pub(super) fn kind(&self) -> &'static str {
        match self {
            Message::Ack => "ack",
            Message::Hello(_) => "hello",
            Message::Init(_) => "init",
            Message::AddRegion(_) => "add region",
            Message::AddRing(_) => "add ring",
            Message::Connect(_) => "connect",
            Message::Connected(_) => "connected",
            Message::Disconnect(_) => "disconnect",
        }
    }
}

struct Writer {
    bytes: [u8; BYTES],
    at: usize,
}

impl Writer {
    /// The longest message has 106 bytes, so all of it fits.
    fn put(&mut self, bytes: &[u8]) {
        if let Some(place) = self.bytes.get_mut(self.at..self.at + bytes.len()) {
            place.copy_from_slice(bytes);
        }
        self.at += bytes.len();
    }

    fn u16(&mut self, value: u16) {
        self.put(&value.to_ne_bytes());
    }

    /// `text` in a field of `room` bytes, the last of which stays zero.
    fn text(&mut self, text: &str, room: usize) {
        let end = self.at + room;
        self.put(&text.as_bytes()[..text.len().min(room - 1)]);
        self.at = end;
    }
}

struct Reader<'a> {
    rest: &'a [u8],
}

impl Reader<'_> {
    /// Zeros behind the end, which no message reaches.
    fn take<const N: usize>(&mut self) -> [u8; N] {
        let Some((bytes, rest)) = self.rest.split_first_chunk() else { return [0; N] };
        self.rest = rest;
        *bytes
    }

    fn u8(&mut self) -> u8 {
        u8::from_ne_bytes(self.take())
    }

    fn u16(&mut self) -> u16 {
        u16::from_ne_bytes(self.take())
    }

    /// The text of a field, up to its first zero, without what a terminal would obey.
    fn text(&mut self, room: usize) -> String {
        let (field, rest) = self.rest.split_at(room.min(self.rest.len()));
        self.rest = rest;
        let text = field.split(|&byte| byte == 0).next().unwrap_or_default();
        String::from_utf8_lossy(text).chars().map(|c| if c.is_control() { '?' } else { c }).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn every_message() -> Vec<Message> {
        let hello = Hello {
            name: "a server".into(),
            min_version: 0x0200,
            max_version: 0x0201,
            max_region: 3,
            max_to_client: 4,
            max_to_server: 5,
            max_log2_slots: 14,
        };
        let init = Init { version: 0x0200, id: 0x0102_0304, mode: 1, secret: [7; SECRET], name: "a client".into() };
        let ring = AddRing { to_server: true, index: 1, region: 2, offset: 0x0a0b_0c0d, log2_slots: 10, private_header: 6 };
        vec![
            Message::Ack,
            Message::Hello(hello),
            Message::Init(init),
            Message::AddRegion(AddRegion { index: 9, bytes: 0x0102_0304_0506_0708 }),
            Message::AddRing(ring),
            Message::AddRing(AddRing { to_server: false, ..ring }),
            Message::Connect("here".into()),
            Message::Connected("there".into()),
            Message::Disconnect("enough".into()),
        ]
    }

    #[test]
    fn a_message_is_read_as_it_was_written() {
        for message in every_message() {
            assert_eq!(Message::from_bytes(&message.to_bytes()), Some(message));
        }
    }

    #[test]
    #[cfg(target_endian = "little")]
    fn fields_stand_where_the_protocol_has_them() {
        let messages = every_message();
        let hello = messages[1].to_bytes();
        assert_eq!((&hello[..2], &hello[2..10], &hello[34..45]), (&[2, 0][..], &b"a server"[..], &[0, 2, 1, 2, 3, 0, 4, 0, 5, 0, 14][..]));
        let init = messages[2].to_bytes();
        assert_eq!((&init[..9], &init[9..33], &init[33..41]), (&[3, 0, 0, 2, 4, 3, 2, 1, 1][..], &[7; 24][..], &b"a client"[..]));
        assert_eq!(messages[3].to_bytes()[..12], [4, 0, 9, 0, 8, 7, 6, 5, 4, 3, 2, 1]);
        assert_eq!(messages[4].to_bytes()[..15], [5, 0, 1, 0, 1, 0, 2, 0, 0x0d, 0x0c, 0x0b, 0x0a, 10, 6, 0]);
        let disconnect = messages[8].to_bytes();
        assert_eq!((&disconnect[..6], &disconnect[6..12]), (&[8, 0, 0, 0, 0, 0][..], &b"enough"[..]));
    }

    #[test]
    fn whatever_a_peer_sends_is_a_message_or_none() {
        for kind in 0..=u8::MAX {
            for fill in [0, 0x41, 0x80, 0xff] {
                let mut bytes = [fill; BYTES];
                bytes[..2].copy_from_slice(&u16::from(kind).to_ne_bytes());
                assert_eq!(Message::from_bytes(&bytes).is_some(), (1..=8).contains(&kind));
            }
        }
        let mut bytes = Message::Disconnect(String::new()).to_bytes();
        bytes[6..10].copy_from_slice(b"\x1b[2J");
        assert_eq!(Message::from_bytes(&bytes), Some(Message::Disconnect("?[2J".into())));
    }

    #[test]
    fn a_text_that_is_too_long_is_cut() {
        let long = "x".repeat(200);
        assert_eq!(Message::from_bytes(&Message::Connect(long.clone()).to_bytes()), Some(Message::Connect("x".repeat(31))));
        assert_eq!(Message::from_bytes(&Message::Disconnect(long).to_bytes()), Some(Message::Disconnect("x".repeat(95))));
    }
}

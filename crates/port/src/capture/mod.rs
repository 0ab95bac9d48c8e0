//! Captures: pcap and pcapng files read and written as streams. A file is hostile: its reader holds one record at a time, never trusts a length, and
//! says where and why it could not go on.

mod error;
mod link;
mod merge;
mod pcap;
mod pcapng;
mod pcapng_writer;
mod port;
mod reader;
mod source;
mod writer;

pub use error::{CaptureError, Cause};
pub use merge::Merge;
pub use pcapng_writer::{CaptureInterface, PcapngWriter};
pub use port::CapturePort;
pub use reader::Reader;
pub use writer::Writer;

use crate::Time;
use link::LinkType;

/// Bytes of the longest record that is read or written: what tcpdump and Wireshark allow.
pub const MAX_RECORD: usize = 262_144;

/// A packet in a capture whose bytes are still to be read.
struct Record {
    time: Time,
    /// Bytes in the capture, at most [`MAX_RECORD`].
    len: usize,
    /// Bytes on the wire, or what the capture says.
    wire_len: usize,
    link: LinkType,
}

/// A capture's byte order.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Order {
    Little,
    Big,
}

impl Order {
    /// The number in the two bytes at `at`; 0 where there are none, as in the fields below. The readers look at whole headers.
    fn u16(self, bytes: &[u8], at: usize) -> u16 {
        let field = bytes.get(at..).and_then(<[u8]>::first_chunk).copied().unwrap_or_default();
        match self {
            Order::Little => u16::from_le_bytes(field),
            Order::Big => u16::from_be_bytes(field),
        }
    }

    fn u32(self, bytes: &[u8], at: usize) -> u32 {
        let field = bytes.get(at..).and_then(<[u8]>::first_chunk).copied().unwrap_or_default();
        match self {
            Order::Little => u32::from_le_bytes(field),
            Order::Big => u32::from_be_bytes(field),
        }
    }

    fn u64(self, bytes: &[u8], at: usize) -> u64 {
        let field = bytes.get(at..).and_then(<[u8]>::first_chunk).copied().unwrap_or_default();
        match self {
            Order::Little => u64::from_le_bytes(field),
            Order::Big => u64::from_be_bytes(field),
        }
    }
}

#[cfg(test)]
mod testing {
    use super::*;
    use crate::{Pool, Received};

    /// The packets of a capture, and the error that it ended with.
    pub(super) fn read(bytes: Vec<u8>) -> (Vec<Received>, Option<CaptureError>) {
        let mut packets = Vec::new();
        let mut pool = Pool::default();
        let mut reader = match Reader::new("test", Box::new(std::io::Cursor::new(bytes))) {
            Ok(reader) => reader,
            Err(error) => return (packets, Some(error)),
        };
        loop {
            match reader.next(&mut pool) {
                Ok(Some(packet)) => packets.push(packet),
                Ok(None) => return (packets, None),
                Err(error) => {
                    assert!(matches!(reader.next(&mut pool), Ok(None)), "nothing comes after an error");
                    return (packets, Some(error));
                }
            }
        }
    }

    /// How many packets a capture has, and the message that it ended with.
    pub(super) fn messages(bytes: Vec<u8>) -> (usize, Option<String>) {
        let (packets, error) = read(bytes);
        (packets.len(), error.map(|error| error.to_string()))
    }

    /// A capture of frames of one byte, each with its microsecond.
    pub(super) fn capture(frames: &[(u8, u64)]) -> Vec<u8> {
        let mut writer = Writer::new(Vec::new()).unwrap();
        for &(byte, micros) in frames {
            writer.write(Time::from_micros(micros), &[byte]).unwrap();
        }
        writer.into_inner()
    }
}

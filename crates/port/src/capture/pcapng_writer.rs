//! Writes pcapng files (draft-ietf-opsawg-pcapng): nanoseconds, named interfaces, a comment a packet. For captures that tools show beside an explanation.

use std::io::{self, Write};

use super::MAX_RECORD;
use super::pcapng::{ENHANCED, HEAD, INTERFACE, OPTION_END, OPTION_TIME_RESOLUTION, SECTION, TAIL};
use crate::Time;

const BYTE_ORDER_MAGIC: u32 = 0x1a2b_3c4d;
const OPTION_COMMENT: u16 = 1;
const OPTION_NAME: u16 = 2;
/// Times are in powers of ten: 10^-9 s.
const NANOSECONDS: u8 = 9;
/// The link type of Ethernet.
const ETHERNET: u32 = 1;

/// A capture being written. Each block is handed to the output whole, so that a capture that is broken off ends behind a packet.
#[derive(Debug)]
pub struct PcapngWriter<W> {
    output: W,
    interfaces: u32,
    block: Vec<u8>,
}

/// An interface that the capture describes.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct CaptureInterface(u32);

impl<W: Write> PcapngWriter<W> {
    /// Begins a capture.
    ///
    /// # Errors
    /// Those of `output`.
    pub fn new(output: W) -> io::Result<PcapngWriter<W>> {
        let mut writer = PcapngWriter { output, interfaces: 0, block: Vec::new() };
        writer.begin(SECTION);
        writer.u32(BYTE_ORDER_MAGIC);
        // Version 1.0, of a length that is not said.
        writer.u32(1);
        writer.block.extend([0xff; 8]);
        writer.end()?;
        Ok(writer)
    }

    /// Describes an Ethernet interface.
    ///
    /// # Errors
    /// Those of the output.
    pub fn interface(&mut self, name: &str) -> io::Result<CaptureInterface> {
        self.begin(INTERFACE);
        self.u32(ETHERNET);
        self.u32(MAX_RECORD as u32);
        self.option(OPTION_NAME, name.as_bytes());
        self.option(OPTION_TIME_RESOLUTION, &[NANOSECONDS]);
        self.option(OPTION_END, &[]);
        self.end()?;
        self.interfaces += 1;
        Ok(CaptureInterface(self.interfaces - 1))
    }

    /// Writes a frame with its Ethernet header, cut to [`MAX_RECORD`] bytes, and what is to be said of it; a comment has 65535 bytes at most.
    ///
    /// # Errors
    /// Those of the output.
    pub fn packet(&mut self, interface: CaptureInterface, time: Time, frame: &[u8], comment: &str) -> io::Result<()> {
        let kept = frame.get(..MAX_RECORD).unwrap_or(frame);
        self.begin(ENHANCED);
        self.u32(interface.0);
        self.u32((time.0 >> 32) as u32);
        self.u32(time.0 as u32);
        self.u32(kept.len() as u32);
        self.u32(u32::try_from(frame.len()).unwrap_or(u32::MAX));
        self.bytes(kept);
        let comment = comment.get(..comment.floor_char_boundary(usize::from(u16::MAX))).unwrap_or_default();
        if !comment.is_empty() {
            self.option(OPTION_COMMENT, comment.as_bytes());
            self.option(OPTION_END, &[]);
        }
        self.end()
    }

    /// Hands everything to the system.
    ///
    /// # Errors
    /// Those of the output.
    pub fn flush(&mut self) -> io::Result<()> {
        self.output.flush()
    }

    /// The output, behind the last packet written.
    pub fn into_inner(self) -> W {
        self.output
    }

    fn begin(&mut self, kind: u32) {
        self.block.clear();
        self.u32(kind);
        // Its length is written when it is known.
        self.u32(0);
    }

    fn u32(&mut self, value: u32) {
        self.block.extend(value.to_le_bytes());
    }

    /// Bytes, filled up to a multiple of four.
    fn bytes(&mut self, bytes: &[u8]) {
        self.block.extend(bytes);
        self.block.resize(self.block.len().next_multiple_of(4), 0);
    }

    fn option(&mut self, code: u16, value: &[u8]) {
        let value = value.get(..usize::from(u16::MAX)).unwrap_or(value);
        self.block.extend(code.to_le_bytes());
        self.block.extend((value.len() as u16).to_le_bytes());
        self.bytes(value);
    }

    fn end(&mut self) -> io::Result<()> {
        let len = (self.block.len() + TAIL) as u32;
        self.u32(len);
        if let Some(field) = self.block.get_mut(HEAD - 4..HEAD) {
            field.copy_from_slice(&len.to_le_bytes());
        }
        self.output.write_all(&self.block)
    }
}

#[cfg(test)]
mod tests {
    use super::super::testing::read;
    use super::*;

    #[test]
    fn what_is_written_is_read_again() {
        let mut writer = PcapngWriter::new(Vec::new()).unwrap();
        let (e0, e1) = (writer.interface("e0").unwrap(), writer.interface("a-long-name").unwrap());
        let too_long = vec![5; MAX_RECORD + 1];
        let frames: [(CaptureInterface, u64, &[u8], &str); 4] = [
            (e0, 1, &[], ""),
            (e1, 1_700_000_000_123_456_789, &[1, 2, 3], "it went out"),
            (e1, u64::MAX, &[4; 60], &"ä".repeat(70_000)),
            (e0, 7, &too_long, "cut"),
        ];
        for (interface, time, frame, comment) in frames {
            writer.packet(interface, Time(time), frame, comment).unwrap();
        }
        writer.flush().unwrap();
        let (packets, error) = read(writer.into_inner());
        assert!(error.is_none(), "{error:?}");
        let seen: Vec<_> = packets.iter().map(|packet| (packet.time.0, packet.buf.len(), packet.wire_len)).collect();
        assert_eq!(seen, [(1, 0, 0), (1_700_000_000_123_456_789, 3, 3), (u64::MAX, 60, 60), (7, MAX_RECORD, MAX_RECORD + 1)]);
        assert_eq!(packets[1].buf[..], [1, 2, 3]);
    }

    #[test]
    fn a_packet_carries_its_comment() {
        let mut writer = PcapngWriter::new(Vec::new()).unwrap();
        let e0 = writer.interface("e0").unwrap();
        writer.packet(e0, Time::ZERO, &[1], "ends here").unwrap();
        let bytes = writer.into_inner();
        // opt_comment, 9 bytes, padding, opt_endofopt, the block's length again.
        let end = [&[1, 0, 9, 0][..], b"ends here", &[0; 3], &[0; 4], &56_u32.to_le_bytes()].concat();
        assert!(bytes.ends_with(&end), "{:02x?}", &bytes[bytes.len() - end.len()..]);
    }
}

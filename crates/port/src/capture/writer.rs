//! Writes classic pcap files: little endian, microseconds, Ethernet. Every tool reads them.

use std::io::{self, Write};

use super::MAX_RECORD;
use crate::Time;

/// A capture being written. Give it a [`std::io::BufWriter`] when `W` is a file.
#[derive(Debug)]
pub struct Writer<W> {
    output: W,
}

impl<W: Write> Writer<W> {
    /// Begins a capture of Ethernet frames.
    ///
    /// # Errors
    /// Those of `output`.
    pub fn new(mut output: W) -> io::Result<Writer<W>> {
        let mut header = [0; 24];
        header[..4].copy_from_slice(&0xa1b2_c3d4_u32.to_le_bytes());
        header[4..6].copy_from_slice(&2_u16.to_le_bytes());
        header[6..8].copy_from_slice(&4_u16.to_le_bytes());
        header[16..20].copy_from_slice(&(MAX_RECORD as u32).to_le_bytes());
        header[20..].copy_from_slice(&1_u32.to_le_bytes());
        output.write_all(&header)?;
        Ok(Writer { output })
    }

    /// Writes a frame with its Ethernet header, cut to [`MAX_RECORD`] bytes. Its time is cut to the microsecond; the format ends in the year 2106.
    ///
    /// # Errors
    /// Those of the output.
    pub fn write(&mut self, time: Time, frame: &[u8]) -> io::Result<()> {
        let kept = &frame[..frame.len().min(MAX_RECORD)];
        let mut header = [0; 16];
        header[..4].copy_from_slice(&u32::try_from(time.seconds()).unwrap_or(u32::MAX).to_le_bytes());
        header[4..8].copy_from_slice(&(time.nanos() / 1_000).to_le_bytes());
        header[8..12].copy_from_slice(&(kept.len() as u32).to_le_bytes());
        header[12..].copy_from_slice(&u32::try_from(frame.len()).unwrap_or(u32::MAX).to_le_bytes());
        self.output.write_all(&header)?;
        self.output.write_all(kept)
    }

    /// Hands everything to the system.
    ///
    /// # Errors
    /// Those of the output.
    pub fn flush(&mut self) -> io::Result<()> {
        self.output.flush()
    }

    /// The output, behind the last frame written.
    pub fn into_inner(self) -> W {
        self.output
    }
}

#[cfg(test)]
mod tests {
    use super::super::testing::read;
    use super::*;

    #[test]
    fn what_is_written_is_read_again() {
        let mut writer = Writer::new(Vec::new()).unwrap();
        let jumbo: Vec<u8> = (0..=u8::MAX).cycle().take(70_000).collect();
        let too_long = vec![5; MAX_RECORD + 1];
        let frames: [(Time, &[u8]); 4] =
            [(Time::ZERO, &[]), (Time(1_999), &[1, 2, 3]), (Time(u64::MAX), &jumbo), (Time::from_micros(4_000), &too_long)];
        for (time, frame) in frames {
            writer.write(time, frame).unwrap();
        }
        writer.flush().unwrap();
        let (packets, error) = read(writer.into_inner());
        assert!(error.is_none());
        let times: Vec<_> = packets.iter().map(|packet| packet.time).collect();
        assert_eq!(times, [Time::ZERO, Time(1_000), Time::from_parts(u64::from(u32::MAX), 709_551_000), Time(4_000_000)]);
        assert_eq!(packets.iter().map(|packet| packet.buf.len()).collect::<Vec<_>>(), [0, 3, 70_000, MAX_RECORD]);
        assert_eq!((&packets[2].buf[..], packets[3].wire_len), (&jumbo[..], MAX_RECORD + 1));
    }

    #[test]
    fn the_header_is_that_of_a_little_endian_microsecond_ethernet_capture() {
        let bytes = Writer::new(Vec::new()).unwrap().into_inner();
        assert_eq!(bytes, [0xd4, 0xc3, 0xb2, 0xa1, 2, 0, 4, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 4, 0, 1, 0, 0, 0]);
    }
}

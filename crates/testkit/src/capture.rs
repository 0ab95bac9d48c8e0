//! Captures as tests need them: whole and in memory, through the readers and writers of `port`.

use port::capture::{CaptureError, Reader, Writer};
use port::{Pool, Time};
use std::fs::File;
use std::io::BufWriter;
use std::path::Path;

use crate::network::E0;

/// One captured packet.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Record {
    /// When it was seen.
    pub time: Time,
    /// Its bytes from the Ethernet header on. A packet of a raw capture gets one that is addressed to [`E0`].
    pub bytes: Vec<u8>,
}

/// The packets of a capture in any format that `port` reads.
///
/// # Panics
/// When the file cannot be read to its end.
pub fn read(path: &Path) -> Vec<Record> {
    let (records, error) = read_as_far_as_it_goes(path);
    if let Some(error) = error {
        panic!("{error}");
    }
    records
}

/// The packets of a capture up to where it breaks off or is refused, and why.
pub fn read_as_far_as_it_goes(path: &Path) -> (Vec<Record>, Option<CaptureError>) {
    let mut pool = Pool::default();
    let mut records = Vec::new();
    let mut read = || {
        let mut reader = Reader::open(path)?;
        while let Some(packet) = reader.next(&mut pool)? {
            let packet = packet.into_ethernet(E0.0);
            records.push(Record { time: packet.time, bytes: packet.buf.to_vec() });
            pool.give(packet.buf);
        }
        Ok(())
    };
    let error = read().err();
    (records, error)
}

/// Writes Ethernet frames as a capture.
///
/// # Panics
/// When the file cannot be written.
pub fn write(path: &Path, records: &[Record]) {
    let write = || {
        let mut writer = Writer::new(BufWriter::new(File::create(path)?))?;
        for record in records {
            writer.write(record.time, &record.bytes)?;
        }
        writer.flush()
    };
    write().unwrap_or_else(|e| panic!("{}: {e}", path.display()));
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::replay::Scratch;

    #[test]
    fn what_is_written_reads_back() {
        let scratch = Scratch::new();
        let path = scratch.path().join("written.pcap");
        let records =
            [Record { time: Time(4_000_000), bytes: vec![1; 60] }, Record { time: Time(1_000_000_008_000), bytes: vec![2; 1514] }];
        write(&path, &records);
        assert_eq!(read(&path), records);
    }
}

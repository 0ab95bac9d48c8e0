//! Captures as tests need them: whole, in memory, Ethernet, classic pcap with micro- or nanoseconds.

use std::fs;
use std::path::Path;
use std::time::Duration;

const MICROSECONDS: u32 = 0xa1b2_c3d4;
const NANOSECONDS: u32 = 0xa1b2_3c4d;
const ETHERNET: u32 = 1;
const SNAP_LEN: u32 = 262_144;

/// One captured frame.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Record {
    /// When it was seen, since the epoch.
    pub time: Duration,
    /// Its bytes, from the destination address on.
    pub bytes: Vec<u8>,
}

/// The records of a classic pcap file in either byte order; an empty file holds none.
///
/// # Panics
/// When the file cannot be read, is no pcap, or breaks off within a record.
pub fn read(path: &Path) -> Vec<Record> {
    let bytes = fs::read(path).unwrap_or_else(|e| panic!("{}: {e}", path.display()));
    parse(&bytes).unwrap_or_else(|| panic!("{}: not a whole pcap file", path.display()))
}

fn parse(file: &[u8]) -> Option<Vec<Record>> {
    let magic: [u8; 4] = file.get(..4)?.try_into().ok()?;
    let (number, unit): (fn([u8; 4]) -> u32, u32) = match (u32::from_le_bytes(magic), u32::from_be_bytes(magic)) {
        (MICROSECONDS, _) => (u32::from_le_bytes, 1000),
        (NANOSECONDS, _) => (u32::from_le_bytes, 1),
        (_, MICROSECONDS) => (u32::from_be_bytes, 1000),
        (_, NANOSECONDS) => (u32::from_be_bytes, 1),
        _ => return None,
    };
    let mut rest = file.get(24..)?;
    let mut records = Vec::new();
    while !rest.is_empty() {
        let field = |at: usize| Some(number(rest.get(at..at + 4)?.try_into().ok()?));
        let end = 16 + field(8)? as usize;
        let time = Duration::new(field(0)?.into(), field(4)?.checked_mul(unit)?);
        records.push(Record { time, bytes: rest.get(16..end)?.to_vec() });
        rest = &rest[end..];
    }
    Some(records)
}

/// Writes records as a little-endian pcap with microseconds, link type Ethernet.
///
/// # Panics
/// When the file cannot be written.
pub fn write(path: &Path, records: &[Record]) {
    let mut file = Vec::new();
    let mut number = |n: u32| file.extend_from_slice(&n.to_le_bytes());
    number(MICROSECONDS);
    number(4 << 16 | 2);
    number(0);
    number(0);
    number(SNAP_LEN);
    number(ETHERNET);
    for record in records {
        let len = record.bytes.len() as u32;
        for n in [record.time.as_secs() as u32, record.time.subsec_micros(), len, len] {
            file.extend_from_slice(&n.to_le_bytes());
        }
        file.extend_from_slice(&record.bytes);
    }
    fs::write(path, file).unwrap_or_else(|e| panic!("{}: {e}", path.display()));
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_written_reads_back() {
        let path = std::env::temp_dir().join(format!("noref-capture-{}.pcap", std::process::id()));
        let records = [
            Record { time: Duration::from_micros(4000), bytes: vec![1, 2, 3] },
            Record { time: Duration::from_micros(1_000_000_008_000), bytes: vec![] },
        ];
        write(&path, &records);
        assert_eq!(read(&path), records);
        fs::remove_file(&path).unwrap();
    }

    #[test]
    fn a_record_that_breaks_off_is_noticed() {
        assert_eq!(parse(&[0xd4, 0xc3, 0xb2, 0xa1]), None);
        let mut file = vec![0xd4, 0xc3, 0xb2, 0xa1];
        file.resize(24, 0);
        assert_eq!(parse(&file), Some(vec![]));
        file.resize(30, 0);
        assert_eq!(parse(&file), None);
    }
}

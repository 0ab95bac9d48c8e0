//! Public captures, real and malformed: each is read to its end or to its damage, with the packets that its index counts.
//!
//! They stand beside the repository, under `$NOREF_SHARED/captures` (else `../shared/captures`); without them these tests say so and pass, but where `CI`
//! is set they fail.

use std::path::{Path, PathBuf};

use port::Pool;
use port::capture::{CaptureError, Reader};

fn captures() -> Option<PathBuf> {
    let beside = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../../shared");
    let folder = std::env::var_os("NOREF_SHARED").map_or(beside, PathBuf::from).join("captures");
    if folder.is_dir() {
        return Some(folder);
    }
    assert!(std::env::var_os("CI").is_none_or(|ci| ci.is_empty()), "{} is missing", folder.display());
    eprintln!("skipped: {} is missing", folder.display());
    None
}

/// Packets read from a file, and the error that it ended with.
fn read(path: &Path) -> (u64, Option<CaptureError>) {
    match Reader::open(path) {
        Ok(reader) => to_the_end(reader),
        Err(error) => (0, Some(error)),
    }
}

/// The same of bytes.
fn drain(name: &str, bytes: Vec<u8>) -> (u64, Option<CaptureError>) {
    match Reader::new(name, Box::new(std::io::Cursor::new(bytes))) {
        Ok(reader) => to_the_end(reader),
        Err(error) => (0, Some(error)),
    }
}

fn to_the_end(mut reader: Reader) -> (u64, Option<CaptureError>) {
    let mut packets = 0;
    let mut pool = Pool::default();
    loop {
        match reader.next(&mut pool) {
            Ok(Some(packet)) => {
                assert!(packet.wire_len >= packet.buf.len());
                packets += 1;
                pool.give(packet.buf);
            }
            Ok(None) => return (packets, None),
            Err(error) => return (packets, Some(error)),
        }
    }
}

/// Name, link types and packets of each capture, from `index.tsv`.
fn index(folder: &Path) -> Vec<(String, String, u64)> {
    let text = std::fs::read_to_string(folder.join("index.tsv")).unwrap();
    let rows = text.lines().skip(1).map(|line| line.split('\t').collect::<Vec<_>>());
    rows.map(|row| (row[0].to_owned(), row[4].to_owned(), row[5].parse().unwrap_or(0))).collect()
}

/// Captures that are not read, and a part of the message that says why. All others are read to their end.
const REFUSED: [(&str, &str); 7] = [
    ("libpcap/linktype-reserved-field-not-zero.pcap", "reserved bits of the link type are set (0x00300000)"),
    ("libpcap/pcap-invalid-version-1.pcap", "pcap version 1.4 is not known"),
    ("libpcap/pcap-invalid-version-2.pcap", "pcap version 2.5 is not known"),
    ("libpcap/pcapng-invalid-vers-1.pcapng", "pcapng version 0.1 is not known"),
    ("libpcap/pcapng-invalid-vers-2.pcapng", "pcapng version 1.1 is not known"),
    ("libpcap/shb-option-too-long.pcapng", "a block begins with length 52 and ends with length 808464432 (at byte 0,"),
    ("zeek/trunc__mpls-6in6-broken.pcap.gz", "it is compressed with gzip"),
];

#[test]
fn every_capture_is_read_with_the_packets_that_its_index_counts() {
    let Some(folder) = captures() else { return };
    let index = index(&folder);
    assert!(index.len() > 400, "{} captures", index.len());
    for (name, link, expected) in &index {
        let (packets, error) = read(&folder.join(name));
        let message = error.map(|error| error.to_string()).unwrap_or_default();
        match REFUSED.iter().find(|(refused, _)| refused == name) {
            Some((_, reason)) => assert!(packets == 0 && message.contains(reason), "{name}: {message}"),
            None if link == "113" => assert!(packets == 0 && message.contains("link type 113 (Linux cooked capture"), "{name}: {message}"),
            None => assert_eq!((packets, message.as_str()), (*expected, ""), "{name}"),
        }
    }
}

#[test]
fn a_capture_cut_or_spoilt_anywhere_is_read_without_panic() {
    let Some(folder) = captures() else { return };
    let names =
        ["pcapng-gen/output_be__difficult__test202.pcapng", "pcapng-gen/output_le__advanced__test102.pcapng", "zeek/icmp__icmp-ping.pcap"];
    for name in names {
        let good = std::fs::read(folder.join(name)).unwrap();
        let whole = drain(name, good.clone()).0;
        for at in 0..good.len() {
            assert!(drain(name, good[..at].to_vec()).0 <= whole);
            for value in [0, 0x7f, 0xff, good[at] ^ 1] {
                let mut spoilt = good.clone();
                spoilt[at] = value;
                drain(name, spoilt);
            }
        }
    }
}

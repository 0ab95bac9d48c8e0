//! One capture, read packet by packet.

use std::fs::File;
use std::io::{self, Read};
use std::path::Path;

use super::pcap::Pcap;
use super::pcapng::PcapNg;
use super::source::Source;
use super::{CaptureError, Cause, Record};
use crate::{Pool, Received};

/// First bytes of compressed files that people keep captures in.
const COMPRESSED: [(&[u8], &str); 4] =
    [(&[0x1f, 0x8b], "gzip"), (&[0x28, 0xb5, 0x2f, 0xfd], "zstd"), (&[0xfd, b'7', b'z', b'X'], "xz"), (b"BZh", "bzip2")];

enum Format {
    Pcap(Pcap),
    PcapNg(PcapNg),
}

/// A capture open for reading: pcap (micro- or nanosecond, any byte order, Kuznetzov's modified form) or pcapng.
pub struct Reader {
    name: String,
    source: Source,
    format: Format,
    packets: u64,
    ended: bool,
}

impl Reader {
    /// Opens a file, or standard input for `-`.
    ///
    /// # Errors
    /// When it can not be opened or is no capture that can be read.
    pub fn open(path: &Path) -> Result<Reader, CaptureError> {
        if path == Path::new("-") {
            return Reader::new("standard input", Box::new(io::stdin()));
        }
        let name = path.display().to_string();
        match File::open(path) {
            Ok(file) => Reader::new(&name, Box::new(file)),
            Err(error) => Err(CaptureError { name, offset: 0, packets: 0, cause: Cause::Io(error) }),
        }
    }

    /// Reads from `input`, which errors call `name`.
    ///
    /// # Errors
    /// When it is no capture that can be read.
    pub fn new(name: &str, input: Box<dyn Read + Send>) -> Result<Reader, CaptureError> {
        let mut source = Source::new(input);
        match begin(&mut source) {
            Ok(format) => Ok(Reader { name: name.to_owned(), source, format, packets: 0, ended: false }),
            Err(cause) => Err(CaptureError { name: name.to_owned(), offset: 0, packets: 0, cause }),
        }
    }

    /// The next packet, in a buffer of `pool`; None at the end, and ever after an error.
    ///
    /// # Errors
    /// When the capture breaks off or is damaged: what was read before is good, what follows is lost.
    pub fn next(&mut self, pool: &mut Pool) -> Result<Option<Received>, CaptureError> {
        if self.ended {
            return Ok(None);
        }
        match self.read(pool) {
            Ok(Some(packet)) => {
                self.packets += 1;
                Ok(Some(packet))
            }
            Ok(None) => {
                self.ended = true;
                Ok(None)
            }
            Err(cause) => {
                self.ended = true;
                Err(CaptureError { name: self.name.clone(), offset: self.source.offset(), packets: self.packets, cause })
            }
        }
    }

    /// The capture as messages call it.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// Bytes of the capture read so far.
    pub fn offset(&self) -> u64 {
        self.source.offset()
    }

    fn read(&mut self, pool: &mut Pool) -> Result<Option<Received>, Cause> {
        let record = match &mut self.format {
            Format::Pcap(file) => file.next(&mut self.source)?,
            Format::PcapNg(file) => file.next(&mut self.source)?,
        };
        let Some(Record { time, len, wire_len, link }) = record else { return Ok(None) };
        let bytes = self.source.look(len, "a packet")?;
        let bytes = bytes.get(link.skip..).unwrap_or_default();
        let mut buf = pool.take(bytes.len());
        buf.append(bytes);
        let wire_len = wire_len.saturating_sub(link.skip).max(bytes.len());
        self.source.take(len);
        Ok(Some(Received { buf, time, wire_len, link: link.link }))
    }
}

/// Finds out what `source` is and reads its header.
fn begin(source: &mut Source) -> Result<Format, Cause> {
    let magic: [u8; 4] = match *source.peek(4)? {
        [] => return Err(Cause::Empty),
        [a, b, c, d] => [a, b, c, d],
        ref short => return Err(Cause::BrokenOff { what: "the file header", wanted: 24, there: short.len() as u64 }),
    };
    if let Some(file) = Pcap::open(source, magic)? {
        return Ok(Format::Pcap(file));
    }
    if let Some(file) = PcapNg::open(source, magic)? {
        return Ok(Format::PcapNg(file));
    }
    match COMPRESSED.iter().find(|(begin, _)| magic.starts_with(begin)) {
        Some((_, with)) => Err(Cause::Compressed(with)),
        None => Err(Cause::NotACapture(magic)),
    }
}

impl std::fmt::Debug for Reader {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "Reader({}, {} packets in {} bytes)", self.name, self.packets, self.offset())
    }
}

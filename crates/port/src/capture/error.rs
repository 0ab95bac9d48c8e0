//! What can be wrong with a capture, where, and what the operator can do.

use std::io;

/// Why a capture, or the rest of it, could not be read. It names the capture, the place and the cause.
#[derive(Debug, thiserror::Error)]
#[error("{name}: {cause}{}", place(*.offset, *.packets, .cause))]
pub struct CaptureError {
    /// The file, or `standard input`.
    pub name: String,
    /// Bytes from the beginning of the capture to what could not be read.
    pub offset: u64,
    /// Packets read before it.
    pub packets: u64,
    /// What was wrong there.
    pub cause: Cause,
}

/// What was wrong with a capture.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Cause {
    /// The system could not open or read it.
    #[error("{0}")]
    Io(#[from] io::Error),
    /// It has no bytes at all.
    #[error("it is empty: not even a file header")]
    Empty,
    /// It begins like no capture file.
    #[error("it is no pcap or pcapng file (it begins with the bytes {})", hex(.0))]
    NotACapture([u8; 4]),
    /// It begins like a compressed file of this kind.
    #[error("it is compressed with {0}: unpack it first, or pipe it in (PORT=- reads standard input)")]
    Compressed(&'static str),
    /// A version of the format that nobody has defined, or one from before 1998.
    #[error("{format} version {major}.{minor} is not known; readable are pcap 2.4 and pcapng 1.0")]
    Version {
        /// `pcap` or `pcapng`.
        format: &'static str,
        /// Major version of the file.
        major: u16,
        /// Minor version of the file.
        minor: u16,
    },
    /// Packets of a kind that the router does not take.
    #[error("link type {0} ({name}) is not supported; readable are Ethernet (1), raw IP (12, 14, 101, 228, 229) and loopback (0, 108)", name = link_name(*.0))]
    LinkType(u32),
    /// It ends in the middle of something.
    #[error("it breaks off: {what} of {wanted} bytes has only {there}")]
    BrokenOff {
        /// What began there.
        what: &'static str,
        /// Bytes it should have.
        wanted: u64,
        /// Bytes there are.
        there: u64,
    },
    /// A length that nothing in a capture has.
    #[error("{what} says a length of {len} bytes, which can not be")]
    Length {
        /// What says so.
        what: &'static str,
        /// The length it says.
        len: u64,
    },
    /// A pcapng section that does not say in which order its bytes stand.
    #[error("a section header has no byte-order magic (but {0:02x?})")]
    ByteOrder([u8; 4]),
    /// The two lengths around a pcapng block differ.
    #[error("a block begins with length {0} and ends with length {1}")]
    BlockLengths(u32, u32),
    /// A packet of an interface that the section does not describe.
    #[error("a packet is of interface {0}, which the section does not describe")]
    Interface(u32),
    /// More interfaces in one section than make sense.
    #[error("a section describes more than {0} interfaces")]
    TooManyInterfaces(usize),
    /// Reserved bits that would change the meaning of the link type.
    #[error("reserved bits of the link type are set ({0:#010x})")]
    ReservedBits(u32),
}

impl Cause {
    /// True when no packet of the capture could have been read whatever its length, so that the run should not begin. False when the capture was
    /// good up to the place and only breaks off there.
    pub fn is_refusal(&self) -> bool {
        match self {
            Cause::Io(_)
            | Cause::Empty
            | Cause::NotACapture(_)
            | Cause::Compressed(_)
            | Cause::Version { .. }
            | Cause::LinkType(_)
            | Cause::ReservedBits(_) => true,
            Cause::BrokenOff { .. }
            | Cause::Length { .. }
            | Cause::ByteOrder(_)
            | Cause::BlockLengths(..)
            | Cause::Interface(_)
            | Cause::TooManyInterfaces(_) => false,
        }
    }
}

/// Where it happened, unless nothing was read and the beginning says it all.
fn place(offset: u64, packets: u64, cause: &Cause) -> String {
    match (offset, packets) {
        (0, _) if cause.is_refusal() => String::new(),
        (_, 0) => format!(" (at byte {offset}, before the first packet)"),
        (_, 1) => format!(" (at byte {offset}, after 1 packet)"),
        _ => format!(" (at byte {offset}, after {packets} packets)"),
    }
}

/// `23 21 2f 62`.
fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect::<Vec<_>>().join(" ")
}

/// The name of a link type in the registry of tcpdump.org, for those that an operator is likely to meet.
fn link_name(link_type: u32) -> &'static str {
    match link_type {
        6 => "token ring",
        9 => "PPP",
        105 => "802.11",
        113 => "Linux cooked capture, as of `tcpdump -i any`",
        127 => "802.11 with radiotap",
        147..=162 => "private use",
        220 => "USB",
        276 => "Linux cooked capture v2, as of `tcpdump -i any`",
        _ => "see tcpdump.org/linktypes.html",
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_message_names_the_capture_the_cause_and_the_place() {
        let error = |offset, packets, cause| CaptureError { name: "a.pcap".into(), offset, packets, cause }.to_string();
        assert_eq!(
            error(1040, 7, Cause::BrokenOff { what: "a record", wanted: 116, there: 20 }),
            "a.pcap: it breaks off: a record of 116 bytes has only 20 (at byte 1040, after 7 packets)"
        );
        assert_eq!(
            error(24, 0, Cause::Length { what: "a record", len: 300_000 }),
            "a.pcap: a record says a length of 300000 bytes, which can not be (at byte 24, before the first packet)"
        );
        assert_eq!(error(0, 0, Cause::Empty), "a.pcap: it is empty: not even a file header");
        assert_eq!(
            error(0, 0, Cause::LinkType(113)),
            "a.pcap: link type 113 (Linux cooked capture, as of `tcpdump -i any`) is not supported; readable are Ethernet (1), raw IP (12, 14, \
             101, 228, 229) and loopback (0, 108)"
        );
    }
}

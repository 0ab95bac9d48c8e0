//! A seg6 route's policy: the segments a packet is sent along, and how they are put on.

use std::fmt;
use std::hash::{Hash, Hasher};
use std::net::Ipv6Addr;

use port::Buf;
use route::{DropReason, TableId};

use crate::headend::{Insert, Outer, encaps, l2encaps};
use crate::{BuildError, Env, SegmentList};

/// How segments are put on a packet.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Mode {
    /// H.Insert (draft-filsfils-spring-srv6-net-pgm-insertion): an SRH is inserted into an IPv6 packet.
    Inline,
    /// H.Encaps (RFC 8986 §5.1): an outer IPv6 header with an SRH.
    Encap,
    /// H.Encaps.L2 (RFC 8986 §5.3): as H.Encaps, around the whole frame.
    L2Encap,
    /// H.Encaps.Red (RFC 8986 §5.2): the SRH leaves out the first segment; there is none for a single segment.
    EncapRed,
    /// H.Encaps.L2.Red (RFC 8986 §5.4): as H.Encaps.Red, around the whole frame.
    L2EncapRed,
}

impl Mode {
    /// Every mode, in the order of the kernel's numbers.
    pub const ALL: [Mode; 5] = [Mode::Inline, Mode::Encap, Mode::L2Encap, Mode::EncapRed, Mode::L2EncapRed];

    /// The mode as iproute2 spells it.
    pub const fn word(self) -> &'static str {
        match self {
            Mode::Inline => "inline",
            Mode::Encap => "encap",
            Mode::L2Encap => "l2encap",
            Mode::EncapRed => "encap.red",
            Mode::L2EncapRed => "l2encap.red",
        }
    }

    /// The kernel's number (`SEG6_IPTUN_MODE_…`).
    pub const fn number(self) -> u32 {
        match self {
            Mode::Inline => 0,
            Mode::Encap => 1,
            Mode::L2Encap => 2,
            Mode::EncapRed => 3,
            Mode::L2EncapRed => 4,
        }
    }

    /// The mode that iproute2 spells `word`.
    pub fn from_word(word: &str) -> Option<Mode> {
        Mode::ALL.into_iter().find(|mode| mode.word() == word)
    }

    /// The mode with the kernel's `number`.
    pub fn from_number(number: u32) -> Option<Mode> {
        Mode::ALL.into_iter().find(|mode| mode.number() == number)
    }
}

impl fmt::Display for Mode {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.word())
    }
}

/// What is at the front of a buffer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Inner {
    /// An IPv4 packet.
    V4,
    /// An IPv6 packet.
    V6,
}

/// The headend of a seg6 route, ready to process packets: the headers to be put on are made beforehand.
#[derive(Clone, Debug)]
pub struct Policy {
    mode: Mode,
    segments: SegmentList,
    tunsrc: Option<Ipv6Addr>,
    table: Option<TableId>,
    headers: Headers,
}

/// The headers of a mode.
#[derive(Clone, Debug)]
enum Headers {
    Encaps(Outer),
    L2Encaps(Outer),
    Insert(Insert),
}

impl Policy {
    /// A policy along `segments`; `tunsrc` is the route's own source for outer headers (kernel 7.1), which wins over the router's.
    ///
    /// # Errors
    /// No segments, or more than fit a routing header: 127, less two with an HMAC, less one when inserted.
    pub fn build(mode: Mode, segments: &SegmentList, tunsrc: Option<Ipv6Addr>) -> Result<Policy, BuildError> {
        let headers = match mode {
            Mode::Inline => Headers::Insert(Insert::build(segments)?),
            Mode::Encap => Headers::Encaps(Outer::full(segments)?),
            Mode::EncapRed => Headers::Encaps(Outer::reduced(segments)?),
            Mode::L2Encap => Headers::L2Encaps(Outer::full(segments)?),
            Mode::L2EncapRed => Headers::L2Encaps(Outer::reduced(segments)?),
        };
        Ok(Policy { mode, segments: segments.clone(), tunsrc, table: None, headers })
    }

    /// The same policy, whose packets are looked up in this table alone once they have their outer header (`lookup`, kernel 7.3).
    pub fn looked_up_in(self, table: Option<TableId>) -> Policy {
        Policy { table, ..self }
    }

    /// The table that the first segment is looked up in; without: as for any packet that comes in where this one did.
    pub fn table(&self) -> Option<TableId> {
        self.table
    }

    /// How segments are put on.
    pub fn mode(&self) -> Mode {
        self.mode
    }

    /// The segments.
    pub fn segments(&self) -> &SegmentList {
        &self.segments
    }

    /// The route's own source for outer headers.
    pub fn tunsrc(&self) -> Option<Ipv6Addr> {
        self.tunsrc
    }

    /// Where the packet goes first: the destination it has afterwards.
    pub fn first_segment(&self) -> Ipv6Addr {
        self.segments.segments.first().copied().unwrap_or(Ipv6Addr::UNSPECIFIED)
    }

    /// Bytes that it puts in front of a packet, the frame's own header in the L2 modes not counted.
    pub fn overhead(&self) -> usize {
        match &self.headers {
            Headers::Encaps(outer) | Headers::L2Encaps(outer) => outer.len(),
            Headers::Insert(insert) => insert.len(),
        }
    }

    /// Puts the segments on the packet at the front of `buf`, which is an `inner` and is left as it is (no hop limit is counted). An IPv6 packet
    /// with the first segment as its destination is at the front afterwards, unrouted; `source` is the source of its outer header. Its hop limit is
    /// that of an inner IPv6 packet, or 64.
    ///
    /// # Errors
    /// No headroom, a result beyond 65535 bytes, an HMAC key that is not set, IPv4 where an SRH is to be inserted, no frame where one is to be
    /// wrapped. What is left in `buf` has no meaning then.
    #[inline]
    pub fn apply(&self, buf: &mut Buf, inner: Inner, source: Ipv6Addr, env: &Env<'_>) -> Result<(), DropReason> {
        match &self.headers {
            Headers::Encaps(outer) => encaps::apply(outer, buf, inner, source, env),
            Headers::L2Encaps(outer) => l2encaps::apply(outer, buf, inner, source, env),
            Headers::Insert(insert) => insert.apply(buf, inner, env),
        }
    }
}

/// Policies are equal that were built from the same: the headers follow from it.
impl PartialEq for Policy {
    fn eq(&self, other: &Policy) -> bool {
        (self.mode, &self.segments, self.tunsrc, self.table) == (other.mode, &other.segments, other.tunsrc, other.table)
    }
}

impl Eq for Policy {}

impl Hash for Policy {
    fn hash<H: Hasher>(&self, state: &mut H) {
        (self.mode, &self.segments, self.tunsrc, self.table).hash(state);
    }
}

/// As iproute2 prints it: `encap seg6 mode encap segs 2 [ fc00:2::1 fc00:3::1 ]`. Inserted lists end with `::`, the place of the destination.
impl fmt::Display for Policy {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "encap seg6 mode {}", self.mode)?;
        match self.mode {
            Mode::Inline => {
                let mut shown = self.segments.clone();
                shown.segments.push(Ipv6Addr::UNSPECIFIED);
                write!(f, " {shown}")?;
            }
            _ => write!(f, " {}", self.segments)?,
        }
        if let Some(tunsrc) = self.tunsrc {
            write!(f, " tunsrc {tunsrc}")?;
        }
        match self.table {
            Some(table) => write!(f, " lookup {table}"),
            None => Ok(()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::*;

    #[test]
    fn it_is_shown_as_iproute2_does() {
        let segments = SegmentList { segments: vec![MIDDLE, LAST], hmac: 42 };
        let shown = |mode, tunsrc| Policy::build(mode, &segments, tunsrc).unwrap().to_string();
        assert_eq!(
            shown(Mode::EncapRed, None),
            "encap seg6 mode encap.red segs 2 [ fc01:31:32:33:34:35:36:37 fc02:41:42:43:44:45:46:47 ] hmac 0x2a"
        );
        assert!(shown(Mode::Inline, None).contains("segs 3 [ fc01:31:32:33:34:35:36:37 fc02:41:42:43:44:45:46:47 :: ]"));
        assert!(shown(Mode::Encap, Some(TUNSRC)).ends_with(" tunsrc fd04:61:62:63:64:65:66:67"));
        let policy = Policy::build(Mode::Encap, &segments, None).unwrap();
        assert!(policy.clone().looked_up_in(Some(TableId(77))).to_string().ends_with(" hmac 0x2a lookup 77"));
        assert_ne!(policy.clone().looked_up_in(Some(TableId(77))), policy);
    }

    #[test]
    fn words_and_numbers_name_the_modes() {
        for mode in Mode::ALL {
            assert_eq!((Mode::from_word(mode.word()), Mode::from_number(mode.number())), (Some(mode), Some(mode)));
        }
        assert_eq!(Mode::from_word("encap.RED"), None);
    }

    #[test]
    fn fault_more_segments_than_an_array_holds() {
        for count in [1, 17, 64, 126] {
            let segments = SegmentList { segments: vec![LAST; count], hmac: 0 };
            Mode::ALL.into_iter().for_each(|mode| assert!(Policy::build(mode, &segments, None).is_ok(), "{count} segments, {mode}"));
        }
        let segments = SegmentList { segments: vec![LAST; 127], hmac: 0 };
        let error = Policy::build(Mode::Inline, &segments, None).unwrap_err();
        assert_eq!(error.to_string(), "127 segments do not fit a routing header, at most 126 do here");
    }
}

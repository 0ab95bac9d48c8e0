//! The fragments of one datagram, as far as they have come.

use std::collections::BTreeMap;

use port::{Buf, Pool};

use crate::options4::Options;

/// Bytes charged for a datagram and for each fragment on top of their content, for what keeps them.
const DATAGRAM_COST: usize = 512;
const PIECE_COST: usize = 128;

/// One fragment.
#[derive(Clone, Copy, Debug)]
pub(super) struct Fragment<'a> {
    /// What stands in front of the payload: IP header, and for IPv6 the extension headers up to and with the fragment header.
    pub header: &'a [u8],
    /// Its piece of the datagram.
    pub payload: &'a [u8],
    /// Where the piece belongs, bytes.
    pub offset: usize,
    /// More pieces follow behind it.
    pub more: bool,
    /// The sender forbade fragmentation on the way (IPv4).
    pub df: bool,
    /// ECN field of the IP header, two bits.
    pub ecn: u8,
    /// Interface it came in by.
    pub iif: u32,
    /// Number of its frame.
    pub number: u64,
    /// Offset of the byte in `header` that names the fragment header as next header (IPv6).
    pub named_at: usize,
    /// What was found in `header` (IPv4).
    pub options: Option<Options>,
}

/// Why a fragment was not taken.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Refused {
    /// All of it came before. The datagram goes on.
    Duplicate,
    /// It is empty, or ends elsewhere than others say. The datagram ends.
    Corrupt,
    /// Part of it came before. The datagram ends.
    Overlap,
}

/// Adjacent fragments: where the first starts and the last ends.
#[derive(Clone, Copy, Debug)]
struct Run {
    start: usize,
    end: usize,
}

#[derive(Debug, Default)]
pub(super) struct Datagram {
    /// In order, disjoint. Only a fragment behind all others lengthens the last one; one that comes out of order is a run for itself, even
    /// between two that touch it. What Linux calls a duplicate lies within one run.
    runs: Vec<Run>,
    pieces: BTreeMap<usize, Box<[u8]>>,
    /// Header of the fragment with offset 0, once it came.
    header: Option<Box<[u8]>>,
    named_at: usize,
    /// Where the furthest fragment ends.
    len: usize,
    last_came: bool,
    came: usize,
    /// Sizes of the largest fragment, and of the largest with DF, with header.
    largest: usize,
    largest_df: usize,
    /// One bit for each value of the ECN field met.
    ecn: u8,
    iif: u32,
    /// Options of the fragment with offset 0 (IPv4).
    pub options: Option<Options>,
    /// Number of its frame.
    pub number: u64,
    /// Number of the latest fragment among all of its source's (IPv4).
    pub ticket: u32,
}

impl Datagram {
    /// Takes a fragment in. Even one that is refused may have said where the datagram ends, as in Linux.
    pub fn take(&mut self, fragment: &Fragment<'_>) -> Result<(), Refused> {
        let end = fragment.offset + fragment.payload.len();
        let beyond_last = self.last_came && end > self.len;
        let other_end = !fragment.more && (end < self.len || self.last_came && end != self.len);
        if beyond_last || other_end {
            return Err(Refused::Corrupt);
        }
        self.last_came |= !fragment.more;
        self.len = self.len.max(end);
        if fragment.payload.is_empty() {
            return Err(Refused::Corrupt);
        }
        self.place(fragment.offset, end)?;
        self.pieces.insert(fragment.offset, fragment.payload.into());
        self.came += fragment.payload.len();
        self.ecn |= 1 << (fragment.ecn & 3);
        self.iif = fragment.iif;
        let size = fragment.header.len() + fragment.payload.len();
        self.largest = self.largest.max(size);
        if fragment.df {
            self.largest_df = self.largest_df.max(size);
        }
        if fragment.offset == 0 {
            self.header = Some(fragment.header.into());
            self.named_at = fragment.named_at;
            self.options = fragment.options;
            self.number = fragment.number;
        }
        Ok(())
    }

    /// Finds the place of the bytes from `start` to `end` among the runs.
    fn place(&mut self, start: usize, end: usize) -> Result<(), Refused> {
        match self.runs.last_mut() {
            Some(last) if end > last.end => {
                if start < last.end {
                    return Err(Refused::Overlap);
                }
                if start == last.end {
                    last.end = end;
                    return Ok(());
                }
            }
            _ => {}
        }
        let at = self.runs.partition_point(|run| run.end <= start);
        match self.runs.get(at) {
            Some(run) if end > run.start => Err(if run.start <= start && end <= run.end { Refused::Duplicate } else { Refused::Overlap }),
            _ => {
                self.runs.insert(at, Run { start, end });
                Ok(())
            }
        }
    }

    pub fn is_complete(&self) -> bool {
        self.header.is_some() && self.last_came && self.came == self.len
    }

    /// Fragments held.
    pub fn fragments(&self) -> usize {
        self.pieces.len()
    }

    /// Bytes of memory to charge for it.
    pub fn cost(&self) -> usize {
        DATAGRAM_COST + self.header.as_deref().map_or(0, <[u8]>::len) + self.came + self.pieces.len() * PIECE_COST
    }

    /// Bytes of what was fragmented.
    pub fn len(&self) -> usize {
        self.len
    }

    /// Header of the first fragment, empty before it came.
    pub fn header(&self) -> &[u8] {
        self.header.as_deref().unwrap_or_default()
    }

    /// Offset of the byte in the header that names the fragment header as next header (IPv6).
    pub fn named_at(&self) -> usize {
        self.named_at
    }

    pub fn iif(&self) -> u32 {
        self.iif
    }

    /// The largest fragment had DF set: the whole must not travel further in one piece.
    pub fn keeps_df(&self) -> bool {
        self.largest_df == self.largest
    }

    /// What to set in the ECN field of the first fragment's header for the whole (RFC 3168 §5.3): CE when some were marked on the way. None
    /// when fragments with and without ECN are mixed, which lets the datagram go.
    pub fn ecn(&self) -> Option<u8> {
        const NOT_ECT: u8 = 1;
        const CE: u8 = 1 << 3;
        match self.ecn {
            NOT_ECT | CE => Some(0),
            met if met & NOT_ECT != 0 => None,
            met if met & CE != 0 => Some(3),
            _ => Some(0),
        }
    }

    /// All pieces behind `header`.
    pub fn join(&self, header: &[u8], pool: &mut Pool) -> Buf {
        let mut buf = pool.take(header.len() + self.len);
        buf.append(header);
        self.pieces.values().for_each(|piece| buf.append(piece));
        buf
    }

    /// The first fragment as it came.
    pub fn first(&self, pool: &mut Pool) -> Option<Buf> {
        let (header, piece) = (self.header.as_deref()?, self.pieces.get(&0)?);
        let mut buf = pool.take(header.len() + piece.len());
        buf.append(header);
        buf.append(piece);
        Some(buf)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn piece(offset: usize, len: usize, more: bool) -> Fragment<'static> {
        const BYTES: [u8; 256] = [7; 256];
        Fragment {
            header: &[0; 20],
            payload: &BYTES[..len],
            offset,
            more,
            df: false,
            ecn: 0,
            iif: 3,
            number: 0,
            named_at: 0,
            options: None,
        }
    }

    #[test]
    fn what_lies_within_one_run_is_a_duplicate_and_what_crosses_its_edge_an_overlap() {
        let mut datagram = Datagram::default();
        datagram.take(&piece(16, 16, true)).unwrap();
        datagram.take(&piece(32, 16, true)).unwrap();
        assert_eq!(datagram.take(&piece(24, 16, true)), Err(Refused::Duplicate), "across two that came in order");
        datagram.take(&piece(8, 8, true)).unwrap();
        assert_eq!(datagram.take(&piece(8, 16, true)), Err(Refused::Overlap), "across two that did not");
        assert_eq!(datagram.take(&piece(0, 16, true)), Err(Refused::Overlap));
        assert_eq!(datagram.take(&piece(40, 16, true)), Err(Refused::Overlap));
        assert_eq!(datagram.take(&piece(0, 72, true)), Err(Refused::Overlap), "over all");
    }

    #[test]
    fn the_end_is_where_the_last_fragment_says() {
        let last = |then: Fragment<'_>| {
            let mut datagram = Datagram::default();
            datagram.take(&piece(96, 48, false)).unwrap();
            datagram.take(&then)
        };
        assert_eq!(last(piece(96, 56, false)), Err(Refused::Corrupt));
        assert_eq!(last(piece(96, 40, false)), Err(Refused::Corrupt));
        assert_eq!(last(piece(144, 8, true)), Err(Refused::Corrupt));
        assert_eq!(last(piece(88, 0, true)), Err(Refused::Corrupt));
        assert_eq!(last(piece(96, 48, false)), Err(Refused::Duplicate));
        assert_eq!(last(piece(88, 8, true)), Ok(()));
    }

    #[test]
    fn marks_of_congestion_survive_and_mixtures_with_no_ecn_do_not() {
        let met = |fields: &[u8]| {
            let mut datagram = Datagram::default();
            for (i, &ecn) in fields.iter().enumerate() {
                datagram.take(&Fragment { ecn, ..piece(i * 8, 8, true) }).unwrap();
            }
            datagram.ecn()
        };
        assert_eq!([met(&[0, 0]), met(&[1, 2]), met(&[3, 3])], [Some(0); 3]);
        assert_eq!([met(&[3, 1]), met(&[2, 3]), met(&[1, 3, 2])], [Some(3); 3]);
        assert_eq!([met(&[0, 1]), met(&[2, 0]), met(&[3, 0]), met(&[3, 2, 0])], [None; 4]);
    }
}

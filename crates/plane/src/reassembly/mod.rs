//! Putting datagrams that are addressed to the router together again (RFC 791 §3.2, RFC 8200 §4.5). What passes through is not.
//!
//! As Linux does it: a datagram lives 30 (IPv4) or 60 (IPv6) seconds from its first fragment on, all together hold at most 4 MiB, and
//! fragments that overlap end their datagram (RFC 5722), for IPv4, too. A fragment that came before, alone or within a run of others, is
//! ignored. The time comes from the caller, who asks for what has expired before it hands in the next fragment.
//!
//! Each fragment's payload is copied once when it comes and once into the whole datagram, wherever in it it belongs.

mod datagram;
mod table;
mod v4;
mod v6;

#[cfg(test)]
pub(crate) mod golden;

use port::{Buf, Pool};
use route::DropReason;

use crate::options4::Options;
use datagram::Datagram;
pub use v4::Reassembler4;
pub use v6::{FragmentHeader, Reassembler6};

/// How a fragment came.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Arrival {
    /// Interface number of the VRF that its interface belongs to, 0 for none. Fragments of two VRFs never meet.
    pub vrf: u32,
    /// Number of the interface it came in by.
    pub iif: u32,
    /// Number of its frame.
    pub number: u64,
    /// Now, nanoseconds.
    pub now: u64,
    /// Its IPv4 options, if it has any: those of the first fragment are the whole's.
    pub options: Option<Options>,
}

/// What became of a fragment, and of those that had waited for it.
#[derive(Debug)]
pub struct Outcome {
    /// What became of it.
    pub fate: Fate,
    /// Fragments that had waited and are let go now.
    pub lost: usize,
    /// Why those are let go.
    pub lost_reason: DropReason,
}

/// What became of a fragment.
#[derive(Debug)]
pub enum Fate {
    /// The packet is whole: no fragment, or one that is all of its datagram (RFC 6946). Go on behind the header; nothing was stored.
    Whole,
    /// It was stored; others are missing.
    Waiting,
    /// It was the last one missing.
    Complete {
        /// The datagram, lengths and checksum of its IP header right, without a fragment header.
        packet: Buf,
        /// Where what was fragmented begins, offset in bytes from the front of the IP header.
        at: usize,
        /// Protocol of what begins there.
        proto: u8,
        /// The first fragment's IPv4 options.
        options: Option<Options>,
    },
    /// It was dropped without a word to anyone.
    Dropped(DropReason),
    /// It was dropped and its source gets an ICMPv6 parameter problem.
    Problem {
        /// Its code.
        code: u8,
        /// Its pointer: offset of the bad byte from the front of the IPv6 header.
        pointer: u32,
    },
}

/// A datagram whose missing fragments did not come in time ([`DropReason::FragmentTimeout`]).
#[derive(Debug)]
pub struct Expired {
    /// The first fragment as it came, if it did: its source gets a time exceeded of code 1 that quotes it.
    pub first: Option<Buf>,
    /// Its IPv4 options.
    pub options: Option<Options>,
    /// How many fragments had come.
    pub fragments: usize,
    /// VRF they came in by, as in [`Arrival`].
    pub vrf: u32,
    /// Interface the latest came in by.
    pub iif: u32,
    /// Number of the first fragment's frame; 0 if it did not come.
    pub number: u64,
}

impl Outcome {
    fn new(fate: Fate) -> Outcome {
        Outcome { fate, lost: 0, lost_reason: DropReason::FragmentBad }
    }

    fn dropped(reason: DropReason, lost: usize) -> Outcome {
        Outcome { fate: Fate::Dropped(reason), lost, lost_reason: reason }
    }
}

impl Expired {
    fn new(vrf: u32, datagram: &Datagram, pool: &mut Pool) -> Expired {
        let Datagram { options, number, .. } = *datagram;
        Expired { first: datagram.first(pool), options, fragments: datagram.fragments(), vrf, iif: datagram.iif(), number }
    }
}

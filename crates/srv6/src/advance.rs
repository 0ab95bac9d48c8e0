//! The SRH of a packet at an endpoint, and the step to its next segment (RFC 8754 §4.3.1.1).

use route::DropReason;
use wire::ext::{self, NotFound, Target};
use wire::srh::Header;
use wire::{ipv6, proto, srh as wire_srh};

use crate::Env;
use crate::hmac;
use crate::srh::is_valid;

/// Offset of the destination in an IPv6 header: the segment is copied there at once, not by way of an address.
const DESTINATION: usize = ipv6::LEN - 16;

/// Where an SRH stands in a packet.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Srh {
    /// Offset from the front of the IPv6 header, bytes.
    pub offset: usize,
    /// Whole length, bytes.
    pub len: usize,
    /// Index of the active segment.
    pub segments_left: u8,
}

impl Srh {
    /// The routing header at `offset`, not checked; none when it reaches beyond the packet.
    #[inline]
    pub fn at(packet: &[u8], offset: usize) -> Option<Srh> {
        let header = packet.get(offset..).and_then(Header::read)?;
        let srh = Srh { offset, len: header.len(), segments_left: header.segments_left };
        (offset + srh.len <= packet.len()).then_some(srh)
    }

    /// The first routing header, or the first one with segments left.
    ///
    /// # Errors
    /// [`DropReason::NoSrh`] when there is none, [`DropReason::BadSrh`] when it is no valid SRH.
    #[inline(always)]
    pub fn find(packet: &[u8], target: Target) -> Result<Srh, DropReason> {
        match Srh::right_behind(packet) {
            Some(srh) if target == Target::Proto(proto::ROUTING) || srh.segments_left != 0 => Ok(srh),
            _ => Srh::search(packet, target),
        }
    }

    /// A valid SRH right behind the IPv6 header, where most are.
    #[inline(always)]
    fn right_behind(packet: &[u8]) -> Option<Srh> {
        let header = ipv6::Header::read(packet)?;
        let srh = Srh::at(packet, ipv6::LEN).filter(|_| header.next_header == proto::ROUTING)?;
        is_valid(srh.bytes(packet)).then_some(srh)
    }

    /// As [`Srh::find`], wherever it stands.
    #[inline(never)]
    fn search(packet: &[u8], target: Target) -> Result<Srh, DropReason> {
        let found = ext::find(packet, target).map_err(|not_found| match not_found {
            NotFound::Absent => DropReason::NoSrh,
            NotFound::Truncated => DropReason::BadSrh,
        })?;
        Srh::at(packet, found.offset).filter(|srh| is_valid(srh.bytes(packet))).ok_or(DropReason::BadSrh)
    }

    /// Its bytes.
    #[inline]
    pub fn bytes(self, packet: &[u8]) -> &[u8] {
        packet.get(self.offset..self.offset + self.len).unwrap_or_default()
    }

    /// Checks its HMAC as the ingress interface demands.
    ///
    /// # Errors
    /// [`DropReason::HmacMissing`] and [`DropReason::HmacInvalid`].
    #[inline]
    pub fn verify(self, packet: &[u8], env: &Env<'_>) -> Result<(), DropReason> {
        let srh = self.bytes(packet);
        match (env.require_hmac, hmac::is_carried(srh)) {
            (..0, _) | (0, false) => Ok(()),
            (1.., false) => Err(DropReason::HmacMissing),
            (0.., true) => Srh::verify_carried(packet, srh, env),
        }
    }

    #[cold]
    fn verify_carried(packet: &[u8], srh: &[u8], env: &Env<'_>) -> Result<(), DropReason> {
        let source = ipv6::Header::read(packet).ok_or(DropReason::HeaderTruncated)?.src();
        hmac::verify(env.hmac_keys, source, srh)
    }

    /// Makes the next segment the destination.
    ///
    /// # Errors
    /// [`DropReason::NoSrh`] when there are no segments left.
    #[inline]
    pub fn advance(self, packet: &mut [u8]) -> Result<(), DropReason> {
        let left = self.segments_left.checked_sub(1).ok_or(DropReason::NoSrh)?;
        let segment = self.offset + wire_srh::LEN + usize::from(left) * 16;
        if packet.len() < segment + 16 || packet.len() < ipv6::LEN {
            return Err(DropReason::BadSrh);
        }
        packet.copy_within(segment..segment + 16, DESTINATION);
        packet.get_mut(self.offset..).and_then(Header::read_mut).ok_or(DropReason::BadSrh)?.segments_left = left;
        Ok(())
    }
}

/// As [`to_next_segment`] for the commonest packet: an SRH without TLVs, so without HMAC, right behind the IPv6 header. None, and nothing done, for
/// every other.
#[inline(always)]
fn to_next_segment_at_once(packet: &mut [u8], env: &Env<'_>) -> Option<()> {
    let (outer, behind) = packet.split_first_chunk_mut::<{ ipv6::LEN }>()?;
    let [_, hdr_ext_len, routing_type, segments_left, last_entry, ..] = *behind.first_chunk::<{ wire_srh::LEN }>()?;
    let segments = (usize::from(last_entry) + 1) * 2;
    let plain = outer[6] == proto::ROUTING && routing_type == wire_srh::TYPE && env.require_hmac <= 0;
    if !plain || usize::from(hdr_ext_len) != segments || (segments + 1) * 8 > behind.len() || segments_left > last_entry {
        return None;
    }
    let left = segments_left.checked_sub(1)?;
    let at = wire_srh::LEN + usize::from(left) * 16;
    let segment: [u8; 16] = behind.get(at..at + 16)?.try_into().ok()?;
    *outer.last_chunk_mut()? = segment;
    behind[3] = left;
    Some(())
}

/// Finds the SRH with segments left and makes its next segment the destination: what End and its kin begin with. A first SRH without segments
/// left is skipped, as in Linux.
///
/// # Errors
/// No such SRH, a malformed one, or one whose HMAC does not satisfy.
#[inline(always)]
pub(crate) fn to_next_segment(packet: &mut [u8], env: &Env<'_>) -> Result<(), DropReason> {
    match to_next_segment_at_once(packet, env) {
        Some(()) => Ok(()),
        None => to_next_segment_wherever(packet, env),
    }
}

/// As [`to_next_segment`], wherever the SRH stands and whatever is in it.
#[inline(never)]
fn to_next_segment_wherever(packet: &mut [u8], env: &Env<'_>) -> Result<(), DropReason> {
    active(packet, env)?.advance(packet)
}

/// The SRH with segments left, verified.
///
/// # Errors
/// As [`to_next_segment`].
#[inline(always)]
pub(crate) fn active(packet: &[u8], env: &Env<'_>) -> Result<Srh, DropReason> {
    let srh = Srh::find(packet, Target::ActiveRouting)?;
    srh.verify(packet, env)?;
    Ok(srh)
}

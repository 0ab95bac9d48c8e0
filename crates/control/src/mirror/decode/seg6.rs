//! `encap seg6`: mode and SRH, the route's own tunnel source, the key of the HMAC.
//!
//! ```text
//! SEG6_IPTUNNEL_SRH   | mode (4, host order) | SRH: 8 bytes | segments, last one first (16 each) | HMAC TLV (40)? |
//! SEG6_IPTUNNEL_SRC   | address (16) |                                                        since Linux 7.1
//! ```

use std::net::Ipv6Addr;

use srv6::{Mode, SegmentList};
use wire::srh::TLV_HMAC;

use super::encap::Encap;
use super::{Family, attributes, u8_at, u32_at};
use crate::mirror::Reason;

const SEG6_IPTUNNEL_SRH: u16 = 1;
const SEG6_IPTUNNEL_SRC: u16 = 2;
/// `SR6_FLAG1_HMAC`.
const FLAG_HMAC: u8 = 1 << 3;

/// Reads a headend.
pub(super) fn seg6(value: &[u8]) -> Result<Encap, Reason> {
    let (mut policy, mut tunsrc) = (None, None);
    for (kind, value) in attributes(value) {
        match kind {
            SEG6_IPTUNNEL_SRH => {
                let mode = u32_at(value, 0).ok_or(Reason::Malformed("seg6 mode"))?;
                let mode = Mode::from_number(mode).ok_or(Reason::Seg6Mode(mode))?;
                let srh = value.get(4..).and_then(|srh| segments(srh, mode == Mode::Inline));
                policy = Some((mode, srh.ok_or(Reason::Malformed("seg6 segments"))?));
            }
            SEG6_IPTUNNEL_SRC => tunsrc = Some(Ipv6Addr::read(value).ok_or(Reason::Malformed("seg6 tunsrc"))?),
            other => return Err(Reason::Attribute("encap seg6", other)),
        }
    }
    let (mode, segments) = policy.ok_or(Reason::Malformed("seg6 without segments"))?;
    Ok(Encap::Seg6 { mode, segments, tunsrc: tunsrc.filter(|source| !source.is_unspecified()) })
}

/// Reads the segments of an SRH in the order of travel. One that is to be `inserted` has room for the packet's own destination in its first slot, which
/// is no segment of the policy.
pub(super) fn segments(srh: &[u8], inserted: bool) -> Option<SegmentList> {
    let (last_entry, flags) = (usize::from(u8_at(srh, 4)?), u8_at(srh, 5)?);
    let end = 8 + (last_entry + 1) * 16;
    let slots = srh.get(8..end)?;
    let segments = slots.chunks_exact(16).skip(usize::from(inserted)).filter_map(Ipv6Addr::read).rev().collect();
    let hmac = match flags & FLAG_HMAC {
        0 => 0,
        _ => {
            let tlv = srh.get(end..)?;
            let id = tlv.get(4..)?.first_chunk()?;
            (u8_at(tlv, 0)? == TLV_HMAC).then(|| u32::from_be_bytes(*id))?
        }
    };
    Some(SegmentList { segments, hmac })
}

//! `encap seg6`: mode and SRH, the route's own tunnel source, the key of the HMAC.
//!
//! ```text
//! SEG6_IPTUNNEL_SRH   | mode (4, host order) | SRH: 8 bytes | segments, last one first (16 each) | HMAC TLV (40)? |
//! SEG6_IPTUNNEL_SRC   | address (16) |                                                        since Linux 7.1
//! SEG6_IPTUNNEL_TABLE | table (4, host order) |                                               since Linux 7.3
//! ```

use std::net::Ipv6Addr;

use route::TableId;
use srv6::{Mode, SegmentList};
use wire::srh::TLV_HMAC;

use super::encap::Encap;
use super::{Family, attributes, u8_at, u32_at, u32_of};
use crate::mirror::Reason;

const SEG6_IPTUNNEL_SRH: u16 = 1;
const SEG6_IPTUNNEL_SRC: u16 = 2;
const SEG6_IPTUNNEL_TABLE: u16 = 3;
/// `SR6_FLAG1_HMAC`.
const FLAG_HMAC: u8 = 1 << 3;

/// Reads a headend.
pub(super) fn seg6(value: &[u8]) -> Result<Encap, Reason> {
    let (mut policy, mut tunsrc, mut table) = (None, None, None);
    for (kind, value) in attributes(value) {
        match kind {
            SEG6_IPTUNNEL_SRH => {
                let mode = u32_at(value, 0).ok_or(Reason::Malformed("seg6 mode"))?;
                let mode = Mode::from_number(mode).ok_or(Reason::Seg6Mode(mode))?;
                let srh = value.get(4..).and_then(|srh| segments(srh, mode == Mode::Inline));
                policy = Some((mode, srh.ok_or(Reason::Malformed("seg6 segments"))?));
            }
            SEG6_IPTUNNEL_SRC => tunsrc = Some(Ipv6Addr::read(value).ok_or(Reason::Malformed("seg6 tunsrc"))?),
            SEG6_IPTUNNEL_TABLE => table = Some(TableId(u32_of(value).ok_or(Reason::Malformed("seg6 lookup"))?)),
            other => return Err(Reason::Attribute("encap seg6", other)),
        }
    }
    let (mode, segments) = policy.ok_or(Reason::Malformed("seg6 without segments"))?;
    Ok(Encap::Seg6 { mode, segments, tunsrc: tunsrc.filter(|source| !source.is_unspecified()), table: table.filter(|table| table.0 != 0) })
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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::mirror::decode::message::push_attribute;

    #[test]
    fn the_table_of_a_headend_is_honoured_where_the_kernel_tells_of_it() {
        let segment = Ipv6Addr::new(0xfc00, 2, 0x11, 0x22, 0x33, 0x44, 0x55, 0x66);
        let mut value = Vec::new();
        let srh = [&1_u32.to_ne_bytes()[..], &[0, 2, 4, 0, 0, 0, 0, 0], &segment.octets()].concat();
        push_attribute(&mut value, SEG6_IPTUNNEL_SRH, &srh);
        let table = |value: &[u8]| match seg6(value) {
            Ok(Encap::Seg6 { table, .. }) => Ok(table),
            other => Err(other),
        };
        assert_eq!(table(&value), Ok(None));
        push_attribute(&mut value, SEG6_IPTUNNEL_TABLE, &1001_u32.to_ne_bytes());
        assert_eq!(table(&value), Ok(Some(TableId(1001))));
        push_attribute(&mut value, SEG6_IPTUNNEL_TABLE, &[1, 2]);
        assert_eq!(table(&value), Err(Err(Reason::Malformed("seg6 lookup"))));
    }
}

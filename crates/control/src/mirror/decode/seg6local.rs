//! `encap seg6local`: the action of a SID and its attributes. What its counters say is the kernel's; that it has some is ours.

use std::net::{Ipv4Addr, Ipv6Addr};

use route::{IfIndex, TableId};
use srv6::{Attributes, Flavors};

use super::encap::Encap;
use super::{Family, attributes, seg6, u8_at, u32_of};
use crate::mirror::Reason;

const SEG6_LOCAL_ACTION: u16 = 1;
const SEG6_LOCAL_SRH: u16 = 2;
const SEG6_LOCAL_TABLE: u16 = 3;
const SEG6_LOCAL_NH4: u16 = 4;
const SEG6_LOCAL_NH6: u16 = 5;
const SEG6_LOCAL_IIF: u16 = 6;
const SEG6_LOCAL_OIF: u16 = 7;
const SEG6_LOCAL_BPF: u16 = 8;
const SEG6_LOCAL_VRFTABLE: u16 = 9;
const SEG6_LOCAL_COUNTERS: u16 = 10;
const SEG6_LOCAL_FLAVORS: u16 = 11;
const FLAVORS_OPERATION: u16 = 1;
const FLAVORS_LCBLOCK_BITS: u16 = 2;
const FLAVORS_LCNODE_FN_BITS: u16 = 3;
/// `SEG6_LOCAL_ACTION_END_B6`: its SRH is one to be inserted.
const END_B6: u32 = 9;

/// Reads an action. That it is one that noref has, with the attributes it needs, is checked where the SID is built.
pub(super) fn seg6local(value: &[u8]) -> Result<Encap, Reason> {
    fn read<T>(value: Option<T>, what: &'static str) -> Result<Option<T>, Reason> {
        value.map(Some).ok_or(Reason::Malformed(what))
    }
    let (mut action, mut srh, mut known) = (None, None, Attributes::default());
    for (kind, value) in attributes(value) {
        match kind {
            SEG6_LOCAL_ACTION => action = u32_of(value),
            SEG6_LOCAL_SRH => srh = Some(value),
            SEG6_LOCAL_TABLE => known.table = read(u32_of(value), "seg6local table")?.map(TableId),
            SEG6_LOCAL_VRFTABLE => known.vrftable = read(u32_of(value), "seg6local vrftable")?.map(TableId),
            SEG6_LOCAL_NH4 => known.nh4 = read(Ipv4Addr::read(value), "seg6local nh4")?,
            SEG6_LOCAL_NH6 => known.nh6 = read(Ipv6Addr::read(value), "seg6local nh6")?,
            SEG6_LOCAL_IIF => known.iif = read(u32_of(value), "seg6local iif")?.map(IfIndex),
            SEG6_LOCAL_OIF => known.oif = read(u32_of(value), "seg6local oif")?.map(IfIndex),
            SEG6_LOCAL_COUNTERS => known.count = true,
            SEG6_LOCAL_FLAVORS => flavors(value, &mut known)?,
            // The action says it: End.BPF.
            SEG6_LOCAL_BPF => {}
            other => return Err(Reason::Attribute("encap seg6local", other)),
        }
    }
    let action = action.ok_or(Reason::Malformed("seg6local action"))?;
    if let Some(srh) = srh {
        known.srh = read(seg6::segments(srh, action == END_B6), "seg6local segments")?;
    }
    Ok(Encap::Seg6Local { action, attributes: known })
}

fn flavors(value: &[u8], known: &mut Attributes) -> Result<(), Reason> {
    for (kind, value) in attributes(value) {
        match kind {
            FLAVORS_OPERATION => {
                let bits = u32_of(value).ok_or(Reason::Malformed("seg6local flavors"))?;
                known.flavors = Flavors::from_bits(bits).ok_or(Reason::Flavors(bits))?;
            }
            FLAVORS_LCBLOCK_BITS => known.lblen = u8_at(value, 0),
            FLAVORS_LCNODE_FN_BITS => known.nflen = u8_at(value, 0),
            other => return Err(Reason::Attribute("flavors", other)),
        }
    }
    Ok(())
}

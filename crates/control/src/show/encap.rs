//! What a route does to packets, as iproute2 prints lightweight tunnels.

use std::fmt::{self, Write};

use ::route::{Editor, Encap};
use srv6::{Attr, Attributes, SegmentList, Sid};

use super::{Source, name};

/// Writes ` encap …` with a blank on either side. `statistics`: with what was counted, of a SID that counts.
pub(super) fn write(text: &mut String, source: &impl Source, editor: &Editor, encap: Encap, statistics: bool) -> fmt::Result {
    match encap {
        Encap::None => Ok(()),
        Encap::Seg6(id) => match source.tables().policies.snapshot(id.0) {
            Some(policy) => write!(text, " {policy} "),
            None => Ok(()),
        },
        Encap::Seg6Local(id) => {
            let Some(sid) = source.tables().sids.snapshot(id.0) else { return Ok(()) };
            let counted = (statistics && sid.attributes().count).then(|| source.counted(id));
            text.push_str(" encap seg6local ");
            local(text, &sid, editor)?;
            if let Some(counted) = counted {
                write!(text, "packets {} bytes {} errors {} ", counted.processed.packets, counted.processed.bytes, counted.errors)?;
            }
            flavors(text, &sid)
        }
    }
}

/// The attributes in front of the counters, in iproute2's order.
fn local(text: &mut String, sid: &Sid, editor: &Editor) -> fmt::Result {
    let Attributes { nh4, nh6, oif, iif, table, vrftable, srh, .. } = sid.attributes();
    let used = |attr: Attr| !sid.ignored().contains(attr);
    write!(text, "action {} ", sid.descriptor().name)?;
    if let Some(srh) = srh.as_ref().filter(|_| used(Attr::Srh)) {
        segments(text, sid, srh)?;
    }
    if let Some(table) = table.filter(|_| used(Attr::Table)) {
        write!(text, "table {table} ")?;
    }
    if let Some(table) = vrftable.filter(|_| used(Attr::VrfTable)) {
        write!(text, "vrftable {table} ")?;
    }
    if let Some(nh4) = nh4.filter(|_| used(Attr::Nh4)) {
        write!(text, "nh4 {nh4} ")?;
    }
    if let Some(nh6) = nh6.filter(|_| used(Attr::Nh6)) {
        write!(text, "nh6 {nh6} ")?;
    }
    if let Some(iif) = iif.filter(|_| used(Attr::Iif)) {
        write!(text, "iif {} ", name(editor, iif))?;
    }
    if let Some(oif) = oif.filter(|_| used(Attr::Oif)) {
        write!(text, "oif {} ", name(editor, oif))?;
    }
    Ok(())
}

/// The segments that are put on. Those that are inserted end with the place of the destination.
fn segments(text: &mut String, sid: &Sid, list: &SegmentList) -> fmt::Result {
    let mut list = list.clone();
    if sid.descriptor().name == "End.B6" {
        list.segments.push(std::net::Ipv6Addr::UNSPECIFIED);
    }
    write!(text, "{list} ")
}

fn flavors(text: &mut String, sid: &Sid) -> fmt::Result {
    // What stands behind the counters, in the form that a SID is shown in.
    match sid.to_string().split_once(" flavors ") {
        Some((_, flavors)) => write!(text, "flavors {flavors} "),
        None => Ok(()),
    }
}

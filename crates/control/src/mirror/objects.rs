//! Nexthop objects of the kernel as those of the tables, so that a change of one moves all its routes at once.
//!
//! An object is taken over as it is if its ways lead out by ports or to SIDs; what each route of another object does is worked out for the route itself, because
//! what leads to the kernel belongs to prefixes.

use std::collections::HashSet;

use plane::Tables;
use route::{Editor, Hop, NexthopDoes, NexthopObject, Resilient, ResilientSpec};
use srv6::Attributes;

use super::decode::encap::Encap;
use super::decode::nexthop::{KernelNexthop, Nexthop};
use super::decode::route::Way;
use super::owned::{Making, Owned};
use super::snapshot::Snapshot;

/// Puts these objects into the tables as they are now. Those are returned whose routes are to be made again.
pub(super) fn take_over(
    editor: &mut Editor,
    tables: &Tables,
    owned: &mut Owned<u32>,
    snapshot: &Snapshot,
    ids: &HashSet<u32>,
) -> HashSet<u32> {
    let mut again = HashSet::new();
    for id in ids {
        let mut making = owned.begin(*id, tables);
        let object = snapshot.nexthops.get(id).and_then(|KernelNexthop { v6, protocol, is }| {
            let does = does(editor, snapshot, *id, is, &mut making)?;
            Some(NexthopObject { does, v6: *v6, protocol: *protocol })
        });
        owned.end(*id, making);
        let stays = object.is_some() && editor.nexthop(*id).is_some();
        // Where the packets of SIDs go on is looked at for each route.
        if !stays || !sids(snapshot, *id).is_empty() || editor.nexthop(*id).is_some_and(|before| has_sid(editor, before)) {
            again.insert(*id);
        }
        if editor.nexthop(*id) != object.as_ref() {
            editor.mirror_nexthop(*id, object);
        }
    }
    again
}

fn does(editor: &Editor, snapshot: &Snapshot, id: u32, nexthop: &Nexthop, making: &mut Making<'_>) -> Option<NexthopDoes> {
    Some(match nexthop {
        Nexthop::Way(way) => {
            if usable(editor, snapshot, way)? == Usable::No {
                return None;
            }
            let encap = making.number(way.encap.as_deref()).ok()?;
            NexthopDoes::Way(Hop { dev: way.dev, via: way.via, onlink: way.onlink, encap, weight: 1 })
        }
        Nexthop::Blackhole => NexthopDoes::Blackhole,
        Nexthop::Unsupported(_) => return None,
        Nexthop::Group(members, resilient) => {
            let mut used = Vec::with_capacity(members.len());
            for (id, weight) in members {
                match &snapshot.nexthops.get(id)?.is {
                    // The only member of its group.
                    Nexthop::Blackhole => used.push((*id, *weight)),
                    Nexthop::Way(way) => match usable(editor, snapshot, way)? {
                        Usable::Yes => used.push((*id, *weight)),
                        Usable::No => {}
                    },
                    Nexthop::Group(..) | Nexthop::Unsupported(_) => return None,
                }
            }
            if used.is_empty() {
                return None;
            }
            let resilient = resilient.as_ref().and_then(|spec| buckets(editor, snapshot, id, spec, &used));
            NexthopDoes::Group(used, resilient)
        }
    })
}

/// The buckets of a resilient group as the kernel has them, as far as it has told.
fn buckets(editor: &Editor, snapshot: &Snapshot, id: u32, spec: &ResilientSpec, members: &[(u32, u16)]) -> Option<Resilient> {
    let count = spec.buckets?;
    let known = match editor.nexthop(id).map(|object| &object.does) {
        Some(NexthopDoes::Group(_, Some(known))) if known.len() == usize::from(count.get()) => Some(known.clone()),
        _ => None,
    };
    let mut resilient = known.unwrap_or_else(|| Resilient::new(count));
    resilient.set(spec);
    resilient.follow(members, snapshot.buckets.get(&id).map_or(&[], Vec::as_slice), editor.time());
    Some(resilient)
}

/// The SIDs of a nexthop object: its own, or those of its members.
pub(super) fn sids(snapshot: &Snapshot, id: u32) -> Vec<Attributes> {
    let nexthop = |id| snapshot.nexthops.get(&id).map(|nexthop| &nexthop.is);
    let sid = |id| match nexthop(id) {
        Some(Nexthop::Way(way)) => sid(way),
        _ => None,
    };
    match nexthop(id) {
        Some(Nexthop::Group(members, _)) => members.iter().filter_map(|(member, _)| sid(*member)).collect(),
        _ => sid(id).into_iter().collect(),
    }
}

/// The SID of a way.
pub(super) fn sid(way: &Way) -> Option<Attributes> {
    match way.encap.as_deref()? {
        Encap::Seg6Local { attributes, .. } => Some(attributes.clone()),
        _ => None,
    }
}

fn has_sid(editor: &Editor, object: &NexthopObject) -> bool {
    match &object.does {
        NexthopDoes::Way(hop) => matches!(hop.encap, route::Encap::Seg6Local(_)),
        NexthopDoes::Blackhole => false,
        NexthopDoes::Group(members, _) => members.iter().any(|(id, _)| editor.nexthop(*id).is_some_and(|member| has_sid(editor, member))),
    }
}

/// Whether the kernel uses a way.
#[derive(PartialEq, Eq)]
enum Usable {
    Yes,
    No,
}

/// Whether a way that can be taken over is used; none of one that can not.
fn usable(editor: &Editor, snapshot: &Snapshot, way: &Way) -> Option<Usable> {
    let link = editor.links().get(way.dev)?;
    match way.encap.as_deref() {
        // Packets do not leave by its device.
        Some(Encap::Seg6Local { .. }) => {}
        None | Some(Encap::Seg6 { .. }) if link.sends() => {}
        _ => return None,
    }
    let up = snapshot.devices.get(&way.dev).is_some_and(|device| device.up);
    Some(if way.dead || !up { Usable::No } else { Usable::Yes })
}

//! Nexthop objects of the kernel as those of the tables, so that a change of one moves all its routes at once.
//!
//! An object is taken over as it is if its ways lead out by ports and do nothing to packets; what each route of another object does is worked out for
//! the route itself, because SIDs and what leads to the kernel belong to prefixes.

use std::collections::{BTreeMap, HashSet};

use route::{Editor, Encap, Hop, IfIndex, LinkKind, NexthopDoes, NexthopObject};

use super::decode::link::Device;
use super::decode::nexthop::Nexthop;
use super::decode::route::Way;
use super::snapshot::Snapshot;

/// Puts these objects into the tables as they are now. Those are returned whose routes are to be made again.
pub(super) fn objects(editor: &mut Editor, snapshot: &Snapshot, ids: &HashSet<u32>) -> HashSet<u32> {
    let mut again = HashSet::new();
    for id in ids {
        let object = snapshot.nexthops.get(id).and_then(|nexthop| translated(editor, snapshot, nexthop));
        let stays = object.is_some() && editor.nexthop(*id).is_some();
        if !stays {
            again.insert(*id);
        }
        if editor.nexthop(*id) != object.as_ref() {
            editor.mirror_nexthop(*id, object);
        }
    }
    again
}

fn translated(editor: &Editor, snapshot: &Snapshot, nexthop: &Nexthop) -> Option<NexthopObject> {
    let single = |way: &Way| hop(editor, &snapshot.devices, way);
    let does = match nexthop {
        Nexthop::Way(way) => NexthopDoes::Way(single(way)?.ok()?),
        Nexthop::Blackhole => NexthopDoes::Blackhole,
        Nexthop::Unsupported(_) => return None,
        Nexthop::Group(members) => {
            let mut usable = Vec::with_capacity(members.len());
            for (id, weight) in members {
                match snapshot.nexthops.get(id)? {
                    // The only member of its group.
                    Nexthop::Blackhole => usable.push((*id, *weight)),
                    Nexthop::Way(way) => match single(way)? {
                        Ok(_) => usable.push((*id, *weight)),
                        Err(Dead) => {}
                    },
                    Nexthop::Group(_) | Nexthop::Unsupported(_) => return None,
                }
            }
            if usable.is_empty() {
                return None;
            }
            NexthopDoes::Group(usable)
        }
    };
    // Which family it is of matters to those only who may refuse it.
    Some(NexthopObject { does, v6: true, protocol: 0 })
}

/// The kernel does not use it.
struct Dead;

/// A way that does nothing to packets and leads out by a port; none of another.
fn hop(editor: &Editor, devices: &BTreeMap<IfIndex, Device>, way: &Way) -> Option<Result<Hop, Dead>> {
    if way.encap.is_some() || !editor.links().get(way.dev).is_some_and(|link| matches!(link.kind, LinkKind::Port(_))) {
        return None;
    }
    if way.dead || !devices.get(&way.dev).is_some_and(|device| device.up) {
        return Some(Err(Dead));
    }
    Some(Ok(Hop { dev: way.dev, via: way.via, onlink: way.onlink, encap: Encap::None, weight: 1 }))
}

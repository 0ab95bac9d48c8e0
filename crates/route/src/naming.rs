//! Which SIDs and policies routes name: those that none names any more can go.

use std::collections::{HashMap, HashSet};

use crate::{Encap, RouteEntry};

/// How often the routes of both families name each SID and each policy. Kept from commit to commit, so that a change costs what it touches,
/// whatever the size of the tables.
#[derive(Default)]
pub(crate) struct Naming {
    times: HashMap<Encap, usize>,
    /// Those of which the last was taken away since [`Naming::begin`]; they may have been named again.
    lost: HashSet<Encap>,
}

impl Naming {
    /// Begins a commit.
    pub(crate) fn begin(&mut self) {
        self.lost.clear();
    }

    /// A prefix has other routes than before.
    pub(crate) fn change(&mut self, before: &[RouteEntry], after: &[RouteEntry]) {
        self.count(encaps(before), encaps(after));
    }

    /// These are named no longer, and those now.
    pub(crate) fn count(&mut self, before: impl IntoIterator<Item = Encap>, after: impl IntoIterator<Item = Encap>) {
        for encap in after {
            *self.times.entry(encap).or_default() += 1;
        }
        for encap in before {
            if let Some(times) = self.times.get_mut(&encap) {
                *times -= 1;
                if *times == 0 {
                    self.times.remove(&encap);
                    self.lost.insert(encap);
                }
            }
        }
    }

    /// True of a SID or policy that a route names.
    pub(crate) fn is_named(&self, encap: Encap) -> bool {
        self.times.contains_key(&encap)
    }

    /// Those that routes named before the commit, and none does now.
    pub(crate) fn lost(&self) -> impl Iterator<Item = Encap> {
        self.lost.iter().copied().filter(|encap| !self.is_named(*encap))
    }
}

fn encaps(entries: &[RouteEntry]) -> impl Iterator<Item = Encap> {
    entries.iter().flat_map(|entry| &entry.effect.hops).map(|hop| hop.encap).filter(|encap| *encap != Encap::None)
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use super::*;
    use crate::{Effect, Hop, IfIndex, Kind, PolicyId};

    fn entry(policy: u32) -> RouteEntry {
        let hop = Hop { dev: IfIndex(2), via: None, onlink: false, encap: Encap::Seg6(PolicyId(policy)), weight: 1 };
        let effect = Arc::new(Effect::new(Kind::Unicast, vec![hop]));
        RouteEntry { select: crate::Select::default(), metric: 0, protocol: 3, scope: 0, effect }
    }

    #[test]
    fn what_moves_to_another_prefix_is_not_lost() {
        let mut naming = Naming::default();
        naming.change(&[], &[entry(1)]);
        naming.change(&[], &[entry(2), entry(2)]);
        naming.begin();
        naming.change(&[entry(1)], &[]);
        naming.change(&[], &[entry(1)]);
        naming.change(&[entry(2), entry(2)], &[entry(2)]);
        assert_eq!(naming.lost().count(), 0);
        naming.begin();
        naming.change(&[entry(2)], &[]);
        assert_eq!(naming.lost().collect::<Vec<_>>(), [Encap::Seg6(PolicyId(2))]);
        assert!(naming.is_named(Encap::Seg6(PolicyId(1))));
    }
}

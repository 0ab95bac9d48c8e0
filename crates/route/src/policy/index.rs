//! Which rules a packet need be compared with.
//!
//! Each rule is filed under one of the things it selects by, the one that it shares with the fewest others: its `to` or `from` prefix, its interface, its
//! mark, a port. A packet finds in each file, by one access or one binary search, the rules filed under what it has; those that can be filed nowhere
//! (for every packet, `not`, ranges of ports) it meets all. Every rule that it finds is still compared whole, in the order of preference, so that the
//! files decide about cost only, never about the answer.

use std::collections::HashMap;

use super::intervals::Intervals;
use crate::{Address, Flow, IfIndex, Prefix, Selector};

/// Different masks of marks that are filed; rules with others are compared with every packet.
const MASKS: usize = 4;

/// Files of a packet: two interfaces in, two out, two prefixes, two ports, marks, and what is filed nowhere.
const FILES: usize = 9 + MASKS;

/// Where a rule is filed.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
enum File<A> {
    To(Prefix<A>),
    From(Prefix<A>),
    Iif(IfIndex),
    Mark { mask: u32, value: u32 },
    Dport(u16),
    Sport(u16),
    Oif(IfIndex),
}

/// Rules filed under a number.
struct Numbered<K> {
    /// Each number with the end of its rules in `places`, ascending.
    numbers: Box<[(K, u32)]>,
    places: Box<[u32]>,
}

impl<K: Copy + Ord> Numbered<K> {
    fn build(mut rules: Vec<(K, u32)>) -> Numbered<K> {
        rules.sort_unstable();
        let mut numbers: Vec<(K, u32)> = Vec::new();
        for (end, (number, _)) in (1..).zip(&rules) {
            match numbers.last_mut() {
                Some((last, last_end)) if last == number => *last_end = end,
                _ => numbers.push((*number, end)),
            }
        }
        Numbered { numbers: numbers.into(), places: rules.into_iter().map(|(_, place)| place).collect() }
    }

    /// The places of the rules under a number, ascending.
    #[inline]
    fn of(&self, number: K) -> &[u32] {
        let Ok(at) = self.numbers.binary_search_by_key(&number, |(number, _)| *number) else { return &[] };
        let first = at.checked_sub(1).map_or(0, |before| self.numbers[before].1);
        self.places.get(first as usize..self.numbers[at].1 as usize).unwrap_or(&[])
    }
}

/// All files.
pub(crate) struct Index<A: Address> {
    to: Intervals<A>,
    from: Intervals<A>,
    iif: Numbered<u32>,
    oif: Numbered<u32>,
    marks: Vec<(u32, Numbered<u32>)>,
    dport: Numbered<u16>,
    sport: Numbered<u16>,
    rest: Box<[u32]>,
}

impl<A: Address> Index<A> {
    /// Files rules by what they select.
    pub(crate) fn build<'r>(rules: impl Iterator<Item = &'r Selector<A>> + Clone) -> Index<A> {
        let mut masks: Vec<u32> = rules.clone().filter_map(|select| select.mark.map(|mark| mark.mask)).collect();
        masks.sort_unstable();
        masks.dedup();
        masks.truncate(MASKS);
        let mut sharing: HashMap<File<A>, u32> = HashMap::new();
        for file in rules.clone().flat_map(|select| files(select, &masks)) {
            *sharing.entry(file).or_default() += 1;
        }
        let (mut to, mut from, mut iif, mut oif) = (Vec::new(), Vec::new(), Vec::new(), Vec::new());
        let (mut dport, mut sport, mut rest) = (Vec::new(), Vec::new(), Vec::new());
        let mut marks: Vec<(u32, Vec<(u32, u32)>)> = masks.iter().map(|&mask| (mask, Vec::new())).collect();
        for (place, select) in (0..).zip(rules) {
            match files(select, &masks).min_by_key(|file| sharing[file]) {
                None => rest.push(place),
                Some(File::To(prefix)) => to.push((prefix, place)),
                Some(File::From(prefix)) => from.push((prefix, place)),
                Some(File::Iif(dev)) => iif.push((dev.0, place)),
                Some(File::Oif(dev)) => oif.push((dev.0, place)),
                Some(File::Dport(port)) => dport.push((port, place)),
                Some(File::Sport(port)) => sport.push((port, place)),
                Some(File::Mark { mask, value }) => {
                    marks.iter_mut().filter(|(of, _)| *of == mask).for_each(|(_, rules)| rules.push((value, place)));
                }
            }
        }
        Index {
            to: Intervals::build(to),
            from: Intervals::build(from),
            iif: Numbered::build(iif),
            oif: Numbered::build(oif),
            marks: marks.into_iter().map(|(mask, rules)| (mask, Numbered::build(rules))).collect(),
            dport: Numbered::build(dport),
            sport: Numbered::build(sport),
            rest: rest.into(),
        }
    }

    /// The rules that packets of this flow are to be compared with.
    #[inline]
    pub(crate) fn candidates<'i>(&'i self, flow: &Flow<A>) -> Candidates<'i> {
        let mut candidates = Candidates { files: [&[]; FILES], used: 0 };
        candidates.add(&self.rest);
        candidates.add(self.iif.of(flow.iif.0));
        candidates.add(self.oif.of(flow.oif.0));
        if flow.vrf != IfIndex(0) {
            candidates.add(self.iif.of(flow.vrf.0));
            candidates.add(self.oif.of(flow.vrf.0));
        }
        candidates.add(self.to.of(flow.dst));
        candidates.add(self.from.of(flow.src));
        candidates.add(self.dport.of(flow.upper.dport));
        candidates.add(self.sport.of(flow.upper.sport));
        for (mask, rules) in &self.marks {
            candidates.add(rules.of(flow.mark & mask));
        }
        candidates
    }
}

/// Where a rule may be filed.
fn files<A: Address>(select: &Selector<A>, masks: &[u32]) -> impl Iterator<Item = File<A>> {
    let mark = select.mark.filter(|mark| masks.contains(&mark.mask));
    let one = |ports: crate::Ports| (ports.first == ports.last).then_some(ports.first);
    let all = [
        select.to.map(File::To),
        select.from.map(File::From),
        select.iif.map(File::Iif),
        mark.map(|mark| File::Mark { mask: mark.mask, value: mark.value & mark.mask }),
        select.dport.and_then(one).map(File::Dport),
        select.sport.and_then(one).map(File::Sport),
        select.oif.map(File::Oif),
    ];
    let filed = !select.not;
    all.into_iter().flatten().filter(move |_| filed)
}

/// Rules by place, ascending, out of several files.
pub(crate) struct Candidates<'i> {
    files: [&'i [u32]; FILES],
    used: usize,
}

impl<'i> Candidates<'i> {
    #[inline]
    fn add(&mut self, file: &'i [u32]) {
        if let (false, Some(slot)) = (file.is_empty(), self.files.get_mut(self.used)) {
            *slot = file;
            self.used += 1;
        }
    }

    /// The next place. A rule is filed once; under interface and VRF of a packet alike only if they are one, and then it comes twice.
    #[inline]
    pub(crate) fn next(&mut self) -> Option<u32> {
        if self.used == 1 {
            let (first, rest) = self.files[0].split_first()?;
            self.files[0] = rest;
            return Some(*first);
        }
        let files = &mut self.files[..self.used];
        let first = files.iter().filter_map(|file| file.first().copied()).min()?;
        for file in files {
            if file.first() == Some(&first) {
                *file = &file[1..];
            }
        }
        Some(first)
    }

    /// Leaves out those before `place`.
    pub(crate) fn skip_to(&mut self, place: u32) {
        for file in &mut self.files[..self.used] {
            *file = &file[file.partition_point(|of| *of < place)..];
        }
    }
}

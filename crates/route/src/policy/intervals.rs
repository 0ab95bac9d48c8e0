//! Which of many prefixes an address lies in: all of them at once, by one binary search.

use std::collections::BTreeMap;

use crate::{Address, Prefix};

/// The addresses, cut wherever a prefix begins or ends.
pub(super) struct Intervals<A> {
    /// First address of each piece but the first, ascending.
    starts: Box<[A]>,
    /// For each piece, the first included, where in `places` the rules begin whose prefix holds it; and the end.
    lists: Box<[u32]>,
    places: Box<[u32]>,
}

impl<A: Address> Intervals<A> {
    /// Of rules by place, each with its prefix.
    pub(super) fn build(rules: Vec<(Prefix<A>, u32)>) -> Intervals<A> {
        // An outer prefix stands before those in it.
        let mut prefixes: BTreeMap<Prefix<A>, Vec<u32>> = BTreeMap::new();
        for (prefix, place) in rules {
            prefixes.entry(prefix).or_default().push(place);
        }
        let mut pieces: Vec<(A, Vec<u32>)> = Vec::new();
        let mut open: Vec<(Option<A>, Vec<u32>)> = vec![(None, Vec::new())];
        for (prefix, mut list) in prefixes {
            close(&mut open, &mut pieces, Some(prefix.addr()));
            list.extend(open.iter().next_back().into_iter().flat_map(|(_, around)| around));
            list.sort_unstable();
            begin(&mut pieces, prefix.addr(), list.clone());
            open.push((behind(prefix), list));
        }
        close(&mut open, &mut pieces, None);
        let mut lists = vec![0, 0];
        let mut places = Vec::new();
        for (_, list) in &pieces {
            places.extend_from_slice(list);
            lists.push(places.len() as u32);
        }
        Intervals { starts: pieces.into_iter().map(|(start, _)| start).collect(), lists: lists.into(), places: places.into() }
    }

    /// The places, ascending, of the rules whose prefix holds `addr`.
    #[inline]
    pub(super) fn of(&self, addr: A) -> &[u32] {
        if self.starts.is_empty() {
            return &[];
        }
        let piece = self.starts.partition_point(|start| *start <= addr);
        match self.lists.get(piece..piece + 2) {
            Some(&[first, end]) => self.places.get(first as usize..end as usize).unwrap_or(&[]),
            _ => &[],
        }
    }
}

/// Closes the prefixes that end before `next`, or all: what lies behind one is in the one around it.
fn close<A: Address>(open: &mut Vec<(Option<A>, Vec<u32>)>, pieces: &mut Vec<(A, Vec<u32>)>, next: Option<A>) {
    while open.len() > 1 {
        let ends = |end: A| next.is_none_or(|next| end <= next);
        match open.last() {
            Some((Some(end), _)) if ends(*end) => {}
            // It reaches to the last address there is.
            Some((None, _)) if next.is_none() => {}
            _ => return,
        }
        let Some((end, _)) = open.pop() else { return };
        let around = open.last().map_or_else(Vec::new, |(_, list)| list.clone());
        if let Some(end) = end {
            begin(pieces, end, around);
        }
    }
}

/// A piece begins, in place of one that begins at the same address.
fn begin<A: Address>(pieces: &mut Vec<(A, Vec<u32>)>, start: A, list: Vec<u32>) {
    match pieces.last_mut() {
        Some((last, places)) if *last == start => *places = list,
        _ => pieces.push((start, list)),
    }
}

/// The address behind the last one of a prefix; none behind the last address there is.
fn behind<A: Address>(prefix: Prefix<A>) -> Option<A> {
    let bits = |addr: A| match addr.into() {
        std::net::IpAddr::V4(addr) => u128::from(u32::from(addr)),
        std::net::IpAddr::V6(addr) => u128::from(addr),
    };
    let size = 1_u128.checked_shl(u32::from(A::BITS - prefix.len()))?;
    let next = bits(prefix.addr()).checked_add(size)?;
    A::from_bits(next)
}

#[cfg(test)]
mod tests {
    use std::net::Ipv4Addr;

    use super::*;

    #[test]
    fn nested_equal_and_neighbouring_prefixes_are_told_apart() {
        let prefix = |a: [u8; 4], len| Prefix::new(Ipv4Addr::from(a), len).unwrap();
        let intervals = Intervals::build(vec![
            (prefix([10, 0, 0, 0], 8), 4),
            (prefix([10, 1, 0, 0], 16), 1),
            (prefix([10, 1, 0, 0], 16), 9),
            (prefix([10, 1, 255, 0], 24), 0),
            (prefix([10, 2, 0, 0], 16), 2),
            (prefix([255, 255, 255, 255], 32), 3),
            (prefix([0, 0, 0, 0], 0), 7),
        ]);
        let of = |a: [u8; 4]| intervals.of(a.into()).to_vec();
        assert_eq!(of([9, 255, 255, 255]), [7]);
        assert_eq!(of([10, 0, 0, 0]), [4, 7]);
        assert_eq!(of([10, 1, 0, 0]), [1, 4, 7, 9]);
        assert_eq!(of([10, 1, 255, 9]), [0, 1, 4, 7, 9]);
        assert_eq!(of([10, 2, 0, 0]), [2, 4, 7]);
        assert_eq!(of([10, 3, 0, 0]), [4, 7]);
        assert_eq!(of([11, 0, 0, 0]), [7]);
        assert_eq!(of([255, 255, 255, 255]), [3, 7]);
    }
}

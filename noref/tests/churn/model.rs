//! What the tables must say: a trie of other people's, changed step by step, and what readers saw held against it.

use std::collections::BTreeMap;
use std::net::IpAddr;

use prefix_trie::PrefixMap;
use route::TableId;

use crate::tables::{Change, Net};

/// Addresses of both families as IPv6 has them.
type Key = (u128, u8);

fn key((addr, len): Net) -> Key {
    match addr {
        IpAddr::V4(v4) => (u128::from(v4.to_ipv6_mapped()), len + 96),
        IpAddr::V6(v6) => (u128::from(v6), len),
    }
}

/// The gateway's number of each prefix of each table; from 1 on, 0 is none.
#[derive(Default)]
pub struct Model(BTreeMap<u32, PrefixMap<Key, u8>>);

impl Model {
    /// Routes of all tables.
    pub fn len(&self) -> usize {
        self.0.values().map(PrefixMap::len).sum()
    }

    /// The gateway that packets to `addr` take.
    pub fn answer(&self, table: TableId, addr: IpAddr) -> u8 {
        let bits = if addr.is_ipv4() { 32 } else { 128 };
        self.0.get(&table.0).and_then(|map| map.get_lpm(&key((addr, bits)))).map_or(0, |(_, gateway)| *gateway)
    }

    /// The gateway of exactly this prefix.
    pub fn get(&self, table: TableId, net: Net) -> u8 {
        self.0.get(&table.0).and_then(|map| map.get(&key(net))).copied().unwrap_or(0)
    }

    pub fn set(&mut self, table: TableId, net: Net, gateway: u8) {
        let map = self.0.entry(table.0).or_default();
        match gateway {
            0 => map.remove(&key(net)),
            _ => map.insert(key(net), gateway),
        };
    }

    fn step(&mut self, step: &[Change]) {
        step.iter().for_each(|change| self.set(change.table, change.net, change.after));
    }

    /// Takes steps back.
    pub fn rewind(&mut self, steps: &[Vec<Change>]) {
        for change in steps.iter().rev().flatten() {
            self.set(change.table, change.net, change.before);
        }
    }
}

/// What a reader saw. Commit number `from` was over before it asked, commit `to + 2` had not begun when it had its answer.
pub struct Seen {
    pub table: TableId,
    pub addr: IpAddr,
    pub answer: u8,
    pub from: u64,
    pub to: u64,
}

/// Makes the steps again, from commit number `from` on, and looks after each whose answer is that of this state; what was seen and was never so.
pub fn check(model: &mut Model, from: u64, steps: &[Vec<Change>], seen: impl Iterator<Item = Seen>) -> Result<(), String> {
    let mut seen: Vec<_> = seen.collect();
    seen.sort_by_key(|seen| std::cmp::Reverse(seen.from));
    let mut open: Vec<Seen> = Vec::new();
    for version in from..=from + steps.len() as u64 {
        if version > from {
            model.step(&steps[(version - from - 1) as usize]);
        }
        while seen.last().is_some_and(|seen| seen.from == version) {
            open.extend(seen.pop());
        }
        open.retain(|seen| model.answer(seen.table, seen.addr) != seen.answer);
        if let Some(late) = open.iter().find(|seen| version > seen.to) {
            return Err(describe(model, late));
        }
    }
    open.first().map_or(Ok(()), |seen| Err(describe(model, seen)))
}

fn describe(model: &Model, Seen { table, addr, answer, from, to }: &Seen) -> String {
    format!(
        "{addr} in table {table} went to gateway {answer} around commits {from} to {to}; in the end that is {}",
        model.answer(*table, *addr)
    )
}

#[test]
fn an_answer_that_was_never_right_is_found() {
    let net: Net = ("198.51.100.0".parse().unwrap(), 24);
    let change = |before, after| vec![Change { table: TableId(7), net, before, after }];
    let steps = [change(0, 1), change(1, 2), change(2, 0)];
    let seen = |answer, from, to| Seen { table: TableId(7), addr: "198.51.100.9".parse().unwrap(), answer, from, to };
    let checked = |seen| check(&mut Model::default(), 10, &steps, [seen].into_iter()).is_ok();
    assert!(checked(seen(0, 10, 10)) && checked(seen(1, 10, 10)) && checked(seen(2, 10, 11)) && checked(seen(0, 13, 13)));
    assert!(!checked(seen(2, 10, 10)), "two commits ahead");
    assert!(!checked(seen(1, 12, 12)), "stale");
    assert!(!checked(seen(3, 10, 12)) && !checked(seen(2, 13, 13)));
}

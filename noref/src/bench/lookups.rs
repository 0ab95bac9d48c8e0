//! The match table alone: what of a packet's cost is finding its route.

use std::hint::black_box;
use std::sync::Arc;
use std::thread;
use std::time::Instant;

use lpm::{Key, Lpm};
use plane::BURST;

use super::Bench;
use super::full_table::prefixes::{address4, address6};
use super::full_table::{GATEWAYS, Prefixes, Random};
use super::measure::{ROUNDS, pin};
use super::report::{LookupRow, Spread};
use crate::failure::Failure;
use crate::show::columns::{Align, Columns};
use crate::threads::join;

impl Bench {
    /// Measures both families and prints the rows.
    ///
    /// # Errors
    /// Those of standard output.
    pub fn lpm(&mut self, prefixes: &Prefixes) -> Result<Vec<LookupRow>, Failure> {
        self.stdout.line("\nlpm: lookups in the match table alone, one core, ns each: the best of the rounds and their median\n")?;
        let lookups = usize::try_from(self.frames).unwrap_or(usize::MAX).clamp(1, 1 << 20);
        let v4: Vec<_> = prefixes.v4.iter().map(|&(addr, len)| (u32::from(addr), len)).collect();
        let v6: Vec<_> = prefixes.v6.iter().map(|&(addr, len)| (u128::from(addr), len)).collect();
        let usable4 = prefixes.usable4();
        let usable6 = prefixes.usable6();
        let mut columns = Columns::new(&[
            ("family", Align::Left),
            ("destinations", Align::Left),
            ("        alone", Align::Right),
            ("   in batches", Align::Right),
            ("prefixes", Align::Right),
            ("memory, MB", Align::Right),
        ]);
        let rows = thread::scope(|scope| {
            join(scope.spawn(|| {
                pin(0);
                let mut rows = family("ipv4", &v4, lookups, usable4.len(), |n, random| address4(usable4[n], random).into());
                rows.extend(family("ipv6", &v6, lookups, usable6.len(), |n, random| address6(usable6[n], random).into()));
                rows
            }))
        });
        let cells: Vec<_> = rows.iter().map(cells).collect();
        self.stdout.print(|output| columns.print(&cells, output))?;
        for row in rows.iter().filter(|row| row.missed != 0) {
            self.stdout.line(format_args!("  {} of {} {} destinations found no prefix", row.missed, row.lookups, row.family))?;
        }
        self.stdout.flush()?;
        Ok(rows)
    }
}

fn cells(row: &LookupRow) -> Vec<String> {
    let pair = |ns: Spread| format!("{:.1} {:.1}", ns.best, ns.median);
    vec![
        row.family.to_owned(),
        row.destinations.to_owned(),
        pair(row.alone_ns),
        pair(row.batch_ns),
        row.prefixes.to_string(),
        format!("{:.1}", row.memory as f64 / 1e6),
    ]
}

/// The rows of a family. `within(n, …)` is a random address in the usable prefix number `n`, of which there are `usable`.
fn family<K: Key>(
    name: &'static str,
    prefixes: &[(K, u8)],
    lookups: usize,
    usable: usize,
    within: impl Fn(usize, &mut Random) -> K,
) -> Vec<LookupRow> {
    let domain = rcu::Domain::new();
    let table = Lpm::new(&domain);
    let values = prefixes.iter().enumerate().map(|(n, &(addr, len))| (lpm::Prefix::new(addr, len), (n % GATEWAYS) as u32 + 1));
    table.extend(values.filter_map(|(prefix, value)| prefix.map(|prefix| (prefix, value))));

    let mut random = Random::new(2);
    let zipf = Zipf::new(usable, &mut random);
    let mut keys = |pick: &dyn Fn(&mut Random) -> usize| -> Vec<K> {
        let key = |_| {
            let n = pick(&mut random);
            within(n, &mut random)
        };
        (0..lookups).map(key).collect()
    };
    let all_alike = keys(&|random| random.below(usable));
    let popular = keys(&|random| zipf.pick(random));
    let mut in_order = all_alike.clone();
    in_order.sort_unstable();
    [("random", all_alike), ("zipf", popular), ("sequential", in_order)]
        .into_iter()
        .map(|(destinations, keys)| {
            let (alone_ns, batch_ns, missed) = rounds(&domain, &table, &keys);
            LookupRow { family: name, destinations, alone_ns, batch_ns, lookups, missed, prefixes: table.len(), memory: table.memory() }
        })
        .collect()
}

/// Looks all keys up, one by one and in batches: nanoseconds each, and how many were not found.
fn rounds<K: Key>(domain: &Arc<rcu::Domain>, table: &Lpm<K>, keys: &[K]) -> (Spread, Spread, usize) {
    let mut reader = domain.reader();
    let mut out = [0; BURST];
    let mut missed = 0;
    let each = |begin: Instant| begin.elapsed().as_nanos() as f64 / keys.len() as f64;
    let (mut alone, mut batch) = (Vec::new(), Vec::new());
    for _ in 0..ROUNDS {
        let begin = Instant::now();
        black_box(reader.burst(|guard| keys.iter().fold(0_u32, |sum, &key| sum.wrapping_add(table.lookup(guard, key)))));
        alone.push(each(begin));
        let begin = Instant::now();
        missed = 0;
        for keys in keys.chunks(BURST) {
            let out = &mut out[..keys.len()];
            out.fill(0);
            missed += reader.burst(|guard| table.lookup_batch(guard, keys, out));
            black_box(out);
        }
        batch.push(each(begin));
    }
    let spread = |costs: Vec<f64>| Spread::of_costs(costs.into_iter()).unwrap_or_default();
    (spread(alone), spread(batch), missed)
}

/// Few prefixes are asked for often, most hardly ever: the n-th most popular one in proportion to 1/n.
struct Zipf {
    /// The prefixes by popularity, which has nothing to do with their addresses.
    order: Vec<usize>,
    /// Shares of the most popular one, of the two most popular ones, and so on; not divided by their sum, which is the last.
    sums: Vec<f64>,
}

impl Zipf {
    fn new(n: usize, random: &mut Random) -> Zipf {
        let mut order: Vec<usize> = (0..n).collect();
        (1..n).for_each(|at| order.swap(at, random.below(at + 1)));
        let mut sum = 0.0;
        let sums = (0..n).map(|rank| {
            sum += 1.0 / (rank + 1) as f64;
            sum
        });
        Zipf { sums: sums.collect(), order }
    }

    fn pick(&self, random: &mut Random) -> usize {
        let at = random.fraction() * self.sums.last().copied().unwrap_or_default();
        let rank = self.sums.partition_point(|sum| *sum <= at);
        self.order.get(rank).copied().unwrap_or_default()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_most_popular_is_asked_for_twice_as_often_as_the_second() {
        let mut random = Random::new(1);
        let zipf = Zipf::new(1000, &mut random);
        let mut picked = vec![0; 1000];
        (0..100_000).for_each(|_| picked[zipf.pick(&mut random)] += 1);
        let ratio = f64::from(picked[zipf.order[0]]) / f64::from(picked[zipf.order[1]]);
        assert!((1.9..2.1).contains(&ratio), "{ratio}");
    }
}

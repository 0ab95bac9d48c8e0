//! Rows on a terminal.

use std::fmt::Write as _;

use super::report::{Drop, Figure, Row};
use crate::failure::Failure;
use crate::show::columns::{Align, Columns};
use crate::stdout::Stdout;

/// How the columns are to be read.
pub const READING: &str = "Of two figures the first is the best round, the second the median; ns and clocks are a worker's for a packet; scales is against one worker.";

/// A table of packets a second. A figure of two numbers is the best of the rounds and their median; others belong to the best.
pub struct Table(Columns);

impl Table {
    pub fn new() -> Table {
        let right = |name| (name, Align::Right);
        Table(Columns::new(&[
            ("way                      ", Align::Left),
            ("to    ", Align::Left),
            right("bytes"),
            right("workers"),
            right("  noref Mpps"),
            right("counted Mpps"),
            right("noref/counted"),
            right("    ns"),
            right("clocks"),
            right("scales"),
            ("patches", Align::Left),
        ]))
    }

    /// Prints the rows of a way.
    ///
    /// # Errors
    /// Those of standard output.
    pub fn print(&mut self, rows: &[Row], stdout: &mut Stdout) -> Result<(), Failure> {
        let cells: Vec<_> = rows.iter().map(cells).collect();
        stdout.print(|output| self.0.print(&cells, output))?;
        for row in rows.iter().filter(|row| !row.is_whole()) {
            for figure in row.figures().filter(|figure| figure.forwarded != figure.offered) {
                stdout.line(format_args!("  not every packet was forwarded: {}", loss(figure.offered, figure.forwarded, &figure.drops)))?;
            }
        }
        stdout.flush()
    }

    /// Prints the figures of the kernel patches' authors that belong to these rows.
    ///
    /// # Errors
    /// Those of standard output.
    pub fn print_patches(&self, title: &str, rows: &[Row], stdout: &mut Stdout) -> Result<(), Failure> {
        let mut seen = Vec::new();
        let known = rows.iter().filter_map(|row| row.patches.map(|patches| (&row.way, patches)));
        for (way, patches) in known {
            if seen.contains(&way) {
                continue;
            }
            if seen.is_empty() {
                stdout.line(format_args!("\n{title}"))?;
            }
            seen.push(way);
            let mut line = format!("  {way:<10}");
            for (n, (before, after)) in patches.before.iter().zip(patches.after).enumerate() {
                let queues = patches.queues.get(n).map(|n| super::machine::count(*n as usize, "queue") + " ").unwrap_or_default();
                let _ = write!(line, "   {queues}{before:.3} → {after:.3}");
            }
            stdout.line(line)?;
        }
        if !seen.is_empty() {
            stdout.line("  In the table above \"patches\" is borrowed against counted of these, to be held against noref/counted; the rates are of other machines.")?;
        }
        stdout.flush()
    }
}

fn cells(row: &Row) -> Vec<String> {
    let mpps = |figure: &Option<Figure>| figure.as_ref().map_or_else(String::new, |figure| pair(figure.mpps.best, figure.mpps.median));
    let first = row.figures().next();
    let patches = row.patches.iter().flat_map(|patches| patches.ratios()).map(|ratio| format!("{ratio:.2}")).collect::<Vec<_>>();
    vec![
        row.way.clone(),
        row.destinations.to_owned(),
        row.bytes.to_string(),
        row.workers.to_string(),
        mpps(&row.noref),
        mpps(&row.counted),
        row.ratio.map_or_else(String::new, |ratio| format!("{} {}", two(ratio.best), two(ratio.median))),
        first.map_or_else(String::new, |figure| format!("{:.1}", figure.ns.best)),
        first.and_then(|figure| figure.clocks).map_or_else(String::new, |clocks| format!("{:.0}", clocks.best)),
        row.against_one_worker.map_or_else(String::new, |scale| two(scale.best)),
        patches.join(" "),
    ]
}

fn pair(best: f64, median: f64) -> String {
    format!("{} {}", two(best), two(median))
}

fn two(number: f64) -> String {
    format!("{number:.2}")
}

/// How many packets are missing, and why.
pub fn loss(offered: u64, forwarded: u64, drops: &[Drop]) -> String {
    let mut text = format!("{} of {offered} are missing", offered - forwarded);
    for Drop { reason, packets } in drops {
        let _ = write!(text, ", {packets} {reason}");
    }
    text
}

//! The series of SRv6: every behaviour and headend, and plain forwarding beside them.

use super::Bench;
use super::full_table::{Router, Way};
use super::measure::{Plan, measure};
use super::patches::Patches;
use super::report::{Figure, Row, Spread};
use super::table::{READING, Table};
use crate::args::Refs;
use crate::failure::Failure;

impl Bench {
    /// Measures each way and prints its rows.
    ///
    /// # Errors
    /// Those of standard output.
    pub fn seg6local(&mut self, router: &Router, ways: &[Way]) -> Result<Vec<Row>, Failure> {
        self.stdout.line(format_args!("\nseg6local: SRv6 and plain forwarding, frames in memory. {READING}\n"))?;
        let mut table = Table::new();
        let mut rows = Vec::new();
        for way in ways {
            let patches = if way.random { None } else { Patches::seg6local(way.name) };
            let measured = self.way(router, way, |row| Row { patches, ..row });
            table.print(&measured, &mut self.stdout)?;
            rows.extend(measured);
        }
        table.print_patches(
            "What the author of the kernel patches measured, on another machine with two sockets: Mpps at 0.5 % loss, counted → borrowed",
            &rows,
            &mut self.stdout,
        )?;
        Ok(rows)
    }

    /// Measures a way with each number of workers; `complete` adds to a row what is known of it otherwise.
    pub fn way(&self, router: &Router, way: &Way, complete: impl Fn(Row) -> Row) -> Vec<Row> {
        let mut alone: Option<Spread> = None;
        let mut rows = Vec::new();
        for &workers in &self.workers {
            let plan = Plan { workers, refs: self.refs, frames: self.frames };
            let figures = measure(router, way, &plan);
            let of = |refs| self.refs.iter().zip(&figures).find(|(at, _)| **at == refs).map(|(_, figure)| figure.clone());
            let (noref, counted) = (of(Refs::Noref), of(Refs::Counted));
            let mpps = |figure: &Option<Figure>| figure.as_ref().map(|figure| figure.mpps);
            let now = mpps(&noref);
            if workers == 1 {
                alone = now;
            }
            rows.push(complete(Row {
                way: way.name.to_owned(),
                destinations: if way.random { "random" } else { "one" },
                bytes: way.frames.frame_len(),
                tables_missed: None,
                other_rules: None,
                workers,
                ratio: now.zip(mpps(&counted)).map(|(noref, counted)| noref.against(counted)),
                against_one_worker: now.zip(alone).filter(|_| workers != 1).map(|(now, alone)| now.against(alone)),
                patches: None,
                noref,
                counted,
            }));
        }
        rows
    }
}

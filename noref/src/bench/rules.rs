//! The series of rules: packets of connections being opened, through tables that have no route for them.
//!
//! Each table asked in vain is a reference on the one null entry that all misses share, where references are counted.

use std::net::Ipv6Addr;

use super::Bench;
use super::full_table::{Router, Way, frames};
use super::patches::Patches;
use super::report::Row;
use super::table::{READING, Table};
use crate::failure::Failure;

/// Tables asked in vain at most, as in the kernel patches' series.
const MOST: usize = 3;
/// Their numbers begin here.
const FIRST_TABLE: usize = 100;
/// Rules that are for other packets, in the last row.
const OTHERS: usize = 1000;

impl Bench {
    /// Measures with no table in the way, with one, and so on, at last with many rules beside, and prints the rows. The rules are gone again afterwards.
    ///
    /// # Errors
    /// Those of standard output.
    pub fn rules(&mut self, router: &mut Router) -> Result<Vec<Row>, Failure> {
        self.stdout.line(format_args!(
            "\nrules: SYNs over IPv6, forwarded by a route of main, behind tables that rules lead to in vain. {READING}\n"
        ))?;
        let dst = router.prefixes.destinations6(1).first().copied().unwrap_or(Ipv6Addr::UNSPECIFIED);
        let way = Way { name: "SYN", random: false, frames: [frames::syn(dst)].into_iter().collect(), sent: 74 };
        let mut table = Table::new();
        let mut rows = Vec::new();
        for (missed, others) in (0..=MOST).map(|missed| (missed, 0)).chain([(MOST, OTHERS)]) {
            match (missed, others) {
                (0, _) => {}
                (_, 0) => add_rule(router, missed)?,
                _ => apply(router, &other_rules(|n| format!("add from 2001:db8:0:{n:x}::/64 lookup {FIRST_TABLE} pref")))?,
            }
            let measured = self.way(router, &way, |row| Row {
                way: match (missed, others) {
                    (0, _) => "SYN, no table missed".to_owned(),
                    (1, _) => "SYN, 1 table missed".to_owned(),
                    (_, 0) => format!("SYN, {missed} tables missed"),
                    _ => format!("SYN, {missed} tables missed, {others} rules"),
                },
                tables_missed: Some(missed),
                other_rules: Some(others),
                patches: if others == 0 { Patches::rules(missed) } else { None },
                ..row
            });
            table.print(&measured, &mut self.stdout)?;
            rows.extend(measured);
        }
        apply(router, &other_rules(|_| "del pref".to_owned()))?;
        for missed in 1..=MOST {
            let table = FIRST_TABLE + missed;
            apply(router, &format!("-6 rule del pref {table}\n-6 route del 2001:db8:{missed}::/48 table {table}\n"))?;
        }
        table.print_patches(
            "What the author of the kernel patches measured, on another machine: Mpps of SYNs at a listener, output through 3 tables, counted → borrowed",
            &rows,
            &mut self.stdout,
        )?;
        Ok(rows)
    }
}

/// Puts a table into the way that has a route, but not for these packets.
fn add_rule(router: &mut Router, missed: usize) -> Result<(), Failure> {
    let table = FIRST_TABLE + missed;
    apply(
        router,
        &format!("-6 route add 2001:db8:{missed}::/48 via fd00:1::102 dev e1 table {table}\n-6 rule add pref {table} lookup {table}\n"),
    )
}

/// A line for each of the rules that are for other packets, which says this of it and its preference.
fn other_rules(what: impl Fn(usize) -> String) -> String {
    (1..=OTHERS).map(|n| format!("-6 rule {} {}\n", what(n), OTHERS + n)).collect()
}

fn apply(router: &mut Router, lines: &str) -> Result<(), Failure> {
    router.configuration.apply(lines, "rules").map(drop).map_err(Failure::incomplete)
}

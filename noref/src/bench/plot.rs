//! The plot: packets a second as bars, for each way noref and counted, for each number of workers.

use super::live::LiveRow;
use super::machine::count;
use super::report::{Report, Row};
use super::svg::{Anchor, Svg};

const WIDTH: f64 = 1000.0;
/// Where bars begin: to their left stand the ways.
const LEFT: f64 = 230.0;
/// Where the longest bar ends at most: behind it stands its figure.
const RIGHT: f64 = 940.0;
/// Where the first way begins: above stand title, machine and legend.
const TOP: f64 = 112.0;
const BAR: f64 = 11.0;
/// Between two bars, and between two ways.
const GAP: (f64, f64) = (2.0, 14.0);
/// Below the last way: the axis and the warnings.
const BOTTOM: f64 = 64.0;

const INK: &str = "#1a1a1a";
const PALE: &str = "#6b6b6b";
const GRID: &str = "#dddddd";
/// Numbers of workers that can be told apart.
pub const SHADES: usize = 4;
/// From the fewest workers to the most.
const NOREF: [&str; SHADES] = ["#8fc1e3", "#2f7fb8", "#17557f", "#0b3450"];
const COUNTED: [&str; SHADES] = ["#f3c58f", "#dd8a2b", "#a85f10", "#6d3c06"];

/// A bar.
struct Bar {
    colour: &'static str,
    mpps: f64,
    /// What the legend says of its colour.
    kind: String,
}

/// The bars of a way.
struct Group {
    name: String,
    bytes: usize,
    bars: Vec<Bar>,
}

impl Group {
    fn new(name: &str, destinations: &str, bytes: usize, bars: Vec<Bar>) -> Group {
        let to = if destinations == "random" { ", random" } else { "" };
        Group { name: format!("{name}{to}"), bytes, bars }
    }

    fn height(&self) -> f64 {
        self.bars.len() as f64 * (BAR + GAP.0) - GAP.0 + GAP.1
    }
}

/// Draws seg6local and rules, or live.
pub fn draw(report: &Report) -> String {
    match &report.live {
        Some(rows) => {
            let groups = rows.chunk_by(|a, b| (&a.way, a.destinations) == (&b.way, b.destinations)).filter_map(live).collect();
            let what = "on devices, the highest rate with at most 0.5 % lost, best run";
            plot(report, "noref bench live: packets forwarded by the kernel and by noref", what, groups)
        }
        None => {
            let prefixes = report.settings.as_ref().map_or_else(String::new, |settings| {
                format!(
                    "{} IPv4 and {} IPv6 prefixes, frames from memory to memory, best of {} rounds",
                    settings.prefixes_ipv4, settings.prefixes_ipv6, settings.rounds
                )
            });
            plot(report, "noref bench: packets forwarded, routes borrowed and counted", &prefixes, memory(report))
        }
    }
}

/// The groups of seg6local and rules.
fn memory(report: &Report) -> Vec<Group> {
    let rows: Vec<&Row> = report.seg6local.iter().chain(&report.rules).flatten().collect();
    let mut workers: Vec<usize> = rows.iter().map(|row| row.workers).collect();
    workers.sort_unstable();
    workers.dedup();
    // A way's rows stand behind each other.
    let ways = rows.chunk_by(|a, b| (&a.way, a.destinations) == (&b.way, b.destinations));
    ways.filter_map(|rows| rows.first().map(|row| Group::new(&row.way, row.destinations, row.bytes, bars(rows, &workers)))).collect()
}

/// The group of a way of live.
fn live(rows: &[LiveRow]) -> Option<Group> {
    let first = rows.first()?;
    let bar = |row: &LiveRow| Bar {
        colour: if row.by == "noref" { NOREF[1] } else { COUNTED[1] },
        mpps: row.mpps.best,
        kind: format!("{} over {}", row.by, row.over),
    };
    Some(Group::new(&first.way, first.destinations, first.bytes, rows.iter().map(bar).collect()))
}

fn plot(report: &Report, title: &str, what: &str, groups: Vec<Group>) -> String {
    let bottom = TOP + groups.iter().map(Group::height).sum::<f64>();
    let mut svg = Svg::new(WIDTH, bottom + BOTTOM + 16.0 * report.machine.warnings.len() as f64);
    svg.text((20.0, 32.0), 20.0, Anchor::Start, INK, title);
    svg.text((20.0, 52.0), 11.0, Anchor::Start, PALE, &report.machine);
    svg.text((20.0, 68.0), 11.0, Anchor::Start, PALE, what);
    legend(&mut svg, groups.iter().flat_map(|group| &group.bars));

    let most = groups.iter().flat_map(|group| &group.bars).map(|bar| bar.mpps).fold(0.0, f64::max);
    let step = step(most);
    let end = (most / step).ceil().max(1.0) * step;
    let x = |mpps: f64| LEFT + (RIGHT - LEFT) * mpps / end;
    for tick in 0..=(end / step).round() as u32 {
        let mpps = f64::from(tick) * step;
        svg.upright(x(mpps), TOP - 6.0, bottom, GRID);
        svg.text((x(mpps), bottom + 16.0), 11.0, Anchor::Middle, PALE, mpps);
    }
    svg.text((f64::midpoint(LEFT, RIGHT), bottom + 36.0), 12.0, Anchor::Middle, INK, "millions of packets a second, all workers together");

    let mut y = TOP;
    for group in &groups {
        let middle = y + (group.height() - GAP.1) / 2.0;
        svg.text((LEFT - 10.0, middle + 1.0), 12.0, Anchor::End, INK, &group.name);
        svg.text((LEFT - 10.0, middle + 13.0), 9.0, Anchor::End, PALE, format_args!("{} bytes", group.bytes));
        for (n, bar) in group.bars.iter().enumerate() {
            let top = y + n as f64 * (BAR + GAP.0);
            svg.rect((LEFT, top), x(bar.mpps) - LEFT, BAR, bar.colour);
            svg.text((x(bar.mpps) + 4.0, top + BAR - 2.0), 9.5, Anchor::Start, INK, format_args!("{:.1}", bar.mpps));
        }
        y += group.height();
    }
    for (n, warning) in report.machine.warnings.iter().enumerate() {
        svg.text((20.0, bottom + 58.0 + 16.0 * n as f64), 11.0, Anchor::Start, "#b00020", format_args!("warning: {warning}"));
    }
    svg.to_string()
}

/// The bars of a way: for each number of workers noref, then counted.
fn bars(rows: &[&Row], workers: &[usize]) -> Vec<Bar> {
    let bar = |row: &&Row| {
        let shade = workers.iter().position(|n| *n == row.workers).unwrap_or_default().min(SHADES - 1);
        let of = |figure: &Option<super::report::Figure>, refs, colours: [&'static str; SHADES]| {
            let kind = format!("{refs}, {}", count(row.workers, "worker"));
            figure.as_ref().map(|figure| Bar { colour: colours[shade], mpps: figure.mpps.best, kind })
        };
        [of(&row.noref, "noref", NOREF), of(&row.counted, "counted", COUNTED)]
    };
    rows.iter().flat_map(bar).flatten().collect()
}

/// Each kind of bar, once.
fn legend<'b>(svg: &mut Svg, bars: impl Iterator<Item = &'b Bar>) {
    let mut seen = Vec::new();
    let mut x = LEFT;
    for bar in bars {
        if seen.contains(&&bar.kind) {
            continue;
        }
        seen.push(&bar.kind);
        svg.rect((x, 82.0), 12.0, 12.0, bar.colour);
        svg.text((x + 18.0, 92.0), 12.0, Anchor::Start, INK, &bar.kind);
        x += 38.0 + 7.2 * bar.kind.len() as f64;
    }
}

/// From one mark of the axis to the next: 1, 2 or 5 times a power of ten, so that there are four to ten marks.
fn step(most: f64) -> f64 {
    let power = 10_f64.powf((most.max(1e-3) / 10.0).log10().floor());
    [1.0, 2.0, 5.0, 10.0].into_iter().map(|times| times * power).find(|step| most / step <= 10.0).unwrap_or(10.0 * power)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_axis_has_round_marks_and_not_many() {
        assert_eq!([0.7, 9.0, 12.0, 48.0, 96.0, 110.0].map(|most| (step(most) * 10.0).round() / 10.0), [0.1, 1.0, 2.0, 5.0, 10.0, 20.0]);
    }
}

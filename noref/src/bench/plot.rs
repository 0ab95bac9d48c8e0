//! The plot: packets a second as bars, for each way noref and counted, for each number of workers.

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
struct Bar<'r> {
    colour: &'static str,
    mpps: f64,
    workers: usize,
    refs: &'r str,
}

/// Draws seg6local and rules.
pub fn draw(report: &Report) -> String {
    let rows: Vec<&Row> = report.seg6local.iter().chain(&report.rules).flatten().collect();
    let mut workers: Vec<usize> = rows.iter().map(|row| row.workers).collect();
    workers.sort_unstable();
    workers.dedup();
    // A way's rows stand behind each other.
    let ways: Vec<&[&Row]> = rows.chunk_by(|a, b| (&a.way, a.destinations) == (&b.way, b.destinations)).collect();
    let bars: Vec<Vec<Bar<'_>>> = ways.iter().map(|rows| bars(rows, &workers)).collect();
    let height = |bars: &Vec<Bar<'_>>| bars.len() as f64 * (BAR + GAP.0) - GAP.0 + GAP.1;
    let bottom = TOP + bars.iter().map(height).sum::<f64>();

    let mut svg = Svg::new(WIDTH, bottom + BOTTOM + 16.0 * report.machine.warnings.len() as f64);
    svg.text((20.0, 32.0), 20.0, Anchor::Start, INK, "noref bench: packets forwarded, routes borrowed and counted");
    svg.text((20.0, 52.0), 11.0, Anchor::Start, PALE, &report.machine);
    let settings = &report.settings;
    let prefixes = format!(
        "{} IPv4 and {} IPv6 prefixes, frames from memory to memory, best of {} rounds",
        settings.prefixes_ipv4, settings.prefixes_ipv6, settings.rounds
    );
    svg.text((20.0, 68.0), 11.0, Anchor::Start, PALE, prefixes);
    legend(&mut svg, bars.iter().flatten());

    let most = bars.iter().flatten().map(|bar| bar.mpps).fold(0.0, f64::max);
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
    for (rows, bars) in ways.iter().zip(&bars) {
        let middle = y + (height(bars) - GAP.1) / 2.0;
        if let Some(row) = rows.first() {
            let to = if row.destinations == "random" { ", random" } else { "" };
            svg.text((LEFT - 10.0, middle + 1.0), 12.0, Anchor::End, INK, format_args!("{}{to}", row.way));
            svg.text((LEFT - 10.0, middle + 13.0), 9.0, Anchor::End, PALE, format_args!("{} bytes", row.bytes));
        }
        for (n, bar) in bars.iter().enumerate() {
            let top = y + n as f64 * (BAR + GAP.0);
            svg.rect((LEFT, top), x(bar.mpps) - LEFT, BAR, bar.colour);
            svg.text((x(bar.mpps) + 4.0, top + BAR - 2.0), 9.5, Anchor::Start, INK, format_args!("{:.1}", bar.mpps));
        }
        y += height(bars);
    }
    for (n, warning) in report.machine.warnings.iter().enumerate() {
        svg.text((20.0, bottom + 58.0 + 16.0 * n as f64), 11.0, Anchor::Start, "#b00020", format_args!("warning: {warning}"));
    }
    svg.to_string()
}

/// The bars of a way: for each number of workers noref, then counted.
fn bars<'r>(rows: &[&'r Row], workers: &[usize]) -> Vec<Bar<'r>> {
    let bar = |row: &&'r Row| {
        let shade = workers.iter().position(|n| *n == row.workers).unwrap_or_default().min(SHADES - 1);
        let of = |figure: &Option<super::report::Figure>, refs, colours: [&'static str; SHADES]| {
            figure.as_ref().map(|figure| Bar { colour: colours[shade], mpps: figure.mpps.best, workers: row.workers, refs })
        };
        [of(&row.noref, "noref", NOREF), of(&row.counted, "counted", COUNTED)]
    };
    rows.iter().flat_map(bar).flatten().collect()
}

/// Each kind of bar, once.
fn legend<'b, 'r: 'b>(svg: &mut Svg, bars: impl Iterator<Item = &'b Bar<'r>>) {
    let mut seen = Vec::new();
    let mut x = LEFT;
    for bar in bars {
        if seen.contains(&(bar.workers, bar.refs)) {
            continue;
        }
        seen.push((bar.workers, bar.refs));
        let words = format!("{}, {}", bar.refs, count(bar.workers, "worker"));
        svg.rect((x, 82.0), 12.0, 12.0, bar.colour);
        svg.text((x + 18.0, 92.0), 12.0, Anchor::Start, INK, &words);
        x += 38.0 + 7.2 * words.len() as f64;
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

//! Rows that stand below each other, printed as they come: a table may have a million of them.

use std::io::{self, Write};

/// How a column's cells stand.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Align {
    /// Words.
    Left,
    /// Numbers.
    Right,
}

/// A table being printed. Columns are as wide as the widest cell so far; a table that comes in one piece is even throughout.
pub struct Columns {
    heading: Vec<(&'static str, Align)>,
    widths: Vec<usize>,
    begun: bool,
}

impl Columns {
    /// A table of these columns. What stands in the last one may have any length.
    pub fn new(heading: &[(&'static str, Align)]) -> Columns {
        let widths = heading.iter().map(|(word, _)| word.chars().count()).collect();
        Columns { heading: heading.to_vec(), widths, begun: false }
    }

    /// Prints rows, behind the heading when they are the first.
    ///
    /// # Errors
    /// Those of the output.
    pub fn print(&mut self, rows: &[Vec<String>], output: &mut dyn Write) -> io::Result<()> {
        for row in rows {
            for (width, cell) in self.widths.iter_mut().zip(row) {
                *width = (*width).max(cell.chars().count());
            }
        }
        if !std::mem::replace(&mut self.begun, true) {
            let heading: Vec<_> = self.heading.iter().map(|(word, _)| (*word).to_owned()).collect();
            self.row(&heading, output)?;
        }
        rows.iter().try_for_each(|row| self.row(row, output))
    }

    fn row(&self, row: &[String], output: &mut dyn Write) -> io::Result<()> {
        let mut line = String::new();
        for ((cell, width), (_, align)) in row.iter().zip(&self.widths).zip(&self.heading) {
            if !line.is_empty() {
                line.push_str("  ");
            }
            let gap = width.saturating_sub(cell.chars().count());
            match align {
                Align::Left => {
                    line.push_str(cell);
                    line.extend(std::iter::repeat_n(' ', gap));
                }
                Align::Right => {
                    line.extend(std::iter::repeat_n(' ', gap));
                    line.push_str(cell);
                }
            }
        }
        writeln!(output, "{}", line.trim_end())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn cells_stand_below_each_other_and_widths_only_grow() {
        let mut columns = Columns::new(&[("name", Align::Left), ("packets", Align::Right), ("more", Align::Left)]);
        let row = |cells: [&str; 3]| cells.map(str::to_owned).to_vec();
        let mut output = Vec::new();
        columns.print(&[row(["e0", "7", "x"]), row(["ä1", "12345678", ""])], &mut output).unwrap();
        columns.print(&[row(["a-long-name", "1", "y"])], &mut output).unwrap();
        columns.print(&[row(["e0", "2", "z"])], &mut output).unwrap();
        assert_eq!(
            String::from_utf8(output).unwrap(),
            "\
name   packets  more
e0           7  x
ä1    12345678
a-long-name         1  y
e0                  2  z
"
        );
    }
}

//! Tables for people: aligned columns, numbers on the right, nothing drawn.

use std::fmt;

/// On which side a column is aligned.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Side {
    Left,
    Right,
}

/// A table with a heading.
#[derive(Debug)]
pub(crate) struct Table {
    sides: Vec<Side>,
    rows: Vec<Vec<String>>,
}

/// Between columns.
const GAP: &str = "  ";

impl Table {
    /// The headings of text columns, which come first, then those of number columns.
    pub(crate) fn new(texts: &[&str], numbers: &[&str]) -> Self {
        let side = |side, names: &[&str]| names.iter().map(|_| side).collect::<Vec<_>>();
        let heading = texts.iter().chain(numbers).map(|name| (*name).to_owned());
        Self {
            sides: [side(Side::Left, texts), side(Side::Right, numbers)].concat(),
            rows: vec![heading.collect()],
        }
    }

    /// Adds a row with a cell for each column.
    pub(crate) fn row(&mut self, cells: impl IntoIterator<Item = String>) {
        self.rows.push(cells.into_iter().collect());
    }

    fn width(&self, column: usize) -> usize {
        let cells = self.rows.iter().filter_map(|row| row.get(column));
        cells.map(|cell| cell.chars().count()).max().unwrap_or(0)
    }
}

impl fmt::Display for Table {
    /// Without a line end after the last row.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let widths: Vec<usize> = (0..self.sides.len()).map(|at| self.width(at)).collect();
        for (number, row) in self.rows.iter().enumerate() {
            let mut line = String::new();
            for ((cell, side), width) in row.iter().zip(&self.sides).zip(&widths) {
                if !line.is_empty() {
                    line.push_str(GAP);
                }
                line.push_str(&match side {
                    Side::Left => format!("{cell:<width$}"),
                    Side::Right => format!("{cell:>width$}"),
                });
            }
            let end = if number == 0 { "" } else { "\n" };
            write!(f, "{end}{}", line.trim_end())?;
        }
        Ok(())
    }
}

/// A number with commas between thousands.
pub(crate) fn grouped(number: u64) -> String {
    let digits = number.to_string();
    let mut text = String::with_capacity(digits.len() + digits.len() / 3);
    for (at, digit) in digits.chars().enumerate() {
        if at > 0 && (digits.len() - at).is_multiple_of(3) {
            text.push(',');
        }
        text.push(digit);
    }
    text
}

/// "1 message", "2 messages".
pub(crate) fn counted(number: u64, one: &str) -> String {
    let plural = if number == 1 { "" } else { "s" };
    format!("{} {one}{plural}", grouped(number))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn texts_stand_left_and_numbers_right() {
        let mut table = Table::new(&["QUEUE", "X"], &["WAITING"]);
        table.row(["größe", "a", "7"].map(str::to_owned));
        table.row(["orders.eu", "", "12,345,678"].map(str::to_owned));
        assert_eq!(
            table.to_string(),
            "QUEUE      X     WAITING\n\
             größe      a           7\n\
             orders.eu     12,345,678"
        );
    }

    #[test]
    fn an_empty_table_is_its_heading() {
        assert_eq!(
            Table::new(&["QUEUE"], &["WAITING"]).to_string(),
            "QUEUE  WAITING"
        );
    }

    #[test]
    fn thousands_are_grouped() {
        let cases = [
            (0, "0"),
            (999, "999"),
            (1_000, "1,000"),
            (1_234_567, "1,234,567"),
        ];
        for (number, text) in cases {
            assert_eq!(grouped(number), text);
        }
        assert_eq!(counted(1, "message"), "1 message");
        assert_eq!(counted(0, "message"), "0 messages");
    }
}

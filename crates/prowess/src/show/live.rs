//! The last line of an answer on a terminal: shown while it grows, and painted again when its look changes.

use unicode_width::UnicodeWidthChar;

/// The size of a terminal in characters.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Size {
    pub(crate) columns: usize,
    pub(crate) rows: usize,
}

/// What of an unfinished line is on the terminal.
#[derive(Debug, Default)]
pub(crate) struct Live {
    shown: String,
}

impl Live {
    /// What to print so that `line` stands in place of what was shown. A line that would not fit on the terminal is
    /// shown only as far as it does, for what has scrolled away cannot be painted over.
    pub(crate) fn show(&mut self, line: &str, size: Size) -> String {
        let line = fitting(line, size);
        if let Some(more) = line.strip_prefix(self.shown.as_str()) {
            let more = more.to_owned();
            self.shown = line;
            return more;
        }
        let out = format!("{}{line}", self.hide(size));
        self.shown = line;
        out
    }

    /// What to print so that nothing of it is left.
    pub(crate) fn hide(&mut self, size: Size) -> String {
        let shown = std::mem::take(&mut self.shown);
        if shown.is_empty() {
            return String::new();
        }
        let above = rows(&shown, size.columns) - 1;
        if above == 0 { "\r\u{1b}[J".to_owned() } else { format!("\r\u{1b}[{above}A\u{1b}[J") }
    }
}

/// The rows that `line` takes, with its own styles and nothing else in it.
fn rows(line: &str, columns: usize) -> usize {
    place(line, columns).last().map_or(1, |(_, row)| row + 1)
}

/// As much of `line` as leaves one row of the terminal free. Styles are kept to their end.
fn fitting(line: &str, size: Size) -> String {
    let most = size.rows.saturating_sub(1).max(1);
    let line = line.replace('\t', "    ");
    let cut = place(&line, size.columns).find(|&(_, row)| row >= most);
    match cut {
        None => line,
        Some((at, _)) => format!("{}{}", &line[..at], anstyle::Reset),
    }
}

/// Every character that is seen: where it begins in `line`, and in which row it lands.
fn place(line: &str, columns: usize) -> impl Iterator<Item = (usize, usize)> {
    let (mut row, mut column, mut in_style) = (0, 0, false);
    line.char_indices().filter_map(move |(at, c)| {
        if in_style || c == '\u{1b}' {
            in_style = c != 'm';
            return None;
        }
        if c == '\n' {
            (row, column) = (row + 1, 0);
            return Some((at, row));
        }
        let width = c.width().unwrap_or(0);
        if column + width > columns.max(2) {
            row += 1;
            column = 0;
        }
        column += width;
        Some((at, row))
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::output::{BOLD, paint};

    const SIZE: Size = Size { columns: 10, rows: 4 };

    #[test]
    fn a_line_that_grows_is_only_added_to() {
        let mut live = Live::default();
        assert_eq!(live.show("Hel", SIZE), "Hel");
        assert_eq!(live.show("Hello", SIZE), "lo");
        assert_eq!(live.hide(SIZE), "\r\u{1b}[J");
        assert_eq!(live.hide(SIZE), "");
    }

    #[test]
    fn a_line_whose_look_changes_is_painted_again() {
        let mut live = Live::default();
        live.show("see **this", SIZE);
        let bold = paint(BOLD, "this");
        assert_eq!(live.show(&format!("see {bold}"), SIZE), format!("\r\u{1b}[Jsee {bold}"));
        live.show(&format!("see {bold} and more"), SIZE);
        assert_eq!(live.hide(SIZE), "\r\u{1b}[1A\u{1b}[J", "17 columns are two rows, whatever the styles");
    }

    #[test]
    fn rows_are_counted_as_a_terminal_does() {
        let table = [
            ("", 1),
            ("1234567890", 1),
            ("12345678901", 2),
            ("123456789天", 2),
            ("天天天天天", 1),
            ("e\u{301}", 1),
            ("1234567890\nab", 2),
            ("a\nb\n", 3),
        ];
        for (line, expected) in table {
            assert_eq!(rows(line, 10), expected, "{line}");
        }
    }

    #[test]
    fn what_does_not_fit_waits_for_the_end_of_the_line() {
        let mut live = Live::default();
        let shown = live.show(&"x".repeat(100), SIZE);
        assert_eq!(shown.matches('x').count(), 30);
        assert_eq!(live.show(&"x".repeat(101), SIZE), "");
        assert_eq!(live.hide(SIZE), "\r\u{1b}[2A\u{1b}[J");
    }
}

//! Tables: columns that fit the terminal, or plain fields for a pipe.

use std::io::IsTerminal;

use anstream::adapter::strip_str;
use comfy_table::presets::NOTHING;
use comfy_table::{Cell, ColumnConstraint, ContentArrangement, Table};

use crate::output::{BOLD, paint};

/// The least room that a column which may wrap is left with, in characters.
const MIN_COLUMN: usize = 12;

/// A table for stdout: on a terminal it fits the width and wraps between words; in a pipe every row is one line with tabs
/// between its fields. Columns in `fixed` are not wrapped as long as the others keep enough room.
pub(crate) fn table(header: &[&str], fixed: &[usize], rows: Vec<Vec<String>>) -> String {
    if !std::io::stdout().is_terminal() {
        return fields(header, &rows);
    }
    let columns = terminal_size::terminal_size().map_or(80, |(width, _)| width.0);
    drawn(header, fixed, rows, columns.max(40))
}

/// One line for each row, the header first.
fn fields(header: &[&str], rows: &[Vec<String>]) -> String {
    let field = |text: &str| {
        let text = strip_str(text).to_string();
        text.split(|c: char| c.is_control()).map(str::trim).collect::<Vec<_>>().join(" ").trim().to_owned()
    };
    let line = |cells: Vec<String>| cells.join("\t") + "\n";
    let rows = rows.iter().map(|row| line(row.iter().map(|cell| field(cell)).collect()));
    std::iter::once(line(header.iter().map(|name| field(name)).collect())).chain(rows).collect()
}

fn drawn(header: &[&str], fixed: &[usize], rows: Vec<Vec<String>>, columns: u16) -> String {
    let mut table = Table::new();
    table.load_style(NOTHING).set_content_arrangement(ContentArrangement::Dynamic).set_width(columns);
    table.set_header(header.iter().map(|name| Cell::new(paint(BOLD, name))));
    for row in rows {
        table.add_row(row);
    }
    let last = header.len().saturating_sub(1);
    for index in 0..header.len() {
        if let Some(column) = table.column_mut(index) {
            column.set_padding((0, if index == last { 0 } else { 2 }));
        }
    }
    let widths = table.column_max_content_widths();
    let kept: usize = fixed.iter().filter_map(|&index| widths.get(index)).map(|&width| usize::from(width) + 2).sum();
    let others = header.len() - fixed.len();
    if kept + others * (MIN_COLUMN + 2) <= columns.into() {
        for &index in fixed {
            if let Some(column) = table.column_mut(index) {
                column.set_constraint(ColumnConstraint::ContentWidth);
            }
        }
    }
    let lines = table.lines().map(|line| format!("{}\n", line.trim_end()));
    lines.collect()
}

#[cfg(test)]
mod tests {
    use unicode_width::UnicodeWidthStr;

    use super::*;
    use crate::output::GOOD;

    fn rows() -> Vec<Vec<String>> {
        let long = "agent:main:telegram:group:-1001234567890:topic:42";
        vec![
            vec![
                paint(GOOD, "✓ ready"),
                "🌤️ weather".to_owned(),
                "Current conditions for any place ".repeat(3),
                "bundled".to_owned(),
            ],
            vec!["✗ missing".to_owned(), long.to_owned(), "two\nlines\tand a tab".to_owned(), String::new()],
        ]
    }

    #[test]
    fn a_table_fits_its_terminal_and_wraps_between_words() {
        for columns in [60, 80, 100, 200] {
            let text =
                strip_str(&drawn(&["Status", "Skill", "Description", "Source"], &[0, 3], rows(), columns)).to_string();
            for line in text.lines() {
                assert!(line.width() <= columns.into(), "{columns}: {line}");
            }
            for word in ["Current", "conditions", "missing", "bundled"] {
                assert!(text.contains(word), "{columns}: {word}\n{text}");
            }
        }
    }

    #[test]
    fn a_pipe_gets_one_line_for_each_row() {
        let text = fields(&["Status", "Skill"], &[vec![paint(GOOD, "✓ ready"), "a\tb\nc".to_owned()]]);
        assert_eq!(text, "Status\tSkill\n✓ ready\ta b c\n");
    }
}

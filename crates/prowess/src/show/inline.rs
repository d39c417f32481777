//! Marks inside a line of Markdown: code, bold and italic.
//!
//! A mark counts only where it is closed on the same line; any other stands for itself. Code is looked for first, for
//! nothing means anything inside it.

use anstyle::{AnsiColor, Style};

use crate::output::{BOLD, paint};

pub(super) const CODE: Style = AnsiColor::Yellow.on_default();
pub(super) const ITALIC: Style = Style::new().italic();

/// The longest line in which marks are looked for: every mark may be looked for up to the end of the line.
const MAX_MARKED_BYTES: usize = 8 * 1024;

/// A piece of a line.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Piece<'a> {
    Text(&'a str),
    Code(&'a str),
    Bold(&'a str),
    Italic(&'a str),
}

/// `line` with styles in place of its marks.
pub(super) fn styled(line: &str) -> String {
    let mut out = String::with_capacity(line.len());
    for piece in pieces(line) {
        match piece {
            Piece::Text(text) => out.push_str(text),
            Piece::Code(code) => out.push_str(&paint(CODE, code)),
            Piece::Bold(text) => out.push_str(&paint(BOLD, &bare(text))),
            Piece::Italic(text) => out.push_str(&paint(ITALIC, &bare(text))),
        }
    }
    out
}

/// `line` without its marks, for places that have a style of their own.
pub(super) fn bare(line: &str) -> String {
    let mut out = String::with_capacity(line.len());
    for piece in pieces(line) {
        match piece {
            Piece::Text(text) | Piece::Code(text) => out.push_str(text),
            Piece::Bold(text) | Piece::Italic(text) => out.push_str(&bare(text)),
        }
    }
    out
}

fn pieces(line: &str) -> Vec<Piece<'_>> {
    if line.len() > MAX_MARKED_BYTES {
        return vec![Piece::Text(line)];
    }
    let mut pieces = Vec::new();
    let (mut text, mut at) = (0, 0);
    while let Some(found) = line[at..].find(['`', '*', '_']).map(|offset| at + offset) {
        match marked(line, found) {
            Some((piece, end)) => {
                if text < found {
                    pieces.push(Piece::Text(&line[text..found]));
                }
                pieces.push(piece);
                (text, at) = (end, end);
            }
            None => at = found + run(line, found),
        }
    }
    if text < line.len() {
        pieces.push(Piece::Text(&line[text..]));
    }
    pieces
}

/// The piece whose mark opens at `at`, and where it ends.
fn marked(line: &str, at: usize) -> Option<(Piece<'_>, usize)> {
    let length = run(line, at);
    let start = at + length;
    if line.as_bytes()[at] == b'`' {
        let end = closing(line, start, length)?;
        let code = &line[start..end];
        // Blanks at both ends only keep backticks apart from the mark.
        let code = code.strip_prefix(' ').and_then(|code| code.strip_suffix(' ')).unwrap_or(code);
        return Some((Piece::Code(code), end + length));
    }
    let opens = |c: Option<char>| c.is_some_and(|c| !c.is_whitespace());
    if length > 2 || !opens(line[start..].chars().next()) || is_inside_word(line, at, length) {
        return None;
    }
    let mut from = start;
    loop {
        let end = closing_of(line, from, length, line.as_bytes()[at])?;
        if opens(line[..end].chars().next_back()) && !is_inside_word(line, end, length) {
            let text = &line[start..end];
            let piece = if length == 2 { Piece::Bold(text) } else { Piece::Italic(text) };
            return Some((piece, end + length));
        }
        from = end + length;
    }
}

/// An underscore between two letters is part of a name.
fn is_inside_word(line: &str, at: usize, length: usize) -> bool {
    let is_letter = |c: Option<char>| c.is_some_and(char::is_alphanumeric);
    line.as_bytes()[at] == b'_'
        && is_letter(line[..at].chars().next_back())
        && is_letter(line[at + length..].chars().next())
}

fn closing(line: &str, from: usize, length: usize) -> Option<usize> {
    closing_of(line, from, length, b'`')
}

/// Where, from `from` on, exactly `length` marks stand together.
fn closing_of(line: &str, from: usize, length: usize, mark: u8) -> Option<usize> {
    let mut at = from;
    while let Some(offset) = line.as_bytes()[at..].iter().position(|&byte| byte == mark) {
        let found = at + offset;
        let here = run(line, found);
        if here == length {
            return Some(found);
        }
        at = found + here;
    }
    None
}

/// How many of the mark at `at` stand together.
fn run(line: &str, at: usize) -> usize {
    let bytes = line.as_bytes();
    bytes[at..].iter().take_while(|&&byte| byte == bytes[at]).count()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn marks_count_only_where_they_are_closed() {
        let table: [(&str, &[Piece<'_>]); 10] = [
            ("a", &[Piece::Text("a")]),
            ("a **b** c", &[Piece::Text("a "), Piece::Bold("b"), Piece::Text(" c")]),
            ("*a*", &[Piece::Italic("a")]),
            ("_a_ snake_case_name", &[Piece::Italic("a"), Piece::Text(" snake_case_name")]),
            ("2 * 3 * 4", &[Piece::Text("2 * 3 * 4")]),
            ("**open", &[Piece::Text("**open")]),
            ("`a*b*`", &[Piece::Code("a*b*")]),
            ("`` a`b ``", &[Piece::Code("a`b")]),
            ("`open", &[Piece::Text("`open")]),
            ("**a *b* c**", &[Piece::Bold("a *b* c")]),
        ];
        for (line, expected) in table {
            assert_eq!(pieces(line), expected, "{line}");
        }
    }

    #[test]
    fn a_line_that_is_too_long_keeps_its_marks() {
        let line = format!("**a** {}", "b".repeat(MAX_MARKED_BYTES));
        assert_eq!(bare(&line), line);
    }
}

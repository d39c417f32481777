//! Wrapping: how does a line fit a terminal without being broken inside a word?

use std::io::IsTerminal;

use textwrap::core::display_width;
use textwrap::{Options, WordSeparator, WordSplitter};
use unicode_width::UnicodeWidthChar;

/// The narrowest terminal that text is wrapped for; on a narrower one the terminal breaks lines itself.
const MIN_COLUMNS: usize = 20;

/// The columns of the terminal that stdout is, if it is one.
pub(crate) fn stdout_columns() -> Option<usize> {
    std::io::stdout().is_terminal().then(columns)
}

/// The columns of the terminal that stderr is, if it is one.
pub(crate) fn stderr_columns() -> Option<usize> {
    std::io::stderr().is_terminal().then(columns)
}

fn columns() -> usize {
    terminal_size::terminal_size().map_or(80, |(width, _)| width.0.into())
}

/// `line` in as many lines as it needs, the second and later ones behind `indent`. A word that is longer than a line stays
/// whole, so that it can be copied. Styles take no room.
pub(crate) fn wrap(line: &str, columns: Option<usize>, indent: &str) -> String {
    let Some(columns) = columns.filter(|&columns| columns >= MIN_COLUMNS) else { return line.to_owned() };
    if display_width(line) <= columns {
        return line.to_owned();
    }
    // Only scripts without spaces are broken inside of what stands between spaces; paths and addresses stay whole.
    let is_wide = line.chars().any(|c| c.width() == Some(2));
    let separator = if is_wide { WordSeparator::UnicodeBreakProperties } else { WordSeparator::AsciiSpace };
    let options = Options::new(columns)
        .subsequent_indent(indent)
        .break_words(false)
        .word_separator(separator)
        .word_splitter(WordSplitter::NoHyphenation);
    textwrap::fill(line, options)
}

/// The same for a message. A line with a command to type stays whole, so that it can be copied.
pub(crate) fn wrap_message(line: &str, columns: Option<usize>, indent: &str) -> String {
    if line.contains("prowess ") { line.to_owned() } else { wrap(line, columns, indent) }
}

/// Every line of `text`, wrapped behind its own indentation.
pub(crate) fn wrap_all(text: &str, columns: Option<usize>) -> String {
    if columns.is_none() {
        return text.to_owned();
    }
    let wrapped = text.split_inclusive('\n').map(|line| {
        let (line, end) = line.strip_suffix('\n').map_or((line, ""), |line| (line, "\n"));
        wrap_message(line, columns, &hanging(line)) + end
    });
    wrapped.collect()
}

/// What the second line of a wrapped one starts with: the first one's indentation, and room for its bullet or number.
pub(crate) fn hanging(line: &str) -> String {
    let text = line.trim_start();
    let indent = line.len() - text.len();
    let bullet = ["• ", "- ", "* ", "+ ", "> "].iter().any(|mark| text.starts_with(mark));
    let digits = text.bytes().take_while(u8::is_ascii_digit).count();
    let numbered = (1..=3).contains(&digits) && text[digits..].starts_with(". ");
    let own = if bullet {
        2
    } else if numbered {
        digits + 2
    } else {
        0
    };
    " ".repeat(indent + own)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::output::{BOLD, paint};

    #[test]
    fn lines_break_between_words() {
        let table = [
            ("one two three four five six", "", "one two three four\nfive six"),
            ("• one two three four five six", "  ", "• one two three four\n  five six"),
            (
                "see https://example.com/a-long-path/index.html now",
                "",
                "see\nhttps://example.com/a-long-path/index.html\nnow",
            ),
            ("上海今天多云转晴气温二十一度", "", "上海今天多云转晴气温\n二十一度"),
            ("short", "", "short"),
        ];
        for (line, indent, expected) in table {
            assert_eq!(wrap(line, Some(20), indent), expected);
            assert_eq!(wrap(line, None, indent), line, "nothing is wrapped for a pipe");
        }
        let styled = format!("{} two three four", paint(BOLD, "one"));
        assert_eq!(wrap(&styled, Some(20), ""), styled, "styles take no room");
    }

    #[test]
    fn later_lines_stand_below_the_text_of_the_first() {
        let table = [("  - x", 4), ("12. x", 4), ("> x", 2), ("plain", 0), ("    code", 4), ("1984 was", 0)];
        for (line, expected) in table {
            assert_eq!(hanging(line).len(), expected, "{line}");
        }
        let command = "run: prowess skills check --all";
        assert_eq!(wrap_message(command, Some(20), ""), command);
        assert_eq!(wrap_all("a\n  - one two three four five\n", Some(20)), "a\n  - one two three\n    four five\n");
    }
}

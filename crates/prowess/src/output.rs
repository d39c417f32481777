//! Output: data to stdout, the rest to stderr, colour only where it is understood.

use std::fmt::Write as _;
use std::io::{ErrorKind, Write};
use std::path::Path;

use anstyle::{AnsiColor, Style};
use prowess_exec::output::{Cleaner, is_hidden};
use prowess_host::Failure;
use prowess_skills::{Problem, Severity, text};
use serde::Serialize;

pub(crate) use crate::table::table;
use crate::wrap::{stdout_columns, wrap_all};

pub(crate) const GOOD: Style = AnsiColor::Green.on_default();
pub(crate) const BAD: Style = AnsiColor::Red.on_default();
pub(crate) const WARN: Style = AnsiColor::Yellow.on_default();
pub(crate) const DIM: Style = Style::new().dimmed();
pub(crate) const BOLD: Style = Style::new().bold();

/// What a command has to say, and the exit code it ends with.
#[derive(Debug, Default)]
pub(crate) struct Report {
    pub(crate) text: String,
    pub(crate) code: u8,
    /// Whether a terminal gets its lines wrapped between words.
    wraps: bool,
}

impl Report {
    pub(crate) fn text(text: impl Into<String>) -> Self {
        Self { text: text.into(), code: 0, wraps: false }
    }

    /// JSON with two spaces of indent and a final newline.
    pub(crate) fn json(value: &impl Serialize) -> Result<Self, Failure> {
        let mut text = visible(&serde_json::to_string_pretty(value).map_err(Failure::ours)?);
        text.push('\n');
        Ok(Self::text(text))
    }

    /// With lines wrapped between words on a terminal, each behind its own indentation.
    pub(crate) fn wrapped(mut self) -> Self {
        self.wraps = true;
        self
    }

    pub(crate) fn code(mut self, code: u8) -> Self {
        self.code = code;
        self
    }

    /// Writes the text; a reader that has gone away is no failure.
    pub(crate) fn print(self) -> Result<(), Failure> {
        let text = if self.wraps { wrap_all(&self.text, stdout_columns()) } else { self.text };
        let mut out = anstream::stdout().lock();
        match out.write_all(text.as_bytes()).and_then(|()| out.flush()) {
            Err(error) if error.kind() != ErrorKind::BrokenPipe => {
                Err(Failure::ours(format!("cannot write the output: {error}")))
            }
            _ => Ok(()),
        }
    }
}

/// `text` in a style, for a terminal; plain output drops it again.
pub(crate) fn paint(style: Style, text: &str) -> String {
    format!("{style}{text}{style:#}")
}

/// Text that came from a skill or a file name: one line, nothing hidden.
pub(crate) fn safe(text: &str) -> String {
    text::clean(text).trim().to_owned()
}

/// Text of many lines that came from a model or a file, for a terminal.
pub(crate) fn cleaned(text: &str) -> String {
    let mut cleaner = Cleaner::default();
    cleaner.push(text) + &cleaner.finish()
}

/// JSON that shows everything in it: characters that a terminal would obey or hide are written as `\u…`, which means the
/// same.
pub(crate) fn visible(json: &str) -> String {
    let is_shown = |c: char| c == '\n' || !(c.is_control() || is_hidden(c));
    if json.chars().all(is_shown) {
        return json.to_owned();
    }
    let mut out = String::with_capacity(json.len() + 64);
    for c in json.chars() {
        if is_shown(c) {
            out.push(c);
            continue;
        }
        for unit in c.encode_utf16(&mut [0; 2]) {
            let _ = write!(out, "\\u{unit:04x}");
        }
    }
    out
}

/// A path for people: the home directory is `~`.
pub(crate) fn short_path(path: &Path, home: &Path) -> String {
    safe(&prowess_skills::compact(&path.to_string_lossy(), Some(home)))
}

/// `count` things, with the word in the right number.
pub(crate) fn count(number: usize, word: &str) -> String {
    format!("{number} {word}{}", if number == 1 { "" } else { "s" })
}

/// A problem on one or two lines, with what to do about it.
pub(crate) fn problem(out: &mut String, problem: &Problem, home: &Path) {
    let (style, word) = match problem.severity() {
        Severity::Error => (BAD, "error"),
        Severity::Warning => (WARN, "warning"),
        Severity::Note => (DIM, "note"),
    };
    let mut place = short_path(&problem.path, home);
    if let Some(at) = problem.at {
        let _ = write!(place, ":{}:{}", at.line, at.column);
    }
    let _ = writeln!(out, "  {} {place}", paint(style, word));
    let _ = writeln!(out, "    {}", safe(&problem.reason));
    let _ = writeln!(out, "    {} {}", paint(DIM, "fix:"), safe(&problem.fix));
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_terminal_gets_lines_and_nothing_to_obey() {
        assert_eq!(cleaned("# a\n\u{1b}]0;title\u{7}b\u{1b}[31m\tc\u{202e}\n"), "# a\nb\tc\n");
    }

    #[test]
    fn json_shows_what_a_terminal_would_hide() {
        let text = "a\u{1b}[2J\u{7f}\u{9b}2J\u{202e}b\u{e0041}é\n";
        let json = Report::json(&text).expect("a report").text;
        assert_eq!(json, "\"a\\u001b[2J\\u007f\\u009b2J\\u202eb\\udb40\\udc41é\\n\"\n");
        assert_eq!(serde_json::from_str::<String>(&json).expect("JSON"), text);
    }
}

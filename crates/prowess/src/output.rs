//! Output: data to stdout, the rest to stderr, colour only where it is understood.

pub(crate) mod json;

use std::fmt::Write as _;
use std::io::{ErrorKind, Write};
use std::path::Path;

use anstyle::{AnsiColor, Style};
use prowess_exec::output::Cleaner;
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
    /// Whether the text has no styles that would have to be taken out for a pipe.
    is_plain: bool,
}

impl Report {
    pub(crate) fn text(text: impl Into<String>) -> Self {
        Self { text: text.into(), ..Self::default() }
    }

    /// JSON with two spaces of indent and a final newline.
    pub(crate) fn json(value: &impl Serialize) -> Result<Self, Failure> {
        json::pretty(value).map(Self::plain).map_err(Failure::ours)
    }

    /// JSON on one line.
    pub(crate) fn json_line(value: &impl Serialize) -> Result<Self, Failure> {
        json::line(value).map(Self::plain).map_err(Failure::ours)
    }

    fn plain(text: String) -> Self {
        Self { text: text + "\n", is_plain: true, ..Self::default() }
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
    pub(crate) fn print(mut self) -> Result<(), Failure> {
        if self.wraps {
            self.text = wrap_all(&self.text, stdout_columns());
        }
        let write = |out: &mut dyn Write| out.write_all(self.text.as_bytes()).and_then(|()| out.flush());
        let written =
            if self.is_plain { write(&mut std::io::stdout().lock()) } else { write(&mut anstream::stdout().lock()) };
        match written {
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
}

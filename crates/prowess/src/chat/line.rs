//! The line at the prompt: editing, history, completion, and more than one line.

use std::borrow::Cow;
use std::fs::OpenOptions;
use std::io::BufRead;
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};

use prowess_host::Failure;
use rustyline::completion::{Completer, Pair};
use rustyline::error::ReadlineError;
use rustyline::highlight::Highlighter;
use rustyline::hint::Hinter;
use rustyline::history::DefaultHistory;
use rustyline::validate::{ValidationContext, ValidationResult, Validator};
use rustyline::{CompletionType, Config, Context, Editor, ExternalPrinter as _, Helper};

use super::complete::{Hint, Words};
use crate::output::{DIM, paint};

/// The file of what was typed, in the state directory.
const HISTORY: &str = "chat-history";

/// How many messages are remembered.
const MAX_REMEMBERED: usize = 1000;

/// The longest message that is remembered.
const MAX_REMEMBERED_BYTES: usize = 16 * 1024;

/// The longest message that is read when nobody types it.
pub(crate) const MAX_MESSAGE_BYTES: u64 = 1024 * 1024;

/// What came from the prompt.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Typed {
    /// A message.
    Line(String),
    /// Ctrl-C.
    Interrupt,
    /// Ctrl-D, or the input has ended.
    End,
}

/// Where messages come from.
pub(crate) enum Lines {
    /// A person at a terminal.
    Person(Box<Person>),
    /// A file or a pipe: one message per line.
    Pipe,
}

/// A person who types.
pub(crate) struct Person {
    editor: Editor<Assistance, DefaultHistory>,
    history: PathBuf,
}

/// The part of the terminal above the line that is typed.
pub(crate) struct Above(std::sync::mpsc::Sender<String>);

impl Above {
    /// Shows `text` there.
    pub(crate) fn show(&self, text: &str) {
        if !text.is_empty() {
            // Nothing is left to do when the terminal has gone away.
            let _ = self.0.send(format!("{}\n", text.trim_end_matches('\n')));
        }
    }
}

impl Lines {
    /// The terminal of this process, with the history kept in `state_dir`.
    pub(crate) fn person(state_dir: &Path, words: Words) -> Result<Self, Failure> {
        let failed = |error: ReadlineError| Failure::ours(format!("cannot use the terminal: {error}"));
        let config = Config::builder()
            .max_history_size(MAX_REMEMBERED)
            .map_err(failed)?
            .history_ignore_dups(true)
            .map_err(failed)?
            .history_ignore_space(true)
            .completion_type(CompletionType::List)
            .build();
        let mut editor = Editor::with_config(config).map_err(failed)?;
        editor.set_helper(Some(Assistance { words }));
        let history = state_dir.join(HISTORY);
        // Without a history one can still talk; the file is told about when it cannot be written.
        let _ = editor.load_history(&history);
        Ok(Self::Person(Box::new(Person { editor, history })))
    }

    /// The next message. Reading blocks, so it has a thread of its own; this comes back when it is done.
    pub(crate) async fn next(self, prompt: &str) -> (Self, Result<Typed, Failure>) {
        let prompt = prompt.to_owned();
        let reading = tokio::task::spawn_blocking(move || match self {
            Self::Person(mut person) => {
                let typed = person.read(&prompt);
                (Self::Person(person), typed)
            }
            Self::Pipe => (Self::Pipe, read_line(&mut std::io::stdin().lock())),
        });
        match reading.await {
            Ok(read) => read,
            Err(error) => (Self::Pipe, Err(Failure::ours(format!("reading the line failed: {error}")))),
        }
    }

    /// Where lines can be put above the one that a person types. Nothing if nobody types.
    pub(crate) fn above(&mut self) -> Option<Above> {
        let Self::Person(person) = self else { return None };
        let mut printer = person.editor.create_external_printer().ok()?;
        let (lines, waiting) = std::sync::mpsc::channel::<String>();
        // The editor takes one text at a time, and none while it does not read; that must not hold up anybody else.
        std::thread::spawn(move || {
            while let Ok(text) = waiting.recv() {
                if printer.print(text).is_err() {
                    return;
                }
            }
        });
        Some(Above(lines))
    }

    /// Completes with these from now on.
    pub(crate) fn complete_with(&mut self, words: Words) {
        if let Self::Person(person) = self {
            person.editor.set_helper(Some(Assistance { words }));
        }
    }
}

impl Person {
    fn read(&mut self, prompt: &str) -> Result<Typed, Failure> {
        let line = match self.editor.readline(prompt) {
            Ok(line) => line,
            Err(ReadlineError::Interrupted) => return Ok(Typed::Interrupt),
            Err(ReadlineError::Eof) => return Ok(Typed::End),
            Err(error) => return Err(Failure::ours(format!("cannot read from the terminal: {error}"))),
        };
        if line.len() <= MAX_REMEMBERED_BYTES && !line.trim().is_empty() {
            // A history that cannot be kept stops nobody from talking.
            let _ = self.editor.add_history_entry(line.as_str());
            let _ = make_private(&self.history)
                .and_then(|()| self.editor.append_history(&self.history).map_err(std::io::Error::other));
        }
        Ok(Typed::Line(joined(&line)))
    }
}

/// Makes the file so that only its owner can read it, before anything is in it.
fn make_private(path: &Path) -> std::io::Result<()> {
    if let Some(dir) = path.parent() {
        std::fs::create_dir_all(dir)?;
    }
    OpenOptions::new().create(true).append(true).mode(0o600).open(path).map(drop)
}

/// One line of a file or a pipe.
fn read_line(from: &mut impl BufRead) -> Result<Typed, Failure> {
    let mut line = Vec::new();
    let read = std::io::Read::take(from, MAX_MESSAGE_BYTES + 1).read_until(b'\n', &mut line);
    read.map_err(|error| Failure::input(format!("cannot read the message: {error}")))?;
    if line.is_empty() {
        return Ok(Typed::End);
    }
    if u64::try_from(line.len()).unwrap_or(u64::MAX) > MAX_MESSAGE_BYTES {
        return Err(Failure::input(format!("the message is longer than {MAX_MESSAGE_BYTES} bytes"))
            .hint("put it in a file and ask about the file"));
    }
    let line = String::from_utf8(line).map_err(|_| Failure::input("the message is not UTF-8"))?;
    Ok(Typed::Line(line.trim_end_matches(['\n', '\r']).to_owned()))
}

/// Whether the line goes on: it ends with a backslash that is not itself escaped.
fn goes_on(line: &str) -> bool {
    let slashes = line.len() - line.trim_end_matches('\\').len();
    slashes % 2 == 1
}

/// A message of several lines without the backslashes that joined them.
fn joined(line: &str) -> String {
    line.replace("\\\n", "\n")
}

/// What helps at the prompt.
struct Assistance {
    words: Words,
}

impl Helper for Assistance {}

impl Completer for Assistance {
    type Candidate = Pair;

    fn complete(&self, line: &str, at: usize, _: &Context<'_>) -> rustyline::Result<(usize, Vec<Pair>)> {
        let meant = self.words.meant(line, at);
        // Candidates are listed with what they are, unless there is only one.
        let pair = |(text, word): (String, &super::complete::Word)| Pair {
            display: format!("{text}  {}", word.about),
            replacement: format!("{text} "),
        };
        Ok((meant.start, meant.words.into_iter().map(pair).collect()))
    }
}

impl Hinter for Assistance {
    type Hint = Hint;

    fn hint(&self, line: &str, at: usize, _: &Context<'_>) -> Option<Hint> {
        self.words.hint(line, at)
    }
}

impl rustyline::hint::Hint for Hint {
    fn display(&self) -> &str {
        &self.shown
    }

    fn completion(&self) -> Option<&str> {
        Some(self.rest.as_str()).filter(|rest| !rest.is_empty())
    }
}

impl Highlighter for Assistance {
    fn highlight_hint<'h>(&self, hint: &'h str) -> Cow<'h, str> {
        Cow::Owned(paint(DIM, hint))
    }
}

impl Validator for Assistance {
    fn validate(&self, line: &mut ValidationContext<'_>) -> rustyline::Result<ValidationResult> {
        Ok(if goes_on(line.input()) { ValidationResult::Incomplete } else { ValidationResult::Valid(None) })
    }
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::PermissionsExt;

    use super::*;

    #[test]
    fn a_backslash_at_the_end_asks_for_another_line() {
        let table = [("a", false), ("a\\", true), ("a\\\\", false), ("\\", true), ("", false), ("a\\ ", false)];
        for (line, expected) in table {
            assert_eq!(goes_on(line), expected, "{line:?}");
        }
        assert_eq!(joined("one\\\ntwo\\\nthree"), "one\ntwo\nthree");
    }

    #[test]
    fn a_pipe_gives_a_message_per_line_and_then_ends() {
        let mut input = "one\r\n\ntwo".as_bytes();
        let read: Vec<Typed> = (0..4).map(|_| read_line(&mut input).expect("a line")).collect();
        let line = |text: &str| Typed::Line(text.to_owned());
        assert_eq!(read, [line("one"), line(""), line("two"), Typed::End]);
    }

    #[test]
    fn a_message_without_end_is_refused() {
        let mut long = std::io::BufReader::new(std::io::Read::take(std::io::repeat(b'x'), 2 * MAX_MESSAGE_BYTES));
        assert!(read_line(&mut long).expect_err("too long").message.contains("longer than"));
        assert!(read_line(&mut &b"\xff\n"[..]).expect_err("no text").message.contains("UTF-8"));
    }

    #[test]
    fn the_history_is_nobody_elses() {
        let dir = tempfile::tempdir().expect("a directory");
        let path = dir.path().join("state").join(HISTORY);
        make_private(&path).expect("a file");
        make_private(&path).expect("still there");
        let mode = std::fs::metadata(&path).expect("a file").permissions().mode();
        assert_eq!(mode & 0o777, 0o600);
    }
}
